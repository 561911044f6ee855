"""Checks of single values"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fairsieve.errors import InvalidInputError
from fairsieve.validation import (
    check_at_least,
    check_choice,
    check_clean_ratio,
    check_positive,
    check_share,
    percent_hint,
    shown,
)

NUMBERS = st.one_of(
    st.integers(-3, 200),
    st.floats(-2, 200),
    st.floats(0, 1),
    st.sampled_from([0, 1, 0.0, 1.0, -0.0, math.inf, -math.inf, math.nan, 100, 100.0, 100.5]),
)
VALUES = st.one_of(
    NUMBERS,
    NUMBERS.map(np.float64),
    st.integers(-3, 200).map(np.int32),
    st.fractions(0, 2),
    st.sampled_from([True, False, np.True_, np.False_, None, "1", "auto", "Auto", [1], 1j]),
)


def is_number(value):
    return isinstance(value, (int, float, np.integer, np.floating, Fraction)) and not isinstance(value, bool)


def takes(check, *arguments, **options):
    """Whether a check takes a value; what it gives back must be that value."""
    try:
        found = check("x", *arguments, **options)
    except InvalidInputError as error:
        assert str(error).startswith("x must be ")
        assert shown(arguments[0]) in str(error)
        return False
    assert found == (arguments[0] if isinstance(found, str) else type(found)(arguments[0]))
    assert type(found) in (int, float, str)
    return True


@given(VALUES, st.integers(-2, 3))
@example(1, 1)
@example(True, 0)
@example(np.False_, 0)
def test_whole_numbers(value, lowest):
    """A whole number is one of an integer type, not below the lowest, and no truth value."""
    is_whole = is_number(value) and not isinstance(value, (float, np.floating, Fraction))
    assert takes(check_at_least, value, lowest) == (is_whole and value >= lowest)


@given(VALUES)
@example(0)
@example(1)
@example(np.True_)
@example("auto")
def test_shares(value):
    """A share is any real number in [0, 1], a clean ratio one in (0, 1], and no truth value is either."""
    assert takes(check_share, value) == (is_number(value) and 0 <= value <= 1)
    is_ratio = is_number(value) and 0 < value <= 1
    assert takes(check_clean_ratio, value) == is_ratio
    assert takes(check_clean_ratio, value, auto=True) == (
        is_ratio or (isinstance(value, str) and value == "auto")
    )


@given(VALUES)
@example(math.inf)
@example(0)
def test_positive(value):
    """A positive number is finite and above 0."""
    assert takes(check_positive, value) == (is_number(value) and 0 < value < math.inf)


@given(VALUES)
@example(1)
@example(100)
@example(True)
def test_percentages(value):
    """What may be a percentage, above 1 and up to 100, is told what to pass in its place; nothing else is."""
    hint = percent_hint(value)
    if is_number(value) and 1 < value <= 100:
        assert float(hint.split()[-1]) == pytest.approx(float(value) / 100, rel=1e-5)
    else:
        assert hint == ""


@given(st.one_of(VALUES, st.text(max_size=3)), st.lists(st.text(max_size=2), max_size=3))
def test_choices(value, choices):
    """A choice is one of the texts there are."""
    assert takes(check_choice, value, choices) == (isinstance(value, str) and value in choices)


@given(st.text(max_size=300))
@example("a" * 98)
@example("a" * 99)
def test_shown(text):
    """A value in a message is its own text, cut after a hundred letters."""
    whole = repr(text)
    assert shown(text) == (whole if len(whole) <= 100 else whole[:99] + "…")
    assert shown(np.float64(0.5)) == "0.5"


@pytest.mark.parametrize(
    ("value", "auto", "ending"),
    [
        ("auto", False, "got 'auto': estimate_clean_ratio finds one"),
        ("Auto", True, "got 'Auto': write \"auto\" in small letters"),
        ("Auto", False, "got 'Auto'"),
        ("all", True, "got 'all'"),
        ("all", False, "got 'all'"),
        (90, True, "got 90: for 90 % pass 0.9"),
    ],
)
def test_hints(value, auto, ending):
    """What was meant is guessed at: a percentage, or the word for an estimate."""
    with pytest.raises(InvalidInputError) as caught:
        check_clean_ratio("x", value, auto=auto)
    assert str(caught.value).endswith(ending)
    assert ('or "auto"' in str(caught.value)) == auto
