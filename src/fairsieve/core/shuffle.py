"""Shuffles that are functions: position → sample, from a key, with nothing stored.

A shuffle of m things is a bijection of 0 … m−1. Ours is computed, not stored: multiply by an odd
number, add, and xor-shift, a few rounds, all modulo a power of two, which is a bijection of the
next power of two; positions that land beyond m − 1 are sent through again. So any part of an
epoch's order can be made anywhere (in a kernel, on a device, on another worker) from (seed, epoch)
alone.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fairsieve.core.compiled import compiled

__all__ = ["Shuffle", "new_shuffle", "shuffled"]

ROUNDS = 6
GOLDEN = np.uint64(0x9E3779B97F4A7C15)


class Shuffle(NamedTuple):
    """A shuffle of 0 … size − 1."""

    size: int
    mask: Any  # the next power of two, less one
    half: Any  # how far the xor-shift reaches
    constants: NDArray[np.uint64]  # a factor and a summand for every round


@compiled
def mix(value: Any) -> Any:
    """SplitMix64's output function: every bit of the input moves every bit of the output."""
    value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return value ^ (value >> np.uint64(31))


@compiled
def key_of(seed: int, epoch: int, cell: int, lap: int) -> Any:
    """One key from four numbers."""
    key = GOLDEN
    for part in (seed, epoch, cell, lap):
        key = mix(key ^ np.uint64(part)) + GOLDEN
    return key


@compiled
def new_shuffle(size: int, seed: int, epoch: int, cell: int, lap: int) -> Any:
    """The shuffle of ``size`` elements: of one cell, in one epoch, the ``lap``-th time it is gone through."""
    bits = 0
    while (1 << bits) < size:
        bits += 1
    constants = np.empty(2 * ROUNDS, np.uint64)
    state = key_of(seed, epoch, cell, lap)
    for i in range(constants.size):
        state += GOLDEN
        constants[i] = mix(state)
    return Shuffle(size, np.uint64((1 << bits) - 1), np.uint64(max(bits // 2, 1)), constants)


@compiled
def shuffled(shuffle: Shuffle, position: int) -> int:
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
