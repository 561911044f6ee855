"""Labels that somebody checked: what is learnt from them, and bad input."""

import warnings

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from tests.support.annotators import flip_weak_annotator

from fairsieve import FairRobustClassifier, Samples, estimate_clean_ratio
from fairsieve.data import flip_margin, flip_uniform, make_synthetic
from fairsieve.errors import FairsieveWarning, InvalidInputError
from fairsieve.label_noise.verified import check_verified
from fairsieve.metrics import accuracy_from_table, confusion_table, disparity_from_table

DATA = make_synthetic(2000, seed=0)
NOISY = flip_weak_annotator(DATA, {0: 0.25, 1: 0.1}, seed=0)


def checked_rows(count, seed=0, data=DATA, missing=None):
    verified = np.full(len(data), missing, dtype=object)
    rows = np.random.default_rng(seed).permutation(len(data))[:count]
    verified[rows] = data.labels[rows]
    return verified


def estimate(labels, verified, data=DATA, **options):
    return estimate_clean_ratio(
        data.features,
        labels,
        sensitive_features=data.groups,
        verified_labels=verified,
        random_state=0,
        **options,
    )


@pytest.fixture(scope="module")
def drawn():
    """Estimates from four draws of 400 checked rows."""
    return [estimate(NOISY.labels, checked_rows(400, seed=seed)) for seed in range(4)]


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
    few, rates = estimate(NOISY.labels, checked_rows(40)).verified, drawn[0].verified
    assert (few.high - few.low).mean() > (rates.high - rates.low).mean()


def test_intervals_of_the_flip_rates_hold_them_about_as_often_as_they_say():
    """Over draws of the data, of the wrong labels and of the checked rows."""
    held = []
    for seed, by_people in np.ndindex(8, 2):
        data = make_synthetic(2000, seed=seed)
        noisy = (
            flip_weak_annotator(data, {0: 0.2, 1: 0.08}, seed=seed)
            if by_people
            else flip_uniform(data, 0.2, seed=seed)
        )
        rates = estimate(noisy.labels, checked_rows(400, seed, data), data).verified
        cells = data.cells
        for c, z in np.ndindex(2, 2):
            rate = noisy.flipped[(cells.label_codes == c) & (cells.group_codes == z)].mean()
            held.append(rates.low[c, z] <= rate <= rates.high[c, z])
            assert rates.high[c, z] - rates.low[c, z] < 0.5
    assert np.mean(held) >= 0.85  # of 64; the four of a draw stand or fall together


def test_checked_labels_are_certain_and_all_of_them_are_the_truth():
    verified = checked_rows(100)
    found = estimate(NOISY.labels, verified)
    rows = np.flatnonzero(verified != None)  # noqa: E711
    assert found.true_class[rows, DATA.labels[rows]].tolist() == [1.0] * 100
    everything = estimate(NOISY.labels, DATA.labels)
    assert everything.true_class.argmax(axis=1).tolist() == DATA.labels.tolist()
    assert everything.clean_ratio == pytest.approx(1 - NOISY.flipped.mean())
    assert everything.interval == pytest.approx((1 - NOISY.flipped.mean(),) * 2)
    assert everything.verified.low == pytest.approx(everything.verified.high, abs=1e-4)


@pytest.mark.parametrize(
    "form",
    [
        lambda v: v,
        lambda v: pd.Series(v, dtype="Int64"),
        lambda v: np.array([np.nan if x is None else x for x in v], float),
        lambda v: np.ma.masked_array([x or 0 for x in v], [x is None for x in v]),
        lambda v: [pd.NA if x is None else x for x in v],
    ],
)
def test_missing_is_none_nan_na_or_masked(form):
    verified = checked_rows(50)
    cells, rows = DATA.cells, np.arange(2000)
    wanted = [-1 if value is None else value for value in verified]
    assert check_verified(form(verified), cells, rows, 2000).tolist() == wanted


def test_texts_and_three_classes():
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 3, 900)
    centres = np.array([[0.0, 2.0], [2.0, -1.0], [-2.0, -1.0]])
    names = np.array(["a", "b", "c"])
    data = Samples(rng.normal(size=(900, 2)) + centres[labels], names[labels], rng.choice(["x", "y"], 900))
    noisy = flip_uniform(data, 0.3, seed=1)
    found = estimate(noisy.labels, checked_rows(200, data=data), data)
    assert found.true_class.sum(axis=1) == pytest.approx(np.ones(900))
    guessed = found.true_class.argmax(axis=1) == labels
    assert guessed.mean() > 1 - noisy.flipped.mean() + 0.08
    renamed = Samples(data.features, data.labels, np.where(data.groups == "x", 1, 2))
    again = estimate(noisy.labels, checked_rows(200, data=data), renamed)
    assert again.true_class == pytest.approx(found.true_class)


@pytest.mark.parametrize(("classes", "groups", "count"), [(2, 1, 12), (3, 3, 40), (4, 2, 60)])
def test_chances_are_probabilities_whatever_is_checked(classes, groups, count):
    rng = np.random.default_rng(classes)
    X, labels, z = rng.normal(size=(80, 2)), np.arange(80) % classes, rng.integers(0, groups, 80)
    verified = np.full(80, None, dtype=object)
    verified[rng.permutation(80)[:count]] = rng.integers(0, classes, count)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FairsieveWarning)
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
        found = estimate_clean_ratio(
            np.column_stack([income, debt]), truth ^ wrong, sensitive_features=old, verified_labels=verified
        )
        held += found.interval[0] <= 1 - wrong.mean() <= found.interval[1]
    assert held >= 18


def scores_of(model, test):
    table, _, _ = confusion_table(test.labels, model.predict(test.features), test.groups)
    return float(accuracy_from_table(table)), float(disparity_from_table(table, "equalized_odds"))


def test_a_hundred_checked_rows_mend_a_model_under_attack():
    """Where a tenth of the surest labels is flipped, and nothing else tells which."""
    data, test = make_synthetic(1500, seed=4), make_synthetic(5000, seed=5)
    noisy = flip_margin(data, 0.2)
    model = FairRobustClassifier(random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FairsieveWarning)  # of the gap that is left
        model.fit(
            data.features,
            noisy.labels,
            sensitive_features=data.groups,
            verified_labels=checked_rows(100, 1, data),
        )
    assert model.estimate_.verified is not None
    plain = model.plain_model_.predict(test.features)
    accuracy, _ = scores_of(model, test)
    assert accuracy > np.mean(plain == test.labels) + 0.03
    rows = model.suspects()["row"]
    assert noisy.flipped[rows].mean() > 0.6


def test_it_works_in_pipelines_by_metadata_routing():
    with sklearn.config_context(enable_metadata_routing=True), warnings.catch_warnings():
        warnings.simplefilter("ignore", FairsieveWarning)
        model = FairRobustClassifier(random_state=0).set_fit_request(
            sensitive_features=True, verified_labels=True
        )
        pipeline = make_pipeline(StandardScaler(), model)
        pipeline.fit(
            DATA.features, NOISY.labels, sensitive_features=DATA.groups, verified_labels=checked_rows(60)
        )
    assert pipeline[-1].estimate_.verified.checked.sum() == 60


def test_rows_to_verify_next():
    found = estimate(NOISY.labels, checked_rows(100))
    rows, weights = found.next_to_verify(300, seed=1)
    assert len(set(rows.tolist())) == 300
    assert (found.verified_codes[rows] < 0).all()
    assert weights.mean() == pytest.approx(1.0)
    assert found.wrong[rows].mean() > found.wrong.mean()  # where it is uncertain
    weighted = np.average(NOISY.flipped[rows], weights=weights)
    assert abs(weighted - NOISY.flipped.mean()) < 0.1
    with pytest.raises(
        InvalidInputError, match="n must be at most 1900, the rows that nobody checked; got 1901"
    ):
        found.next_to_verify(1901)
    with pytest.raises(InvalidInputError, match="next_to_verify needs clean_ratio='auto'"):
        FairRobustClassifier(clean_ratio=0.9).fit(
            DATA.features, DATA.labels, sensitive_features=DATA.groups
        ).next_to_verify(3)


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
    with pytest.raises(
        InvalidInputError, match=r"verified_labels must have one value per sample, the shape \(2000,\)"
    ):
        estimate(NOISY.labels, [1, 0])
    with pytest.raises(InvalidInputError, match="all 2000 are missing: leave it out"):
        estimate(NOISY.labels, [None] * 2000)
    wrong = checked_rows(20)
    wrong[7] = "maybe"
    with pytest.raises(InvalidInputError, match=r"among the classes of y, \[0, 1\]; got 'maybe' in row 7"):
        estimate(NOISY.labels, wrong)
    wrong[7] = [0, 1]
    with pytest.raises(InvalidInputError, match=r"among the classes of y, \[0, 1\]; got \[0, 1\] in row 7"):
        estimate(NOISY.labels, wrong)
    few = checked_rows(20)
    with pytest.raises(InvalidInputError, match="sample_weight is 0 for all checked rows"):
        estimate(NOISY.labels, few, sample_weight=(few == None).astype(float))  # noqa: E711
    with pytest.raises(InvalidInputError, match="verified_weight belongs to verified_labels"):
        estimate(NOISY.labels, None, verified_weight=np.ones(2000))
    with pytest.raises(
        InvalidInputError, match=r"verified_labels say how many labels are right; got clean_ratio=0\.9"
    ):
        FairRobustClassifier(clean_ratio=0.9).fit(
            DATA.features, DATA.labels, sensitive_features=DATA.groups, verified_labels=DATA.labels
        )


def test_too_few_checked_rows_are_a_warning_and_only_corrected():
    verified = np.full(2000, None, dtype=object)
    verified[NOISY.flipped.argmax()] = DATA.labels[NOISY.flipped.argmax()]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = estimate(NOISY.labels, verified)
    assert any("has 1 checked row, which is too few to learn from" in str(each.message) for each in caught)
    assert found.verified is None
    assert found.wrong[NOISY.flipped.argmax()] == 1.0


def test_a_group_without_a_checked_row_is_a_warning():
    verified = checked_rows(200)
    verified[DATA.groups == 1] = None
    with pytest.warns(
        FairsieveWarning, match="no checked row of the group 1: its rates are taken from the other"
    ):
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
    with pytest.warns(FairsieveWarning, match="verified_labels contradict each other: 2 of 52 checked rows"):
        estimate_clean_ratio(
            features, labels, sensitive_features=groups, verified_labels=verified, random_state=0
        )
