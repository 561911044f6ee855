"""Wrong labels: the model of flips, true counts, and sums with checks"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import approx_fprime
from scipy.special import expit, softmax

from fairsieve.estimators._rounds import chance_right, scaled_rates
from fairsieve.label_noise.flip_model import FlipModel, Observed, _slopes, transitions, true_sums
from fairsieve.label_noise.verified import CheckedSums
from fairsieve.selection.cells import Cells


def observe(seed, n=40, columns=2, classes=2, groups=2):
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
    observed = observe(seed, 12, classes=classes, groups=groups)
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


def drawn(seed, classes, groups, count=400):
    """Cells with every class in every group, probabilities of labels, and flip rates below a third."""
    rng = np.random.default_rng(seed)
    every = np.arange(classes * groups)
    cell = np.concatenate([every, rng.integers(0, classes * groups, count - len(every))])
    cells = Cells.of(cell // groups, cell % groups)
    return cells, rng.dirichlet(np.ones(classes), count), rng.uniform(0, 0.3, (classes, groups))


SHAPES = {"seed": st.integers(0, 2**32 - 1), "classes": st.integers(2, 4), "groups": st.integers(1, 3)}


@given(**SHAPES)
def test_true_counts_follow_from_observed_ones(seed, classes, groups):
    _, _, rates = drawn(seed, classes, groups)
    true = np.random.default_rng(seed).uniform(1, 100, (classes, groups, 2))
    table = transitions(rates)
    assert table.sum(axis=2) == pytest.approx(np.ones((groups, classes)))
    observed = np.zeros_like(true)
    for z in range(groups):
        for i in range(classes):
            for j in range(classes):
                stays = 1 - rates[i, z] if i == j else rates[i, z] / (classes - 1)
                observed[j, z] += stays * true[i, z]
    assert true_sums(observed, table) == pytest.approx(true)


@given(**SHAPES)
def test_the_chance_of_a_right_label_is_bayes(seed, classes, groups):
    cells, true, rates = drawn(seed, classes, groups)
    table = transitions(rates)
    labels = np.array([p @ table[z] for p, z in zip(true, cells.group_codes, strict=True)])
    right, mass = chance_right(labels, cells, table)
    for n in range(0, len(cells), 20):
        y, z = cells.label_codes[n], cells.group_codes[n]
        assert right[n] == pytest.approx(true[n, y] * (1 - rates[y, z]) / labels[n, y], abs=1e-4)
    sums = np.bincount(cells.codes, weights=mass, minlength=cells.counts.size).reshape(cells.shape)
    counts = cells.counts.astype(float)
    assert sums == pytest.approx(np.maximum(true_sums(counts, table), 0.05 * counts))


@settings(max_examples=50)
@given(noise=st.floats(0.01, 0.2), **SHAPES)
def test_scaled_rates_give_the_share_asked_for(noise, seed, classes, groups):
    cells, _, rates = drawn(seed, classes, groups)
    scaled = scaled_rates(rates, noise, cells)
    true = true_sums(cells.counts.astype(float), transitions(scaled))
    assert (scaled * true).sum() / len(cells) == pytest.approx(noise, abs=0.02)
    assert scaled / scaled.max() == pytest.approx(rates / rates.max())
    assert scaled_rates(np.zeros_like(rates), noise, cells) == pytest.approx(np.full(rates.shape, noise))


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10_000), classes=st.integers(2, 3), groups=st.integers(1, 3))
def test_sums_are_those_of_the_truth_on_average_whatever_the_chances(seed, classes, groups):
    """The law of the difference estimator, over all ways to check one row of each group after another."""
    rng = np.random.default_rng(seed)
    size = 12 * groups
    group, column = np.arange(size) % groups, rng.integers(0, classes, size)
    truth = rng.integers(0, classes, size)
    chances = rng.dirichlet(np.ones(classes), size)
    average = np.zeros((classes, groups, classes))
    for turn in range(12):  # each row of each group is checked once
        codes = np.full(size, -1)
        codes[turn * groups : (turn + 1) * groups] = truth[turn * groups : (turn + 1) * groups]
        sums = CheckedSums(chances, codes, group, column, (classes, groups), np.ones(size))
        corrected = sums.uncorrected()
        for z in range(groups):
            row = turn * groups + z
            corrected[:, z, column[row]] += 12 * (np.eye(classes)[truth[row]] - chances[row])
        assert sums.table() == pytest.approx(np.maximum(corrected, 0.0))
        average += corrected / 12
    wanted = np.zeros((classes, groups, classes))
    np.add.at(wanted, (truth, group, column), 1.0)
    assert average == pytest.approx(wanted)
