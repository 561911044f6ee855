"""Whether what the estimate of wrong labels claims is true: over tables, kinds of wrong labels and draws.

    python benchmarks/estimate_coverage.py --records coverage.jsonl --seeds 3
    python benchmarks/estimate_coverage.py --records coverage.jsonl --show

The tables are drawn, or real ones (scikit-learn's, German credit, COMPAS, Adult with several columns in turn as the
label). Of some nobody can be sure, as of credit default: there no label may be called wrong where none is. A run is
recorded as one JSON line as soon as it ends, so that a stopped benchmark continues.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import warnings
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import numpy as np
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_wine

from fairsieve import Samples, estimate_clean_ratio
from fairsieve.data import (
    flip_group_targeted,
    flip_margin,
    flip_uniform,
    load_adult,
    load_compas,
    load_german,
    make_synthetic,
)

sys.path.insert(0, str(Path(__file__).parents[1]))
from tests.support.annotators import flip_by_feature, flip_near_boundary, flip_weak_annotator

ROWS = 6000


def draw(chance: Callable[[np.ndarray], np.ndarray], columns: int = 6) -> Callable[[int], Samples]:
    """A table whose label has a chance that follows from normal columns."""

    def table(seed: int) -> Samples:
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(ROWS, columns))
        return Samples(X, (rng.random(ROWS) < chance(X)).astype(int), rng.integers(0, 2, ROWS))

    return table


def logistic(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def of_sklearn(
    load: Callable[[], object], label: Callable[[np.ndarray], np.ndarray]
) -> Callable[[int], Samples]:
    """A table of scikit-learn; the groups are a random half."""

    def table(seed: int) -> Samples:
        found = load()
        X, rng = found.data[:, found.data.std(axis=0) > 0], np.random.default_rng(seed)
        return Samples(
            (X - X.mean(0)) / X.std(0), label(found.target).astype(int), rng.integers(0, 2, len(X))
        )

    return table


def part_of(load: Callable[[], Samples], label: str | None = None) -> Callable[[int], Samples]:
    """Some rows of a real table, with a column of it as the label."""

    def table(seed: int) -> Samples:
        data = load()
        data = data.take(np.sort(np.random.default_rng(seed).permutation(len(data))[:ROWS]))
        if label is None:
            return data
        places = [place for place, name in enumerate(data.feature_names) if name.startswith(label)]
        column = data.features[:, places[0]]
        rest = np.delete(data.features, places, axis=1)
        return Samples(rest, (column > column.mean()).astype(int), data.groups)

    return table


TABLES = {
    "synthetic": lambda seed: make_synthetic(2000, seed=seed),
    "logistic": draw(lambda X: logistic(3 * X[:, 0] + 2 * X[:, 1])),
    "exclusive or": draw(lambda X: 1.0 * (X[:, 0] * X[:, 1] > 0)),
    "steps": draw(lambda X: 1.0 * ((X[:, 0] > 0) & (X[:, 1] > -0.5) | (X[:, 2] > 1.2))),
    "never sure": draw(lambda X: 0.06 + 0.64 * logistic(2 * X[:, 0] + X[:, 1] - 2), 16),
    "sure of one class": draw(lambda X: 0.03 + 0.57 * logistic(2 * X[:, 0] + 2 * X[:, 1]), 16),
    "heavy tails": draw(lambda X: 0.5 + np.arctan(2 * X[:, 0] + X[:, 1]) / np.pi),
    "breast cancer": of_sklearn(load_breast_cancer, lambda y: y),
    "digits": of_sklearn(load_digits, lambda y: y % 2),
    "wine": of_sklearn(load_wine, lambda y: y == 1),
    "diabetes": of_sklearn(load_diabetes, lambda y: y > 140),
    "german": part_of(load_german),
    "compas": part_of(load_compas),
    "adult": part_of(load_adult),
    "adult: hours": part_of(load_adult, "hours"),
    "adult: age": part_of(load_adult, "age"),
}


def of_one_cell(data: Samples, seed: int) -> object:
    """Flip 30 % of the labels of one class in one group, which the seed chooses."""
    rates = np.zeros(data.cells.shape)
    rates.flat[seed % rates.size] = 0.3
    return flip_uniform(data, rates, seed=seed)


def of_one_group(data: Samples, seed: int) -> object:
    rates = np.zeros(data.cells.shape)
    rates[:, seed % 2] = 0.2
    return flip_uniform(data, rates, seed=seed)


KINDS = {
    "none": lambda data, seed: flip_uniform(data, 0.0, seed=seed),
    "at random, 5 %": lambda data, seed: flip_uniform(data, 0.05, seed=seed),
    "at random, 10 %": lambda data, seed: flip_uniform(data, 0.1, seed=seed),
    "at random, 20 %": lambda data, seed: flip_uniform(data, 0.2, seed=seed),
    "one group, 20 %": of_one_group,
    "one cell, 30 %": of_one_cell,
    "largest margins, 10 %": lambda data, seed: flip_margin(data, 0.1),
    "largest margins of a group": lambda data, seed: flip_group_targeted(data, 0.1),
    "weak annotator, 10 %": lambda data, seed: flip_weak_annotator(data, 0.1, seed=seed),
    "near the boundary, 10 %": lambda data, seed: flip_near_boundary(data, 0.1, seed=seed),
    "by a feature, 10 %": lambda data, seed: flip_by_feature(data, 0.1, seed=seed),
}


def run(table: str, kind: str, seed: int) -> dict[str, object]:
    """Make one estimate and compare it with the truth."""
    clean = TABLES[table](seed)
    try:
        noisy = KINDS[kind](clean, seed + 1000)
    except ValueError:  # an annotator that is not wrong so often
        return {"skipped": True}
    started = time.process_time()
    found = estimate_clean_ratio(clean.features, noisy.labels, sensitive_features=clean.groups)
    seconds = time.process_time() - started
    suspects = np.setdiff1d(np.arange(len(clean)), found.believed)
    return {
        "right": float(1 - noisy.flipped.mean()),
        "ratio": found.clean_ratio,
        "interval": [float(end) for end in found.interval],
        "conclusive": bool(found.credible),
        "found": bool(found.flip_rates.any()),
        "suspects": len(suspects),
        "hits": int(noisy.flipped[suspects].sum()),
        "reason": str(found.credible),
        "seconds": seconds,
    }


def show(records: list[dict[str, object]]) -> None:
    """Print, for each kind of wrong labels, how often what is claimed is true."""
    print(
        "| wrong labels | runs | conclusive | found | at most: true | interval: true | suspects | wrong ones |"
    )
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    by_kind: dict[object, list[dict[str, object]]] = defaultdict(list)
    for one in records:
        if "skipped" not in one:
            by_kind[one["kind"]].append(one)
    for kind, runs in by_kind.items():
        told = [one for one in runs if one["conclusive"]]
        most = sum(one["right"] <= one["interval"][1] for one in told)
        inside = sum(one["interval"][0] <= one["right"] <= one["interval"][1] for one in told)
        suspects, hits = (sum(one[name] for one in told) for name in ("suspects", "hits"))
        named = sum(one["found"] for one in told)
        precision = f"{hits / suspects:.2f}" if suspects else "–"
        print(
            f"| {kind} | {len(runs)} | {len(told)} | {named} | {most} | {inside} | {suspects} | {precision} |"
        )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--records", type=Path, required=True)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--tables", default=",".join(TABLES))
    parser.add_argument("--show", action="store_true")
    asked = parser.parse_args()
    asked.records.touch()
    known = [json.loads(line) for line in asked.records.read_text().splitlines()]
    done = {(one["table"], one["kind"], one["seed"]) for one in known}
    warnings.simplefilter("ignore")
    for number in range(0 if asked.show else asked.seeds):
        for name in asked.tables.split(","):
            for kind in KINDS:
                if (name, kind, number) not in done:
                    record = {"table": name, "kind": kind, "seed": number} | run(name, kind, number)
                    known.append(record)
                    with asked.records.open("a") as file:
                        file.write(json.dumps(record) + "\n")
    show(known)
