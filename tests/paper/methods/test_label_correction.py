"""Fair label correction: contradicted labels are flipped back, towards equal base rates."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from fairsieve import Cells, InvalidInputError, Samples, fit
from fairsieve.data.corruption.flips import flip_uniform
from fairsieve.paper.methods.label_correction import (
    _correct_labels,
    _flips_towards_parity,
)
from fairsieve.paper.methods.registry import METHODS
from fairsieve.training.settings import Settings

train_fair_label_correction = METHODS["fair-label-correction"].train

SHORT = Settings(epochs=5, batch_size=50, learning_rate=0.01, clean_ratio=0.85)


def separable(n=1000, seed=0, groups=("a", "b"), classes=("no", "yes")):
    """A cluster for each class, the groups drawn apart from them."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, len(classes), n)
    features = rng.normal(size=(n, 3)) + 4 * np.eye(3)[codes]
    labels = np.array(classes)[codes]
    return Samples(features, labels, rng.choice(groups, n))


def rate_gap(labels, groups):
    rates = [(labels[groups == group] == "yes").mean() for group in np.unique(groups)]
    return max(rates) - min(rates)


@pytest.mark.parametrize("seed", range(3))
def test_unfair_noise_is_undone(seed):
    """The positive labels of one group were denied: noise and the gap both fall to next to nothing."""
    clean = separable(seed=seed)
    noisy = flip_uniform(clean, {("yes", "b"): 0.3}, seed=seed)
    data = clean.with_labels(noisy.labels)
    corrected = _correct_labels(data, noisy.flipped.mean(), seed=seed)
    assert (corrected.labels != clean.labels).mean() < noisy.flipped.mean() / 2
    assert rate_gap(corrected.labels, data.groups) < rate_gap(data.labels, data.groups) / 2


@pytest.mark.parametrize("seed", range(3))
def test_uniform_noise_is_lowered(seed):
    clean = separable(seed=seed, groups=("a", "b", "c"))
    noisy = flip_uniform(clean, 0.1, seed=seed)
    corrected = _correct_labels(clean.with_labels(noisy.labels), noisy.flipped.mean(), seed=seed)
    assert (corrected.labels != clean.labels).mean() < noisy.flipped.mean() / 2


def test_the_budget_holds_and_changes_are_told():
    data = separable(200)
    data = data.with_labels(flip_uniform(data, 0.2, seed=0).labels)
    for rate in (0.0, 0.05, 0.5, 1.0):
        corrected = _correct_labels(data, rate, seed=0)
        assert corrected.changed.sum() <= rate * 200
        assert ((corrected.labels != data.labels) == corrected.changed).all()
        assert corrected.labels.dtype == data.labels.dtype


@st.composite
def judged(draw):
    classes, groups = draw(st.integers(2, 3)), draw(st.integers(1, 3))
    n = draw(st.integers(1, 40))
    codes = draw(st.lists(st.integers(0, classes * groups - 1), min_size=n, max_size=n))
    cells = Cells(np.array(codes, np.uint8), list(range(classes)), list(range(groups)))
    shifts = np.array(draw(st.lists(st.integers(1, classes - 1), min_size=n, max_size=n)))
    margins = np.array(draw(st.lists(st.sampled_from([-0.5, 0.0, 0.1, 0.5, 0.9]), min_size=n, max_size=n)))
    return cells, (cells.label_codes + shifts) % classes, margins, draw(st.integers(0, n))


@given(judged())
def test_every_flip_is_contradicted_and_towards_parity(problem):
    cells, suggested, margins, budget = problem
    flips = _flips_towards_parity(cells, suggested, margins, budget)
    assert len(flips) == len(set(flips.tolist())) <= budget
    assert (margins[flips] > 0).all()
    counts = cells.counts.astype(float)
    for i in flips:
        group, left, entered = cells.group_codes[i], cells.label_codes[i], suggested[i]
        surplus = counts[:, group] / counts[:, group].sum() - counts.sum(axis=1) / counts.sum()
        assert surplus[left] >= surplus[entered] - 1e-9
        counts[left, group] -= 1
        counts[entered, group] += 1
        assert counts[left, group] >= 1


def test_with_one_group_the_largest_margins_are_flipped():
    cells = Cells.of([0, 0, 0, 1, 1, 1], ["a"] * 6)
    margins = np.array([0.3, 0.9, -0.2, 0.5, 0.9, 0.1])
    assert _flips_towards_parity(cells, 1 - cells.label_codes, margins, 3).tolist() == [1, 4, 3]


def test_the_budget_is_what_the_clean_ratio_leaves():
    clean = separable(400)
    data = clean.with_labels(flip_uniform(clean, 0.15, seed=0).labels)
    fitted = train_fair_label_correction(data, SHORT, seed=0, members=5, evaluation=clean)
    corrected = _correct_labels(data, 0.15, members=5, seed=0)
    same = fit(None, data.with_labels(corrected.labels), "lr", epochs=5, batch_size=50, learning_rate=0.01)
    assert torch.equal(fitted.model.linear.weight, same.model.linear.weight)
    assert fitted.method == "fair-label-correction"
    assert len(fitted.indices) == 400
    assert set(fitted.predict(data.features)) <= {"no", "yes"}
    untouched = train_fair_label_correction(data, SHORT, seed=0, members=1, rate=0.0)
    plain = fit(None, data, "lr", epochs=5, batch_size=50, learning_rate=0.01)
    assert torch.equal(untouched.model.linear.weight, plain.model.linear.weight)


def test_a_seed_repeats_and_inputs_stay():
    data = separable(200, groups=("a", "b", "c"), classes=("low", "middle", "top"))
    features, labels = data.features.copy(), data.labels.copy()
    module = torch.nn.Linear(3, 3)
    one, same = (train_fair_label_correction(data, SHORT, seed=1, model=module, members=3) for _ in range(2))
    assert torch.equal(one.model.weight, same.model.weight)
    assert (data.features == features).all()
    assert (data.labels == labels).all()


def test_an_empty_cell():
    clean = separable(300, groups=("a", "b", "c"))
    data = clean.take(np.flatnonzero((clean.labels != "yes") | (clean.groups != "c")))
    corrected = _correct_labels(data, 0.1, seed=0)
    assert corrected.changed.sum() <= 0.1 * len(data)
    train_fair_label_correction(data, SHORT, seed=0, members=2)


def test_wrong_values_are_refused():
    data = separable(20)
    with pytest.raises(InvalidInputError, match=r"rate must be a number in \[0, 1\]; got 2"):
        _correct_labels(data, 2, seed=0)
    with pytest.raises(InvalidInputError, match="members must be a whole number of at least 1; got 0"):
        _correct_labels(data, 0.1, members=0, seed=0)
    with pytest.raises(
        InvalidInputError, match=r"has the hyperparameters members, rate beside .*; got also budget"
    ):
        train_fair_label_correction(data, SHORT, seed=0, budget=3)
