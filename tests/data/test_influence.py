"""Influence-guided flips: within budget, deterministic, stronger than flips by margin."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from fairsieve import InvalidInputError, Samples
from fairsieve.data import make_synthetic, synthetic_splits
from fairsieve.data.corruption.flips import flip_group_targeted, flip_margin
from fairsieve.data.corruption.influence import _influence_of_flips, flip_influence


@pytest.fixture(scope="module")
def clean():
    return make_synthetic(600, seed=0)


def accuracy_after(labels, splits):
    model = LogisticRegression(max_iter=1000).fit(splits.train.features, labels)
    return model.score(splits.test.features, splits.test.labels)


@pytest.mark.parametrize("rate", [0.05, 0.1, 0.2])
def test_it_is_stronger_than_flips_by_margin(rate):
    after = {"influence": [], "margin": []}
    for seed in range(4):
        splits = synthetic_splits(seed)
        after["influence"].append(accuracy_after(flip_influence(splits.train, rate).labels, splits))
        after["margin"].append(accuracy_after(flip_margin(splits.train, rate).labels, splits))
    assert np.mean(after["influence"]) < np.mean(after["margin"])
    if rate == 0.1:
        assert np.mean(after["influence"]) < np.mean(after["margin"]) - 0.05


def test_a_validation_set_is_where_the_damage_is_done():
    splits = synthetic_splits(1)
    labels = flip_influence(splits.train, 0.1, validation=splits.validation).labels
    assert accuracy_after(labels, splits) < accuracy_after(splits.train.labels, splits) - 0.05


@pytest.mark.parametrize("rate", [0.0, 0.001, 0.1, 0.333, 1.0])
@pytest.mark.parametrize("rounds", [1, 7])
def test_the_budget_is_spent_and_told(clean, rate, rounds):
    before = clean.labels.copy()
    noisy = flip_influence(clean, rate, rounds=rounds)
    assert noisy.flipped.sum() == int(600 * rate)
    assert ((noisy.labels != clean.labels) == noisy.flipped).all()
    assert (clean.labels == before).all()
    assert (flip_influence(clean, rate, rounds=rounds).flipped == noisy.flipped).all()


def test_only_candidates_are_flipped(clean):
    among = clean.groups == 1
    assert not flip_influence(clean, 0.1, among).flipped[~among].any()
    assert not flip_influence(clean, 0.1, among=among).flipped[~among].any()


def test_it_can_be_aimed_at_a_group(clean):
    noisy = flip_group_targeted(clean, 0.1, attack=flip_influence)
    assert noisy.flipped.sum() == 60
    assert len(set(clean.groups[noisy.flipped])) == 1


def test_strings(clean):
    named = Samples(clean.features, np.array(["no", "yes"])[clean.labels], clean.groups)
    noisy = flip_influence(named, 0.1)
    assert set(noisy.labels) == {"no", "yes"}
    assert (noisy.flipped == flip_influence(clean, 0.1).flipped).all()


def test_the_influence_is_the_first_order_effect(clean):
    """Against refitting with the flip in the data, at a weight too small to bend."""
    target, sharpness, weight = make_synthetic(300, seed=1), 3.0, 1e-3
    influence = _influence_of_flips(clean.features, clean.labels, target, sharpness)

    def loss(features, labels, weights):
        model = LogisticRegression(max_iter=10_000, tol=1e-12).fit(features, labels, sample_weight=weights)
        margins = model.decision_function(target.features) * (2 * target.labels - 1)
        return (1 / (1 + np.exp(sharpness * margins))).mean()

    features = clean.features.astype(np.float64)
    plain = loss(features, clean.labels, np.ones(600))
    for i in (0, 10, 200):
        weights = np.append(np.ones(600), weight)
        weights[i] -= weight
        flipped = loss(
            np.vstack([features, features[i]]), np.append(clean.labels, 1 - clean.labels[i]), weights
        )
        assert (flipped - plain) / weight == pytest.approx(influence[i], rel=0.02, abs=1e-6)


def test_what_it_cannot_do_is_said(clean):
    three = Samples(clean.features, np.arange(600) % 3, clean.groups)
    with pytest.raises(
        InvalidInputError, match=r"samples must have two classes, both in the data.*use flip_margin"
    ):
        flip_influence(three, 0.1)
    one = clean.take(np.flatnonzero(clean.labels == 1))
    with pytest.raises(InvalidInputError, match=r"got 1 of the classes \[0, 1\]"):
        flip_influence(one, 0.1)
    with pytest.raises(InvalidInputError, match=r"validation must have samples of the classes \[0, 1\]"):
        flip_influence(clean, 0.1, validation=three)
    with pytest.raises(InvalidInputError, match="rounds must be a whole number of at least 1; got 0"):
        flip_influence(clean, 0.1, rounds=0)
    with pytest.raises(InvalidInputError, match="more flips than there are candidates"):
        flip_influence(clean, 0.5, among=np.zeros(600, bool))
