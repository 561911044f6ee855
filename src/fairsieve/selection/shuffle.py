"""Shuffles that are functions: position → element, from a key, with nothing stored.

A shuffle of m elements is a bijection of 0 … m−1. Ours is computed, not stored: multiply by an odd
number, add, and xor-shift, a few rounds, all modulo a power of two, which is a bijection of the
next power of two; positions that land beyond m − 1 are sent through again. So any part of an
epoch's order can be made anywhere (in a kernel, on a device, on another worker) from (seed, epoch)
alone. It also runs backwards, so that whoever holds a sample knows when its turn comes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

ROUNDS = 6
GOLDEN = np.uint64(0x9E3779B97F4A7C15)
CHUNK = 2**16  # positions computed together, so that they stay in the cache


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
) -> NDArray[np.int64]:
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


def _shuffled_part(size: int, seed: int, epoch: int, cell: int, first: int, last: int) -> NDArray[np.int64]:
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


def _send_through(values: NDArray[np.int64], constants: NDArray[np.int64], mask: int, half: int) -> None:
    """Apply all rounds of a shuffle over its next power of two, in place."""
    for i in range(0, 2 * ROUNDS, 2):
        values *= constants[i]
        values += constants[i + 1]
        values &= mask
        values ^= values >> half


def unshuffled(
    size: int, seed: int, epoch: int, cell: int, laps: NDArray[np.int64], elements: NDArray[np.int64]
) -> NDArray[np.int64]:
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
