"""Find columns that duplicate the label or the group (leaks), or tell them alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairsieve.tabular.notes import Note
from fairsieve.tabular.reading.features import Values
from fairsieve.tabular.reading.table import TextColumn
from fairsieve.tabular.telling_columns import rank_columns

__all__ = ["leak_notes"]

NEARLY_ALL = 0.98  # of the rows in which a copy says the same
NEARLY_PERFECT = 0.98  # area under the ROC curve of one column for the label
STANDS_IN = 0.8  # the same for the group; Adult's relationship reaches .87 for sex, marital-status .76
MOST_NAMED = 3


def leak_notes(
    values: Values, labels: TextColumn, groups: TextColumn, label: str, sensitive: Sequence[str]
) -> list[str]:
    """Warn of columns that are learnt from and duplicate the column ``label`` or the groups.

    A copy of the label makes a model that looks perfect and is of no use where the label is not known.
    """
    notes: list[str] = []
    copies = set(sensitive)  # --keep-sensitive asks for those
    for column, content in values.items():
        codes = None if column in copies else _codes(content, max(len(labels.values), len(groups.values)))
        if codes is None:
            continue
        if _copies(codes, labels.codes):
            copies.add(column)
            text = (
                f"Column {column!r} duplicates the label {label!r} (a leak), so the models read the answer instead "
                f"of learning it. Unless it is known where you predict, add --drop {column!r}."
            )
            notes.append(Note(text, "leak"))
        elif _copies(codes, groups.codes):
            copies.add(column)
            notes.append(
                f"Column {column!r} duplicates {' and '.join(sensitive)!r}, so the models know the group; add "
                f"--drop {column!r} to keep it from them."
            )
    rest = {column: content for column, content in values.items() if column not in copies}
    told = set(sensitive) & set(values)
    return [
        *notes,
        *_label_notes(rest, labels, label),
        *([] if told else _group_notes(rest, groups, sensitive)),
    ]


def _label_notes(values: Values, labels: TextColumn, label: str) -> list[str]:
    """Warn of columns that alone predict the label almost perfectly."""
    areas = rank_columns(values, labels.codes)
    return [
        Note(
            f"Column {column!r} alone predicts {label!r} almost perfectly (area under the ROC curve {area:.3f} on "
            f"rows held out). It may be known only once the label is, which would be a leak: if so, add --drop "
            f"{column!r}.",
            "warning",
        )
        for column, area in areas.items()
        if area >= NEARLY_PERFECT
    ]


def _group_notes(values: Values, groups: TextColumn, sensitive: Sequence[str]) -> list[str]:
    """Name the columns that stand in for the group, those that tell most first."""
    areas = rank_columns(values, groups.codes)
    found = sorted((column for column in areas if areas[column] >= STANDS_IN), key=lambda name: -areas[name])
    if not found:
        return []
    listed = ", ".join(f"{column!r} ({areas[column]:.3f})" for column in found[:MOST_NAMED])
    more = f" and {len(found) - MOST_NAMED} more" if len(found) > MOST_NAMED else ""
    verb = "stands in" if len(found) == 1 else "stand in"
    return [
        f"Through {listed}{more}, which {verb} for {' and '.join(map(repr, sensitive))} (area under the ROC curve "
        "that the column alone reaches, on rows held out), the models can tell groups apart; --drop COLUMN keeps a "
        "column from them."
    ]


def _codes(content: NDArray[np.float64] | TextColumn, most: int) -> NDArray[Any] | None:
    """Code a column's values, −1 where missing; return None where it has too many to be a copy."""
    if isinstance(content, TextColumn):
        return content.codes if content.distinct <= most else None
    first = content[: 50 * (most + 1)]  # numbers mostly show here that they are many
    if len(np.unique(first[~np.isnan(first)])) > most:
        return None
    found, codes = np.unique(content, return_inverse=True)  # NaN is last, and one
    missing = bool(len(found)) and bool(np.isnan(found[-1]))
    if len(found) - missing > most:
        return None
    return np.where(codes == len(found) - 1, -1, codes) if missing else codes


def _copies(values: NDArray[Any], targets: NDArray[Any]) -> bool:
    """Return whether values and targets stand for each other one to one, in nearly all rows; −1 is missing.

    Examples
    --------
    >>> targets = np.array([1, 0, 0, 1])
    >>> _copies(np.array([5, 2, 2, 5]), targets), _copies(np.array([1, 0, 1, 1]), targets)
    (True, False)
    """
    known = (values >= 0) & (targets >= 0)
    if not known.any() or known.sum() < NEARLY_ALL * len(known):
        return False
    rows, columns = (int(codes.max()) + 1 for codes in (values, targets))
    pairs = values[known].astype(np.int64) * columns + targets[known]
    table = np.bincount(pairs, minlength=rows * columns).reshape(rows, columns)
    table = table[np.bincount(values[values >= 0], minlength=rows) > 0]
    table = table[:, np.bincount(targets[targets >= 0], minlength=columns) > 0]
    if table.shape[0] != table.shape[1] or len(table) < 2:
        return False
    partner = table.argmax(axis=1)
    one_to_one = (table.argmax(axis=0)[partner] == np.arange(len(table))).all()
    return bool(one_to_one and table.max(axis=1).sum() >= NEARLY_ALL * known.sum())
