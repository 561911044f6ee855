"""The torch backend with fused kernels for a GPU: counting, marking, adding up and drawing take one pass each.

``benchmarks/epoch_gpu.py`` measures them beside torch's operations. Compiling the kernels takes seconds; where a
plan chose this backend itself they are compiled on a thread of their own, and torch's operations answer until then.
"""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import math
import threading
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from fairsieve.selection.backends.torch import DeviceSelection, Sorted, TorchBackend
from fairsieve.selection.backends.torch_cells import FEW_CELLS
from fairsieve.selection.batches import Draw
from fairsieve.selection.cells import Cells
from fairsieve.selection.exact_sums import as_digits, limbs
from fairsieve.selection.shuffle import ROUNDS, shuffle_constants, shuffle_shape

__all__ = ["TritonBackend", "can_use_triton"]

LIMBS = 3  # of 35 bits each, for a hundred million samples
TILE, TILES = 1024, 16  # samples looked at together, and how often

_ready: set[tuple[Any, ...]] = set()  # devices, types and numbers of cells whose kernels are compiled
_started: set[tuple[Any, ...]] = set()
_lock = threading.Lock()


@functools.cache
def _has_triton() -> bool:
    """Return whether Triton is installed; it comes with torch's builds for GPUs."""
    return importlib.util.find_spec("triton") is not None


def can_use_triton(device: Any) -> bool:
    """Return whether Triton's kernels run on a device."""
    return torch.device(device).type == "cuda" and _has_triton()


class TritonBackend(TorchBackend):
    """Answers in fused kernels where they are faster than torch operations.

    Parameters
    ----------
    in_background : bool
        Whether kernels are compiled on a thread of their own, while torch's operations answer.
    """

    name = "triton"

    def __init__(self, cells: Cells, device: Any, *, in_background: bool = False) -> None:
        super().__init__(cells, device)
        self._in_background = in_background
        self._is_ready = not in_background

    def measure(self, losses: Any, signals: Any | None) -> Sorted:
        """Take in tensors and sort them; see whether the kernels for their type are ready."""
        measured = super().measure(losses, signals)
        if self._in_background:
            self._is_ready = _is_compiled(self, measured.losses.dtype)
        return measured

    def _launch(self, name: str, grid: tuple[int, ...], *arguments: Any) -> None:
        """Start a kernel on the backend's device."""
        from fairsieve.selection.backends import triton_kernels

        with torch.cuda.device(self.device) if self.device.type == "cuda" else nullcontext():
            getattr(triton_kernels, name)[grid](*arguments)

    def _count_blocks(self, order: torch.Tensor, block: int, blocks: int) -> NDArray[np.int64]:
        """Count while reading the codes in the order of the losses."""
        if block < TILE or self.size > FEW_CELLS or not self._is_ready:
            return super()._count_blocks(order, block, blocks)
        counts = torch.zeros((self.size, blocks), dtype=torch.int64, device=self.device)
        shape = len(order), block.bit_length() - 1, blocks
        programs = -(-len(order) // TILE)
        self._launch("count_blocks", (programs,), order, self.codes, counts, *shape, self.size, TILE)
        return counts.cpu().numpy()

    def _mark(self, measured: Sorted, ranks: NDArray[np.int64]) -> torch.Tensor:
        """Compare every sample with its cell's limit."""
        if not self._is_ready:
            return super()._mark(measured, ranks)
        limits, indices = self._limits(measured, ranks)
        marked, n = torch.empty_like(self.codes), len(self.codes)
        arrays = measured.losses, self.codes, limits, indices, marked
        self._launch("mark_below", (-(-n // TILE),), *arrays, n, self.size, TILE)
        return marked

    def _sums(self, signal: torch.Tensor, selected: DeviceSelection) -> list[list[int]]:
        """Return the digits of the sum of each cell, by a kernel unless the values spread too far."""
        largest = float(signal.abs().max()) if len(signal) and self._is_ready else 0.0
        if not 2.0**-800 < largest < 2.0**800:  # not ready, nothing to add, or scales out of range
            return super()._sums(signal, selected)
        units, scales = [], np.empty(2 * LIMBS)
        for limb in range(LIMBS):
            shift, unit = limbs(largest, max(1, int(selected.counts.sum())))
            units.append(unit)
            scales[limb], scales[LIMBS + limb] = math.ldexp(1.0, shift), math.ldexp(1.0, unit)
            largest = math.ldexp(1.0, unit)
        sums = self._add_limbs(signal, selected, scales)
        if sums[-1, 0]:
            return super()._sums(signal, selected)
        return [as_digits(list(zip(row, units, strict=True))) for row in sums[:-1].tolist()]

    def _add_limbs(
        self, signal: torch.Tensor, selected: DeviceSelection, scales: NDArray[np.float64]
    ) -> NDArray[np.int64]:
        """Return each cell's limbs; in a last row, whether something is left of any value."""
        sums = torch.zeros((self.size + 1, LIMBS), dtype=torch.int64, device=self.device)
        edges = np.concatenate([[0], np.cumsum(selected.counts)])
        there, scale = (torch.from_numpy(values).to(self.device) for values in (edges, scales))
        programs = max(1, -(-int(selected.counts.max(initial=0)) // (TILE * TILES)))
        arrays = signal, selected.members, there, scale, sums, sums[-1]
        self._launch("add_limbs", (programs, self.size), *arrays, TILE, TILES)
        return sums.cpu().numpy()

    def _fill(self, drawn: torch.Tensor, members: torch.Tensor, sizes: NDArray[np.int64], draw: Draw) -> None:
        """Fill the batches in one kernel."""
        if not self._is_ready:
            return super()._fill(drawn, members, sizes, draw)
        draws = draw.batches * draw.shares
        laps = np.where(draws > 0, -(-draws // np.maximum(sizes, 1)), 0)
        cell = np.repeat(np.arange(len(sizes)), laps)
        lap = np.arange(len(cell)) - np.repeat(np.cumsum(laps) - laps, laps)
        constants = shuffle_constants(draw.seed, draw.epoch, cell[:, None], lap[:, None]).view(np.int64)
        constants[:, ::2] |= 1
        if int(sizes.max()) <= 2**31:
            constants = constants.astype(np.int32)
        shapes = np.array([shuffle_shape(size) for size in sizes.tolist()], np.int64)
        table = np.stack(
            [
                np.cumsum(sizes) - sizes, sizes, draw.shares, np.cumsum(draw.shares) - draw.shares,
                draws, shapes[:, 0], shapes[:, 1], np.cumsum(laps) - laps,
            ],
            axis=1,
        )  # fmt: skip
        tables = (torch.from_numpy(values).to(self.device) for values in (table, constants))
        programs = -(-int(draws.max()) // TILE)
        arrays = members, drawn, *tables, drawn.shape[1]
        return self._launch("draw_members", (programs, len(sizes)), *arrays, ROUNDS, TILE)


def _is_compiled(backend: TritonBackend, dtype: torch.dtype) -> bool:
    """Return whether the kernels for a type of losses and cells are ready; start to compile them if not."""
    key = backend.device, dtype, backend.codes.dtype, min(backend.size, FEW_CELLS + 1)
    if key not in _ready:
        with _lock:
            is_new = key not in _started
            _started.add(key)
        if is_new:
            shape = backend.cells.shape
            threading.Thread(target=_compile, args=(key, shape), name="fairsieve-triton").start()
    return key in _ready


def _compile(key: tuple[Any, ...], shape: tuple[int, int]) -> None:
    """Compile the kernels by a small epoch, one after the other; stop if the program ends."""
    device, dtype, kind, _ = key
    codes = torch.zeros(4 * TILE, dtype=kind, device=device)
    cells = Cells(codes, list(range(shape[0])), list(range(shape[1])))
    backend = TritonBackend(cells, device)
    measured = backend.measure(torch.ones(len(codes), dtype=dtype, device=device), None)
    selected, counts = backend.hold(None)
    draw = Draw(np.eye(1, backend.size, dtype=np.int64)[0], 1, 0, 0, True)
    steps: list[Callable[[], object]] = [
        lambda: backend.draw(selected, counts, draw),
        lambda: backend.sum_signals(measured, selected),
        lambda: backend._count_blocks(measured.order, TILE, 8),
        lambda: backend._mark(measured, np.zeros(backend.size, np.int64)),
    ]
    with contextlib.suppress(Exception):  # torch's operations go on answering
        for step in steps:
            if not threading.main_thread().is_alive():
                return
            step()
        _ready.add(key)
