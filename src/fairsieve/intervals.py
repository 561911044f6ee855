"""Intervals of shares, and of the difference between two: 95 % by default, from counts alone."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import NormalDist

NORMAL = 1.959963984540054  # 97.5 % of a normal distribution lie below


def simultaneous(count: int) -> float:
    """Return the deviations to take so that ``count`` intervals all hold with 95 % (Bonferroni).

    >>> round(simultaneous(1), 3), round(simultaneous(10), 3)
    (1.96, 2.807)
    """
    return NormalDist().inv_cdf(1 - 0.025 / max(count, 1))


def wilson(hits: float, total: float, normal: float = NORMAL) -> tuple[float, float]:
    """Compute Wilson's score interval of a share; from 0 to 1 where there is nobody.

    It stays within [0, 1] and is honest for few people and for shares near 0 and 1. ``normal`` is how many standard
    deviations are taken.

    Examples
    --------
    >>> [round(bound, 3) for bound in wilson(81, 263)]
    [0.255, 0.366]
    >>> wilson(0, 0)
    (0.0, 1.0)
    """
    if total <= 0:
        return 0.0, 1.0
    share, square = hits / total, normal**2
    middle = (share + square / (2 * total)) / (1 + square / total)
    half = normal / (1 + square / total) * math.sqrt(share * (1 - share) / total + square / (4 * total**2))
    # At the ends the bound is exact, and rounding must not put the share outside.
    low = 0.0 if hits <= 0 else middle - half
    high = 1.0 if hits >= total else middle + half
    return low, high


def newcombe(
    hits: float, total: float, other_hits: float, other_total: float, normal: float = NORMAL
) -> tuple[float, float]:
    """Compute Newcombe's interval of one share less another, of different people (his method 10).

    Examples
    --------
    >>> [round(bound, 4) for bound in newcombe(56, 70, 48, 80)]
    [0.0524, 0.3339]
    """
    if total <= 0 or other_total <= 0:
        return -1.0, 1.0
    share, other = hits / total, other_hits / other_total
    low, high = wilson(hits, total, normal)
    other_low, other_high = wilson(other_hits, other_total, normal)
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


def paired_change(gained: int, lost: int, total: int) -> tuple[float, float]:
    """Compute an interval of the change of a share among the same people, of whom some gained and some lost it.

    Agresti and Min (2005): half a person is added to each of the four kinds, so that it is not of width 0 where
    nobody changed.

    Examples
    --------
    >>> [round(bound, 3) for bound in paired_change(0, 0, 12)]
    [-0.14, 0.14]
    """
    if total <= 0:
        return -1.0, 1.0
    more, less, people = gained + 0.5, lost + 0.5, total + 2.0
    middle = (more - less) / people
    half = NORMAL * math.sqrt(max((more + less) - (more - less) ** 2 / people, 0.0)) / people
    return max(middle - half, -1.0), min(middle + half, 1.0)
