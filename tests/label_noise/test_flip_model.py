"""The model of wrong labels: its likelihood, its slope, its curvature, and what it recovers."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import approx_fprime
from scipy.special import expit, softmax
from sklearn.linear_model import LogisticRegression

from fairsieve.label_noise.flip_likelihood import FlipLikelihood, FlipParameters
from fairsieve.label_noise.flip_likelihood_binary import new_likelihood
from fairsieve.label_noise.flip_model import Observed, fit_fixed, fit_flips, fit_plain


def with_constant(X):
    return np.column_stack([(X - X.mean(axis=0)) / X.std(axis=0), np.ones(len(X))])


def drawn(seed, n=40, columns=2, classes=2, groups=2):
    rng = np.random.default_rng(seed)
    X = with_constant(rng.normal(size=(n, columns)))
    return Observed(
        X,
        rng.integers(0, classes, n),
        rng.integers(0, groups, n),
        classes,
        groups,
        rng.uniform(0.5, 2, n),
    )


def chances(x, group, weights, level, aim):
    """The chance of every label of one sample, by the docstring's formula."""
    true = softmax(x @ weights)
    seen = np.zeros(len(true))
    for i, p in enumerate(true):
        flip = expit(level[group, i] + aim[group, i] * np.log(p / (1 - p)))
        for label in range(len(true)):
            seen[label] += p * ((1 - flip) if i == label else flip / (len(true) - 1))
    return seen


def problem_and_values(seed, classes, groups, aimed, kind=new_likelihood):
    observed = drawn(seed, n=12, classes=classes, groups=groups)
    rng = np.random.default_rng(seed)
    shape = groups, classes
    start = FlipParameters(rng.normal(size=(3, classes)), rng.normal(-1, 1, shape), rng.uniform(0, 2, shape))
    ties = np.arange(groups * classes).reshape(shape)
    if not aimed:
        start = FlipParameters(start.weights, start.level, np.zeros(shape))
    problem = kind(observed, start, ties, aimed)
    return problem, problem.first()


CASES = {
    "seed": st.integers(0, 2**32 - 1),
    "classes": st.integers(2, 4),
    "groups": st.integers(1, 3),
    "aimed": st.booleans(),
}


@settings(max_examples=25, deadline=None)
@given(**CASES)
def test_likelihood_and_slope_are_those_of_the_formula(seed, classes, groups, aimed):
    problem, values = problem_and_values(seed, classes, groups, aimed)
    at, observed = problem.point(values), problem.observed
    literal = sum(
        weight * np.log(chances(x, group, at.weights, at.level, at.aim)[label])
        for x, label, group, weight in zip(
            observed.design, observed.labels, observed.groups, observed.weights, strict=True
        )
    )
    assert problem.likelihood(values) == pytest.approx(literal, rel=1e-9)
    slope, _ = problem.slope_and_curvature(values)
    assert slope == pytest.approx(approx_fprime(values, problem.value, 1e-6), rel=1e-3, abs=1e-3)


@settings(max_examples=10, deadline=None)
@given(**CASES)
def test_curvature_is_the_expected_one(seed, classes, groups, aimed):
    problem, values = problem_and_values(seed, classes, groups, aimed)
    observed = problem.observed
    _, curvature = problem.slope_and_curvature(values)

    def log_chance(flat, n, label):
        at = problem.point(flat)
        x, group = observed.design[n], observed.groups[n]
        return np.log(chances(x, group, at.weights, at.level, at.aim)[label])

    expected = np.zeros_like(curvature)
    for n in range(len(observed)):
        at = problem.point(values)
        seen = chances(observed.design[n], observed.groups[n], at.weights, at.level, at.aim)
        for label in range(classes):
            slope = approx_fprime(values, lambda flat, n=n, c=label: log_chance(flat, n, c), 1e-6)
            expected += observed.weights[n] * seen[label] * np.outer(slope, slope)
    off = ~np.eye(len(values), dtype=bool)  # the ridges are on the diagonal
    assert curvature[off] == pytest.approx(expected[off], rel=1e-2, abs=1e-3)
    assert (np.diag(curvature) >= np.diag(expected) - 1e-2 * (1 + np.diag(expected))).all()


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    groups=st.integers(1, 3),
    flips=st.sampled_from(["none", "fixed", "one rate", "own rates", "aimed"]),
    scale=st.sampled_from([1.0, 30.0]),
)
def test_the_short_way_for_two_classes_agrees_with_the_general_one(seed, groups, flips, scale):
    observed = drawn(seed, groups=groups)
    rng, shape = np.random.default_rng(seed), (groups, 2)
    level = np.full(shape, -np.inf) if flips == "none" else rng.uniform(-6, 1, shape)
    aim = rng.uniform(0, 2, shape) if flips == "aimed" else np.zeros(shape)
    ties = {
        "one rate": np.zeros(shape, np.int64),
        "own rates": np.arange(groups * 2).reshape(shape),
        "aimed": np.arange(groups * 2).reshape(shape),
    }.get(flips)
    if flips == "aimed":
        scale = 1.0  # the general way bounds the log odds that aim
    start = FlipParameters(scale * rng.normal(size=(3, 2)), level, aim)
    short, general = (
        kind(observed, start, ties, flips == "aimed") for kind in (new_likelihood, FlipLikelihood)
    )
    assert type(short) is not type(general)
    values = general.first()
    assert short.first().tolist() == values.tolist()
    assert short.value(values) == pytest.approx(general.value(values), rel=1e-8)
    for own, theirs in zip(
        short.slope_and_curvature(values), general.slope_and_curvature(values), strict=True
    ):
        assert own == pytest.approx(theirs, rel=1e-6, abs=1e-6 * np.abs(theirs).max())


def test_without_flips_it_is_logistic_regression():
    observed = drawn(0, n=300)
    theirs = LogisticRegression(C=1.0).fit(
        observed.design[:, :-1], observed.labels, sample_weight=observed.weights
    )
    found = fit_plain(observed).weights
    assert found[:-1, 1] == pytest.approx(theirs.coef_[0], abs=2e-3)


def labelled(seed, rates, n=8000):
    """Two classes by one strong feature; labels of (group, class) flipped at the given rates."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    groups = rng.integers(0, 2, n)
    true = (rng.random(n) < expit(4 * X[:, 0])).astype(np.int64)
    labels = np.where(rng.random(n) < rates[groups, true], 1 - true, true)
    return Observed(with_constant(X), labels, groups, 2, 2, np.ones(n)), true


@pytest.mark.parametrize(
    "rates", [[[0.1, 0.1], [0.1, 0.1]], [[0.3, 0.0], [0.1, 0.2]], [[0.0, 0.0], [0.4, 0.4]]]
)
def test_rates_are_recovered(rates):
    observed, true = labelled(0, np.array(rates))
    model = fit_flips(observed, fit_plain(observed))
    assert model.flip_rates == pytest.approx(np.array(rates), abs=0.04)
    noise = float(np.mean(observed.labels != true))
    assert model.noise(observed) == pytest.approx(noise, abs=0.02)
    assert abs(model.noise(observed) - noise) < 4 * model.noise_error(observed) < 0.1


def test_ties_share_a_rate():
    observed, _ = labelled(1, np.array([[0.3, 0.0], [0.1, 0.2]]))
    tied = fit_flips(observed, fit_plain(observed), ties=np.array([[0, 0], [1, 1]]))
    assert tied.flip_rates[:, 0].tolist() == tied.flip_rates[:, 1].tolist()
    assert tied.rates == 2
    free = fit_flips(observed, tied)
    assert free.rates == 4
    assert free.log_likelihood > tied.log_likelihood


def test_the_true_rate_is_the_likeliest_of_given_ones():
    observed, _ = labelled(2, np.full((2, 2), 0.2))
    plain = fit_plain(observed)
    likelihoods = [fit_fixed(observed, plain, rate).log_likelihood for rate in (0.05, 0.1, 0.2, 0.3, 0.4)]
    assert int(np.argmax(likelihoods)) == 2
    free = fit_flips(observed, plain, ties=np.zeros((2, 2), np.int64))
    assert free.log_likelihood >= max(likelihoods) - 0.5  # the ridge differs


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
