"""A table as it was read: columns of texts and of numbers."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairsieve.errors import InvalidInputError

__all__ = [
    "MISSING",
    "InputTable",
    "NumberColumn",
    "Reading",
    "TextColumn",
    "as_objects",
    "closest",
    "find_column",
    "headless_hint",
]

MISSING = ("", "?", "NA", "N/A", "n/a", "NaN", "nan", "NULL", "null", "#N/A", "<NA>")
NAMED = {"tab": "\t", "\\t": "\t", "comma": ",", "semicolon": ";"}


@dataclass(frozen=True)
class Reading:
    """How the text of a CSV file is read.

    Attributes
    ----------
    separator : str
        The character between two fields; "tab" for a tab, "auto" to find it from the first rows.
    decimal : str
        The decimal mark, "." or ","; "auto" to find it from the first rows.
    missing : sequence of str
        Values that count as missing, beside those in :data:`MISSING`.
    """

    separator: str = "auto"
    decimal: str = "auto"
    missing: Sequence[str] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "separator", NAMED.get(self.separator, self.separator))
        if self.separator != "auto" and (len(self.separator) != 1 or self.separator in '"\r\n'):
            raise InvalidInputError(
                "--separator must be one character, or tab, and no quote or line end, or auto; got "
                f"{self.separator!r}"
            )
        if self.decimal not in (".", ",", "auto") or self.decimal == self.separator != "auto":
            raise InvalidInputError(
                "--decimal must be . or , and differ from the separator, or auto; got "
                f"{self.decimal!r} with the separator {self.separator!r}"
            )

    @property
    def all_missing(self) -> frozenset[str]:
        """Every value that counts as missing."""
        return frozenset((*MISSING, *self.missing))


@dataclass(frozen=True, eq=False)
class TextColumn:
    """A column of texts, each different text stored once.

    Attributes
    ----------
    codes : integer array
        The place of each row's text in ``values``; −1 where it is missing.
    values : array of str
        Different texts. Some may be in no row.

    Examples
    --------
    >>> column = TextColumn.of(["b", None, "a", "b"])
    >>> column.codes.tolist(), column.values.tolist(), column.tolist()
    ([0, -1, 1, 0], ['b', 'a'], ['b', None, 'a', 'b'])
    """

    codes: NDArray[np.int32]
    values: NDArray[np.object_]

    @classmethod
    def of(cls, texts: Iterable[str | None]) -> TextColumn:
        """Make a column of texts; None is missing."""
        places: dict[str, int] = {}
        codes = [-1 if text is None else places.setdefault(text, len(places)) for text in texts]
        return cls(np.array(codes, dtype=np.int32), as_objects(places))

    @classmethod
    def cleaned(cls, codes: NDArray[Any], values: Iterable[Any], missing: frozenset[str]) -> TextColumn:
        """Strip spaces around texts, merge what becomes the same, and recode what counts as missing."""
        places: dict[str, int] = {}
        stripped = [str(value).strip() for value in values]
        table = [-1 if text in missing else places.setdefault(text, len(places)) for text in stripped]
        lookup = np.array([*table, -1], dtype=np.int32)  # the last stands for the code −1
        return cls(lookup[codes], as_objects(places))

    def __len__(self) -> int:
        return len(self.codes)

    @property
    def known(self) -> NDArray[np.bool_]:
        """Which rows have a value."""
        return np.asarray(self.codes >= 0)

    @cached_property
    def counts(self) -> NDArray[np.int64]:
        """How many rows have each of ``values``."""
        return np.bincount(self.codes[self.codes >= 0], minlength=len(self.values))

    @property
    def distinct(self) -> int:
        """How many different values rows have."""
        return int((self.counts > 0).sum())

    def take(self, rows: NDArray[Any]) -> TextColumn:
        """Select rows."""
        return TextColumn(self.codes[rows], self.values)

    def recoded(self, texts: Sequence[str | None]) -> TextColumn:
        """Replace each of ``values`` by another text, or by None for missing; equal texts become one."""
        places: dict[str, int] = {}
        table = [-1 if text is None else places.setdefault(text, len(places)) for text in texts]
        return TextColumn(np.array([*table, -1], dtype=np.int32)[self.codes], as_objects(places))

    def objects(self, missing: str | None = None) -> NDArray[np.object_]:
        """Return the text of every row, with ``missing`` where there is none."""
        return np.asarray(np.append(self.values, as_objects([missing]))[self.codes])

    def tolist(self) -> list[str | None]:
        """Return the text of every row, None where it is missing."""
        return list(self.objects().tolist())


@dataclass(frozen=True, eq=False)
class NumberColumn:
    """A column that its file stores as numbers, in their own type.

    Attributes
    ----------
    numbers : integer or float array
    known : boolean array
        Which rows have a value.
    """

    numbers: NDArray[Any]
    known: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.numbers)

    @cached_property
    def distinct(self) -> int:
        """How many different values rows have."""
        return len(np.unique(self.numbers[self.known]))

    def take(self, rows: NDArray[Any]) -> NumberColumn:
        """Select rows."""
        return NumberColumn(self.numbers[rows], self.known[rows])

    def tolist(self) -> list[Any]:
        """Return the number of every row, None where it is missing."""
        pairs = zip(self.numbers.tolist(), self.known, strict=True)
        return [number if known else None for number, known in pairs]


@dataclass(frozen=True, eq=False)
class InputTable:
    """The columns of a file.

    Attributes
    ----------
    name : str
        The file's name.
    columns : dict of TextColumn and NumberColumn
    rows : integer array
        Where each sample stands in a spreadsheet: the names are in row 1, the first sample in row 2.
    reading : Reading
    notes : list of str
        What was done to it, in plain words.
    """

    name: str
    columns: dict[str, TextColumn | NumberColumn]
    rows: NDArray[np.int64]
    reading: Reading
    notes: list[str] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.rows)

    def take(self, rows: NDArray[Any]) -> InputTable:
        """Select some of the samples."""
        columns = {name: column.take(rows) for name, column in self.columns.items()}
        return InputTable(self.name, columns, self.rows[rows], self.reading, self.notes)


def as_objects(values: Iterable[Any]) -> NDArray[np.object_]:
    """Make an array of objects, whatever they are."""
    listed = list(values)
    found = np.empty(len(listed), dtype=object)
    found[:] = listed
    return found


def find_column(table: InputTable, wanted: str, option: str) -> TextColumn | NumberColumn:
    """Find a column by its name; where there is none, offer the closest one."""
    if wanted not in table.columns:
        names = list(table.columns)
        listed = ", ".join(names[:20]) + (f", … ({len(names)} in all)" if len(names) > 20 else "")
        close = closest(wanted, names)
        hint = f"Did you mean {close!r}? " if close else ""
        raise InvalidInputError(
            f"{option} must be a column of {table.name}; got {wanted!r}. {hint}Its columns are {listed}"
            f"{headless_hint(names)}"
        )
    return table.columns[wanted]


def headless_hint(names: Sequence[str]) -> str:
    """Add a sentence where most names are numbers, which suggests that the names are missing."""
    numbers = sum(bool(re.fullmatch(r"[-+]?[\d.]+", name)) for name in names)
    return ". The first row must hold the columns' names" if numbers * 2 > len(names) else ""


def closest(wanted: str, names: Iterable[str]) -> str | None:
    """Find the name most like ``wanted``, whatever the case.

    >>> closest("Incom", ["age", "income"])
    'income'
    """
    by_lower = {name.lower(): name for name in names}
    found = difflib.get_close_matches(wanted.lower(), by_lower, n=1)
    return by_lower[found[0]] if found else None
