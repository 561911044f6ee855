"""Answering the walk's questions with tensor operations, on whatever device holds the losses."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from fairsieve.core.walk import KEY, ON_INDEX, PREFIX, SHIFT, WIDTH, advance, digit_width, new_walk

__all__ = ["select_on_device"]

SIGN = -(2**63)


def select_on_device(
    bits: torch.Tensor, codes: NDArray[Any], ratios: NDArray[np.float64], budget: int
) -> tuple[torch.Tensor, NDArray[np.int64]]:
    """Ascending indices (on the device) and counts per cell (on the host) of the selection.

    Only tables of counts come to the host, a handful for each cell that closes; their size does
    not depend on the number of samples.
    """
    wide = bits.to(torch.int64)
    keys = torch.where(wide >= 0, wide, torch.iinfo(bits.dtype).min - wide)
    smallest = int(keys.min())
    span = np.uint64(int(keys.max()) - smallest)
    order = keys - smallest  # wraps for float64 of both signs: read as unsigned from here on
    cells = torch.from_numpy(codes.astype(np.int64)).to(bits.device)
    walk = new_walk(ratios, budget, span, len(bits), digit_width(len(bits), ratios.size))
    while not advance(walk, count_digits(order, cells, walk.window, ratios.size)):
        pass
    key_limit = signed(walk.key_limit, bits.device)[cells]
    index_limit = signed(walk.index_limit, bits.device)[cells]
    index = torch.arange(len(bits), device=bits.device)
    below = (order ^ SIGN) < (key_limit ^ SIGN)  # flipping the sign bit makes the comparison unsigned
    chosen = below | ((order == key_limit) & (index < index_limit))
    return chosen.nonzero().squeeze(1), walk.taken


def count_digits(
    order: torch.Tensor, cells: torch.Tensor, window: NDArray[np.uint64], n_cells: int
) -> NDArray[np.int64]:
    """Samples of each cell by the digit that the window asks for."""
    on_index, key, prefix, shift, width = (
        int(window[field]) for field in (ON_INDEX, KEY, PREFIX, SHIFT, WIDTH)
    )
    if on_index:
        index = (order == as_signed(key)).nonzero().squeeze(1)
        cells, order = cells[index], index
    digits = order >> shift
    if shift:  # a logical shift: clear what the sign bit smeared in
        digits &= (1 << (64 - shift)) - 1
    low = as_signed(prefix << width)
    digits = digits - low
    inside = (
        (digits >= 0) & (digits < 1 << width) if width < 63 else torch.ones_like(digits, dtype=torch.bool)
    )
    flat = (cells[inside] << width) + digits[inside]
    return torch.bincount(flat, minlength=n_cells << width).view(n_cells, 1 << width).cpu().numpy()


def as_signed(value: int) -> int:
    """An unsigned 64-bit number as the signed one with the same bits."""
    return value - 2**64 if value >= 2**63 else value


def signed(values: NDArray[np.uint64], device: torch.device) -> torch.Tensor:
    return torch.from_numpy(values.view(np.int64).copy()).to(device)
