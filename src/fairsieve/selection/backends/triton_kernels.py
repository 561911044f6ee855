"""Kernels for a GPU, in Triton: each does in one pass over the samples what takes torch many."""

# Triton reads the source of these functions, so they carry its annotations only.

from __future__ import annotations

import triton
import triton.language as tl

__all__ = ["add_limbs", "count_blocks", "draw_members", "mark_below"]


@triton.jit(do_not_specialize=["n", "shift", "blocks"])
def count_blocks(order, codes, counts, n, shift, blocks, CELLS: tl.constexpr, TILE: tl.constexpr):
    """Count the samples by cell and by block of 2**shift consecutive ranks, of which a tile lies in one."""
    rank = tl.program_id(0).to(tl.int64) * TILE + tl.arange(0, TILE)
    inside = rank < n
    code = tl.load(codes + tl.load(order + rank, mask=inside, other=0), mask=inside, other=0).to(tl.int32)
    block = (tl.program_id(0).to(tl.int64) * TILE) >> shift
    for cell in tl.static_range(CELLS):
        tl.atomic_add(
            counts + cell * blocks + block, tl.sum((inside & (code == cell)).to(tl.int32)).to(tl.int64)
        )


@triton.jit(do_not_specialize=["n", "cells"])
def mark_below(losses, codes, limits, indices, marked, n, cells, TILE: tl.constexpr):
    """Write the cell of each sample that comes before its cell's limit, and the number of cells for the others."""
    index = tl.program_id(0).to(tl.int64) * TILE + tl.arange(0, TILE)
    inside = index < n
    loss = tl.load(losses + index, mask=inside, other=0.0)
    code = tl.load(codes + index, mask=inside, other=0).to(tl.int32)
    limit = tl.load(limits + code)
    below = (loss < limit) | ((loss == limit) & (index < tl.load(indices + code)))
    tl.store(marked + index, tl.where(below, code, cells).to(marked.dtype.element_ty), mask=inside)


@triton.jit
def _send_through(value, row, mask, half, ROUNDS: tl.constexpr):
    """Apply all rounds of a shuffle; ``row`` points to each element's constants."""
    for i in tl.static_range(ROUNDS):
        value = (value * tl.load(row + 2 * i) + tl.load(row + 2 * i + 1)) & mask
        value = value ^ (value >> half)
    return value


@triton.jit(do_not_specialize=["width"])
def draw_members(members, drawn, table, constants, width, ROUNDS: tl.constexpr, TILE: tl.constexpr):
    """Write the members of a cell, the second program number, in a shuffled order into its columns.

    ``table`` has of each cell: its first member, its size, its share of a batch, its first column, how
    many are drawn, the mask and the shift of its shuffle, and its first row of ``constants``, which has
    one for every lap and whose type is that of the shuffle.
    """
    own = table + 8 * tl.program_id(1)
    first, size, share, column = tl.load(own), tl.load(own + 1), tl.load(own + 2), tl.load(own + 3)
    draws, row = tl.load(own + 4), tl.load(own + 7)
    base = tl.program_id(0).to(tl.int64) * TILE
    if base < draws:
        mask = tl.load(own + 5).to(constants.dtype.element_ty)
        half = tl.load(own + 6).to(constants.dtype.element_ty)
        position = base + tl.arange(0, TILE)
        inside = position < draws
        rows = constants + (row + tl.where(inside, position // size, 0)) * (2 * ROUNDS)
        value = tl.where(inside, position % size, 0).to(constants.dtype.element_ty)
        value = _send_through(value, rows, mask, half, ROUNDS)
        pending = inside & (value >= size)
        while tl.max(pending.to(tl.int32)) > 0:
            value = tl.where(pending, _send_through(value, rows, mask, half, ROUNDS), value)
            pending = inside & (value >= size)
        sample = tl.load(members + first + value, mask=inside, other=0)
        tl.store(drawn + position // share * width + column + position % share, sample, mask=inside)


@triton.jit
def _limb(value, up, down):
    """Split floats into whole multiples of a unit, rounded towards zero, and the rest."""
    whole = (value * up).to(tl.int64)
    return whole, value - whole.to(tl.float64) * down


@triton.jit
def add_limbs(signal, members, edges, scales, sums, left, TILE: tl.constexpr, TILES: tl.constexpr):
    """Add up the signals of a cell's members as whole numbers, in three limbs.

    The cell is the second program number, and its members stand between two of the ``edges``. ``scales``
    has what a limb's floats are multiplied by, then what takes them back. ``left`` counts the programs
    in which the limbs did not hold everything.
    """
    cell = tl.program_id(1)
    last = tl.load(edges + cell + 1)
    base = tl.load(edges + cell) + tl.program_id(0).to(tl.int64) * (TILE * TILES)
    if base < last:
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
        tl.atomic_add(sums + 3 * cell, tl.sum(total0))
        tl.atomic_add(sums + 3 * cell + 1, tl.sum(total1))
        tl.atomic_add(sums + 3 * cell + 2, tl.sum(total2))
        if tl.sum(rest) > 0:
            tl.atomic_add(left, 1)
