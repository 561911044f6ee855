"""The backend in torch operations, on any device: no vector of length n leaves it.

A device sorts fast, so the samples are sorted by their losses, and the search of Algorithm 1 runs over
their ranks. Shuffles are elementwise arithmetic. Few answers are waited for: each costs a device its pace.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
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
from fairsieve.selection.coding import WIDEST, Missing, encode, encode_groups, refuse_continuous
from fairsieve.selection.search import NO_LIMIT, Walk
from fairsieve.selection.shuffle import ROUNDS, shuffle_constants, shuffle_shape, shuffled
from fairsieve.validation import shown

__all__ = ["TorchBackend", "cells_on", "count_codes"]

CHUNK = 2**27  # places of shuffles that are computed together
FEW_PLACES = 2**12
FEW_CELLS = 32  # cells that are counted one after the other
MOST_COMPARED = 2**31  # bytes of comparisons of samples with cells


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
        """Add up the signals of the selected samples and their squares by cell."""
        parts = selected.members.split(selected.counts.tolist())
        found = [[signal[part].double() for part in parts] for signal in measured.signals]
        rows = [torch.stack([torch.stack([v.sum(), v.dot(v)]) for v in row], dim=1) for row in found]
        return torch.stack(rows, dim=1).cpu().numpy()

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
        cells, used = self.size, -(-len(in_order) // block)
        if cells <= FEW_CELLS and cells * len(in_order) <= MOST_COMPARED:
            table = F.pad(in_order, (0, used * block - len(in_order)), value=cells).view(1, used, block)
            found = (table == torch.arange(cells, dtype=table.dtype, device=self.device)[:, None, None]).sum(
                2
            )
            return np.pad(found.cpu().numpy(), ((0, 0), (0, blocks - used)))
        number = torch.arange(len(in_order), device=self.device) // block
        flat = number.add_(in_order.long().mul_(blocks))
        return torch.bincount(flat, minlength=cells * blocks).view(cells, blocks).cpu().numpy()

    def _mark(
        self, measured: Sorted, in_order: torch.Tensor | None, ranks: NDArray[np.int64]
    ) -> torch.Tensor:
        """Return the cells of the samples that come before the rank at which their cell closes.

        ``in_order`` are the codes by ascending loss; with None all samples are one cell.
        """
        n = len(measured.losses)
        closes = np.minimum(ranks, n - 1)
        around = np.stack([closes, np.maximum(closes - 1, 0)])
        limits = measured.ascending[torch.from_numpy(around).to(self.device)]
        # Nothing is above NaN: so a cell that never closes is taken whole, infinite losses included.
        limits[0, torch.from_numpy(ranks >= n).to(self.device)] = math.nan
        limit = limits[0] if in_order is None else limits[0].index_select(0, self.codes.int())
        refused = measured.losses >= limit
        for cell, (at, before) in enumerate(limits.T.tolist()):
            if at == before and ranks[cell] > 0:  # equal losses of lower index are taken
                first, last = int(torch.searchsorted(measured.ascending, limits[0, cell])), int(ranks[cell])
                tied = measured.order[first:last]
                refused[tied if in_order is None else tied[in_order[first:last] == cell]] = False
        marked: torch.Tensor = self.codes.masked_fill(refused, self.size)
        return marked

    def count_below(self, measured: Sorted, limits: NDArray[np.float64]) -> NDArray[np.int64]:
        """Count the samples of each cell whose loss is at most the limit of the cell."""
        limit = torch.from_numpy(limits).to(self.device).index_select(0, self.codes.int())
        return count_codes(self.codes.masked_fill(measured.losses > limit, self.size), self.size)

    def draw(self, selected: DeviceSelection, counts: NDArray[np.int64], draw: Draw) -> torch.Tensor:
        """Draw an epoch's batches, on the device."""
        members, sizes = selected.members, counts
        if not draw.by_cell:
            members, sizes = selected.indices, counts.sum(keepdims=True)
        drawn = members.new_empty((draw.batches, int(draw.shares.sum())))
        starts, columns = np.cumsum(sizes) - sizes, np.cumsum(draw.shares) - draw.shares
        for cell, places in self._places(sizes, draw):
            share, own = int(draw.shares[cell]), members[starts[cell] : starts[cell] + sizes[cell]]
            target = drawn[:, columns[cell] : columns[cell] + share]
            target.copy_(own[places].view(target.shape))
        return drawn

    def _places(self, sizes: NDArray[np.int64], draw: Draw) -> Iterator[tuple[int, torch.Tensor]]:
        """Yield each cell that is drawn from, and the first places of its endless order.

        Cells whose shuffles have the same next power of two are shuffled together, as far as memory allows.
        """
        counts = draw.batches * draw.shares
        shapes: dict[tuple[int, int], list[int]] = {}
        for cell in np.flatnonzero(counts).tolist():
            shapes.setdefault(shuffle_shape(int(sizes[cell])), []).append(cell)
        for (mask, half), cells in shapes.items():
            rows: list[tuple[int, int]] = []
            for cell in cells:
                whole, rest = divmod(int(counts[cell]), int(sizes[cell]))
                # A few places of one more lap are cheaper on the host than a whole lap on the device.
                rows += [(cell, lap) for lap in range(whole + (rest > FEW_PLACES or whole == 0))]
            parts: dict[int, list[torch.Tensor]] = {cell: [] for cell in cells}
            together = max(1, CHUNK // (mask + 1))
            for first in range(0, len(rows), together):
                some = np.array(rows[first : first + together])
                constants = shuffle_constants(draw.seed, draw.epoch, some[:, :1], some[:, 1:])
                laps = _shuffle_laps(sizes[some[:, 0]], constants, mask, half, self.device)
                for cell, lap in zip(some[:, 0].tolist(), laps, strict=True):
                    parts[cell].append(lap[: sizes[cell]])
            for cell in cells:
                done, size, count = len(parts[cell]) * int(sizes[cell]), int(sizes[cell]), int(counts[cell])
                if done < count:
                    last = shuffled(size, draw.seed, draw.epoch, cell, done, count)
                    parts[cell].append(torch.from_numpy(last).to(self.device, parts[cell][0].dtype))
                own = parts[cell]
                yield cell, (own[0] if len(own) == 1 else torch.cat(own))[:count]


def _shuffle_laps(
    sizes: NDArray[np.int64], constants: NDArray[np.uint64], mask: int, half: int, device: torch.device
) -> torch.Tensor:
    """Return one lap through a cell in each row, (rows, largest cell); what is beyond a smaller cell means nothing.

    A place whose element is beyond the cell is sent through again until it is not. In place of a loop over
    fewer and fewer of them, which a device would wait for, the ways of all elements beyond the cell are
    doubled: after k turns everyone has gone 2ᵏ steps, or as far as it must.
    """
    factors = constants.view(np.int64)
    factors[:, ::2] |= 1
    kind = torch.int32 if mask < 2**31 else torch.int64
    table = torch.from_numpy(factors.astype(np.int32) if kind == torch.int32 else factors).to(device)
    size = torch.from_numpy(sizes[:, None]).to(device, kind)
    smallest, largest = int(sizes.min()), int(sizes.max())
    values = torch.arange(mask + 1, dtype=kind, device=device).expand(len(sizes), -1)
    for i in range(0, 2 * ROUNDS, 2):
        values = torch.addcmul(table[:, i + 1 : i + 2], values, table[:, i : i + 1])
        values &= mask
        values ^= values >> half
    if smallest > mask:
        return values
    inside, beyond = values[:, :largest], values[:, smallest:]
    is_place = torch.arange(largest, device=device) < size
    while (
        True
    ):  # cycles that lie beyond the cell as a whole go round for ever, but nobody inside comes to them
        for _ in range(5):
            step = beyond.gather(1, (beyond - smallest).clamp_(min=0).long())
            beyond = torch.where(beyond < size, beyond, step)
        step = beyond.gather(1, (inside - smallest).clamp_(min=0).long())
        inside = torch.where(inside < size, inside, step)
        if not bool(((inside >= size) & is_place).any()):
            return inside


def cells_on(
    device: torch.device,
    labels: Any,
    groups: Any,
    classes: Sequence[Any] | None,
    group_values: Sequence[Any] | None,
    missing: Missing,
) -> Cells:
    """Return the cells of labels and groups with their codes on a device.

    A column of integers on a device stays there. Anything else is encoded on the host first.
    """
    if isinstance(labels, torch.Tensor) and labels.is_floating_point():  # whole numbers, or refused
        labels = labels.detach().cpu().float().numpy()
        if classes is None:
            refuse_continuous("labels", labels)
    rows, class_list = _codes_on(device, "labels", labels, classes, lambda: encode("labels", labels, classes))
    columns, group_list = _codes_on(
        device, "groups", groups, group_values, lambda: encode_groups("groups", groups, group_values, missing)
    )
    check_lengths(len(rows), len(columns))
    size = len(class_list) * len(group_list)
    kind = torch.uint8 if size < 256 else torch.int16 if size < 2**15 else torch.int32
    codes = (rows * len(group_list)).add_(columns).to(kind)
    return Cells(codes, class_list, group_list)


def _codes_on(
    device: torch.device, name: str, values: Any, known: Sequence[Any] | None, on_host: Any
) -> tuple[torch.Tensor, list[Any]]:
    """Return the place of each value among the known ones, or those that occur, and these in order."""
    if isinstance(values, torch.Tensor) and values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if _is_column(values):
        values = values.to(device)
        found = _look_up(
            values, [False, True] if known is None and values.dtype == torch.bool else known, name
        )
        if found is not None:
            return found
    codes, listed = on_host()
    return torch.from_numpy(np.asarray(codes, np.int32)).to(device), listed


def _is_column(values: Any) -> bool:
    """Return whether values are a tensor with one column of integers."""
    return (
        isinstance(values, torch.Tensor)
        and values.ndim == 1
        and len(values) > 0
        and not values.is_floating_point()
        and not values.is_complex()
    )


def _look_up(
    values: torch.Tensor, known: Sequence[Any] | None, name: str
) -> tuple[torch.Tensor, list[Any]] | None:
    """Look up integers in a table on their device; None if they are too far apart for one."""
    low, high = (int(end) for end in torch.aminmax(values))
    if high - low >= WIDEST or (
        known is not None and not all(isinstance(v, (int, np.integer)) for v in known)
    ):
        return None
    is_wide = max(abs(low), abs(high)) >= 2**30
    offsets = (values.long() - low).int() if is_wide else values.int() - low if low else values.int()
    present = torch.zeros(high - low + 1, dtype=torch.bool, device=values.device)
    _mark_present(present, offsets)
    occurring = [low + place for place in present.nonzero().squeeze(1).tolist()]
    listed = occurring if known is None else list(known)
    places = {value: place for place, value in enumerate(listed)}
    if len(places) < len(listed):
        raise InvalidInputError(f"known {name} must be different; got {shown(listed)}: leave one out")
    unknown = [value for value in occurring if value not in places]
    if unknown:
        raise InvalidInputError(f"{name} must be among {shown(listed)}; got also {shown(unknown)}")
    if occurring == listed[: len(occurring)] == list(range(low, high + 1)):
        return offsets, listed  # codes already, but for where they begin
    table = torch.zeros(high - low + 1, dtype=torch.int32)
    for value in occurring:
        table[value - low] = places[value]
    return table.to(values.device).index_select(0, offsets), listed


def count_codes(codes: torch.Tensor, cells: int) -> NDArray[np.int64]:
    """Count the codes below ``cells``, on the host; ``bincount`` is slow where many count for few."""
    if cells <= FEW_CELLS:
        return torch.stack([(codes == cell).sum() for cell in range(cells)]).cpu().numpy()
    return codes.int().bincount(minlength=cells).cpu().numpy()[:cells]


def _mark_present(present: torch.Tensor, offsets: torch.Tensor) -> None:
    """Mark which of a few values occur among many: writes of all to one place would wait for each other."""
    if len(present) <= 64:
        for place in range(len(present)):
            present[place] = (offsets == place).any()
    else:
        present.copy_(torch.bincount(offsets, minlength=len(present)) > 0)
