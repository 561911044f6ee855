"""Encode any table of features as numbers, for the estimate of the label noise; the model gets the table itself."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing

from fairsieve.inputs import dense
from fairsieve.selection.cells import as_array
from fairsieve.selection.missing import missing_in

__all__ = ["encode_table"]

MOST_VALUES = 20  # most indicator columns for one column of categories; rarer values get none


def encode_table(X: Any) -> NDArray[np.float64]:
    """Keep numeric columns, with missing values replaced by the median; encode each category as a column.

    >>> encode_table([[1.0, "red"], [np.nan, "blue"], [3.0, None]]).tolist()
    [[1.0, 0.0, 0.0, 1.0], [2.0, 0.0, 1.0, 0.0], [3.0, 1.0, 0.0, 0.0]]
    """
    table: Any = X
    if hasattr(X, "toarray"):
        table = dense(X)
    elif not hasattr(X, "columns"):
        table = np.asarray(X)
        if table.dtype.kind in "US":  # a list of mixed rows
            table = np.asarray(X, dtype=object)
    if isinstance(table, np.ndarray):
        table = table.reshape(len(table), -1)
    if isinstance(table, np.ndarray) and table.dtype.kind in "fiub" and np.isfinite(table).all():
        return table.astype(np.float64)
    columns = [_safe_indexing(table, index, axis=1) for index in range(table.shape[1])]
    return np.column_stack([_encode_column(as_array("X", column)) for column in columns])


def _encode_column(column: NDArray[Any]) -> NDArray[np.float64]:
    """Encode one column as one or more numeric columns."""
    if column.dtype.kind in "mM":
        numbers = column.astype(np.int64).astype(np.float64)
        return _fill_missing(np.where(np.isnat(column), np.nan, numbers))
    missing = missing_in(column)
    try:
        numbers = np.full(len(column), np.nan)
        numbers[~missing] = column[~missing].astype(np.float64)
    except (TypeError, ValueError):
        return _make_indicators(np.where(missing, "", column.astype(str)))
    return _fill_missing(numbers)


def _fill_missing(numbers: NDArray[np.float64]) -> NDArray[np.float64]:
    """Replace missing values by the median, or by zeros where all are missing."""
    known = np.isfinite(numbers)
    middle = float(np.median(numbers[known])) if known.any() else 0.0
    return np.where(known, numbers, middle)


def _make_indicators(values: NDArray[np.str_]) -> NDArray[np.float64]:
    """Make an indicator column for each of the most common values."""
    _, codes, counts = np.unique(values, return_inverse=True, return_counts=True)
    common = np.sort(np.argsort(-counts, kind="stable")[:MOST_VALUES])
    return np.asarray(codes.reshape(-1, 1) == common, dtype=np.float64)
