"""The backend in torch operations, on any device: no vector of length n leaves it.

A device sorts fast, so the samples are sorted by their losses, and the search of Algorithm 1 runs over
their ranks. Shuffles are elementwise arithmetic. Few answers are waited for: each costs a device its pace.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional as F

from fairsieve.errors import InvalidInputError
from fairsieve.selection.backends.base import Backend, check_shape, refuse_nan
from fairsieve.selection.batches import Draw
from fairsieve.selection.cells import Cells, check_lengths
from fairsieve.selection.coding import WIDEST, Missing, encode_groups, encode_labels
from fairsieve.selection.search import Limits, Walk
from fairsieve.selection.shuffle import shuffle_constants, shuffle_shape, shuffled

__all__ = ["TorchBackend", "cells_on", "count_codes"]

FEW_PLACES = 2**12  # of a shuffle, which the host computes sooner than a device
FEW_CELLS = 32  # cells that are counted one after the other


class Sorted(NamedTuple):
    """Losses of all samples, the sample of each rank, and signals."""

    losses: torch.Tensor
    order: torch.Tensor
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
        values = self._numbers("losses", losses) + 0.0  # −0 becomes 0
        check_shape(values, len(self.cells))
        ascending, order = torch.sort(values, stable=True)
        if len(values) and bool(ascending[-1].isnan()):  # NaN is sorted to the end
            missing = values.isnan()
            refuse_nan(int(missing.sum()), int(missing.int().argmax()))
        return Sorted(values, order, values[None] if signals is None else self._numbers("signals", signals))

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
        counts = count_codes(cell, self.size)[:, 0]
        return DeviceSelection(cell, counts), counts

    def indices(self, selected: DeviceSelection) -> torch.Tensor:
        """Return the ascending indices of a selection, on the device."""
        return selected.indices

    def sum_signals(self, measured: Sorted, selected: DeviceSelection) -> NDArray[np.float64]:
        """Add up the signals of the selected samples and their squares by cell."""
        parts = selected.members.split(selected.counts.tolist())
        found = [[signal[part].double() for part in parts] for signal in measured.signals]
        rows = [torch.stack([torch.stack([v.sum(), v.dot(v)]) for v in row], dim=1) for row in found]
        return torch.stack(rows, dim=1).cpu().numpy()

    def select(self, measured: Sorted, limits: Limits) -> tuple[DeviceSelection, NDArray[np.int64]]:
        """Search the rank at which each cell closes, and take the samples before it.

        Only a table of counts and the codes of a few short stretches come to the host.
        """
        n = len(measured.order)
        if n == 0:
            return self.hold(None)
        in_order = self.codes[measured.order]
        walk = Walk(limits, n - 1, n)
        shift, digit, stretch = walk.asked.shift, -1, np.zeros(0, np.int64)
        counts = count_codes(in_order, self.size, 1 << shift)
        while not walk.advance(counts):
            asked = walk.asked
            if asked.first_digit(shift) != digit:
                digit = asked.first_digit(shift)
                stretch = in_order[digit << shift : (digit + 1) << shift].cpu().numpy().astype(np.int64)
            first = (asked.prefix << asked.width + asked.shift) - (digit << shift)
            part = stretch[first : first + (1 << asked.width + asked.shift)]
            flat = (part << asked.width) + (np.arange(len(part)) >> asked.shift)
            counts = np.bincount(flat, minlength=self.size << asked.width).reshape(self.size, -1)
        closes = torch.from_numpy(np.minimum(walk.key_limit, np.uint64(n)).astype(np.int64)).to(self.device)
        refused = torch.arange(n, device=self.device) >= closes.index_select(0, in_order.int())
        cell = torch.empty_like(self.codes)
        cell[measured.order] = in_order.masked_fill_(refused, self.size)
        return DeviceSelection(cell, walk.taken), walk.taken

    def count_below(self, measured: Sorted, limits: NDArray[np.float64]) -> NDArray[np.int64]:
        """Count the samples of each cell whose loss is at most the limit of the cell."""
        limit = torch.from_numpy(limits).to(self.device).index_select(0, self.codes.int())
        return count_codes(self.codes.masked_fill(measured.losses > limit, self.size), self.size)[:, 0]

    def draw(self, selected: DeviceSelection, counts: NDArray[np.int64], draw: Draw) -> torch.Tensor:
        """Draw an epoch's batches, on the device."""
        members, sizes = selected.members, counts
        if not draw.by_cell:
            members, sizes = selected.indices, counts.sum(keepdims=True)
        drawn = members.new_empty((draw.batches, int(draw.shares.sum())))
        columns = drawn.split(draw.shares.tolist(), dim=1)
        for cell, own in enumerate(members.split(sizes.tolist())):
            if columns[cell].numel():
                places = self._places(cell, len(own), columns[cell].numel(), draw)
                columns[cell].copy_(own[places].view(columns[cell].shape))
        return drawn

    def _places(self, cell: int, size: int, count: int, draw: Draw) -> torch.Tensor:
        """Return the first places of a cell's endless order."""
        # A few places of one more lap, and all laps through few samples, are cheaper on the host.
        laps = -(-max(count - FEW_PLACES, 0) // size) if size > FEW_PLACES else 0
        constants = [shuffle_constants(draw.seed, draw.epoch, cell, lap) for lap in range(laps)]
        parts = [_shuffled_lap(size, each, self.device) for each in constants]
        if laps * size < count:
            rest = shuffled(size, draw.seed, draw.epoch, cell, laps * size, count)
            parts.append(torch.from_numpy(rest).to(self.device))
        return torch.cat(parts)[:count]


def _shuffled_lap(size: int, constants: NDArray[np.uint64], device: torch.device) -> torch.Tensor:
    """Return one lap through a cell: :func:`~fairsieve.selection.shuffle.shuffled` for all of its places.

    A place whose element is beyond the cell is sent through again until it is not. In place of a loop over
    fewer and fewer of them, which a device would wait for, the ways of all elements beyond the cell are
    doubled: after k turns everyone has gone 2ᵏ steps, or as far as it must.
    """
    mask, half = shuffle_shape(size)
    kind = np.int32 if mask < 2**31 else np.int64  # products wrap, and their low bits are what counts
    factors, summands = constants[::2] | np.uint64(1), constants[1::2]
    values = torch.arange(mask + 1, device=device, dtype=torch.int32 if kind == np.int32 else torch.int64)
    for factor, summand in zip(factors.astype(kind).tolist(), summands.astype(kind).tolist(), strict=True):
        values.mul_(factor).add_(summand).bitwise_and_(mask)
        values ^= values >> half
    inside, beyond = values[:size], values[size:]
    # Cycles that lie beyond the cell as a whole go round for ever, but nobody inside comes to them.
    while len(beyond) and bool((inside >= size).any()):
        for _ in range(5):
            step = beyond.gather(0, (beyond - size).clamp_(min=0).long())
            beyond = torch.where(beyond < size, beyond, step)
        step = beyond.gather(0, (inside - size).clamp_(min=0).long())
        inside = torch.where(inside < size, inside, step)
    return inside


def cells_on(
    device: torch.device,
    labels: Any,
    groups: Any,
    classes: Sequence[Any] | None,
    group_values: Sequence[Any] | None,
    missing: Missing,
) -> Cells:
    """Return the cells of labels and groups with their codes on a device."""
    rows, class_list = _encode_on(device, labels, lambda values: encode_labels(values, classes))
    columns, group_list = _encode_on(
        device, groups, lambda values: encode_groups("groups", values, group_values, missing)
    )
    check_lengths(len(rows), len(columns))
    cells = Cells(rows.mul_(len(group_list)).add_(columns), class_list, group_list)
    return Cells(cells.codes.to(getattr(torch, cells.narrow_type)), class_list, group_list)


def _encode_on(
    device: torch.device, values: Any, encode: Callable[[Any], tuple[NDArray[Any], list[Any]]]
) -> tuple[torch.Tensor, list[Any]]:
    """Encode values on a device; ``encode`` does it on the host.

    Integers that are near each other stay there: only those that occur are encoded on the host.
    """
    if isinstance(values, torch.Tensor) and values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    is_column = isinstance(values, torch.Tensor) and values.ndim == 1 and len(values) > 0
    if is_column and not (values.is_floating_point() or values.is_complex()):
        low, high = (int(end) for end in torch.aminmax(values))
        if high - low < WIDEST:
            offsets = values.to(device).long() - low
            places = np.flatnonzero(count_codes(offsets, high - low + 1))
            codes, listed = encode((places + low).astype(bool if values.dtype == torch.bool else np.int64))
            table = np.zeros(high - low + 1, np.int32)
            table[places] = codes
            return torch.from_numpy(table).to(device).index_select(0, offsets), listed
    codes, listed = encode(values)
    return torch.from_numpy(np.asarray(codes, np.int32)).to(device), listed


def count_codes(codes: torch.Tensor, cells: int, block: int | None = None) -> NDArray[np.int64]:
    """Count the codes below ``cells`` in blocks of so many (all in one when None), on the host: (cells, blocks)."""
    block = max(1, len(codes)) if block is None else block
    blocks = max(1, -(-len(codes) // block))
    if cells <= FEW_CELLS:  # bincount is slow where many count for few
        table = F.pad(codes, (0, blocks * block - len(codes)), value=cells).view(blocks, block)
        return torch.stack([(table == cell).sum(1) for cell in range(cells)]).cpu().numpy()
    flat = torch.arange(len(codes), device=codes.device) // block + codes.long() * blocks
    return torch.bincount(flat, minlength=(cells + 1) * blocks).view(-1, blocks)[:cells].cpu().numpy()
