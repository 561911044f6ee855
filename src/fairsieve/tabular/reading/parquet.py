"""Read the columns of a Parquet file."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairsieve.errors import InvalidInputError
from fairsieve.optional import package
from fairsieve.tabular.reading.table import NumberColumn, TextColumn

__all__ = ["parquet_columns"]

MOST_VALUES = 10**9
INDEX = re.compile(r"__index_level_\d+__")  # what pandas calls the row numbers


def parquet_columns(path: Path, missing: frozenset[str]) -> tuple[list[str], list[TextColumn | NumberColumn]]:
    """Read names and columns; numbers keep their type; booleans, categories, dates and the like become texts."""
    package("pyarrow", "reading Parquet")
    parquet = package("pyarrow.parquet", "reading Parquet")
    try:
        with parquet.ParquetFile(path, memory_map=True) as file:
            size = file.metadata
            if size.num_rows * size.num_columns > MOST_VALUES:  # a few bytes may stand for billions
                raise ValueError(f"it has {size.num_rows:,} rows of {size.num_columns:,} columns, too many")
            table = file.read()
        names, columns = [], []
        for position, name in enumerate(table.column_names):
            if not INDEX.fullmatch(name):
                names.append(name.strip())
                columns.append(_column(table.column(position), missing))
        for name, numbers in _range_indexes(table.schema):
            names.append(name.strip())
            columns.append(NumberColumn(numbers, np.ones(len(numbers), dtype=bool)))
    except Exception as error:  # pyarrow has many
        raise InvalidInputError(
            f"{path.name} is not a Parquet file that can be read ({error}): write it again, or save it as CSV"
        ) from error
    return names, columns


def _range_indexes(schema: Any) -> list[tuple[str, NDArray[np.int64]]]:
    """Return the named indexes of pandas that are only described: a start, a stop and a step."""
    described = (schema.pandas_metadata or {}).get("index_columns", [])
    return [
        (str(index["name"]), np.arange(index["start"], index["stop"], index["step"]))
        for index in described
        if isinstance(index, dict) and index.get("kind") == "range" and index.get("name") is not None
    ]


def _column(chunks: Any, missing: frozenset[str]) -> TextColumn | NumberColumn:
    """Convert one column of pyarrow's."""
    types = package("pyarrow.types", "reading Parquet")
    kind = chunks.type
    if types.is_integer(kind) or types.is_floating(kind):
        known = chunks.is_valid().to_numpy()
        numbers = (chunks if known.all() else chunks.fill_null(0)).to_numpy()
        if types.is_floating(kind):
            known &= ~np.isnan(numbers)
        return NumberColumn(numbers, known)
    if types.is_nested(kind):
        return TextColumn.of(
            None if value is None or (text := str(value).strip()) in missing else text
            for value in chunks.to_pylist()
        )
    coded = chunks.unify_dictionaries() if types.is_dictionary(kind) else chunks.dictionary_encode()
    coded = coded.combine_chunks()
    if hasattr(coded, "num_chunks"):  # older versions give a ChunkedArray back
        coded = coded.chunk(0) if coded.num_chunks else coded
    codes = coded.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int32)
    values = ["" if value is None else value for value in coded.dictionary.to_pandas()]
    return TextColumn.cleaned(codes, values, missing)
