"""Laws of splitting, over any samples."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.refusals import refused

from fairsieve import Samples
from fairsieve.data import split

shares = st.sampled_from([0.0, 0.1, 1 / 11, 0.2, 1 / 3, 0.5, 0.9, 0.99])
seeds = st.integers(0, 2**32 - 1)


@st.composite
def any_samples(draw):
    """Samples with cells of any size, from none to many; each row is its own number."""
    sizes = draw(st.lists(st.integers(0, 40), min_size=1, max_size=9))
    cells = np.repeat(np.arange(len(sizes)), sizes)
    np.random.default_rng(draw(seeds)).shuffle(cells)
    rows = np.arange(len(cells), dtype=np.float64)[:, None]
    return Samples(rows, cells // 3, cells % 3, classes=[0, 1, 2], group_values=[0, 1, 2])


def alternating(features, **options):
    """Samples of two cells, in turn."""
    turns = np.arange(len(features)) % 2
    return Samples(features, turns, turns, **options)


def parts_of(splits):
    return splits.train, splits.test, splits.validation


@given(any_samples(), shares, shares, seeds)
def test_the_parts_partition_the_samples(samples, test, validation, seed):
    parts = parts_of(split(samples, test=test, validation=validation, seed=seed, scale=False))
    rows = np.concatenate([part.features[:, 0] for part in parts]).astype(int)
    assert sorted(rows.tolist()) == list(range(len(samples)))
    for part in parts:
        own = part.features[:, 0].astype(int)
        np.testing.assert_array_equal(part.labels, samples.labels[own])
        np.testing.assert_array_equal(part.groups, samples.groups[own])
        assert (np.diff(own) > 0).all()
        assert part.cells.shape == samples.cells.shape


@given(any_samples(), shares, shares, seeds)
def test_every_cell_gets_its_share_within_one(samples, test, validation, seed):
    splits = split(samples, test=test, validation=validation, seed=seed, scale=False)
    before = samples.cells.counts
    tested = splits.test.cells.counts
    validated = splits.validation.cells.counts
    assert (np.abs(tested - before * test) < 1 + 1e-6).all()
    assert (np.abs(validated - (before - tested) * validation) < 1 + 1e-6).all()
    assert (splits.train.cells.counts[before > 0] > 0).all()


@given(any_samples(), shares, seeds)
def test_the_total_is_the_share_where_cells_allow_it(samples, test, seed):
    counts = split(samples, test=test, seed=seed, scale=False).test.cells.counts
    before = samples.cells.counts
    target = round(len(samples) * test)
    up = np.array([-int(-Fraction(int(n)) * Fraction(test).limit_denominator(100) // 1) for n in before.flat])
    full = counts.reshape(-1) >= np.minimum(up, np.maximum(before.reshape(-1) - 1, 0))
    assert counts.sum() == target or (counts.sum() < target and full.all())


@given(any_samples(), seeds)
def test_the_seed_decides(samples, seed):
    once, again = split(samples, seed=seed), split(samples, seed=np.random.default_rng(seed))
    for a, b in zip(parts_of(once), parts_of(again), strict=True):
        np.testing.assert_array_equal(a.features, b.features)
        np.testing.assert_array_equal(a.labels, b.labels)


@given(any_samples(), seeds)
def test_scaling_is_learnt_on_the_training_part(samples, seed):
    raw, scaled = split(samples, seed=seed, scale=False), split(samples, seed=seed)
    if not len(samples):
        return
    if raw.train.features.max() > 1 and len(raw.train) > 1:
        assert abs(scaled.train.features.mean()) < 1e-9
        assert scaled.train.features.std() == pytest.approx(1)


def test_indicators_stay_and_constants_are_safe():
    rng = np.random.default_rng(0)
    indicator, number = rng.integers(0, 2, 200), rng.normal(50, 9, 200)
    features = np.column_stack([indicator, number, np.full(200, 0.1), np.zeros(200)]).astype(np.float32)
    splits = split(Samples(features, indicator, indicator))
    for part in parts_of(splits):
        assert part.features.dtype == np.float32
        assert set(np.unique(part.features[:, 0])) == {0.0, 1.0}
        assert (part.features[:, 2:] == 0).all()
    assert splits.train.features[:, 1].mean() == pytest.approx(0, abs=1e-5)
    assert splits.train.features[:, 1].std() == pytest.approx(1, abs=1e-5)


def test_splitting_changes_neither_samples_nor_the_global_random_state():
    samples = alternating(np.arange(100.0)[:, None])
    before = np.random.get_state()  # noqa: NPY002
    one, other = (split(samples, seed=seed, scale=False).test.features for seed in (0, 1))
    assert not np.array_equal(one, other)
    after = np.random.get_state()  # noqa: NPY002
    assert (before[1].tolist(), before[2:]) == (after[1].tolist(), after[2:])
    split(samples)
    assert samples.features[:, 0].tolist() == list(range(100))


def test_names_and_images_go_along():
    images = alternating(np.arange(320.0).reshape(20, 4, 4))
    assert split(images).test.features.shape == (4, 4, 4)
    named = alternating(np.arange(20.0)[:, None], feature_names=("x",))
    assert split(named).train.feature_names == ("x",)


@pytest.mark.parametrize("value", [-0.1, 1.0, 1.5, float("nan")])
def test_shares_are_checked(value):
    samples = alternating(np.zeros((4, 1)))
    refused(f"test must be a share, at least 0 and below 1; got {value}", split, samples, test=value)
    refused(f"validation must be a share, .*; got {value}", split, samples, validation=value)
