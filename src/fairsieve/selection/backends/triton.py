"""The torch backend with fused kernels for a GPU: the sums and the batches take one pass each.

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

from fairsieve.selection.backends.torch import DeviceSelection, TorchBackend
from fairsieve.selection.batches import Draw
from fairsieve.selection.exact_sums import as_digits, limbs
from fairsieve.selection.shuffle import ROUNDS, shuffle_constants, shuffle_shape

__all__ = ["TritonBackend", "can_use_triton"]

LIMBS = 3  # of 35 bits each, for a hundred million samples
MOST_CELLS = 64  # each is a launch
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

    def _sums(self, signal: torch.Tensor, selected: DeviceSelection) -> list[list[int]]:
        """Return the digits of the sum of each cell, by a kernel unless the values spread too far."""
        largest = float(signal.abs().max()) if len(signal) else 0.0
        if self.size > MOST_CELLS or not 2.0**-800 < largest < 2.0**800:  # scales would be out of range
            return super()._sums(signal, selected)
        units, scales = [], np.empty(2 * LIMBS)
        for limb in range(LIMBS):
            shift, unit = limbs(largest, max(1, len(selected.members)))
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
        from fairsieve.selection.backends.triton_kernels import add_limbs

        sums = torch.zeros((self.size + 1, LIMBS), dtype=torch.int64, device=self.device)
        there = torch.from_numpy(scales).to(self.device)
        first = 0
        for cell, size in enumerate(selected.counts.tolist()):
            if size:
                programs = -(-size // (TILE * TILES))
                add_limbs[(programs,)](
                    signal, selected.members, there, sums[cell], sums[-1], first, first + size, TILE, TILES
                )
            first += size
        return sums.cpu().numpy()

    def _draw_cell(self, own: torch.Tensor, cell: int, draw: Draw, target: torch.Tensor) -> None:
        """Fill a cell's columns of the batches in one kernel."""
        from fairsieve.selection.backends.triton_kernels import draw_members

        draws, share = target.numel(), target.shape[1]
        laps = np.arange(-(-draws // len(own)))[:, None]
        constants = shuffle_constants(draw.seed, draw.epoch, cell, laps).view(np.int64)
        constants[:, ::2] |= 1
        if len(own) <= 2**31:
            constants = constants.astype(np.int32)
        there = torch.from_numpy(constants).to(self.device)
        mask, half = shuffle_shape(len(own))
        draw_members[(-(-draws // TILE),)](
            own, target, there, len(own), share, target.stride(0), draws, mask, half, ROUNDS, TILE
        )
