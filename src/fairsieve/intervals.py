"""Intervals of shares, and of the difference between two: 95 % by default, from counts alone."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from fairsieve.selection.cells import Flags, Floats

Bounds = tuple[float, float]

TAIL = 0.025  # of draws, beyond either end
NORMAL = 1.959963984540054  # 97.5 % of a normal distribution lie below


class Score(NamedTuple):
    """A number, and its 95 % interval."""

    value: float
    interval: Bounds

    def less(self, known: float) -> Score:
        """Subtract a number that is certain.

        >>> Score(0.5, (0.25, 0.75)).less(0.25)
        Score(value=0.25, interval=(0.0, 0.5))
        """
        low, high = self.interval
        return Score(self.value - known, (low - known, high - known))

    def turned(self) -> Score:
        """Return the number with its sign changed."""
        low, high = self.interval
        return Score(-self.value, (-high, -low))


def simultaneous(count: int) -> float:
    """Return the deviations to take so that ``count`` intervals all hold with 95 % (Bonferroni).

    >>> round(simultaneous(1), 3), round(simultaneous(10), 3)
    (1.96, 2.807)
    """
    return NormalDist().inv_cdf(1 - 0.025 / max(count, 1))


def needed_deviations(apart: float) -> float:
    """Return the deviations to take at each end of what lies between two values ``apart`` deviations from each other.

    So that 95 % of such intervals hold a truth that is anywhere between them (Imbens and Manski 2004).

    >>> [round(needed_deviations(apart), 3) for apart in (0.0, 1.0, 10.0)]
    [1.96, 1.681, 1.645]
    """
    normal = NormalDist()
    low, high = normal.inv_cdf(1 - 2 * TAIL), NORMAL
    for _ in range(40):
        middle = (low + high) / 2
        missed = normal.cdf(-middle) + 1 - normal.cdf(middle + apart)
        low, high = (middle, high) if missed > 2 * TAIL else (low, middle)
    return high


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
    below, above = math.hypot(share - low, other_high - other), math.hypot(high - share, other - other_low)
    return share - other - below, share - other + above


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


def bound_value(value: float, drawn: Floats, compared: int = 1) -> Score:
    """Give a value the interval of its draws; ``compared`` intervals all hold with 95 % (Bonferroni).

    Draws are too few to show such ends themselves: those of one interval are moved away as far as normal ones would be.
    """
    low, high = np.quantile(drawn, [TAIL, 1 - TAIL]) - value
    further = simultaneous(compared) / NORMAL
    return Score(value, (value + min(float(low), 0.0) * further, value + max(float(high), 0.0) * further))


def bound_largest(values: Floats, drawn: Floats) -> Score:
    """Give the largest of several absolute values an interval, by inverting tests of each of them.

    The largest of several draws is too large by chance, so that its percentiles cannot contain 0. Instead the upper end
    is the highest of the ends of all values' own intervals, since it holds that of the value that is truly the largest;
    and the lower end is the highest of the lower ends of intervals that hold all together (a band by ranks, Besag and
    others 1995).

    Parameters
    ----------
    values : array of shape (values,)
    drawn : array of shape (draws, values)

    Examples
    --------
    >>> drawn = np.random.default_rng(0).normal([0.0, 0.1], 0.1, size=(1000, 2))
    >>> bound_largest(np.array([0.0, 0.1]), drawn).interval[0]
    0.0
    """
    if not values.size:
        return Score(0.0, (0.0, 0.0))
    largest = float(np.abs(values).max())
    low, high = np.quantile(drawn, [TAIL, 1 - TAIL], axis=0)
    upper = float(np.maximum(np.abs(low), np.abs(high)).max())
    ordered = np.sort(drawn, axis=0)
    ranks = drawn.argsort(axis=0).argsort(axis=0)
    extreme = np.minimum(ranks, len(drawn) - 1 - ranks).min(axis=1)
    place = int(np.quantile(extreme, TAIL, method="lower"))
    surely = np.maximum(ordered[place], -ordered[len(drawn) - 1 - place]).max()
    return Score(largest, (float(np.clip(surely, 0.0, largest)), max(upper, largest)))


def bound_change_of_largest(
    before: Floats, drawn_before: Floats, after: Floats, drawn_after: Floats
) -> Score:
    """Give the change of the largest of several absolute values an interval, by inverting tests of differences.

    Where i is truly the largest of the later ones, the change is at most the absolute value i of the later
    ones less j of the earlier ones, whatever j. So its
    upper end is the highest over i of the lowest over j of upper ends for that difference, which hold for all j
    together. The lower end is the same with the sides changed.

    Parameters
    ----------
    before, after : arrays of shape (values,)
    drawn_before, drawn_after : arrays of shape (draws, values)
        Of the same draws.

    Examples
    --------
    >>> drawn = np.random.default_rng(0).normal(0.1, 0.1, size=(1000, 1))
    >>> bound_change_of_largest(np.array([0.1]), drawn, np.array([0.05]), drawn - 0.05).interval[1] < 0
    False
    """
    if not before.size:
        return Score(0.0, (0.0, 0.0))
    value = float(np.abs(after).max() - np.abs(before).max())
    # values that cannot be the largest do not count
    ahead, behind = (_contenders(*side) for side in ((before, drawn_before), (after, drawn_after)))
    first, second = (before[ahead], drawn_before[:, ahead]), (after[behind], drawn_after[:, behind])
    high, low = _highest_change(*first, *second), -_highest_change(*second, *first)
    return Score(value, (min(low, value), max(high, value)))


def _contenders(values: Floats, drawn: Floats) -> Flags:
    """Find the values that may be the largest: that one, and those whose own interval reaches it."""
    low, high = np.quantile(drawn, [TAIL, 1 - TAIL], axis=0)
    sizes = np.abs(values)
    # Draws from few checked labels may all lie below the value itself.
    return np.asarray(np.maximum(sizes, np.maximum(np.abs(low), np.abs(high))) >= sizes.max())


def _highest_change(before: Floats, drawn_before: Floats, after: Floats, drawn_after: Floats) -> float:
    """Compute the upper end for the largest of ``after`` less the largest of ``before``."""
    sides = [np.concatenate([drawn, -drawn], axis=1) for drawn in (drawn_before, drawn_after)]
    centred = [side - side.mean(axis=0) for side in sides]
    variance = [(side**2).mean(axis=0) for side in centred]
    shared = centred[1].T @ centred[0] / len(drawn_before)
    squares = variance[1][:, None] + variance[0] - 2 * shared
    spread = np.sqrt(np.where(squares > 1e-12, squares, 0.0))  # what is left of equal draws is rounding
    # how many deviations hold for all of the earlier values together
    standard = np.abs(centred[0]) / np.sqrt(np.maximum(variance[0], 1e-300))
    factor = max(float(np.quantile(standard[:, : before.size].max(axis=1), 1 - 2 * TAIL)), NORMAL)
    differences = np.concatenate([after, -after])[:, None] - np.concatenate([before, -before])
    return float((differences + factor * spread).min(axis=1).max())
