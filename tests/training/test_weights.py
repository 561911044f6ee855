"""Sample weights in training, of the linear model and of modules."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from fairsieve import Samples, fit
from fairsieve.data import make_synthetic
from fairsieve.errors import InvalidInputError
from fairsieve.training.models import LogisticRegression

SHORT = {"epochs": 8, "warmup_epochs": 3, "clean_ratio": 0.9, "batch_size": 50, "step_size": 0.01}


@pytest.fixture(scope="module")
def data():
    drawn = make_synthetic(300, seed=0)
    return Samples(drawn.features.astype(np.float64), drawn.labels, drawn.groups)


@pytest.fixture(scope="module")
def weights():
    return np.random.default_rng(0).integers(1, 9, 300).astype(float)


def parameters(fitted):
    return torch.cat([p.detach().flatten() for p in fitted.model.parameters()]).numpy()


def module(n_classes=2):
    """The linear model as a module; it starts with the weights of ``fit(None, …)``."""
    return lambda generator: LogisticRegression(3, n_classes, generator=generator).double()


KINDS = pytest.mark.parametrize("model", [None, module()], ids=["linear", "module"])


@pytest.mark.parametrize("method", ["lr", "fairsieve"])
def test_the_linear_loop_equals_autograd(data, weights, method):
    one, other = (fit(model, data, method, sample_weight=weights, **SHORT) for model in (None, module()))
    assert parameters(one) == pytest.approx(parameters(other), abs=1e-6)
    assert one.indices.tolist() == other.indices.tolist()
    plain = fit(None, data, method, **SHORT)
    assert np.abs(parameters(plain) - parameters(one)).max() > 1e-5


def test_the_linear_loop_equals_autograd_for_many_classes(data, weights):
    many = Samples(data.features, np.digitize(data.features[:, 0], [-1, 1]), data.groups)
    one, other = (fit(model, many, sample_weight=weights, **SHORT) for model in (None, module(3)))
    assert parameters(one) == pytest.approx(parameters(other), abs=1e-6)


@KINDS
def test_only_the_proportions_of_weights_matter(data, weights, model):
    plain = parameters(fit(model, data, **SHORT)).tolist()
    assert parameters(fit(model, data, sample_weight=np.full(300, 7), **SHORT)).tolist() == plain
    one, four = (fit(model, data, sample_weight=k * weights, **SHORT) for k in (1, 4))
    assert parameters(one).tolist() == parameters(four).tolist()


@KINDS
def test_a_sample_of_weight_zero_is_left_out(data, weights, model):
    present = np.random.default_rng(1).random(300) < 0.8
    rows = np.flatnonzero(present)
    part = fit(model, data.take(rows), sample_weight=weights[rows], **SHORT)
    whole = fit(model, data, sample_weight=np.where(present, weights, 0), **SHORT)
    assert parameters(whole).tolist() == parameters(part).tolist()
    assert whole.indices.tolist() == rows[part.indices].tolist()
    assert whole.history.times_selected[rows].tolist() == part.history.times_selected.tolist()
    assert not whole.history.times_selected[~present].any()


def test_a_full_batch_step_is_on_the_weighted_mean_loss(data, weights):
    model = torch.nn.Linear(3, 2).double()
    options = {"epochs": 1, "batch_size": 300, "learning_rate": 0.01}
    fitted = fit(model, data, "lr", sample_weight=weights, **options)
    losses = torch.nn.functional.cross_entropy(
        model(torch.from_numpy(data.features)), torch.from_numpy(data.labels), reduction="none"
    )
    (losses * torch.from_numpy(weights)).sum().div(weights.sum()).backward()
    torch.optim.Adam(model.parameters(), lr=0.01).step()
    for found, expected in zip(fitted.model.parameters(), model.parameters(), strict=True):
        torch.testing.assert_close(found, expected)


@pytest.mark.parametrize(
    ("sample_weight", "message"),
    [
        (np.zeros(300), "sample_weight must be above zero for some sample; all weights are zero"),
        (np.ones(299), r"one number per sample, the shape \(300,\); got \(299,\)"),
        (np.full(300, -1.0), "must be finite and not negative"),
        (np.full(300, np.nan), "must be finite and not negative"),
        (["1"] * 300, "sample_weight must be numbers"),
    ],
)
def test_bad_weights_are_named_in_the_error(data, sample_weight, message):
    with pytest.raises(InvalidInputError, match=message):
        fit(None, data, sample_weight=sample_weight, **SHORT)
