"""The same data give the same verdict, in whatever order, form or units they come."""

import numpy as np
import pytest
from scipy import sparse

from fairsieve import estimate_clean_ratio
from fairsieve.data import flip_uniform, make_synthetic

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
    times = np.random.default_rng(0).integers(1, 4, 3000)
    copies = np.repeat(np.arange(3000), times)
    labels, groups = NOISY[copies], DATA.groups[copies]
    weighted = estimate(sample_weight=times)
    check(estimate(DATA.features[copies], labels, groups), weighted, copies)


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
