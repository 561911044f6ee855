"""Measure what checked labels change where no method without clean labels can follow: many flips by margin.

On draws of the paper's synthetic data, with the authors' attack at several rates: LR, ours told the right noise rate,
``FairRobustClassifier`` without checked labels, and with some labels checked at random. And on NHANES, where people
gave the labels: whether checks leave the disparity on measured truth no higher. From the repository's root::

    python benchmarks/checked_labels.py --draws 10
    python benchmarks/checked_labels.py --draws 10 --nhanes race
    python benchmarks/checked_labels.py --draws 10 --nhanes sex --condition diabetes
    python benchmarks/checked_labels.py --draws 10 --nhanes race --errors one-group
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np

from fairsieve import FairRobustClassifier, Samples
from fairsieve.benchmark.problems import make_problem
from fairsieve.data import flip_uniform, load_nhanes
from fairsieve.metrics import accuracy_from_table, confusion_table, disparity_from_table
from fairsieve_reproduction.methods.loop import fit_paper

RATES, CHECKED = (0.1, 0.15, 0.2), (0, 100, 200, 400)


def measure(predicted: np.ndarray, test: object) -> tuple[float, float]:
    """Return accuracy and EO disparity."""
    table, *_ = confusion_table(test.labels, predicted, test.groups)  # type: ignore[attr-defined]
    return float(accuracy_from_table(table)), float(disparity_from_table(table, "equalized_odds"))


def plant_errors(people: Samples, kind: str, seed: int) -> Samples:
    """Take the labels as people gave them, or right ones with errors in the second largest group or in one class."""
    if kind == "given":
        return people
    truth, cells = people.with_labels(people.truth), people.cells
    rates = np.zeros(cells.shape)
    if kind == "one-group":
        rates[:, np.argsort(-cells.counts.sum(axis=0))[1]] = 0.25
    else:
        rates[1] = 0.2
    return truth.with_labels(flip_uniform(truth, rates, seed=seed).labels)


def on_nhanes(asked: argparse.Namespace) -> None:
    """Train on 3,000 people, of whom some were checked; measure on the truth of the others."""
    everybody = load_nhanes(asked.condition, sensitive=asked.nhanes)
    truth = everybody.with_labels(everybody.truth)
    found: dict[int, list[tuple[float, float]]] = {}
    for seed in range(asked.first, asked.first + asked.draws):
        people = plant_errors(everybody, asked.errors, seed)
        order = np.random.default_rng(seed).permutation(len(people))
        train, test = people.take(order[:3000]), truth.take(order[3000:])
        for checked in (0, 50, *CHECKED[1:]):
            verified = np.full(3000, None, dtype=object)
            verified[:checked] = everybody.truth[order[:checked]]
            model = FairRobustClassifier().fit(
                train.features,
                train.labels,
                sensitive_features=train.groups,
                verified_labels=verified if checked else None,
            )
            found.setdefault(checked, []).append(measure(model.predict(test.features), test))
        print(
            f"draw {seed}:",
            *(f"{values[-1][0]:.3f}/{values[-1][1]:.3f}" for values in found.values()),
            flush=True,
        )
    without = np.array(found[0])
    for checked, values in found.items():
        means, less = np.mean(values, axis=0), np.array(values) - without  # the same draws
        errors = less.std(axis=0, ddof=1) / np.sqrt(asked.draws)
        print(
            f"{checked:4} checked  accuracy {means[0]:.4f}, a change of {less[:, 0].mean():+.4f} ± {errors[0]:.4f}  "
            f"EO {means[1]:.4f}, a change of {less[:, 1].mean():+.4f} ± {errors[1]:.4f}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument("--first", type=int, default=0, help="the seed of the first draw of NHANES")
    parser.add_argument("--nhanes", choices=("race", "sex", "age"))
    parser.add_argument("--condition", choices=("obesity", "diabetes"), default="obesity")
    parser.add_argument("--errors", choices=("given", "one-group", "by-class"), default="given")
    asked = parser.parse_args()
    draws = asked.draws
    warnings.simplefilter("ignore")
    if asked.nhanes:
        on_nhanes(asked)
        return
    for rate in RATES:
        found: dict[str, list[tuple[float, float]]] = {}
        for seed in range(draws):
            problem = make_problem("synthetic", "label-without-group", rate, seed)
            train, test = problem.train, problem.test
            for method in ("lr", "sample-selection"):
                fitted = fit_paper(train, method, seed=seed, clean_ratio=1 - rate)
                found.setdefault(method, []).append(measure(fitted.predict(test.features), test))
            true = np.where(problem.flipped, 1 - train.labels, train.labels)
            order = np.random.default_rng([seed, 9]).permutation(len(train))
            for checked in CHECKED:
                verified = np.full(len(train), np.nan)
                verified[order[:checked]] = true[order[:checked]]
                model = FairRobustClassifier(clean_ratio="auto", random_state=seed).fit(
                    train.features,
                    train.labels,
                    sensitive_features=train.groups,
                    verified_labels=verified if checked else None,
                )
                predicted = model.predict(test.features)
                found.setdefault(f"auto, {checked} checked", []).append(measure(predicted, test))
        for name, values in found.items():
            means, errors = np.mean(values, axis=0), np.std(values, axis=0, ddof=1) / np.sqrt(draws)
            print(
                f"{rate:.3g}  {name:20}  accuracy {means[0]:.3f} ± {errors[0]:.3f}  "
                f"EO {means[1]:.3f} ± {errors[1]:.3f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
