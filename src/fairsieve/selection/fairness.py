"""Equalized odds, demographic parity, equal opportunity: what is compared between groups.

A notion of fairness is a list of *comparisons*. Each looks at the cells of one class and at the
losses of their samples against one target label, and says which group's ratio should rise:

- *Equalized odds* (Eq. 5): for every class, the mean loss of its cells. The group with the highest
  should be seen more.
- *Equal opportunity*: the same for the positive class alone.
- *Demographic parity* (Eq. 8): losses against the positive label, whatever the sample's own, summed
  over a cell and divided by its group's size. A high value means that the group is predicted
  positive too rarely, so its positive cell should be seen more and its negative cell less.
  With more than two classes the rate of each predicted class is compared in the same way.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from fairsieve.selection.cells import Cells
from fairsieve.validation import check_choice

FairnessName = Literal["equalized_odds", "demographic_parity", "equal_opportunity"]
SignalName = Literal["loss", "error"]

# The abbreviations that tables and figures use for the notions of fairness.
ABBREVIATIONS: dict[str, str] = {
    "equalized_odds": "EO",
    "demographic_parity": "DP",
    "equal_opportunity": "EOpp",
}

OWN_LABEL = -1


@dataclass(frozen=True, eq=False)
class _Comparisons:
    """What a notion of fairness compares, for given classes.

    Attributes
    ----------
    targets : tuple of int
        The labels (as class indices) that losses are measured against; −1 is the sample's own.
    rows : integer array of shape (comparisons, 3)
        Of each comparison: position in ``targets``, class whose cells are compared, and +1 where
        the group with the higher value should rise, −1 where it should fall.
    by_group : bool
        Whether a cell's sum is divided by the size of its group rather than by its own.
    """

    targets: tuple[int, ...]
    rows: NDArray[np.int64]
    by_group: bool


def fairness_name(fairness: Any) -> FairnessName:
    """Return the notion's name, which may be spelled with underscores or dashes.

    >>> fairness_name("equalized-odds")
    'equalized_odds'
    """
    name: Any = fairness.replace("-", "_") if isinstance(fairness, str) else fairness
    check_choice("fairness", name, get_args(FairnessName))
    return name  # type: ignore[no-any-return]


def comparisons(fairness: str | None, cells: Cells, pos_label: Any | None = None) -> _Comparisons:
    """Return what ``fairness`` compares between the groups of ``cells``; nothing when it is None.

    Examples
    --------
    >>> cells = Cells.of([0, 1], ["a", "b"])
    >>> comparisons("equalized_odds", cells).rows.tolist()
    [[0, 0, 1], [0, 1, 1]]
    >>> comparisons("demographic_parity", cells).rows.tolist()
    [[0, 0, -1], [0, 1, 1]]
    """
    classes = range(cells.shape[0])
    targets: tuple[int, ...] = (OWN_LABEL,)
    name = None if fairness is None else fairness_name(fairness)
    rows: list[tuple[int, int, int]] = []
    if name == "equalized_odds":
        rows = [(0, label, 1) for label in classes]
    elif name == "equal_opportunity":
        rows = [(0, cells.class_index(pos_label), 1)]
    elif name == "demographic_parity":
        binary = len(classes) <= 2
        targets = (cells.class_index(pos_label),) if binary else tuple(classes)
        rows = [
            (place, label, 1 if label == target else -1)
            for place, target in enumerate(targets)
            for label in classes
        ]
    return _Comparisons(targets, np.array(rows, dtype=np.int64).reshape(-1, 3), name == "demographic_parity")
