"""The linear model in NumPy equals the torch module, and starts from the same weights."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from hypothesis import given
from hypothesis import strategies as st

from fairsieve.errors import InvalidInputError
from fairsieve.training import linear_model
from fairsieve.training.linear_model import LinearModel, initial_parameters
from fairsieve.training.models import LogisticRegression

seeds = st.integers(0, 2**63 - 1)


def torch_parameters(features, classes, seed):
    module = LogisticRegression(features, classes, generator=torch.Generator().manual_seed(seed))
    return torch.cat([p.detach().flatten() for p in module.parameters()]).double().numpy()


@given(seeds, st.integers(1, 15))
def test_few_initial_weights_are_those_of_torch_exactly(seed, features):
    assert initial_parameters(features, 2, seed).tolist() == torch_parameters(features, 2, seed).tolist()


@given(seeds, st.integers(1, 100), st.integers(2, 5))
def test_many_initial_weights_are_those_of_torch_within_rounding(seed, features, classes):
    expected = torch_parameters(features, classes, seed)
    assert initial_parameters(features, classes, seed) == pytest.approx(expected, abs=3e-7)


@pytest.mark.parametrize("classes", [2, 3])
def test_predictions_equal_those_of_the_module(classes):
    rng = np.random.default_rng(0)
    features = rng.normal(size=(50, 4))
    module = LogisticRegression(4, classes, generator=torch.Generator().manual_seed(3)).double()
    flat = torch.cat([p.detach().flatten() for p in module.parameters()]).numpy()
    model = LinearModel.from_parameters(flat, 1 if classes == 2 else classes)
    with torch.no_grad():
        outputs = module(torch.from_numpy(features))
    assert model.decision(features) == pytest.approx(outputs.numpy())
    chances = torch.softmax(outputs if classes > 2 else torch.stack([0 * outputs, outputs], 1), 1).numpy()
    assert model.probabilities(features) == pytest.approx(chances)
    assert model.predict_codes(features).tolist() == chances.argmax(axis=1).tolist()


@given(st.integers(1, 4), st.sampled_from([1, 3, 4]), seeds)
def test_parameters_survive_a_round_trip_through_the_models(features, outputs, seed):
    parameters = np.random.default_rng(seed).normal(size=outputs * (features + 1))
    model = LinearModel.from_parameters(parameters, outputs)
    assert model.parameters.tolist() == parameters.tolist()
    module = LogisticRegression.from_linear(model)
    flat = torch.cat([p.detach().flatten() for p in module.parameters()]).numpy()
    assert flat == pytest.approx(parameters, rel=1e-6, abs=1e-6)


@pytest.mark.parametrize("kind", [sp.csr_matrix, sp.csr_array, np.asfortranarray, np.float32])
def test_sparse_and_chunked_features_give_the_same_decision(kind, monkeypatch):
    features = np.round(np.random.default_rng(0).normal(size=(50, 3)) * 4) / 4
    model = LinearModel(np.array([[0.5, -1.0, 2.0]]), np.array([0.25]))
    expected = features @ [0.5, -1.0, 2.0] + 0.25
    monkeypatch.setattr(linear_model, "CHUNK", 7)
    assert model.decision(kind(features)) == pytest.approx(expected)


def test_extreme_logits_give_finite_probabilities():
    model = LinearModel(np.array([[1.0]]), np.array([0.0]))
    assert model.probabilities(np.array([[1e308], [-1e308], [0.0]])).tolist() == [[0, 1], [1, 0], [0.5, 0.5]]


def test_other_columns_are_refused():
    model = LinearModel(np.zeros((1, 3)), np.zeros(1))
    with pytest.raises(InvalidInputError, match=r"features must have the 3 columns .*got the shape \(5, 2\)"):
        model.decision(np.zeros((5, 2)))
