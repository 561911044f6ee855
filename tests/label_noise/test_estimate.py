"""The clean ratio found from the data, and training by what was found."""

import warnings

import numpy as np
import pytest
from scipy.special import expit, logit
from tests.support.refusals import refused

from fairsieve import FairRobustClassifier, Samples, estimate_clean_ratio
from fairsieve.data import flip_group_targeted, flip_margin, flip_uniform, make_synthetic
from fairsieve.errors import FairnessWarning, FairsieveWarning
from fairsieve.label_noise.estimate import _judge
from fairsieve.label_noise.explanations import RandomFlips, _bend
from fairsieve.label_noise.flip_model import FlipModel, Observed, fit_flips, fit_plain

DATA = make_synthetic(4000, seed=1)


def estimate(labels, data=DATA, **options):
    options = {"sensitive_features": data.groups, "random_state": 0} | options
    return estimate_clean_ratio(data.features, labels, **options)


@pytest.fixture(scope="module")
def random():
    return flip_uniform(DATA, 0.2, seed=0), estimate(flip_uniform(DATA, 0.2, seed=0).labels)


def test_random_flips(random):
    noisy, found = random
    assert not found.aimed
    assert found.clean_ratio == pytest.approx(0.8, abs=0.06)
    assert found.interval[0] <= found.clean_ratio <= found.interval[1]
    assert found.noise.shape == found.flip_rates.shape == DATA.cells.shape
    assert found.wrong[noisy.flipped].mean() > 2 * found.wrong[~noisy.flipped].mean()


@pytest.mark.parametrize("rates", [(0.0, 0.3), (0.1, 0.3)])
def test_the_rates_of_two_groups_are_told_apart(rates):
    data = make_synthetic(6000, seed=1)
    found = estimate(flip_uniform(data, np.tile(rates, (2, 1)), seed=1).labels, data)
    assert found.flip_rates.mean(axis=0) == pytest.approx(np.array(rates), abs=0.06)
    assert found.true_class.sum(axis=1) == pytest.approx(np.ones(6000))


def test_aimed_flips():
    noisy = flip_margin(DATA, 0.1)
    found = estimate(noisy.labels)
    assert found.aimed
    assert found.clean_ratio == pytest.approx(0.9, abs=0.03)
    assert found.wrong[noisy.flipped].mean() > 0.8
    assert found.wrong[~noisy.flipped].mean() < 0.1
    assert estimate(flip_group_targeted(DATA, 0.1).labels).aimed


def test_names_of_classes_and_groups_do_not_matter(random):
    noisy, found = random
    names = np.array(["no", "yes"])
    again = estimate(names[noisy.labels], sensitive_features=np.array(["a", "b"])[DATA.groups])
    assert again.clean_ratio == found.clean_ratio
    assert again.wrong == pytest.approx(found.wrong)
    assert str(again.credible) == str(found.credible)


@pytest.mark.parametrize("n", [2, 3, 10])
def test_a_handful_of_samples(n):
    rng = np.random.default_rng(n)
    labels = np.arange(n) % 2
    found = estimate_clean_ratio(rng.normal(size=(n, 2)), labels, random_state=0)
    assert 0.5 <= found.clean_ratio <= 1
    assert np.isfinite(found.true_class).all()


def test_separable_and_constant_features():
    x = np.repeat([-1.0, 1.0], 50)
    found = estimate_clean_ratio(np.column_stack([x, np.ones(100)]), (x > 0).astype(int))
    assert found.clean_ratio > 0.9
    constant = estimate_clean_ratio(np.ones((60, 1)), np.arange(60) % 2)
    assert np.isfinite(constant.true_class).all()


def test_many_small_groups_are_looked_at_together():
    groups = np.arange(4000) // 2
    verified = [label if row < 200 else None for row, label in enumerate(DATA.labels)]
    for options in ({}, {"verified_labels": verified}):
        with warnings.catch_warnings(
            action="ignore", category=FairsieveWarning
        ):  # groups without a checked row
            found = estimate(flip_uniform(DATA, 0.2, seed=0).labels, sensitive_features=groups, **options)
        assert found.flip_rates.shape == found.noise.shape == found.cells.shape == (2, 2000)
        assert found.interval[0] <= 0.8 <= found.interval[1]


def test_bad_input_is_named():
    refused("y must have two or more classes", estimate_clean_ratio, np.ones((4, 1)), [1, 1, 1, 1])
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        estimate_clean_ratio(np.ones((4, 1)), [1, 0])


def loans(n=6000, seed=0):
    """A loan table where age matters and is the sensitive column, left out of the features."""
    rng = np.random.default_rng(seed)
    age, income, debt = rng.uniform(18, 90, n), rng.normal(size=n), rng.normal(size=n)
    logit = 1.5 * income - debt - 2.5 * (age > 65) + 0.8 * (age < 30) + 0.8
    repaid = (rng.random(n) < 1 / (1 + np.exp(-logit))).astype(np.int64)
    return Samples(np.column_stack([income, debt]), repaid, np.digitize(age, [30, 65]))


def exclusive_or(n=6000, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, size=(n, 2))
    return Samples(X, ((X[:, 0] > 0) ^ (X[:, 1] > 0)).astype(np.int64), rng.integers(0, 2, n))


def pure_noise(n=4000, seed=0):
    rng = np.random.default_rng(seed)
    return Samples(rng.normal(size=(n, 3)), rng.integers(0, 2, n), rng.integers(0, 2, n))


def by_weak_annotators(data, seed=0):
    """Labels by somebody who looks at one column and sees the truth half of the time."""
    guess = (data.features[:, 0] > 0).astype(np.int64)
    return np.where(np.random.default_rng(seed).random(len(data)) < 0.5, guess, data.labels)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("table", [loans, exclusive_or])
def test_a_table_without_wrong_labels_has_no_suspects(table, seed):
    found = estimate(table(seed=seed).labels, table(seed=seed), random_state=seed)
    assert found.credible
    assert found.clean_ratio == 1.0
    assert found.interval[0] > 0.85
    assert len(found.believed) == 6000
    assert "no wrong labels were found" in str(found.credible)


def test_wrong_labels_behind_a_bent_boundary_are_found():
    data = exclusive_or()
    noisy = flip_uniform(data, 0.1, seed=5)
    found = estimate(noisy.labels, data)
    suspects = np.setdiff1d(np.arange(len(data)), found.believed)
    assert found.credible
    assert found.predictor.name != "linear"
    assert noisy.flipped[suspects].mean() > 0.9
    assert noisy.flipped[suspects].sum() > 0.8 * noisy.flipped.sum()


@pytest.mark.parametrize("seed", range(3))
def test_labels_that_are_pure_noise_are_inconclusive(seed):
    found = estimate(pure_noise(seed=seed).labels, pure_noise(seed=seed), random_state=seed)
    assert not found.credible
    assert "the features say too little about the labels" in str(found.credible)
    assert found.interval[0] < 0.8
    assert len(found.believed) == 4000
    assert np.isnan(found.noise).all()
    assert "only where that predicts others better" in found.training


@pytest.mark.parametrize("seed", range(3))
def test_labels_by_weak_annotators_are_not_called_wrong_falsely(seed):
    data = loans(seed=seed)
    labels = by_weak_annotators(data, seed + 100)
    found = estimate(labels, data, random_state=seed)
    suspects = np.setdiff1d(np.arange(len(data)), found.believed)
    assert len(suspects) < 0.01 * len(data) or (labels != data.labels)[suspects].mean() > 0.5
    if found.credible and found.clean_ratio == 1.0:
        told = "labels wrong systematically, by a feature or for one group, do not show"
        assert told in str(found.credible)


def test_a_real_difference_between_groups_is_not_noise():
    rng = np.random.default_rng(1)
    X, z = rng.normal(size=(6000, 2)), rng.integers(0, 2, 6000)
    logit = np.where(z == 1, 2.5, -1.0) * X[:, 0] + X[:, 1]
    labels = (rng.random(6000) < 1 / (1 + np.exp(-logit))).astype(int)
    found = estimate_clean_ratio(X, labels, sensitive_features=z, random_state=0)
    assert len(found.believed) >= 0.99 * 6000


@pytest.mark.filterwarnings("ignore::fairsieve.errors.FairnessWarning")  # neither model is better
def test_an_inconclusive_estimate_is_a_warning_and_no_suspects():
    data = pure_noise(400)
    model = FairRobustClassifier(random_state=0)
    with pytest.warns(FairsieveWarning, match="which labels are wrong cannot be known: the features say too"):
        model.fit(data.features, data.labels, sensitive_features=data.groups)
    assert len(model.suspects()["row"]) == 0


def test_suspects_are_ranked_by_the_chance_that_they_are_wrong(random):
    noisy, _ = random
    model = FairRobustClassifier(random_state=0)
    with warnings.catch_warnings(action="ignore", category=FairnessWarning):
        model.fit(DATA.features, noisy.labels, sensitive_features=DATA.groups)
    rows = model.suspects()["row"]
    assert len(rows) > 50
    assert (np.diff(model.estimate_.wrong[rows]) <= 0).all()
    assert noisy.flipped[rows[:50]].mean() > 0.8


def test_rates_come_out_right_where_each_class_becomes_sure_at_its_own_pace():
    """The truth falls off faster on one side than on the other, as on Adult; a tenth of the labels are wrong."""
    found = []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        scores = rng.normal(-1.0, 1.5, size=(10_000, 1))
        truth = rng.random(10_000) < expit(scores[:, 0] * np.where(scores[:, 0] > 0, 0.7, 2.5))
        labels = np.where(rng.random(10_000) < 0.1, ~truth, truth).astype(int)
        rates = []
        for columns in (scores, _bend(scores)):
            design = np.column_stack([columns, np.ones(len(columns))])
            seen = Observed(design, labels, np.zeros(10_000, int), 2, 1, np.ones(10_000))
            rates.append(fit_flips(seen, fit_plain(seen), np.zeros((1, 2), int)).flip_rates[0, 0])
        found.append(rates)
    straight, bent = np.mean(found, axis=0)
    assert bent == pytest.approx(0.1, abs=0.009)
    assert abs(bent - 0.1) < abs(straight - 0.1)


@pytest.mark.parametrize("disagree", [True, False])
@pytest.mark.parametrize("unsure", [True, False])
@pytest.mark.parametrize("most", [0.01, 0.3, 0.9])
@pytest.mark.parametrize("rate", [None, 0.1, 0.6])
def test_every_judgement_has_a_sentence(disagree, unsure, most, rate):
    zeros = np.zeros((1, 2))
    model = None if rate is None else FlipModel(zeros[:, :1], zeros + logit(rate), zeros)
    told = _judge(RandomFlips(np.zeros((2, 1)), most, model, share=0.05, error=0.01, unsure=unsure), disagree)
    assert str(told).endswith(".")
    assert bool(told) == (told.kind in ("none_found", "at_random"))
