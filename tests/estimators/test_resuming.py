"""Estimators that were stopped resume to the same model, and repeat nothing."""

from __future__ import annotations

import os

import pytest
from sklearn.base import clone
from sklearn.tree import DecisionTreeClassifier

from fairsieve import CheckpointWarning, FairRobustClassifier, InvalidInputError, SieveClassifier
from fairsieve.data import make_synthetic
from fairsieve.estimators._folds import TrainingTask


class Killed(BaseException):
    """As sudden as a signal, to the code that it passes through."""


@pytest.fixture(scope="module")
def data():
    return make_synthetic(200, seed=0)


@pytest.fixture(autouse=True)
def hurried(monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda handle: None)


def fit(model, data):
    return clone(model).fit(data.features, data.labels, sensitive_features=data.groups)


def same(one, other):
    for name, column in one.suspects().items():
        assert column.tolist() == other.suspects()[name].tolist()
    assert one.sample_indices_.tolist() == other.sample_indices_.tolist()
    assert one.ratios_.tolist() == other.ratios_.tolist()


def killed_at(patch, owner, name, calls):
    """Raise at a given call of a function; return a counter of the calls."""
    original, counter = getattr(owner, name), [0]

    def counted(*arguments):
        counter[0] += 1
        if counter[0] == calls:
            raise Killed
        return original(*arguments)

    patch.setattr(owner, name, counted)
    return counter


@pytest.mark.parametrize(
    "model",
    [FairRobustClassifier(checkpoint_dir="x"), SieveClassifier(DecisionTreeClassifier(), checkpoint_dir="x")],
)
def test_checkpoints_need_a_seed(data, model):
    with pytest.raises(InvalidInputError, match=r"random_state must be a whole number.*got None"):
        fit(model, data)


@pytest.fixture
def sieving(tmp_path):
    tree = DecisionTreeClassifier(max_depth=3, random_state=0)
    return SieveClassifier(tree, clean_ratio=0.9, flips="random", rounds=3, cv=3, random_state=0)


def test_resumed_sieve_does_not_repeat_rounds(data, tmp_path, monkeypatch, sieving):
    whole = fit(sieving, data)
    sieving.set_params(checkpoint_dir=tmp_path)
    with monkeypatch.context() as patch:
        killed_at(patch, TrainingTask, "out_of_fold", 3)
        with pytest.raises(Killed):
            fit(sieving, data)
    counter = killed_at(monkeypatch, TrainingTask, "out_of_fold", 0)
    resumed = fit(sieving, data)
    same(resumed, whole)
    assert counter[0] == len(whole.history_["kept"]) - 2
    assert resumed.weights_.tolist() == whole.weights_.tolist()
    assert (resumed.predict_proba(data.features) == whole.predict_proba(data.features)).all()
    with pytest.warns(CheckpointWarning, match="it is of another computation"):
        fit(sieving.set_params(cv=4), data)
