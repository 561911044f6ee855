"""The backend in NumPy, which selects by counting digits of the losses' bits and sorts nothing."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fairsieve.errors import InvalidInputError
from fairsieve.selection.backends.base import Backend, check_shape, refuse_nan
from fairsieve.selection.batches import Draw, draw_batches
from fairsieve.selection.cells import Cells, as_array
from fairsieve.selection.search import Walk, Window, digit_width

__all__ = ["Keys", "Measured", "NumpyBackend"]

CHUNK = 2**16  # samples looked at together, so that they stay in the cache


class Measured(NamedTuple):
    """Losses, contiguous float32 or float64, and signals of shape (targets, samples)."""

    losses: NDArray[np.floating[Any]]
    signals: NDArray[np.floating[Any]]


class NumpyBackend(Backend):
    """Answers in NumPy operations. Selections are ascending indices."""

    name = "numpy"

    def __init__(self, cells: Cells) -> None:
        self.cells = cells
        self.codes = cells.host_codes
        self.first, self.samples = (
            0,
            len(cells),
        )  # the number of the first sample, and how many there are in all

    def measure(self, losses: Any, signals: Any | None) -> Measured:
        """Take in arrays, lists or tensors."""
        values = _as_losses(losses, len(self.cells))
        if signals is None:
            return Measured(values, values[None])
        rows = as_array("signals", signals)
        return Measured(values, np.ascontiguousarray(rows, None if rows.dtype.kind == "f" else np.float64))

    def hold(self, indices: Any | None) -> tuple[Any, NDArray[np.int64]]:
        """Return the selection of the given ascending indices, and its counts."""
        if indices is None:
            return np.arange(len(self.cells)), self.cells.counts.reshape(-1).copy()
        selected = np.asarray(as_array("indices", indices), np.int64)
        return selected, np.bincount(self.codes[selected], minlength=self.cells.counts.size)

    def indices(self, selected: Any) -> NDArray[np.int64]:
        """Return the ascending indices of a selection, which are the selection."""
        return selected  # type: ignore[no-any-return]

    def sum_signals(self, measured: Measured, selected: Any) -> NDArray[np.float64]:
        """Add up the signals of the selected samples and their squares by cell, some samples at a time."""
        cells = self.cells.counts.size
        sums = np.zeros((2, len(measured.signals), cells))
        for part in _chunks(len(selected)):
            some = selected[part]
            codes = self.codes[some]
            for row, signal in enumerate(measured.signals):
                values = signal[some].astype(np.float64)
                sums[0, row] += np.bincount(codes, values, cells)
                sums[1, row] += np.bincount(codes, values**2, cells)
        return sums

    def select(
        self,
        measured: Measured,
        bounds: NDArray[np.float64] | None,
        budget: int,
        caps: NDArray[np.int64] | None = None,
    ) -> tuple[Any, NDArray[np.int64]]:
        """Search the closing points and take the samples below them."""
        if self.samples == 0 or (bounds is None and budget >= self.samples):
            return self.hold(None)
        keys = Keys(measured.losses, None if bounds is None else self.codes, self.first)
        least, greatest = self._ends(keys)
        ratios = np.ones((1, 1)) if bounds is None else bounds
        walk = Walk(ratios, budget, greatest - least, self.samples, self._width(ratios.size), caps)
        while not walk.advance(self._total(keys.count(walk.asked, ratios.size, least))):
            pass
        return self._taken(keys.take(walk, least), None if bounds is None else walk.taken)

    def _taken(
        self, selected: NDArray[np.int64], counts: NDArray[np.int64] | None
    ) -> tuple[Any, NDArray[np.int64]]:
        """Return a selection and its counts, which may be known."""
        return self.hold(selected) if counts is None else (selected, counts)

    def _ends(self, keys: Keys) -> tuple[int, int]:
        """Return the least and the greatest key."""
        return keys.least, keys.greatest

    def _width(self, cells: int) -> int:
        """Return how many bits are counted at once."""
        return digit_width(self.samples, cells)

    def _total(self, counts: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return counts of all samples."""
        return counts

    def count_below(self, measured: Measured, limits: NDArray[np.float64]) -> NDArray[np.int64]:
        """Count the samples of each cell whose loss is at most the limit of the cell."""
        counts = np.zeros(len(limits), np.int64)
        for part in _chunks(len(self.codes)):
            codes = self.codes[part]
            counts += np.bincount(codes[measured.losses[part] <= limits[codes]], minlength=len(limits))
        return counts

    def draw(self, selected: Any, counts: NDArray[np.int64], draw: Draw) -> Any:
        """Draw an epoch's batches."""
        sizes = counts if draw.by_cell else counts.sum(keepdims=True)
        return draw_batches(selected, self.codes, sizes, draw.shares, draw.batches, draw.seed, draw.epoch)


class Keys:
    """Losses as integers of the same order, and the samples of the first window's digit that was last asked about.

    Parameters
    ----------
    losses : float array
    codes : integer array, or None
        The cell of each sample; one cell for all when None.
    first : int
        The number of the first sample among those of all workers, which decides among equal losses.
    """

    def __init__(self, losses: NDArray[np.floating[Any]], codes: NDArray[Any] | None, first: int = 0) -> None:
        self.bits = losses.view(f"i{losses.itemsize}")
        self.codes, self.first = codes, first
        # Without samples here, the least is greater than the greatest.
        self.least, self.greatest = np.iinfo(np.int64).max, -np.iinfo(np.int64).max
        for part in _chunks(len(losses)):
            key = self._key(part)
            self.least, self.greatest = min(self.least, int(key.min())), max(self.greatest, int(key.max()))
        self.shift = -1  # of the first window
        self.digit = -1
        self.some: NDArray[np.int64] = np.zeros(0, np.int64)

    def count(self, asked: Window, cells: int, least: int) -> NDArray[np.int64]:
        """Count the samples by cell and digit: all, or the few of one digit of the first window.

        ``least`` is the key that the walk counts from.
        """
        if self.shift < 0:
            self.shift = asked.shift
            counts = np.zeros((cells, 1 << asked.width), np.int64)
            for part in _chunks(len(self.bits)):
                digits = self._order(part, least) >> np.uint64(asked.shift)
                counts += _count(digits, self._codes(part), asked.width, cells)
            return counts
        digit = asked.first_digit(self.shift)
        if digit != self.digit:
            self.digit = digit
            found = [
                np.flatnonzero(self._order(part, least) >> np.uint64(self.shift) == np.uint64(digit))
                + part.start
                for part in _chunks(len(self.bits))
            ]
            self.some = np.concatenate([np.zeros(0, np.int64), *found])
        some, order = self.some, self._order(self.some, least)
        if asked.key is not None:
            some = some[order == np.uint64(asked.key)]
            order = (some + self.first).astype(np.uint64)
        digits = (order >> np.uint64(asked.shift)) - np.uint64(asked.prefix << asked.width)
        inside = digits < np.uint64(1 << asked.width)
        return _count(digits[inside], self._codes(some[inside]), asked.width, cells)

    def take(self, walk: Walk, least: int) -> NDArray[np.int64]:
        """Return the samples below their cell's closing point, ascending."""
        room = min(int(walk.taken.sum()), len(self.bits))  # other workers' samples are counted too
        found, filled = np.empty(room, np.int64), 0
        for part in _chunks(len(self.bits)):
            order, codes = self._order(part, least), self._codes(part)
            limit = walk.key_limit[codes]
            is_below = order < limit
            tied = np.flatnonzero(order == limit)
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
        """Return the distance of some samples' keys from the least; it may wrap for float64 of both signs."""
        return np.asarray((self._key(part) - np.int64(least)).view(np.uint64))

    def _codes(self, part: Any) -> Any:
        return 0 if self.codes is None else self.codes[part]


def _chunks(samples: int) -> list[slice]:
    return [slice(first, min(first + CHUNK, samples)) for first in range(0, samples, CHUNK)]


def _count(digits: NDArray[np.uint64], codes: Any, width: int, cells: int) -> NDArray[np.int64]:
    """Count some samples by cell and digit."""
    flat = digits.view(np.int64)
    if np.ndim(codes):
        flat = (codes.astype(np.int64) << width) + flat
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
