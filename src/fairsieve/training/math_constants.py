"""Constants of the polynomials for exp and log1p, which NumPy and compiled code share."""

from __future__ import annotations

import math

import numpy as np

__all__ = ["EXP_SERIES", "LN2", "LN2_HIGH", "LN2_LOW", "LOG2_E", "LOG_SERIES", "LOWEST_POWER", "POWERS"]

LOG2_E = 1.4426950408889634
LN2_HIGH = 6.93147180369123816490e-01  # ln 2 in two parts, so that k · ln 2 is exact enough
LN2_LOW = 1.90821492927058770002e-10
LN2 = 0.6931471805599453
LOWEST_POWER = 1024
POWERS = 2.0 ** np.arange(-LOWEST_POWER, 1)
EXP_SERIES = tuple(1.0 / math.factorial(n) for n in range(13, -1, -1))  # of exp(r), for |r| ≤ ln 2 / 2
LOG_SERIES = tuple(1.0 / n for n in range(21, 1, -2))  # of 2·artanh(s), without its first term
