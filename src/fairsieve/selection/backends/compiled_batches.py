"""Batches in compiled code: :func:`fairsieve.selection.batches.draw_batches`, a block of places at a time."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairsieve.selection.backends import compiled_tables  # noqa: F401 - the functions used below
from fairsieve.selection.backends.jit import compiled
from fairsieve.selection.shuffle import ROUNDS, shuffle_constants, shuffle_shape

__all__ = ["count_cells", "draw_compiled", "draw_rows", "group_by_cell"]

BLOCK = 2048  # places made at once


@compiled
def _shuffle_block(size: int, constants: NDArray[np.uint64], position: int, elements: NDArray[Any]) -> None:
    """Write the elements at ``position`` and after it.

    All are sent through once, then those that landed beyond the last are sent through again, so that
    no decision stands in the way of the next element. The elements' type, unsigned, must hold the
    next power of two less one: modulo that, sums and products need no wider one, and narrow ones are
    made many at once.
    """
    last = elements.dtype.type(size - 1)  # the size itself may need a bit more
    for j in range(elements.size):
        elements[j] = position + j
    mask, half = shuffle_shape(size)
    _send_through(constants, mask, half, elements)
    pending, values = np.empty(elements.size, np.uint32), np.empty_like(elements)
    left = np.uint64(0)
    for j in range(elements.size):
        pending[left], values[left] = j, elements[j]
        left += np.uint64(elements[j] > last)  # the next one comes over it unless it must go on
    while left > 0:
        _send_through(constants, mask, half, values[:left])
        kept = np.uint64(0)
        for j in range(left):
            place, value = pending[j], values[j]
            elements[place] = value
            pending[kept], values[kept] = place, value
            kept += np.uint64(value > last)
        left = kept


@compiled
def _send_through(constants: NDArray[np.uint64], mask: int, half: int, values: NDArray[Any]) -> None:
    """Apply all rounds of a shuffle over its next power of two, in place."""
    unsigned = values.dtype.type
    narrow_mask, narrow_half = unsigned(mask), unsigned(unsigned(half) & unsigned(31))  # below 32 anyway
    for i in range(0, 2 * ROUNDS, 2):
        factor, summand = unsigned(constants[i] | np.uint64(1)), unsigned(constants[i + 1])
        for j in range(values.size):
            # Every step is cut to the type at once: else it would be done in 64 bits.
            value = unsigned(unsigned(unsigned(values[j] * factor) + summand) & narrow_mask)
            values[j] = unsigned(value ^ unsigned(value >> narrow_half))


@compiled
def draw_compiled(
    selected: NDArray[np.int64],
    codes: NDArray[Any],
    counts: NDArray[np.int64],
    shares: NDArray[np.int64],
    batches: int,
    seed: int,
    epoch: int,
) -> NDArray[np.int64]:
    """Draw batches of indices, (batches, Σ shares), from the selected samples."""
    members = np.empty(selected.size, np.uint64)
    starts = np.zeros(counts.size, np.int64)
    for cell in range(1, counts.size):
        starts[cell] = starts[cell - 1] + counts[cell - 1]
    group_by_cell(selected, codes, members, starts)
    drawn = np.empty((batches, shares.sum()), np.int64)
    draw_rows(members, counts, shares, seed, epoch, drawn, 0, batches)
    return drawn


@compiled
def count_cells(selected: NDArray[np.int64], codes: NDArray[Any], cells: int) -> NDArray[np.int64]:
    """Count the selected samples of each cell."""
    counts = np.zeros(cells, np.int64)
    for i in selected:
        counts[codes[i]] += 1
    return counts


@compiled
def group_by_cell(
    selected: NDArray[np.int64], codes: NDArray[Any], members: NDArray[Any], filled: NDArray[np.int64]
) -> None:
    """Write each selected sample where its cell is filled up to, and move that place on."""
    for i in selected:
        members[filled[codes[i]]] = i
        filled[codes[i]] += 1


@compiled
def draw_rows(
    members: NDArray[Any],
    counts: NDArray[np.int64],
    shares: NDArray[np.int64],
    seed: int,
    epoch: int,
    drawn: NDArray[np.int64],
    first: int,
    last: int,
) -> None:
    """Fill the rows [first, last) of the batches from the members, which stand cell after cell.

    Places are made a block at a time and looked up afterwards, so that many reads are under way at
    once: they go all over the memory.
    """
    places = np.empty(BLOCK, members.dtype)  # unsigned: no index counts from the end
    column, start = 0, 0
    for cell in range(counts.size):
        size, share = counts[cell], shares[cell]
        if share > 0:
            own = members[start : start + size]
            position, end = first * share, last * share
            row, k = first, 0
            while position < end:
                lap = position // size
                constants = shuffle_constants(seed, epoch, cell, lap)
                lap_end = min(end, (lap + 1) * size)
                while position < lap_end:
                    block = min(BLOCK, lap_end - position)
                    _shuffle_block(size, constants, position - lap * size, places[:block])
                    j = 0
                    while j < block:
                        run = min(share - k, block - j)
                        part = drawn[row, column + k : column + k + run]
                        for q in range(run):
                            part[q] = own[places[j + q]]
                        j, k = j + run, k + run
                        if k == share:
                            row, k = row + 1, 0
                    position += block
        column += share
        start += size
