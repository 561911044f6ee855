"""Columns that say the label or the group in other words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["leak_notes"]

NEARLY_ALL = 0.98  # of the rows in which a copy says the same


def leak_notes(
    frame: Any, labels: NDArray[Any], groups: NDArray[Any], label: str, sensitive: Sequence[str]
) -> list[str]:
    """What to know of columns that are learnt from and copy the column ``label`` or the groups.

    A copy of the label makes a model that looks perfect and is of no use where the label is not known.
    """
    notes = []
    for column in frame.columns.drop(list(sensitive), errors="ignore"):  # --keep-sensitive is asked for
        values = np.array(
            [None if value != value or value == "" else value for value in frame[column]], object
        )
        if _copies(values, labels):
            notes.append(
                f"Careful: column {column!r} says the label {label!r} in other words, so the models read the answer "
                f"instead of learning it. Unless it is known where you predict, add --drop {column!r}."
            )
        elif _copies(values, groups):
            notes.append(
                f"Column {column!r} says {' and '.join(sensitive)!r} in other words, so the models know the group; add "
                f"--drop {column!r} to keep it from them."
            )
    return notes


def _copies(values: NDArray[Any], targets: NDArray[Any]) -> bool:
    """Whether each value stands for one target and each target for one value, in nearly all rows; None is no value.

    Examples
    --------
    >>> targets = np.array(["yes", "no", "no", "yes"], dtype=object)
    >>> _copies(np.array([1, 0, 0, 1], dtype=object), targets), _copies(np.array([1, 0, 1, 1], dtype=object), targets)
    (True, False)
    """
    found, kinds = set(values) - {None}, set(targets) - {None}
    if len(found) != len(kinds) or len(kinds) < 2:
        return False
    known = np.array([a is not None and b is not None for a, b in zip(values, targets, strict=True)], bool)
    if known.sum() < NEARLY_ALL * len(known):
        return False
    rows = {value: row for row, value in enumerate(found)}
    columns = {target: column for column, target in enumerate(kinds)}
    table = np.zeros((len(rows), len(columns)), np.int64)
    np.add.at(table, ([rows[v] for v in values[known]], [columns[t] for t in targets[known]]), 1)
    partner = table.argmax(axis=1)
    one_to_one = (table.argmax(axis=0)[partner] == np.arange(len(rows))).all()
    return bool(one_to_one and table.max(axis=1).sum() >= NEARLY_ALL * known.sum())
