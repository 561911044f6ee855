"""Exact sums in compiled code: the digits of :mod:`fairsieve.selection.exact_sums`, term by term."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairsieve.selection.backends.jit import compiled
from fairsieve.selection.exact_sums import DIGITS, MINUS, NOT, PLUS, SLOTS

__all__ = ["sum_by_cell", "sum_digits"]

LOW = (1 << 32) - 1
FRACTION = (1 << 52) - 1
BEFORE_CARRY = 1 << 30  # terms that a digit has room for
HALF = 29  # bits of a fraction that are added apart, so that 2³⁰ terms of each part fit into 64
TABLE_PAYS = 2**14  # samples a cell from which a table of exponents is sooner filled than its digits


@compiled
def _add_to(total: NDArray[np.int64], value: Any) -> None:
    """Add one float to the digits of a sum. Call :func:`_carry` at least every 2³⁰ terms."""
    bits = np.float64(value).view(np.int64)
    exponent = (bits >> 52) & 2047
    mantissa = bits & FRACTION
    if exponent == 2047:
        total[NOT if mantissa != 0 else PLUS if bits > 0 else MINUS] += 1
        return
    if exponent > 0:
        mantissa |= FRACTION + 1
        exponent -= 1
    _add_scaled(total, mantissa, exponent, 1 if bits >= 0 else -1)


@compiled
def _add_scaled(total: NDArray[np.int64], number: Any, exponent: Any, sign: int) -> None:
    """Add ± number · 2^(exponent − 1074), for a number below 2⁶³, to the digits of a sum."""
    place, shift = exponent >> 5, exponent & 31
    low = (number & LOW) << shift
    high = ((number >> 32) << shift) + (low >> 32)
    total[place] += sign * (low & LOW)
    total[place + 1] += sign * (high & LOW)
    total[place + 2] += sign * (high >> 32)


@compiled
def _add_many(
    totals: NDArray[np.int64], values: NDArray[Any], codes: NDArray[Any], selected: NDArray[np.int64]
) -> None:
    """Add at most 2³⁰ selected values, each to the sum of its code.

    Values of one sign and exponent are added as whole numbers, in two parts, before any is shifted.
    """
    parts = np.zeros((len(totals), 4096, 2), np.int64)
    for i in selected:
        bits = np.float64(values[i]).view(np.int64)
        code, place, low = codes[i], (bits >> 52) & 4095, bits & ((1 << HALF) - 1)
        leading = FRACTION + 1 if place & 2047 > 0 else 0
        parts[code, place, 1] += (bits & FRACTION | leading) >> HALF
        if low != 0:  # never, for a value that was a float32
            parts[code, place, 0] += low
    is_finite = True
    for code in range(len(totals)):
        for exponent in range(4096):
            low, high = parts[code, exponent]
            if exponent & 2047 == 2047:
                is_finite &= high == 0
            elif low != 0 or high != 0:
                sign = 1 if exponent < 2048 else -1
                scale = max(exponent & 2047, 1) - 1
                _add_scaled(totals[code], low, scale, sign)
                _add_scaled(totals[code], high, scale + HALF, sign)
    if not is_finite:
        for i in selected:
            if not np.isfinite(values[i]):
                _add_to(totals[codes[i]], values[i])


@compiled
def _carry(total: NDArray[np.int64]) -> None:
    """Bring every digit but the last into [0, 2³²); the sum stays what it is."""
    for k in range(DIGITS - 1):
        total[k + 1] += total[k] >> 32
        total[k] &= LOW


@compiled
def _round_digits(total: NDArray[np.int64]) -> float:
    """Return the double nearest to the sum."""
    if total[NOT] > 0 or (total[PLUS] > 0 and total[MINUS] > 0):
        return np.nan
    if total[PLUS] > 0:
        return np.inf
    if total[MINUS] > 0:
        return -np.inf
    digits, sign = total[:DIGITS].copy(), 1.0
    _carry(digits)
    if digits[DIGITS - 1] < 0:
        digits, sign = -digits, -1.0
        _carry(digits)
    top = DIGITS - 1
    while top > 2 and digits[top] == 0:
        top -= 1
    length = 0
    while digits[top] >> length > 0:
        length += 1
    # The highest 64 bits, the last of which stands for all that follow when one of them is set.
    bits = np.uint64(digits[top - 1]) << np.uint64(32 - length)
    bits |= np.uint64(digits[top - 2]) >> np.uint64(length)
    if length > 0:
        bits |= np.uint64(digits[top]) << np.uint64(64 - length)
    rest = digits[top - 2] & ((1 << length) - 1)
    for k in range(top - 2):
        rest |= digits[k]
    if rest != 0:
        bits |= np.uint64(1)
    return sign * math.ldexp(np.float64(bits), 32 * top + length - 64 - 1074)


@compiled
def sum_digits(
    signals: NDArray[Any], codes: NDArray[Any], selected: NDArray[np.int64], cells: int
) -> NDArray[np.int64]:
    """Return the digits of :func:`sum_by_cell`, (targets, cells, slots); those of parts add up."""
    totals = np.zeros((signals.shape[0], cells, SLOTS), np.int64)
    for target in range(signals.shape[0]):
        for first in range(0, selected.size, BEFORE_CARRY):
            part = selected[first : first + BEFORE_CARRY]
            if part.size > TABLE_PAYS * cells:
                _add_many(totals[target], signals[target], codes, part)
            else:
                for i in part:
                    _add_to(totals[target, codes[i]], signals[target, i])
            for cell in range(cells):
                _carry(totals[target, cell])
    return totals


@compiled
def sum_by_cell(
    signals: NDArray[Any], codes: NDArray[Any], selected: NDArray[np.int64], cells: int
) -> NDArray[np.float64]:
    """Return the exact sum of each signal over the selected samples of each cell, rounded once."""
    totals = sum_digits(signals, codes, selected, cells)
    sums = np.zeros(totals.shape[:2])
    for target in range(totals.shape[0]):
        for cell in range(totals.shape[1]):
            sums[target, cell] = _round_digits(totals[target, cell])
    return sums
