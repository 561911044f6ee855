"""The synthetic data, and the authors' arrays."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal
from sklearn.linear_model import LogisticRegression
from tests.support.refusals import refused

from fairsieve import demographic_parity_disparity, equalized_odds_disparity
from fairsieve.data import load_authors_arrays, make_synthetic, synthetic_splits

# The paper's two normal distributions: mean and covariance.
POSITIVE, NEGATIVE = ([1, 1], [[5, 1], [1, 5]]), ([-1, -1], [[10, 1], [1, 3]])


def _density(points, mean, covariance):
    return multivariate_normal(mean, covariance).pdf(points)


def test_same_seed_same_data():
    one, two, other = make_synthetic(100, seed=1), make_synthetic(100, seed=1), make_synthetic(100, seed=2)
    assert (one.features == two.features).all()
    assert (one.labels == two.labels).all()
    assert (one.features != other.features).any()


def test_it_follows_the_papers_distributions():
    data = make_synthetic(60_000, seed=0)
    assert data.labels.mean() == pytest.approx(0.5, abs=0.01)
    for label, (mean, covariance) in ((1, POSITIVE), (0, NEGATIVE)):
        points = data.features[data.labels == label, :2].astype(float)
        assert points.mean(axis=0) == pytest.approx(mean, abs=0.06)
        assert np.cov(points.T) == pytest.approx(np.array(covariance), abs=0.2)
    assert (data.features[:, 2] == data.groups).all()
    assert data.groups.mean() == pytest.approx(0.82, abs=0.01)


def test_the_rotation_of_the_arrays_and_the_printed_one():
    """Log-likelihood of z given x under either rotation is best for the one that drew it."""

    def likelihood(data, angle):
        cos, sin = np.cos(angle), np.sin(angle)
        x = data.features[:, :2].astype(float)
        turned = np.column_stack([x[:, 0] * cos - x[:, 1] * sin, x[:, 0] * sin + x[:, 1] * cos])
        a, b = 7 * _density(turned, *POSITIVE), _density(turned, *NEGATIVE)
        p = np.where(data.groups == 1, a / (a + b), b / (a + b))
        return np.log(p).mean()

    for rotation, sign in (("arrays", -1), ("printed", 1)):
        data = make_synthetic(5000, seed=0, rotation=rotation)
        assert likelihood(data, sign * np.pi / 5) > likelihood(data, -sign * np.pi / 5) + 0.05


def test_plain_regression_is_as_expected_on_clean_labels():
    scores = []
    for seed in range(12):
        parts = synthetic_splits(seed)
        assert [len(part) for part in (parts.train, parts.test, parts.validation)] == [2000, 1000, 200]
        model = LogisticRegression().fit(parts.train.features, parts.train.labels)
        guessed, groups = model.predict(parts.test.features), parts.test.groups
        disparities = equalized_odds_disparity, demographic_parity_disparity
        wide = [each(parts.test.labels, guessed, sensitive_features=groups) for each in disparities]
        scores.append(((guessed == parts.test.labels).mean(), *wide))
    accuracy, odds, parity = np.mean(scores, axis=0)
    assert accuracy == pytest.approx(0.714, abs=0.01)
    assert odds == pytest.approx(0.24, abs=0.04)
    assert parity == pytest.approx(0.25, abs=0.04)


def write_arrays(folder, parts, noisy):
    """Write a draw in the layout of the authors' arrays."""
    for name, part in (("train", parts.train), ("test", parts.test), ("val", parts.validation)):
        np.save(folder / f"xz_{name}.npy", part.features)
        np.save(folder / f"y_{name}.npy", part.labels * 2 - 1)
        np.save(folder / f"z_{name}.npy", part.groups)
    for name in ("general", "grouptarget"):
        np.save(folder / f"y_noise_{name}.npy", noisy * 2 - 1)


@pytest.fixture
def arrays(tmp_path):
    parts = synthetic_splits(0)
    write_arrays(tmp_path, parts, 1 - parts.train.labels)
    return tmp_path


def test_the_authors_layout_is_read(arrays):
    splits, noisy = load_authors_arrays(arrays)
    ours = synthetic_splits(0)
    assert (splits.train.features == ours.train.features).all()
    assert (splits.test.labels == ours.test.labels).all()
    assert (splits.validation.groups == ours.validation.groups).all()
    assert set(noisy) == {"general", "group-targeted"}
    assert (noisy["general"] == 1 - ours.train.labels).all()


@pytest.mark.parametrize(("name", "content", "message"), [
    ("y_test.npy", np.full(1000, 7), r"y_test\.npy must hold 1000 numbers, .*; got 1000, such as \[7\]"),
    ("z_test.npy", np.zeros(3), r"z_test\.npy must hold 1000 numbers.*; got 3"),
    ("y_noise_general.npy", np.ones(3), "must hold 2000 numbers.*; got 3"),
    ("xz_train.npy", None, r"xz_train\.npy must be a NumPy"),  # half of it
])  # fmt: skip
def test_bad_arrays_are_named(arrays, name, content, message):
    if content is None:
        (arrays / name).write_bytes((arrays / name).read_bytes()[:200])
    else:
        np.save(arrays / name, content)
    refused(message, load_authors_arrays, arrays)
