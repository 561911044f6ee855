"""The backend in torch operations, on any device: no vector of length n leaves it.

A device sorts fast, so the samples are sorted by their losses, and the search of Algorithm 1 runs over
their ranks. Shuffles are elementwise arithmetic. Few answers are waited for: each costs a device its pace.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional as F

from fairsieve.errors import InvalidInputError
from fairsieve.selection.backends import Backend, Measured
from fairsieve.selection.batches import POINT, Draw, shuffle_constants, shuffle_shape, shuffled
from fairsieve.selection.cells import WIDEST, Cells, Floats, Integers, Values, as_array, narrow_type
from fairsieve.selection.search import Limits, Walk

FEW_PLACES = 2**12  # of a shuffle, which the host computes sooner than a device
FEW_CELLS = 32  # cells that are counted one after the other


class DeviceSelection:
    """A selection: the cell of each selected sample, and for the others the number of cells."""

    def __init__(self, cell: torch.Tensor, counts: Integers) -> None:
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

    def __init__(self, cells: Cells, device: Any) -> None:
        super().__init__(cells)
        self.device = torch.device(device)
        self.codes = cells.codes_on(self.device)
        self.size = len(cells.classes) * len(cells.groups)

    def numbers(self, name: str, values: Any) -> torch.Tensor:
        """Take in tensors, or arrays that are then moved to the device."""
        tensor = values if isinstance(values, torch.Tensor) else torch.from_numpy(as_array(name, values))
        tensor = tensor.detach().to(self.device)
        if tensor.is_complex():
            raise InvalidInputError(f"{name} must be real numbers; got {tensor.dtype}")
        if tensor.dtype in (torch.float16, torch.bfloat16):
            return tensor.float()
        return tensor if tensor.dtype in (torch.float32, torch.float64) else tensor.double()

    def hold(self, indices: Any | None) -> DeviceSelection:
        """Return the selection of the given ascending indices."""
        if indices is None:
            return DeviceSelection(self.codes, self.cells.counts.reshape(-1).copy())
        where = torch.as_tensor(indices, dtype=torch.int64, device=self.device)
        cell = torch.full_like(self.codes, self.size)
        cell[where] = self.codes[where]
        return DeviceSelection(cell, count_codes(cell, self.size)[:, 0])

    def sum_signals(self, measured: Measured, selected: DeviceSelection) -> Floats:
        """Add up the signals of the selected samples and their squares by cell."""
        ordered = measured.signals[:, selected.members].double()
        parts = ordered.split(selected.counts.tolist(), dim=1)
        sums = [torch.stack([part.sum(1), part.square().sum(1)]) for part in parts]
        return torch.stack(sums, dim=2).cpu().numpy()

    def select(self, measured: Measured, limits: Limits) -> DeviceSelection:
        """Search the rank at which each cell closes, and take the samples before it.

        Only a table of counts and the codes of a few short stretches come to the host.
        """
        order = torch.sort(measured.losses + 0.0, stable=True).indices  # −0 becomes 0
        n, in_order = len(order), self.codes[order]
        walk = Walk(limits, max(0, n - 1), n)
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
        closes = np.minimum(walk.key_limit, np.uint64(n)).astype(np.int64)
        first = int(closes.min())  # before it, everything is taken
        rest = in_order[first:]
        limit = torch.from_numpy(closes).to(self.device).index_select(0, rest.int())
        rest.masked_fill_(torch.arange(first, n, device=self.device) >= limit, self.size)
        cell = self.codes.clone()
        cell[order[first:]] = rest
        return DeviceSelection(cell, walk.taken)

    def count_below(self, measured: Measured, limits: Floats) -> Integers:
        """Count the samples of each cell whose loss is at most the limit of the cell."""
        limit = torch.from_numpy(limits).to(self.device).index_select(0, self.codes.int())
        return count_codes(self.codes.masked_fill(measured.losses > limit, self.size), self.size)[:, 0]

    def draw(self, selected: DeviceSelection, draw: Draw) -> torch.Tensor:
        """Draw an epoch's batches, on the device."""
        members, sizes = selected.members, selected.counts
        if not draw.by_cell:
            members, sizes = selected.indices, sizes.sum(keepdims=True)
        edges, offsets = (torch.from_numpy(each).to(self.device) for each in (draw.edges, draw.offsets))
        # Place j of a batch is the first cell's whose stretch does not end at or before it.
        ends = torch.arange(1, draw.size + 1, device=self.device) << POINT
        cell_of_place = torch.searchsorted(edges[1:], (ends - offsets[:, None]).view(-1))
        totals = count_codes(cell_of_place, len(sizes))[:, 0].tolist()
        # The places of each cell, in order, are filled by its endless order.
        kind = getattr(torch, narrow_type(len(sizes)))
        order = torch.sort(cell_of_place.to(kind), stable=True).indices
        drawn, parts = torch.empty_like(order), self._places(sizes.tolist(), totals, draw)
        for where, own, places in zip(order.split(totals), members.split(sizes.tolist()), parts, strict=True):
            if where.numel():
                drawn[where] = own[torch.cat(places)[: where.numel()]]
        return drawn.view(draw.batches, draw.size)

    def _places(self, sizes: list[int], totals: list[int], draw: Draw) -> list[list[torch.Tensor]]:
        """Return the first places of every cell's endless order, in parts; there may be more than are drawn."""
        parts: list[list[torch.Tensor]] = [[] for _ in sizes]
        # Laps through cells of the same next power of two are computed together, and so are the beginnings of laps.
        alike: dict[tuple[tuple[int, int], bool], list[tuple[int, int, int]]] = defaultdict(list)
        for cell, (size, count) in enumerate(zip(sizes, totals, strict=True)):
            # A few places of one more lap, and all laps through few samples, are cheaper on the host.
            laps = -(-max(count - FEW_PLACES, 0) // size) if size > FEW_PLACES else 0
            for lap in range(laps):
                wanted = min(size, count - lap * size)
                alike[shuffle_shape(size), wanted < size].append((cell, lap, wanted))
            if laps * size < count:
                rest = shuffled(size, draw.seed, draw.epoch, cell, laps * size, count)
                parts[cell].append(torch.from_numpy(rest).to(self.device))
        for (shape, _), own in sorted(alike.items()):  # beginnings last: they are their cells' last laps
            cells, laps_of, wanted = np.array(own).T[:, :, None]
            constants = shuffle_constants(draw.seed, draw.epoch, cells, laps_of)
            rows = _shuffled_laps(np.array(sizes)[cells], int(wanted.max()), constants, shape, self.device)
            for (cell, lap, count), row in zip(own, rows, strict=True):
                parts[cell].insert(lap, row[:count])
        return parts


def _shuffled_laps(
    sizes: Integers, wanted: int, constants: NDArray[np.uint64], shape: tuple[int, int], device: torch.device
) -> torch.Tensor:
    """Return the ``wanted`` first places of a lap through a cell in each row.

    They are those that :func:`~fairsieve.selection.batches.shuffled` gives.

    ``sizes`` of the cells, a column, have the same next power of two. A place whose element is beyond the cell is
    sent through again until it is not. In place of a loop over fewer and fewer of them, which a device would wait
    for, the ways of all elements beyond the cells are doubled: after k turns everyone has gone 2ᵏ steps, or as far as
    it must.
    """
    mask, half = shape
    kind = np.int32 if mask < 2**31 else np.int64  # products wrap, and their low bits are what counts
    constants[:, ::2] |= np.uint64(1)
    table = torch.from_numpy(np.hstack([constants.astype(kind), sizes.astype(kind)])).to(device)
    *rounds, size = table.split(1, dim=1)
    least = int(sizes.min())
    places = [
        torch.arange(*ends, device=device, dtype=table.dtype) for ends in ((wanted,), (least, mask + 1))
    ]
    values = torch.cat(places).repeat(len(sizes), 1)
    for factor, summand in zip(rounds[::2], rounds[1::2], strict=True):
        torch.addcmul(summand, values, factor, out=values).bitwise_and_(mask)
        values ^= values >> half
    # Cycles that lie beyond a cell as a whole go round for ever, but nobody inside comes to them.
    inside, beyond = values[:, :wanted], values[:, wanted:]
    inside = inside.masked_fill(torch.arange(wanted, device=device) >= size, 0)
    while least <= mask and bool((inside >= size).any()):
        for _ in range(5):
            step = beyond.gather(1, (beyond - least).clamp_(min=0).long())
            beyond = torch.where(beyond < size, beyond, step)
        step = beyond.gather(1, (inside - least).clamp_(min=0).long())
        inside = torch.where(inside < size, inside, step)
    return inside


def encode_on(
    device: torch.device, encode: Callable[[Any], tuple[Values, list[Any]]], size: int, values: Any
) -> tuple[torch.Tensor, list[Any]]:
    """Encode values on a device; ``encode`` does it on the host.

    Integers that are near each other stay there: only those that occur are encoded on the host, and none where
    all are below ``size`` and so are codes already.
    """
    if isinstance(values, torch.Tensor) and values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    is_column = isinstance(values, torch.Tensor) and values.ndim == 1 and len(values) > 0
    if is_column and not (values.is_floating_point() or values.is_complex()):
        low, high = map(int, torch.stack(torch.aminmax(values)).tolist())
        if low >= 0 and high < size and values.dtype != torch.bool:
            return values.to(device, torch.int32), list(range(size))
        if high - low < WIDEST:
            offsets = values.to(device).long() - low
            places = np.flatnonzero(count_codes(offsets, high - low + 1))
            codes, listed = encode((places + low).astype(bool if values.dtype == torch.bool else np.int64))
            table = np.zeros(high - low + 1, np.int32)
            table[places] = codes
            return torch.from_numpy(table).to(device).index_select(0, offsets), listed
    codes, listed = encode(values)
    return torch.from_numpy(np.asarray(codes, np.int32)).to(device), listed


def count_codes(codes: torch.Tensor, cells: int, block: int | None = None) -> Integers:
    """Count the codes below ``cells`` in blocks of so many (all in one when None), on the host: (cells, blocks)."""
    block = max(1, len(codes)) if block is None else block
    blocks = max(1, -(-len(codes) // block))
    if cells <= FEW_CELLS:  # bincount is slow where many count for few
        table = F.pad(codes, (0, blocks * block - len(codes)), value=cells).view(blocks, block)
        return torch.stack([(table == cell).sum(1) for cell in range(cells)]).cpu().numpy()
    flat = torch.arange(len(codes), device=codes.device) // block + codes.long() * blocks
    return torch.bincount(flat, minlength=(cells + 1) * blocks).view(-1, blocks)[:cells].cpu().numpy()
