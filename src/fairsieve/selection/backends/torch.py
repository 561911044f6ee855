"""The backend in torch operations, on any device: no vector of length n leaves it.

A device sorts fast, so the samples are sorted by their losses, and the search of Algorithm 1 runs over
their ranks. Sums are exact in integers, and shuffles are elementwise arithmetic.
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from fairsieve.errors import InvalidInputError
from fairsieve.selection.backends.base import Backend, check_shape, refuse_nan
from fairsieve.selection.backends.torch_cells import FEW_CELLS, count_codes
from fairsieve.selection.batches import Draw
from fairsieve.selection.cells import Cells
from fairsieve.selection.exact_sums import MINUS, NOT, PLUS, SLOTS, as_digits, limbs
from fairsieve.selection.search import NO_LIMIT, PREFIX, SHIFT, WIDTH, advance, asked_digit, new_walk
from fairsieve.selection.shuffle import ROUNDS, shuffle_constants, shuffle_shape

__all__ = ["DeviceSelection", "Sorted", "TorchBackend"]

CHUNK = 2**22  # values that are added or shuffled together, so that they stay in the cache


class Sorted(NamedTuple):
    """Losses of all samples, in the samples' order and ascending, and signals."""

    losses: torch.Tensor  # −0 is 0
    ascending: torch.Tensor
    order: torch.Tensor  # the sample of each rank
    signals: torch.Tensor


class DeviceSelection:
    """A selection: the cell of each selected sample, and for the others the number of cells."""

    def __init__(self, cell: torch.Tensor, counts: NDArray[np.int64]) -> None:
        self.cell, self.counts = cell, counts

    @cached_property
    def members(self) -> torch.Tensor:
        """The selected samples, cell after cell; those of a cell ascending."""
        return torch.sort(self.cell, stable=True).indices[: int(self.counts.sum())]

    @property
    def indices(self) -> torch.Tensor:
        """The selected samples, ascending."""
        return (self.cell < len(self.counts)).nonzero().squeeze(1)


class TorchBackend(Backend):
    """Answers in torch operations on one device."""

    name = "torch"

    def __init__(self, cells: Cells, device: Any) -> None:
        self.cells = cells
        self.device = torch.device(device)
        self.codes = cells.codes_on(self.device)
        self.size = len(cells.classes) * len(cells.groups)

    def measure(self, losses: Any, signals: Any | None) -> Sorted:
        """Take in tensors, or arrays that are then moved to the device, and sort."""
        values = self._numbers("losses", losses) + 0.0
        check_shape(values, len(self.cells))
        ascending, order = torch.sort(values, stable=True)
        if len(values) and bool(ascending[-1].isnan()):  # NaN is sorted to the end
            missing = values.isnan()
            refuse_nan(int(missing.sum()), int(missing.int().argmax()))
        rows = values[None] if signals is None else self._numbers("signals", signals)
        return Sorted(values, ascending, order, rows)

    def _numbers(self, name: str, values: Any) -> torch.Tensor:
        """Return floats on the device, float32 or float64."""
        tensor = torch.as_tensor(values).detach().to(self.device)
        if tensor.is_complex():
            raise InvalidInputError(f"{name} must be real numbers; got {tensor.dtype}")
        if tensor.dtype in (torch.float16, torch.bfloat16):
            return tensor.float()
        return tensor if tensor.dtype in (torch.float32, torch.float64) else tensor.double()

    def hold(self, indices: Any | None) -> tuple[DeviceSelection, NDArray[np.int64]]:
        """Return the selection of the given ascending indices, and its counts."""
        if indices is None:
            counts = self.cells.counts.reshape(-1).copy()
            return DeviceSelection(self.codes, counts), counts
        where = torch.as_tensor(np.asarray(indices) if isinstance(indices, list) else indices).to(self.device)
        cell = torch.full_like(self.codes, self.size)
        cell[where] = self.codes[where]
        counts = count_codes(cell, self.size)
        return DeviceSelection(cell, counts), counts

    def indices(self, selected: DeviceSelection) -> torch.Tensor:
        """Return the ascending indices of a selection, on the device."""
        return selected.indices

    def sum_signals(self, measured: Sorted, selected: DeviceSelection) -> NDArray[np.int64]:
        """Add up the signals of the selected samples by cell."""
        rows = [self._sums(signal, selected) for signal in measured.signals]
        return np.array(rows, np.int64).reshape(len(rows), self.size, SLOTS)

    def _sums(self, signal: torch.Tensor, selected: DeviceSelection) -> list[list[int]]:
        """Return the digits of the sum of each cell."""
        parts: list[list[tuple[int, int]]] = [[] for _ in range(self.size)]
        kinds = np.zeros((3, self.size), np.int64)
        ends = np.cumsum(selected.counts)
        for first in range(0, len(selected.members), CHUNK):
            last = min(first + CHUNK, len(selected.members))
            values = signal[selected.members[first:last]].double()
            inside = np.clip(ends, first, last) - first
            self._add_chunk(values, inside, parts, kinds)
        digits = [as_digits(part) for part in parts]
        for cell, row in enumerate(digits):
            row[PLUS], row[MINUS], row[NOT] = kinds[:, cell].tolist()
        return digits

    def _add_chunk(
        self,
        values: torch.Tensor,
        ends: NDArray[np.int64],
        parts: list[list[tuple[int, int]]],
        kinds: NDArray[np.int64],
    ) -> None:
        """Add values, cell after cell up to the given ends, to the sums of their cells."""
        largest = float(values.abs().max())
        if not math.isfinite(largest):
            for row, kind in zip(
                kinds, (values == math.inf, values == -math.inf, values.isnan()), strict=True
            ):
                row += _differences(kind, ends)
            values = values.masked_fill(~values.isfinite(), 0.0)
            largest = float(values.abs().max())
        while largest > 0:
            shift, unit = limbs(largest, len(values))
            whole = _scaled(values, shift).trunc_()
            for cell, number in enumerate(_differences(whole.long(), ends).tolist()):
                if number:
                    parts[cell].append((number, unit))
            values = values - _scaled(whole, unit)
            largest = float(values.abs().max())

    def select(
        self, measured: Sorted, bounds: NDArray[np.float64] | None, budget: int
    ) -> tuple[DeviceSelection, NDArray[np.int64]]:
        """Search the closing points over the ranks, and take the samples below them."""
        if len(measured.losses) == 0:
            return self.hold(None)
        if bounds is None:
            cell = self._mark(measured, np.full(self.size, budget))
            counts = count_codes(cell, self.size)
        else:
            ranks, counts = self._search(measured.order, bounds, budget)
            cell = self._mark(measured, ranks)
        return DeviceSelection(cell, counts), counts

    def _search(
        self, order: torch.Tensor, bounds: NDArray[np.float64], budget: int
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the rank at which each cell closes, and how many samples it takes.

        Only a table of counts and the codes of a few short stretches come to the host.
        """
        n = len(order)
        walk = new_walk(bounds, budget, np.uint64(n - 1), n, 10 if n < 2**24 else 12)
        top, digit, stretch = int(walk.window[SHIFT]), -1, np.zeros(0, np.int64)
        counts = self._count_blocks(order, 1 << top, 1 << int(walk.window[WIDTH]))
        while not advance(walk, counts):
            window = walk.window
            if asked_digit(window, top) != digit:
                digit = asked_digit(window, top)
                samples = order[digit << top : (digit + 1) << top]
                stretch = self.codes[samples].cpu().numpy().astype(np.int64)
            width, shift = int(window[WIDTH]), int(window[SHIFT])
            first = (int(window[PREFIX]) << width + shift) - (digit << top)
            part = stretch[first : first + (1 << width + shift)]
            flat = (part << width) + (np.arange(len(part)) >> shift)
            counts = np.bincount(flat, minlength=self.size << width).reshape(self.size, 1 << width)
        is_whole = walk.key_limit == NO_LIMIT
        return np.where(is_whole, n, walk.key_limit.astype(np.int64)), walk.taken

    def _count_blocks(self, order: torch.Tensor, block: int, blocks: int) -> NDArray[np.int64]:
        """Count the samples by cell and block of consecutive ranks, on the host: (cells, blocks)."""
        codes, cells = self.codes[order], self.size
        whole = len(codes) // block
        counts = torch.zeros((cells, blocks), dtype=torch.int64, device=codes.device)
        table, rest = codes[: whole * block].view(whole, block), codes[whole * block :]
        if cells <= FEW_CELLS:
            for cell in range(cells):
                counts[cell, :whole] = (table == cell).sum(dim=1)
        elif whole:
            number = torch.arange(whole, device=codes.device)[:, None]
            flat = table.long() * blocks + number
            counts += torch.bincount(flat.reshape(-1), minlength=cells * blocks).view(cells, blocks)
        found = counts.cpu().numpy()
        if len(rest):
            found[:, whole] = count_codes(rest, cells)
        return found

    def _limits(self, measured: Sorted, ranks: NDArray[np.int64]) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the loss, and among equal losses the index, below which a cell's samples are taken."""
        n = len(measured.losses)
        is_whole = torch.from_numpy(ranks >= n).to(self.device)
        places = torch.from_numpy(np.minimum(ranks, n - 1)).to(self.device)
        limits = measured.ascending[places].masked_fill_(is_whole, math.inf)
        return limits, measured.order[places].masked_fill_(is_whole, n)

    def _mark(self, measured: Sorted, ranks: NDArray[np.int64]) -> torch.Tensor:
        """Return the cells of the samples that come before the rank at which their cell closes."""
        limits, indices = self._limits(measured, ranks)
        cell = self.codes.int()
        limit = limits.index_select(0, cell)
        below = measured.losses < limit
        tied = (measured.losses == limit).nonzero().squeeze(1)
        below[tied] = tied < indices[cell[tied]]
        marked: torch.Tensor = self.codes.masked_fill(~below, self.size)
        return marked

    def draw(self, selected: DeviceSelection, counts: NDArray[np.int64], draw: Draw) -> torch.Tensor:
        """Draw an epoch's batches, on the device."""
        members, sizes = selected.members, counts
        if not draw.by_cell:
            members, sizes = selected.indices, counts.sum(keepdims=True)
        drawn = members.new_empty((draw.batches, int(draw.shares.sum())))
        if drawn.numel():
            self._fill(drawn, members, sizes, draw)
        return drawn

    def _fill(self, drawn: torch.Tensor, members: torch.Tensor, sizes: NDArray[np.int64], draw: Draw) -> None:
        """Fill the batches with the members, which stand cell after cell, in shuffled orders."""
        column, start = 0, 0
        for cell, (size, share) in enumerate(zip(sizes.tolist(), draw.shares.tolist(), strict=True)):
            if share:
                target = drawn[:, column : column + share]
                self._draw_cell(members[start : start + size], cell, draw, target)
            column += share
            start += size

    def _draw_cell(self, own: torch.Tensor, cell: int, draw: Draw, target: torch.Tensor) -> None:
        """Fill a cell's columns of the batches with its members in a shuffled order."""
        key = draw.seed, draw.epoch, cell
        rows = max(1, CHUNK // target.shape[1])
        for first in range(0, len(target), rows):
            part = target[first : first + rows]
            position = first * target.shape[1]
            places = _shuffled(len(own), key, position, position + part.numel(), self.device)
            part.copy_(own[places].view(part.shape))


def _differences(values: torch.Tensor, ends: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the sums of consecutive runs of integers, by differences of a running sum."""
    running = values.cumsum(0, dtype=torch.int64)
    at = running[torch.from_numpy(np.maximum(ends - 1, 0)).to(running.device)].cpu().numpy()
    return np.diff(np.where(ends > 0, at, 0), prepend=0)


def _scaled(values: torch.Tensor, power: int) -> torch.Tensor:
    """Multiply by a power of two that may itself be out of a double's range."""
    half = power // 2
    return values * 2.0**half * 2.0 ** (power - half) if abs(power) > 1000 else values * 2.0**power


def _shuffled(
    size: int, key: tuple[int, int, int], first: int, last: int, device: torch.device
) -> torch.Tensor:
    """Return the elements at some positions of a cell's endless order, see :mod:`fairsieve.selection.shuffle`."""
    mask, half = shuffle_shape(size)
    first_lap, last_lap = first // size, (last - 1) // size
    constants = shuffle_constants(*key, np.arange(first_lap, last_lap + 1)[:, None]).view(np.int64)
    constants[:, ::2] |= 1
    kind = torch.int32 if size <= 2**31 else torch.int64
    if kind == torch.int32:
        constants = constants.astype(np.int32)
    values = torch.arange(first, last, device=device)
    row = values // size - first_lap if last_lap > first_lap else None
    values = (values % size if last_lap else values).to(kind)
    table = constants[0].tolist() if row is None else torch.from_numpy(constants.T.copy()).to(device)
    _send_through(values, table, row, mask, half)
    pending = (values >= size).nonzero().squeeze(1) if size <= mask else values[:0].long()
    while len(pending):
        moved = values[pending]
        _send_through(moved, table, None if row is None else row[pending], mask, half)
        values[pending] = moved
        pending = pending[moved >= size]
    return values


def _send_through(values: torch.Tensor, table: Any, row: torch.Tensor | None, mask: int, half: int) -> None:
    """Apply all rounds of a shuffle over its next power of two, in place."""
    for i in range(0, 2 * ROUNDS, 2):
        values *= table[i] if row is None else table[i][row]
        values += table[i + 1] if row is None else table[i + 1][row]
        values &= mask
        values ^= values >> half
