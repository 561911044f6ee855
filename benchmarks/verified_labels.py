"""What checked labels buy, beside other uses of the same checked rows.

    python benchmarks/verified_labels.py methods RECORDS.jsonl    # ours, plain, those rows alone, FR-Train
    python benchmarks/verified_labels.py choices RECORDS.jsonl    # which rows to check: ours, at random, highest losses
    python benchmarks/verified_labels.py coverage                 # do the intervals hold the truth?
    python benchmarks/verified_labels.py tables RECORDS.jsonl --figure docs/images/verified-labels.svg

Each run is one JSON line, appended as it ends; runs that the file has are not repeated, so a stopped benchmark goes on.
``--data``, ``--seeds FIRST LAST`` and ``--counts`` choose some of them.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from pathlib import Path

import numpy as np
from sklearn.linear_model import LogisticRegression

from fairsieve import FairRobustClassifier, Samples
from fairsieve.data import make_synthetic
from fairsieve.data.catalogue import dataset
from fairsieve.data.splits import split
from fairsieve.errors import InvalidInputError
from fairsieve.metrics import accuracy_from_table, confusion_table, disparity_from_table
from fairsieve.paper.attacks import add_noise
from fairsieve.paper.methods.registry import METHODS
from fairsieve.training.settings import Settings

DATA = ("synthetic", "compas", "adult")
NOISES = (
    ("label", 0.1),
    ("label", 0.2),
    ("group-targeted", 0.1),
    ("group-targeted", 0.2),
    ("weak-annotator", 0.2),
)
COUNTS = (50, 100, 200, 400)
ADULT_ROWS = 4_000  # trained on; all 43,131 would take hours
MOST_TESTED = 10_000
FR_TRAIN_EPOCHS = {"synthetic": 3_000, "compas": 3_000, "adult": 3_000}


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


def ours(noisy: Samples, rows: np.ndarray, clean: Samples, fairness: str, seed: int) -> FairRobustClassifier:
    """Fit the classifier with those rows as verified labels."""
    verified = np.full(len(noisy), None, dtype=object)
    verified[rows] = clean.labels[rows]
    model = FairRobustClassifier(fairness, random_state=seed, on_collapse="fallback")
    return model.fit(noisy.features, noisy.labels, sensitive_features=noisy.groups, verified_labels=verified)


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
    fitted = METHODS["fr-train"].train(
        train,
        Settings(fairness=fairness),
        seed=seed,
        validation=clean.take(rows),
        epochs=FR_TRAIN_EPOCHS[data],
    )
    return fitted.predict(test.features)


METHOD_NAMES = ("ours", "plain, corrected", "those rows alone", "fr-train")
ONCE = ("noisy", "true", "all labels true, fair")  # they do not depend on the rows


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


class Records:
    """JSON lines: read once, appended as runs end."""

    KEYS = ("data", "noise", "rate", "seed", "method", "count")

    def __init__(self, path: Path) -> None:
        self.path = path
        lines = path.read_text().splitlines() if path.exists() else []
        self.found = [json.loads(line) for line in lines]
        self.known = {self._name(each) for each in self.found}

    def _name(self, record: dict) -> tuple:
        return tuple(record[key] for key in self.KEYS)

    def __contains__(self, record: dict) -> bool:
        return self._name(record) in self.known

    def add(self, record: dict) -> None:
        with self.path.open("a") as file:
            file.write(json.dumps(record) + "\n")
        self.found.append(record)
        self.known.add(self._name(record))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=("methods",))
    parser.add_argument("records", type=Path, nargs="?", default=Path("verified-labels.jsonl"))
    parser.add_argument("--data", nargs="+", default=list(DATA))
    parser.add_argument("--seeds", type=int, nargs=2, default=[0, 10])
    parser.add_argument("--counts", type=int, nargs="+", default=list(COUNTS))
    parser.add_argument("--method", nargs="+")
    parser.add_argument("--fairness", default="equalized_odds")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    run_methods(Records(options.records), options)


if __name__ == "__main__":
    main()
