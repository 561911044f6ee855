"""Codes of integers, by a table in place of a sort."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["WIDEST", "cross", "rank_integers"]

WIDEST = 2**16  # values between the least and the greatest that a table may have
CHUNK = 2**18  # values looked up together, so that little is held besides the answer


def rank_integers(array: NDArray[Any]) -> tuple[NDArray[Any], list[Any]] | None:
    """Return each value's place among those that occur, and these in order.

    None for what is no integer or spreads too far for a table.

    >>> codes, found = rank_integers(np.array([7, -1, 7]))
    >>> codes.tolist(), found
    ([1, 0, 1], [-1, 7])
    """
    if array.dtype.kind not in "iub" or array.size == 0:
        return None
    numbers = array.view(np.uint8) if array.dtype.kind == "b" else array
    least, greatest = int(numbers.min()), int(numbers.max())
    if greatest - least >= WIDEST:
        return None
    is_found = np.zeros(greatest - least + 1, bool)
    for first in range(0, len(array), CHUNK):
        is_found[_offsets(numbers[first : first + CHUNK], least)] = True
    found = np.flatnonzero(is_found)
    places = np.zeros(len(is_found), np.min_scalar_type(len(found) - 1))
    places[found] = np.arange(len(found))
    codes = np.empty(len(array), places.dtype)
    for first in range(0, len(array), CHUNK):
        codes[first : first + CHUNK] = places[_offsets(numbers[first : first + CHUNK], least)]
    values = [least + place for place in found.tolist()]  # in Python's integers: uint64 may be beyond int64
    return codes, [bool(value) for value in values] if array.dtype.kind == "b" else values


def _offsets(numbers: NDArray[Any], least: int) -> NDArray[np.int64]:
    """Return the distances of integers from the least of them."""
    if numbers.dtype.kind == "u":
        return np.asarray((numbers - numbers.dtype.type(least)).astype(np.int64))
    return np.asarray(numbers.astype(np.int64) - least)


def cross(rows: NDArray[Any], columns: NDArray[Any], width: int, codes: NDArray[Any]) -> None:
    """Write the cells of rows and columns into ``codes``."""
    for first in range(0, len(codes), CHUNK):
        part = slice(first, first + CHUNK)
        codes[part] = rows[part].astype(np.int64) * width + columns[part]
