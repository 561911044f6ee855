"""What checked labels buy, beside other uses of the same checked rows.

    python benchmarks/verified_labels.py methods RECORDS.jsonl    # ours, plain, those rows alone, FR-Train
    python benchmarks/verified_labels.py choices RECORDS.jsonl    # which rows to check: ours, at random, highest losses
    python benchmarks/verified_labels.py coverage                 # do the intervals hold the truth?
    python benchmarks/verified_labels.py tables RECORDS.jsonl --counts 50 400 --figure docs/images/verified-labels.svg

Each run is one JSON line, appended as it ends; runs that the file has are not repeated, so a stopped benchmark goes on.
``--data``, ``--seeds FIRST LAST`` and ``--counts`` choose some of them.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections import defaultdict
from pathlib import Path

import numpy as np
from sklearn.linear_model import LogisticRegression
from verified_labels_tables import (
    CHOICE_NOISES,
    CHOICES,
    DATA,
    METHOD_NAMES,
    NOISES,
    ONCE,
    Records,
    show_tables,
)

from fairsieve import FairRobustClassifier, Samples, estimate_clean_ratio, measure_true_labels
from fairsieve.data import make_synthetic
from fairsieve.data.catalogue import dataset
from fairsieve.data.splits import split
from fairsieve.errors import InvalidInputError
from fairsieve.metrics import accuracy_from_table, confusion_table, disparity_from_table
from fairsieve.paper.attacks import add_noise
from fairsieve.paper.methods.contract import TrainingInput
from fairsieve.paper.methods.registry import METHODS
from fairsieve.training.settings import Settings

sys.path.insert(0, str(Path(__file__).parents[1]))

COUNTS = (50, 100, 200, 400)
ADULT_ROWS = 4_000  # trained on; all 43,131 would take hours
MOST_TESTED = 10_000


def problem(data: str, noise: str, rate: float, seed: int) -> tuple[Samples, Samples, Samples]:
    """Draw or split: training samples with true labels, the same with wrong ones, and a test part with true labels."""
    if data == "synthetic":
        clean, test = make_synthetic(2000, seed=seed), make_synthetic(MOST_TESTED, seed=seed + 10_000)
    else:
        parts = split(dataset(data).load(), test=0.4, validation=0.0, seed=seed)
        clean, test = parts.train, parts.test
        rng = np.random.default_rng(seed)
        if data == "adult":
            clean = clean.take(np.sort(rng.permutation(len(clean))[:ADULT_ROWS]))
        test = test.take(np.sort(rng.permutation(len(test))[:MOST_TESTED]))
    while True:
        try:
            noisy = add_noise(clean, noise, rate, seed=seed)
            return clean, clean.with_labels(noisy.labels), test
        except InvalidInputError:  # the annotator is not wrong so often, or too few of a group are left
            rate = round(0.8 * rate, 3)


def measure(labels: np.ndarray, test: Samples, fairness: str) -> tuple[float, float]:
    """Accuracy and disparity on the test part."""
    table, _, _ = confusion_table(test.labels, labels, test.groups)
    return round(float(accuracy_from_table(table)), 4), round(float(disparity_from_table(table, fairness)), 4)


def ours(
    noisy: Samples,
    rows: np.ndarray,
    clean: Samples,
    fairness: str,
    seed: int,
    weights: np.ndarray | None = None,
) -> FairRobustClassifier:
    """Fit the classifier with those rows as verified labels."""
    options = {}
    if len(rows):
        options["verified_labels"] = np.full(len(noisy), None, dtype=object)
        options["verified_labels"][rows] = clean.labels[rows]
    if weights is not None and len(rows):
        options["verified_weight"] = np.ones(len(noisy))
        options["verified_weight"][rows] = weights
    model = FairRobustClassifier(fairness, random_state=seed, on_collapse="fallback")
    return model.fit(noisy.features, noisy.labels, sensitive_features=noisy.groups, **options)


def corrected(noisy: Samples, rows: np.ndarray, clean: Samples) -> np.ndarray:
    """The labels with those rows set right."""
    labels = noisy.labels.copy()
    labels[rows] = clean.labels[rows]
    return labels


def predict(
    method: str,
    data: str,
    noisy: Samples,
    rows: np.ndarray,
    clean: Samples,
    test: Samples,
    fairness: str,
    seed: int,
) -> np.ndarray:
    """Train by a method, and predict the test part."""
    if method == "ours":
        return ours(noisy, rows, clean, fairness, seed).predict(test.features)
    if method in ("plain, corrected", "noisy", "true"):
        labels = {"noisy": noisy.labels, "true": clean.labels}.get(method)
        labels = corrected(noisy, rows, clean) if labels is None else labels
        return LogisticRegression(max_iter=2000).fit(noisy.features, labels).predict(test.features)
    if method == "those rows alone":
        part = clean.take(rows)
        if len(np.unique(part.labels)) == 1:
            return np.full(len(test), part.labels[0])
        return LogisticRegression(max_iter=2000).fit(part.features, part.labels).predict(test.features)
    if method == "all labels true, fair":
        model = FairRobustClassifier(fairness, clean_ratio=1.0, signal="error", random_state=seed)
        return model.fit(clean.features, clean.labels, sensitive_features=clean.groups).predict(test.features)
    train = noisy.with_labels(corrected(noisy, rows, clean))
    given = TrainingInput(
        data=train, settings=Settings(fairness=fairness), seed=seed, validation=clean.take(rows)
    )
    return METHODS["fr-train"].train(given).predict(test)


def run_methods(records: Records, options: argparse.Namespace) -> None:
    """Every method, data set, noise, number of rows and seed."""
    for seed in range(*options.seeds):
        for data in options.data:
            for noise, rate in NOISES:
                made = None
                for method, count in [(name, 0) for name in ONCE] + [
                    (name, count) for count in options.counts for name in METHOD_NAMES
                ]:
                    key = {
                        "data": data,
                        "noise": noise,
                        "rate": rate,
                        "seed": seed,
                        "method": method,
                        "count": count,
                    }
                    if key in records or (options.method and method not in options.method):
                        continue
                    made = made or problem(data, noise, rate, seed)
                    clean, noisy, test = made
                    rows = np.random.default_rng(seed).permutation(len(clean))[:count]
                    began = time.process_time()
                    found = predict(method, data, noisy, rows, clean, test, options.fairness, seed)
                    accuracy, disparity = measure(found, test, options.fairness)
                    seconds = round(time.process_time() - began, 2)
                    records.add(key | {"accuracy": accuracy, "disparity": disparity, "seconds": seconds})


def run_choices(records: Records, options: argparse.Namespace) -> None:
    """Check ever more rows, chosen in three ways, and train on each lot."""
    for seed in range(*options.seeds):
        for data in options.data:
            for noise, rate in CHOICE_NOISES:
                made = None
                for choice in CHOICES:
                    keys = [
                        {
                            "data": data,
                            "noise": noise,
                            "rate": rate,
                            "seed": seed,
                            "method": f"choice: {choice}",
                            "count": count,
                        }
                        for count in options.counts
                    ]
                    if all(key in records for key in keys):
                        continue
                    made = made or problem(data, noise, rate, seed)
                    for key, (accuracy, disparity) in zip(
                        keys, check_more(choice, *made, options, seed), strict=True
                    ):
                        if key not in records:
                            records.add(key | {"accuracy": accuracy, "disparity": disparity, "seconds": 0.0})


def check_more(
    choice: str, clean: Samples, noisy: Samples, test: Samples, options: argparse.Namespace, seed: int
) -> list[tuple[float, float]]:
    """Train after each lot of checks; ``next_to_verify`` sees the model before it chooses the next."""
    rows, weights, found = np.zeros(0, np.int64), np.zeros(0), []
    plain = LogisticRegression(max_iter=2000).fit(noisy.features, noisy.labels)
    own = plain.predict_proba(noisy.features)[np.arange(len(noisy)), noisy.cells.label_codes]
    order = {
        "at random": np.random.default_rng(seed).permutation(len(noisy)),
        "highest losses": np.argsort(own, kind="stable"),
    }
    model = None
    for count in options.counts:
        if choice == "next_to_verify":
            model = model or ours(noisy, rows, clean, options.fairness, seed)
            more, their_weights = model.next_to_verify(count - len(rows))
            rows, weights = np.concatenate([rows, more]), np.concatenate([weights, their_weights])
            model = ours(noisy, rows, clean, options.fairness, seed, weights)
        else:
            model = ours(noisy, order[choice][:count], clean, options.fairness, seed)
        found.append(measure(model.predict(test.features), test, options.fairness))
    return found


def show_coverage(options: argparse.Namespace) -> None:
    """How often the 95 % intervals hold the truth: of measures of a plain model, and of the flip rates."""
    held, widths = defaultdict(list), defaultdict(list)
    for data in options.data:
        for noise, rate in NOISES:
            for seed in range(*options.seeds):
                clean, noisy, test = problem(data, noise, rate, seed)
                order = np.random.default_rng(seed + 1).permutation(len(clean))
                seen, left = order[: len(order) // 2], order[len(order) // 2 :]
                model = LogisticRegression(max_iter=2000).fit(noisy.features[seen], noisy.labels[seen])
                true = measure(model.predict(test.features), test, options.fairness)
                for count in options.counts:
                    rows = np.random.default_rng(seed).permutation(len(clean))[:count]
                    verified = np.full(len(clean), None, dtype=object)
                    verified[rows] = clean.labels[rows]
                    found = estimate_clean_ratio(
                        noisy.features,
                        noisy.labels,
                        sensitive_features=noisy.groups,
                        verified_labels=verified,
                        random_state=seed,
                    )
                    measured = measure_true_labels(
                        model.predict(noisy.features[left]), found, rows=left, fairness=options.fairness
                    )
                    pairs = [
                        ("accuracy", (measured.accuracy.low, measured.accuracy.high), true[0]),
                        ("disparity", (measured.disparity.low, measured.disparity.high), true[1]),
                        ("share of right labels", found.interval, np.mean(noisy.labels == clean.labels)),
                    ]
                    wrong, cells = noisy.labels != clean.labels, clean.cells
                    for c, z in np.ndindex(*cells.shape):
                        inside = (cells.label_codes == c) & (cells.group_codes == z)
                        bounds = found.verified.low[c, z], found.verified.high[c, z]
                        pairs.append(("flip rate of a class and group", bounds, wrong[inside].mean()))
                    for name, (low, high), truth in pairs:
                        held[name, count].append(low - 1e-9 <= truth <= high + 1e-9)
                        widths[name, count].append(high - low)
    print("| interval of | " + " | ".join(f"{count} checked" for count in options.counts) + " |")
    print("| --- |" + " --- |" * len(options.counts))
    for name in dict.fromkeys(name for name, _ in held):
        cells = [
            f"{np.sum(held[name, count])} of {len(held[name, count])} ({np.mean(widths[name, count]):.2f} wide)"
            for count in options.counts
        ]
        print(f"| {name} | " + " | ".join(cells) + " |")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=("methods", "choices", "coverage", "tables"))
    parser.add_argument("records", type=Path, nargs="?", default=Path("verified-labels.jsonl"))
    parser.add_argument("--data", nargs="+", default=list(DATA))
    parser.add_argument("--seeds", type=int, nargs=2, default=[0, 10])
    parser.add_argument("--counts", type=int, nargs="+", default=list(COUNTS))
    parser.add_argument("--method", nargs="+")
    parser.add_argument(
        "--figure", type=Path, help="of the methods; the choices' figure is written beside it"
    )
    parser.add_argument("--means", type=Path, help="a CSV file for the means and standard errors of all")
    parser.add_argument("--fairness", default="equalized_odds")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    if options.what == "coverage":
        show_coverage(options)
        return
    {"methods": run_methods, "choices": run_choices, "tables": show_tables}[options.what](
        Records(options.records), options
    )


if __name__ == "__main__":
    main()
