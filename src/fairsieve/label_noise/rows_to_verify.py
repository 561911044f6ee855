"""Choose rows to check next, each at a known chance.

Three quarters are at random, spread evenly over the cells and, within them, over how likely the labels are wrong; a
quarter goes to the labels in doubt. (Choosing half of the rows by how much their check would tell about the others
trained no better models.)
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fairsieve.selection.cells import Cells

__all__ = ["choose_rows"]

Floats = NDArray[np.float64]

DOUBTED = 0.25  # share of the choice


def choose_rows(
    n: int,
    open_: NDArray[np.bool_],
    wrong: Floats,
    cells: Cells,
    rng: np.random.Generator,
) -> tuple[NDArray[np.int64], Floats]:
    """Choose ``n`` of the rows that are open; return them with the inverse of their chances, with mean 1."""
    share = open_ / open_.sum()
    doubt = open_ * wrong * (1 - wrong)
    if doubt.sum() > 0:
        share = (1 - DOUBTED) * share + DOUBTED * doubt / doubt.sum()
    chance = _inclusion(share, n)
    order = np.lexsort((rng.random(len(open_)), wrong, cells.codes))
    turns = np.cumsum(chance[order])
    ticks = (np.arange(n) + rng.random()) * turns[-1] / n
    rows = order[np.minimum(np.searchsorted(turns, ticks), len(order) - 1)]
    weights = 1.0 / chance[rows]
    return rows, weights / weights.mean()


def _inclusion(share: Floats, n: int) -> Floats:
    """Return chances to be chosen that follow the shares, none above 1, with the sum ``n``.

    >>> _inclusion(np.array([0.5, 0.25, 0.25, 0.0]), 2).tolist()
    [1.0, 0.5, 0.5, 0.0]
    >>> _inclusion(np.array([0.8, 0.1, 0.1, 0.0]), 2).tolist()
    [1.0, 0.5, 0.5, 0.0]
    """
    chance, sure = n * share, np.zeros(len(share), bool)
    while (chance > 1 + 1e-12).any():
        sure |= chance >= 1
        rest = np.where(sure, 0.0, share)
        chance = np.where(sure, 1.0, rest * (n - sure.sum()) / max(rest.sum(), 1e-300))
    return np.asarray(chance)
