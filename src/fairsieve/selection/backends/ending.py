"""The end of a walk: a few samples one by one, everything else being known by counts."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fairsieve.selection.backends.jit import compiled
from fairsieve.selection.search import fits

__all__ = ["Ending", "finish", "takes_one"]


class Ending(NamedTuple):
    """Where every cell closes.

    A cell takes the keys below its limit ``limits[cell]``, and equal ones whose index is below
    ``limits[cells + cell]``.
    """

    limits: NDArray[np.int64]
    taken: NDArray[np.int64]  # of each cell
    extra: NDArray[np.int64]  # which of the listed samples are, ascending


@compiled
def takes_one(ratios: NDArray[np.float64], budget: int) -> NDArray[np.bool_]:
    """Which cells can take a first sample."""
    taken = np.zeros(ratios.size, np.int64)
    can = np.zeros(ratios.size, np.bool_)
    for cell in range(ratios.size):
        taken[cell] = 1
        can[cell] = fits(taken, ratios, budget)
        taken[cell] = 0
    return can


def finish(
    below: NDArray[np.int32],
    listed: NDArray[np.int32],
    ratios: NDArray[np.float64],
    budget: int,
    closing: NDArray[np.bool_],
    end: int,
    infinity: int,
    every: NDArray[np.int64] | None,
) -> Ending | None:
    """Where every cell closes, by counts around a range of keys and the samples in it.

    Parameters
    ----------
    below : samples of each cell below the range
    listed : the samples of the range as (key's low word, its high word, index, cell), in any order
    closing : cells that may take samples
    end : the first key beyond the range
    infinity : the largest key
    every : samples of each cell in all; None when they are not known, and then no cell is taken whole

    Returns
    -------
    Ending or None
        None when a cell closes outside of the range.
    """
    if every is None:
        every = np.full(ratios.size, np.iinfo(np.int64).max)
    is_known, *ending = _follow(below, every, listed, ratios, budget, closing, end, infinity)
    return Ending(*ending) if is_known else None


@compiled
def _in_order(keys: NDArray[np.int64], index: NDArray[np.int32]) -> NDArray[np.int64]:
    """The order of samples by their keys, and of equal keys by their index."""
    if keys.size == 0:
        return np.zeros(0, np.int64)
    least = keys.min()
    if np.uint64(keys.max()) - np.uint64(least) < np.uint64(2**31):  # key and index in one number
        return np.argsort((keys - least) << 32 | index)
    first = np.argsort(index)
    return first[np.argsort(keys[first], kind="mergesort")]


@compiled
def _follow(
    below: NDArray[np.int32],
    every: NDArray[np.int64],
    listed: NDArray[np.int32],
    ratios: NDArray[np.float64],
    budget: int,
    closing: NDArray[np.bool_],
    end: int,
    infinity: int,
) -> Any:
    """The walk of :func:`finish` over the listed samples."""
    cells = ratios.size
    keys = np.empty(len(listed), np.int64)
    for place in range(keys.size):
        keys[place] = np.int64(listed[place, 1]) << 32 | np.int64(np.uint32(listed[place, 0]))
    order = _in_order(keys, listed[:, 2])
    is_open = closing.copy()
    taken = np.zeros(cells, np.int64)
    limits = np.zeros(2 * cells, np.int64)
    for cell in range(cells):
        taken[cell] = below[cell] if is_open[cell] else 0
        limits[cell] = infinity + 1 if is_open[cell] else -infinity
    if not fits(taken, ratios, budget):
        return False, limits, taken, taken
    left = is_open.sum()
    ahead, beyond = 0, order.size + 1  # so many fit, so many do not
    while beyond - ahead > 1:
        middle = (ahead + beyond) // 2
        trial = taken.copy()
        for place in order[ahead:middle]:
            trial[listed[place, 3]] += is_open[listed[place, 3]]
        if fits(trial, ratios, budget):
            taken, ahead = trial, middle
        else:
            beyond = middle
    for place in order[ahead:]:
        cell = listed[place, 3]
        if is_open[cell]:
            taken[cell] += 1
            if not fits(taken, ratios, budget):
                taken[cell] -= 1
                is_open[cell] = False
                limits[cell] = keys[place]
                limits[cells + cell] = listed[place, 2]
                left -= 1
                if left == 0:
                    break
    for cell in range(cells):
        if is_open[cell]:
            taken[cell] += 1
            if not fits(taken, ratios, budget):
                is_open[cell] = False
                limits[cell] = end
            taken[cell] -= 1
            if is_open[cell] and taken[cell] < every[cell]:
                return False, limits, taken, taken
    extra = np.empty(len(listed), np.int64)
    size = 0
    for place in range(len(listed)):
        cell, index = listed[place, 3], listed[place, 2]
        limit = limits[cell]
        if keys[place] < limit or (keys[place] == limit and index < limits[cells + cell]):
            extra[size] = index
            size += 1
    return True, limits, taken, np.sort(extra[:size])
