"""Wrong labels."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss

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
    random = max(
        loss_after(clean, validation, flip_uniform(clean, rate, seed=seed).labels) for seed in range(3)
    )
    assert loss_after(clean, validation, greedy.labels) > random


def test_the_greedy_attack_refuses_many_classes_and_no_rounds(many, clean):
    with pytest.raises(InvalidInputError, match=r"samples must have two classes for this attack; got 3"):
        flip_greedily(many, 0.1)
    with pytest.raises(InvalidInputError, match="rounds must be"):
        flip_greedily(clean, 0.1, rounds=0)
    assert not flip_greedily(clean, 0.0).flipped.any()


def test_the_worst_group_is_the_one_with_the_lowest_accuracy(clean):
    assert set(clean.groups[flip_group_targeted(clean, 0.1).flipped]) == {1}  # over half of group 0 otherwise

    def accuracy(group):
        labels = flip_group_targeted(clean, 0.05, group=group).labels
        return (
            LogisticRegression(max_iter=1000).fit(clean.features, labels).score(clean.features, clean.labels)
        )

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
    for labels in (
        flip_margin(clean, 0.2),
        flip_group_targeted(clean, 0.1),
        flip_uniform(clean, 0.3, seed=0),
    ):
        labels.labels[:] = 9
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
    with pytest.raises(InvalidInputError, match=message):
        flip(clean)


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
