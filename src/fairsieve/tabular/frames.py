"""Data frames of pandas and polars in place of a file: read them as a table, and add columns to their rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairsieve.errors import InvalidInputError
from fairsieve.optional import package
from fairsieve.tabular.reading.read import named_table
from fairsieve.tabular.reading.table import InputTable, NumberColumn, Reading, TextColumn

__all__ = ["FRAME_NAME", "add_columns", "as_pandas", "free_name", "is_frame", "read_frame"]

FRAME_NAME = "the data frame"


def is_frame(data: Any) -> bool:
    """Return whether something is a data frame of pandas or polars.

    >>> import pandas
    >>> is_frame(pandas.DataFrame({"age": [31]})), is_frame("people.csv")
    (True, False)
    """
    return _is_polars(data) or (hasattr(data, "iloc") and hasattr(data, "columns"))


def _is_polars(data: Any) -> bool:
    return type(data).__module__.partition(".")[0] == "polars"


def read_frame(frame: Any, reading: Reading | None = None) -> InputTable:
    """Read a data frame as a table; its rows are numbered from 0.

    Numbers keep their type; booleans, categories, dates and the like become texts, as in a Parquet file.

    Examples
    --------
    >>> import pandas
    >>> table = read_frame(pandas.DataFrame({"age": [31.0, None], "sex": [" F", "M"]}))
    >>> table.columns["age"].tolist(), table.columns["sex"].tolist()
    ([31.0, None], ['F', 'M'])
    """
    reading = replace(reading or Reading(), separator=",", decimal=".")
    if _is_polars(frame) and type(frame).__name__ != "DataFrame":
        raise InvalidInputError(
            f"the table must be a data frame in memory; got a {type(frame).__name__} of polars: call .collect() first"
        )
    if not len(frame):
        raise InvalidInputError("the data frame must have rows; it has none")
    read = _polars_column if _is_polars(frame) else _pandas_column
    names = [str(name).strip() for name in frame.columns]
    series = (
        frame.get_columns()
        if _is_polars(frame)
        else [frame.iloc[:, place] for place in range(frame.shape[1])]
    )
    columns = [read(one, reading.all_missing) for one in series]
    return named_table(FRAME_NAME, names, columns, np.arange(len(frame)), reading, [])


def _pandas_column(series: Any, missing: frozenset[str]) -> TextColumn | NumberColumn:
    """Convert one column of pandas'."""
    pandas = package("pandas", "reading a data frame")
    types = pandas.api.types
    if types.is_integer_dtype(series.dtype) or types.is_float_dtype(series.dtype):
        known = series.notna().to_numpy(dtype=bool)
        kind = getattr(series.dtype, "numpy_dtype", series.dtype)  # that of a type with missing values
        numbers = series if known.all() else series.fillna(0)
        return NumberColumn(np.asarray(numbers.to_numpy(dtype=kind)), known)
    codes, values = pandas.factorize(series)
    return TextColumn.cleaned(codes, list(values), missing)


def _polars_column(series: Any, missing: frozenset[str]) -> TextColumn | NumberColumn:
    """Convert one column of polars'."""
    if series.dtype.is_integer() or series.dtype.is_float():
        numbers = np.asarray(series.fill_null(0).to_numpy())
        known = np.asarray(series.is_not_null().to_numpy(), dtype=bool)
        return NumberColumn(numbers, known & ~np.isnan(numbers))
    pandas = package("pandas", "reading a data frame")
    objects = np.empty(len(series), dtype=object)
    objects[:] = series.to_list()
    codes, values = pandas.factorize(objects)
    return TextColumn.cleaned(codes, list(values), missing)


def add_columns(frame: Any, rows: NDArray[np.int64], added: Mapping[str, NDArray[Any]]) -> Any:
    """Return some rows of a data frame, with columns added; a name that is taken gets an underscore."""
    taken = [str(name) for name in frame.columns]
    named = {free_name(name, taken): values for name, values in added.items()}
    if _is_polars(frame):
        polars = package("polars", "a data frame of polars")
        return frame[rows].with_columns([polars.Series(name, values) for name, values in named.items()])
    return frame.iloc[rows].assign(**named)


def as_pandas(table: InputTable, rows: NDArray[np.int64]) -> Any:
    """Return some rows of a table that came from a file as a data frame, whose index is the row in the file."""
    pandas = package("pandas", "a data frame")
    columns = {}
    for name, column in table.columns.items():
        values = column.take(rows).tolist()
        columns[name] = pandas.to_numeric(pandas.Series(values), errors="coerce")
        if columns[name].isna().sum() > sum(value is None for value in values):  # not all are numbers
            columns[name] = pandas.Series(values, dtype=object)
    frame = pandas.DataFrame(columns, columns=list(table.columns))
    frame.index = pandas.Index(table.rows[rows], name="row")
    return frame


def free_name(wanted: str, taken: Sequence[str]) -> str:
    """Find a name that no column has yet.

    >>> free_name("loss", ["loss", "age"])
    'loss_'
    """
    return wanted if wanted not in taken else free_name(f"{wanted}_", taken)
