"""The model of wrong labels: its likelihood, its slope, and what it recovers."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import approx_fprime
from scipy.special import expit, softmax
from sklearn.linear_model import LogisticRegression

from fairsieve.label_noise.flip_model import Observed, _slope_of, design, fit_flips, fit_plain


def drawn(seed, n=40, columns=2, classes=2, groups=2):
    rng = np.random.default_rng(seed)
    X = design(rng.normal(size=(n, columns)), curved=False)
    return Observed(
        X,
        rng.integers(0, classes, n),
        rng.integers(0, groups, n),
        classes,
        groups,
        rng.uniform(0.5, 2, n),
    )


def literal_likelihood(observed, weights, level, aim):
    """The docstring's formula, sample by sample."""
    total = 0.0
    for x, label, group, weight in zip(
        observed.design, observed.labels, observed.groups, observed.weights, strict=True
    ):
        true = softmax(x @ weights)
        chance = 0.0
        for i, p in enumerate(true):
            flip = expit(level[group, i] + aim[group, i] * np.log(p / (1 - p)))
            chance += p * ((1 - flip) if i == label else flip / (observed.classes - 1))
        total += weight * np.log(chance)
    return total


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), classes=st.integers(2, 4), groups=st.integers(1, 3))
def test_likelihood_and_slope_are_those_of_the_formula(seed, classes, groups):
    observed = drawn(seed, n=12, classes=classes, groups=groups)
    rng = np.random.default_rng(seed)
    weights = rng.normal(size=(3, classes))
    level, aim = rng.normal(-1, 1, (groups, classes)), rng.uniform(0, 2, (groups, classes))
    value, slopes = _slope_of(observed, weights, level, aim)
    assert value == pytest.approx(literal_likelihood(observed, weights, level, aim), rel=1e-9)
    for index, slope in enumerate(slopes):
        given_parts = [weights, level, aim]

        def along(flat, index=index, given_parts=given_parts):
            parts = list(given_parts)
            parts[index] = flat.reshape(parts[index].shape)
            return _slope_of(observed, *parts)[0]

        numeric = approx_fprime(given_parts[index].ravel(), along, 1e-6)
        assert slope.ravel() == pytest.approx(numeric, rel=1e-3, abs=1e-3)


def test_without_flips_it_is_logistic_regression():
    observed = drawn(0, n=300)
    theirs = LogisticRegression(C=1.0).fit(
        observed.design[:, :-1], observed.labels, sample_weight=observed.weights
    )
    found = fit_plain(observed).weights
    # Theirs is one set of weights, ours the difference of two: the ridge is halved.
    half = LogisticRegression(C=2.0).fit(
        observed.design[:, :-1], observed.labels, sample_weight=observed.weights
    )
    assert found[:-1, 1] - found[:-1, 0] == pytest.approx(half.coef_[0], abs=2e-3)
    assert np.abs(found[:-1, 1] - found[:-1, 0]).sum() >= np.abs(theirs.coef_[0]).sum() - 1e-6


def labelled(seed, rates, n=8000):
    """Two classes by one strong feature; labels of (group, class) flipped at the given rates."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    groups = rng.integers(0, 2, n)
    true = (rng.random(n) < expit(4 * X[:, 0])).astype(np.int64)
    labels = np.where(rng.random(n) < rates[groups, true], 1 - true, true)
    return Observed(design(X, curved=False), labels, groups, 2, 2, np.ones(n)), true


@pytest.mark.parametrize(
    "rates", [[[0.1, 0.1], [0.1, 0.1]], [[0.3, 0.0], [0.1, 0.2]], [[0.0, 0.0], [0.4, 0.4]]]
)
def test_rates_are_recovered(rates):
    observed, true = labelled(0, np.array(rates))
    model = fit_flips(observed, fit_plain(observed))
    assert model.flip_rates == pytest.approx(np.array(rates), abs=0.04)
    assert model.noise(observed) == pytest.approx(np.mean(observed.labels != true), abs=0.02)


def test_ties_share_a_rate():
    observed, _ = labelled(1, np.array([[0.3, 0.0], [0.1, 0.2]]))
    tied = fit_flips(observed, fit_plain(observed), ties=np.array([[0, 0], [1, 1]]))
    assert tied.flip_rates[:, 0].tolist() == tied.flip_rates[:, 1].tolist()
    assert tied.rates == 2
    free = fit_flips(observed, tied)
    assert free.rates == 4
    assert free.log_likelihood > tied.log_likelihood


@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_posteriors_are_probabilities_and_order_does_not_matter(seed):
    observed, _ = labelled(seed, np.array([[0.2, 0.1], [0.0, 0.1]]), n=300)
    model = fit_flips(observed, fit_plain(observed))
    posterior = model.true_class(observed)
    assert posterior.sum(axis=1) == pytest.approx(np.ones(300))
    assert (posterior >= 0).all()
    order = np.random.default_rng(seed).permutation(300)
    shuffled = observed.take(order)
    again = fit_flips(shuffled, fit_plain(shuffled))
    assert again.log_likelihood == pytest.approx(model.log_likelihood, abs=0.05)


def test_curved_adds_squares_and_products_of_numbers_alone():
    X = np.column_stack([np.arange(6.0), np.arange(6.0)[::-1] ** 2, [0, 1, 0, 1, 0, 1], np.ones(6)])
    assert design(X, curved=False).shape == (6, 5)
    assert design(X, curved=True).shape == (6, 8)
    assert design(X[:, 2:], curved=True).shape == (6, 3)
    assert np.isfinite(design(X, curved=True)).all()
