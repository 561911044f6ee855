"""The backend in NumPy: nothing to compile, and fast enough for few samples."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fairsieve.errors import InvalidInputError
from fairsieve.selection.backends.base import Keys, SearchBackend, check_shape, refuse_nan
from fairsieve.selection.batches import Draw, draw_batches
from fairsieve.selection.cells import Cells, as_array
from fairsieve.selection.exact_sums import MINUS, NOT, PLUS, SLOTS, as_digits, limbs
from fairsieve.selection.search import (
    KEY,
    ON_INDEX,
    PREFIX,
    SHIFT,
    TOP,
    WIDTH,
    Walk,
    asked_digit,
)

__all__ = ["HostBackend", "Measured", "NumpyBackend"]

CHUNK = 2**16  # samples counted together, so that they stay in the cache
MOST = 2**61  # what limbs of parts of the samples may add up to


class Measured(NamedTuple):
    """Losses, contiguous float32 or float64, and signals of shape (targets, samples)."""

    losses: NDArray[np.floating[Any]]
    signals: NDArray[np.floating[Any]]


class HostBackend(SearchBackend):
    """What the backends over NumPy arrays have in common. Selections are ascending indices."""

    def __init__(self, cells: Cells) -> None:
        self.cells = cells
        self.codes = cells.host_codes

    def measure(self, losses: Any, signals: Any | None) -> Measured:
        """Take in arrays, lists or tensors."""
        values = _as_losses(losses, len(self.cells))
        if signals is None:
            return Measured(values, values[None])
        rows = as_array("signals", signals)
        return Measured(values, np.ascontiguousarray(rows, None if rows.dtype.kind == "f" else np.float64))

    def hold(self, indices: Any | None) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the selection of the given ascending indices, and its counts."""
        if indices is None:
            return np.arange(len(self.cells)), self.cells.counts.reshape(-1).copy()
        selected = np.asarray(as_array("indices", indices), np.int64)
        return selected, np.bincount(self.codes[selected], minlength=self.cells.counts.size)

    def indices(self, selected: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the ascending indices of a selection, which are the selection."""
        return selected


class NumpyBackend(HostBackend):
    """Answers in NumPy operations."""

    name = "numpy"

    def keys(self, measured: Measured, by_cell: bool, first: int = 0) -> Keys:
        """Return the losses as keys."""
        return _NumpyKeys(measured.losses, self.codes if by_cell else None, first)

    def sum_signals(self, measured: Measured, selected: NDArray[np.int64]) -> NDArray[np.int64]:
        """Add up the signals of the selected samples by cell, some samples at a time: digits add up."""
        found = np.zeros((len(measured.signals), self.cells.counts.size, SLOTS), np.int64)
        for part in _chunks(len(selected)):
            found += self._sum_signals(measured.signals, selected[part])
        return found

    def _sum_signals(
        self, signals: NDArray[np.floating[Any]], selected: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        cells, codes = self.cells.counts.size, self.codes[selected]
        order = np.argsort(codes, kind="stable")
        selected, ends = selected[order], np.cumsum(np.bincount(codes, minlength=cells))
        totals = [_sums_of_runs(row[selected].astype(np.float64), ends) for row in signals]
        return np.array(totals, np.int64).reshape(len(signals), cells, SLOTS)

    def draw(self, selected: NDArray[np.int64], counts: NDArray[np.int64], draw: Draw) -> NDArray[np.int64]:
        """Draw an epoch's batches."""
        sizes = counts if draw.by_cell else counts.sum(keepdims=True)
        return draw_batches(selected, self.codes, sizes, draw.shares, draw.batches, draw.seed, draw.epoch)


def _sums_of_runs(values: NDArray[np.float64], ends: NDArray[np.int64]) -> list[list[int]]:
    """Return the digits of the exact sums of consecutive runs of values, which end at ``ends``."""
    parts: list[list[tuple[int, int]]] = [[] for _ in ends]
    finite = np.isfinite(values)
    kinds = [np.zeros(len(ends), np.int64)] * 3
    if not finite.all():
        kinds = [_differences(kind, ends) for kind in (values == np.inf, values == -np.inf, values != values)]
        values = np.where(finite, values, 0.0)
    largest = np.abs(values).max(initial=0.0)
    while largest > 0:
        shift, unit = limbs(largest, len(values))
        whole = np.trunc(np.ldexp(values, shift))
        for cell, number in enumerate(_differences(whole.astype(np.int64), ends).tolist()):
            if number:
                parts[cell].append((number, unit))
        values = values - np.ldexp(whole, unit)
        largest = np.abs(values).max()
    digits = [as_digits(part) for part in parts]
    for cell, row in enumerate(digits):
        row[PLUS], row[MINUS], row[NOT] = (int(kind[cell]) for kind in kinds)
    return digits


def _differences(values: NDArray[Any], ends: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the sums of consecutive runs of integers, by differences of a running sum."""
    running = np.concatenate([[0], np.cumsum(values, dtype=np.int64)])
    return np.asarray(np.diff(running[np.concatenate([[0], ends])]))


class _NumpyKeys(Keys):
    """Keys, and the samples of the digit of the first window that was last asked about."""

    def __init__(self, losses: NDArray[np.floating[Any]], codes: NDArray[Any] | None, first: int) -> None:
        self.bits = losses.view(f"i{losses.itemsize}")
        self.codes, self.first = codes, first
        self.least, self.greatest = np.iinfo(np.int64).max, -np.iinfo(np.int64).max
        for part in _chunks(len(losses)):
            key = self._key(part)
            self.least, self.greatest = min(self.least, int(key.min())), max(self.greatest, int(key.max()))
        self.digit = -1
        self.some: NDArray[np.int64] = np.zeros(0, np.int64)
        self.top = 0

    def count(self, walk: Walk, least: int) -> NDArray[np.int64]:
        """Count by chunks, or among the few samples of one digit of the first window."""
        cells, window = walk.taken.size, walk.window
        if window[TOP]:
            self.top = int(window[SHIFT])
            return sum(
                _count(self._order(part, least), self._codes(part), None, window, cells)
                for part in _chunks(len(self.bits))
            ) + np.zeros((cells, 1 << int(window[WIDTH])), np.int64)
        digit = asked_digit(window, self.top)
        if digit != self.digit:
            self.digit, top = digit, np.uint64(self.top)
            found = [
                np.flatnonzero(self._order(part, least) >> top == np.uint64(digit)) + part.start
                for part in _chunks(len(self.bits))
            ]
            self.some = np.concatenate([np.zeros(0, np.int64), *found])
        return _count(
            self._order(self.some, least), self._codes(self.some), self.some + self.first, window, cells
        )

    def take(self, walk: Walk, least: int) -> NDArray[np.int64]:
        """Return the samples below their cell's closing point, ascending."""
        room = min(int(walk.taken.sum()), len(self.bits))  # other workers' samples are counted too
        found, filled = np.empty(room, np.int64), 0
        for part in _chunks(len(self.bits)):
            order = self._order(part, least)
            codes = self._codes(part)
            limit = walk.key_limit[codes]
            tied = np.flatnonzero(order == limit)
            is_below = order < limit
            index_limit = walk.index_limit[codes if np.ndim(codes) == 0 else codes[tied]]
            is_below[tied] = (tied + part.start + self.first).astype(np.uint64) < index_limit
            own = np.flatnonzero(is_below) + part.start
            found[filled : filled + len(own)] = own
            filled += len(own)
        return found[:filled]

    def _key(self, part: Any) -> NDArray[np.int64]:
        """Return whole numbers that order as some samples' losses do."""
        bits: NDArray[np.int64] = self.bits[part].astype(np.int64, copy=False)
        if bits.min(initial=0) >= 0:
            return bits
        return np.where(bits >= 0, bits, np.iinfo(self.bits.dtype).min - bits)  # −0 equals 0

    def _order(self, part: Any, least: int) -> NDArray[np.uint64]:
        """Return the distance of some samples' keys from the least."""
        return np.asarray(
            (self._key(part) - np.int64(least)).view(np.uint64)
        )  # may wrap for float64 of both signs

    def _codes(self, part: Any) -> Any:
        return 0 if self.codes is None else self.codes[part]


def _chunks(samples: int) -> list[slice]:
    return [slice(first, min(first + CHUNK, samples)) for first in range(0, samples, CHUNK)]


def _count(
    order: NDArray[np.uint64],
    codes: Any,
    index: NDArray[np.int64] | None,
    window: NDArray[np.uint64],
    cells: int,
) -> NDArray[np.int64]:
    """Count some samples by cell and by the digit that the window asks for."""
    width, shift = int(window[WIDTH]), window[SHIFT]
    if window[ON_INDEX]:
        assert index is not None
        equal = np.flatnonzero(order == window[KEY])
        order, codes = index[equal].astype(np.uint64), codes if np.ndim(codes) == 0 else codes[equal]
    digits = (order >> shift) - (window[PREFIX] << np.uint64(width))
    if not window[TOP]:
        inside = np.flatnonzero(digits < np.uint64(1 << width))
        digits, codes = digits[inside], codes if np.ndim(codes) == 0 else codes[inside]
    flat = (
        digits.view(np.int64)
        if np.ndim(codes) == 0
        else (codes.astype(np.int64) << width) + digits.view(np.int64)
    )
    return np.bincount(flat, minlength=cells << width).reshape(cells, 1 << width)


def _as_losses(losses: Any, samples: int) -> NDArray[np.floating[Any]]:
    """Return losses as a checked, contiguous NumPy array of float32 or float64.

    Narrower floats become float32, which orders them alike.
    """
    values = as_array("losses", losses)
    if values.dtype.kind not in "fiub":
        raise InvalidInputError(f"losses must be real numbers; got {values.dtype}")
    is_single = values.dtype.kind == "f" and values.dtype.itemsize <= 4
    values = np.require(values, np.float32 if is_single else np.float64, ["C", "W"])
    check_shape(values, samples)
    if samples and np.isnan(values.min()):  # NaN is the least and the greatest
        missing = np.isnan(values)
        refuse_nan(int(missing.sum()), int(missing.argmax()))
    return values
