"""What the estimate claims is true: over tables, kinds of wrong labels and draws."""

import numpy as np
import pytest
from tests.support.annotators import flip_by_feature, flip_near_boundary, flip_weak_annotator

from fairsieve import Samples, estimate_clean_ratio
from fairsieve.data import flip_group_targeted, flip_margin, flip_uniform, make_synthetic


def loans(seed):
    """The chance to repay follows income, debt and the group."""
    rng = np.random.default_rng(seed)
    income, debt, old = rng.normal(size=2000), rng.normal(size=2000), rng.random(2000) < 0.3
    logit = 1.5 * income - debt - 2 * old + 0.8
    return Samples(np.column_stack([income, debt]), rng.random(2000) < 1 / (1 + np.exp(-logit)), old)


def exclusive_or(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(2000, 3))
    return Samples(X, (X[:, 0] * X[:, 1] > 0).astype(int), rng.integers(0, 2, 2000))


TABLES = [lambda seed: make_synthetic(2000, seed=seed), loans, exclusive_or]


def flip_some(data, where, rate, seed):
    """Flip labels at random in a part of the (class, group) table."""
    rates = np.zeros(data.cells.shape)
    rates[where] = rate
    return flip_uniform(data, rates, seed=seed)


AT_RANDOM = {
    "none": lambda data, seed: flip_uniform(data, 0.0, seed=seed),
    "5 %": lambda data, seed: flip_uniform(data, 0.05, seed=seed),
    "20 %": lambda data, seed: flip_uniform(data, 0.2, seed=seed),
    "one group": lambda data, seed: flip_some(data, np.s_[:, seed % 2], 0.25, seed),
    "one cell": lambda data, seed: flip_some(data, np.s_[seed % 2, 1 - seed // 2 % 2], 0.35, seed),
}
SYSTEMATICALLY = {
    "largest margins": lambda data, seed: flip_margin(data, 0.1),
    "largest margins of a group": lambda data, seed: flip_group_targeted(data, 0.1),
    "by a feature": lambda data, seed: flip_by_feature(data, 0.1, seed=seed),
    "near the boundary": lambda data, seed: flip_near_boundary(data, 0.1, seed=seed),
    "by a weak annotator": lambda data, seed: flip_weak_annotator(data, 0.08, seed=seed, columns=1),
}


@pytest.fixture(scope="module")
def runs():
    """For each kind: (the share of right labels, the estimate, who was flipped), over tables and draws."""
    found = {}
    for name, flip in (AT_RANDOM | SYSTEMATICALLY).items():
        found[name] = []
        for seed in (3, 4) if name in AT_RANDOM else (3,):
            for table in TABLES:
                data = table(seed)
                noisy = flip(data, seed)
                given = {"sensitive_features": data.groups, "random_state": seed}
                estimate = estimate_clean_ratio(data.features, noisy.labels, **given)
                found[name].append((1 - noisy.flipped.mean(), estimate, noisy.flipped))
    return found


def test_intervals_of_labels_wrong_at_random_contain_the_truth(runs):
    told = [run for name in AT_RANDOM for run in runs[name] if run[1].credible]
    inside = [found.interval[0] <= right <= found.interval[1] for right, found, _ in told]
    assert len(told) > 20
    assert np.mean(inside) >= 0.95


def test_no_more_labels_are_right_than_the_upper_end_says_however_they_went_wrong(runs):
    told = [run for each in runs.values() for run in each if run[1].credible]
    assert len(told) > 30
    assert np.mean([right <= found.interval[1] for right, found, _ in told]) >= 0.95


def test_the_words_never_claim_that_other_labels_are_right(runs):
    for each in runs.values():
        for _, found, _ in each:
            assert found.covers in ("labels wrong at random", "labels wrong on purpose")
            if found.credible:
                assert "do not show and would come on top" in str(found.credible)
            else:
                assert len(found.believed) == len(found.wrong)


def test_suspects_are_mostly_wrong_where_labels_are_wrong_at_random(runs):
    rows = [(found.wrong > 0.5, flipped) for name in AT_RANDOM for _, found, flipped in runs[name]]
    suspects, flipped = (np.concatenate(each) for each in zip(*rows, strict=True))
    assert suspects.sum() > 1000
    assert flipped[suspects].mean() > 0.7
    clean = [found.wrong > 0.5 for _, found, _ in runs["none"]]
    assert np.concatenate(clean).mean() <= 0.01


@pytest.mark.parametrize("columns", [1, 2, 3])
def test_what_may_be_wrong_without_showing_is_no_less_where_people_are_alike(columns):
    """Many equal rows are as sure of a class as each other, whatever their labels: none of them come first."""
    held = 0
    for seed in range(6):
        rng = np.random.default_rng(seed)
        X, groups = rng.integers(0, 2, (3000, columns)), rng.integers(0, 2, 3000)
        wrong = rng.random(3000) < 0.15
        labels = (X[:, 0] == 1) ^ (rng.random(3000) < 0.03) ^ wrong
        found = estimate_clean_ratio(X, labels, sensitive_features=groups)
        held += found.interval[0] <= 1 - wrong.mean() <= found.interval[1]
    assert held >= 5


def passengers(seed):
    """Whether somebody of a class, sex and age was saved: a handful of kinds of people, and no straight line."""
    rng = np.random.default_rng(seed)
    place = rng.choice(4, 2200, p=[0.4, 0.15, 0.13, 0.32])
    woman = (rng.random(2200) < np.array([0.03, 0.45, 0.37, 0.28])[place]).astype(int)
    chances = np.array([[0.22, 0.34, 0.14, 0.17], [0.87, 0.97, 0.88, 0.46]])[woman, place]
    return Samples(np.column_stack([place, rng.random(2200) < 0.05]), rng.random(2200) < chances, woman)


def households(seed):
    """Who is a woman, which being head of a household and being married tell only together."""
    rng = np.random.default_rng(seed)
    head, married, others = rng.random(4000) < 0.5, rng.random(4000) < 0.6, rng.normal(size=(2, 4000))
    chances = np.where(married, np.where(head, 0.97, 0.06), np.where(head, 0.75, 0.8))
    labels = rng.random(4000) < chances
    return Samples(np.column_stack([head, married, *others]), labels, rng.integers(0, 2, 4000))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("table", [passengers, households])
def test_right_labels_of_a_few_kinds_or_by_an_interplay_are_not_called_wrong(table, seed):
    data = table(seed)
    found = estimate_clean_ratio(data.features, data.labels, sensitive_features=data.groups, random_state=0)
    assert len(found.believed) == len(data)


def test_most_of_a_rare_label_is_not_called_wrong():
    """Half of those who have it were flipped, and which half nobody can know."""
    data = make_synthetic(6000, seed=1)
    data = data.take(np.flatnonzero((data.labels == 0) | (np.arange(6000) % 100 < 20)))
    noisy = flip_margin(data, 0.1).labels
    found = estimate_clean_ratio(data.features, noisy, sensitive_features=data.groups, random_state=0)
    assert len(found.believed) == len(data)
    assert "so many (58 % of those labelled 1) that they may be the truth" in str(found.credible)
