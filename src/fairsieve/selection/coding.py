"""Codes of integers, by a table in place of a sort."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairsieve.selection.backends.jit import compiled

__all__ = ["cross", "rank_integers"]

WIDEST = 2**16  # values between the least and the greatest that a table may have


def rank_integers(array: NDArray[Any]) -> tuple[NDArray[Any], list[Any]] | None:
    """Each value's place among those that occur, and these in order.

    None for what is no integer or spreads too far for a table.

    >>> codes, found = rank_integers(np.array([7, -1, 7]))
    >>> codes.tolist(), found
    ([1, 0, 1], [-1, 7])
    """
    if array.dtype.kind not in "iub" or array.size == 0 or not array.dtype.isnative:
        return None
    numbers = array.view(np.uint8) if array.dtype.kind == "b" else array
    least, greatest = int(numbers.min()), int(numbers.max())
    if greatest - least >= WIDEST:
        return None
    table = np.zeros(greatest - least + 1, np.uint16)
    _mark(numbers, numbers.dtype.type(least), table)
    found = np.flatnonzero(table)
    table[found] = np.arange(len(found))
    codes = np.empty(len(array), np.min_scalar_type(len(found) - 1))
    _look_up(numbers, numbers.dtype.type(least), table, codes)
    values = [least + place for place in found.tolist()]  # in Python's integers: uint64 may be beyond int64
    return codes, [bool(value) for value in values] if array.dtype.kind == "b" else values


@compiled
def _mark(values: NDArray[Any], least: Any, table: NDArray[np.uint16]) -> None:
    """Mark the values that occur."""
    for value in values:
        table[np.uint64(value) - np.uint64(least)] = 1


@compiled
def _look_up(values: NDArray[Any], least: Any, table: NDArray[np.uint16], codes: NDArray[Any]) -> None:
    for i in range(values.size):
        codes[i] = table[np.uint64(values[i]) - np.uint64(least)]


@compiled
def cross(rows: NDArray[Any], columns: NDArray[Any], width: int, codes: NDArray[Any]) -> None:
    """Cells of rows and columns."""
    for i in range(codes.size):
        codes[i] = np.int64(rows[i]) * width + np.int64(columns[i])
