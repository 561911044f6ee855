"""Read a CSV or Parquet file; say in words what is wrong with it."""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fairsieve.errors import InvalidInputError
from fairsieve.optional import package
from fairsieve.tabular.reading.dialect import assume_dialect
from fairsieve.tabular.reading.parquet import parquet_columns
from fairsieve.tabular.reading.raw_text import check_separator, decoded, first_row, uneven_rows
from fairsieve.tabular.reading.table import InputTable, NumberColumn, Reading, TextColumn, headless_hint

__all__ = ["named_table", "read_table"]

FIRST_ROW = 2  # a spreadsheet has the names in row 1


def read_table(path: Path | str, reading: Reading | None = None) -> InputTable:
    r"""Read a CSV file with the columns' names in its first row, or a Parquet file.

    What stands between fields, and the decimal mark, are found from the first rows unless ``reading`` says them; spaces
    around values are dropped.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "people.csv"
    ...     _ = file.write_text("age,sex\n31, F\n?,M\n")
    ...     table = read_table(file)
    >>> table.columns["age"].tolist(), table.rows.tolist()
    (['31', None], [2, 3])
    """
    path, reading = Path(path), reading or Reading()
    try:
        with path.open("rb") as stream:
            is_parquet = stream.read(4) == b"PAR1"
        content = b"" if is_parquet else path.read_bytes()
    except OSError as error:
        raise InvalidInputError(
            f"the table must be a file that can be read; {path}: {error.strerror}"
        ) from error
    if is_parquet:
        reading = replace(reading, separator=",", decimal=".")  # of which it has neither
        names, columns = parquet_columns(path, reading.all_missing)
        rows = np.arange(len(columns[0]) if columns else 0) + FIRST_ROW
        table = named_table(path.name, names, columns, rows, reading, [])
    else:
        table = _read_csv(path.name, *decoded(path.name, content), reading)
    if not len(table):
        raise InvalidInputError(
            f"{path.name} must have rows below the names of its columns; it has none: name another file"
        )
    return table


def _read_csv(name: str, text: str, notes: list[str], reading: Reading) -> InputTable:
    """Read the text of a CSV file into columns of texts."""
    text = text.lstrip("\r\n")
    if not text.strip():
        raise InvalidInputError(f"{name} is empty: the first row must hold the columns' names")
    reading, assumed = assume_dialect(text, reading)
    notes = [*notes, *assumed]
    check_separator(name, first_row(name, text, reading.separator), text, reading.separator)
    pandas = package("pandas", "reading a table")
    try:
        frame = pandas.read_csv(
            io.BytesIO(text.encode("utf-8", errors="surrogatepass")),  # a StringIO takes four bytes a letter
            encoding_errors="surrogatepass",
            sep=reading.separator,
            header=None,
            dtype="category",  # each different text once
            keep_default_na=False,
            skipinitialspace=True,
            skip_blank_lines=False,
            low_memory=False,
        )
    except (pandas.errors.ParserError, ValueError):
        raise InvalidInputError(f"{name} {uneven_rows(text, reading.separator)}") from None
    names, columns = [], []
    blank = np.ones(len(frame) - 1, dtype=bool)
    for position in range(frame.shape[1]):
        column = frame[position].array
        names.append(str(column[0]).strip() if column.codes[0] >= 0 else "")
        codes, values = column.codes[1:], list(column.categories)
        empty = np.array([*(not str(value).strip() for value in values), True])  # a short row has the code −1
        blank &= empty[codes]
        columns.append(TextColumn.cleaned(codes, values, reading.all_missing))
    rows = np.arange(len(blank)) + FIRST_ROW
    if blank.any():
        columns, rows = [column.take(~blank) for column in columns], rows[~blank]
    return named_table(name, names, columns, rows, reading, notes)


def named_table(
    name: str,
    names: Sequence[str],
    columns: Sequence[TextColumn | NumberColumn],
    rows: NDArray[np.int64],
    reading: Reading,
    notes: list[str],
) -> InputTable:
    """Make a table whose columns have different names; leave out a column without one."""
    twice = [column for column, count in Counter(names).items() if count > 1 and column]
    if twice:
        raise InvalidInputError(
            f"the columns of {name} must have different names; {twice[0]!r} is there {names.count(twice[0])} times: "
            f"rename one{headless_hint(names)}"
        )
    unnamed = sum(1 for column in names if not column)
    if unnamed:
        words = "1 column has no name and is" if unnamed == 1 else f"{unnamed} columns have no name and are"
        notes = [*notes, f"{words} left out."]
    named = {column: values for column, values in zip(names, columns, strict=True) if column}
    return InputTable(name, named, rows, reading, notes)
