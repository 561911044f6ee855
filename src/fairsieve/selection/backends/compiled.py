"""Answering the walk's questions over an array, in compiled code."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairsieve.selection.backends.halves import MANY, both_halves
from fairsieve.selection.backends.jit import compiled
from fairsieve.selection.search import (
    KEY,
    ON_INDEX,
    PREFIX,
    SHIFT,
    WIDTH,
    Walk,
    advance,
    asked_digit,
    digit_width,
    new_walk,
)

__all__ = ["count_digits", "key_of", "key_span", "select_bits", "select_on_cpu"]

FEW = 16  # a digit with less than one in so many of the samples is worth listing


@compiled
def key_of(bits: Any, lowest: Any) -> Any:
    """The bit pattern of a float as an integer that orders like the float (−0 equals 0)."""
    return np.int64(bits) if bits >= 0 else np.int64(lowest) - np.int64(bits)


@compiled
def _key_ends(bits: NDArray[Any], lowest: Any) -> Any:
    """The smallest and the largest key."""
    smallest = largest = key_of(bits[0], lowest)
    for pattern in bits:
        key = key_of(pattern, lowest)
        smallest = min(smallest, key)
        largest = max(largest, key)
    return smallest, largest


@compiled
def key_span(bits: NDArray[Any], lowest: Any) -> Any:
    """The smallest key and the distance to the largest."""
    smallest, largest = _key_ends(bits, lowest)
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
    return count_part(bits, lowest, smallest, codes, np.zeros(1, np.int64), window, cells)


@compiled
def count_part(
    bits: NDArray[Any],
    lowest: Any,
    smallest: Any,
    codes: NDArray[Any],
    index: NDArray[np.int64],
    window: NDArray[np.uint64],
    cells: int,
) -> NDArray[np.int64]:
    """:func:`count_digits` of some of the samples: those of ``index``, or those from its only element on."""
    width, shift = window[WIDTH], window[SHIFT]
    counts = np.zeros((cells, 1 << int(width)), np.int64)
    mask = np.uint64((1 << int(width)) - 1)
    base = np.uint64(smallest)
    on_index = window[ON_INDEX] != np.uint64(0)
    # `order >> shift` has the prefix above the digit; compared whole, since shifting by 64 is undefined.
    first = window[PREFIX] << width
    last = first | mask
    is_listed = index.size == bits.size
    for i in range(bits.size):
        order = np.uint64(key_of(bits[i], lowest)) - base
        if on_index:
            if order != window[KEY]:
                continue
            order = np.uint64(index[i]) if is_listed else np.uint64(index[0] + i)
        digits = order >> shift
        if first <= digits <= last:
            counts[codes[i], digits & mask] += 1
    return counts


@compiled
def _list_digit(
    bits: NDArray[Any], lowest: Any, smallest: Any, begin: int, shift: Any, digit: Any, room: int
) -> NDArray[np.int64]:
    """Which samples have one digit of the first window, counted from ``begin``."""
    found = np.empty(room, np.int64)
    filled = 0
    base = np.uint64(smallest)
    for i in range(bits.size):
        if (np.uint64(key_of(bits[i], lowest)) - base) >> shift == digit and filled < room:
            found[filled] = begin + i
            filled += 1
    return found[:filled]


@compiled
def _walk_over(
    bits: NDArray[Any], lowest: Any, codes: NDArray[Any], ratios: NDArray[np.float64], budget: int, width: int
) -> Any:
    """Run the walk over the losses' bit patterns; returns it with the smallest key."""
    smallest, span = key_span(bits, lowest)
    walk = new_walk(ratios, budget, span, bits.size, width)
    while not advance(walk, count_digits(bits, lowest, smallest, codes, walk.window, ratios.size)):
        pass
    return walk, smallest


@compiled
def _take(
    bits: NDArray[Any],
    lowest: Any,
    smallest: Any,
    codes: NDArray[Any],
    walk: Walk,
    chosen: NDArray[np.int64],
    first: int,
    last: int,
) -> None:
    """Write which samples of [first, last) lie below their cell's closing point, ascending.

    They fill ``chosen`` from its beginning when they are the first samples, else up to its end.
    """
    base = np.uint64(smallest)
    key_limit, index_limit = walk.key_limit, walk.index_limit
    step = 1 if first == 0 else -1
    i, place = (first, 0) if first == 0 else (last - 1, chosen.size - 1)
    for _ in range(last - first):
        order = np.uint64(key_of(bits[i], lowest)) - base
        limit = key_limit[codes[i]]
        if order < limit or (order == limit and np.uint64(i) < index_limit[codes[i]]):
            chosen[place] = i
            place += step
        i += step


@compiled
def select_bits(
    bits: NDArray[Any], lowest: Any, codes: NDArray[Any], ratios: NDArray[np.float64], budget: int, width: int
) -> Any:
    """Indices and counts of the selection."""
    walk, smallest = _walk_over(bits, lowest, codes, ratios, budget, width)
    chosen = np.empty(walk.taken.sum(), np.int64)
    _take(bits, lowest, smallest, codes, walk, chosen, 0, bits.size)
    return chosen, walk.taken


def select_on_cpu(
    bits: NDArray[np.signedinteger[Any]],
    codes: NDArray[Any],
    ratios: NDArray[np.float64],
    budget: int,
    infinity: int,
) -> tuple[NDArray[np.int64], NDArray[np.int64]] | None:
    """Ascending indices, and counts per cell, of the selection by the losses' bit patterns.

    ``infinity`` is the bit pattern of the largest loss there may be; None when a loss is NaN.
    """
    n, lowest = bits.size, np.int64(np.iinfo(bits.dtype).min)
    width = digit_width(n, ratios.size)
    ends = (
        both_halves(n, lambda a, b: _key_ends(bits[a:b], lowest)) if n >= MANY else [_key_ends(bits, lowest)]
    )
    smallest, largest = min(low for low, _ in ends), max(high for _, high in ends)
    if smallest < -infinity or largest > infinity:
        return None
    if n < MANY:
        indices, taken = select_bits(bits, lowest, codes, ratios, budget, width)
        return indices, taken
    walk = new_walk(ratios, budget, np.uint64(int(largest) - int(smallest)), n, width)
    _walk_in_halves(walk, bits, lowest, smallest, codes)
    chosen = np.empty(walk.taken.sum(), np.int64)
    both_halves(n, lambda a, b: _take(bits, lowest, smallest, codes, walk, chosen, a, b))
    return chosen, walk.taken


def _walk_in_halves(walk: Walk, bits: NDArray[Any], lowest: Any, smallest: Any, codes: NDArray[Any]) -> None:
    """Run the walk with two threads; what lies in the digit where it zooms is listed once, if little."""
    n, cells, top = bits.size, walk.ratios.size, walk.window[SHIFT]

    def count(a: int, b: int) -> NDArray[np.int64]:
        start = np.full(1, a)
        return count_part(bits[a:b], lowest, smallest, codes[a:b], start, walk.window, cells)

    def list_part(a: int, b: int) -> NDArray[np.int64]:
        return _list_digit(bits[a:b], lowest, smallest, a, top, np.uint64(digit), size)

    digit, some = -1, None
    counts = np.add(*both_halves(n, count))
    while not advance(walk, counts):
        if asked_digit(walk.window, top) != digit:
            digit = asked_digit(walk.window, top)
            size = int(walk.top[:, digit].sum() - (walk.top[:, digit - 1].sum() if digit else 0))
            some = np.concatenate(both_halves(n, list_part)) if size * FEW < n else None
        if some is None:
            counts = np.add(*both_halves(n, count))
        else:
            counts = count_part(bits[some], lowest, smallest, codes[some], some, walk.window, cells)
