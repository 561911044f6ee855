"""How pages write numbers."""

from __future__ import annotations

import math

__all__ = ["interval", "number", "percent", "points", "points_interval"]


def number(value: float) -> str:
    """Write three digits, as the paper prints them.

    Examples
    --------
    >>> number(0.7171), number(-0.02), number(-0.0001), number(10.276)
    ('.717', '−.020', '.000', '10.276')
    """
    if math.isnan(value):
        return "–"
    sign = "−" if value < 0 and round(value, 3) != 0 else ""
    return sign + f"{abs(value):.3f}".removeprefix("0")


def percent(value: float) -> str:
    """Write a share in per cent, with a decimal where it is small.

    Examples
    --------
    >>> percent(0.123), percent(0.012), percent(0.0)
    ('12 %', '1.2 %', '0 %')
    """
    if math.isnan(value):
        return "–"
    shown = f"{100 * value:.1f}" if 0 < abs(value) < 0.095 else f"{100 * value:.0f}"
    return f"{shown} %".replace("-", "−")


def points(value: float) -> str:
    """Write a difference between shares in points.

    Examples
    --------
    >>> points(0.094), points(0.01), points(0.003)
    ('9 points', '1 point', '0.3 points')
    """
    size = abs(100 * value)
    shown = f"{size:.1f}" if 0.05 <= size < 0.95 else f"{size:.0f}"
    return f"{shown} {'point' if shown == '1' else 'points'}"


def interval(bounds: tuple[float, float]) -> str:
    """Write an interval.

    >>> interval((0.1, 0.25))
    '.100 to .250'
    """
    return f"{number(bounds[0])} to {number(bounds[1])}"


def points_interval(bounds: tuple[float, float]) -> str:
    """Write the 95 % interval of a difference, in points.

    >>> points_interval((-0.021, 0.13))
    '95 % interval −2 to 13'
    """
    low, high = (f"{100 * bound:.0f}".replace("-0", "0").replace("-", "−") for bound in bounds)
    return f"95 % interval {low} to {high}"
