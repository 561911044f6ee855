"""Numbers at their limits: huge logits, perfect separation, constants, one class in a batch; both precisions."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression

from fairsieve import (
    FairRobustClassifier,
    Samples,
    SieveClassifier,
    equalized_odds_disparity,
    fit,
    sample_losses,
)
from fairsieve.data import flip_uniform, make_synthetic

SHORT = {"epochs": 40, "warmup_epochs": 10, "clean_ratio": 0.9, "batch_size": 20}
LOSSES_APART = 1e-6  # float32 losses from float64 ones, times 1 + the largest logit
WEIGHTS_APART = 1e-5  # weights after 40 epochs
LARGEST_LOGIT = 2.0**120  # 1.3e36, of float32


def linear(features, dtype=torch.float32, seed=0):
    torch.manual_seed(seed)
    return torch.nn.Linear(features, 2).to(dtype)


def weights(model):
    return np.concatenate([p.detach().double().numpy().ravel() for p in model.parameters()])


@pytest.mark.parametrize("scale", [1, 100, 1e4])
def test_losses_of_both_precisions_agree(scale):
    generator = torch.Generator().manual_seed(0)
    features = torch.randn(5000, 8, dtype=torch.float64, generator=generator) * scale
    labels = torch.randint(0, 2, (5000,), generator=generator)
    model = linear(8, torch.float64)
    largest = float(model(features).detach().abs().max())
    double = sample_losses(model, (features, labels))
    single = sample_losses(model.float(), (features.float(), labels))
    assert single.dtype == torch.float32
    assert float((double - single).abs().max()) < LOSSES_APART * (1 + largest)


@pytest.mark.parametrize("method", ["lr", "sample-selection"])
@pytest.mark.parametrize("seed", range(2))
def test_training_of_both_precisions_agrees(method, seed):
    clean = make_synthetic(400, seed=seed)
    noisy = clean.with_labels(flip_uniform(clean, 0.1, seed=seed).labels)
    kinds, columns = (torch.float32, torch.float64), noisy.features.shape[1]
    models = [linear(columns, dtype, seed) for dtype in kinds]
    single, double = (fit(model, noisy, method, seed=seed, **SHORT) for model in models)
    assert np.abs(weights(single.model) - weights(double.model)).max() < WEIGHTS_APART
    assert single.indices.tolist() == double.indices.tolist()


@given(st.floats(-LARGEST_LOGIT, LARGEST_LOGIT, width=32), st.integers(0, 1))
def test_losses_of_huge_logits_are_finite(logit, label):
    model = torch.nn.Identity()
    for outputs in (torch.tensor([[logit]]), torch.tensor([[-logit, logit]])):
        (loss,) = sample_losses(model, (outputs, torch.tensor([label]))).tolist()
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


@pytest.mark.parametrize("case", LIMITS)
@pytest.mark.parametrize("method", ["lr", "fairbatch", "sample-selection"])
def test_losses_stay_finite(case, method):
    make, change = LIMITS[case]
    data = make()
    fitted = fit(linear(data.features.shape[1]), data, method, **(SHORT | change))
    assert np.isfinite(weights(fitted.model)).all()
    assert np.isfinite(fitted.ratios).all()
    assert np.isin(fitted.predict(data.features), [0, 1]).all()


@pytest.mark.filterwarnings("ignore::fairsieve.errors.FairsieveWarning")
@pytest.mark.parametrize(
    "case", ["perfect separation", "huge logits", "constant features", "batches of one class"]
)
@pytest.mark.parametrize(
    "make", [FairRobustClassifier, lambda **options: SieveClassifier(LogisticRegression(), **options)]
)
def test_estimators_give_finite_chances(case, make):
    data = LIMITS[case][0]()
    model = make(clean_ratio=0.9, random_state=0)
    model.fit(data.features, data.labels, sensitive_features=data.groups)
    chances = model.predict_proba(data.features)
    assert np.isfinite(chances).all()
    assert chances.sum(axis=1) == pytest.approx(np.ones(80))


@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=12), st.booleans())
def test_disparity_of_one_class_or_one_group_is_finite(rows, same_group):
    labels, predicted = np.array(rows).T
    groups = np.zeros(len(rows)) if same_group else np.arange(len(rows)) % 2
    assert 0 <= equalized_odds_disparity(labels, predicted, sensitive_features=groups) <= 1
