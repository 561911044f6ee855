"""Kernels for a GPU, in Triton: each does in one pass over the samples what takes torch many."""

# Triton reads the source of these functions, so they carry its annotations only.

from __future__ import annotations

import triton
import triton.language as tl

__all__ = ["add_limbs", "draw_members"]


@triton.jit
def _send_through(value, row, mask, half, ROUNDS: tl.constexpr):
    """Apply all rounds of a shuffle; ``row`` points to each element's constants."""
    for i in tl.static_range(ROUNDS):
        value = (value * tl.load(row + 2 * i) + tl.load(row + 2 * i + 1)) & mask
        value = value ^ (value >> half)
    return value


@triton.jit(do_not_specialize=["size", "share", "width", "draws", "mask", "half"])
def draw_members(
    members, drawn, constants, size, share, width, draws, mask, half, ROUNDS: tl.constexpr, TILE: tl.constexpr
):
    """Write a cell's members in its shuffled order into its columns of the batches.

    ``constants`` has a row of factors and summands for every lap; its type is that of the shuffle.
    """
    position = tl.program_id(0).to(tl.int64) * TILE + tl.arange(0, TILE)
    inside = position < draws
    row = constants + position // size * (2 * ROUNDS)
    row = tl.where(inside, row, constants)
    value = tl.where(inside, position % size, 0).to(constants.dtype.element_ty)
    value = _send_through(value, row, mask.to(value.dtype), half.to(value.dtype), ROUNDS)
    pending = inside & (value >= size)
    while tl.max(pending.to(tl.int32)) > 0:
        again = _send_through(value, row, mask.to(value.dtype), half.to(value.dtype), ROUNDS)
        value = tl.where(pending, again, value)
        pending = inside & (value >= size)
    sample = tl.load(members + value, mask=inside, other=0)
    tl.store(drawn + position // share * width + position % share, sample, mask=inside)


@triton.jit
def _limb(value, up, down):
    """Split floats into whole multiples of a unit, rounded towards zero, and the rest."""
    whole = (value * up).to(tl.int64)
    return whole, value - whole.to(tl.float64) * down


@triton.jit(do_not_specialize=["first", "last"])
def add_limbs(signal, members, scales, sums, left, first, last, TILE: tl.constexpr, TILES: tl.constexpr):
    """Add up the signals of some members as whole numbers, in three limbs.

    ``scales`` has what a limb's floats are multiplied by, then what takes them back. ``left`` counts the
    programs in which the limbs did not hold everything.
    """
    base = first + tl.program_id(0).to(tl.int64) * (TILE * TILES)
    up0, up1, up2 = tl.load(scales), tl.load(scales + 1), tl.load(scales + 2)
    down0, down1, down2 = tl.load(scales + 3), tl.load(scales + 4), tl.load(scales + 5)
    zero = tl.zeros([TILE], dtype=tl.int64)
    total0, total1, total2 = zero, zero, zero
    rest = tl.zeros([TILE], dtype=tl.float64)
    for tile in range(TILES):
        index = base + tile * TILE + tl.arange(0, TILE)
        inside = index < last
        member = tl.load(members + index, mask=inside, other=0)
        value = tl.load(signal + member, mask=inside, other=0.0).to(tl.float64)
        whole, value = _limb(value, up0, down0)
        total0 += whole
        whole, value = _limb(value, up1, down1)
        total1 += whole
        whole, value = _limb(value, up2, down2)
        total2 += whole
        rest += tl.abs(value)
    tl.atomic_add(sums, tl.sum(total0))
    tl.atomic_add(sums + 1, tl.sum(total1))
    tl.atomic_add(sums + 2, tl.sum(total2))
    if tl.sum(rest) > 0:
        tl.atomic_add(left, 1)
