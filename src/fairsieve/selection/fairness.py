"""What the paper's loop compares between the groups of some cells.

A notion of fairness is a list of *comparisons* here. Each looks at the cells of one class and at the losses of their
samples against one target label, and says which group's ratio should rise; :mod:`fairsieve.notions` lists them.
"""

from __future__ import annotations

from typing import Any, Literal

from fairsieve.errors import InvalidInputError
from fairsieve.notions import NOTIONS, OWN_LABEL, Comparisons, find_notion
from fairsieve.selection.cells import Cells

SignalName = Literal["loss", "error"]


def positive_code(fairness: str, cells: Cells, pos_label: Any | None = None) -> int:
    """Return the code of the positive class; −1 where there are more than two, and none is named or needed.

    >>> positive_code("equal_opportunity", Cells.of(["no", "yes"], ["a", "b"]))
    1
    """
    needed = find_notion(fairness).needs_positive or len(cells.classes) <= 2 or pos_label is not None
    return cells.class_index(pos_label) if needed else -1


def comparisons(fairness: str | None, cells: Cells, pos_label: Any | None = None) -> Comparisons:
    """Return what ``fairness`` compares between the groups of ``cells``; nothing when it is None.

    Examples
    --------
    >>> comparisons("equal_opportunity", Cells.of([0, 1], ["a", "b"])).rows
    [(0, 1, 1)]
    """
    if fairness is None:
        return Comparisons((OWN_LABEL,), [], by_group=False)
    notion = find_notion(fairness)
    if notion.list_comparisons is None:
        able = ", ".join(name for name, one in NOTIONS.items() if one.list_comparisons is not None)
        raise InvalidInputError(
            f"fairness must be one of {able} where the losses of cells are compared, as batch samplers, fit and the "
            f"paper's methods do; got {notion.name!r}: FairRobustClassifier and SieveClassifier take it"
        )
    return notion.list_comparisons(cells.shape[0], positive_code(fairness, cells, pos_label))
