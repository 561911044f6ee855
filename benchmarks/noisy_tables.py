"""Tables with and without wrong labels, which several benchmarks share."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from fairsieve import Samples
from fairsieve.data import flip_uniform, make_synthetic
from fairsieve.data.catalogue import dataset
from fairsieve.data.splits import split
from fairsieve.data.synthetic import synthetic_splits
from fairsieve.paper.attacks import add_noise
from fairsieve.paper.problems import make_problem

sys.path.insert(0, str(Path(__file__).parents[1]))

__all__ = ["TABLES", "attacked", "problem", "with_large_test"]


def problem(data: str, noise: str, rate: float, seed: int) -> tuple[Samples, np.ndarray, Samples]:
    """Training samples with flips, who was flipped, and test samples; ``noise`` may be a group's name."""
    made = make_problem(data, "none", 0.0, seed)
    train, flipped = attacked(made.train, noise, rate, seed)
    return train, flipped, made.test


def attacked(train: Samples, noise: str, rate: float, seed: int) -> tuple[Samples, np.ndarray]:
    """Samples with flips, all over or in one group, and who was flipped."""
    if noise.startswith("group "):
        rates = np.zeros(train.cells.shape)
        rates[:, int(noise.removeprefix("group "))] = rate
        noisy = flip_uniform(train, rates, seed=seed)
    else:
        noisy = add_noise(train, noise, rate, seed=seed)
    return train.with_labels(noisy.labels), noisy.flipped


def with_large_test(data: str, seed: int) -> tuple[Samples, Samples]:
    """Training and test samples; enough of the latter to tell .02 of accuracy from chance."""
    if data == "synthetic":
        return synthetic_splits(seed).train, make_synthetic(20_000, seed=seed + 10_000)
    parts = split(dataset(data).load(), test=0.5, validation=0.0, seed=seed)
    return parts.train, parts.test


def exclusive_or(seed: int) -> Samples:
    """Two features whose signs differ."""
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(6000, 4))
    return Samples(features, (features[:, 0] * features[:, 1] > 0).astype(int), rng.integers(0, 2, 6000))


def loans(seed: int) -> Samples:
    """Age matters, is the sensitive column, and is not among the features."""
    rng = np.random.default_rng(seed)
    age, income, debt = rng.uniform(18, 90, 6000), rng.normal(size=6000), rng.normal(size=6000)
    logit = 1.5 * income - debt - 2.5 * (age > 65) + 0.8 * (age < 30) + 0.8
    repaid = (rng.random(6000) < 1 / (1 + np.exp(-logit))).astype(int)
    return Samples(np.column_stack([income, debt]), repaid, np.digitize(age, [30, 65]))


def three_classes(seed: int) -> Samples:
    """Three overlapping clouds."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 3, 3000)
    centres = np.array([[0.0, 2.5], [2.0, -1.0], [-2.0, -1.0]])
    return Samples(rng.normal(size=(3000, 2)) + centres[labels], labels, rng.integers(0, 2, 3000))


def cancer(seed: int) -> Samples:
    """Breast cancer, standardised; the groups are a random half."""
    from sklearn.datasets import load_breast_cancer

    found = load_breast_cancer()
    features = (found.data - found.data.mean(axis=0)) / found.data.std(axis=0)
    return Samples(features, found.target, np.random.default_rng(seed).integers(0, 2, len(features)))


TABLES = {
    "synthetic": lambda seed: make_synthetic(2000, seed=seed),
    "xor": exclusive_or,
    "group difference": loans,
    "three classes": three_classes,
    "breast cancer": cancer,
    **{
        name: lambda seed, name=name: make_problem(name, "none", 0.0, seed).train
        for name in ("german", "compas", "adult")
    },
}
