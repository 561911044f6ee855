"""Thresholds are the best that their rule can have, and rules that make no sense are refused."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairsieve.errors import InvalidInputError
from fairsieve.thresholds import ThresholdRule


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


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("median", r"--threshold must be a probability between 0 and 1 such as 0.5, balanced, cost:FP,FN"),
        ("cost:1", r"cost:1,5, or rate:SHARE such as rate:0.05; got 'cost:1'"),
        ("rate:", r"got 'rate:'"),
        ("balanced:1", r"got 'balanced:1'"),
        (True, r"got True"),
        ("cost:0,0", r"costs of 0 or more, and not both 0; .*such as cost:1,5"),
        ("rate:5", r"a share of the people between 0 and 1; got 'rate:5': for 5 % pass 0.05"),
        (1.5, r"a probability between 0 and 1; got 1.5"),
    ],
)
def test_rules_that_make_no_sense_are_refused(value, message):
    with pytest.raises(InvalidInputError, match=message):
        ThresholdRule.parse(value, "--threshold")
