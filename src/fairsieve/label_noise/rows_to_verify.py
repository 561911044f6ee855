"""Choose rows to check next, each at a known chance.

Half of the choice is at random, spread evenly over the cells and, within them, over how likely the labels are wrong;
half goes to the rows whose check would tell most about the chances of all. Before anything was learnt from checks that
is not known: a quarter then goes to the labels that are least certain, as far as there is an estimate, and the rest is
at random, since where such an estimate is uncertain and where it is off are not the same rows.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fairsieve.selection.cells import Cells

__all__ = ["choose_rows"]

Floats = NDArray[np.float64]

INFORMATIVE, DOUBTED = 0.5, 0.25  # shares of the choice


def choose_rows(
    n: int,
    open_: NDArray[np.bool_],
    wrong: Floats,
    cells: Cells,
    rng: np.random.Generator,
    information: Floats | None = None,
) -> tuple[NDArray[np.int64], Floats]:
    """Choose ``n`` of the rows that are open; return them with the inverse of their chances, with mean 1.

    Parameters
    ----------
    wrong : array
        How likely each label is wrong.
    information : array, optional
        How much a check of each row would tell about the others; None before anything was learnt from checks.
    """
    share = open_ / open_.sum()
    told = np.where(open_, wrong * (1 - wrong) if information is None else information, 0.0)
    if told.sum() > 0:
        part = DOUBTED if information is None else INFORMATIVE
        share = (1 - part) * share + part * told / told.sum()
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
