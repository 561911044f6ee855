"""The ratios λ(y, z) and their step."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairsieve.selection.backends.jit import compiled
from fairsieve.selection.cells import Cells
from fairsieve.selection.exact_sums import BEFORE_CARRY, SLOTS, add_many, add_to, carry, rounded

__all__ = ["class_shares", "exact_sums", "initial_ratios", "move_ratios", "rounded_sums", "sum_by_cell"]

TABLE_PAYS = 2**14  # samples a cell from which a table of exponents is sooner filled than its digits


def initial_ratios(cells: Cells) -> NDArray[np.float64]:
    """Each cell's share of its class; equal shares for a class with no samples.

    >>> initial_ratios(Cells.of([0, 0, 0, 1], ["a", "b", "b", "a"])).round(2).tolist()
    [[0.33, 0.67], [1.0, 0.0]]
    """
    return class_shares(cells.counts)


def class_shares(counts: NDArray[np.int64]) -> NDArray[np.float64]:
    """:func:`initial_ratios` of counts, classes × groups."""
    totals = counts.sum(axis=1, keepdims=True)
    even = np.full(counts.shape, 1 / max(1, counts.shape[1]))
    return np.asarray(np.divide(counts, totals, out=even, where=totals > 0))


@compiled
def exact_sums(
    signals: NDArray[Any], codes: NDArray[Any], chosen: NDArray[np.int64], cells: int
) -> NDArray[np.int64]:
    """The digits of :func:`sum_by_cell`, (targets, cells, slots); those of parts of the samples add up."""
    totals = np.zeros((signals.shape[0], cells, SLOTS), np.int64)
    for target in range(signals.shape[0]):
        for first in range(0, chosen.size, BEFORE_CARRY):
            part = chosen[first : first + BEFORE_CARRY]
            if part.size > TABLE_PAYS * cells:
                add_many(totals[target], signals[target], codes, part)
            else:
                for i in part:
                    add_to(totals[target, codes[i]], signals[target, i])
            for cell in range(cells):
                carry(totals[target, cell])
    return totals


@compiled
def sum_by_cell(
    signals: NDArray[Any], codes: NDArray[Any], chosen: NDArray[np.int64], cells: int
) -> NDArray[np.float64]:
    """Sums of each signal over the chosen samples of each cell; exact, so whatever their order."""
    return rounded_sums(exact_sums(signals, codes, chosen, cells))


@compiled
def rounded_sums(totals: NDArray[np.int64]) -> NDArray[np.float64]:
    """The doubles nearest to sums in digits, (targets, cells, slots)."""
    sums = np.zeros(totals.shape[:2])
    for target in range(totals.shape[0]):
        for cell in range(totals.shape[1]):
            sums[target, cell] = rounded(totals[target, cell])
    return sums


@compiled
def move_ratios(
    ratios: NDArray[np.float64],
    sums: NDArray[np.float64],
    counts: NDArray[np.int64],
    rows: NDArray[np.int64],
    by_group: bool,
    step_size: float,
) -> None:
    """Move the ratios one step (Eq. 6), in place.

    Of all comparisons the one with the widest gap counts (the maximum in Eq. 5 and 8): ``step_size``
    of its class goes from the group that should fall to the group that should rise. Cells without
    samples are not compared; ratios stay in [0, 1] and every class keeps its sum.

    Parameters
    ----------
    ratios : array of shape (classes, groups), changed in place
    sums : array of shape (targets, cells)
        Losses against each target, summed over each cell's selected samples.
    counts : array of shape (cells,)
        Selected samples of each cell.
    rows, by_group
        See :class:`~fairsieve.selection.fairness.Comparisons`.
    """
    groups = ratios.shape[1]
    group_sizes = np.zeros(groups)
    for cell in range(counts.size):
        group_sizes[cell % groups] += counts[cell]
    widest, mover, rising, falling = 0.0, -1, -1, -1
    for row in range(rows.shape[0]):
        target, label, sign = rows[row]
        highest, lowest, top, bottom = -np.inf, np.inf, -1, -1
        for group in range(groups):
            cell = label * groups + group
            if counts[cell] == 0:
                continue
            value = sign * sums[target, cell] / (group_sizes[group] if by_group else counts[cell])
            if value > highest:
                highest, top = value, group
            if value < lowest:
                lowest, bottom = value, group
        if highest - lowest > widest:
            widest, mover, rising, falling = highest - lowest, label, top, bottom
    if mover >= 0:
        amount = min(step_size, ratios[mover, falling], 1 - ratios[mover, rising])
        ratios[mover, rising] = min(1.0, ratios[mover, rising] + amount)
        ratios[mover, falling] = max(0.0, ratios[mover, falling] - amount)
