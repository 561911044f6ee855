"""Sums that do not depend on the order: those of ``math.fsum``, whatever the parts."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairsieve.selection.backends.compiled_sums import _add_many, _add_to, _carry, sum_by_cell, sum_digits
from fairsieve.selection.exact_sums import SLOTS, rounded

FLOATS = st.lists(st.floats(allow_nan=False, allow_infinity=False), max_size=30)


def digits_of(values):
    total = np.zeros(SLOTS, np.int64)
    for value in values:
        _add_to(total, value)
    return total


def test_sums_with_infinities_and_nan():
    assert rounded(digits_of([1.0, math.inf, -2.0])) == math.inf
    assert rounded(digits_of([-math.inf, 5.0])) == -math.inf
    assert math.isnan(rounded(digits_of([math.inf, -math.inf])))
    assert math.isnan(rounded(digits_of([math.nan])))
    assert rounded(digits_of([1.7e308, 1.7e308])) == math.inf
    assert rounded(digits_of([])) == 0


def test_a_table_adds_the_smallest_values():
    for value in (2.0**-1045, 2.0**-1046, 2.0**-1022, -(2.0**-1021)):
        total = np.zeros((1, SLOTS), np.int64)
        _add_many(total, np.full(1, value), np.zeros(1, np.uint8), np.arange(1))
        assert rounded(total[0]) == value


@pytest.mark.parametrize("width", [32, 64])
@given(st.data())
def test_a_table_adds_the_same_as_single_terms(width, data):
    floats = st.floats(width=width) | st.floats(0, 1, width=width)
    values = np.array(data.draw(st.lists(floats, min_size=1, max_size=60)), f"f{width // 8}")
    codes = np.array(
        data.draw(st.lists(st.integers(0, 2), min_size=len(values), max_size=len(values))), np.uint8
    )
    selected = np.array(sorted(data.draw(st.sets(st.integers(0, len(values) - 1)))), np.int64)
    many, single = np.zeros((2, 3, SLOTS), np.int64)
    _add_many(many, values, codes, selected)
    for i in selected:
        _add_to(single[codes[i]], values[i])
    for total in (*many, *single):
        _carry(total)
    assert (many == single).all()


def test_sums_by_cell_of_many_values():
    values = np.random.default_rng(0).exponential(size=(1, 2**14 + 2))
    sums = sum_by_cell(values, np.zeros(2**14 + 2, np.uint8), np.arange(1, 2**14 + 2), 1)
    assert sums.tolist() == [[math.fsum(values[0, 1:])]]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sums_of_shards_add_up_to_the_whole(dtype):
    rng = np.random.default_rng(0)
    signals = rng.exponential(size=(2, 1000)).astype(dtype) * 10.0 ** rng.integers(-20, 20, 1000)
    signals = signals.astype(dtype)
    codes, selected = rng.integers(0, 4, 1000).astype(np.uint8), np.flatnonzero(rng.random(1000) < 0.7)
    whole = sum_by_cell(signals, codes, selected, 4)
    for target in range(2):
        for cell in range(4):
            inside = selected[codes[selected] == cell]
            assert whole[target, cell] == math.fsum(signals[target, inside].tolist())
    early, late = selected[selected < 333], selected[selected >= 333]
    total = sum_digits(signals, codes, late, 4) + sum_digits(signals, codes, early, 4)
    assert [[rounded(row) for row in rows] for rows in total] == whole.tolist()
