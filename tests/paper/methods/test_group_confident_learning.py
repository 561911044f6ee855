"""Confident learning within groups: wrong labels go, right ones stay, no cell is lost."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from fairsieve import InvalidInputError, Samples
from fairsieve.data.corruption.flips import flip_uniform
from fairsieve.paper.methods.group_confident_learning import (
    _confident_labels,
    _out_of_fold_probabilities,
)
from fairsieve.paper.methods.registry import METHODS
from fairsieve.training.settings import Settings

train_group_confident_learning = METHODS["group-confident-learning"].train

SHORT = Settings(epochs=5, batch_size=50, learning_rate=0.01)


def separable(n=1000, seed=0, groups=("a", "b"), classes=("no", "yes")):
    """A cluster for each class, the groups drawn apart from them."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, len(classes), n)
    features = rng.normal(size=(n, 3)) + 4 * np.eye(3)[codes]
    labels = np.array(classes)[codes]
    return Samples(features, labels, rng.choice(groups, n))


@pytest.mark.parametrize("decoupled", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_flipped_labels_go_and_right_ones_stay(seed, decoupled):
    clean = separable(seed=seed)
    noisy = flip_uniform(clean, 0.1, seed=seed)
    found = _confident_labels(clean.with_labels(noisy.labels), seed=seed, decoupled=decoupled)
    assert (~found.kept)[noisy.flipped].mean() > 0.7
    assert (~found.kept)[~noisy.flipped].mean() < 0.06
    assert (found.labels != clean.labels).mean() < noisy.flipped.mean() / 2


def test_noise_in_one_group_is_found_in_that_group():
    clean = separable(2000)
    noisy = flip_uniform(clean, {("yes", "b"): 0.3}, seed=0)
    dropped = ~_confident_labels(clean.with_labels(noisy.labels), seed=0).kept
    assert dropped[noisy.flipped].mean() > 0.5
    assert dropped[clean.groups == "a"].mean() < 0.06


def test_thresholds_are_means_within_the_group():
    data = separable(300)
    data = data.with_labels(flip_uniform(data, 0.2, seed=0).labels)
    chances, found = _out_of_fold_probabilities(data, seed=1), _confident_labels(data, seed=1)
    for group in "ab":
        members = data.groups == group
        for i in np.flatnonzero(members):
            confident = {}
            for code, label in enumerate(data.classes):
                if chances[i, code] >= chances[members & (data.labels == label), code].mean():
                    confident[label] = chances[i, code]
            own = data.labels[i]
            likeliest = max(confident, key=confident.__getitem__) if confident else own
            assert found.labels[i] == likeliest
            assert found.kept[i] == (likeliest == own)


def test_probabilities_do_not_come_from_the_sample_itself():
    data = separable(60)
    chances = _out_of_fold_probabilities(data, folds=60, seed=0)
    labels = data.labels.copy()
    labels[7] = "no" if labels[7] == "yes" else "yes"
    again = _out_of_fold_probabilities(data.with_labels(labels), folds=60, seed=0)
    np.testing.assert_allclose(again[7], chances[7])
    np.testing.assert_allclose(chances.sum(axis=1), 1)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), st.integers(6, 40), st.integers(2, 4), st.integers(1, 3), st.booleans())
def test_no_cell_is_lost(seed, n, classes, groups, decoupled):
    rng = np.random.default_rng(seed)
    labels, members = rng.integers(0, classes, n), rng.integers(0, groups, n)
    data = Samples(
        rng.normal(size=(n, 1)),
        labels,
        members,
        classes=list(range(classes)),
        group_values=list(range(groups)),
    )
    found = _confident_labels(data, folds=3, seed=0, decoupled=decoupled)
    assert ((data.take(np.flatnonzero(found.kept)).cells.counts > 0) == (data.cells.counts > 0)).all()
    assert (found.labels[found.kept] == labels[found.kept]).all()


def test_a_fitted_model_speaks_of_the_original_samples():
    clean = separable(400, groups=("a", "b", "c"), classes=("low", "middle", "top"))
    noisy = flip_uniform(clean, 0.1, seed=0)
    data = clean.with_labels(noisy.labels)
    fitted = train_group_confident_learning(data, SHORT, seed=2, evaluation=clean)
    kept = _confident_labels(data, seed=2).kept
    assert (fitted.indices == np.flatnonzero(kept)).all()
    assert ((fitted.history.times_selected > 0) == kept).all()
    assert fitted.history.times_selected.shape == (400,)
    assert fitted.method == "group-confident-learning"
    assert set(fitted.predict(data.features)) <= {"low", "middle", "top"}
    assert fitted.history.evaluation is not None


def test_a_seed_repeats_and_inputs_stay():
    data = separable(200)
    features, labels = data.features.copy(), data.labels.copy()
    module = torch.nn.Linear(3, 2)
    one, same = (train_group_confident_learning(data, SHORT, seed=1, model=module) for _ in range(2))
    assert torch.equal(one.model.weight, same.model.weight)
    assert (one.indices == same.indices).all()
    assert (data.features == features).all()
    assert (data.labels == labels).all()


def test_an_empty_cell():
    clean = separable(300, groups=("a", "b", "c"))
    data = clean.take(np.flatnonzero((clean.labels != "yes") | (clean.groups != "c")))
    found = _confident_labels(data, seed=0)
    assert not (found.labels[data.groups == "c"] == "yes").any()
    train_group_confident_learning(data, SHORT, seed=0)


def test_wrong_values_are_refused():
    data = separable(20)
    with pytest.raises(InvalidInputError, match="folds must be a whole number of at least 2; got 1"):
        _confident_labels(data, folds=1, seed=0)
    with pytest.raises(InvalidInputError, match="folds must not exceed the samples, 20; got 21"):
        _confident_labels(data, folds=21, seed=0)
    with pytest.raises(
        InvalidInputError, match=r"has the hyperparameters folds, decoupled beside .*; got also fold"
    ):
        train_group_confident_learning(data, SHORT, seed=0, fold=3)
