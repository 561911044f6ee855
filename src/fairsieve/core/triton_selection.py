"""Selection on a GPU: three passes over losses and cells, and one short answer to the host.

A budget that breaks closes nearly every cell within a few samples: a sample of any cell uses all or
most of one sample's worth of each budget. So one place is looked for. A *sample* of the losses says roughly
where the first budget breaks; a pass over everything counts what lies below that window, and finely
inside it; a second pass lists the few samples of the digits where the budget breaks, and the host
follows the walk through them, one by one. If that does not account for every cell the answer is
None, so a wrong guess costs time and never the answer.
"""

from __future__ import annotations

import functools
import importlib.util
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from fairsieve.core.narrowing import finish, takes_one

__all__ = ["aligned", "can_use_triton", "select_by_triton"]

SAMPLED = 2**18  # losses looked at first
MOST_DIGITS, MOST_COUNTS = 4096, 2**15  # digits that are counted; digits × cells
STRAY = 1.5  # a weighted share of a sample of m strays by at most about √m / 2 from that of all
MIDDLE = 2**61  # see the kernel sample
AT_ONCE, ROOM = (256, 8192, 65536), (2048, 16384, 131072)  # samples to walk one by one, and room for them
MOST_CELLS = 16
TILE, WARPS = 1024, 2  # samples and warps of a program
SURVEY_TILE, SURVEY_TILES, SURVEY_WARPS = 512, 64, 4  # samples at once, how often, and warps


def can_use_triton(values: torch.Tensor, cells: int) -> bool:
    """Whether the kernels are there and made for this much data."""
    fits = 2**16 <= len(values) < 2**31 - 2**16 and cells <= MOST_CELLS
    return values.device.type == "cuda" and fits and has_triton()


@functools.cache
def has_triton() -> bool:
    """Whether Triton is installed; it comes with torch's builds for GPUs."""
    return importlib.util.find_spec("triton") is not None


def aligned(values: torch.Tensor) -> torch.Tensor:
    """The values, or a copy, contiguous and at an address that whole fours may be read from."""
    values = values.contiguous()
    return values.clone() if values.data_ptr() % 32 else values


def select_by_triton(
    bits: torch.Tensor, codes: torch.Tensor, ratios: NDArray[np.float64], budget: int, infinity: int
) -> tuple[torch.Tensor, NDArray[np.int64]] | None:
    """Ascending indices (on the device) and counts per cell (on the host) of the selection.

    None when the kernels cannot tell: NaN among the losses, cells that close far apart, or so many
    equal losses at that place that walking them one by one would not pay.
    """
    closing = takes_one(ratios, budget)
    if not closing.any():
        return torch.zeros(0, dtype=torch.int64, device=bits.device), np.zeros(ratios.size, np.int64)
    work = Work(aligned(bits), aligned(codes), ratios, budget, infinity, closing)
    work.look()
    for attempt in range(len(ROOM)):
        work.collect(attempt)
        found = work.walk(attempt)
        if found is not None:
            limits, taken = found
            return work.take(limits, int(taken.sum())), taken
        if not work.can_widen(attempt):
            break
    return None


class Work:
    """One selection on its way. What the host reads lies at the beginning of one buffer of words.

    The order there: the window (3 × 2 words), the sample's ends (2 × 2), the digits walked (2), how
    many are listed, how many losses are NaN, counts below the walked digits and in all (2 × cells),
    the list.
    """

    def __init__(
        self,
        bits: torch.Tensor,
        codes: torch.Tensor,
        ratios: NDArray[np.float64],
        budget: int,
        infinity: int,
        closing: NDArray[np.bool_],
    ) -> None:
        from fairsieve.core import triton_kernels

        self.kernels = triton_kernels
        self.bits, self.codes, self.ratios, self.budget = bits, codes, ratios, budget
        self.n, self.cells, self.infinity, self.closing = len(bits), ratios.size, infinity, closing
        self.lowest = torch.iinfo(bits.dtype).min
        self.tiles = -(-self.n // TILE)
        self.digits = min(MOST_DIGITS, MOST_COUNTS >> (self.cells - 1).bit_length())
        rows, columns = (1 << (size - 1).bit_length() for size in ratios.shape)
        self.shape = (*ratios.shape, rows, columns)
        sizes = [6, 4, 2, 1, 1, self.cells, self.cells, 4 * ROOM[0]]
        kept_here = [self.cells, self.cells * self.digits, self.cells, self.cells * self.digits]
        buffer = self.zeros(sum(sizes) + sum(kept_here))
        self.shared, self.low, self.fine, self.nothing, self.sampled = buffer.split([sum(sizes), *kept_here])
        window, ends, self.walked, self.filled, self.strange, self.below, self.every, self.listed = (
            self.shared.split(sizes)
        )
        self.window, self.ends = window.view(torch.int64), ends.view(torch.int64)
        self.kept = self.low
        self.answer: NDArray[np.int32] = np.zeros(0, np.int32)

    def zeros(self, size: int) -> torch.Tensor:
        return torch.zeros(size, dtype=torch.int32, device=self.bits.device)

    def empty(self, size: int, dtype: torch.dtype) -> torch.Tensor:
        return torch.empty(size, dtype=dtype, device=self.bits.device)

    def look(self) -> None:
        """Sample, find the window, count everything, find the digits to walk. The host does not wait."""
        size = min(SAMPLED, 1 << (self.n.bit_length() - 1))
        keys = self.empty(size, torch.int64 if self.bits.dtype == torch.int64 else torch.int32)
        cells = self.empty(size, self.codes.dtype)
        grid = (size // 512,)
        self.kernels.sample[grid](
            self.bits, self.codes, keys, cells, self.ends, self.n, self.lowest, self.infinity, MIDDLE, 512
        )
        self.kernels.count_sample[grid](keys, cells, self.ends, self.sampled, MIDDLE, self.digits, 512)
        ratios = torch.from_numpy(self.ratios.reshape(-1)).to(self.bits.device, non_blocking=True)
        self.kernels.guess_window[(1,)](
            self.nothing, self.sampled, self.ends, ratios, self.window,
            self.budget * size / self.n, STRAY * size**0.5,
            *self.shape, self.digits, MIDDLE, self.infinity, num_warps=32,
        )  # fmt: skip
        self.kernels.survey[(-(-self.n // (SURVEY_TILE * SURVEY_TILES)),)](
            self.bits, self.codes, self.window, self.low, self.every, self.fine, self.strange, self.n,
            self.cells, self.digits, self.lowest, self.infinity, SURVEY_TILE, SURVEY_TILES,
            num_warps=SURVEY_WARPS,
        )  # fmt: skip
        self.kernels.guess_range[(1,)](
            self.low, self.fine, ratios, self.walked, self.below, self.budget, AT_ONCE[0],
            *self.shape, self.digits, num_warps=32,
        )  # fmt: skip

    def collect(self, attempt: int) -> None:
        """List the samples of the digits walked, and count the others that are taken, tile by tile."""
        if attempt:
            self.listed = self.empty(4 * ROOM[attempt], torch.int32)
            self.filled.zero_()
        self.kept = self.empty(self.tiles, torch.int32)
        closing = sum(1 << cell for cell in np.flatnonzero(self.closing).tolist())
        self.kernels.collect[(self.tiles,)](
            self.bits, self.codes, self.window, self.walked, self.kept, self.listed, self.filled,
            self.n, ROOM[attempt], closing, self.lowest, TILE, num_warps=WARPS,
        )  # fmt: skip

    def walk(self, attempt: int) -> tuple[NDArray[np.int64], NDArray[np.int64]] | None:
        """Follow the walk through the listed samples: limits by key and by index, and counts taken."""
        answer = self.answer = self.shared.cpu().numpy()
        size, cells = int(answer[12]), self.cells
        if answer[13] or size > ROOM[attempt]:
            return None
        listed = answer[14 + 2 * cells :] if attempt == 0 else self.listed.cpu().numpy()
        window, last = answer[:6].view(np.int64), int(answer[11])
        end = min(int(window[1]), int(window[0]) + (last << int(window[2])))
        below, every = answer[14 : 14 + 2 * cells].reshape(2, cells)
        listed = listed[: 4 * size].reshape(size, 4)
        return finish(below, every, listed, self.ratios, self.budget, self.closing, end, self.infinity)

    def can_widen(self, attempt: int) -> bool:
        """Set the digits walked to more of them, for another attempt; whether that may help."""
        if self.answer[13] or attempt + 1 == len(ROOM):
            return False
        fine = self.fine.view(self.cells, self.digits)
        sizes = torch.cumsum(fine.sum(dim=0), 0).cpu().numpy()
        first = max(0, int(self.answer[10]) - 2)
        before = sizes[first - 1] if first else 0
        last = int(np.searchsorted(sizes, before + AT_ONCE[attempt + 1], "right"))
        if last <= first:
            return False
        self.walked.copy_(torch.tensor([first, last], dtype=torch.int32))
        self.below.copy_(self.low + fine[:, :first].sum(dim=1))
        return True

    def take(self, limits: NDArray[np.int64], total: int) -> torch.Tensor:
        """The indices below the limits, ascending."""
        table: Any = torch.from_numpy(limits).to(self.bits.device, non_blocking=True)
        size = int(self.answer[12])
        if size:
            self.kernels.settle[(-(-size // 512),)](
                self.listed, table, self.kept, size, self.cells, TILE, 512
            )
        chosen = self.empty(total, torch.int64)
        self.kernels.take[(self.tiles,)](
            self.bits, self.codes, table, torch.cumsum(self.kept, 0), self.kept, chosen, self.n,
            self.cells, self.lowest, TILE, num_warps=WARPS,
        )  # fmt: skip
        return chosen
