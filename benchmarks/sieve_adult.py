"""SieveClassifier around LightGBM on Adult, with labels flipped at random.

    python benchmarks/sieve_adult.py                          # 10, 15 and 20 % flips, five seeds
    python benchmarks/sieve_adult.py --noise group-targeted   # the paper's attack

Accuracy / disparity on the right labels of the test part, means and deviations over seeds, for:

- *plain*: LightGBM on the labels as they are;
- *confident learning*: out-of-fold probabilities by LightGBM, one threshold for each class, LightGBM
  again on the labels that no other class contradicts (Northcutt et al. 2021);
- *lowest losses*: LightGBM again on the lowest out-of-fold losses, as many as there are right labels;
- *sieve*: SieveClassifier, which estimates the clean ratio, and *sieve, ratio known*, which is told it;
- *flips left out*: LightGBM on the samples whose labels are right, which nobody knows.
"""

from __future__ import annotations

import argparse
from collections import defaultdict

import joblib
import numpy as np
from lightgbm import LGBMClassifier
from sklearn.base import clone

from fairsieve import Samples, SieveClassifier
from fairsieve.benchmark.problems import make_problem
from fairsieve.estimators._learner import TrainingTask, make_folds
from fairsieve.metrics import accuracy_from_table, confusion_table, disparity_from_table
from fairsieve.selection.cells import Cells

NOTIONS = ("equalized_odds", "demographic_parity")
BOOSTER = LGBMClassifier(n_jobs=1, verbose=-1)
Scores = tuple[float, float]


def confident_classes(probabilities: np.ndarray, cells: Cells) -> tuple[np.ndarray, np.ndarray]:
    """Confident learning with a threshold for each cell: whose label is kept, and the likeliest confident class."""
    own = probabilities[np.arange(len(cells)), cells.label_codes]
    sums = np.bincount(cells.codes, weights=own, minlength=cells.counts.size).reshape(cells.shape)
    empty = np.full(cells.shape, np.inf)  # a class that a group lacks is never confident in it
    thresholds = np.divide(sums, cells.counts, out=empty, where=cells.counts > 0)
    confident = probabilities >= thresholds.T[cells.group_codes]
    likeliest = np.where(confident, probabilities, -1.0).argmax(axis=1)
    return ~confident.any(axis=1) | (likeliest == cells.label_codes), likeliest


def scores(model: object, test: Samples, fairness: str) -> Scores:
    table, _, _ = confusion_table(test.labels, model.predict(test.features), test.groups)
    return float(accuracy_from_table(table)), float(disparity_from_table(table, fairness))


def cleaned(train: Samples, clean_ratio: float, seed: int) -> dict[str, np.ndarray]:
    """Return the weights by which the other methods select samples."""
    cells = Cells.of(train.labels, np.zeros(len(train)))  # no groups
    classes = np.asarray(cells.classes)
    folds = make_folds(5, train.features, cells, np.arange(len(train)), len(train), seed)
    task = TrainingTask(estimator=BOOSTER, X=train.features, labels=train.labels, classes=classes)
    found = task.out_of_fold(None, folds)
    lowest = np.argsort(-found[np.arange(len(cells)), cells.label_codes], kind="stable")
    return {
        "plain": np.ones(len(train)),
        "confident learning": confident_classes(found, cells)[0].astype(float),
        "lowest losses": np.isin(np.arange(len(train)), lowest[: int(clean_ratio * len(train))]).astype(
            float
        ),
    }


def one(noise: str, rate: float, seed: int) -> dict[tuple[str, str], Scores]:
    """Scores of every (fairness, method)."""
    problem = make_problem("adult", noise, rate, seed)
    train, test = problem.train, problem.test
    known = float(1 - problem.flipped.mean())
    found = {}
    kept = cleaned(train, known, seed) | {"flips left out": (~problem.flipped).astype(float)}
    for name, weights in kept.items():
        part = train.take(np.flatnonzero(weights))
        model = clone(BOOSTER).fit(part.features, part.labels)
        found |= {(fairness, name): scores(model, test, fairness) for fairness in NOTIONS}
    for fairness in NOTIONS:
        for name, ratio in (("sieve", "auto"), ("sieve, ratio known", known)):
            model = SieveClassifier(BOOSTER, fairness, ratio, random_state=seed)
            model.fit(train.features, train.labels, sensitive_features=train.groups)
            found[fairness, name] = scores(model, test, fairness)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--noise", default="uniform")
    parser.add_argument("--rates", default="0.1,0.15,0.2")
    parser.add_argument("--jobs", type=int, default=2)
    asked = parser.parse_args()
    rates = [float(rate) for rate in asked.rates.split(",")]
    cases = [(asked.noise, rate, seed) for rate in rates for seed in range(asked.seeds)]
    runs = joblib.Parallel(n_jobs=asked.jobs)(joblib.delayed(one)(*case) for case in cases)
    table = defaultdict(lambda: defaultdict(list))
    for (_, rate, _), run in zip(cases, runs, strict=True):
        for row, pair in run.items():
            table[row][rate].append(pair)
    methods = (
        "plain",
        "confident learning",
        "lowest losses",
        "sieve",
        "sieve, ratio known",
        "flips left out",
    )
    for fairness in NOTIONS:
        print(f"\n| {fairness.replace('_', ' ')} | " + " | ".join(f"{rate:.0%}" for rate in rates) + " |")
        print("| --- |" + " --- |" * len(rates))
        for name in methods:
            cells = []
            for rate in rates:
                mean, deviation = (take(table[fairness, name][rate], axis=0) for take in (np.mean, np.std))
                cells.append(f"{mean[0]:.4f} ± {deviation[0]:.4f} / {mean[1]:.3f} ± {deviation[1]:.3f}")
            print(f"| {name} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
