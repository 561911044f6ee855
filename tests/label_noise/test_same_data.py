"""The same data give the same verdict, in whatever order, form or units they come."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from fairsieve import estimate_clean_ratio
from fairsieve.data import flip_uniform, make_synthetic
from fairsieve.label_noise.survey import content_folds
from fairsieve.samples import Samples

DATA = make_synthetic(3000, seed=0)
NOISY = flip_uniform(DATA, 0.15, seed=0).labels


def estimate(X=DATA.features, y=NOISY, z=DATA.groups, **options):
    return estimate_clean_ratio(X, y, sensitive_features=z, **options)


@pytest.fixture(scope="module")
def found():
    assert estimate().credible
    assert estimate().flip_rates.any()
    return estimate()


def check(again, found, rows=slice(None)):
    assert again.clean_ratio == pytest.approx(found.clean_ratio, abs=1e-6)
    assert again.interval == pytest.approx(found.interval, abs=1e-6)
    assert again.flip_rates == pytest.approx(found.flip_rates, abs=1e-6)
    assert again.wrong == pytest.approx(found.wrong[rows], abs=1e-6)


@pytest.mark.parametrize("seed", [None, 0, 1, 12345])
def test_no_seed_decides(found, seed):
    again = estimate(random_state=seed)
    assert again.clean_ratio == found.clean_ratio
    assert again.wrong.tolist() == found.wrong.tolist()


def test_the_order_of_the_rows_does_not_decide(found):
    order = np.random.default_rng(0).permutation(3000)
    check(estimate(DATA.features[order], NOISY[order], DATA.groups[order]), found, order)


@pytest.mark.parametrize(
    "features", [DATA.features * [1e6, 1e-6, 1.0] + [1e9, -1e-5, 3.0], sparse.csr_matrix(DATA.features)]
)
def test_units_and_zeros_do_not_decide(found, features):
    check(estimate(features), found)


def test_a_whole_weight_is_so_many_equal_rows():
    """A weight of zero is a row that is not there."""
    times = np.random.default_rng(0).integers(0, 4, 3000)
    copies = np.repeat(np.arange(3000), times)
    labels, groups = NOISY[copies], DATA.groups[copies]
    weighted = estimate(sample_weight=times)
    check(estimate(DATA.features[copies], labels, groups), weighted, np.cumsum(times > 0)[copies] - 1)


@pytest.mark.parametrize("noise", [0.0, 0.1])
def test_a_table_pasted_below_itself_says_what_the_table_says(noise):
    rng = np.random.default_rng(0)
    X, groups = rng.normal(size=(2000, 3)), rng.integers(0, 2, 2000)
    labels = ((X[:, 0] + X[:, 1] > 0) ^ (rng.random(2000) < noise)).astype(int)
    twice = estimate(*(np.concatenate([part, part]) for part in (X, labels, groups)))
    assert twice.clean_ratio == pytest.approx(1 - noise, abs=0.03)
    assert twice.flip_rates.any() == (noise > 0)
    assert twice.wrong[:2000].tolist() == twice.wrong[2000:].tolist()


@pytest.mark.parametrize("seed", range(4))
def test_labels_that_nobody_can_be_sure_of_are_not_called_wrong(seed):
    """As in credit default: even the safest fail now and then, and the riskiest mostly do not."""
    rng = np.random.default_rng(seed)
    X, groups = rng.normal(size=(6000, 10)), rng.integers(0, 2, 6000)
    chance = 0.05 + 0.6 / (1 + np.exp(-2 * X[:, 0] - X[:, 1] + 1))
    found = estimate(X, (rng.random(6000) < chance).astype(int), groups)
    assert not found.flip_rates.any()
    assert len(found.believed) == 6000
    assert found.interval[0] <= found.clean_ratio <= found.interval[1] == 1.0


@settings(max_examples=50, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    samples=st.integers(80, 1000),
    numbers=st.integers(1, 6),
    flags=st.integers(0, 6),
    kind=st.sampled_from([np.float64, np.float32]),
    unit=st.sampled_from([1.0, 1e6, 1 / 3]),
)
def test_last_digits_and_units_leave_nearly_every_row_in_its_fold(seed, samples, numbers, flags, kind, unit):
    """And each cell is dealt evenly."""
    rng = np.random.default_rng(seed)
    X = np.c_[rng.normal(size=(samples, numbers)), rng.integers(0, 2, (samples, flags))].astype(kind)
    labels, groups, weights = rng.integers(0, 2, samples), rng.integers(0, 3, samples), np.ones(samples)
    noise = 1e-7 * rng.normal(size=X.shape) * (np.arange(numbers + flags) < numbers)
    folds = content_folds(Samples(X, labels, groups), weights, deals=2)
    again = content_folds(Samples(((X + noise) * unit).astype(kind), labels, groups), weights, deals=2)
    for fold, other in zip(folds, again, strict=True):
        assert (fold != other).mean() <= 0.02
        sizes = np.bincount((labels * 3 + groups) * 6 + fold, minlength=36).reshape(6, 6)
        assert np.ptp(sizes, axis=1).max() <= 1
    assert len(folds) == 2
    assert (folds[0] != folds[1]).any()


@pytest.mark.parametrize("seed", range(3))
def test_the_order_of_labels_and_groups_deals_nobody_to_another_fold(seed):
    """Also where people who are alike have as many of one label as of the other."""
    rng = np.random.default_rng(seed)
    X, y, z = rng.integers(0, 9, (1200, 3)).astype(float), rng.integers(0, 3, 1200), rng.integers(0, 2, 1200)
    tables = Samples(X, y, z), Samples(X, 2 - y, 1 - z)
    folds, again = (content_folds(each, np.ones(1200), deals=2) for each in tables)
    np.testing.assert_array_equal(folds, again)
