"""The backend in compiled code, on as many threads as pay."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from fairsieve.selection.backends import compiled_tables  # noqa: F401 - the functions used below
from fairsieve.selection.backends.base import Keys
from fairsieve.selection.backends.compiled_batches import (
    count_cells,
    draw_compiled,
    draw_rows,
    group_by_cell,
)
from fairsieve.selection.backends.compiled_sums import sum_by_cell, sum_digits
from fairsieve.selection.backends.jit import compiled
from fairsieve.selection.backends.numpy import HostBackend, Measured
from fairsieve.selection.batches import Draw
from fairsieve.selection.search import (
    KEY,
    ON_INDEX,
    PREFIX,
    SHIFT,
    TOP,
    WIDTH,
    Walk,
    advance,
    asked_digit,
    digit_width,
    new_walk,
)

__all__ = [
    "CompiledBackend",
    "count_cells",
    "draw_compiled",
    "select_bits",
    "sum_by_cell",
]

Result = TypeVar("Result")

MANY = 2**18  # samples from which a second thread pays
THREADS = min(8, os.cpu_count() or 1)
FEW = 16  # a digit with less than one in so many of the samples is worth listing


@compiled
def _key(bits: Any, lowest: Any) -> Any:
    """Return the bit pattern of a float as an integer that orders like the float (−0 equals 0)."""
    return np.int64(bits) if bits >= 0 else np.int64(lowest) - np.int64(bits)


@compiled
def _key_ends(bits: NDArray[Any], lowest: Any) -> Any:
    """Return the smallest and the largest key."""
    smallest = largest = _key(bits[0], lowest)
    for pattern in bits:
        key = _key(pattern, lowest)
        smallest = min(smallest, key)
        largest = max(largest, key)
    return smallest, largest


@compiled
def _count_digits(
    bits: NDArray[Any],
    lowest: Any,
    smallest: Any,
    codes: NDArray[Any],
    index: NDArray[np.int64],
    window: NDArray[np.uint64],
    cells: int,
) -> NDArray[np.int64]:
    """Count samples by cell and by the digit that the window asks for.

    The samples' numbers are ``index``, or count from its only element on.
    """
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
        order = np.uint64(_key(bits[i], lowest)) - base
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
    """Return which samples have one digit of the first window, counted from ``begin``."""
    found = np.empty(room, np.int64)
    filled = 0
    base = np.uint64(smallest)
    for i in range(bits.size):
        if (np.uint64(_key(bits[i], lowest)) - base) >> shift == digit and filled < room:
            found[filled] = begin + i
            filled += 1
    return found[:filled]


@compiled
def _take(
    bits: NDArray[Any],
    lowest: Any,
    smallest: Any,
    codes: NDArray[Any],
    walk: Walk,
    begin: int,
    number: int,
    selected: NDArray[np.int64],
) -> int:
    """Write which samples lie below their cell's closing point, as far as there is room; return how many do.

    Positions are counted from ``begin``, and numbers, which decide among equal losses, from ``number``.
    """
    base = np.uint64(smallest)
    key_limit, index_limit = walk.key_limit, walk.index_limit
    filled = 0
    for i in range(bits.size):
        order = np.uint64(_key(bits[i], lowest)) - base
        limit = key_limit[codes[i]]
        if order < limit or (order == limit and np.uint64(number + i) < index_limit[codes[i]]):
            if filled < selected.size:
                selected[filled] = begin + i
            filled += 1
    return filled


@compiled
def select_bits(
    bits: NDArray[Any], lowest: Any, codes: NDArray[Any], ratios: NDArray[np.float64], budget: int, width: int
) -> Any:
    """Return indices and counts of the selection by the losses' bit patterns, of at least one sample."""
    smallest, largest = _key_ends(bits, lowest)
    walk = new_walk(ratios, budget, np.uint64(largest) - np.uint64(smallest), bits.size, width)
    first = np.zeros(1, np.int64)
    while not advance(walk, _count_digits(bits, lowest, smallest, codes, first, walk.window, ratios.size)):
        pass
    selected = np.empty(walk.taken.sum(), np.int64)
    _take(bits, lowest, smallest, codes, walk, 0, 0, selected)
    return selected, walk.taken


def _in_parts(size: int, call: Callable[[int, int], Result], samples: int | None = None) -> list[Result]:
    """Return ``call(first, last)`` for parts of ``range(size)``, each on a thread of its own where that pays.

    For calls of kernels, which release the interpreter lock. It pays by the number of samples that are
    looked at, which is ``size`` when None.
    """
    threads = THREADS if (size if samples is None else samples) >= MANY else 1
    edges = [size * part // threads for part in range(threads + 1)]
    if threads == 1:
        return [call(0, size)]
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(call, edges[:-1], edges[1:]))


class CompiledBackend(HostBackend):
    """Answers in compiled code."""

    name = "compiled"

    def keys(self, measured: Measured, by_cell: bool, first: int = 0) -> Keys:
        """Return the losses as keys."""
        return _CompiledKeys(measured.losses, self._codes(by_cell), first)

    def _codes(self, by_cell: bool) -> NDArray[Any]:
        return self.codes if by_cell else np.zeros_like(self.codes)

    def select(
        self, measured: Measured, bounds: NDArray[np.float64] | None, budget: int
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Select in one kernel where the samples are few."""
        losses = measured.losses
        if not 0 < len(losses) < MANY or (bounds is None and budget >= len(losses)):
            return super().select(measured, bounds, budget)
        bits = losses.view(f"i{losses.itemsize}")
        lowest = np.int64(np.iinfo(bits.dtype).min)
        ratios = np.ones((1, 1)) if bounds is None else bounds
        width = digit_width(len(bits), ratios.size)
        selected, counts = select_bits(bits, lowest, self._codes(bounds is not None), ratios, budget, width)
        return (selected, counts) if bounds is not None else self.hold(selected)

    def sum_signals(self, measured: Measured, selected: NDArray[np.int64]) -> NDArray[np.int64]:
        """Add up the signals of the selected samples by cell."""
        signals, cells = measured.signals, self.cells.counts.size
        parts = _in_parts(len(selected), lambda a, b: sum_digits(signals, self.codes, selected[a:b], cells))
        return np.sum(parts, axis=0)  # type: ignore[no-any-return]

    def draw(self, selected: NDArray[np.int64], counts: NDArray[np.int64], draw: Draw) -> NDArray[np.int64]:
        """Draw an epoch's batches."""
        sizes = counts if draw.by_cell else counts.sum(keepdims=True)
        codes = self._codes(draw.by_cell)
        if len(selected) < MANY:
            return draw_compiled(selected, codes, sizes, draw.shares, draw.batches, draw.seed, draw.epoch)
        members = np.empty(len(selected), np.uint32 if len(codes) <= 2**32 else np.uint64)
        of_parts = _in_parts(len(selected), lambda a, b: (a, count_cells(selected[a:b], codes, sizes.size)))
        starts, filled = {}, np.cumsum(sizes) - sizes
        for first, own in of_parts:
            starts[first], filled = filled, filled + own
        _in_parts(len(selected), lambda a, b: group_by_cell(selected[a:b], codes, members, starts[a].copy()))
        drawn = np.empty((draw.batches, int(draw.shares.sum())), np.int64)
        drawing = members, sizes, draw.shares, draw.seed, draw.epoch, drawn
        _in_parts(draw.batches, lambda a, b: draw_rows(*drawing, a, b), len(selected))
        return drawn


class _CompiledKeys(Keys):
    """Keys, and the samples of the digit of the first window that was last asked about, if they are few."""

    def __init__(self, losses: NDArray[np.floating[Any]], codes: NDArray[Any], first: int) -> None:
        self.bits, self.codes, self.first = losses.view(f"i{losses.itemsize}"), codes, first
        self.lowest = np.int64(np.iinfo(self.bits.dtype).min)
        self.least, self.greatest = np.iinfo(np.int64).max, -np.iinfo(np.int64).max
        if len(losses):
            ends = _in_parts(len(losses), lambda a, b: _key_ends(self.bits[a:b], self.lowest))
            self.least, self.greatest = int(min(low for low, _ in ends)), int(max(high for _, high in ends))
        self.digit = -1
        self.some: NDArray[np.int64] | None = None
        self.top = np.uint64(0)

    def count(self, walk: Walk, least: int) -> NDArray[np.int64]:
        """Count on several threads, or among the few samples of one digit of the first window."""
        bits, cells, window, smallest = self.bits, walk.taken.size, walk.window, np.int64(least)
        if window[TOP]:
            self.top = window[SHIFT]
        elif asked_digit(window, self.top) != self.digit:
            self.digit = asked_digit(window, self.top)
            self._list(walk, smallest)
        if self.some is not None:
            index = self.some + self.first
            return _count_digits(
                bits[self.some], self.lowest, smallest, self.codes[self.some], index, window, cells
            )
        parts = _in_parts(
            len(bits),
            lambda a, b: _count_digits(
                bits[a:b], self.lowest, smallest, self.codes[a:b], np.full(1, self.first + a), window, cells
            ),
        )
        return np.sum(parts, axis=0)  # type: ignore[no-any-return]

    def _list(self, walk: Walk, smallest: Any) -> None:
        """List the samples of the digit asked about, if they are few."""
        digit = self.digit
        size = int(walk.top[:, digit].sum() - (walk.top[:, digit - 1].sum() if digit else 0))
        self.some = None
        if size * FEW < len(self.bits):
            wanted = np.uint64(digit)
            parts = _in_parts(
                len(self.bits),
                lambda a, b: _list_digit(self.bits[a:b], self.lowest, smallest, a, self.top, wanted, size),
            )
            self.some = np.concatenate(parts)

    def take(self, walk: Walk, least: int) -> NDArray[np.int64]:
        """Return the samples below their cell's closing point: count those of each part, then write them."""

        def take(a: int, b: int, selected: NDArray[np.int64]) -> int:
            part = self.bits[a:b], self.lowest, np.int64(least), self.codes[a:b]
            return int(_take(*part, walk, a, self.first + a, selected))

        none = np.zeros(0, np.int64)
        sizes = dict(_in_parts(len(self.bits), lambda a, b: (a, take(a, b, none))))
        starts = dict(zip(sizes, np.cumsum([0, *sizes.values()]).tolist(), strict=False))
        selected = np.empty(sum(sizes.values()), np.int64)
        _in_parts(len(self.bits), lambda a, b: take(a, b, selected[starts[a] : starts[a] + sizes[a]]))
        return selected


def warm_up_steps(backend: CompiledBackend, dtype: type) -> list[Callable[[], object]]:
    """Return calls that together compile every kernel for losses of one type, each a part of the time."""
    measured = backend.measure(np.arange(4, dtype=dtype), None)
    bits, lowest, codes = measured.losses.view(f"i{np.dtype(dtype).itemsize}"), np.int64(0), backend.codes
    lowest = np.int64(np.iinfo(bits.dtype).min)
    walk = new_walk(np.ones((1, 1)), 2, np.uint64(3), 4, 4)
    index, draw = np.arange(4), Draw(np.array([2]), 2, 0, 0, True)
    few = members = np.empty(4, np.uint32)
    return [
        lambda: sum_digits(measured.signals, codes, index, 1),
        lambda: _key_ends(bits, lowest),
        lambda: _count_digits(bits, lowest, np.int64(0), codes, np.zeros(1, np.int64), walk.window, 1),
        lambda: _list_digit(bits, lowest, np.int64(0), 0, np.uint64(0), np.uint64(1), 4),
        lambda: _take(bits, lowest, np.int64(0), codes, walk, 0, 0, np.zeros(0, np.int64)),
        lambda: backend.select(measured, np.ones((1, 1)), 2),
        lambda: backend.draw(index, np.array([4]), draw),
        lambda: group_by_cell(index, codes, members, np.zeros(1, np.int64)),
        lambda: draw_rows(few, np.array([4]), draw.shares, 0, 0, np.empty((2, 2), np.int64), 0, 2),
    ]
