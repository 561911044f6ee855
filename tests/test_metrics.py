"""Metrics: values against fairlearn's, laws, and bad input."""

import fairlearn.metrics as fl
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import accuracy_score

from fairsieve import demographic_parity_disparity, equal_opportunity_disparity, equalized_odds_disparity
from fairsieve.errors import InvalidInputError
from fairsieve.metrics import accuracy
from tests.support.strategies import predictions

DISPARITIES = (equalized_odds_disparity, demographic_parity_disparity, equal_opportunity_disparity)


@settings(max_examples=25)  # fairlearn takes its time
@given(predictions(), st.sampled_from(["to_overall", "between_groups"]), st.booleans())
def test_values_are_fairlearns(drawn, method, weighted):
    labels, guessed, groups, weights = drawn
    options = {"sensitive_features": groups, "method": method, "sample_weight": weights if weighted else None}
    for ours, theirs in (
        (equalized_odds_disparity, fl.equalized_odds_difference),
        (demographic_parity_disparity, fl.demographic_parity_difference),
        (equal_opportunity_disparity, fl.equal_opportunity_difference),
    ):
        assert ours(labels, guessed, **options) == pytest.approx(theirs(labels, guessed, **options))


@settings(max_examples=50)
@given(predictions(classes=3))
def test_accuracy_is_scikit_learns(drawn):
    labels, guessed, _, weights = drawn
    assert accuracy(labels, guessed, sample_weight=weights) == pytest.approx(
        accuracy_score(labels, guessed, sample_weight=weights)
    )


def test_one_group_is_fair_and_an_empty_cell_is_left_out():
    assert equalized_odds_disparity([0, 1], [1, 0], sensitive_features=["a", "a"]) == 0
    assert equalized_odds_disparity([0, 0, 1], [0, 0, 1], sensitive_features=["a", "b", "b"]) == 0


def test_tensors_frames_and_crossed_columns():
    groups = np.array([["f", 0], ["m", 0], ["f", 1]], object)
    labels = torch.tensor([0, 1, 1])
    value = demographic_parity_disparity(labels, labels, sensitive_features=groups)
    assert value == pytest.approx(2 / 3)


@pytest.mark.parametrize(("options", "message"), [
    ({"y_true": [], "y_pred": [], "sensitive_features": []}, "at least one sample"),
    ({"sensitive_features": ["a"]}, "sensitive_features must have one value per sample, 2; got 1"),
    ({"sample_weight": [1.0]}, "sample_weight must have one number per sample"),
    ({"sample_weight": [np.nan, 1]}, "sample_weight must be finite and not negative"),
])  # fmt: skip
def test_bad_input_is_named(options, message):
    arguments = {"y_true": [0, 1], "y_pred": [0, 1], "sensitive_features": ["a", "b"]} | options
    with pytest.raises(InvalidInputError, match=message):
        equalized_odds_disparity(**arguments)
