"""Sums that do not depend on the order: those of ``math.fsum``, whatever the parts."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fairsieve.core.exact import SLOTS, add_to, carry, rounded
from fairsieve.core.ratios import exact_sums, sum_by_cell

FLOATS = st.lists(st.floats(allow_nan=False, allow_infinity=False), max_size=30)


def digits_of(values):
    total = np.zeros(SLOTS, np.int64)
    for value in values:
        add_to(total, value)
    return total


@given(FLOATS)
@example([5e-324, -5e-324, 5e-324])
@example([1e308, 1.0, -1e308, 2.0**-1074])
@example([1.0, 2.0**-53])  # a tie, to even
@example([1.0, 2.0**-53, 2.0**-1074])  # just above it
@example([-1.0, -(2.0**-53), -(2.0**-1074)])
def test_the_sum_is_correctly_rounded(values):
    try:
        expected = math.fsum(values)
    except OverflowError:
        return
    assert rounded(digits_of(values)) == expected


@given(FLOATS, st.randoms(use_true_random=False), st.integers(0, 30))
def test_parts_and_order_do_not_matter(values, random, cut):
    mixed = values[:]
    random.shuffle(mixed)
    one, other = digits_of(mixed[:cut]), digits_of(mixed[cut:])
    carry(one)
    whole = digits_of(values)
    assert rounded(one + other) == rounded(whole)


def test_what_is_not_finite():
    assert rounded(digits_of([1.0, math.inf, -2.0])) == math.inf
    assert rounded(digits_of([-math.inf, 5.0])) == -math.inf
    assert math.isnan(rounded(digits_of([math.inf, -math.inf])))
    assert math.isnan(rounded(digits_of([math.nan])))
    assert rounded(digits_of([1.7e308, 1.7e308])) == math.inf
    assert rounded(digits_of([])) == 0


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sums_by_cell_in_shards(dtype):
    rng = np.random.default_rng(0)
    signals = rng.exponential(size=(2, 1000)).astype(dtype) * 10.0 ** rng.integers(-20, 20, 1000)
    signals = signals.astype(dtype)
    codes, chosen = rng.integers(0, 4, 1000).astype(np.uint8), np.flatnonzero(rng.random(1000) < 0.7)
    whole = sum_by_cell(signals, codes, chosen, 4)
    for target in range(2):
        for cell in range(4):
            inside = chosen[codes[chosen] == cell]
            assert whole[target, cell] == math.fsum(signals[target, inside].tolist())
    early, late = chosen[chosen < 333], chosen[chosen >= 333]
    total = exact_sums(signals, codes, late, 4) + exact_sums(signals, codes, early, 4)
    assert [[rounded(row) for row in rows] for rows in total] == whole.tolist()
