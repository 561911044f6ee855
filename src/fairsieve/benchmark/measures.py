"""Measure predictions, and compare methods on the same draws, splits or rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import t as student

from fairsieve.benchmark.problems import NoisyProblem
from fairsieve.benchmark.records import Record
from fairsieve.metrics import accuracy_from_table, disparity_from_table, has_enough
from fairsieve.notions import NOTIONS
from fairsieve.samples import Samples

DRAWS = 1000
LEVELS = (2.5, 97.5)


def measure(
    predicted: NDArray[Any], samples: Samples, weights: NDArray[np.float64] | None = None, fewest: int = 1
) -> dict[str, Any]:
    """Measure the accuracy and every disparity of predicted labels; cells of fewer samples do not count for those.

    Weights are of shape (n,), or (draws, n) for as many values of each measure.

    Examples
    --------
    >>> test = Samples(np.zeros((2, 1)), [0, 1], ["a", "a"])
    >>> measure(np.array([0, 0]), test, np.array([[1.0, 3.0], [0.0, 2.0]]))["accuracy"].tolist()
    [0.25, 0.0]
    """
    cells, (classes, groups) = samples.cells, samples.cells.shape
    kinds = np.zeros((len(samples), classes * groups * classes))
    kinds[np.arange(len(samples)), cells.codes.astype(np.int64) * classes
          + samples.with_labels(predicted).cells.label_codes] = 1.0  # fmt: skip
    people = kinds.sum(axis=0).reshape(classes, groups, classes)
    weights = np.ones(len(samples)) if weights is None else weights
    tables = (weights @ kinds).reshape(*weights.shape[:-1], classes, groups, classes)
    measures = {"accuracy": accuracy_from_table(tables)}
    for name in NOTIONS:
        measures[name] = disparity_from_table(tables, name, counted=has_enough(people, name, fewest))
    return measures


def standard_error(values: NDArray[np.float64], ratio: float = 0.0) -> float:
    """Compute the standard error of a mean over draws, or over splits, which share rows (Nadeau and Bengio 2003).

    ``ratio`` is the size of a split's test part to that of its training part.
    """
    return float(values.std(ddof=1) * np.sqrt(1 / len(values) + ratio))


Difference = tuple[float, float, float]  # between the means of two methods, and its 95 % interval


def compare_pairs(records: Sequence[Record], method: str, baseline: str, name: str) -> Difference | None:
    """Compare two methods by a measure, split by split; None where they have no split in common.

    Training parts of repeated splits overlap, and the error allows for that; draws of the synthetic data do not. One
    split has no interval.

    Examples
    --------
    >>> def record(name, seed, accuracy):
    ...     settings = {"method": name, "seed": seed, "data": "adult"}
    ...     return {"settings": settings, "metrics": {"accuracy": accuracy}, "rows": {"train": 80, "test": 20}}
    >>> records = [record("a", 0, 0.5), record("b", 0, 0.6), record("a", 1, 0.5), record("b", 1, 0.8)]
    >>> [round(value, 2) for value in compare_pairs(records, "b", "a", "accuracy")]
    [0.2, -1.36, 1.76]
    """
    mine, theirs = (_by_seed(records, each) for each in (method, baseline))
    shared = sorted(set(mine) & set(theirs))
    if not shared:
        return None
    apart = np.array([mine[seed]["metrics"][name] - theirs[seed]["metrics"][name] for seed in shared])
    half = np.nan
    if len(apart) > 1:
        rows, data = mine[shared[0]]["rows"], mine[shared[0]]["settings"]["data"]
        error = standard_error(apart, 0.0 if data == "synthetic" else rows["test"] / rows["train"])
        half = float(student.ppf(0.975, len(apart) - 1)) * error
    return float(apart.mean()), float(apart.mean()) - half, float(apart.mean()) + half


def _by_seed(records: Sequence[Record], method: str) -> dict[int, Record]:
    """Return the results of a method by their seeds."""
    return {
        record["settings"]["seed"]: record
        for record in records
        if record["settings"]["method"] == method and "metrics" in record
    }


def compare_verified(
    records: Sequence[Record], method: str, baseline: str, name: str, problem: NoisyProblem
) -> Difference | None:
    """Compare two methods by a measure on the same verified rows, those of a problem's test.

    Each method counts by its mean over the training parts. The interval is the bootstrap's over the rows.
    """
    mine, theirs = (
        [np.array(one["predicted"]) for one in _by_seed(records, each).values()]
        for each in (method, baseline)
    )
    if not (mine and theirs):
        return None
    test, weights = problem.test, problem.weights
    assert weights is not None

    def apart(own: NDArray[np.float64]) -> NDArray[np.float64]:
        one, other = (
            np.mean([measure(codes, test, own, problem.fewest)[name] for codes in each], axis=0)
            for each in (mine, theirs)
        )
        return np.asarray(one - other)

    rng = np.random.default_rng(0)
    draws = rng.multinomial(len(test), np.full(len(test), 1 / len(test)), size=DRAWS)
    low, high = np.percentile(apart(weights * draws), LEVELS)
    return float(apart(weights)), float(low), float(high)
