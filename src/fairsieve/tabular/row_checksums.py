"""Checksums of a table and of its rows, which tell whether answers belong to them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairsieve.tabular.reading.columns import exact_value
from fairsieve.tabular.reading.table import InputTable, TextColumn

__all__ = ["row_checksums", "table_checksum"]


def row_checksums(table: InputTable, places: NDArray[Any] | Sequence[int]) -> list[str]:
    """Compute a checksum of everything that stands in some rows.

    It does not depend on how a number is written (1 or 1.0), on separators or on the order of columns. It begins with
    a letter, so that no spreadsheet takes it for a number.
    """
    rows = table.take(np.asarray(places, dtype=np.int64))
    names = sorted(rows.columns)
    columns = [rows.columns[name].tolist() for name in names]
    decimal = table.reading.decimal
    found = []
    for values in zip(*columns, strict=True):
        texts = [None if value is None else exact_value(value, decimal) for value in values]
        content = json.dumps([names, texts], ensure_ascii=True)
        found.append("r" + hashlib.sha256(content.encode()).hexdigest()[:12])
    return found


def table_checksum(table: InputTable) -> str:
    """Compute a checksum of a whole table as it was read."""
    found = hashlib.sha256(json.dumps([list(table.columns), len(table)]).encode())
    for column in table.columns.values():
        if isinstance(column, TextColumn):
            found.update(json.dumps(column.values.tolist()).encode())
            found.update(np.ascontiguousarray(column.codes).tobytes())
        else:
            found.update(np.ascontiguousarray(column.numbers).tobytes())
            found.update(np.ascontiguousarray(column.known).tobytes())
    return found.hexdigest()[:16]
