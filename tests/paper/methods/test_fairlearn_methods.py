"""Fairlearn's mitigations behind our contract."""

from __future__ import annotations

import pickle
import sys
from dataclasses import replace

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression

from fairsieve import FairsieveWarning, InvalidInputError, MissingExtraError, Samples
from fairsieve.data import make_synthetic
from fairsieve.metrics import (
    demographic_parity_disparity,
    equal_opportunity_disparity,
    equalized_odds_disparity,
)
from fairsieve.paper.methods.fitted_estimator import _draw_classes
from fairsieve.paper.methods.registry import METHODS
from fairsieve.training.settings import Settings

reductions = pytest.importorskip("fairlearn.reductions")
postprocessing = pytest.importorskip("fairlearn.postprocessing")

train_exponentiated_gradient = METHODS["exponentiated-gradient"].train
train_threshold_optimizer = METHODS["threshold-optimizer"].train
TRAINERS = [train_exponentiated_gradient, train_threshold_optimizer]
DISPARITIES = {
    "equalized_odds": equalized_odds_disparity,
    "demographic_parity": demographic_parity_disparity,
    "equal_opportunity": equal_opportunity_disparity,
}
both = pytest.mark.parametrize("train", TRAINERS)


@pytest.fixture(scope="module")
def data():
    return make_synthetic(1500, seed=0)


def three_groups(n=600, seed=0):
    """Three groups and string labels that sort the other way round."""
    rng = np.random.default_rng(seed)
    groups = rng.choice(["x", "y", "z"], n)
    features = rng.normal(size=(n, 2)) + (groups == "z")[:, None]
    labels = np.where(features[:, 0] + rng.normal(size=n) > 0, "accept", "decline")
    return Samples(features, labels, groups)


@both
@pytest.mark.parametrize("fairness", DISPARITIES)
def test_disparity_falls(train, fairness):
    seen, fresh = make_synthetic(4000, seed=1), make_synthetic(4000, seed=2)
    plain = LogisticRegression().fit(seen.features, seen.labels).predict(fresh.features)
    fitted = train(seen, Settings(fairness=fairness), seed=0)
    fair = fitted.predict(fresh.features, sensitive_features=fresh.groups)
    measure = DISPARITIES[fairness]
    before, after = (measure(fresh.labels, p, sensitive_features=fresh.groups) for p in (plain, fair))
    assert after < before / 2
    assert (fair == fresh.labels).mean() > 0.6


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_probabilities_are_fairlearns(data):
    """The mixtures, against fairlearn's own arithmetic."""
    eg = train_exponentiated_gradient(data, Settings(), seed=0, max_iter=8)
    theirs = reductions.ExponentiatedGradient(
        LogisticRegression(max_iter=1000), reductions.EqualizedOdds(), max_iter=8
    ).fit(data.features, data.labels, sensitive_features=data.groups)
    np.testing.assert_allclose(
        eg.predict_proba(data.features), theirs._pmf_predict(data.features), atol=1e-12
    )
    data = replace(data, features=data.features.astype(np.float64))  # theirs fails on float32 with pandas 3
    to = train_threshold_optimizer(data, Settings(), seed=0)
    theirs = postprocessing.ThresholdOptimizer(
        estimator=LogisticRegression(max_iter=1000),
        constraints="equalized_odds",
        predict_method="predict_proba",
    ).fit(data.features, data.labels, sensitive_features=data.groups)
    np.testing.assert_allclose(
        to.predict_proba(data.features, sensitive_features=data.groups),
        theirs._pmf_predict(data.features, sensitive_features=data.groups),
        atol=1e-12,
    )


@both
def test_a_seed_repeats_and_inputs_stay(data, train):
    features, labels = data.features.copy(), data.labels.copy()
    one, same, other = (train(data, Settings(), seed=seed) for seed in (1, 1, 2))
    predictions = [f.predict(features, sensitive_features=data.groups) for f in (one, one, same, other)]
    assert (predictions[0] == predictions[1]).all()
    assert (predictions[0] == predictions[2]).all()
    assert (predictions[0] != predictions[3]).any()
    assert (data.features == features).all()
    assert (data.labels == labels).all()
    again = pickle.loads(pickle.dumps(one)).predict(features, sensitive_features=data.groups)
    assert (again == predictions[0]).all()


@both
def test_strings_three_groups_and_the_positive_label(train):
    data = three_groups()
    for positive in ("accept", "decline"):
        settings = Settings(fairness="equal_opportunity", pos_label=positive)
        fitted = train(data, settings, seed=0)
        predicted = fitted.predict(data.features, sensitive_features=data.groups)
        chances = fitted.predict_proba(data.features, sensitive_features=data.groups)
        assert fitted.classes == ["accept", "decline"]
        assert set(predicted) <= {"accept", "decline"}
        assert (predicted == data.labels).mean() > 0.6
        np.testing.assert_allclose(chances.sum(axis=1), 1)
        disparity = equal_opportunity_disparity(
            data.labels, predicted, sensitive_features=data.groups, pos_label=positive
        )
        assert disparity < 0.06


@both
def test_the_history_has_one_row(data, train):
    fresh = make_synthetic(500, seed=1)
    fitted = train(data, Settings(), seed=4, evaluation=fresh)
    history = fitted.history
    assert len(history) == 1
    assert (history.counts[0] == data.cells.counts).all()
    assert (fitted.indices == np.arange(len(data))).all()
    assert (history.times_selected == 1).all()
    predicted = fitted.predict(data.features, sensitive_features=data.groups)
    assert history.train.accuracy[0] == pytest.approx((predicted == data.labels).mean())
    shown = fitted.predict(fresh.features, sensitive_features=fresh.groups)
    assert history.evaluation.accuracy[0] == pytest.approx((shown == fresh.labels).mean())
    expected = equalized_odds_disparity(fresh.labels, shown, sensitive_features=fresh.groups)
    assert history.evaluation.disparity["equalized_odds"][0] == pytest.approx(expected)
    chances = fitted.predict_proba(data.features, sensitive_features=data.groups)
    wrong = chances[(data.labels == 1) & (data.groups == 0), 0]
    assert history.cell_losses[0, 1, 0] == pytest.approx(wrong.mean())
    assert history.as_rows()[0]["epoch"] == 0


def test_an_empty_cell():
    data = three_groups()
    data = data.take(np.flatnonzero((data.labels == "accept") | (data.groups != "y")))
    eg = train_exponentiated_gradient(data, Settings(), seed=0)
    assert set(eg.predict(data.features)) == {"accept", "decline"}
    with pytest.warns(FairsieveWarning, match=r"without samples of both classes: \['y'\]"):
        to = train_threshold_optimizer(data, Settings(), seed=0)
    predicted = to.predict(data.features, sensitive_features=data.groups)
    plain = (
        LogisticRegression(max_iter=1000).fit(data.features, data.labels == "decline").predict(data.features)
    )
    members = data.groups == "y"
    assert ((predicted == "decline") == plain)[members].all()


def test_groups_are_needed_to_predict(data):
    fitted = train_threshold_optimizer(data, Settings(), seed=0)
    with pytest.raises(
        InvalidInputError, match=r"looks at the group of a sample .*sensitive_features=groups"
    ):
        fitted.predict(data.features)
    regression = LogisticRegression(max_iter=1000).fit(data.features, data.labels)
    np.testing.assert_allclose(fitted.predict_proba(data.features), regression.predict_proba(data.features))
    with pytest.raises(InvalidInputError, match=r"sensitive_features must be among \[0, 1\]; got also \[2\]"):
        fitted.predict(data.features[:1], sensitive_features=[2])
    with pytest.raises(InvalidInputError, match="one value per sample, 2; got 1"):
        fitted.predict(data.features[:2], sensitive_features=[1])
    assert len(train_exponentiated_gradient(data, Settings(), seed=0).predict(torch.zeros(2, 3))) == 2


@both
def test_fairlearn_is_an_extra(data, train, monkeypatch):
    monkeypatch.setitem(sys.modules, "fairlearn", None)
    with pytest.raises(MissingExtraError, match=r"needs fairlearn: pip install 'fairsieve\[fairlearn\]'"):
        train(data, Settings(), seed=0)


@both
def test_what_it_cannot_do_is_said(data, train):
    with pytest.raises(InvalidInputError, match="takes no module; got model=Linear"):
        train(data, Settings(), seed=0, model=torch.nn.Linear(3, 1))
    with pytest.raises(InvalidInputError, match=r"needs two classes, both in the data; got 3"):
        train(Samples(data.features, np.arange(1500) % 3, data.groups), Settings(), seed=0)
    with pytest.raises(InvalidInputError, match="needs two classes, both in the data; got 1"):
        train(data.take(np.flatnonzero(data.labels == 1)), Settings(), seed=0)
    with pytest.raises(InvalidInputError, match=r"has the hyperparameters .*; got also strength"):
        train(data, Settings(), seed=0, strength=1)


def test_draws_follow_the_chances():
    chances = np.tile([0.2, 0.5, 0.3], (20_000, 1))
    shares = np.bincount(_draw_classes(chances, 0)) / 20_000
    np.testing.assert_allclose(shares, [0.2, 0.5, 0.3], atol=0.015)
    certain = np.tile([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]], (1000, 1))
    assert (_draw_classes(certain, 1) == np.tile([1, 0, 2], 1000)).all()
