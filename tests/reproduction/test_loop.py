"""The paper's loop for the linear model: in compiled code, with its penalty, the same as in NumPy."""

import numpy as np
import pytest

from fairsieve import Samples, fit
from fairsieve.training.fit import run_training
from fairsieve.training.trainer import SELECTION_METHODS, Settings
from fairsieve_reproduction.methods.loop import PaperSpec, PaperTrainer, fit_paper

NOTIONS = ["equalized_odds", "demographic_parity", "equal_opportunity"]
SHORT = {"epochs": 12, "warmup_epochs": 4, "clean_ratio": 0.9, "batch_size": 50, "step_size": 0.01}


def same(one, other):
    """Require the same selections, and numbers that agree within rounding."""
    assert one.predictor.coef == pytest.approx(other.predictor.coef, rel=1e-9, abs=1e-12)
    assert one.indices.tolist() == other.indices.tolist()
    assert one.history.counts.tolist() == other.history.counts.tolist()
    assert one.history.ratios == pytest.approx(other.history.ratios)
    assert one.history.cell_losses == pytest.approx(other.history.cell_losses, abs=1e-9)
    assert one.history.train.accuracy.tolist() == other.history.train.accuracy.tolist()


def compile_too(data, method="sample-selection", **options):
    """Train in NumPy and compiled; return the first."""
    pytest.importorskip("numba")
    one, other = (fit_paper(data, method, compiled=c, **(SHORT | options)) for c in (False, True))
    same(one, other)
    return one


@pytest.mark.parametrize("method", SELECTION_METHODS)
@pytest.mark.parametrize("fairness", NOTIONS)
def test_the_compiled_loop_and_fit_are_the_same(noisy, method, fairness):
    same(compile_too(noisy, method, fairness=fairness), fit(None, noisy, method, fairness=fairness, **SHORT))


@pytest.mark.parametrize("fairness", NOTIONS[:2])
def test_many_classes_groups_and_zeros(many, fairness):
    """In single precision, as every table of the paper is: each kind of number is compiled for ten seconds."""
    few = Samples(many.features.astype(np.float32), many.labels, many.groups, missing="own")
    compile_too(few, fairness=fairness, batch_size=37, epochs=30, average_last=3)


@pytest.mark.parametrize("offset", [0, 1])
def test_the_authors_offset_is_compiled(noisy, offset):
    pytest.importorskip("numba")
    method, settings = SELECTION_METHODS["sample-selection"], Settings.of(SHORT)
    spec = PaperSpec(data=noisy, method=method, settings=settings, count_offset=offset)
    one, other = (run_training(PaperTrainer(spec, compiled=c)) for c in (False, True))
    same(one, other)
    if offset:
        assert one.history.ratios.tolist() != fit(None, noisy, **SHORT).history.ratios.tolist()


@pytest.mark.parametrize("fairness", NOTIONS)
@pytest.mark.parametrize("method", ["lr", "itlm"])
def test_the_penalty_is_compiled(noisy, fairness, method):
    compile_too(noisy, method, fairness=fairness, penalty_weight=0.5)


def test_equal_losses_are_taken_in_the_order_of_the_samples(noisy):
    compile_too(noisy.take(np.tile(np.arange(40), 3)), clean_ratio=0.5)


def test_a_penalty_makes_the_covariance_small(noisy):
    options = {"epochs": 300, "fairness": "demographic_parity", "learning_rate": 0.005}

    def covariance(weight):
        model = fit_paper(noisy, "lr", penalty_weight=weight, **options).predictor
        decision = noisy.features @ model.coef[0] + model.intercept
        return abs(np.cov(noisy.groups, decision, bias=True)[0, 1])

    assert covariance(5.0) < covariance(0.0) / 5
