"""Shuffles that are functions: position → sample, from a key, with nothing stored.

A shuffle of m things is a bijection of 0 … m−1. Ours is computed, not stored: multiply by an odd
number, add, and xor-shift, a few rounds, all modulo a power of two, which is a bijection of the
next power of two; positions that land beyond m − 1 are sent through again. So any part of an
epoch's order can be made anywhere (in a kernel, on a device, on another worker) from (seed, epoch)
alone; and backwards, so that whoever holds a sample knows when its turn comes.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fairsieve.selection.backends.jit import compiled

__all__ = ["GOLDEN", "inverse_factors", "new_shuffle", "shuffle_block", "unshuffled"]

ROUNDS = 6
GOLDEN = np.uint64(0x9E3779B97F4A7C15)


class _Shuffle(NamedTuple):
    """A shuffle of 0 … size − 1."""

    size: int
    mask: Any  # the next power of two, less one
    half: Any  # how far the xor-shift reaches
    constants: NDArray[np.uint64]  # a factor and a summand for every round


@compiled
def _mix(value: Any) -> Any:
    """SplitMix64's output function: every bit of the input moves every bit of the output."""
    value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return value ^ (value >> np.uint64(31))


@compiled
def _key_of(seed: int, epoch: int, cell: int, lap: int) -> Any:
    """One key from four numbers."""
    key = GOLDEN
    for part in (seed, epoch, cell, lap):
        key = _mix(key ^ np.uint64(part)) + GOLDEN
    return key


@compiled
def new_shuffle(size: int, seed: int, epoch: int, cell: int, lap: int) -> Any:
    """The shuffle of ``size`` elements: of one cell, in one epoch, the ``lap``-th time it is gone through."""
    bits = 0
    while (1 << bits) < size:
        bits += 1
    constants = np.empty(2 * ROUNDS, np.uint64)
    state = _key_of(seed, epoch, cell, lap)
    for i in range(constants.size):
        state += GOLDEN
        constants[i] = _mix(state)
    return _Shuffle(size, np.uint64((1 << bits) - 1), np.uint64(max(bits // 2, 1)), constants)


@compiled
def _shuffled(shuffle: _Shuffle, position: int) -> int:
    """The element at ``position`` of a shuffle."""
    value, constants = np.uint64(position), shuffle.constants
    size, mask, half = np.uint64(shuffle.size), np.uint64(shuffle.mask), np.uint64(shuffle.half)
    while True:
        for i in range(0, 2 * ROUNDS, 2):
            value = value * (constants[i] | np.uint64(1)) + constants[i + 1]
            value &= mask
            value ^= value >> half
        if value < size:
            return int(value)


@compiled
def shuffle_block(shuffle: _Shuffle, position: int, elements: NDArray[Any]) -> None:
    """The elements at ``position`` and after it: :func:`_shuffled`, many at a time.

    All are sent through once, then those that landed beyond the last are sent through again, so that
    no decision stands in the way of the next element. The elements' type, unsigned, must hold the
    next power of two less one: modulo that, sums and products need no wider one, and narrow ones are
    made many at once.
    """
    last = elements.dtype.type(shuffle.size - 1)  # the size itself may need a bit more
    for j in range(elements.size):
        elements[j] = position + j
    _send_through(shuffle, elements)
    pending, values = np.empty(elements.size, np.uint32), np.empty_like(elements)
    left = np.uint64(0)
    for j in range(elements.size):
        pending[left], values[left] = j, elements[j]
        left += np.uint64(elements[j] > last)  # the next one comes over it unless it must go on
    while left > 0:
        _send_through(shuffle, values[:left])
        kept = np.uint64(0)
        for j in range(left):
            place, value = pending[j], values[j]
            elements[place] = value
            pending[kept], values[kept] = place, value
            kept += np.uint64(value > last)
        left = kept


@compiled
def _send_through(shuffle: _Shuffle, values: NDArray[Any]) -> None:
    """All rounds of a shuffle over its next power of two, in place."""
    unsigned, constants = values.dtype.type, shuffle.constants
    mask, half = unsigned(shuffle.mask), unsigned(unsigned(shuffle.half) & unsigned(31))  # below 32 anyway
    for i in range(0, 2 * ROUNDS, 2):
        factor, summand = unsigned(constants[i] | np.uint64(1)), unsigned(constants[i + 1])
        for j in range(values.size):
            # Every step is cut to the type at once: else it would be done in 64 bits.
            value = unsigned(unsigned(unsigned(values[j] * factor) + summand) & mask)
            values[j] = unsigned(value ^ unsigned(value >> half))


@compiled
def inverse_factors(shuffle: _Shuffle) -> NDArray[np.uint64]:
    """For every round, the number that undoes its multiplication."""
    factors = shuffle.constants[::2] | np.uint64(1)
    inverses = factors.copy()  # right in the lowest three bits; each turn doubles their number
    for _ in range(5):
        inverses *= np.uint64(2) - factors * inverses
    return inverses


@compiled
def unshuffled(shuffle: _Shuffle, inverses: NDArray[np.uint64], element: int) -> int:
    """The position at which a shuffle has ``element``: :func:`_shuffled` backwards."""
    value, constants = np.uint64(element), shuffle.constants
    size, mask, half = np.uint64(shuffle.size), np.uint64(shuffle.mask), np.uint64(shuffle.half)
    while True:
        for i in range(ROUNDS - 1, -1, -1):
            value ^= (value >> half) ^ (value >> (half + half))  # undoes value ^= value >> half
            value = (value - constants[2 * i + 1]) * inverses[i] & mask
        if value < size:
            return int(value)
