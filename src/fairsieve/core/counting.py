"""Answering the walk's questions over an array, in compiled code."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairsieve.core.compiled import compiled
from fairsieve.core.walk import KEY, ON_INDEX, PREFIX, SHIFT, WIDTH, Walk, advance, digit_width, new_walk

__all__ = ["select_bits", "select_on_cpu"]


@compiled
def key_of(bits: Any, lowest: Any) -> Any:
    """The bit pattern of a float as an integer that orders like the float (−0 equals 0)."""
    return np.int64(bits) if bits >= 0 else np.int64(lowest) - np.int64(bits)


@compiled
def key_span(bits: NDArray[Any], lowest: Any) -> Any:
    """The smallest key and the distance to the largest."""
    smallest = largest = key_of(bits[0], lowest)
    for pattern in bits:
        key = key_of(pattern, lowest)
        smallest = min(smallest, key)
        largest = max(largest, key)
    return smallest, np.uint64(largest) - np.uint64(smallest)


@compiled
def count_digits(
    bits: NDArray[Any],
    lowest: Any,
    smallest: Any,
    codes: NDArray[Any],
    window: NDArray[np.uint64],
    cells: int,
) -> NDArray[np.int64]:
    """Samples of each cell by the digit that the window asks for."""
    width, shift = window[WIDTH], window[SHIFT]
    counts = np.zeros((cells, 1 << int(width)), np.int64)
    mask = np.uint64((1 << int(width)) - 1)
    base = np.uint64(smallest)
    on_index = window[ON_INDEX] != np.uint64(0)
    # `order >> shift` has the prefix above the digit; compared whole, since shifting by 64 is undefined.
    first = window[PREFIX] << width
    last = first | mask
    for i in range(bits.size):
        order = np.uint64(key_of(bits[i], lowest)) - base
        if on_index:
            if order != window[KEY]:
                continue
            order = np.uint64(i)
        digits = order >> shift
        if first <= digits <= last:
            counts[codes[i], digits & mask] += 1
    return counts


@compiled
def walk_over(
    bits: NDArray[Any], lowest: Any, codes: NDArray[Any], ratios: NDArray[np.float64], budget: int, width: int
) -> Any:
    """Run the walk over the losses' bit patterns; returns it with the smallest key."""
    smallest, span = key_span(bits, lowest)
    walk = new_walk(ratios, budget, span, bits.size, width)
    while not advance(walk, count_digits(bits, lowest, smallest, codes, walk.window, ratios.size)):
        pass
    return walk, smallest


@compiled
def take(
    bits: NDArray[Any], lowest: Any, smallest: Any, codes: NDArray[Any], walk: Walk
) -> NDArray[np.int64]:
    """The samples below their cell's closing point, ascending."""
    chosen = np.empty(walk.taken.sum(), np.int64)
    filled = 0
    base = np.uint64(smallest)
    key_limit, index_limit = walk.key_limit, walk.index_limit
    for i in range(bits.size):
        order = np.uint64(key_of(bits[i], lowest)) - base
        limit = key_limit[codes[i]]
        if order < limit or (order == limit and np.uint64(i) < index_limit[codes[i]]):
            chosen[filled] = i
            filled += 1
    return chosen


@compiled
def select_bits(
    bits: NDArray[Any], lowest: Any, codes: NDArray[Any], ratios: NDArray[np.float64], budget: int, width: int
) -> Any:
    """Indices and counts of the selection."""
    walk, smallest = walk_over(bits, lowest, codes, ratios, budget, width)
    return take(bits, lowest, smallest, codes, walk), walk.taken


def select_on_cpu(
    bits: NDArray[np.signedinteger[Any]], codes: NDArray[Any], ratios: NDArray[np.float64], budget: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Ascending indices, and counts per cell, of the selection by the losses' bit patterns."""
    lowest = np.int64(np.iinfo(bits.dtype).min)
    width = digit_width(bits.size, ratios.size)
    indices, taken = select_bits(bits, lowest, codes, ratios, budget, width)
    return indices, taken
