"""Folds: those dealt by cells, splitters, and iterables of rows."""

from typing import ClassVar

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import (
    GroupKFold,
    KFold,
    LeaveOneGroupOut,
    RepeatedKFold,
    StratifiedKFold,
    TimeSeriesSplit,
)
from sklearn.tree import DecisionTreeClassifier
from tests.support.refusals import refused

from fairsieve import SieveClassifier
from fairsieve.data import make_synthetic
from fairsieve.errors import InvalidInputError
from fairsieve.estimators._learner import make_folds
from fairsieve.selection.cells import Cells

TREE = DecisionTreeClassifier(max_depth=3, random_state=0)
SHORT = {"clean_ratio": 0.9, "max_iter": 1, "random_state": 0}


@pytest.fixture(scope="module")
def data():
    return make_synthetic(120, seed=0)


def fit(model, data, **options):
    return clone(model).fit(data.features, data.labels, sensitive_features=data.groups, **options)


class Recorder(DecisionTreeClassifier):
    """Remembers the rows of its fits and predictions; the first column numbers them."""

    calls: ClassVar[list] = []  # shared, since copies are fitted

    def fit(self, X, y, sample_weight=None, check_input=True):
        self.calls.append(("fit", X[:, 0].astype(int)))
        return super().fit(X, y, sample_weight, check_input)

    def predict_proba(self, X):
        self.calls.append(("predict", X[:, 0].astype(int)))
        return super().predict_proba(X)


@settings(max_examples=25)
@given(seed=st.integers(0, 2**32 - 1), samples=st.integers(8, 60), cv=st.integers(2, 8))
def test_every_sample_is_in_one_fold_and_every_cell_is_spread(seed, samples, cv):
    rng = np.random.default_rng(seed)
    labels, groups = rng.permutation(np.arange(samples) % 2), rng.permutation(np.arange(samples) % 3)
    Recorder.calls.clear()
    model = SieveClassifier(Recorder(max_depth=2), **(SHORT | {"cv": cv}))
    model.fit(np.arange(samples, dtype=float)[:, None], labels, sensitive_features=groups)
    folds = [rows for kind, rows in Recorder.calls if kind == "predict"][:cv]
    assert sorted(np.concatenate(folds)) == list(range(samples))
    for seen, shown in zip([rows for kind, rows in Recorder.calls if kind == "fit"], folds, strict=False):
        assert not np.isin(seen, shown).any()
    inside = np.array([np.bincount(labels[shown] * 3 + groups[shown], minlength=6) for shown in folds])
    assert np.ptp(inside, axis=0).max() <= 2


@settings(max_examples=15, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    different=st.integers(20, 60),
    cv=st.integers(2, 5),
    kind=st.sampled_from(["array", "texts", "frame", "sparse"]),
)
def test_copies_of_a_sample_share_a_fold(seed, different, cv, kind):
    """Else a classifier that learns by heart would be said to predict labels that are nothing but chance."""
    rng = np.random.default_rng(seed)
    numbers = rng.permutation(np.r_[np.arange(different), rng.integers(0, different, 2 * different)])
    labels, groups = (rng.integers(0, 2, different)[numbers] for _ in range(2))
    X = {
        "array": numbers[:, None].astype(float),
        "texts": np.array([[f"row {number}"] for number in numbers], dtype=object),
        "frame": pd.DataFrame({"number": numbers, "name": [f"row {number}" for number in numbers]}),
        "sparse": csr_array(numbers[:, None].astype(float)),
    }[kind]
    cells = Cells.of(labels, groups)
    folds = make_folds(cv, X, cells, np.arange(len(numbers)), len(numbers), seed)
    assert sorted(np.concatenate([tested for _, tested in folds])) == list(range(len(numbers)))
    for seen, tested in folds:
        assert not np.isin(numbers[seen], numbers[tested]).any()


def test_labels_that_are_chance_are_no_better_predicted_for_being_there_four_times():
    rng = np.random.default_rng(0)
    labels, groups, X = rng.integers(0, 2, 150), rng.integers(0, 2, 150), rng.normal(size=(150, 5))
    four = np.tile(np.arange(150), 4)
    model = SieveClassifier(DecisionTreeClassifier(random_state=0), clean_ratio=1.0)
    model.fit(X[four], labels[four], sensitive_features=groups[four])
    assert model.path_["accuracy"].max() < 0.65


@pytest.mark.parametrize(
    "splitter", [KFold(3), StratifiedKFold(3, shuffle=True, random_state=0)], ids=["KFold", "StratifiedKFold"]
)
def test_a_splitter_is_its_folds(data, splitter):
    folds = list(splitter.split(data.features, data.labels))
    first = fit(SieveClassifier(TREE, cv=splitter, **SHORT), data)
    for same in (folds, tuple(folds), [(np.isin(np.arange(120), seen), shown) for seen, shown in folds]):
        second = fit(SieveClassifier(TREE, cv=same, **SHORT), data)
        assert second.weights_.tolist() == first.weights_.tolist()
        assert second.path_["accuracy"].tolist() == first.path_["accuracy"].tolist()


def test_folds_by_households_are_passed_as_rows(data):
    households = np.arange(120) // 4
    folds = GroupKFold(3).split(data.features, data.labels, households)  # an iterator, used once
    model = SieveClassifier(TREE, cv=folds, **SHORT)
    model.fit(data.features, data.labels, sensitive_features=data.groups)
    with pytest.raises(InvalidInputError, match=r"cv must have at least one fold.*pass a list"):
        model.fit(data.features, data.labels, sensitive_features=data.groups)


def test_probabilities_of_samples_in_several_folds_are_averaged(data):
    splitter = RepeatedKFold(n_splits=3, n_repeats=2, random_state=0)
    folds = list(splitter.split(data.features))
    models = (fit(SieveClassifier(TREE, **SHORT, cv=cv), data) for cv in (splitter, folds[:3], folds[3:]))
    both, *halves = (model._points[0].probabilities for model in models)
    assert both == pytest.approx(np.mean(halves, axis=0))


def test_rows_without_a_weight_are_taken_out_of_the_folds(data):
    weights = (np.arange(120) % 3 > 0).astype(float)
    rows = np.flatnonzero(weights)
    place = np.cumsum(weights > 0) - 1
    folds = list(KFold(4).split(data.features))
    inside = [tuple(place[part[weights[part] > 0]] for part in fold) for fold in folds]
    whole = fit(SieveClassifier(TREE, cv=folds, **SHORT), data, sample_weight=weights)
    part = SieveClassifier(TREE, cv=inside, **SHORT)
    part.fit(data.features[rows], data.labels[rows], sensitive_features=data.groups[rows])
    assert whole.weights_[rows].tolist() == part.weights_.tolist()


@pytest.mark.parametrize(("cv", "message"), [
    (True, "cv must be a whole number of at least 2; got True"),
    ("five", "cv must be None, a whole number of at least 2, a splitter or an iterable.*got 'five'"),
    (2.5, "cv must be None, a whole number of at least 2, a splitter or an iterable.*got 2.5"),
    ([], "cv must have at least one fold; got none"),
    ([[1, 2, 3]], r"cv must be pairs of rows, \(train, test\); fold 0 is \[1, 2, 3\]"),
    ([([0, 1], [120])], "cv must hold rows from 0 to 119; fold 0 holds 120"),
    ([([0, 1], [-1])], "cv must hold rows from 0 to 119; fold 0 holds -1"),
    ([([0.5], [1])], "cv must hold whole numbers of rows; fold 0 holds float64"),
    ([([], np.arange(120))], "cv must leave samples to train on in every fold; fold 0 has none"),
    (TimeSeriesSplit(3), "cv must put every sample into a test fold; 30 samples are in none"),
    (LeaveOneGroupOut(), "cv must split without groups.*pass the rows"),
])  # fmt: skip
def test_bad_folds_are_named(data, cv, message):
    refused(message, fit, SieveClassifier(TREE, cv=cv, **SHORT), data)


def test_finished_rounds_are_read_if_nothing_differs_and_they_are_whole(data, tmp_path):
    model = SieveClassifier(Recorder(max_depth=2), cv=KFold(2), checkpoint_dir=tmp_path / "new", **SHORT)

    def calls(model=model, **options):
        Recorder.calls.clear()
        fit(model, data, **options)
        return len(Recorder.calls)

    every = calls()
    known = calls()
    assert known < every
    assert calls(clone(model).set_params(cv=KFold(3))) > every
    assert calls(check_input=True) == every
    assert calls() == known
    for path in (tmp_path / "new").rglob("output.pkl"):
        path.write_bytes(path.read_bytes()[:-20])
    assert calls() == every
    told = "fit parameters must be picklable where checkpoints are kept"
    refused(told, fit, model, data, callback=lambda: None)


def test_weights_are_repetitions_where_nothing_is_selected():
    from sklearn.utils.estimator_checks import (
        check_sample_weight_equivalence_on_dense_data,
        check_sample_weight_equivalence_on_sparse_data,
    )

    model = SieveClassifier(LogisticRegression(), clean_ratio=1.0, max_iter=1)
    check_sample_weight_equivalence_on_dense_data("SieveClassifier", model)
    check_sample_weight_equivalence_on_sparse_data("SieveClassifier", model)
