"""Reweighing: label and group independent, exactly; then plain training."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from fairsieve import Cells, InvalidInputError, Samples, fit
from fairsieve.data import make_synthetic
from fairsieve.metrics import demographic_parity_disparity
from fairsieve.paper.methods.registry import METHODS
from fairsieve.paper.methods.reweighing import _independence_weights
from fairsieve.training.settings import Settings

train_reweighing = METHODS["reweighing"].train

SHORT = Settings(epochs=8, batch_size=50, learning_rate=0.01)


@pytest.fixture(scope="module")
def data():
    return make_synthetic(400, seed=0)


def counted(counts):
    """Cells with so many samples each."""
    classes, groups = np.indices(counts.shape)
    return Cells.of(
        np.repeat(classes.ravel(), counts.ravel()),
        np.repeat(groups.ravel(), counts.ravel()),
        classes=list(range(counts.shape[0])),
        group_values=list(range(counts.shape[1])),
    )


@st.composite
def tables(draw, fewest):
    shape = draw(st.integers(2, 4)), draw(st.integers(2, 4))
    counts = draw(
        st.lists(st.integers(fewest, 60), min_size=shape[0] * shape[1], max_size=shape[0] * shape[1])
    )
    return np.array(counts).reshape(shape)


@given(tables(fewest=1))
def test_label_and_group_are_independent_under_the_weights(counts):
    cells = counted(counts)
    weights = _independence_weights(cells)
    weighed = np.bincount(cells.codes, weights=weights, minlength=counts.size).reshape(counts.shape)
    expected = np.outer(counts.sum(axis=1), counts.sum(axis=0)) / counts.sum()
    np.testing.assert_allclose(weighed, expected, rtol=1e-12)


@given(tables(fewest=1))
def test_weights_are_those_of_kamiran_and_calders(counts):
    cells, n = counted(counts), counts.sum()
    formula = np.outer(counts.sum(axis=1) / n, counts.sum(axis=0) / n) / (counts / n)
    np.testing.assert_allclose(_independence_weights(cells), formula.ravel()[cells.codes], rtol=1e-12)


@given(tables(fewest=0).filter(lambda counts: counts.sum() > 0))
def test_classes_keep_their_sizes_with_empty_cells_too(counts):
    cells = counted(counts)
    weights = _independence_weights(cells)
    by_class = np.bincount(cells.label_codes, weights=weights, minlength=counts.shape[0])
    np.testing.assert_allclose(by_class, counts.sum(axis=1), rtol=1e-12)


def test_training_follows_the_weights(data):
    """One full-batch step is a step on the weighted mean loss."""
    settings = Settings(epochs=1, batch_size=len(data), learning_rate=0.01)
    model = torch.nn.Linear(3, 1)
    fitted = train_reweighing(data, settings, seed=0, model=model)
    weights = torch.from_numpy(_independence_weights(data.cells)).float()
    logits = model(torch.from_numpy(data.features)).squeeze(1)
    losses = torch.nn.functional.binary_cross_entropy_with_logits(
        logits, torch.from_numpy(data.labels).float(), reduction="none"
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    (losses * weights).mean().backward()
    optimizer.step()
    for found, expected in zip(fitted.model.parameters(), model.parameters(), strict=True):
        torch.testing.assert_close(found, expected)


def test_predictions_depend_less_on_the_group(data):
    settings = Settings(epochs=60, batch_size=100, learning_rate=0.02)
    reweighed = train_reweighing(data, settings, seed=0)
    plain = fit(None, data, "lr", epochs=60, batch_size=100, learning_rate=0.02)

    def disparity(fitted):
        predicted = fitted.predict(data.features)
        return demographic_parity_disparity(data.labels, predicted, sensitive_features=data.groups)

    assert disparity(reweighed) < disparity(plain) / 2


def test_a_seed_repeats_and_inputs_stay(data):
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Dropout(), torch.nn.Linear(4, 2))
    before = [p.detach().clone() for p in model.parameters()]
    features, labels = data.features.copy(), data.labels.copy()
    one, same = (train_reweighing(data, SHORT, seed=3, model=model, evaluation=data) for _ in range(2))
    for a, b in zip(one.model.parameters(), same.model.parameters(), strict=True):
        assert torch.equal(a, b)
    assert all(torch.equal(p, q) for p, q in zip(model.parameters(), before, strict=True))
    assert (data.features == features).all()
    assert (data.labels == labels).all()
    assert one.history.evaluation is not None
    assert len(one.history) == 8
    assert (one.history.times_selected == 8).all()


def test_three_groups_strings_and_an_empty_cell():
    rng = np.random.default_rng(0)
    labels = rng.choice(["no", "perhaps", "yes"], 300)
    groups = np.where(labels == "yes", rng.choice(["a", "b"], 300), rng.choice(["a", "b", "c"], 300))
    fitted = train_reweighing(Samples(rng.normal(size=(300, 2)), labels, groups), SHORT, seed=0)
    assert fitted.method == "reweighing"
    assert set(fitted.predict([[0.0, 1.0], [1.0, 0.0]])) <= {"no", "perhaps", "yes"}
    np.testing.assert_allclose(fitted.ratios.sum(axis=1), 1)


def test_hyperparameters_may_be_fields_of_settings(data):
    changed = train_reweighing(data, SHORT, seed=0, epochs=3)
    assert len(changed.history) == 3
    with pytest.raises(
        InvalidInputError, match=r"reweighing has no hyperparameters beside .*; got also strength"
    ):
        train_reweighing(data, SHORT, seed=0, strength=2)
