"""Wrong labels."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from tests.support.refusals import refused

from fairsieve import Samples
from fairsieve.data import (
    flip_greedily,
    flip_group_targeted,
    flip_margin,
    flip_uniform,
    make_synthetic,
    synthetic_splits,
)
from fairsieve.errors import InvalidInputError


@pytest.fixture(scope="module")
def clean():
    return make_synthetic(1000, seed=0)


@pytest.fixture(scope="module")
def many():
    rng = np.random.default_rng(0)
    features = rng.normal(size=(300, 2))
    labels = np.array(["a", "b", "c"])[np.digitize(features[:, 0], [-0.5, 0.5])]
    return Samples(features, labels, rng.choice(["x", "y", "z"], 300))


def test_margin_flips_the_surest_labels(clean):
    noisy = flip_margin(clean, 0.333)
    model = LogisticRegression(max_iter=1000).fit(clean.features, clean.labels)
    margin = model.decision_function(clean.features) * (2 * clean.labels - 1)
    assert margin[noisy.flipped].min() >= margin[~noisy.flipped].max()


def test_margin_flips_of_many_classes_go_to_the_least_likely(many):
    noisy = flip_margin(many, 0.1)
    model = LogisticRegression(max_iter=1000).fit(many.features, many.labels)
    probabilities = model.predict_proba(many.features)
    assert noisy.flipped.sum() == 30
    for i in np.flatnonzero(noisy.flipped):
        others = [k for k in range(3) if model.classes_[k] != many.labels[i]]
        assert noisy.labels[i] == model.classes_[min(others, key=lambda k: probabilities[i, k])]


@pytest.fixture(scope="module")
def tiny():
    return make_synthetic(60, seed=3), make_synthetic(400, seed=4)


def loss_after(samples, validation, labels):
    """What the attack raises, by training again."""
    model = LogisticRegression(max_iter=1000).fit(samples.features, labels)
    return log_loss(validation.labels, model.predict_proba(validation.features))


def test_the_greedy_attack_flips_what_training_again_says_is_worst(tiny):
    samples, validation = tiny
    (chosen,) = np.flatnonzero(flip_greedily(samples, 1 / 60, validation=validation).flipped)
    losses = []
    for row in range(60):
        labels = samples.labels.copy()
        labels[row] = 1 - labels[row]
        losses.append(loss_after(samples, validation, labels))
    assert losses[chosen] >= np.sort(losses)[-5]  # the score is of first order


@pytest.mark.parametrize("rate", [0.05, 0.1, 0.2])
def test_the_greedy_attack_is_stronger_than_flips_at_random(clean, rate):
    validation = make_synthetic(1000, seed=9)
    greedy = flip_greedily(clean, rate, validation=validation, rounds=20)
    assert greedy.flipped.sum() == round(1000 * rate)
    again = flip_greedily(clean, rate, validation=validation, rounds=20)
    assert (again.labels == greedy.labels).all()
    drawn = [flip_uniform(clean, rate, seed=seed).labels for seed in range(3)]
    random = max(loss_after(clean, validation, labels) for labels in drawn)
    assert loss_after(clean, validation, greedy.labels) > random


def test_the_greedy_attack_refuses_many_classes_and_no_rounds(many, clean):
    refused(r"samples must have two classes for this attack; got 3", flip_greedily, many, 0.1)
    refused("rounds must be", flip_greedily, clean, 0.1, rounds=0)
    assert not flip_greedily(clean, 0.0).flipped.any()


def test_the_worst_group_is_the_one_with_the_lowest_accuracy(clean):
    assert set(clean.groups[flip_group_targeted(clean, 0.1).flipped]) == {1}  # over half of group 0 otherwise

    def accuracy(group):
        labels = flip_group_targeted(clean, 0.05, group=group).labels
        model = LogisticRegression(max_iter=1000).fit(clean.features, labels)
        return model.score(clean.features, clean.labels)

    small = clean.cells.counts.sum(axis=0)[0]
    assert small > 100  # at 5 %, flips are under half of either group
    worst = min((0, 1), key=accuracy)
    assert set(clean.groups[flip_group_targeted(clean, 0.05).flipped]) == {worst}


def test_uniform_rates_per_cell():
    rates = np.array([[0.0, 0.1], [0.5, 1.0]])
    big = make_synthetic(20_000, seed=1)
    noisy = flip_uniform(big, rates, seed=0)
    for y in (0, 1):
        for z in (0, 1):
            inside = (big.labels == y) & (big.groups == z)
            assert noisy.flipped[inside].mean() == pytest.approx(rates[y, z], abs=0.05)


def test_uniform_flips_of_many_classes_go_anywhere_else(many):
    noisy = flip_uniform(many, 1.0, seed=0)
    assert noisy.flipped.all()
    for label in "abc":
        assert set(noisy.labels[many.labels == label]) == set("abc") - {label}


def test_inputs_stay(clean):
    before = clean.labels.copy()
    for each in (flip_margin(clean, 0.2), flip_group_targeted(clean, 0.1), flip_uniform(clean, 0.3, seed=0)):
        each.labels[:] = 9
    assert (clean.labels == before).all()


@pytest.mark.parametrize(("flip", "message"), [
    (lambda s: flip_margin(s, 0.5, among=s.groups == 0), "rate must not ask for more flips than there are"),
    (lambda s: flip_group_targeted(s, 0.1, group=0), "rate must leave under half of a group's labels"),
    (lambda s: flip_uniform(s, 2.0, seed=0), r"rates must lie in \[0, 1\]"),
    (lambda s: flip_uniform(s, [0.1, 0.2, 0.3], seed=0), r"the shape \(2, 2\); got \[0.1, 0.2, 0.3\]"),
    (lambda s: flip_uniform(s, {(5, 0): 0.1}, seed=0), "rates must name cells of classes"),
    (lambda s: flip_margin(s.take(s.labels == 1), 0.1), "two or more classes"),
])  # fmt: skip
def test_bad_input_is_named(clean, flip, message):
    refused(message, flip, clean)


@pytest.mark.parametrize("targeted", [False, True])
def test_the_authors_attack_is_a_regression_on_train_and_validation_without_the_group(targeted):
    parts = synthetic_splits(5)
    flip = flip_group_targeted if targeted else flip_margin
    found = flip(parts.train, 0.1, validation=parts.validation, sees_group=False)
    features = np.concatenate([parts.train.features, parts.validation.features])[:, :2]  # x₁ and x₂, not z
    labels = np.concatenate([parts.train.labels, parts.validation.labels])
    scores = LogisticRegression(max_iter=1000).fit(features, labels).decision_function(features[:2000])
    margins = np.where(parts.train.labels == 1, scores, -scores)
    if targeted:  # one group alone
        (group,) = set(parts.train.groups[found.flipped].tolist())
        margins[parts.train.groups != group] = -np.inf
    assert set(np.flatnonzero(found.flipped)) == set(np.argsort(-margins, kind="stable")[:200])


# ---- Noise

RATES = st.floats(0, 1)
SEEDS = st.integers(0, 2**32 - 1)


@st.composite
def samples(draw):
    """Two or three classes, each there at least twice, and three groups."""
    rng = np.random.default_rng(draw(SEEDS))
    classes = draw(st.integers(2, 3))
    n = draw(st.integers(2 * classes, 40))
    labels = np.concatenate([np.tile(np.arange(classes), 2), rng.integers(0, classes, n - 2 * classes)])
    features = rng.normal(size=(n, 2)) + labels[:, None]
    return Samples(features, np.array(["no", "so", "yes"])[labels], rng.integers(0, 3, n))


def check(clean, noisy):
    """What holds for every kind of flips."""
    assert ((noisy.labels != clean.labels) == noisy.flipped).all()
    assert set(noisy.labels) <= set(clean.cells.classes)
    assert noisy.labels.dtype == clean.labels.dtype


@given(samples(), RATES, SEEDS)
def test_random_flips_change_the_labels_of_their_mask(clean, rate, seed):
    """Random flips change the labels that the mask names, to other classes; the same seed, the same flips."""
    noisy = flip_uniform(clean, rate, seed=seed)
    check(clean, noisy)
    assert (flip_uniform(clean, rate, seed=seed).labels == noisy.labels).all()
    assert not flip_uniform(clean, 0.0, seed=seed).flipped.any()
    assert flip_uniform(clean, 1.0, seed=seed).flipped.all()


@given(samples(), RATES, RATES, SEEDS)
def test_a_higher_rate_keeps_the_random_flips_of_a_lower_one(clean, one, other, seed):
    """A higher rate of random flips keeps those of a lower one, for the same seed."""
    low, high = (flip_uniform(clean, rate, seed=seed).flipped for rate in sorted([one, other]))
    assert (low <= high).all()


@given(samples(), RATES, SEEDS, st.data())
def test_random_flips_in_a_cell_stay_in_it(clean, rate, seed, data):
    """Random flips in one cell are in that cell, and are those that the rate alone would make there."""
    label = data.draw(st.sampled_from(clean.cells.classes))
    group = data.draw(st.sampled_from(clean.cells.groups))
    inside = (clean.labels == label) & (clean.groups == group)
    noisy = flip_uniform(clean, {(label, group): rate}, seed=seed)
    check(clean, noisy)
    assert (noisy.flipped == flip_uniform(clean, rate, seed=seed).flipped & inside).all()
    table = np.zeros(clean.cells.shape)
    table[clean.cells.classes.index(label), clean.cells.groups.index(group)] = rate
    assert (flip_uniform(clean, table, seed=seed).labels == noisy.labels).all()


@given(samples(), RATES)
def test_flips_by_margin_are_as_many_as_the_rate_says(clean, rate):
    """Flips by margin are as many as the rate says, and change the labels that the mask names."""
    noisy = flip_margin(clean, rate)
    check(clean, noisy)
    assert noisy.flipped.sum() == math.floor(rate * len(clean) + 1e-9)


@given(samples(), RATES, RATES)
def test_a_higher_rate_keeps_the_flips_by_margin_of_a_lower_one(clean, one, other):
    """A higher rate of flips by margin keeps those of a lower one, to the same labels."""
    low, high = (flip_margin(clean, rate) for rate in sorted([one, other]))
    assert (low.flipped <= high.flipped).all()
    assert (low.labels[low.flipped] == high.labels[low.flipped]).all()


@given(samples(), RATES, st.data())
def test_flips_aimed_at_a_group_stay_there(clean, share, data):
    """Flips aimed at a group, or among some samples, stay there; among all they are the general ones."""
    group = data.draw(st.sampled_from(clean.cells.groups))
    inside = clean.groups == group
    rate = share * inside.sum() / len(clean)
    try:
        noisy = flip_group_targeted(clean, rate, group=group)
    except InvalidInputError:  # half of the group's labels or more
        assert round(rate * len(clean)) + 1 >= inside.sum() / 2
        return
    check(clean, noisy)
    assert not noisy.flipped[~inside].any()
    assert (flip_margin(clean, rate, among=inside).labels == noisy.labels).all()
    everyone = np.ones(len(clean), bool)
    assert (flip_margin(clean, rate, among=everyone).labels == flip_margin(clean, rate).labels).all()
