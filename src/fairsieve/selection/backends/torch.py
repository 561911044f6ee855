"""The backend in torch operations, on any device: no vector of length n leaves it.

A device sorts fast, so the samples are sorted by their losses, and the search of Algorithm 1 runs over
their ranks. Shuffles are elementwise arithmetic. Few answers are waited for: each costs a device its pace.
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
from fairsieve.selection.search import NO_LIMIT, Walk
from fairsieve.selection.shuffle import ROUNDS, shuffle_constants, shuffle_shape

__all__ = ["TorchBackend"]

CHUNK = 2**25  # places of a shuffle that are computed together


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

    def sum_signals(self, measured: Sorted, selected: DeviceSelection) -> NDArray[np.float64]:
        """Add up the signals of the selected samples by cell."""
        parts = selected.members.split(selected.counts.tolist())
        rows = [
            torch.stack([signal[part].sum(dtype=torch.float64) for part in parts])
            for signal in measured.signals
        ]
        return torch.stack(rows).cpu().numpy()

    def select(
        self,
        measured: Sorted,
        bounds: NDArray[np.float64] | None,
        budget: int,
        caps: NDArray[np.int64] | None = None,
    ) -> tuple[DeviceSelection, NDArray[np.int64]]:
        """Search the closing points over the ranks, and take the samples below them."""
        if len(measured.losses) == 0 or (bounds is None and budget >= len(measured.losses)):
            return self.hold(None)
        if bounds is None:
            cell = self._mark(measured, None, np.array([budget]))
            counts = count_codes(cell, self.size)
        else:
            in_order = self.codes[measured.order]
            ranks, counts = self._search(in_order, bounds, budget, caps)
            cell = self._mark(measured, in_order, ranks)
        return DeviceSelection(cell, counts), counts

    def _search(
        self,
        in_order: torch.Tensor,
        bounds: NDArray[np.float64],
        budget: int,
        caps: NDArray[np.int64] | None,
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the rank at which each cell closes, and how many samples it takes.

        ``in_order`` are the codes by ascending loss. Only a table of counts and the codes of a few short
        stretches come to the host.
        """
        n = len(in_order)
        walk = Walk(bounds, budget, n - 1, n, 12, caps)
        shift, digit, stretch = walk.asked.shift, -1, np.zeros(0, np.int64)
        counts = self._count_blocks(in_order, 1 << shift, 1 << walk.asked.width)
        while not walk.advance(counts):
            asked = walk.asked
            if asked.first_digit(shift) != digit:
                digit = asked.first_digit(shift)
                stretch = in_order[digit << shift : (digit + 1) << shift].cpu().numpy().astype(np.int64)
            first = (asked.prefix << asked.width + asked.shift) - (digit << shift)
            part = stretch[first : first + (1 << asked.width + asked.shift)]
            flat = (part << asked.width) + (np.arange(len(part)) >> asked.shift)
            counts = np.bincount(flat, minlength=self.size << asked.width).reshape(self.size, -1)
        is_whole = walk.key_limit == NO_LIMIT
        return np.where(is_whole, n, walk.key_limit.astype(np.int64)), walk.taken

    def _count_blocks(self, in_order: torch.Tensor, block: int, blocks: int) -> NDArray[np.int64]:
        """Count the samples by cell and block of consecutive ranks, on the host: (cells, blocks)."""
        cells, whole = self.size, len(in_order) // block
        counts = torch.zeros((cells, blocks), dtype=torch.int64, device=self.device)
        table, rest = in_order[: whole * block].view(whole, block), in_order[whole * block :]
        if cells <= FEW_CELLS:
            for cell in range(cells):
                counts[cell, :whole] = (table == cell).sum(dim=1)
                if len(rest):
                    counts[cell, whole] = (rest == cell).sum()
        else:
            number = torch.arange(len(in_order), device=self.device) // block
            flat = number.add_(in_order.long().mul_(blocks))
            counts = torch.bincount(flat, minlength=cells * blocks).view(cells, blocks)
        return counts.cpu().numpy()

    def _mark(
        self, measured: Sorted, in_order: torch.Tensor | None, ranks: NDArray[np.int64]
    ) -> torch.Tensor:
        """Return the cells of the samples that come before the rank at which their cell closes.

        ``in_order`` are the codes by ascending loss; with None all samples are one cell.
        """
        places = torch.from_numpy(np.minimum(ranks, len(measured.losses) - 1)).to(self.device)
        limits = measured.ascending[places]
        equal = torch.searchsorted(measured.ascending, limits).tolist()  # the first rank of that loss
        # Nothing is above NaN: so a cell that never closes is taken whole, infinite losses included.
        limits.masked_fill_(torch.from_numpy(ranks >= len(measured.losses)).to(self.device), math.nan)
        limit = limits if in_order is None else limits.index_select(0, self.codes.int())
        refused = measured.losses >= limit
        for cell, (first, last) in enumerate(zip(equal, ranks.tolist(), strict=True)):
            if first < last < len(refused):  # equal losses of lower index are taken
                tied = measured.order[first:last]
                refused[tied if in_order is None else tied[in_order[first:last] == cell]] = False
        marked: torch.Tensor = self.codes.masked_fill(refused, self.size)
        return marked

    def draw(self, selected: DeviceSelection, counts: NDArray[np.int64], draw: Draw) -> torch.Tensor:
        """Draw an epoch's batches, on the device."""
        members, sizes = selected.members, counts
        if not draw.by_cell:
            members, sizes = selected.indices, counts.sum(keepdims=True)
        drawn = members.new_empty((draw.batches, int(draw.shares.sum())))
        column, start = 0, 0
        for cell, (size, share) in enumerate(zip(sizes.tolist(), draw.shares.tolist(), strict=True)):
            if share and draw.batches:
                key = draw.seed, draw.epoch, cell
                places = _shuffled(size, key, draw.batches * share, self.device)
                target = drawn[:, column : column + share]
                target.copy_(members[start : start + size][places].view(target.shape))
            column, start = column + share, start + size
        return drawn


def _shuffled(size: int, key: tuple[int, int, int], count: int, device: torch.device) -> torch.Tensor:
    """Return the first elements of a cell's endless order, see :mod:`fairsieve.selection.shuffle`."""
    mask, half = shuffle_shape(size)
    laps, together = -(-count // size), max(1, CHUNK // (mask + 1))
    parts = []
    for first in range(0, laps, together):
        rows = np.arange(first, min(laps, first + together))[:, None]
        parts.append(_shuffle_laps(size, shuffle_constants(*key, rows), mask, half, device))
    return (parts[0] if len(parts) == 1 else torch.cat(parts))[:count]


def _shuffle_laps(
    size: int, constants: NDArray[np.uint64], mask: int, half: int, device: torch.device
) -> torch.Tensor:
    """Return whole laps through a cell, one after the other.

    A place whose element is beyond the cell is sent through again until it is not. In place of a loop over
    fewer and fewer of them, which a device would wait for, the ways of all elements beyond the cell are
    doubled: after k turns everyone has gone 2ᵏ steps, or as far as it must.
    """
    factors = constants.view(np.int64)
    factors[:, ::2] |= 1
    kind = torch.int32 if mask < 2**31 else torch.int64
    table = torch.from_numpy(factors.astype(np.int32) if kind == torch.int32 else factors).to(device)
    values = torch.arange(mask + 1, dtype=kind, device=device).repeat(len(constants), 1)
    for i in range(0, 2 * ROUNDS, 2):
        values *= table[:, i : i + 1]
        values += table[:, i + 1 : i + 2]
        values &= mask
        values ^= values >> half
    if size > mask:
        return values.view(-1)
    inside, beyond = values[:, :size], values[:, size:]
    while (
        True
    ):  # cycles that lie beyond the cell as a whole go round for ever, but nobody inside comes to them
        for _ in range(5):
            step = beyond.gather(1, (beyond - size).clamp_(min=0).long())
            beyond = torch.where(beyond < size, beyond, step)
        step = beyond.gather(1, (inside - size).clamp_(min=0).long())
        inside = torch.where(inside < size, inside, step)
        if not bool((inside >= size).any()):
            return inside.reshape(-1)
