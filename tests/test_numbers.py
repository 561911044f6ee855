"""Numbers at their limits: huge logits, perfect separation, constants, one class in a batch; both precisions."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from threadpoolctl import threadpool_limits

from fairsieve import (
    FairRobustClassifier,
    LogisticRegression,
    Samples,
    SieveClassifier,
    accuracy,
    equalized_odds_disparity,
    fit,
    sample_losses,
)
from fairsieve.data import make_synthetic
from fairsieve.data.corruption.flips import flip_margin
from fairsieve.sampling.losses import cross_entropy
from tests.support.fingerprints import differences, fingerprints

ENGINES = ["compiled", "autograd"]
SHORT = {"epochs": 40, "warmup_epochs": 10, "clean_ratio": 0.9, "batch_size": 20}

# Bounds on rounding.
LOSSES_APART = 1e-6  # float32 losses from float64 ones, times 1 + the largest logit
WEIGHTS_APART = 1e-5  # weights after 40 epochs
LARGEST_LOGIT = 2.0**120  # 1.3e36, of float32


def weights(fitted):
    return np.concatenate([p.detach().double().numpy().ravel() for p in fitted.model.parameters()])


# ------------------------------------------------------------------------------------- both precisions


@pytest.mark.parametrize("classes", [2, 5])
@pytest.mark.parametrize("scale", [1, 100, 1e4])
def test_losses_of_both_precisions_agree(classes, scale):
    generator = torch.Generator().manual_seed(0)
    features = torch.randn(5000, 8, dtype=torch.float64, generator=generator) * scale
    labels = torch.randint(0, classes, (5000,), generator=generator)
    model = LogisticRegression(8, classes, generator=generator).double()
    largest = float(model(features).detach().abs().max())
    double = sample_losses(model, (features, labels))
    single = sample_losses(model.float(), (features.float(), labels))
    assert single.dtype == torch.float32
    assert float((double - single).abs().max()) < LOSSES_APART * (1 + largest)


@pytest.mark.parametrize("method", ["lr", "itlm", "fairsieve"])
@pytest.mark.parametrize("seed", range(3))
def test_training_of_both_precisions_agrees(method, seed):
    clean = make_synthetic(400, seed=seed)
    noisy = clean.with_labels(flip_margin(clean, 0.1).labels)

    def trained(dtype):
        first = LogisticRegression(noisy.features.shape[1], generator=torch.Generator().manual_seed(seed))
        return fit(first.to(dtype), noisy, method, seed=seed, engine="autograd", **SHORT)

    single, double = trained(torch.float32), trained(torch.float64)
    assert np.abs(weights(single) - weights(double)).max() < WEIGHTS_APART
    assert single.indices.tolist() == double.indices.tolist()


# -------------------------------------------------------------------------------------- at the limits


@given(st.floats(-LARGEST_LOGIT, LARGEST_LOGIT, width=32), st.integers(0, 1))
def test_losses_of_huge_logits_are_finite(logit, label):
    targets = torch.tensor([label])
    for outputs in (torch.tensor([logit]), torch.tensor([[-logit, logit]])):
        (loss,) = cross_entropy(outputs, targets).tolist()
        assert np.isfinite(loss)
        right = (logit > 0) == bool(label)
        margin = abs(logit) * outputs.numel()
        assert loss == pytest.approx(np.log1p(np.exp(-margin)) + (0 if right else margin), rel=1e-5, abs=1e-6)


def separable(scale=1.0):
    """Two classes that a line separates, in both groups."""
    labels = np.arange(80) % 2
    features = np.column_stack([(labels * 2.0 - 1) * scale, np.linspace(-1, 1, 80)])
    return Samples(features, labels, np.arange(80) // 2 % 2)


def constant():
    """Features that say nothing."""
    data = separable()
    return Samples(np.full((80, 3), 7.0), data.labels, data.groups)


def lopsided():
    """One sample in forty is of the second class: most batches have one class alone."""
    data = separable()
    return Samples(data.features, (np.arange(80) % 40 == 0).astype(int), np.arange(80) // 40)


LIMITS = {
    "perfect separation": (separable, {}),
    "huge logits": (lambda: separable(1e12), {}),
    "a learning rate far too high": (separable, {"learning_rate": 1e6}),
    "constant features": (constant, {}),
    "batches of one class": (lopsided, {"batch_size": 2}),
    "batches of one sample": (separable, {"batch_size": 1, "epochs": 6, "warmup_epochs": 2}),
}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("case", LIMITS)
@pytest.mark.parametrize("method", ["lr", "fairbatch", "fairsieve"])
def test_losses_stay_finite(case, engine, method):
    make, change = LIMITS[case]
    data = make()
    fitted = fit(None, data, method, engine=engine, evaluation=data, **(SHORT | change))
    history = fitted.history
    assert np.isfinite(weights(fitted)).all()
    for values in (
        history.cell_losses,
        history.ratios,
        history.train.accuracy,
        *history.train.disparity.values(),
    ):
        assert np.isfinite(values).all()
    assert np.isin(fitted.predict(data.features), [0, 1]).all()
    if case == "perfect separation" and method == "lr":
        assert accuracy(data.labels, fitted.predict(data.features)) == 1


@pytest.mark.filterwarnings("ignore::fairsieve.CollapseWarning")
@pytest.mark.parametrize(
    "case", ["perfect separation", "huge logits", "constant features", "batches of one class"]
)
@pytest.mark.parametrize("kind", ["FairRobustClassifier", "SieveClassifier"])
def test_estimators_give_finite_chances(case, kind):
    from sklearn.linear_model import LogisticRegression as Plain

    data = LIMITS[case][0]()
    if kind == "SieveClassifier":
        model = SieveClassifier(Plain(), clean_ratio=0.9, random_state=0)
    else:
        model = FairRobustClassifier(clean_ratio=0.9, epochs=20, random_state=0)
    chances = model.fit(data.features, data.labels, sensitive_features=data.groups).predict_proba(
        data.features
    )
    assert np.isfinite(chances).all()
    assert chances.sum(axis=1) == pytest.approx(np.ones(80))


@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=12), st.booleans())
def test_metrics_of_one_class_or_one_group_are_finite(rows, same_group):
    labels, predicted = np.array(rows).T
    groups = np.zeros(len(rows)) if same_group else np.arange(len(rows)) % 2
    assert 0 <= accuracy(labels, predicted) <= 1
    assert 0 <= equalized_odds_disparity(labels, predicted, sensitive_features=groups) <= 1


# -------------------------------------------------------------------------------------------- threads


def test_one_and_two_threads_give_the_same_bits():
    """Whatever is in tests/support/fingerprints.py; more threads may differ for large matrices."""
    before, found = torch.get_num_threads(), []
    try:
        for threads in (1, 2):
            torch.set_num_threads(threads)
            with threadpool_limits(threads):
                found.append(fingerprints())
    finally:
        torch.set_num_threads(before)
    assert [one["made with"]["threads"] for one in found] == [1, 2]
    different = differences(*found)
    assert len(different) >= 10
    assert not any(different.values()), different
