"""Noise"""

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from fairsieve import Samples
from fairsieve.data import flip_group_targeted, flip_margin, flip_uniform
from fairsieve.errors import InvalidInputError

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
