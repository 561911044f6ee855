"""Functions exp and log1p that compile to vector instructions: no branches, no calls; accurate to a few ulp."""

from __future__ import annotations

import numpy as np

from fairsieve.training.jit import compiled
from fairsieve.training.math_constants import LN2, LN2_HIGH, LN2_LOW, LOG2_E, LOWEST_POWER, POWERS

__all__ = ["exp_negative", "log1p_unit", "sigmoid"]


@compiled
def exp_negative(x: float) -> float:
    """Compute exp(x) for x ≤ 0; 0 below −708, where doubles lose precision anyway; NaN of NaN."""
    bounded = x if x > -708.0 else -708.0  # also of NaN: the table below must not be left
    k = np.floor(bounded * LOG2_E + 0.5)
    r = (bounded - k * LN2_HIGH) - k * LN2_LOW
    series = 1.0 / 6227020800  # exp(r) for |r| ≤ ln 2 / 2, to the 13th power
    series = series * r + 1.0 / 479001600
    series = series * r + 1.0 / 39916800
    series = series * r + 1.0 / 3628800
    series = series * r + 1.0 / 362880
    series = series * r + 1.0 / 40320
    series = series * r + 1.0 / 5040
    series = series * r + 1.0 / 720
    series = series * r + 1.0 / 120
    series = series * r + 1.0 / 24
    series = series * r + 1.0 / 6
    series = series * r + 0.5
    series = series * r + 1.0
    series = series * r + 1.0
    power = POWERS[np.int32(k) + LOWEST_POWER]
    return series * power if x > -708.0 else (0.0 if x <= -708.0 else x)


@compiled
def log1p_unit(u: float) -> float:
    """Compute log(1 + u) for u in [0, 1] as 2·artanh(s), with 1 + u halved where that makes s smaller."""
    halve = u > 0.41421356237309503
    s = (u - 1.0) / (u + 3.0) if halve else u / (u + 2.0)
    q = s * s
    series = 1.0 / 21
    series = series * q + 1.0 / 19
    series = series * q + 1.0 / 17
    series = series * q + 1.0 / 15
    series = series * q + 1.0 / 13
    series = series * q + 1.0 / 11
    series = series * q + 1.0 / 9
    series = series * q + 1.0 / 7
    series = series * q + 1.0 / 5
    series = series * q + 1.0 / 3
    result = 2.0 * (s + s * q * series)
    return result + LN2 if halve else result


@compiled
def sigmoid(x: float) -> float:
    """Compute 1 / (1 + exp(−x)) for any x."""
    small = exp_negative(-abs(x))
    return (1.0 if x >= 0 else small) / (1.0 + small)
