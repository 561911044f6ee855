"""A CSV or Parquet file → columns of texts and numbers; what is wrong with it is told in words."""

from __future__ import annotations

import difflib
import io
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairsieve.errors import InvalidInputError
from fairsieve.optional import package
from fairsieve.tabular.reading.raw_text import check_separator, decoded, first_row, uneven_rows

__all__ = ["MISSING", "Reading", "Table", "closest", "find_column", "read_table"]

MISSING = ("", "?", "NA", "N/A", "n/a", "NaN", "nan", "NULL", "null", "#N/A", "<NA>")
NAMED = {"tab": "\t", "\\t": "\t", "comma": ",", "semicolon": ";"}
MOST_VALUES = 10**9  # in a Parquet file
FIRST_ROW = 2  # a spreadsheet has the names in row 1


@dataclass(frozen=True)
class Reading:
    """How the text of a CSV file is read.

    Attributes
    ----------
    separator : str
        What stands between two fields; "tab" for a tab.
    decimal : str
        What stands before the decimals, "." or ",".
    missing : sequence of str
        Values that count as missing, beside those in :data:`MISSING`.
    """

    separator: str = ","
    decimal: str = "."
    missing: Sequence[str] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "separator", NAMED.get(self.separator, self.separator))
        if len(self.separator) != 1 or self.separator in '"\r\n':
            raise InvalidInputError(
                f"--separator must be one character, or tab, and no quote or line end; got {self.separator!r}"
            )
        if self.decimal not in (".", ",") or self.decimal == self.separator:
            raise InvalidInputError(
                f"--decimal must be . or , and differ from the separator; got {self.decimal!r} with the separator "
                f"{self.separator!r}"
            )

    @property
    def all_missing(self) -> frozenset[str]:
        """Every value that counts as missing."""
        return frozenset((*MISSING, *self.missing))


@dataclass(frozen=True, eq=False)
class Table:
    """A file's columns.

    Attributes
    ----------
    name : str
        The file's name.
    columns : dict of arrays
        Texts (objects, None where missing) or numbers (doubles, NaN where missing).
    rows : integer array
        Where each sample stands in a spreadsheet: the names are in row 1, the first sample in row 2.
    reading : Reading
    notes : list of str
        What was done to it, in plain words.
    """

    name: str
    columns: dict[str, NDArray[Any]]
    rows: NDArray[np.int64]
    reading: Reading
    notes: list[str] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.rows)

    def take(self, chosen: NDArray[Any]) -> Table:
        """Some of the samples."""
        columns = {name: values[chosen] for name, values in self.columns.items()}
        return Table(self.name, columns, self.rows[chosen], self.reading, self.notes)


def read_table(path: Path | str, reading: Reading | None = None) -> Table:
    """Read a CSV file with the columns' names in its first row, or a Parquet file.

    Nothing is guessed from values here; spaces around them are dropped.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "people.csv"
    ...     _ = file.write_text("age,sex\\n31, F\\n?,M\\n")
    ...     table = read_table(file)
    >>> table.columns["age"].tolist(), table.rows.tolist()
    (['31', None], [2, 3])
    """
    path, reading = Path(path), reading or Reading()
    try:
        content = path.read_bytes()
    except OSError as error:
        raise InvalidInputError(
            f"the table must be a file that can be read; {path}: {error.strerror}"
        ) from error
    if content.startswith(b"PAR1"):
        table = _from_parquet(path.name, content, reading)
    else:
        table = _from_csv(path.name, decoded(path.name, content), reading)
    if not len(table):
        raise InvalidInputError(
            f"{path.name} must have rows below the names of its columns; it has none: name another file"
        )
    return table


def _from_csv(name: str, text_and_notes: tuple[str, list[str]], reading: Reading) -> Table:
    """A table of texts."""
    text, notes = text_and_notes
    text = text.lstrip("\r\n")
    if not text.strip():
        raise InvalidInputError(f"{name} is empty: the first row must hold the columns' names")
    check_separator(name, first_row(name, text, reading.separator), text, reading.separator)
    pandas = package("pandas", "reading a table")
    try:
        frame = pandas.read_csv(
            io.StringIO(text),
            sep=reading.separator,
            header=None,
            dtype=object,
            keep_default_na=False,
            skipinitialspace=True,
            skip_blank_lines=False,
        )
    except (pandas.errors.ParserError, ValueError):
        raise InvalidInputError(f"{name} {uneven_rows(text, reading.separator)}") from None
    names = [str(value).strip() for value in frame.iloc[0]]
    values = frame.iloc[1:].fillna("").to_numpy(dtype=object)
    blank = np.array([not "".join(row).strip() for row in values], dtype=bool)
    rows = (np.arange(len(values)) + FIRST_ROW)[~blank]
    gaps = reading.all_missing
    columns = [_as_texts(values[~blank, i], gaps) for i in range(len(names))]
    return _named_table(name, names, columns, rows, reading, notes)


def _as_texts(values: NDArray[Any], missing: frozenset[str]) -> NDArray[Any]:
    """Texts without spaces around them; None where missing."""
    stripped = [str(value).strip() for value in values]
    found = np.empty(len(stripped), dtype=object)
    found[:] = [None if value in missing else value for value in stripped]
    return found


def _named_table(
    name: str,
    names: Sequence[str],
    columns: Sequence[NDArray[Any]],
    rows: NDArray[np.int64],
    reading: Reading,
    notes: list[str],
) -> Table:
    """A table whose columns have different names; a column without one is left out."""
    twice = [column for column, count in Counter(names).items() if count > 1 and column]
    if twice:
        raise InvalidInputError(
            f"the columns of {name} must have different names; {twice[0]!r} is there {names.count(twice[0])} times: "
            f"rename one{_headless(names)}"
        )
    unnamed = sum(1 for column in names if not column)
    if unnamed:
        words = "1 column has no name and is" if unnamed == 1 else f"{unnamed} columns have no name and are"
        notes = [*notes, f"{words} left out."]
    kept = {column: values for column, values in zip(names, columns, strict=True) if column}
    return Table(name, kept, rows, reading, notes)


def _from_parquet(name: str, content: bytes, reading: Reading) -> Table:
    """A table of texts and numbers; booleans, categories and dates become texts."""
    package("pyarrow", "reading Parquet")
    pandas = package("pandas", "reading a table")
    try:
        size = package("pyarrow.parquet", "reading Parquet").read_metadata(io.BytesIO(content))
        if size.num_rows * size.num_columns > MOST_VALUES:  # a few bytes may stand for billions
            raise ValueError(f"it has {size.num_rows:,} rows of {size.num_columns:,} columns, too many")
        frame = pandas.read_parquet(io.BytesIO(content))
    except Exception as error:  # pyarrow has many
        raise InvalidInputError(
            f"{name} is not a Parquet file that can be read ({error}): write it again, or save it as CSV"
        ) from error
    if any(name is not None for name in frame.index.names):  # a column for pandas, and for everyone else
        frame = frame.reset_index()
    kinds = pandas.api.types
    columns = []
    for position in range(frame.shape[1]):
        series = frame.iloc[:, position]
        if kinds.is_numeric_dtype(series.dtype) and not kinds.is_bool_dtype(series.dtype):
            columns.append(series.to_numpy(dtype=np.float64, na_value=np.nan))
        else:
            texts = series.astype(object).where(series.notna(), "").to_numpy()
            columns.append(_as_texts(texts, reading.all_missing))
    names = [str(column).strip() for column in frame.columns]
    return _named_table(name, names, columns, np.arange(len(frame)) + FIRST_ROW, reading, [])


def find_column(table: Table, wanted: str, option: str) -> NDArray[Any]:
    """A column by its name; where there is none, the closest one is offered."""
    if wanted not in table.columns:
        raise InvalidInputError(f"{option} {_one_of_the_columns(wanted, table)}")
    return table.columns[wanted]


def _one_of_the_columns(wanted: str, table: Table) -> str:
    """The rule that ``wanted`` breaks, and which name may be meant."""
    names = list(table.columns)
    shown = ", ".join(names[:20]) + (f", … ({len(names)} in all)" if len(names) > 20 else "")
    close = closest(wanted, names)
    hint = f"Did you mean {close!r}? " if close else ""
    return (
        f"must be a column of {table.name}; got {wanted!r}. {hint}Its columns are {shown}{_headless(names)}"
    )


def _headless(names: Sequence[str]) -> str:
    """A word where most names are numbers, so that they are none."""
    numbers = sum(bool(re.fullmatch(r"[-+]?[\d.]+", name)) for name in names)
    return ". The first row must hold the columns' names" if numbers * 2 > len(names) else ""


def closest(wanted: str, names: Iterable[str]) -> str | None:
    """The name most like ``wanted``, whatever the case.

    >>> closest("Incom", ["age", "income"])
    'income'
    """
    by_lower = {name.lower(): name for name in names}
    found = difflib.get_close_matches(wanted.lower(), by_lower, n=1)
    return by_lower[found[0]] if found else None
