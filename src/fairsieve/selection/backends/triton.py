"""The torch backend with fused kernels for a GPU: counting, marking, adding up and drawing take one pass each.

``benchmarks/epoch_gpu.py`` measures them beside torch's operations.
"""

from __future__ import annotations

import functools
import importlib.util
import math
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from fairsieve.selection.backends.torch import DeviceSelection, Sorted, TorchBackend
from fairsieve.selection.backends.torch_cells import FEW_CELLS
from fairsieve.selection.batches import Draw
from fairsieve.selection.exact_sums import as_digits, limbs
from fairsieve.selection.shuffle import ROUNDS, shuffle_constants, shuffle_shape

__all__ = ["TritonBackend", "can_use_triton"]

LIMBS = 3  # of 35 bits each, for a hundred million samples
TILE, TILES = 1024, 16  # samples looked at together, and how often


@functools.cache
def _has_triton() -> bool:
    """Return whether Triton is installed; it comes with torch's builds for GPUs."""
    return importlib.util.find_spec("triton") is not None


def can_use_triton(device: Any) -> bool:
    """Return whether Triton's kernels run on a device."""
    return torch.device(device).type == "cuda" and _has_triton()


class TritonBackend(TorchBackend):
    """Answers in fused kernels where they are faster than torch operations."""

    name = "triton"

    @functools.cached_property
    def _kernels(self) -> Any:
        from fairsieve.selection.backends import triton_kernels

        return triton_kernels

    def _count_blocks(self, order: torch.Tensor, block: int, blocks: int) -> NDArray[np.int64]:
        """Count while reading the codes in the order of the losses."""
        if block < TILE or self.size > FEW_CELLS:
            return super()._count_blocks(order, block, blocks)
        counts = torch.zeros((self.size, blocks), dtype=torch.int64, device=self.device)
        shape = len(order), block.bit_length() - 1, blocks
        self._kernels.count_blocks[(-(-len(order) // TILE),)](
            order, self.codes, counts, *shape, self.size, TILE
        )
        return counts.cpu().numpy()

    def _mark(self, measured: Sorted, ranks: NDArray[np.int64]) -> torch.Tensor:
        """Compare every sample with its cell's limit."""
        limits, indices = self._limits(measured, ranks)
        marked, n = torch.empty_like(self.codes), len(self.codes)
        self._kernels.mark_below[(-(-n // TILE),)](
            measured.losses, self.codes, limits, indices, marked, n, self.size, TILE
        )
        return marked

    def _sums(self, signal: torch.Tensor, selected: DeviceSelection) -> list[list[int]]:
        """Return the digits of the sum of each cell, by a kernel unless the values spread too far."""
        largest = float(signal.abs().max()) if len(signal) else 0.0
        if not 2.0**-800 < largest < 2.0**800:  # nothing to add, or scales out of range
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
        self._kernels.add_limbs[(programs, self.size)](
            signal, selected.members, there, scale, sums, sums[-1], TILE, TILES
        )
        return sums.cpu().numpy()

    def _fill(self, drawn: torch.Tensor, members: torch.Tensor, sizes: NDArray[np.int64], draw: Draw) -> None:
        """Fill the batches in one kernel."""
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
        self._kernels.draw_members[(programs, len(sizes))](
            members, drawn, *tables, drawn.shape[1], ROUNDS, TILE
        )
