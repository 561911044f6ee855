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

from fairsieve.selection.backends.ending import Ending, finish, takes_one

__all__ = ["Columns", "can_use_triton", "select_by_triton"]

SAMPLED = 2**18  # losses looked at first
MOST_DIGITS, MOST_COUNTS = 4096, 2**15  # digits that are counted; digits × cells
STRAY = 1.5  # a weighted share of a sample of m strays by at most about √m / 2 from that of all
MIDDLE = 2**61  # see the kernel sample
AT_ONCE, ROOM = (256, 8192, 65536), (2048, 16384, 131072)  # samples to walk one by one, and room for them
MOST_CELLS = 16
EXTRA = 512  # no fewer than are taken of the walked, as a rule
TILE, WARPS = 1024, 2  # samples and warps of a program
SURVEY_TILE, SURVEY_TILES, SURVEY_WARPS = 512, 64, 4  # samples at once, how often, and warps


COMPILED: dict[tuple[Any, ...], Any] = {}  # kernels by their name and the kind of data they are for


def can_use_triton(values: torch.Tensor, cells: int) -> bool:
    """Whether the kernels are there and made for this much data."""
    fits = 2**16 <= len(values) < 2**31 - 2**16 and cells <= MOST_CELLS
    return values.device.type == "cuda" and fits and _has_triton()


@functools.cache
def _has_triton() -> bool:
    """Whether Triton is installed; it comes with torch's builds for GPUs."""
    return importlib.util.find_spec("triton") is not None


def _aligned(values: torch.Tensor) -> torch.Tensor:
    """The values, or a copy, contiguous and at an address that whole fours may be read from."""
    values = values.contiguous()
    return values.clone() if values.data_ptr() % 32 else values


def select_by_triton(
    bits: torch.Tensor, codes: torch.Tensor | Columns, ratios: NDArray[np.float64], budget: int, infinity: int
) -> tuple[torch.Tensor, torch.Tensor] | None:
    """Ascending indices and counts per cell of the selection, on the device.

    None when the kernels cannot tell: NaN among the losses, cells that close far apart, or so many
    equal losses at that place that walking them one by one would not pay.
    """
    closing = takes_one(ratios, budget)
    if not closing.any():
        nothing = torch.zeros(ratios.size, dtype=torch.int64, device=bits.device)
        return nothing[:0], nothing
    with torch.cuda.device_of(bits):
        return _select_in(_Work(_aligned(bits), codes, ratios, budget, infinity, closing))


def _select_in(work: _Work) -> tuple[torch.Tensor, torch.Tensor] | None:
    """:func:`select_by_triton`, step by step."""
    work.look()
    for attempt in range(len(ROOM)):
        work.collect(attempt)
        found = work.walk(attempt)
        if found is not None:
            return work.take(*found)
        if not work.can_widen(attempt):
            break
    return None


class Columns:
    """Labels and groups on a device, taken for codes already until the survey has seen them all.

    Attributes
    ----------
    codes : tensor
        The cell of every sample, once something has written them.
    are_right : bool or None
        Whether all labels and groups were codes; None before anyone has looked.
    """

    def __init__(self, labels: torch.Tensor, groups: torch.Tensor, shape: tuple[int, int]) -> None:
        self.labels, self.groups, self.shape = _aligned(labels), _aligned(groups), shape
        kind = torch.uint8 if shape[0] * shape[1] <= 256 else torch.int32
        self.codes = torch.empty(-(-len(labels) // 4) * 4, dtype=kind, device=labels.device)[: len(labels)]
        self.are_right: bool | None = None

    def __len__(self) -> int:
        return len(self.labels)

    def filled(self) -> torch.Tensor:
        """The codes, by tensor operations where no kernel has written them."""
        if self.are_right is None:
            labels, groups, (classes, columns) = self.labels, self.groups, self.shape
            bad = (labels < 0) | (labels >= classes) | (groups < 0) | (groups >= columns)
            self.codes.copy_(torch.where(bad, 0, labels.int() * columns + groups.int()))
            self.are_right = not bool(bad.any())
        return self.codes

    def fit(self) -> bool:
        """Whether all labels and groups are codes."""
        self.filled()
        return bool(self.are_right)


class _Work:
    """One selection on its way. What the host reads lies at the beginning of one buffer of words.

    The order there: the window (3 × 2 words), the sample's ends (2 × 2), the digits walked (2), how
    many are listed, where NaN was met, where labels that are no codes, an empty word, counts below the
    walked digits (cells), the list.
    """

    def __init__(
        self,
        bits: torch.Tensor,
        codes: torch.Tensor | Columns,
        ratios: NDArray[np.float64],
        budget: int,
        infinity: int,
        closing: NDArray[np.bool_],
    ) -> None:
        from fairsieve.selection.backends import triton_kernels

        self.kernels = triton_kernels
        self.columns = codes if isinstance(codes, Columns) else None
        self.codes = codes.codes if isinstance(codes, Columns) else _aligned(codes)
        self.bits, self.ratios, self.budget = bits, ratios, budget
        self.n, self.cells, self.infinity, self.closing = len(bits), ratios.size, infinity, closing
        self.lowest = torch.iinfo(bits.dtype).min
        self.tiles = -(-self.n // TILE)
        self.digits = min(MOST_DIGITS, MOST_COUNTS >> (self.cells - 1).bit_length())
        rows, columns = (1 << (size - 1).bit_length() for size in ratios.shape)
        self.shape = (*ratios.shape, rows, columns)
        sizes = [6, 4, 2, 1, 3, self.cells, 4 * ROOM[0]]
        kept_here = [self.cells, self.cells * self.digits, self.cells, self.cells * self.digits]
        buffer = torch.zeros(sum(sizes) + sum(kept_here), dtype=torch.int32, device=bits.device)
        self.shared, self.low, self.fine, self.nothing, self.sampled = buffer.split([sum(sizes), *kept_here])
        window, ends, self.walked, self.filled, self.strange, self.below, self.listed = self.shared.split(
            sizes
        )
        self.window, self.sample_ends = window.view(torch.int64), ends.view(torch.int64)
        self.kept = self.empty(self.tiles, torch.int32)  # of each tile; in `ends` those to the end of it
        self.ends: torch.Tensor
        self.kind: tuple[Any, ...] = bits.device, bits.dtype, infinity, self.codes.dtype, self.shape
        if self.columns is not None:
            self.kind += self.columns.labels.dtype, self.columns.groups.dtype
        self.answer: NDArray[np.int32] = np.zeros(0, np.int32)
        self.every: NDArray[np.int64] | None = None

    def launch(self, name: str, programs: int, *arguments: Any, **options: Any) -> None:
        """Start a kernel. What was compiled for this kind of data is found by its kind alone.

        Triton would look at every argument again, which takes as long as some of the kernels run.
        """
        kernel = COMPILED.get((name, self.kind))
        if kernel is None:
            function = getattr(self.kernels, name)
            # Triton's interpreter, which needs no GPU, compiles nothing.
            kernel = function.warmup(*arguments, grid=(programs,), **options) or function
            COMPILED[name, self.kind] = kernel
        kernel[programs, 1, 1](*arguments)

    def empty(self, size: int, dtype: torch.dtype) -> torch.Tensor:
        return torch.empty(size, dtype=dtype, device=self.bits.device)

    def look(self) -> None:
        """Sample, find the window, count everything, find the digits to walk. The host does not wait."""
        size = min(SAMPLED, 1 << (self.n.bit_length() - 1))
        keys = self.empty(size, torch.int64 if self.bits.dtype == torch.int64 else torch.int32)
        cells = self.empty(size, self.codes.dtype)
        programs, columns = size // 512, self.columns
        read = (self.codes, *((self.codes,) * 2 if columns is None else (columns.labels, columns.groups)))
        coded = (*self.ratios.shape, columns is None)
        self.launch(
            "sample", programs, self.bits, *read, keys, cells, self.sample_ends, self.n, *coded,
            self.lowest, self.infinity, MIDDLE, 512,
        )  # fmt: skip
        self.launch(
            "count_sample", programs, keys, cells, self.sample_ends, self.sampled, MIDDLE, self.digits, 512
        )
        ratios = torch.from_numpy(self.ratios.reshape(-1)).to(self.bits.device, non_blocking=True)
        self.launch(
            "guess_window", 1, self.nothing, self.sampled, self.sample_ends, ratios, self.window,
            self.budget * size / self.n, STRAY * size**0.5,
            *self.shape, self.digits, MIDDLE, self.infinity, num_warps=32,
        )  # fmt: skip
        self.launch(
            "survey", -(-self.n // (SURVEY_TILE * SURVEY_TILES)), self.bits, *read, self.window, self.low, self.fine,
            self.strange, self.n, *coded, self.digits, self.lowest, self.infinity, SURVEY_TILE, SURVEY_TILES,
            num_warps=SURVEY_WARPS,
        )  # fmt: skip
        self.launch(
            "guess_range", 1, self.low, self.fine, ratios, self.walked, self.below, self.budget, AT_ONCE[0],
            *self.shape, self.digits, num_warps=32,
        )  # fmt: skip

    def collect(self, attempt: int) -> None:
        """List the samples of the digits walked, and count the others that are taken, tile by tile."""
        if attempt:
            self.listed = self.empty(4 * ROOM[attempt], torch.int32)
            self.filled.zero_()
        closing = sum(1 << cell for cell in np.flatnonzero(self.closing).tolist())
        self.launch(
            "collect", self.tiles, self.bits, self.codes, self.window, self.walked, self.kept, self.listed, self.filled,
            self.n, ROOM[attempt], closing, self.lowest, TILE, num_warps=WARPS,
        )  # fmt: skip
        self.ends = torch.cumsum(self.kept, 0)

    def walk(self, attempt: int) -> Ending | None:
        """Follow the walk through the listed samples."""
        answer = self.answer = self.shared.cpu().numpy()
        if self.columns is not None:
            self.columns.are_right = not answer[14]
        size, begin = int(answer[12]), 16 + self.cells
        if answer[13] or size > ROOM[attempt]:
            return None
        listed = answer[begin:] if attempt == 0 else self.listed.cpu().numpy()
        window, last = answer[:6].view(np.int64), int(answer[11])
        end = min(int(window[1]), int(window[0]) + (last << int(window[2])))
        listed = listed[: 4 * size].reshape(size, 4)
        known = answer[16:begin], listed, self.ratios, self.budget, self.closing, end, self.infinity
        found = finish(*known, self.every)
        if found is None and self.every is None:  # a cell may have been taken whole
            self.every = torch.bincount(self.codes, minlength=self.cells).cpu().numpy()
            found = finish(*known, self.every)
        return found

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

    def take(
        self, limits: NDArray[np.int64], taken: NDArray[np.int64], extra: NDArray[np.int64]
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """The indices below the limits, ascending, and how many each cell gave."""
        if len(extra) > EXTRA:
            tiles = torch.from_numpy(extra // TILE).to(self.bits.device)
            self.kept.index_add_(0, tiles, torch.ones_like(tiles, dtype=torch.int32))
            self.ends, extra = torch.cumsum(self.kept, 0), extra[:0]
        table = np.full(3 * self.cells + EXTRA, self.n)
        table[: 2 * self.cells], table[2 * self.cells : 3 * self.cells] = limits, taken
        table[3 * self.cells : 3 * self.cells + len(extra)] = extra
        there = torch.from_numpy(table).to(self.bits.device, non_blocking=True)
        chosen = self.empty(int(taken.sum()), torch.int64)
        self.launch(
            "take", self.tiles, self.bits, self.codes, there, there[3 * self.cells :], self.ends, self.kept,
            chosen, self.n, self.cells, self.lowest, EXTRA, TILE, num_warps=WARPS,
        )  # fmt: skip
        return chosen, there[2 * self.cells : 3 * self.cells]
