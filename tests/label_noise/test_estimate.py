"""The clean ratio found from the data, and training by what was found."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairsieve import InvalidInputError, estimate_clean_ratio
from fairsieve.data import flip_group_targeted, flip_margin, flip_uniform, make_synthetic
from fairsieve.label_noise.correction import train_auto
from fairsieve.label_noise.estimate import CleanRatioEstimate
from fairsieve.samples import Samples

DATA = make_synthetic(2000, seed=0)
SHORT = {"epochs": 6, "warmup_epochs": 2, "batch_size": 100, "learning_rate": 0.001}


def estimate(labels, data=DATA, **options):
    return estimate_clean_ratio(
        data.features, labels, **{"sensitive_features": data.groups, "random_state": 0} | options
    )


@pytest.fixture(scope="module")
def random():
    return flip_uniform(DATA, 0.2, seed=0), estimate(flip_uniform(DATA, 0.2, seed=0).labels)


@pytest.fixture(scope="module")
def aimed():
    noisy = flip_margin(DATA, 0.1)
    return noisy, estimate(noisy.labels)


def test_random_flips(random):
    noisy, found = random
    assert not found.aimed
    assert found.clean_ratio == pytest.approx(0.8, abs=0.06)
    assert found.interval[0] <= found.clean_ratio <= found.interval[1]
    assert found.noise.shape == found.flip_rates.shape == DATA.cells.shape
    assert found.wrong[noisy.flipped].mean() > 2 * found.wrong[~noisy.flipped].mean()


def test_none():
    found = estimate(DATA.labels)
    assert found.clean_ratio > 0.93
    assert found.interval[1] == 1.0 or found.interval[1] > 0.97


def test_flips_in_one_group_are_told_from_the_others():
    rates = np.zeros(DATA.cells.shape)
    rates[:, 1] = 0.3
    found = estimate(flip_uniform(DATA, rates, seed=1).labels)
    assert found.flip_rates[:, 1].mean() > found.flip_rates[:, 0].mean() + 0.15


def test_aimed_flips(aimed):
    noisy, found = aimed
    assert found.aimed
    assert found.clean_ratio == pytest.approx(0.9, abs=0.03)
    assert found.wrong[noisy.flipped].mean() > 0.8
    assert found.wrong[~noisy.flipped].mean() < 0.1
    assert estimate(flip_group_targeted(DATA, 0.1).labels).aimed


def test_names_of_classes_and_groups_do_not_matter(random):
    noisy, found = random
    names = np.array(["no", "yes"])
    again = estimate(names[noisy.labels], sensitive_features=np.array(["a", "b"])[DATA.groups])
    assert again.clean_ratio == found.clean_ratio
    assert again.wrong == pytest.approx(found.wrong)


def test_weights_of_zero_are_not_there(random):
    noisy, _ = random
    weights = np.ones(2000)
    weights[1500:] = 0
    part = Samples(DATA.features[:1500], noisy.labels[:1500], DATA.groups[:1500])
    whole = estimate(noisy.labels, sample_weight=weights)
    assert whole.clean_ratio == pytest.approx(estimate(part.labels, part).clean_ratio)


@pytest.mark.parametrize("n", [2, 3, 10])
def test_a_handful_of_samples(n):
    rng = np.random.default_rng(n)
    labels = np.arange(n) % 2
    found = estimate_clean_ratio(rng.normal(size=(n, 2)), labels, random_state=0)
    assert 0.5 <= found.clean_ratio <= 1
    assert np.isfinite(found.true_class).all()
    assert set(labels[found.keep(0)]) == {0, 1}


def test_separable_and_constant_features():
    x = np.repeat([-1.0, 1.0], 50)
    found = estimate_clean_ratio(np.column_stack([x, np.ones(100)]), (x > 0).astype(int))
    assert found.clean_ratio > 0.9
    constant = estimate_clean_ratio(np.ones((60, 1)), np.arange(60) % 2)
    assert np.isfinite(constant.true_class).all()


def test_bad_input_is_named():
    with pytest.raises(InvalidInputError, match="y must have two or more classes"):
        estimate_clean_ratio(np.ones((4, 1)), [1, 1, 1, 1])
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        estimate_clean_ratio(np.ones((4, 1)), [1, 0])


@settings(max_examples=50, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), n=st.integers(2, 200), groups=st.integers(1, 3))
def test_keeping_follows_the_chances(seed, n, groups):
    rng = np.random.default_rng(seed)
    cells = Samples(np.zeros((n, 1)), np.arange(n) % 2, rng.integers(0, groups, n)).cells
    right = rng.random(n)
    true_class = np.where(cells.label_codes[:, None] == [0, 1], right[:, None], 1 - right[:, None])
    rates = np.zeros(cells.shape)
    found = CleanRatioEstimate(0.9, (0.8, 1.0), rates, rates, False, True, true_class, cells)
    kept = found.keep(seed)
    assert (np.diff(kept) > 0).all()
    assert set(cells.label_codes[kept]) == {0, 1}
    for code in np.unique(cells.codes):
        expected = right[cells.codes == code].sum()
        assert abs(np.sum(cells.codes[kept] == code) - expected) < 2 + 1  # spread evenly, one rightest


def test_training_walks_where_flips_are_aimed_and_thins_where_they_are_random(random, aimed):
    for (noisy, found), walks in ((random, False), (aimed, True)):
        data = DATA.with_labels(noisy.labels)
        fitted = train_auto(None, data, found, seed=0, **SHORT)
        assert fitted.method == "fairsieve"
        if walks:
            assert fitted.indices.tolist() == found.believed.tolist()
        else:
            assert set(fitted.indices) <= set(found.keep(0))
        dropped = np.setdiff1d(np.arange(2000), fitted.indices)
        assert noisy.flipped[dropped].mean() > noisy.flipped.mean()
        weights = np.ones(2000)
        same = train_auto(None, data, found, seed=0, sample_weight=weights, **SHORT)
        assert same.indices.tolist() == fitted.indices.tolist()
