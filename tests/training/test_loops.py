"""The linear model in NumPy, and as a module by autograd: the same training, with and without weights."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.refusals import refused

from fairsieve import Samples, fit
from fairsieve.training.models import LogisticRegression
from fairsieve.training.trainer import SELECTION_METHODS

METHODS = list(SELECTION_METHODS)
NOTIONS = ["equalized_odds", "demographic_parity", "equal_opportunity"]
SHORT = {"epochs": 12, "warmup_epochs": 4, "clean_ratio": 0.9, "batch_size": 50, "step_size": 0.01}


@pytest.fixture(scope="module")
def data(noisy):
    return Samples(noisy.features.astype(np.float64), noisy.labels, noisy.groups)


@pytest.fixture(scope="module")
def weights(data):
    return np.random.default_rng(0).integers(1, 9, len(data)).astype(float)


def module(columns=3, classes=2):
    """The linear model as a module; it starts with the weights of ``fit(None, …)``."""
    return lambda generator: LogisticRegression(columns, classes, generator=generator).double()


def parameters(fitted):
    return torch.cat([p.detach().flatten() for p in fitted.model.parameters()]).numpy()


def same(one, other):
    """Require the same selections, and numbers that agree within rounding."""
    assert parameters(one) == pytest.approx(parameters(other), abs=1e-6)  # a module has single precision
    assert one.indices.tolist() == other.indices.tolist()
    assert one.history.counts.tolist() == other.history.counts.tolist()
    assert one.history.ratios == pytest.approx(other.history.ratios)
    assert one.history.cell_losses == pytest.approx(other.history.cell_losses, abs=1e-9)
    for part in ("train", "evaluation"):
        mine, theirs = (getattr(each.history, part) for each in (one, other))
        if mine is not None:
            assert mine.accuracy.tolist() == theirs.accuracy.tolist()
            for notion, values in mine.disparity.items():
                assert values == pytest.approx(theirs.disparity[notion])


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("fairness", NOTIONS)
@pytest.mark.parametrize("signal", ["loss", "error"])
def test_both_loops_are_the_same(data, method, fairness, signal):
    options = SHORT | {"fairness": fairness, "signal": signal, "evaluation": data}
    same(*(fit(model, data, method, **options) for model in (None, module())))


@pytest.mark.parametrize("fairness", NOTIONS[:2])
def test_many_classes_groups_and_zeros(many, fairness):
    weights = np.random.default_rng(0).integers(0, 4, len(many))
    options = {"fairness": fairness, "sample_weight": weights, "batch_size": 37, "epochs": 30}
    few = Samples(many.features[:, :3], many.labels, many.groups, missing="own")
    same(*(fit(model, few, **(SHORT | options)) for model in (None, module(3, 3))))


@settings(max_examples=40)
@given(st.integers(0, 2**63 - 1), st.integers(1, 100), st.integers(2, 5))
def test_the_linear_model_starts_with_the_weights_of_torch(seed, columns, classes):
    data = Samples(np.zeros((5, columns)), np.arange(5) % classes, np.zeros(5), classes=range(classes))
    options = {"epochs": 1, "learning_rate": 1e-9, "seed": seed}
    started = module(columns, classes)(torch.Generator().manual_seed(seed)).parameters()
    started = torch.cat([each.detach().flatten() for each in started])
    assert parameters(fit(None, data, "lr", **options)) == pytest.approx(started.numpy(), abs=3e-7)


@pytest.mark.parametrize("classes", [2, 3])
def test_the_model_as_a_module_predicts_the_same(data, classes):
    labels = np.digitize(data.features[:, 0], [-1, 1][: classes - 1])
    fitted = fit(None, Samples(data.features, labels, data.groups), **SHORT)
    chances = fitted.predict_proba(data.features)
    with torch.no_grad():
        outputs = fitted.model.double()(torch.from_numpy(data.features))
    outputs = outputs if classes > 2 else torch.stack([0 * outputs, outputs], 1)
    assert chances == pytest.approx(torch.softmax(outputs, 1).numpy(), abs=1e-6)
    assert fitted.predict(data.features).tolist() == chances.argmax(axis=1).tolist()
    assert np.isin(fitted.predict_proba(np.array([[1e300] * 3, [-1e300] * 3])), [0, 1]).all()
    refused(r"features must have the 3 columns .*got the shape \(5, 2\)", fitted.predict, np.zeros((5, 2)))


KINDS = pytest.mark.parametrize("model", [None, module()], ids=["linear", "module"])


@pytest.mark.parametrize("method", ["lr", "sample-selection"])
def test_weights_count_in_every_loop(data, weights, method):
    one, other = (fit(model, data, method, sample_weight=weights, **SHORT) for model in (None, module()))
    same(one, other)
    assert np.abs(parameters(fit(None, data, method, **SHORT)) - parameters(one)).max() > 1e-5


@KINDS
def test_only_the_proportions_of_weights_matter(data, weights, model):
    plain = parameters(fit(model, data, **SHORT)).tolist()
    assert parameters(fit(model, data, sample_weight=np.full(200, 7), **SHORT)).tolist() == plain
    one, four = (fit(model, data, sample_weight=k * weights, **SHORT) for k in (1, 4))
    assert parameters(one).tolist() == parameters(four).tolist()


@KINDS
def test_a_sample_of_weight_zero_is_left_out(data, weights, model):
    present = np.random.default_rng(1).random(200) < 0.8
    rows = np.flatnonzero(present)
    part = fit(model, data.take(rows), sample_weight=weights[rows], **SHORT)
    whole = fit(model, data, sample_weight=np.where(present, weights, 0), **SHORT)
    assert parameters(whole).tolist() == parameters(part).tolist()
    assert whole.indices.tolist() == rows[part.indices].tolist()


def test_a_full_batch_step_is_on_the_weighted_mean_loss(data, weights):
    model = torch.nn.Linear(3, 2).double()
    options = {"epochs": 1, "batch_size": 200, "learning_rate": 0.01}
    fitted = fit(model, data, "lr", sample_weight=weights, **options)
    X, y = torch.from_numpy(data.features), torch.from_numpy(data.labels)
    losses = torch.nn.functional.cross_entropy(model(X), y, reduction="none")
    (losses * torch.from_numpy(weights)).sum().div(weights.sum()).backward()
    torch.optim.Adam(model.parameters(), lr=0.01).step()
    for found, expected in zip(fitted.model.parameters(), model.parameters(), strict=True):
        torch.testing.assert_close(found, expected)


@pytest.mark.parametrize(("sample_weight", "message"), [
    (np.ones(199), r"one number per sample, the shape \(200,\); got \(199,\)"),
    (np.full(200, np.nan), "must be finite and not negative"),
    (["1"] * 200, "sample_weight must be numbers"),
])  # fmt: skip
def test_bad_weights_are_named_in_the_error(data, sample_weight, message):
    refused(message, fit, None, data, sample_weight=sample_weight, **SHORT)
