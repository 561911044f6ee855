"""Intervals: another library's values, published ones, and laws."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

from fairsieve.intervals import NORMAL, newcombe, paired_change, simultaneous, wilson


@st.composite
def counts(draw):
    total = draw(st.integers(1, 5000))
    return draw(st.integers(0, total)), total


@given(counts())
def test_wilson_is_scipys(count):
    hits, total = count
    expected = binomtest(hits, total).proportion_ci(method="wilson")
    assert wilson(hits, total) == pytest.approx((expected.low, expected.high), abs=1e-9)


@given(counts())
def test_the_share_lies_within(count):
    low, high = wilson(*count)
    assert 0 <= low <= count[0] / count[1] <= high <= 1


@pytest.mark.parametrize(
    ("counts_of_both", "expected"),
    [((56, 70, 48, 80), (0.0524, 0.3339)), ((9, 10, 3, 10), (0.1705, 0.8090))],
)
def test_newcombe_is_as_published(counts_of_both, expected):
    """Newcombe (1998), Table II, method 10."""
    assert newcombe(*counts_of_both) == pytest.approx(expected, abs=5e-5)


@given(counts(), counts())
def test_a_difference_turned_round_is_its_negative(one, other):
    low, high = newcombe(*one, *other)
    assert newcombe(*other, *one) == pytest.approx((-high, -low), abs=1e-12)
    assert -1 <= low <= one[0] / one[1] - other[0] / other[1] <= high <= 1


def test_of_nobody_anything_may_be_true():
    assert wilson(0, 0) == (0.0, 1.0)
    assert newcombe(0, 0, 5, 9) == (-1.0, 1.0)


def test_more_intervals_at_once_are_wider():
    assert simultaneous(1) == pytest.approx(NORMAL)
    assert simultaneous(90) > simultaneous(2) > NORMAL
    low, high = newcombe(56, 70, 48, 80, simultaneous(10))
    assert low < newcombe(56, 70, 48, 80)[0] < newcombe(56, 70, 48, 80)[1] < high


@given(st.integers(0, 50), st.integers(0, 50), st.integers(0, 900))
def test_a_change_lies_within_and_is_never_certain(gained, lost, same):
    total = gained + lost + same
    low, high = paired_change(gained, lost, total)
    assert low < high
    if total:
        assert low <= (gained - lost) / total <= high
    assert paired_change(lost, gained, total) == pytest.approx((-high, -low))
