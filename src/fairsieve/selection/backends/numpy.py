"""The backend in NumPy, which selects by counting digits of the losses' bits and sorts nothing."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fairsieve.errors import InvalidInputError
from fairsieve.selection.backends import Backend, Measured
from fairsieve.selection.batches import Draw, draw_batches
from fairsieve.selection.cells import Cells, Floats, Integers, Values, as_array, slices
from fairsieve.selection.search import Limits, Walk, Window

CHUNK = 2**16  # samples looked at together, so that they stay in the cache


class Chosen(NamedTuple):
    """A selection: ascending indices, and how many there are of each cell."""

    indices: Integers
    counts: Integers


class NumpyBackend(Backend):
    """Answers in NumPy operations."""

    def __init__(self, cells: Cells) -> None:
        super().__init__(cells)
        self.codes = cells.host_codes
        # The number of the first sample, and how many there are in all, on all workers.
        self.first, self.samples = 0, len(cells)

    def numbers(self, name: str, values: Any) -> NDArray[np.floating[Any]]:
        """Take in arrays, lists or tensors; return contiguous arrays."""
        array = as_array(name, values)
        if array.dtype.kind not in "fiub":
            raise InvalidInputError(f"{name} must be real numbers; got {array.dtype}")
        is_single = array.dtype.kind == "f" and array.dtype.itemsize <= 4
        return np.ascontiguousarray(array, np.float32 if is_single else np.float64)

    def hold(self, indices: Any | None) -> Any:
        """Return the selection of the given ascending indices."""
        if indices is None:
            return Chosen(np.arange(len(self.cells)), self.cells.counts.reshape(-1).copy())
        chosen = np.asarray(as_array("indices", indices), np.int64)
        return Chosen(chosen, np.bincount(self.codes[chosen], minlength=self.cells.counts.size))

    def sum_signals(self, measured: Measured, selected: Any) -> Floats:
        """Add up the signals of the selected samples and their squares by cell, some samples at a time."""
        cells = self.cells.counts.size
        sums = np.zeros((2, len(measured.signals), cells))
        for part in slices(len(selected.indices), CHUNK):
            some = selected.indices[part]
            codes = self.codes[some]
            for row, signal in enumerate(measured.signals):
                values = signal[some].astype(np.float64)
                sums[0, row] += np.bincount(codes, values, cells)
                sums[1, row] += np.bincount(codes, values**2, cells)
        return sums

    def select(self, measured: Measured, limits: Limits) -> Any:
        """Search the closing points and take the samples below them."""
        keys = Keys(measured.losses, self.codes, self.first)
        negated, greatest = self._max([-keys.least, keys.greatest]).tolist()
        keys.least = -negated
        walk = Walk(limits, max(0, greatest - keys.least), self.samples)  # less without samples
        while not walk.advance(self._sum(keys.count(walk.asked, limits.ratios.size))):
            pass
        return Chosen(keys.take(walk), walk.taken)

    def _sum(self, table: Integers) -> Integers:
        """Return the sum of every worker's table."""
        return table

    def _max(self, row: list[int]) -> Integers:
        """Return the largest of the workers' numbers, place by place."""
        return np.array(row)

    def count_below(self, measured: Measured, limits: Floats) -> Integers:
        """Count the samples of each cell whose loss is at most the limit of the cell."""
        counts = np.zeros(len(limits), np.int64)
        for part in slices(len(self.codes), CHUNK):
            codes = self.codes[part]
            counts += np.bincount(codes[measured.losses[part] <= limits[codes]], minlength=len(limits))
        return counts

    def draw(self, selected: Any, draw: Draw) -> Any:
        """Draw an epoch's batches."""
        return draw_batches(selected.indices, self.codes, selected.counts, draw)


class Keys:
    """Losses as integers of the same order, and the samples of the first window's digit that was last asked about.

    Parameters
    ----------
    losses : float array
    codes : integer array
        The cell of each sample.
    first : int
        The number of the first sample among those of all workers, which decides among equal losses.
    """

    def __init__(self, losses: NDArray[np.floating[Any]], codes: Values, first: int) -> None:
        self.bits = losses.view(f"i{losses.itemsize}")
        self.codes, self.first = codes, first
        # The least key is what others count from. Without samples here, it is greater than the greatest.
        self.least, self.greatest = np.iinfo(np.int64).max, -np.iinfo(np.int64).max
        if len(losses):
            self.least, self.greatest = self._key([losses.argmin(), losses.argmax()]).tolist()
        self.shift = self.digit = -1  # of the first window, and the digit of it that ``some`` have
        self.some: Integers = np.zeros(0, np.int64)

    def count(self, asked: Window, cells: int) -> Integers:
        """Count the samples by cell and digit: all, or the few of one digit of the first window."""
        if self.shift < 0:
            self.shift = asked.shift
            counts = np.zeros((cells, 1 << asked.width), np.int64)
            for part in slices(len(self.bits), CHUNK):
                digits = self._order(part) >> np.uint64(asked.shift)
                counts += _count(digits, self.codes[part], asked.width, cells)
            return counts
        digit = asked.first_digit(self.shift)
        if digit != self.digit:
            self.digit = digit
            of_digit = [
                np.flatnonzero(self._order(part) >> np.uint64(self.shift) == np.uint64(digit)) + part.start
                for part in slices(len(self.bits), CHUNK)
            ]
            self.some = np.concatenate([np.zeros(0, np.int64), *of_digit])
        some, order = self.some, self._order(self.some)
        if asked.key is not None:
            some = some[order == np.uint64(asked.key)]
            order = (some + self.first).astype(np.uint64)
        digits = (order >> np.uint64(asked.shift)) - np.uint64(asked.prefix << asked.width)
        inside = digits < np.uint64(1 << asked.width)
        return _count(digits[inside], self.codes[some[inside]], asked.width, cells)

    def take(self, walk: Walk) -> Integers:
        """Return the samples below their cell's closing point, ascending."""
        room = min(int(walk.taken.sum()), len(self.bits))  # other workers' samples are counted too
        taken, filled = np.empty(room, np.int64), 0
        for part in slices(len(self.bits), CHUNK):
            order, codes = self._order(part), self.codes[part]
            limit = walk.key_limit[codes]
            is_below = order < limit
            tied = np.flatnonzero(order == limit)
            number = (tied + part.start + self.first).astype(np.uint64)
            is_below[tied] = number < walk.index_limit[codes[tied]]
            below = np.flatnonzero(is_below) + part.start
            taken[filled : filled + len(below)] = below
            filled += len(below)
        return taken[:filled]

    def _key(self, part: Any) -> Integers:
        """Return whole numbers that order as some samples' losses do."""
        bits: Integers = self.bits[part].astype(np.int64, copy=False)
        if bits.min(initial=0) >= 0:
            return bits
        return np.where(bits >= 0, bits, np.iinfo(self.bits.dtype).min - bits)  # −0 equals 0

    def _order(self, part: Any) -> NDArray[np.uint64]:
        """Return the distance of some samples' keys from the least; it may wrap for float64 of both signs."""
        return (self._key(part) - np.int64(self.least)).view(np.uint64)


def _count(digits: NDArray[np.uint64], codes: Values, width: int, cells: int) -> Integers:
    """Count some samples by cell and digit."""
    flat = (codes.astype(np.int64) << width) + digits.view(np.int64)
    return np.bincount(flat, minlength=cells << width).reshape(cells, 1 << width)
