"""Intervals of shares, and of the difference between two: 95 %, from counts alone."""

from __future__ import annotations

import math
from collections.abc import Sequence

__all__ = ["average_of_shares", "newcombe", "wilson"]

NORMAL = 1.959963984540054  # 97.5 % of a normal distribution lie below


def wilson(hits: float, total: float) -> tuple[float, float]:
    """Compute Wilson's score interval of a share; from 0 to 1 where there is nobody.

    It stays within [0, 1] and is honest for few people and for shares near 0 and 1.

    Examples
    --------
    >>> [round(bound, 3) for bound in wilson(81, 263)]
    [0.255, 0.366]
    >>> wilson(0, 0)
    (0.0, 1.0)
    """
    if total <= 0:
        return 0.0, 1.0
    share, square = hits / total, NORMAL**2
    middle = (share + square / (2 * total)) / (1 + square / total)
    half = NORMAL / (1 + square / total) * math.sqrt(share * (1 - share) / total + square / (4 * total**2))
    # At the ends the bound is exact, and rounding must not put the share outside.
    low = 0.0 if hits <= 0 else middle - half
    high = 1.0 if hits >= total else middle + half
    return low, high


def newcombe(hits: float, total: float, other_hits: float, other_total: float) -> tuple[float, float]:
    """Compute Newcombe's interval of one share less another, of different people (his method 10).

    Examples
    --------
    >>> [round(bound, 4) for bound in newcombe(56, 70, 48, 80)]
    [0.0524, 0.3339]
    """
    if total <= 0 or other_total <= 0:
        return -1.0, 1.0
    share, other = hits / total, other_hits / other_total
    (low, high), (other_low, other_high) = wilson(hits, total), wilson(other_hits, other_total)
    difference = share - other
    return (
        difference - math.hypot(share - low, other_high - other),
        difference + math.hypot(high - share, other - other_low),
    )


def average_of_shares(shares: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """Compute the interval of the mean of several shares, (hits, total) each, of different people.

    It combines Wilson's intervals as Newcombe does for a difference.

    Examples
    --------
    >>> [round(bound, 4) for bound in average_of_shares([(56, 70), (48, 80)])]
    [0.623, 0.7632]
    """
    mean = sum(hits / total for hits, total in shares) / len(shares)
    bounds = [(hits / total, *wilson(hits, total)) for hits, total in shares]
    below = math.hypot(*(share - low for share, low, _ in bounds)) / len(shares)
    above = math.hypot(*(high - share for share, _, high in bounds)) / len(shares)
    return mean - below, mean + above
