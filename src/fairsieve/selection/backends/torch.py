"""Selection where the losses are: by Triton's kernels on a GPU, or by tensor operations on any device."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from fairsieve.selection.backends.triton import Columns, can_use_triton, select_by_triton
from fairsieve.selection.search import (
    KEY,
    ON_INDEX,
    PREFIX,
    SHIFT,
    WIDTH,
    advance,
    asked_digit,
    digit_width,
    new_walk,
)

__all__ = ["select_by_tensors", "select_on_device"]

SIGN = -(2**63)


def select_on_device(
    bits: torch.Tensor, codes: torch.Tensor | Columns, ratios: NDArray[np.float64], budget: int, infinity: int
) -> tuple[torch.Tensor, torch.Tensor | NDArray[np.int64]] | None:
    """Ascending indices (on the device) and counts per cell of the selection.

    ``infinity`` is the bit pattern of the largest loss there may be; None when a loss is NaN.
    """
    if can_use_triton(bits, ratios.size):
        found = select_by_triton(bits, codes, ratios, budget, infinity)
        if found is not None:
            return found
    codes = codes.filled() if isinstance(codes, Columns) else codes
    return select_by_tensors(bits, codes, ratios, budget, infinity)


def select_by_tensors(
    bits: torch.Tensor, codes: torch.Tensor, ratios: NDArray[np.float64], budget: int, infinity: int
) -> tuple[torch.Tensor, NDArray[np.int64]] | None:
    """:func:`select_on_device` in tensor operations.

    Only tables of counts come to the host, a handful for each place where cells close; their size
    does not depend on the number of samples.
    """
    wide = bits.to(torch.int64)
    keys = torch.where(wide >= 0, wide, torch.iinfo(bits.dtype).min - wide)
    smallest, largest = (int(end) for end in torch.aminmax(keys))
    if smallest < -infinity or largest > infinity:
        return None
    order = keys - smallest  # wraps for float64 of both signs: read as unsigned from here on
    everything = _Part(order, codes, None)
    walk = new_walk(
        ratios, budget, np.uint64(largest - smallest), len(bits), digit_width(len(bits), ratios.size)
    )
    top = int(walk.window[SHIFT])
    part, digit = everything, -1
    counts = _count_digits(everything, walk.window, ratios.size)
    while not advance(walk, counts):
        if asked_digit(walk.window, top) != digit:  # later questions are about a digit of the first window
            digit = asked_digit(walk.window, top)
            part = _part_of(everything, top, digit)
        counts = _count_digits(part, walk.window, ratios.size)
    cells = codes.long()
    key_limit = _signed(walk.key_limit, bits.device)[cells]
    index_limit = _signed(walk.index_limit, bits.device)[cells]
    index = torch.arange(len(bits), device=bits.device)
    below = (order ^ SIGN) < (key_limit ^ SIGN)  # flipping the sign bit makes the comparison unsigned
    chosen = below | ((order == key_limit) & (index < index_limit))
    return chosen.nonzero().squeeze(1), walk.taken


class _Part(NamedTuple):
    """Some of the samples: their order, their cells, and which they are (None: all of them)."""

    order: torch.Tensor
    codes: torch.Tensor
    which: torch.Tensor | None


def _part_of(everything: _Part, top: int, digit: int) -> _Part:
    """The samples in one digit of the first window."""
    index = (_shifted(everything.order, top) == _as_signed(digit)).nonzero().squeeze(1)
    return _Part(everything.order[index], everything.codes[index], index)


def _shifted(order: torch.Tensor, shift: int) -> torch.Tensor:
    """Shift as unsigned numbers: clear what the sign bit smears in."""
    return (order >> shift) & ((1 << (64 - shift)) - 1) if shift else order


def _count_digits(part: _Part, window: NDArray[np.uint64], cells: int) -> NDArray[np.int64]:
    """Samples of each cell by the digit that the window asks for."""
    on_index, key, prefix, shift, width = (
        int(window[field]) for field in (ON_INDEX, KEY, PREFIX, SHIFT, WIDTH)
    )
    order, codes = part.order, part.codes
    if on_index:
        equal = (order == _as_signed(key)).nonzero().squeeze(1)
        order, codes = equal if part.which is None else part.which[equal], codes[equal]
    digits = _shifted(order, shift) - _as_signed(prefix << width)
    inside = (digits >= 0) & (digits < 1 << width)
    flat = (codes[inside].long() << width) + digits[inside]
    return torch.bincount(flat, minlength=cells << width).view(cells, 1 << width).cpu().numpy()


def _as_signed(value: int) -> int:
    """An unsigned 64-bit number as the signed one with the same bits."""
    return value - 2**64 if value >= 2**63 else value


def _signed(values: NDArray[np.uint64], device: torch.device) -> torch.Tensor:
    return torch.from_numpy(values.view(np.int64).copy()).to(device)
