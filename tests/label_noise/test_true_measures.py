"""Measures for the true labels from few checks: exact where all is known, unbiased, and honest about the rest."""

from functools import cache

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from tests.support.annotators import check_some

from fairsieve import (
    demographic_parity_disparity,
    equalized_odds_disparity,
    estimate_clean_ratio,
    measure_true_labels,
)
from fairsieve.data import flip_margin, make_synthetic
from fairsieve.errors import InvalidInputError
from fairsieve.metrics import accuracy

DATA = make_synthetic(1500, seed=21)
NOISY = flip_margin(DATA, 0.15)
TRAIN, TEST = np.arange(700), np.arange(700, 1500)
PREDICTED = LogisticRegression().fit(DATA.features[TRAIN], NOISY.labels[TRAIN]).predict(DATA.features[TEST])


@cache
def estimate(count, seed=0):
    verified = check_some(DATA, count, seed)
    given = {"sensitive_features": DATA.groups, "verified_labels": verified}
    return estimate_clean_ratio(DATA.features, NOISY.labels, **given, random_state=0)


@pytest.fixture(scope="module")
def found():
    return {count: measure_true_labels(PREDICTED, estimate(count), rows=TEST) for count in (60, 400, 1500)}


def test_where_all_rows_are_checked_the_values_are_exact(found):
    true = DATA.take(TEST)
    everything = found[1500]
    assert everything.accuracy.value == pytest.approx(accuracy(true.labels, PREDICTED))
    wide = equalized_odds_disparity(true.labels, PREDICTED, sensitive_features=true.groups)
    assert everything.disparity.value == pytest.approx(wide, abs=0.01)
    table = np.zeros((2, 2, 2))
    np.add.at(table, (true.labels, true.groups, PREDICTED), 1.0)
    assert everything.table == pytest.approx(table)


def test_intervals_hold_the_truth_about_as_often_as_they_say(found):
    """Over five draws of the checked rows; the noisy labels are further off than the estimates are on average."""
    true, groups = DATA.labels[TEST], {"sensitive_features": DATA.groups[TEST]}
    right, seen = accuracy(true, PREDICTED), accuracy(NOISY.labels[TEST], PREDICTED)
    gap = equalized_odds_disparity(true, PREDICTED, **groups)
    drawn = [found[60], found[400]]
    drawn += [measure_true_labels(PREDICTED, estimate(60, seed=seed), rows=TEST) for seed in range(1, 4)]
    assert sum(one.accuracy.low <= right <= one.accuracy.high for one in drawn) >= 4
    assert sum(one.disparity.low <= gap <= one.disparity.high for one in drawn) >= 4
    assert all(one.disparity.low <= one.disparity.value <= one.disparity.high for one in drawn)
    assert abs(np.mean([one.accuracy.value for one in drawn]) - right) < 0.5 * abs(seen - right)


def test_a_model_that_no_check_speaks_against_may_be_without_mistakes():
    perfect = measure_true_labels(DATA.labels[TEST], estimate(60), rows=TEST)
    assert perfect.accuracy.high == 1.0
    assert perfect.accuracy.low < 0.99


def test_more_checks_narrow_the_intervals(found):
    for few, many in ((found[60].accuracy, found[400].accuracy), (found[60].disparity, found[400].disparity)):
        assert few.high - few.low > many.high - many.low
    assert "checked)" in str(found[60].accuracy)


def test_notions_weights_and_equal_opportunity():
    found = estimate(300)
    parity = measure_true_labels(PREDICTED, found, rows=TEST, fairness="demographic_parity").disparity
    true = demographic_parity_disparity(DATA.labels[TEST], PREDICTED, sensitive_features=DATA.groups[TEST])
    assert parity.value == pytest.approx(true, abs=0.03)
    weights = np.where(np.arange(800) < 400, 1.0, 0.0)
    half = measure_true_labels(PREDICTED, found, rows=TEST, sample_weight=weights)
    same = measure_true_labels(PREDICTED[:400], found, rows=TEST[:400])
    assert half.accuracy.value == pytest.approx(same.accuracy.value)
    one = measure_true_labels(PREDICTED, found, rows=TEST, fairness="equal_opportunity", pos_label=0)
    assert one.disparity.value <= measure_true_labels(PREDICTED, found, rows=TEST).disparity.value + 1e-9


NO_ROWS = "rows must be numbers of rows of the estimate"


@pytest.mark.parametrize(("change", "message"), [
    ({"y_pred": PREDICTED}, "y_pred must have one label per row of the estimate, 1500; got 800"),
    ({"y_pred": ["maybe"] * 1500}, "y_pred"),
    ({"estimate": None}, "estimate must be what estimate_clean_ratio returns; got None"),
    ({"rows": [5, 1500]}, r"rows must be .* between 0 and 1499, or .*; got \[5, 1500\]"),
    ({"rows": [5, -1]}, r"rows must be .* between 0 and 1499, or .*; got \[5, -1\]"),
    ({"rows": [3, 3]}, "twice with different predictions"),
    ({"rows": [True, False]}, "or a mask of 1500 truth values"),
    *(({"rows": rows}, NO_ROWS) for rows in ([0.0, 1.0], [], [[0, 1]], ["a", "b"])),
    *(({"random_state": seed}, "random_state must be .*a whole number") for seed in (-1, 0.5, "a", 2**64)),
])  # fmt: skip
def test_bad_input_is_named(change, message):
    with pytest.raises(InvalidInputError, match=message):
        measure_true_labels(**({"y_pred": [0, 1], "estimate": estimate(100)} | change))


def test_without_checked_labels_what_may_be_wrong_widens_the_interval():
    unchecked = estimate_clean_ratio(DATA.features, DATA.labels, sensitive_features=DATA.groups)
    assert not unchecked.acts
    assert unchecked.interval[0] < 0.95
    assert not unchecked.all_clear  # nothing was found, and that many could be wrong without showing
    measures = measure_true_labels(PREDICTED, unchecked, rows=TEST)
    true = DATA.take(TEST)
    assert measures.basis == "bounds"
    assert measures.on_given_labels["accuracy"] == pytest.approx(accuracy(true.labels, PREDICTED))
    assert measures.accuracy.checked == 0
    found = measure_true_labels(PREDICTED, estimate(1500), rows=TEST).accuracy
    assert measures.accuracy.high - measures.accuracy.low > found.high - found.low


def test_a_row_counts_once_however_often_it_is_named_and_a_mask_is_as_good():
    found = estimate(100)
    once = measure_true_labels(PREDICTED, found, rows=TEST)
    twice = measure_true_labels(np.tile(PREDICTED, 2), found, rows=np.tile(TEST, 2))
    masked = measure_true_labels(PREDICTED, found, rows=np.arange(1500) >= 700)
    assert once.accuracy == twice.accuracy == masked.accuracy
    assert once.disparity == twice.disparity == masked.disparity


def test_checked_rows_without_a_weight_say_nothing():
    found = estimate(100)
    checked = np.zeros(1500, bool)
    checked[found.checked] = True
    with pytest.raises(InvalidInputError, match="needs rows that somebody checked, with a weight above 0"):
        measure_true_labels(DATA.labels, found, sample_weight=(~checked).astype(float))
    with pytest.raises(InvalidInputError, match="y_pred is for none of them"):
        measure_true_labels(DATA.labels[~checked], found, rows=np.flatnonzero(~checked))
    half = np.where(checked & (np.arange(1500) % 2 == 0), 0.0, 1.0)
    assert measure_true_labels(DATA.labels, found, sample_weight=half).accuracy.checked < 100
