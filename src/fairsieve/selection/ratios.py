"""The ratios λ(y, z) and their step."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairsieve.selection.cells import Cells

__all__ = ["cell_sizes", "class_shares", "initial_ratios", "move_ratios", "rounded", "selection_bounds"]


def initial_ratios(cells: Cells) -> NDArray[np.float64]:
    """Return each cell's share of its class; equal shares for a class with no samples.

    >>> initial_ratios(Cells.of([0, 0, 0, 1], ["a", "b", "b", "a"])).round(2).tolist()
    [[0.33, 0.67], [1.0, 0.0]]
    """
    return class_shares(cells.counts)


def class_shares(counts: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return :func:`initial_ratios` for counts, classes × groups."""
    totals = counts.sum(axis=1, keepdims=True)
    even = np.full(counts.shape, 1 / max(1, counts.shape[1]))
    return np.asarray(np.divide(counts, totals, out=even, where=totals > 0))


def move_ratios(
    ratios: NDArray[np.float64],
    sums: NDArray[np.float64],
    counts: NDArray[Any],
    rows: NDArray[np.int64],
    by_group: bool,
    step_size: float,
    has_ungrouped: bool = False,
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
        Selected samples of each cell, or what :func:`cell_sizes` makes of them.
    rows, by_group
        See :mod:`fairsieve.selection.fairness`.
    has_ungrouped : bool
        Whether the last column holds the samples without a group, which are not compared.
    """
    groups = ratios.shape[1]
    named = groups - 1 if has_ungrouped else groups
    group_sizes = np.zeros(groups)
    for cell in range(counts.size):
        group_sizes[cell % groups] += counts[cell]
    widest, mover, rising, falling = 0.0, -1, -1, -1
    for row in range(rows.shape[0]):
        target, label, sign = rows[row]
        highest, lowest, top, bottom = -np.inf, np.inf, -1, -1
        for group in range(named):
            cell = label * groups + group
            if counts[cell] == 0:
                continue
            size = float(group_sizes[group] if by_group else counts[cell])
            value = float(sign * sums[target, cell]) / size  # a plain float: ∞ − ∞ needs no warning
            if rounded(value) > rounded(highest):
                highest, top = value, group
            if rounded(value) < rounded(lowest):
                lowest, bottom = value, group
        gap = rounded(highest - lowest)
        if gap > widest:
            widest, mover, rising, falling = gap, label, top, bottom
    if mover >= 0:
        amount = min(step_size, ratios[mover, falling], 1 - ratios[mover, rising])
        ratios[mover, rising] = min(1.0, ratios[mover, rising] + amount)
        ratios[mover, falling] = max(0.0, ratios[mover, falling] - amount)


def rounded(value: float) -> float:
    """Round a mean or a gap to a multiple of 2⁻³², so that sums added up in another order compare alike."""
    return float(np.rint(value * 4294967296.0)) / 4294967296.0


def cell_sizes(counts: NDArray[np.int64], by_group: bool, offset: float) -> NDArray[np.float64]:
    """Return what the means of cells are taken over: their counts, and an offset where cells are compared.

    The paper's text has no offset; its authors' code has 1 for equalized odds. A cell without samples stays without.
    """
    sizes = counts.astype(np.float64)
    if not by_group:
        for cell in range(sizes.size):
            if sizes[cell] > 0:
                sizes[cell] += offset
    return sizes


def selection_bounds(ratios: NDArray[np.float64], has_ungrouped: bool) -> NDArray[np.float64]:
    """Return the ratios that bound a selection; those of samples without a group bound nothing."""
    if not has_ungrouped:
        return ratios
    bounds = ratios.copy()
    bounds[:, -1] = 1.0  # Σk + k_c − K_y ≤ Σk
    return bounds
