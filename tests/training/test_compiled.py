"""The compiled loop of the linear model does what the NumPy loop does."""

from __future__ import annotations

import numpy as np
import pytest

from fairsieve import Samples, fit
from fairsieve.data import make_synthetic
from fairsieve.errors import InvalidInputError
from fairsieve.training.settings import SELECTION_METHODS

pytest.importorskip("numba")

SHORT = {"epochs": 12, "warmup_epochs": 4, "clean_ratio": 0.9, "batch_size": 50, "step_size": 0.01}
NOTIONS = ("equalized_odds", "demographic_parity", "equal_opportunity")


def same(data, method="fairsieve", **options):
    """Train in both ways; require the same selections, and numbers that agree within rounding."""
    one, other = (fit(None, data, method, compiled=c, **(SHORT | options)) for c in (False, True))
    assert one.predictor.coef == pytest.approx(other.predictor.coef, rel=1e-9, abs=1e-12)
    assert one.indices.tolist() == other.indices.tolist()
    assert one.history.counts.tolist() == other.history.counts.tolist()
    assert one.history.times_selected.tolist() == other.history.times_selected.tolist()
    assert one.history.ratios == pytest.approx(other.history.ratios)
    assert one.history.cell_losses == pytest.approx(other.history.cell_losses, rel=1e-9)
    assert one.history.train.accuracy.tolist() == other.history.train.accuracy.tolist()
    if one.history.evaluation is not None:
        assert one.history.evaluation.accuracy.tolist() == other.history.evaluation.accuracy.tolist()
    return other


@pytest.fixture(scope="module")
def many():
    """Three classes and three groups, some samples without one, and mostly zeros in ten columns."""
    rng = np.random.default_rng(1)
    features = rng.normal(size=(300, 10)) * (rng.random((300, 10)) < 0.3)
    labels = np.array(["a", "b", "c"])[np.digitize(features[:, 0] + rng.normal(size=300), [-0.5, 0.5])]
    groups = rng.choice(["x", "y", "z", None], 300)
    return Samples(features, labels, groups, missing="own")


@pytest.mark.parametrize("method", SELECTION_METHODS)
@pytest.mark.parametrize("notion", NOTIONS)
@pytest.mark.parametrize("signal", ["loss", "error"])
def test_every_method_and_notion(noisy, method, notion, signal):
    same(noisy, method, fairness=notion, signal=signal, evaluation=noisy, average_last=3, count_offset=1)


@pytest.mark.parametrize("notion", NOTIONS[:2])
def test_many_classes_groups_and_zeros(many, notion):
    weights = np.random.default_rng(0).integers(0, 4, len(many))
    same(many, fairness=notion, sample_weight=weights, batch_size=37, epochs=30)


@pytest.mark.parametrize("notion", NOTIONS)
@pytest.mark.parametrize("method", ["lr", "itlm"])
def test_the_penalty(noisy, notion, method):
    same(noisy, method, fairness=notion, penalty_weight=0.5)


def test_equal_losses_are_taken_in_the_order_of_the_samples():
    data = make_synthetic(40, seed=0)
    twice = data.take(np.tile(np.arange(40), 3))
    same(twice, clean_ratio=0.5)


def test_only_the_linear_model_is_compiled(noisy):
    torch = pytest.importorskip("torch")
    with pytest.raises(InvalidInputError, match="compiled=True takes the linear model"):
        fit(torch.nn.Linear(3, 2), noisy, compiled=True, **SHORT)
