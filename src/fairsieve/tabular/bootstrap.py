"""Measure accuracy and disparity, with intervals from drawing the test part again many times (bootstrap)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairsieve.intervals import paired_change, wilson
from fairsieve.metrics import accuracy_from_table, count_table, disparity_from_table, grouped_part
from fairsieve.selection.cells import Cells
from fairsieve.tabular.evaluation import FEW

__all__ = ["Score", "score_models"]

DRAWS = 1000
LEVELS = (2.5, 97.5)


@dataclass(frozen=True)
class Score:
    """A number of a model, and its 95 % interval."""

    value: float
    interval: tuple[float, float]


def score_models(
    cells: Cells, predictions: Sequence[NDArray[np.int64]], fairness: str, positive: int, seed: int
) -> tuple[list[dict[str, Score]], dict[str, Score]]:
    """Measure accuracy and disparity of several models on the same samples, and the last less the first.

    The samples are drawn again, with replacement, 1,000 times, the same for every model, so that what
    the difference between two owes to the choice of people cancels (bootstrap, percentiles). Cells of
    fewer than 10 people do not count for the disparity. Where few or no predictions differ, drawing again
    says too little of chance: intervals of accuracy are at least as wide as Wilson's, and those of its change as
    Agresti and Min's.

    Parameters
    ----------
    predictions : sequence of integer arrays
        The class codes that each model predicts.
    positive : int
        Code of the positive class; −1 where there is none.
    """
    classes, groups = cells.shape
    kinds, counts = _joint_counts(cells.codes, predictions, classes)
    draws = np.random.default_rng(seed).multinomial(len(cells), counts / counts.sum(), size=DRAWS)
    models, drawn = [], []
    for model, codes in enumerate(predictions):
        table = count_table(cells.label_codes, cells.group_codes, codes, classes, groups)
        tables = np.zeros((DRAWS, classes * groups * classes))
        np.add.at(tables.T, kinds[0] * classes + kinds[model + 1], draws.T)
        values = _measured(table[None], cells, fairness, positive)
        again = _measured(tables.reshape(DRAWS, classes, groups, classes), cells, fairness, positive)
        models.append({name: _score(float(values[name][0]), again[name]) for name in values})
        drawn.append(again)
    change = {
        name: _score(models[-1][name].value - models[0][name].value, drawn[-1][name] - drawn[0][name])
        for name in models[0]
    }
    rights = [codes == cells.label_codes for codes in predictions]
    for scores, right in zip(models, rights, strict=True):
        scores["accuracy"] = _widened(scores["accuracy"], wilson(int(right.sum()), len(cells)))
    gained, lost = int((rights[-1] & ~rights[0]).sum()), int((rights[0] & ~rights[-1]).sum())
    change["accuracy"] = _widened(change["accuracy"], paired_change(gained, lost, len(cells)))
    return models, change


def _widened(score: Score, bounds: tuple[float, float]) -> Score:
    """Widen an interval to hold another."""
    (low, high), (least, most) = score.interval, bounds
    return Score(score.value, (min(low, least), max(high, most)))


def _joint_counts(
    cells: NDArray[Any], predictions: Sequence[NDArray[np.int64]], classes: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Count the different (cell, prediction of each model); the samples matter by these alone.

    Examples
    --------
    >>> kinds, counts = _joint_counts(np.array([0, 1, 0]), [np.array([1, 0, 1])], 2)
    >>> kinds.tolist(), counts.tolist()
    ([[0, 1], [1, 0]], [2, 1])
    """
    kinds = np.stack([cells.astype(np.int64), *predictions])
    joint = kinds[0]
    for codes in predictions:  # numbered anew each time, since many models of many classes would overflow
        joint = np.unique(joint * classes + codes, return_inverse=True)[1]
    _, first, counts = np.unique(joint, return_index=True, return_counts=True)
    return kinds[:, first], counts


def _measured(
    tables: NDArray[np.float64], cells: Cells, fairness: str, positive: int
) -> dict[str, NDArray[np.float64]]:
    """Compute accuracy, and the disparity of a notion, of confusion tables."""
    grouped = grouped_part(tables, cells.groups) * _enough(cells, fairness)
    return {
        "accuracy": accuracy_from_table(tables),
        "disparity": disparity_from_table(grouped, fairness, positive=positive),
    }


def _enough(cells: Cells, fairness: str) -> NDArray[np.bool_]:
    """Mark the cells with enough people for a rate; the others would decide the disparity by chance."""
    people = cells.counts.sum(axis=0, keepdims=True) if fairness == "demographic_parity" else cells.counts
    return np.broadcast_to((people >= FEW)[:, :, None], (*cells.shape, 1))


def _score(value: float, again: NDArray[np.float64]) -> Score:
    """Give a value the interval of its draws."""
    low, high = np.percentile(again, LEVELS)
    return Score(value, (float(low), float(high)))
