"""A table as it was read: a pandas data frame, and how it was read.

Its columns are of two kinds: texts, of pandas' type "category" (each different text is stored once, spaces around it
are dropped, and what counts as missing is missing), and numbers that a Parquet file or a data frame stores as such.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fairsieve.errors import InvalidInputError

__all__ = [
    "MISSING",
    "InputTable",
    "Reading",
    "as_objects",
    "closest",
    "coded",
    "count_distinct",
    "find_column",
    "headless_hint",
    "is_text",
    "listed",
    "recode",
    "used_texts",
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
class InputTable:
    """A table, and how it was read.

    Attributes
    ----------
    name : str
        The file's name.
    frame : DataFrame
        Its index says where each row stands in a spreadsheet: the names are in row 1, the first sample in row 2.
    reading : Reading
    notes : list of str
        What was done to it, in plain words.
    """

    name: str
    frame: pd.DataFrame
    reading: Reading
    notes: list[str] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.frame)

    @property
    def rows(self) -> NDArray[np.int64]:
        """Where each row stands in the file."""
        return np.asarray(self.frame.index, dtype=np.int64)

    @property
    def columns(self) -> list[str]:
        """The columns' names."""
        return [str(name) for name in self.frame.columns]

    def take(self, places: NDArray[Any]) -> InputTable:
        """Select some of the rows."""
        return InputTable(self.name, self.frame.iloc[places], self.reading, self.notes)

    def cells(self, column: str) -> list[Any]:
        """Return the values of a column, None where missing."""
        return listed(self.frame[column])


def is_text(column: pd.Series) -> bool:
    """Return whether a column holds texts."""
    return isinstance(column.dtype, pd.CategoricalDtype)


def as_objects(values: Iterable[Any]) -> NDArray[np.object_]:
    """Make an array of objects, whatever they are."""
    given = list(values)
    found = np.empty(len(given), dtype=object)
    found[:] = given
    return found


def coded(
    codes: NDArray[Any], texts: Sequence[str | None], missing: frozenset[str] = frozenset()
) -> pd.Categorical:
    """Make texts of codes; equal texts become one, and None and what is in ``missing`` is missing.

    Texts that no row has are left out.

    >>> coded(np.array([0, 1, 2, -1]), ["b", "a", "b", "c"])
    ['b', 'a', 'b', NaN]
    Categories (2, object): ['b', 'a']
    """
    used = np.bincount(codes[codes >= 0], minlength=len(texts)) > 0
    places: dict[str, int] = {}
    table = [
        -1 if text is None or not there or text in missing else places.setdefault(text, len(places))
        for text, there in zip(texts, used.tolist(), strict=True)
    ]
    lookup = np.array([*table, -1], dtype=np.int32)  # the last stands for the code −1
    return pd.Categorical.from_codes(lookup[codes], pd.Index(as_objects(places), dtype=object))


def recode(column: pd.Series, texts: Sequence[str | None]) -> pd.Series:
    """Replace each category of a column by another text, or by None for missing."""
    codes = column.cat.codes.to_numpy()
    return pd.Series(coded(codes, texts), index=column.index, name=column.name)


def used_texts(column: pd.Series) -> dict[str, int]:
    """Count the rows with each text of a column, for texts that some row has."""
    codes, texts = column.cat.codes.to_numpy(), column.cat.categories.tolist()
    counts = np.bincount(codes[codes >= 0], minlength=len(texts))
    if counts.all():
        return dict(zip(texts, counts.tolist(), strict=True))
    return {text: count for text, count in zip(texts, counts.tolist(), strict=True) if count}


def count_distinct(column: pd.Series) -> int:
    """Count the different values of a column."""
    return len(np.unique(column.dropna().cat.codes)) if is_text(column) else int(column.nunique())


def listed(column: pd.Series) -> list[Any]:
    """Return the values of a column, None where missing."""
    values = column.to_numpy(dtype=object)
    return [None if gap else value for value, gap in zip(values, column.isna(), strict=True)]


def find_column(table: InputTable, wanted: str, option: str) -> pd.Series:
    """Find a column by its name; where there is none, offer the closest one."""
    if wanted not in table.frame:
        names = table.columns
        shown = ", ".join(names[:20]) + (f", … ({len(names)} in all)" if len(names) > 20 else "")
        close = closest(wanted, names)
        hint = f"Did you mean {close!r}? " if close else ""
        raise InvalidInputError(
            f"{option} must be a column of {table.name}; got {wanted!r}. {hint}Its columns are {shown}"
            f"{headless_hint(names)}"
        )
    return table.frame[wanted]


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
