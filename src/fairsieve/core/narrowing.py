"""The end of a walk: a few samples one by one, everything else being known by counts."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairsieve.core.compiled import compiled
from fairsieve.core.walk import fits

__all__ = ["finish", "takes_one"]


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
    every: NDArray[np.int32],
    listed: NDArray[np.int32],
    ratios: NDArray[np.float64],
    budget: int,
    closing: NDArray[np.bool_],
    end: int,
    infinity: int,
) -> tuple[NDArray[np.int64], NDArray[np.int64]] | None:
    """Where every cell closes, by counts around a range of keys and the samples in it.

    Parameters
    ----------
    below, every : samples of each cell below the range, and in all
    listed : the samples of the range as (key's low word, its high word, index, cell), in any order
    closing : cells that may take samples
    end : the first key beyond the range
    infinity : the largest key

    Returns
    -------
    limits, taken
        A cell takes the keys below its limit ``limits[cell]``, and equal ones whose index is below
        ``limits[cells + cell]``. None when a cell closes outside of the range.
    """
    keys = np.ascontiguousarray(listed[:, :2]).view(np.int64)[:, 0]
    offsets = keys - keys.min(initial=end)
    if offsets.max(initial=0) < 2**31:  # key and index in one number
        order = np.argsort(offsets << 32 | listed[:, 2])
    else:
        order = np.lexsort((listed[:, 2], keys))
    is_known, limits, taken = follow(
        below, every, listed, keys, order, ratios, budget, closing, end, infinity
    )
    return (limits, taken) if is_known else None


@compiled
def follow(
    below: NDArray[np.int32],
    every: NDArray[np.int32],
    listed: NDArray[np.int32],
    keys: NDArray[np.int64],
    order: NDArray[np.int64],
    ratios: NDArray[np.float64],
    budget: int,
    closing: NDArray[np.bool_],
    end: int,
    infinity: int,
) -> Any:
    """The walk of :func:`finish` over the listed samples, in their order."""
    cells = ratios.size
    is_open = closing.copy()
    taken = np.zeros(cells, np.int64)
    limits = np.zeros(2 * cells, np.int64)
    for cell in range(cells):
        taken[cell] = below[cell] if is_open[cell] else 0
        limits[cell] = infinity + 1 if is_open[cell] else -infinity
    if not fits(taken, ratios, budget):
        return False, limits, taken
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
                return False, limits, taken
    return True, limits, taken
