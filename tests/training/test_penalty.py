"""The covariance penalty."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from fairsieve import LogisticRegression, Samples, fit
from fairsieve.data import make_synthetic
from fairsieve.training.autograd import covariance_penalty
from fairsieve.training.penalty import penalised_classes, penalty_directions

NOTIONS = ("equalized_odds", "demographic_parity", "equal_opportunity")


@pytest.fixture(scope="module")
def data():
    drawn = make_synthetic(300, seed=0)
    return Samples(drawn.features.astype(np.float64), drawn.labels, drawn.groups)


@pytest.fixture(scope="module")
def many():
    rng = np.random.default_rng(0)
    return Samples(rng.normal(size=(90, 3)), rng.choice(list("abc"), 90), rng.choice(list("xyz"), 90))


def test_the_penalty_is_the_absolute_covariance(data):
    decision = torch.randn(300, 1, dtype=torch.float64)
    groups = torch.from_numpy(data.groups)
    labels = torch.from_numpy(data.labels)
    found = covariance_penalty(decision, labels, groups, 2, [-1])
    expected = abs(np.cov(data.groups, decision[:, 0].numpy(), bias=True)[0, 1])
    assert float(found) == pytest.approx(expected)


@pytest.mark.parametrize("label", [0, 1])
def test_with_equalized_odds_only_wrong_decisions_count(data, label):
    """Zafar's form: the mean of (z − z̄) · min(0, y · d(x)), over the samples of one class."""
    decision = torch.randn(300, 1, dtype=torch.float64)
    groups, labels = torch.from_numpy(data.groups), torch.from_numpy(data.labels)
    found = covariance_penalty(decision, labels, groups, 2, [label])
    total = 0.0
    for z, y, d in zip(data.groups, data.labels, decision[:, 0].tolist(), strict=True):
        total += (z - data.groups.mean()) * min(0.0, (2 * y - 1) * d) * (y == label)
    assert float(found) == pytest.approx(abs(total / 300))


def test_without_wrong_decisions_there_is_no_penalty(data):
    right = torch.from_numpy(2.0 * data.labels - 1)[:, None]
    groups, labels = torch.from_numpy(data.groups), torch.from_numpy(data.labels)
    assert float(covariance_penalty(right, labels, groups, 2, [0, 1])) == 0
    assert float(covariance_penalty(right, labels, groups, 2, [-1])) > 0


@pytest.mark.parametrize("notion", NOTIONS)
def test_directions_give_the_value_of_the_penalty(data, many, notion):
    for samples, outputs in ((data, 1), (many, 3)):
        classes = penalised_classes(samples.cells, notion, samples.classes[-1])
        model = LogisticRegression(3, 2 if outputs == 1 else 3).double()
        scores = model.linear(torch.from_numpy(samples.features))
        decision = scores if outputs == 1 else scores - scores.mean(dim=1, keepdim=True)
        labels = torch.from_numpy(samples.cells.label_codes)
        groups = torch.from_numpy(samples.cells.group_codes)
        expected = covariance_penalty(decision, labels, groups, samples.cells.shape[1], classes)
        flat = torch.cat([p.flatten() for p in model.parameters()]).detach().numpy()
        rows = penalty_directions(samples.features, samples.cells, flat, classes)
        assert np.abs(rows @ flat).sum() == pytest.approx(expected.item())


@pytest.mark.parametrize("notion", NOTIONS)
def test_the_linear_loop_equals_autograd_on_full_batches(data, notion):
    options = {
        "epochs": 30,
        "batch_size": 300,
        "fairness": notion,
        "penalty_weight": 0.7,
        "learning_rate": 0.01,
    }

    def double(generator):
        return LogisticRegression(3, generator=generator).double()

    one, other = (fit(model, data, "lr", **options) for model in (None, double))
    for a, b in zip(one.model.parameters(), other.model.parameters(), strict=True):
        assert a.detach().numpy() == pytest.approx(b.detach().numpy(), abs=1e-6)


def test_a_penalty_makes_the_covariance_small(data):
    options = {"epochs": 300, "fairness": "demographic_parity", "learning_rate": 0.005}
    rows = penalty_directions(data.features, data.cells, np.zeros(4), [-1])

    def covariance(weight):
        model = fit(None, data, "lr", penalty_weight=weight, **options).model
        flat = torch.cat([p.flatten() for p in model.parameters()]).detach().double().numpy()
        return np.abs(rows @ flat).sum()

    assert covariance(5.0) < covariance(0.0) / 5


@pytest.mark.parametrize("notion", NOTIONS)
def test_the_penalty_is_over_the_selected_samples(data, notion):
    parameters, selected = np.array([0.3, -0.2, 0.1, 0.05]), np.arange(0, 300, 3)
    classes = penalised_classes(data.cells, notion, 1)
    part = data.take(selected)
    found = penalty_directions(data.features, data.cells, parameters, classes, selected)
    assert found == pytest.approx(penalty_directions(part.features, part.cells, parameters, classes))
