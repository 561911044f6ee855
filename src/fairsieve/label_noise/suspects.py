"""List the samples whose labels to check, and what the model thinks of them."""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fairsieve.samples import Samples
from fairsieve.selection.cells import Cells
from fairsieve.training.linear_model import log_probabilities

DOUBTED = 0.25  # share of the rows to check next that goes to labels in doubt


def suspects_of(
    decision: NDArray[np.float64],
    data: Samples,
    believed: NDArray[np.int64],
    rows: NDArray[np.int64],
    *,
    wrong: NDArray[np.float64] | None = None,
    share: float = 1.0,
) -> pd.DataFrame:
    """List the samples that are not believed, the likeliest wrong label first.

    Without ``wrong`` only those to which the model would give another label: a selection leaves out others too, so
    that no group falls behind.

    Parameters
    ----------
    decision : array
        Logits of all samples of ``data``, as ``decision_function`` gives them.
    believed : integer array
        The samples whose labels are not in doubt.
    rows : integer array
        What to call the samples.
    wrong : array, optional
        How likely each label is wrong, which ranks them; the losses rank them when None.
    share : float
        The largest share of all samples to list.

    Examples
    --------
    >>> data = Samples(np.zeros((3, 1)), ["no", "no", "yes"], ["a", "b", "b"])
    >>> found = suspects_of(np.array([3.0, 1.0, 2.0]), data, np.array([2]), np.arange(3))
    >>> found[["row", "label", "suggested"]].to_numpy().tolist()
    [[0, 'no', 'yes'], [1, 'no', 'yes']]
    """
    in_doubt = np.ones(len(data), bool)
    in_doubt[believed] = False
    left = np.flatnonzero(in_doubt)
    logs, labels = log_probabilities(decision[left]), data.cells.label_codes[left]
    losses = -logs[np.arange(len(left)), labels]
    order = np.lexsort((-losses, np.zeros(len(left)) if wrong is None else -wrong[left]))
    if wrong is None:
        order = order[(logs.argmax(axis=1) != labels)[order]][: round(share * len(data))]
    left, losses, chances = left[order], losses[order], np.exp(logs[order])
    groups = np.empty(len(data.cells.groups), dtype=object)
    groups[:] = data.cells.groups  # element by element: crossed groups are tuples
    return pd.DataFrame(
        {
            "row": rows[left],
            "label": data.labels[left],
            "suggested": np.asarray(data.cells.classes, data.labels.dtype)[chances.argmax(axis=1)],
            "loss": losses,
            "probability": chances.max(axis=1),
            "group": groups[data.cells.group_codes[left]],
        }
    )


def choose_rows(
    n: int,
    open_: NDArray[np.bool_],
    wrong: NDArray[np.float64],
    cells: Cells,
    rng: np.random.Generator,
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Choose ``n`` of the rows that are open, each at a known chance; return the inverse of their chances, with mean 1.

    (Choosing half of the rows by how much their check would tell about the others trained no better models.)
    """
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


def _inclusion(share: NDArray[np.float64], n: int) -> NDArray[np.float64]:
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
