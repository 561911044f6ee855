"""Checks of single values, thresholds and intervals"""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy.stats import binomtest

from fairsieve import validation
from fairsieve.errors import InvalidInputError
from fairsieve.metrics import NORMAL, newcombe, simultaneous, wilson
from fairsieve.thresholds import ThresholdRule

ODD = st.sampled_from([0, 1, 0.0, 1.0, -0.0, math.inf, -math.inf, math.nan, 100, 100.0, 100.5])
NUMBERS = st.one_of(st.integers(-3, 200), st.floats(-2, 200), st.floats(0, 1), ODD)
OTHERS = st.sampled_from([True, False, np.True_, np.False_, None, "1", "auto", "Auto", [1], 1j])
TYPED = NUMBERS.map(np.float64), st.integers(-3, 200).map(np.int32), st.fractions(0, 2)
VALUES = st.one_of(NUMBERS, *TYPED, OTHERS)


def is_number(value):
    return isinstance(value, (int, float, np.integer, np.floating, Fraction)) and not isinstance(value, bool)


def takes(check, *arguments, **options):
    """Whether a check takes a value; what it gives back must be that value."""
    try:
        found = check("x", *arguments, **options)
    except InvalidInputError as error:
        assert str(error).startswith("x must be ")
        assert validation.shown(arguments[0]) in str(error)
        return False
    assert found == (arguments[0] if isinstance(found, str) else type(found)(arguments[0]))
    assert type(found) in (int, float, str)
    return True


@given(VALUES, st.integers(-2, 3))
@example(1, 1)
@example(True, 0)
@example(np.False_, 0)
def test_a_whole_number_is_of_an_integer_type(value, lowest):
    """A whole number is one of an integer type, not below the lowest, and no truth value."""
    is_whole = is_number(value) and not isinstance(value, (float, np.floating, Fraction))
    assert takes(validation.check_at_least, value, lowest) == (is_whole and value >= lowest)


@given(VALUES)
@example(0)
@example(1)
@example(np.True_)
@example("auto")
def test_a_share_lies_between_0_and_1(value):
    """A share is any real number in [0, 1], a clean ratio one in (0, 1], and no truth value is either."""
    assert takes(validation.check_share, value) == (is_number(value) and 0 <= value <= 1)
    is_ratio = is_number(value) and 0 < value <= 1
    assert takes(validation.check_clean_ratio, value) == is_ratio
    is_auto = isinstance(value, str) and value == "auto"
    assert takes(validation.check_clean_ratio, value, auto=True) == (is_ratio or is_auto)


@given(VALUES)
@example(math.inf)
@example(0)
def test_a_positive_number_is_finite(value):
    """A positive number is finite and above 0."""
    assert takes(validation.check_positive, value) == (is_number(value) and 0 < value < math.inf)


@given(VALUES)
@example(1)
@example(100)
@example(True)
def test_a_percentage_is_told_as_a_share(value):
    """What may be a percentage, above 1 and up to 100, is told what to pass in its place; nothing else is."""
    hint = validation.percent_hint(value)
    if is_number(value) and 1 < value <= 100:
        assert float(hint.split()[-1]) == pytest.approx(float(value) / 100, rel=1e-5)
    else:
        assert hint == ""


@given(st.one_of(VALUES, st.text(max_size=3)), st.lists(st.text(max_size=2), max_size=3))
def test_a_choice_is_one_of_the_texts(value, choices):
    """A choice is one of the texts there are."""
    assert takes(validation.check_choice, value, choices) == (isinstance(value, str) and value in choices)


@given(st.text(max_size=300))
@example("a" * 98)
@example("a" * 99)
def test_a_value_in_a_message_is_short(text):
    """A value in a message is its own text, cut after a hundred letters."""
    whole = repr(text)
    assert validation.shown(text) == (whole if len(whole) <= 100 else whole[:99] + "…")
    assert validation.shown(np.float64(0.5)) == "0.5"


@st.composite
def scored_labels(draw):
    size = draw(st.integers(2, 25))
    scores = draw(st.lists(st.sampled_from([i / 8 for i in range(8)]), min_size=size, max_size=size))
    labels = draw(st.lists(st.sampled_from([0.0, 0.25, 1.0]), min_size=size, max_size=size))
    labels[0], labels[-1] = 0.0, 1.0
    return np.array(scores), np.array(labels)


def worth(rule, scores, labels, threshold):
    """What the rule asks for, counted one sample at a time."""
    flagged = [score >= threshold for score in scores]
    false = sum(1 - label for label, flag in zip(labels, flagged, strict=True) if flag)
    missed = sum(label for label, flag in zip(labels, flagged, strict=True) if not flag)
    if rule.kind == "rate":
        return -abs(sum(flagged) / len(scores) - rule.values[0])
    if rule.kind == "cost":
        return -(rule.values[0] * false + rule.values[1] * missed) / len(scores)
    positives = sum(labels)
    return ((positives - missed) / positives + 1 - false / (len(labels) - positives)) / 2


@given(scored_labels(), st.sampled_from(["balanced", "cost:1,5", "cost:3,1", "rate:0.3", "rate:0.05"]))
def test_no_other_threshold_is_better(data, text):
    scores, labels = data
    rule = ThresholdRule.parse(text)
    chosen = rule.choose(scores, labels)
    assert 0 <= chosen <= 1
    others = [*np.unique(scores), 0.99]
    best = max(worth(rule, scores, labels, other) for other in others)
    assert worth(rule, scores, labels, chosen) == pytest.approx(best)


def test_a_threshold_lies_between_scores():
    scores, labels = np.array([0.2, 0.4, 0.6]), np.array([0.0, 0.0, 1.0])
    assert ThresholdRule.parse("balanced").choose(scores, labels) == pytest.approx(0.5)
    high = np.nextafter(0.4, 1)
    assert ThresholdRule.parse("rate:0.5").choose(np.array([0.4, high]), np.array([0.0, 1.0])) == high


@pytest.mark.parametrize("text", ["0.5", "0.3", "balanced", "cost:1,5", "rate:0.05"])
def test_rules_are_written_as_they_are_read(text):
    rule = ThresholdRule.parse(text)
    assert str(rule) == text
    assert ThresholdRule.parse(rule) is rule
    assert rule.is_default == (text == "0.5")


@pytest.mark.parametrize(("value", "message"), [
    ("median", r"threshold must be a probability between 0 and 1 such as 0.5, balanced, cost:FP,FN"),
    ("cost:1", r"cost:1,5, or rate:SHARE such as rate:0.05; got 'cost:1'"),
    ("rate:", r"got 'rate:'"),
    ("balanced:1", r"got 'balanced:1'"),
    (True, r"got True"),
    ("cost:0,0", r"costs of 0 or more, and not both 0; .*such as cost:1,5"),
    ("rate:5", r"a share of the people between 0 and 1; got 'rate:5': for 5 % pass 0.05"),
    (1.5, r"a probability between 0 and 1; got 1.5"),
])  # fmt: skip
def test_rules_that_make_no_sense_are_refused(value, message):
    with pytest.raises(InvalidInputError, match=message):
        ThresholdRule.parse(value, "--threshold")


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
    ("counts_of_both", "expected"), [((56, 70, 48, 80), (0.0524, 0.3339)), ((9, 10, 3, 10), (0.1705, 0.8090))]
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
