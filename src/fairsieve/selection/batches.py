"""Selection + ratios → batches of indices, in shuffles that are functions.

A shuffle is a function position → element, a bijection of 0 … m−1, from a key, with nothing stored: multiply by an odd
number, add, and xor-shift, a few rounds, all modulo a power of two, which is a bijection of the next power of two;
positions that land beyond m − 1 are sent through again. So any part of an epoch's order can be made anywhere (in a
kernel, on a device, on another worker) from (seed, epoch) alone. It also runs backwards, so that whoever holds a sample
knows when its turn comes.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fairsieve.selection.cells import Floats, Integers, Values

ROUNDS = 6
GOLDEN = np.uint64(0x9E3779B97F4A7C15)
CHUNK = 2**16  # positions computed together, so that they stay in the cache
POINT = 32  # binary places of quotas: whole numbers give the same batches on every device
GOLDEN_STEP = 0x9E3779B9  # 2³² · 0.618…, whose multiples spread evenly


class Draw(NamedTuple):
    """What an epoch's batches are drawn by.

    A batch is a row of places 0 … size − 1, and every cell has a stretch of them. Where the quotas of the cells
    are no whole numbers, the stretches of batch b end at ``⌊edges + offsets[b]⌋``: so each cell has the floor or the
    ceiling of its quota there.
    """

    edges: Integers  # where the stretches of the cells begin and end, (cells + 1,), times 2³²
    offsets: Integers  # of each batch, from 0 up to 1, times 2³²
    seed: int
    epoch: int
    by_cell: bool = True  # False: all samples are drawn as one cell

    @property
    def size(self) -> int:
        """Samples in a batch."""
        return int(self.edges[-1]) >> POINT

    @property
    def batches(self) -> int:
        """Batches in the epoch."""
        return len(self.offsets)

    def ends(self, cell: int) -> Integers:
        """Return the place of each batch at which the stretch of a cell ends."""
        return np.asarray((self.edges[cell + 1] + self.offsets) >> POINT)


def batch_count(selected: int, batch_size: int) -> int:
    """Count the batches of an epoch: as many whole ones as the selection fills, at least one if any is selected."""
    return max(1, selected // batch_size) if selected > 0 else 0


def cell_quotas(ratios: Floats, counts: Integers, batch_size: int) -> Floats:
    """Return how many samples of each cell a batch should have, ``ratio · batch_size · |S_y| / |S|`` (Eq. 3).

    A cell with nothing selected leaves its ratio to the others of its class.
    """
    table = counts.reshape(ratios.shape)
    present = np.where(table > 0, ratios, 0.0)
    present = np.where(present.sum(axis=1, keepdims=True) > 0, present, table)
    shares = present / np.maximum(present.sum(axis=1, keepdims=True), np.finfo(float).tiny)
    quotas = shares * batch_size * table.sum(axis=1, keepdims=True) / max(1, counts.sum())
    return np.asarray(quotas.reshape(-1))


def batch_shares(ratios: Floats, counts: Integers, batch_size: int) -> Integers:
    """Return quotas rounded by largest remainder, alike for every batch; they sum to ``batch_size`` exactly.

    This is the paper's rounding. A cell with a quota below one half may have no place in any batch.
    """
    quotas = cell_quotas(ratios, counts, batch_size)
    shares = np.floor(quotas + 1e-9).astype(np.int64)
    largest = np.argsort(shares - quotas, kind="stable")  # the largest remainders first
    shares[largest[: batch_size - shares.sum()]] += 1
    return shares


def share_edges(quotas: Values) -> Integers:
    """Return the ``edges`` of a :class:`Draw` for quotas whose sum is a whole number.

    >>> (share_edges(np.array([0.5, 1.5, 0.0])) / 2**POINT).tolist()
    [0.0, 0.5, 2.0, 2.0]
    """
    size = int(np.rint(quotas.sum())) << POINT
    edges = np.rint(np.append(0.0, np.cumsum(quotas)) * 2.0**POINT).astype(np.int64)
    last = int(np.flatnonzero(quotas).max(initial=-1))  # behind it nobody may get what rounding leaves over
    edges[last + 1 :] = size
    return np.minimum(edges, size)


def batch_offsets(batches: int, seed: int, epoch: int) -> Integers:
    """Return the ``offsets`` of a :class:`Draw`: evenly spaced, in an order that keeps neighbours apart.

    With even spaces every cell has the floor or the ceiling of its share of the whole epoch, too. From epoch to epoch
    the offsets move on by a golden step, so that a cell with less than one sample an epoch comes in its turn.

    >>> (batch_offsets(5, 0, 0) / 2**POINT).round(2).tolist()
    [0.9, 0.5, 0.1, 0.7, 0.3]
    """
    step = max(1, round(batches * GOLDEN_STEP / 2**POINT))
    while math.gcd(step, batches) > 1:
        step += 1
    first = int(shuffle_constants(seed, epoch, 0, 0)[0]) % max(1, batches)
    within = (int(shuffle_constants(seed, 0, 0, 0)[1]) + epoch * GOLDEN_STEP) % 2**POINT
    order = (first + np.arange(batches) * step) % max(1, batches)
    return np.asarray(((order << POINT) + within) // max(1, batches))


def draw_batches(selected: Integers, codes: Values, counts: Integers, draw: Draw) -> Integers:
    """Draw batches of indices, (batches, size), from the selected samples; ``counts`` are those of their cells.

    Each cell is gone through in a shuffled order, without replacement; when it is exhausted it is
    shuffled again and gone through once more.
    """
    members, sizes = selected, counts.sum(keepdims=True)
    if draw.by_cell:
        members, sizes = selected[np.argsort(codes[selected], kind="stable")], counts
    drawn = np.empty(draw.batches * draw.size, np.int64)
    rows, begin, start = np.arange(draw.batches) * draw.size, np.zeros(draw.batches, np.int64), 0
    for cell, size in enumerate(sizes.tolist()):
        end = draw.ends(cell)
        shares = end - begin
        if total := int(shares.sum()):
            places = shuffled(size, draw.seed, draw.epoch, cell, 0, total)
            before = np.cumsum(shares) - shares  # samples of the cell in earlier batches
            where = np.repeat(rows + begin - before, shares) + np.arange(total)
            drawn[where] = members[start : start + size][places]
        begin = end
        start += size
    return drawn.reshape(draw.batches, draw.size)


def _mix(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Apply SplitMix64's output function: every bit of the input changes every bit of the output."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


def shuffle_constants(seed: int, epoch: int, cell: Any, lap: Any) -> NDArray[np.uint64]:
    """Return a factor (to be made odd) and a summand for every round of a shuffle.

    The shuffle is that of one cell, in one epoch, the ``lap``-th time that the cell is gone through.
    Arrays of cells or laps, shape (k, 1), give one row of constants for each.
    """
    key = np.full(1, GOLDEN)  # an array, whose products wrap without a warning
    key = _mix(key ^ np.uint64(seed)) + GOLDEN
    key = _mix(key ^ np.uint64(epoch)) + GOLDEN
    key = _mix(key ^ np.uint64(cell)) + GOLDEN
    key = _mix(key ^ np.uint64(lap)) + GOLDEN
    return _mix(key + GOLDEN * np.arange(1, 2 * ROUNDS + 1).astype(np.uint64))


def shuffle_shape(size: int) -> tuple[int, int]:
    """Return the next power of two less one, and how far the xor-shift reaches."""
    bits = 0
    while (1 << bits) < size:
        bits += 1
    return (1 << bits) - 1, max(bits // 2, 1)


def shuffled(
    size: int, seed: int, epoch: int, cell: int, first: int, last: int, chunk: int = CHUNK
) -> Integers:
    """Return the elements at the positions from ``first`` up to ``last`` of a cell's endless order.

    Position p is place ``p % size`` of lap ``p // size``.

    >>> shuffled(8, 3, 5, 1, 16, 24).tolist()
    [3, 7, 6, 0, 1, 4, 5, 2]
    """
    elements = np.empty(last - first, np.int64)
    for begin in range(first, last, chunk):
        end = min(begin + chunk, last)
        elements[begin - first : end - first] = _shuffled_part(size, seed, epoch, cell, begin, end)
    return elements


def _shuffled_part(size: int, seed: int, epoch: int, cell: int, first: int, last: int) -> Integers:
    """Compute :func:`shuffled` for a few positions."""
    mask, half = shuffle_shape(size)
    first_lap, last_lap = first // size, (last - 1) // size
    laps = np.arange(first_lap, last_lap + 1)[:, None]
    constants = shuffle_constants(seed, epoch, cell, laps).view(np.int64)
    constants[:, ::2] |= 1
    positions = np.arange(first, last)
    values = positions % size if last_lap else positions
    row = positions // size - first_lap if last_lap > first_lap else None
    _send_through(values, constants[0] if row is None else constants[row].T, mask, half)
    pending = np.flatnonzero(values >= size)
    while len(pending):
        moved = values[pending]
        _send_through(moved, constants[0] if row is None else constants[row[pending]].T, mask, half)
        values[pending] = moved
        pending = pending[moved >= size]
    return values


def _send_through(values: Integers, constants: Integers, mask: int, half: int) -> None:
    """Apply all rounds of a shuffle over its next power of two, in place."""
    for i in range(0, 2 * ROUNDS, 2):
        values *= constants[i]
        values += constants[i + 1]
        values &= mask
        values ^= values >> half


def unshuffled(size: int, seed: int, epoch: int, cell: int, laps: Integers, elements: Integers) -> Integers:
    """Return the position of each element in each lap, (laps, elements): :func:`shuffled` backwards.

    >>> unshuffled(8, 3, 5, 1, np.array([2]), np.array([3, 7, 6])).tolist()
    [[0, 1, 2]]
    """
    mask, half = shuffle_shape(size)
    constants = shuffle_constants(seed, epoch, cell, laps[:, None])
    factors, summands = constants[:, ::2] | np.uint64(1), constants[:, 1::2].view(np.int64)
    inverses = factors.copy()  # right in the lowest three bits; each turn doubles their number
    for _ in range(5):
        inverses *= np.uint64(2) - factors * inverses
    values = np.broadcast_to(elements, (len(laps), len(elements))).reshape(-1).copy()
    lap = np.repeat(np.arange(len(laps)), len(elements))
    pending = np.arange(len(values))
    while len(pending):
        moved, row = values[pending], lap[pending]
        for i in range(ROUNDS - 1, -1, -1):
            moved ^= (moved >> half) ^ (moved >> 2 * half)  # undoes value ^= value >> half
            moved = (moved - summands[row, i]) * inverses.view(np.int64)[row, i] & mask
        values[pending] = moved
        pending = pending[moved >= size]
    return values.reshape(len(laps), len(elements))
