"""Labels that somebody checked: what is learnt from them, and bad input."""

import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression
from tests.support.annotators import check_some, flip_weak_annotator
from tests.support.refusals import refused

from fairsieve import CleanRatioEstimate, FairRobustClassifier, Samples, estimate_clean_ratio
from fairsieve.data import flip_margin, flip_uniform, make_synthetic
from fairsieve.errors import FairsieveWarning, InvalidInputError

DATA = make_synthetic(2000, seed=0)
NOISY = flip_weak_annotator(DATA, {0: 0.25, 1: 0.1}, seed=0)


def estimate(labels, verified, data=DATA, **options):
    options |= {"sensitive_features": data.groups, "verified_labels": verified, "random_state": 0}
    return estimate_clean_ratio(data.features, labels, **options)


@pytest.fixture(scope="module")
def drawn():
    """Estimates from four draws of 400 checked rows."""
    return [estimate(NOISY.labels, check_some(DATA, 400, seed)) for seed in range(4)]


def test_rates_are_learnt_with_intervals_that_narrow(drawn):
    true = 1 - NOISY.flipped.mean()
    for found in drawn:
        assert found.credible
        assert "learnt from 400 checked labels" in str(found.credible)
        assert found.wrong[NOISY.flipped].mean() > 2 * found.wrong[~NOISY.flipped].mean()
        assert found.verified.checked.sum() == 400
        assert (found.verified.narrowing(10) > 0).all()
        assert (found.verified.narrowing(100) > found.verified.narrowing(10)).all()
    assert np.mean([found.clean_ratio for found in drawn]) == pytest.approx(true, abs=0.02)
    assert sum(found.interval[0] <= true <= found.interval[1] for found in drawn) >= 3
    few, rates = estimate(NOISY.labels, check_some(DATA, 40)).verified, drawn[0].verified
    assert (few.high - few.low).mean() > (rates.high - rates.low).mean()


def test_intervals_of_the_flip_rates_hold_them_about_as_often_as_they_say():
    """Over draws of the data, of the wrong labels and of the checked rows."""
    held = []
    for seed, by_people in np.ndindex(8, 2):
        data = make_synthetic(2000, seed=seed)
        flip, rates = (flip_uniform, 0.2) if not by_people else (flip_weak_annotator, {0: 0.2, 1: 0.08})
        noisy = flip(data, rates, seed=seed)
        rates = estimate(noisy.labels, check_some(data, 400, seed), data).verified
        cells = data.cells
        for c, z in np.ndindex(2, 2):
            rate = noisy.flipped[(cells.label_codes == c) & (cells.group_codes == z)].mean()
            held.append(rates.low[c, z] <= rate <= rates.high[c, z])
            assert rates.high[c, z] - rates.low[c, z] < 0.5
    assert np.mean(held) >= 0.85  # of 64; the four of a draw stand or fall together


def test_checked_labels_are_certain_and_all_of_them_are_the_truth():
    verified = check_some(DATA, 100)
    found = estimate(NOISY.labels, verified)
    rows = np.flatnonzero(verified != None)  # noqa: E711
    assert found.true_class[rows, DATA.labels[rows]].tolist() == [1.0] * 100
    everything = estimate(NOISY.labels, DATA.labels)
    assert everything.true_class.argmax(axis=1).tolist() == DATA.labels.tolist()
    assert everything.clean_ratio == pytest.approx(1 - NOISY.flipped.mean())
    assert everything.interval == pytest.approx((1 - NOISY.flipped.mean(),) * 2)
    assert everything.verified.low == pytest.approx(everything.verified.high, abs=1e-4)


@pytest.mark.filterwarnings("ignore:verified_labels has no checked row")
def test_the_likeliest_share_of_wrong_labels_is_within_its_interval():
    """Also where one group alone was checked: the chances of the other say something else than the checks."""
    data = make_synthetic(800, seed=2)
    mine, flipped = data.groups == 1, np.random.default_rng(2).random(800) < 0.25
    given, checked = data.labels ^ (mine & flipped), np.where(mine, data.labels, None)
    found = estimate(given, checked, data)
    assert found.wrong.mean() < 1 - found.interval[1] <= found.share_wrong <= 1 - found.interval[0]


@pytest.mark.parametrize("form", [
    lambda v: v,
    lambda v: pd.Series(v, dtype="Int64"),
    lambda v: np.array([np.nan if x is None else x for x in v], float),
    lambda v: np.ma.masked_array([x or 0 for x in v], [x is None for x in v]),
    lambda v: [pd.NA if x is None else x for x in v],
])  # fmt: skip
def test_missing_is_none_nan_na_or_masked(form):
    small = DATA.take(np.arange(300))
    verified = check_some(small, 50)
    wanted = [-1 if value is None else value for value in verified]
    assert estimate(NOISY.labels[:300], form(verified), small).verified_codes.tolist() == wanted


def test_it_says_more_than_the_checked_rows_alone_and_than_the_given_labels():
    """Where a fifth of the surest labels is flipped: by log loss of the true labels that nobody checked."""
    losses = []
    for seed in range(3):
        data = make_synthetic(1000, seed=seed)
        labels = flip_margin(data, 0.2).labels
        verified = check_some(data, 100, seed)
        left = verified == None  # noqa: E711
        ours = estimate(labels, verified, data)
        renamed = Samples(data.features * [7.0, 100.0, 3.0] + 2.0, data.labels, data.groups)
        assert estimate(labels, verified, renamed).true_class == pytest.approx(ours.true_class, abs=1e-3)
        alone = LogisticRegression().fit(data.features[~left], data.labels[~left])
        true = np.arange(len(data))[left], data.labels[left]
        rate = np.where(labels == data.labels, 0.8, 0.2)[left]
        chances = ours.true_class[true], alone.predict_proba(data.features)[true], rate
        losses.append([-np.log(each).mean() for each in chances])
    ours, alone, labels = np.mean(losses, axis=0)
    assert ours < 0.6 * alone
    assert ours < 0.6 * labels


def test_texts_and_three_classes():
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 3, 900)
    centres = np.array([[0.0, 2.0], [2.0, -1.0], [-2.0, -1.0]])
    names = np.array(["a", "b", "c"])
    data = Samples(rng.normal(size=(900, 2)) + centres[labels], names[labels], rng.choice(["x", "y"], 900))
    noisy = flip_uniform(data, 0.3, seed=1)
    found = estimate(noisy.labels, check_some(data, 200), data)
    assert found.true_class.sum(axis=1) == pytest.approx(np.ones(900))
    guessed = found.true_class.argmax(axis=1) == labels
    assert guessed.mean() > 1 - noisy.flipped.mean() + 0.08
    renamed = Samples(data.features, data.labels, np.where(data.groups == "x", 1, 2))
    again = estimate(noisy.labels, check_some(data, 200), renamed)
    assert again.true_class == pytest.approx(found.true_class)


@pytest.mark.parametrize(("classes", "groups", "count"), [(2, 1, 12), (3, 3, 40), (4, 2, 60)])
def test_chances_are_probabilities_whatever_is_checked(classes, groups, count):
    rng = np.random.default_rng(classes)
    X, labels, z = rng.normal(size=(80, 2)), np.arange(80) % classes, rng.integers(0, groups, 80)
    verified = np.full(80, None, dtype=object)
    verified[rng.permutation(80)[:count]] = rng.integers(0, classes, count)
    with warnings.catch_warnings(action="ignore", category=FairsieveWarning):
        found = estimate_clean_ratio(X, labels, sensitive_features=z, verified_labels=verified)
    assert found.true_class.sum(axis=1) == pytest.approx(np.ones(80))
    assert (found.true_class >= 0).all()
    assert 0 <= found.interval[0] <= found.clean_ratio <= found.interval[1] <= 1
    assert ((found.flip_rates >= 0) & (found.flip_rates <= 1)).all()


@pytest.mark.parametrize("checks", [50, 150])
def test_the_interval_holds_the_truth_where_one_group_has_wrong_labels(checks):
    """Of twenty draws; before the ends were found apart, the truth was above one in four of them."""
    held = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        income, debt, old = rng.normal(size=1000), rng.normal(size=1000), rng.random(1000) < 0.3
        truth = rng.random(1000) < 1 / (1 + np.exp(2 * old + debt - 1.5 * income - 0.8))
        wrong = (rng.random(1000) < 0.08) & (old == seed % 2)
        verified = np.full(1000, None, dtype=object)
        rows = rng.permutation(1000)[:checks]
        verified[rows] = truth[rows]
        X, checked = np.column_stack([income, debt]), {"verified_labels": verified}
        found = estimate_clean_ratio(X, truth ^ wrong, sensitive_features=old, **checked)
        held += found.interval[0] <= 1 - wrong.mean() <= found.interval[1]
    assert held >= 18


def test_a_hundred_checked_rows_mend_a_model_under_attack():
    """Where a tenth of the surest labels is flipped, and nothing else tells which."""
    data, test = make_synthetic(1500, seed=4), make_synthetic(5000, seed=5)
    noisy = flip_margin(data, 0.2)
    model = FairRobustClassifier(random_state=0)
    with warnings.catch_warnings(action="ignore", category=FairsieveWarning):  # of the gap that is left
        given = {"sensitive_features": data.groups, "verified_labels": check_some(data, 100, seed=1)}
        model.fit(data.features, noisy.labels, **given)
    assert model.estimate_.verified is not None
    plain = model.plain_model_.predict(test.features)
    assert model.score(test.features, test.labels) > np.mean(plain == test.labels) + 0.03
    rows = model.suspects()["row"]
    assert noisy.flipped[rows].mean() > 0.6


def test_rows_to_verify_next_need_an_estimate():
    model = FairRobustClassifier(clean_ratio=0.9, tolerance=0.3)
    model.fit(DATA.features, DATA.labels, sensitive_features=DATA.groups)
    refused("next_to_verify needs clean_ratio='auto'", model.next_to_verify, 3)


def test_weights_mend_a_choice_that_was_not_at_random():
    """Over three draws in which wrong labels were checked four times as often as right ones."""
    chance, true, off = np.where(NOISY.flipped, 0.4, 0.1), 1 - NOISY.flipped.mean(), []
    for seed in range(3):
        rows = np.flatnonzero(np.random.default_rng(seed).random(2000) < chance)
        verified = np.full(2000, None, dtype=object)
        verified[rows] = DATA.labels[rows]
        found = (estimate(NOISY.labels, verified, **each) for each in ({}, {"verified_weight": 1 / chance}))
        off.append([abs(one.clean_ratio - true) for one in found])
    biased, mended = np.mean(off, axis=0)
    assert mended < 0.5 * biased
    assert mended < 0.05


def test_bad_input_is_named():
    wrong = check_some(DATA, 20)
    for wrong[7], shown in (("maybe", "'maybe'"), ([0, 1], r"\[0, 1\]")):
        refused(rf"among the classes of y, \[0, 1\]; got {shown} in row 7", estimate, NOISY.labels, wrong)
    few = check_some(DATA, 20)
    with pytest.raises(InvalidInputError, match="sample_weight is 0 for all checked rows"):
        estimate(NOISY.labels, few, sample_weight=(few == None).astype(float))  # noqa: E711


def test_a_group_without_a_checked_row_is_a_warning():
    verified = check_some(DATA, 200)
    verified[DATA.groups == 1] = None
    told = "no checked row of the group 1: its rates are taken from the other"
    with pytest.warns(FairsieveWarning, match=told):
        found = estimate(NOISY.labels, verified)
    assert np.isfinite(found.true_class).all()


def test_equal_rows_checked_differently_are_a_warning():
    features = np.repeat(DATA.features[:1000], 2, axis=0)
    features[100:] = DATA.features[100:]
    labels = DATA.labels.copy()
    verified = np.full(2000, None, dtype=object)
    verified[100:150] = labels[100:150]
    verified[:2] = [0, 1]
    groups = DATA.groups.copy()
    groups[:2] = 0
    samples = Samples(features, labels, groups)
    with pytest.warns(FairsieveWarning, match="verified_labels contradict each other: 2 of 52 checked rows"):
        estimate(labels, verified, samples)


def problem(seed, rows, classes=2, groups=2, checked=None):
    """An estimate by which each label is wrong with a chance of its own."""
    rng = np.random.default_rng(seed)
    labels = np.append(np.arange(classes), rng.integers(0, classes, rows))[:rows]
    cells = Samples(np.zeros((rows, 1)), labels, rng.integers(0, groups, rows)).cells
    wrong = rng.random(rows)
    true_class = np.repeat(wrong[:, None] / max(cells.shape[0] - 1, 1), cells.shape[0], axis=1)
    true_class[np.arange(rows), cells.label_codes] = 1 - wrong
    nothing = np.zeros(cells.shape)
    known = 0.9, (0.8, 1.0), nothing, nothing, False, True
    return CleanRatioEstimate(*known, true_class, cells, verified_codes=checked)


@settings(max_examples=50, deadline=None)
@given(seed=st.integers(0, 10_000), rows=st.integers(2, 60), share=st.floats(0.01, 1.0))
def test_the_rows_are_open_and_differ_and_their_weights_have_mean_one(seed, rows, share):
    rng = np.random.default_rng(seed)
    checked = np.where(rng.random(rows) < 0.7, -1, 0)
    checked[rng.integers(rows)] = -1
    n = max(1, int(share * (checked < 0).sum()))
    chosen, weights = problem(seed, rows, checked=checked).next_to_verify(n, seed)
    assert len(set(chosen.tolist())) == len(chosen) == n
    assert (checked[chosen] < 0).all()
    assert (weights > 0).all()
    assert weights.mean() == pytest.approx(1.0)
    if n == (checked < 0).sum():
        assert weights == pytest.approx(np.ones(n))  # everybody


def test_every_row_is_chosen_as_often_as_its_weight_says():
    found = problem(0, 40, checked=np.where(np.arange(40) > 1, -1, 0))
    open_, doubt = np.arange(40) > 1, found.wrong * (1 - found.wrong)
    share = open_ * (0.75 / open_.sum() + 0.25 * doubt / doubt[open_].sum())
    times, draws, sums = np.zeros(40), 2000, []
    for seed in range(draws):
        rows, weights = found.next_to_verify(8, seed)
        times[rows] += 1
        sums.append(np.average(found.wrong[rows], weights=weights))
    assert times / draws == pytest.approx(8 * share, abs=0.04)
    assert np.mean(sums) == pytest.approx(found.wrong[open_].mean(), abs=0.03)


def test_the_choice_is_spread_over_the_cells():
    """Each cell has its share of the rows, give or take one."""
    found = problem(1, 2000, 3, 2)
    even = replace(found, true_class=np.eye(3)[found.cells.label_codes])
    rows, _ = even.next_to_verify(200)
    counts = np.bincount(found.cells.codes[rows], minlength=6)
    assert np.abs(counts - found.cells.counts.reshape(-1) / 10).max() <= 1


@pytest.mark.parametrize(("n", "seed", "message"), [
    (2.5, 0, "n must be a whole number"),
    (41, 0, "n must be at most 40, the rows that nobody checked; got 41"),
    (3, -1, "seed must be a whole number"),
])  # fmt: skip
def test_a_choice_that_cannot_be_made_is_named(n, seed, message):
    refused(message, problem(0, 40).next_to_verify, n, seed)
