"""Metrics: values against those of other libraries, laws, and bad input."""

import fairlearn.metrics as fl
import numpy as np
import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from sklearn.metrics import accuracy_score

from fairsieve import demographic_parity_disparity, equal_opportunity_disparity, equalized_odds_disparity
from fairsieve.metrics import accuracy
from tests.support.refusals import refused
from tests.support.strategies import predictions, shuffles

THREE = (equalized_odds_disparity, demographic_parity_disparity, equal_opportunity_disparity)


@settings(max_examples=25)  # fairlearn takes its time
@given(predictions(), st.sampled_from(["to_overall", "between_groups"]), st.booleans())
def test_values_are_fairlearns(drawn, method, weighted):
    labels, guessed, groups, weights = drawn
    options = {"sensitive_features": groups, "method": method, "sample_weight": weights if weighted else None}
    for ours in THREE:
        theirs = getattr(fl, ours.__name__.replace("disparity", "difference"))
        assert ours(labels, guessed, **options) == pytest.approx(theirs(labels, guessed, **options))


@settings(max_examples=50)
@given(predictions(classes=3))
def test_accuracy_is_scikit_learns(drawn):
    labels, guessed, _, weights = drawn
    expected = accuracy_score(labels, guessed, sample_weight=weights)
    assert accuracy(labels, guessed, sample_weight=weights) == pytest.approx(expected)


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
    refused(message, equalized_odds_disparity, **arguments)


# ---- Laws

METHODS = st.sampled_from(["to_overall", "between_groups"])
KINDS = dict(zip(("eo", "dp", "op"), THREE, strict=True))


def disparities(labels, guessed, groups, method="to_overall", weights=None, positive=1):
    """All three disparities."""
    options = {"sensitive_features": groups, "method": method, "sample_weight": weights}
    extra = {"op": {"pos_label": positive}}
    return {kind: metric(labels, guessed, **options, **extra.get(kind, {})) for kind, metric in KINDS.items()}


@given(predictions(classes=3), METHODS)
def test_measures_are_shares(drawn, method):
    """Disparities and accuracies lie in [0, 1]."""
    labels, guessed, groups, weights = drawn
    found = disparities(labels, guessed, groups, method, weights)
    assert all(0 <= value <= 1 for value in found.values())
    assert 0 <= accuracy(labels, guessed, sample_weight=weights) <= 1


@given(predictions(classes=4), METHODS)
def test_other_names_change_nothing(drawn, method):
    """Other names for classes and groups change nothing."""
    labels, guessed, groups, weights = drawn
    names, renamed = np.array(list("dbca")), np.array(["x", "a", "m"])
    found = disparities(labels, guessed, groups, method, weights)
    other = disparities(names[labels], names[guessed], renamed[groups], method, weights, "b")
    assert other == pytest.approx(found)
    assert accuracy(names[labels], names[guessed]) == accuracy(labels, guessed)


@given(predictions(classes=3))
def test_the_two_distances_are_within_a_factor_of_two(drawn):
    """The distance to the overall rate is at most that between groups, which is at most twice it."""
    labels, guessed, groups, weights = drawn
    near = disparities(labels, guessed, groups, "to_overall", weights)
    far = disparities(labels, guessed, groups, "between_groups", weights)
    for kind in KINDS:
        assert near[kind] - 1e-12 <= far[kind] <= 2 * near[kind] + 1e-12


@given(predictions(), st.integers(0, 10**6), st.integers(2, 4))
def test_a_weight_is_a_number_of_repetitions(drawn, which, times):
    """A weight is a number of repetitions, and a weight of 0 a sample that is not there."""
    labels, guessed, groups, _ = drawn
    weights = np.ones(len(labels))
    weights[which % len(labels)] = times
    everyone = np.repeat(np.arange(len(labels)), weights.astype(int))
    found = disparities(labels, guessed, groups, weights=weights)
    assert found == pytest.approx(disparities(labels[everyone], guessed[everyone], groups[everyone]))
    labels, guessed = np.append(labels, 1), np.append(guessed, 0)
    groups, weights = np.append(groups, 0), np.append(weights, 0)
    assert disparities(labels, guessed, groups, weights=weights) == pytest.approx(found)


@given(predictions(classes=3), METHODS, st.integers(-20, 20))
def test_weights_scaled_together_change_nothing(drawn, method, power):
    """Weights scaled together change nothing."""
    labels, guessed, groups, weights = drawn
    found = disparities(labels, guessed, groups, method, weights)
    assert disparities(labels, guessed, groups, method, weights * 2.0**power) == found
    one, other = (accuracy(labels, guessed, sample_weight=each) for each in (weights, weights * 2.0**power))
    assert one == other


@given(predictions(classes=3, groups=4), METHODS)
def test_merged_groups_differ_no_more(drawn, method):
    """Merging two groups never raises a disparity, and merging all leaves none."""
    labels, guessed, groups, weights = drawn
    found = disparities(labels, guessed, groups, method, weights)
    merged = disparities(labels, guessed, np.minimum(groups, 2), method, weights)
    for kind in KINDS:
        assert merged[kind] <= found[kind] + 1e-12
    assert set(disparities(labels, guessed, np.zeros_like(groups), method).values()) == {0}


@given(predictions(classes=3), METHODS, st.data())
def test_another_order_and_a_group_split_into_two_alike_change_nothing(drawn, method, data):
    twice = [np.concatenate([each, each]) for each in drawn]
    twice[2][len(drawn[2]) :][drawn[2] == 2] = 9  # the copy of the last group under another name
    order = data.draw(shuffles(len(twice[0])))
    labels, guessed, groups, weights = (each[order] for each in twice)
    found = disparities(*drawn[:3], method, drawn[3])
    assert disparities(labels, guessed, groups, method, weights) == pytest.approx(found)


@given(predictions(classes=3), METHODS)
def test_right_or_constant_predictions_have_no_disparity(drawn, method):
    """Right predictions have accuracy 1 and equal odds; the same for everyone has no disparity at all."""
    labels, _, groups, weights = drawn
    assert accuracy(labels, labels, sample_weight=weights) == 1
    found = disparities(labels, labels, groups, method, weights)
    assert (found["eo"], found["op"]) == (0, 0)
    assert set(disparities(labels, np.full_like(labels, 2), groups, method, weights).values()) == {0}


@given(predictions(classes=3), METHODS, st.integers(0, 2))
def test_equal_opportunity_is_part_of_equalized_odds(drawn, method, positive):
    """Equal opportunity is one of the comparisons of equalized odds."""
    labels, guessed, groups, weights = drawn
    found = disparities(labels, guessed, groups, method, weights, positive)
    assert found["op"] <= found["eo"]


@given(predictions(classes=3))
def test_accuracy_is_the_mean_over_groups(drawn):
    """Accuracy is the mean of the groups' accuracies, by their weight; a wrong prediction less lowers the error."""
    labels, guessed, groups, weights = drawn
    inside, parts = [groups == z for z in range(3)], []
    for own in inside:
        parts.append(weights[own].sum() * accuracy(labels[own], guessed[own], sample_weight=weights[own]))
    whole = accuracy(labels, guessed, sample_weight=weights)
    assert whole == pytest.approx(sum(parts) / weights.sum())
    better = np.where(np.arange(len(labels)) == np.argmax(labels != guessed), labels, guessed)
    assert accuracy(labels, better, sample_weight=weights) >= whole


@given(predictions(classes=3), METHODS, st.integers(0, 2**32 - 1))
def test_samples_without_a_group_count_for_accuracy_alone(drawn, method, seed):
    """Samples without a group count for accuracy and for no disparity."""
    labels, guessed, groups, weights = drawn
    missing = np.random.default_rng(seed).random(len(labels)) < 0.3
    partly, there = np.where(missing, np.nan, groups), ~missing
    assume(there.any())  # of nobody no disparity can be told, and that is an error
    for metric in (equalized_odds_disparity, demographic_parity_disparity):
        found = metric(labels, guessed, sensitive_features=partly, sample_weight=weights, method=method)
        without = {"sensitive_features": groups[there], "sample_weight": weights[there]}
        assert found == metric(labels[there], guessed[there], method=method, **without)
    whole = accuracy(labels, guessed, sample_weight=weights)
    assert accuracy(labels, guessed, sensitive_features=partly, sample_weight=weights) == pytest.approx(whole)
