"""What checked labels buy, beside other uses of the same rows, and whether the intervals hold the truth.

    python benchmarks/verified_labels.py --seeds 0 10 --data synthetic compas adult --counts 50 100 400

Prints accuracy / equalized-odds disparity on true test labels for each number of checked rows, drawn at random, and how
often the intervals of the share of right labels and of a model's accuracy held the truth.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections import defaultdict
from pathlib import Path

import numpy as np
from sklearn.linear_model import LogisticRegression

from fairsieve import FairRobustClassifier, Samples, estimate_clean_ratio, measure_true_labels
from fairsieve.data import flip_group_targeted, flip_margin, flip_uniform, make_synthetic, split
from fairsieve.data.catalogue import dataset
from fairsieve.metrics import accuracy_from_table, confusion_table, disparity_from_table

sys.path.insert(0, str(Path(__file__).parents[1]))
from tests.support.annotators import flip_weak_annotator

MOST_ROWS, MOST_TESTED = 4_000, 10_000


def of_one_group(data: Samples, seed: int) -> object:
    rates = np.zeros(data.cells.shape)
    rates[:, seed % data.cells.shape[1]] = 0.2
    return flip_uniform(data, rates, seed=seed)


NOISES = {
    "margins 10%": lambda data, seed: flip_margin(data, 0.1),
    "margins of a group 10%": lambda data, seed: flip_group_targeted(data, 0.1),
    "at random in a group 20%": of_one_group,
    "weak annotator 10%": lambda data, seed: flip_weak_annotator(data, 0.1, seed=seed),
}


def problem(data: str, seed: int) -> tuple[Samples, Samples]:
    """Training and test samples with true labels."""
    if data == "synthetic":
        return make_synthetic(2000, seed=seed), make_synthetic(MOST_TESTED, seed=seed + 10_000)
    parts = split(dataset(data).load(), test=0.4, validation=0.0, seed=seed)
    return parts.train.take(np.arange(len(parts.train))[:MOST_ROWS]), parts.test


def measure(labels: np.ndarray, test: Samples) -> tuple[float, float]:
    table, _, _ = confusion_table(test.labels, labels, test.groups)
    return float(accuracy_from_table(table)), float(disparity_from_table(table, "equalized_odds"))


def plain(X: np.ndarray, y: np.ndarray, test: Samples) -> np.ndarray:
    if len(np.unique(y)) == 1:
        return np.full(len(test), y[0])
    return LogisticRegression(max_iter=2000).fit(X, y).predict(test.features)


def run(
    data: str, noise: str, count: int, seed: int
) -> tuple[dict[str, tuple[float, float]], dict[str, bool]]:
    """Train by each method; return what each is worth, and which intervals held the truth."""
    clean, test = problem(data, seed)
    labels = NOISES[noise](clean, seed).labels
    rows = np.random.default_rng(seed).permutation(len(clean))[:count]
    checked, corrected = np.full(len(clean), None, dtype=object), labels.copy()
    checked[rows] = corrected[rows] = clean.labels[rows]
    groups = {"sensitive_features": clean.groups}
    ours = FairRobustClassifier(random_state=seed).fit(
        clean.features, labels, verified_labels=checked, **groups
    )
    worth = {
        "ours": measure(ours.predict(test.features), test),
        "plain, corrected": measure(plain(clean.features, corrected, test), test),
        "those rows alone": measure(plain(clean.features[rows], clean.labels[rows], test), test),
        "plain, noisy": measure(plain(clean.features, labels, test), test),
    }
    half = np.arange(len(clean)) < len(clean) // 2
    model = LogisticRegression(max_iter=2000).fit(clean.features[half], labels[half])
    found = estimate_clean_ratio(clean.features, labels, verified_labels=checked, **groups)
    predicted = model.predict(clean.features[~half])
    accuracy = measure_true_labels(predicted, found, rows=np.flatnonzero(~half)).accuracy
    right, true = np.mean(labels == clean.labels), np.mean(predicted == clean.labels[~half])
    held = {
        "share of right labels": bool(found.interval[0] <= right <= found.interval[1]),
        "accuracy": bool(accuracy.low <= true <= accuracy.high),
    }
    return worth, held


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, nargs=2, default=(0, 5))
    parser.add_argument("--data", nargs="+", default=["synthetic", "compas", "adult"])
    parser.add_argument("--counts", type=int, nargs="+", default=[50, 100, 400])
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    print("| data | wrong labels | checked | method | accuracy / disparity |")
    print("| --- | --- | --- | --- | --- |")
    holds: dict[str, list[bool]] = defaultdict(list)
    for data in asked.data:
        for noise in NOISES:
            for count in asked.counts:
                runs = [run(data, noise, count, seed) for seed in range(*asked.seeds)]
                for method in runs[0][0]:
                    accuracy, disparity = np.mean([worth[method] for worth, _ in runs], axis=0)
                    print(
                        f"| {data} | {noise} | {count} | {method} | {accuracy:.3f} / {disparity:.3f} |",
                        flush=True,
                    )
                for _, held in runs:
                    for name, value in held.items():
                        holds[f"{name}, {count} checked"].append(value)
    for name, values in holds.items():
        print(f"{name}: the interval held the truth in {sum(values)} of {len(values)}")
