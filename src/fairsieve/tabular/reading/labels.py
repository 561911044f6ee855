"""The label column: what is predicted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fairsieve.errors import InvalidInputError
from fairsieve.tabular.reading.columns import canonical
from fairsieve.tabular.reading.table import InputTable, TextColumn, as_objects, closest, find_column

__all__ = ["Labels", "coded_by", "find_labels"]

MOST_CLASSES = 20
LEAST_OF_A_CLASS = 10


@dataclass(frozen=True)
class Labels:
    """What a label column holds.

    Attributes
    ----------
    column : str
    classes : tuple of str
        Its values, sorted.
    positive : str or None
        The value whose rates are reported; None where there are three or more and none was named.
    """

    column: str
    classes: tuple[str, ...]
    positive: str | None

    def read(self, table: InputTable) -> TextColumn:
        """Read the labels of a table, coded by their place in ``classes``; refuse values that training did not have."""
        column = canonical(find_column(table, self.column, "the label"), table.reading.decimal)
        new = sorted(set(column.values[column.counts > 0]) - set(self.classes))
        if new:
            raise InvalidInputError(
                f"labels in {self.column!r} of {table.name} must be among {', '.join(self.classes)}; got also "
                f"{', '.join(map(repr, new[:3]))}"
            )
        return coded_by(column, self.classes)


def coded_by(column: TextColumn, names: Sequence[str]) -> TextColumn:
    """Code a column by the places of its texts in ``names``; others are missing."""
    places = {name: place for place, name in enumerate(names)}
    lookup = np.array([*(places.get(text, -1) for text in column.values), -1], dtype=np.int32)
    return TextColumn(lookup[column.codes], as_objects(names))


def find_labels(table: InputTable, column: str, positive: str | None = None) -> Labels:
    """Find the classes in a label column, and check them."""
    values = canonical(find_column(table, column, "--label"), table.reading.decimal)
    counted = {
        str(text): int(count) for text, count in zip(values.values, values.counts, strict=True) if count
    }
    classes = tuple(sorted(counted))
    counts = [counted[name] for name in classes]
    if len(classes) < 2:
        having = f"only the value {classes[0]!r}" if classes else "no value at all"
        raise InvalidInputError(
            f"--label must be a column with two or more values to tell apart; {column!r} of {table.name} has {having}: "
            "name another column"
        )
    if len(classes) > MOST_CLASSES:
        raise InvalidInputError(
            f"--label must be a column with at most {MOST_CLASSES} values; {column!r} of {table.name} has "
            f"{len(classes):,}, such as {classes[0]!r}. For a quantity, add a column that says in which class each row "
            "is (for example above and below a limit)"
        )
    rare = int(np.argmin(counts))
    if counts[rare] < LEAST_OF_A_CLASS:
        raise InvalidInputError(
            f"every value of the label must be in at least {LEAST_OF_A_CLASS} rows; {classes[rare]!r} of {column!r} is "
            f"in {counts[rare]}: correct it if it is misspelt, else take those rows out or merge it with another value"
        )
    return Labels(column, classes, _find_positive(classes, positive, column))


def _find_positive(classes: tuple[str, ...], positive: str | None, column: str) -> str | None:
    """Find the positive value: the last of two when it is not named."""
    if positive is None:
        return classes[-1] if len(classes) == 2 else None
    positive = positive.strip()
    if positive not in classes:
        positive = str(canonical(TextColumn.of([positive])).tolist()[0])  # 1.0 is 1
    if positive not in classes:
        close = closest(positive, classes)
        hint = f"Did you mean {close!r}? " if close else ""
        raise InvalidInputError(
            f"--positive must be a value of {column!r}; got {positive!r}. {hint}Its values are {', '.join(classes)}"
        )
    return positive
