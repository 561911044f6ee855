"""Sums of floats that do not depend on the order of their terms: exact, in integers.

A double is an integer times 2⁻¹⁰⁷⁴. A sum is kept as the digits of such an integer, 32 bits each, so
nothing is lost: any part of the terms may be added anywhere, in any order, and the digits of the parts
add up to the digits of the whole. Only at the end is the sum rounded, once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["DIGITS", "MINUS", "NOT", "PLUS", "SLOTS", "as_digits", "limbs", "rounded", "rounded_sums"]

# A sum is Σ digits[k] · 2^(32k − 1074). The last three digits hold nothing but carries; after them
# stand the numbers of terms that were +∞, −∞ and NaN.
DIGITS = 69
PLUS, MINUS, NOT = DIGITS, DIGITS + 1, DIGITS + 2
SLOTS = DIGITS + 3
SCALE = 1074


def limbs(largest: float, terms: int) -> tuple[int, int]:
    """Say how floats up to ``largest`` become integers of which ``terms`` can be added in 64 bits.

    Returns
    -------
    shift, unit
        ``trunc(x · 2**shift)`` is such an integer, in units of ``2**unit``. What it leaves of x is
        a float again, exactly, and the same is done to that until nothing is left.
    """
    exponent = int(np.frexp(largest)[1])  # largest < 2**exponent
    room = 62 - max(terms - 1, 0).bit_length()
    return room - exponent, exponent - room


def as_digits(sums: Sequence[tuple[int, int]]) -> list[int]:
    """Return the digits of Σ number · 2^unit over the given pairs of number and unit.

    >>> as_digits([(3, 0), (1, -1074)])[0], rounded(as_digits([(3, 0), (1, -1)]))
    (1, 3.5)
    """
    total = 0
    for number, unit in sums:
        total += number << (unit + SCALE) if unit >= -SCALE else number >> (-unit - SCALE)
    digits = [(total >> 32 * k) & 0xFFFFFFFF for k in range(DIGITS - 1)]
    return [*digits, total >> 32 * (DIGITS - 1), 0, 0, 0]


def rounded(digits: Any) -> float:
    """Return the double nearest to a sum given by its digits."""
    values = [int(value) for value in digits]
    if values[NOT] or (values[PLUS] and values[MINUS]):
        return float("nan")
    if values[PLUS] or values[MINUS]:
        return float("inf") if values[PLUS] else -float("inf")
    total = 0
    for value in reversed(values[:DIGITS]):
        total = (total << 32) + value
    try:
        return total / (1 << SCALE)  # Python rounds a quotient of integers once
    except OverflowError:
        return float("inf") if total > 0 else -float("inf")


def rounded_sums(totals: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the doubles nearest to sums in digits, (targets, cells, slots)."""
    return np.array([[rounded(digits) for digits in row] for row in totals.tolist()]).reshape(
        totals.shape[:2]
    )
