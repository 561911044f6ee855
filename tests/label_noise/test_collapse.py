"""Telling that a model came out worse than plain training."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from fairsieve import Cells, CleanRatioEstimate, CollapseError, CollapseWarning, FairRobustClassifier
from fairsieve.data import make_synthetic
from fairsieve.errors import FairsieveWarning
from fairsieve.estimators import _held_out
from fairsieve.label_noise.collapse import collapse_of, compare_chances
from fairsieve.label_noise.estimate import Credibility

rng = np.random.default_rng(0)
GROUPS = rng.integers(0, 2, 400)
LABELS = np.where(rng.random(400) < 0.05, 1 - GROUPS, GROUPS)  # parity between groups undoes the classes
FEATURES = rng.normal(size=(400, 1)) + 3 * LABELS[:, None]


bits = arrays(np.int64, 60, elements=st.integers(0, 1))


@given(predicted=bits, plain=bits, truth=bits, flipped=arrays(bool, 60))
def test_the_certificate_is_never_wrong(predicted, plain, truth, flipped):
    """Whatever the flips: when it is certain, the model is worse on the true labels."""
    noisy = np.where(flipped, 1 - truth, truth)
    found = collapse_of(predicted, plain, noisy, float(flipped.mean()))
    if found is not None:
        assert found.certain
        assert np.mean(predicted == truth) < np.mean(plain == truth)


@given(predicted=bits, labels=bits, noise=st.floats(0, 0.5))
def test_a_model_has_not_collapsed_beside_itself(predicted, labels, noise):
    assert collapse_of(predicted, predicted, labels, noise) is None


def test_weights_count():
    labels = np.array([0, 0, 1, 1])
    predicted = np.array([0, 0, 0, 0])
    assert collapse_of(predicted, labels, labels, 0.0) is not None
    assert collapse_of(predicted, labels, labels, 0.0, weights=np.array([1, 1, 0, 0.0])) is None


@pytest.fixture(scope="module")
def collapsed():
    with pytest.warns(CollapseWarning, match="collapsed: its accuracy is .* a plain model's"):
        return fit("warn")


def fit(on_collapse, fairness="demographic_parity"):
    model = FairRobustClassifier(
        fairness,
        clean_ratio=1.0,
        epochs=120,
        warmup_epochs=20,
        step_size=0.02,
        learning_rate=0.01,
        random_state=0,
        on_collapse=on_collapse,
    )
    return model.fit(FEATURES, LABELS, sensitive_features=GROUPS)


def test_a_warning_by_name(collapsed):
    assert collapsed.collapse_.certain
    assert collapsed.collapse_.accuracy < collapsed.collapse_.plain_accuracy


def test_falling_back_gives_the_plain_model(collapsed):
    with pytest.warns(CollapseWarning, match="The plain model is kept instead"):
        model = fit("fallback")
    assert model.score(FEATURES, LABELS) == pytest.approx(model.collapse_.plain_accuracy)
    assert model.score(FEATURES, LABELS) > collapsed.score(FEATURES, LABELS) + 0.02


def test_raising():
    with pytest.raises(CollapseError, match="Lower clean_ratio, or pass on_collapse='fallback'"):
        fit("raise")


def test_silence_where_nothing_collapsed():
    with warnings.catch_warnings():
        warnings.simplefilter("error", CollapseWarning)
        model = fit("warn", "equal_opportunity")
    assert model.collapse_ is None


def given_labels(labels, groups):
    """An estimate by which every label is right."""
    cells = Cells.of(labels, groups)
    own = np.eye(cells.shape[0])[cells.label_codes]
    rates = np.zeros(cells.shape)
    return cells, CleanRatioEstimate(1.0, (1.0, 1.0), rates, rates, False, Credibility(True, ""), own, cells)


def test_on_unseen_samples_losing_accuracy_or_fairness_is_a_collapse():
    rng = np.random.default_rng(0)
    labels, groups = rng.integers(0, 2, 2000), rng.integers(0, 2, 2000)
    cells, estimate = given_labels(labels, groups)
    compare = {"cells": cells, "estimate": estimate, "fairness": "equalized_odds"}
    noisy = np.where(rng.random(2000) < 0.2, 1 - labels, labels)
    worse = np.where(rng.random(2000) < 0.05, 1 - noisy, noisy)
    assert compare_chances(noisy, noisy, **compare) is None
    lost = compare_chances(worse, noisy, **compare)
    assert lost.held_out
    assert lost.accuracy == pytest.approx(np.mean(worse == labels))
    assert "on samples that neither saw" in str(lost)
    seen = compare_chances(worse, noisy, held_out=False, **compare)
    assert not seen.held_out
    assert "on the training samples" in str(seen)
    unfair = np.where((groups == 0) & (rng.random(2000) < 0.3), 1, labels)  # as accurate, but on one group
    fair = np.where(rng.random(2000) < 0.075, 1 - labels, labels)
    found = compare_chances(unfair, fair, **compare)
    assert found.disparity > found.plain_disparity
    assert compare_chances(fair, unfair, **compare) is None


@pytest.mark.parametrize("solver", ["newton", "adam"])
@pytest.mark.parametrize(("samples", "held_out"), [(700, True), (900, False)])
def test_many_samples_for_each_parameter_need_no_unseen_ones(monkeypatch, samples, held_out, solver):
    asked = []
    monkeypatch.setattr(
        _held_out, "collapse_of", lambda *_, **__: None
    )  # whatever the draw: it would end the search
    monkeypatch.setattr(_held_out, "predict_held_out", lambda *_: asked.append(True))
    data = make_synthetic(samples, seed=3)
    model = FairRobustClassifier(
        solver=solver, epochs=3 if solver == "adam" else None, random_state=0, on_collapse="fallback"
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FairsieveWarning)
        model.fit(data.features, data.labels, sensitive_features=data.groups)
    assert asked == [True] * held_out


def test_modules_are_compared_on_unseen_samples_where_that_takes_seconds(monkeypatch):
    data = make_synthetic(400, seed=1)
    seen = []
    whole = _held_out.predict_held_out
    monkeypatch.setattr(_held_out, "predict_held_out", lambda *given: seen.append(whole(*given)) or seen[-1])
    model = FairRobustClassifier(
        module=lambda features, classes: torch.nn.Linear(features, classes), epochs=4, random_state=0
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(data.features, data.labels, sensitive_features=data.groups)
        assert [len(each.rows) for each in seen] == [400]
        assert seen[0].fair.shape == (400, 1)
        monkeypatch.setattr(_held_out, "AFFORDABLE", 4 * 400 - 1)
        model.fit(data.features, data.labels, sensitive_features=data.groups)
    assert len(seen) == 1


def test_soft_labels_are_counted_by_their_chance():
    labels, groups = np.array([0, 1, 0, 1]), np.array([0, 0, 1, 1])
    cells, estimate = given_labels(labels, groups)
    turned = replace(estimate, true_class=estimate.true_class[:, ::-1])
    assert compare_chances(labels, 1 - labels, cells, estimate, fairness="demographic_parity") is None
    assert compare_chances(labels, 1 - labels, cells, turned, fairness="demographic_parity").accuracy == 0.0
