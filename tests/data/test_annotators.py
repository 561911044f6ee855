"""Labels wrong as people make them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression

from fairsieve import InvalidInputError, Samples
from fairsieve.data import flip_by_feature, flip_near_boundary, flip_weak_annotator, make_synthetic
from fairsieve.paper.attacks import add_noise

CLEAN = make_synthetic(1000, seed=0)
KINDS = [flip_weak_annotator, flip_near_boundary, flip_by_feature]


def drawn(seed, classes, groups, n=200):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    labels = np.digitize(X[:, 0] + 0.5 * rng.normal(size=n), np.linspace(-1, 1, classes - 1))
    return Samples(X, np.array(["a", "b", "c", "d"])[labels], rng.integers(0, groups, n))


@settings(max_examples=20, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    classes=st.integers(2, 4),
    groups=st.integers(1, 3),
    rate=st.floats(0, 0.05),
    kind=st.sampled_from([flip_near_boundary, flip_by_feature]),
)
def test_rates_are_exact_in_every_group_and_others_keep_their_labels(seed, classes, groups, rate, kind):
    data = drawn(seed % 1000, classes, groups)
    noisy = kind(data, {0: rate}, seed=seed)
    assert ((noisy.labels != data.labels) == noisy.flipped).all()
    assert noisy.flipped[data.groups != 0].sum() == 0
    assert noisy.flipped.sum() == round(rate * (data.groups == 0).sum())
    assert set(noisy.labels) <= set(data.labels)
    same = kind(data, {0: rate}, seed=seed)
    assert (same.labels == noisy.labels).all()


@pytest.mark.parametrize("kind", KINDS)
def test_one_rate_holds_in_all_groups(kind):
    noisy = kind(CLEAN, 0.1, seed=3)
    for group in (0, 1):
        assert noisy.flipped[CLEAN.groups == group].mean() == pytest.approx(0.1, abs=0.004)
    assert kind(CLEAN, 0.0, seed=3).flipped.sum() == 0


def test_a_weak_annotator_is_wrong_in_a_pattern():
    """A model of the noisy labels repeats the annotator's errors more than those of uniform flips."""
    noisy = flip_weak_annotator(CLEAN, 0.15, seed=0, columns=1)
    model = LogisticRegression().fit(CLEAN.features, noisy.labels)
    again = model.predict(CLEAN.features) == noisy.labels
    random = add_noise(CLEAN, "uniform", 0.15, seed=0)
    other = LogisticRegression().fit(CLEAN.features, random.labels)
    repeats = (other.predict(CLEAN.features) == random.labels)[random.flipped].mean()
    assert again[noisy.flipped].mean() > repeats + 0.1


def test_flips_near_the_boundary_have_small_margins():
    noisy = flip_near_boundary(CLEAN, 0.1, seed=0)
    margin = np.abs(LogisticRegression().fit(CLEAN.features, CLEAN.labels).decision_function(CLEAN.features))
    assert margin[noisy.flipped].mean() < 0.5 * margin[~noisy.flipped].mean()


def test_flips_by_a_feature_have_high_values():
    noisy = flip_by_feature(CLEAN, 0.1, seed=0, feature=0)
    assert CLEAN.features[noisy.flipped, 0].mean() > CLEAN.features[~noisy.flipped, 0].mean() + 1


@pytest.mark.parametrize("name", ["weak-annotator", "boundary", "feature"])
def test_they_are_noises_of_compare(name):
    assert add_noise(CLEAN, name, 0.1, seed=0).flipped.sum() == 100


def test_bad_input_is_named():
    with pytest.raises(InvalidInputError, match=r"rates must name groups of \[0, 1\]; got 'x'"):
        flip_near_boundary(CLEAN, {"x": 0.1}, seed=0)
    with pytest.raises(InvalidInputError, match=r"the annotator is wrong about .*: lower it"):
        flip_weak_annotator(CLEAN, 0.9, seed=0)
    with pytest.raises(InvalidInputError, match="feature must be a column, below 3; got 7"):
        flip_by_feature(CLEAN, 0.1, seed=0, feature=7)
    with pytest.raises(InvalidInputError, match="samples must be Samples"):
        flip_by_feature(CLEAN.features, 0.1, seed=0)
    with pytest.raises(InvalidInputError, match="two or more classes to flip between"):
        flip_near_boundary(Samples(np.ones((3, 1)), [1, 1, 1], [0, 0, 1]), 0.1, seed=0)
