"""The NumPy kernels of the linear model give the bits of the compiled ones."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.stopping import everything

from fairsieve import Samples, fit, fit_seeds
from fairsieve.training import compiled_linear, linear_numpy, linear_trainer
from fairsieve.training.linear_task import Task, new_adam, new_workspace, sparse_rows
from fairsieve.training.methods import SELECTION_METHODS


@settings(deadline=None)
@given(
    st.integers(0, 2**32 - 1),
    st.integers(1, 13),
    st.integers(2, 4),
    st.sampled_from([1e-3, 1.0, 40.0, 1e5]),
    st.booleans(),
    st.booleans(),
    st.sampled_from([0.0, 0.5, 0.8, 0.95]),
)
def test_measuring_and_training_give_the_same_bits(seed, d, classes, scale, by_error, weighted, zeros):
    rng = np.random.default_rng(seed)
    n, outputs = 60, 1 if classes == 2 else classes
    size = outputs * (d + 1)
    features = (rng.normal(size=(n, d)) * scale).astype(rng.choice([np.float32, np.float64]))
    features[rng.random((n, d)) < zeros] = rng.choice([0.0, -0.0])
    task = Task(
        features,
        sparse_rows(features),
        rng.integers(0, classes, n),
        classes,
        np.array([-1, 0, classes - 1]),
        by_error,
        0.01,
        0.5,
        rng.normal(size=(3, size)),
        rng.random(n) if weighted else np.zeros(0),
    )
    batches, found = rng.integers(0, n, (4, 17)), []
    start = rng.normal(size=size)
    for kernels in (compiled_linear, linear_numpy):
        parameters, adam = start.copy(), new_adam(size)
        workspace, signals = new_workspace(n, outputs), np.empty((3, n))
        kernels.train_batches(task, parameters, adam, batches, True)
        kernels.train_batches(task, parameters, adam, batches, False)
        kernels.evaluate(task, parameters, workspace, signals)
        parts = [parameters, adam.steps, workspace.losses, workspace.predicted, signals, np.abs(adam.first)]
        found.append([part.tobytes() for part in parts])
    assert found[0] == found[1]


@pytest.mark.parametrize("share", [0.0, 0.9])
def test_infinite_parameters_are_noticed_with_zeros_and_without(share):
    rng = np.random.default_rng(0)
    features = rng.normal(size=(50, 12))
    features[rng.random((50, 12)) < share] = 0.0
    sparse = sparse_rows(features)
    assert (sparse.entries.size > 0) == (share > 0)
    task = Task(
        features,
        sparse,
        rng.integers(0, 2, 50),
        2,
        np.array([-1]),
        False,
        0.01,
        0.0,
        np.zeros((0, 13)),
        np.zeros(0),
    )
    parameters, workspace, signals = rng.normal(size=13), new_workspace(50, 1), np.empty((1, 50))
    parameters[4] = np.inf
    features[0, 4] = 0.0
    compiled_linear.evaluate(task, parameters, workspace, signals)
    assert np.isnan(workspace.losses).any()  # which ends a training


@pytest.mark.parametrize("method", SELECTION_METHODS)
def test_whole_trainings_give_the_same_bits(noisy, method, monkeypatch):
    pytest.importorskip("torch")
    rng = np.random.default_rng(0)
    many = Samples(
        noisy.features.astype(np.float64), rng.choice(list("abc"), 200), rng.choice(list("xyz"), 200)
    )
    options = {"epochs": 12, "warmup_epochs": 4, "clean_ratio": 0.9, "batch_size": 30, "average_last": 3}
    for data in (noisy, many):
        ends = []
        for patience in (np.inf, 0.0, 0.02):  # never compiled, always, and from somewhere in the middle on
            monkeypatch.setattr(linear_trainer, "LOADING", patience)
            monkeypatch.setattr(linear_trainer, "PATIENCE", patience)
            monkeypatch.setattr(linear_trainer, "_seconds_in_numpy", 0.0)
            together = fit_seeds(None, data, method, seeds=[0, 1], evaluation=data, **options)
            ends += [everything(fit(None, data, method, evaluation=data, **options)), everything(together[0])]
        assert all(end == ends[0] for end in ends)
