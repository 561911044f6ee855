"""The model of wrong labels: its likelihood, its slopes, and what it recovers."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import approx_fprime
from scipy.special import expit, softmax
from sklearn.linear_model import LogisticRegression

from fairsieve.label_noise.flip_model import (
    FlipModel,
    Observed,
    _slopes,
    fit_flips,
    fit_left_out,
    fit_plain,
)


def drawn(seed, n=40, columns=2, classes=2, groups=2):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, columns))
    X = np.column_stack([(X - X.mean(axis=0)) / X.std(axis=0), np.ones(n)])
    labels, places = rng.integers(0, classes, n), rng.integers(0, groups, n)
    return Observed(X, labels, places, classes, groups, rng.uniform(0.5, 2, n))


def chances(x, group, model):
    """The chance of every label of one sample, by the docstring's formula."""
    true = softmax(np.append(0, x @ model.weights))
    seen = np.zeros(len(true))
    for i, p in enumerate(true):
        flip = expit(model.level[group, i] + model.aim[group, i] * np.log(p / (1 - p)))
        for label in range(len(true)):
            seen[label] += p * ((1 - flip) if i == label else flip / (len(true) - 1))
    return seen


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1), classes=st.integers(2, 4), groups=st.integers(1, 3), aimed=st.booleans()
)
def test_likelihood_and_slopes_are_those_of_the_formula(seed, classes, groups, aimed):
    rng, shape = np.random.default_rng(seed), (groups, classes)
    observed = drawn(seed, 12, classes=classes, groups=groups)
    start = np.concatenate([rng.normal(size=3 * (classes - 1)), rng.normal(-1, 1, groups * classes)])
    start = np.append(start, rng.uniform(0.1, 2, groups * classes) if aimed else np.zeros(groups * classes))

    def model_at(values):
        weights, level, aim = np.split(values, [3 * (classes - 1), 3 * (classes - 1) + groups * classes])
        return FlipModel(weights.reshape(3, -1), level.reshape(shape), aim.reshape(shape))

    def literal(values):
        samples = zip(observed.design, observed.groups, observed.labels, observed.weights, strict=True)
        return sum(w * np.log(chances(x, z, model_at(values))[y]) for x, z, y, w in samples)

    likelihood, *slopes = _slopes(model_at(start), observed, aimed)
    assert likelihood == pytest.approx(literal(start), rel=1e-9)
    wanted = approx_fprime(start, literal, 1e-6)
    found = np.concatenate([each.ravel() for each in slopes])
    known = slice(None) if aimed else slice(-groups * classes)
    assert found[known] == pytest.approx(wanted[known], rel=1e-3, abs=1e-3)
    losses = model_at(start).losses(observed)
    assert -observed.weights @ losses == pytest.approx(likelihood)


def test_without_flips_it_is_logistic_regression():
    observed = drawn(0, 300, 3, 3)
    model = fit_plain(observed)
    theirs = LogisticRegression(tol=1e-8, max_iter=1000).fit(
        observed.design[:, :-1], observed.labels, sample_weight=observed.weights
    )
    own = np.column_stack([np.zeros(len(observed)), observed.design @ model.weights])
    assert softmax(own, axis=1) == pytest.approx(theirs.predict_proba(observed.design[:, :-1]), abs=0.02)


def test_a_fold_left_out_is_predicted_by_the_others():
    observed = drawn(1, 600, 3)
    folds = np.arange(600) % 3
    found = fit_left_out(observed, fit_plain(observed), folds)
    for fold in range(3):
        alone = fit_plain(observed.take(folds != fold))
        assert found[folds == fold] == pytest.approx(observed.design[folds == fold] @ alone.weights, abs=0.02)


def test_rates_are_recovered_and_ties_share_one():
    rng = np.random.default_rng(0)
    x, groups = rng.normal(size=20_000), rng.integers(0, 2, 20_000)
    truth = rng.random(20_000) < expit(5 * x)
    rates = np.array([0.1, 0.3])
    labels = np.where(rng.random(20_000) < rates[groups], 1 - truth, truth).astype(int)
    design = np.column_stack([x, np.ones(20_000)])
    observed = Observed(design, labels, groups, 2, 2, np.ones(20_000))
    found = fit_flips(observed, fit_plain(observed), np.array([[0, 0], [1, 1]]))
    assert found.flip_rates == pytest.approx(np.column_stack([rates, rates]), abs=0.02)
    share, error = found.noise(observed)
    assert share == pytest.approx(0.2, abs=3 * error)
    assert 0.001 < error < 0.01
    true_class = found.true_class(observed)
    assert true_class.sum(axis=1) == pytest.approx(1)
    wrong = true_class[np.arange(20_000), labels] < 0.5
    assert (labels != truth)[wrong].mean() > 0.85
