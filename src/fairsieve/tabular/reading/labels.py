"""The label column: what is predicted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairsieve.errors import InvalidInputError
from fairsieve.tabular.reading.columns import canonical, known_in
from fairsieve.tabular.reading.read import Table, closest, find_column

__all__ = ["Labels", "labels_of"]

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
        The value whose rates are told; None where there are three or more and none was named.
    """

    column: str
    classes: tuple[str, ...]
    positive: str | None

    def read(self, table: Table) -> NDArray[Any]:
        """The labels of a table; None where missing. Values that training did not have are refused."""
        values = canonical(find_column(table, self.column, "the label"), table.reading.decimal)
        new = sorted({value for value in values if value is not None} - set(self.classes))
        if new:
            raise InvalidInputError(
                f"labels in {self.column!r} of {table.name} must be among {', '.join(self.classes)}; got also "
                f"{', '.join(map(repr, new[:3]))}"
            )
        return values


def labels_of(table: Table, column: str, positive: str | None = None) -> Labels:
    """The classes in a label column, checked."""
    values = canonical(find_column(table, column, "--label"), table.reading.decimal)
    found, counts = np.unique(values[known_in(values)].astype(str), return_counts=True)
    classes = tuple(str(value) for value in found)
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
    return Labels(column, classes, _positive_of(classes, positive, column))


def _positive_of(classes: tuple[str, ...], positive: str | None, column: str) -> str | None:
    """The positive value: the last of two when it is not named."""
    if positive is None:
        return classes[-1] if len(classes) == 2 else None
    positive = str(canonical(np.array([positive.strip()], dtype=object))[0])  # 1.0 is 1
    if positive not in classes:
        close = closest(positive, classes)
        hint = f"Did you mean {close!r}? " if close else ""
        raise InvalidInputError(
            f"--positive must be a value of {column!r}; got {positive!r}. {hint}Its values are {', '.join(classes)}"
        )
    return positive
