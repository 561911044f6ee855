"""FairRobustClassifier: any input, the same model as fit, and the company of scikit-learn."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch
from scipy import sparse
from sklearn import config_context
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from fairsieve import (
    FairRobustClassifier,
    FairsieveWarning,
    InvalidInputError,
    LogisticRegression,
    Samples,
    equalized_odds_disparity,
    fairness_scorer,
    fit,
)
from fairsieve.data import flip_group_targeted, make_synthetic, synthetic_splits
from fairsieve.estimators import _solvers

SHORT = {"epochs": 20, "warmup_epochs": 8, "clean_ratio": 0.9, "step_size": 0.01, "random_state": 0}


@pytest.fixture(scope="module")
def data():
    drawn = make_synthetic(300, seed=0)
    return Samples(drawn.features.astype(np.float64), drawn.labels, drawn.groups)


@pytest.fixture(scope="module")
def fitted(data):
    return FairRobustClassifier(**SHORT).fit(data.features, data.labels, sensitive_features=data.groups)


def same(one, other, features):
    assert one.decision_function(features).tolist() == other.decision_function(features).tolist()
    assert one.sample_indices_.tolist() == other.sample_indices_.tolist()
    assert one.ratios_.tolist() == other.ratios_.tolist()


def test_it_is_fit(data, fitted):
    """The same bits as the training loop with the same settings."""
    settings = {name: value for name, value in SHORT.items() if name != "random_state"}
    made = fit(
        lambda generator: LogisticRegression(3, generator=generator).double(),
        data,
        seed=0,
        batch_size=100,
        learning_rate=0.01 / 3,
        **settings,
    )
    for ours, theirs in zip(fitted.module_.parameters(), made.model.parameters(), strict=True):
        assert torch.equal(ours, theirs.to(ours.dtype))
    assert fitted.sample_indices_.tolist() == made.indices.tolist()
    assert fitted.ratios_.tolist() == made.ratios.tolist()
    assert fitted.predict(data.features).tolist() == made.predict(data.features).tolist()
    assert fitted.predict_proba(data.features) == pytest.approx(made.predict_proba(data.features))
    assert len(fitted.history_) == 20
    assert fitted.clean_ratio_ == 0.9
    assert fitted.n_features_in_ == 3
    assert fitted.sensitive_values_ == [0, 1]


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame], ids=["pandas", "polars"])
def test_frames_and_strings_are_arrays_and_codes(data, fitted, frame):
    series = pd.Series if frame is pd.DataFrame else pl.Series
    X = frame({f"x{i}": data.features[:, i] for i in range(3)})
    y = series(np.where(data.labels == 1, "yes", "no"))
    model = FairRobustClassifier(**SHORT).fit(X, y, sensitive_features=series(data.groups))
    decision = fitted.decision_function(data.features)
    assert model.decision_function(X) == pytest.approx(decision)
    assert model.sample_indices_.tolist() == fitted.sample_indices_.tolist()
    assert model.feature_names_in_.tolist() == ["x0", "x1", "x2"]
    assert model.classes_.tolist() == ["no", "yes"]
    assert (model.predict(X) == "yes").tolist() == (fitted.predict(data.features) == 1).tolist()
    assert 0 <= model.score(X, y) <= 1


@pytest.mark.parametrize("kind", [sparse.csr_matrix, sparse.csc_array, sparse.coo_matrix])
def test_sparse_is_dense(data, fitted, kind):
    X = kind(data.features)
    same(
        FairRobustClassifier(**SHORT).fit(X, data.labels, sensitive_features=data.groups),
        fitted,
        data.features,
    )
    assert fitted.decision_function(X) == pytest.approx(fitted.decision_function(data.features))


def test_columns_are_crossed(data):
    rng = np.random.default_rng(0)
    columns = pd.DataFrame({"sex": rng.choice(["f", "m"], 300), "old": rng.random(300) < 0.5})
    model = FairRobustClassifier(**SHORT).fit(data.features, data.labels, sensitive_features=columns)
    assert model.sensitive_values_ == [("f", False), ("f", True), ("m", False), ("m", True)]
    assert model.ratios_.shape == (2, 4)


def test_samples_without_a_group_train_and_their_ratio_stays(data):
    groups = data.groups.astype(object)
    groups[::4] = None
    model = FairRobustClassifier(**SHORT).fit(data.features, data.labels, sensitive_features=groups)
    assert model.sensitive_values_ == [0, 1, None]
    share = [np.mean([g is None for g in groups[data.labels == y]]) for y in (0, 1)]
    assert model.ratios_[:, 2] == pytest.approx(share)
    assert np.isin(np.arange(0, 300, 4), model.sample_indices_).any()


def test_without_groups_it_is_robust_alone(data):
    model = FairRobustClassifier(**SHORT).fit(data.features, data.labels)
    itlm = fit(
        lambda generator: LogisticRegression(3, generator=generator).double(),
        data,
        "itlm",
        batch_size=100,
        learning_rate=0.01 / 3,
        **{name: value for name, value in SHORT.items() if name != "random_state"},
    )
    assert model.sample_indices_.size == itlm.indices.size == 270
    assert model.ratios_.tolist() == [[1.0], [1.0]]


def test_many_classes(data):
    labels = np.array(["a", "b", "c"])[np.digitize(data.features[:, 0], [-1, 1])]
    model = FairRobustClassifier(**SHORT).fit(data.features, labels, sensitive_features=data.groups)
    assert model.decision_function(data.features).shape == (300, 3)
    assert model.predict_proba(data.features).sum(axis=1) == pytest.approx(np.ones(300))
    assert (
        model.predict(data.features) == model.classes_[model.predict_proba(data.features).argmax(axis=1)]
    ).all()


def two_layers(n_features, n_classes):
    return torch.nn.Sequential(torch.nn.Linear(n_features, 4), torch.nn.ReLU(), torch.nn.Linear(4, n_classes))


@pytest.mark.parametrize("module", [torch.nn.Linear, two_layers, torch.nn.Linear(3, 1), two_layers(3, 2)])
def test_any_module(data, module):
    before = [p.detach().clone() for p in module.parameters()] if isinstance(module, torch.nn.Module) else []
    state = torch.random.get_rng_state()
    one, two = (
        FairRobustClassifier(module=module, **(SHORT | {"epochs": 6, "warmup_epochs": 2})).fit(
            data.features, data.labels, sensitive_features=data.groups
        )
        for _ in range(2)
    )
    same(one, two, data.features)
    assert (torch.random.get_rng_state() == state).all()
    if before:
        assert all(torch.equal(a, b) for a, b in zip(before, module.parameters(), strict=True))
    decision, chances = one.decision_function(data.features), one.predict_proba(data.features)
    assert decision.shape == (300,)
    assert chances[:, 1] == pytest.approx(1 / (1 + np.exp(-decision)))
    assert one.predict(data.features).tolist() == (decision > 0).astype(int).tolist()
    copied = pickle.loads(pickle.dumps(one))
    same(copied, one, data.features)


def test_random_states(data, fitted):
    def train(state):
        options = SHORT | {"random_state": state}
        return FairRobustClassifier(**options).fit(data.features, data.labels, sensitive_features=data.groups)

    same(train(0), fitted, data.features)
    same(train(np.random.RandomState(3)), train(np.random.RandomState(3)), data.features)
    one, two = train(None), train(None)
    assert (one.decision_function(data.features) != two.decision_function(data.features)).any()


def test_clone_and_pickle(data, fitted):
    same(pickle.loads(pickle.dumps(fitted)), fitted, data.features)
    again = clone(fitted)
    assert not hasattr(again, "classes_")
    same(again.fit(data.features, data.labels, sensitive_features=data.groups), fitted, data.features)


def test_samples_of_no_weight_are_not_there(data):
    weights = np.random.default_rng(0).integers(0, 3, 300)
    rows = np.flatnonzero(weights)
    model = FairRobustClassifier(**SHORT)
    whole = clone(model).fit(
        data.features, data.labels, sensitive_features=data.groups, sample_weight=weights
    )
    part = clone(model).fit(
        data.features[rows],
        data.labels[rows],
        sensitive_features=data.groups[rows],
        sample_weight=weights[rows],
    )
    assert whole.decision_function(data.features).tolist() == part.decision_function(data.features).tolist()
    assert whole.sample_indices_.tolist() == rows[part.sample_indices_].tolist()
    assert whole.suspects()["row"].tolist() == rows[part.suspects()["row"]].tolist()
    assert len(whole.history_.times_selected) == 300


def test_suspects_are_who_was_left_out_and_most_flips_are_among_them():
    parts = synthetic_splits(seed=0)
    noisy = flip_group_targeted(parts.train, 0.1)
    model = FairRobustClassifier(clean_ratio=0.9, random_state=0)
    model.fit(parts.train.features, noisy.labels, sensitive_features=parts.train.groups)
    table = model.suspects()
    everyone = np.concatenate([table["row"], model.sample_indices_])
    assert sorted(everyone) == list(range(2000))
    assert (np.diff(table["loss"]) <= 0).all()
    assert (table["label"] == noisy.labels[table["row"]]).all()
    assert (table["group"] == parts.train.groups[table["row"]]).all()
    assert (table["epochs_kept"] == model.history_.times_selected[table["row"]]).all()
    chances = model.predict_proba(parts.train.features[table["row"]])
    assert (table["suggested"] == model.classes_[chances.argmax(axis=1)]).all()
    assert table["probability"] == pytest.approx(chances.max(axis=1))
    own = chances[np.arange(len(chances)), noisy.labels[table["row"]]]
    assert table["loss"] == pytest.approx(-np.log(own))
    assert np.isin(np.flatnonzero(noisy.flipped), table["row"]).mean() > 0.9
    assert list(pd.DataFrame(table).columns) == list(table)
    guessed = model.predict(parts.test.features)
    groups = {"sensitive_features": parts.test.groups}
    assert model.score(parts.test.features, parts.test.labels) > 0.69
    assert equalized_odds_disparity(parts.test.labels, guessed, **groups) < 0.15


def test_in_pipelines_and_searches(data):
    with config_context(enable_metadata_routing=True):
        model = FairRobustClassifier(**SHORT).set_fit_request(sensitive_features=True)
        pipeline = make_pipeline(StandardScaler(), model)
        scoring = {"accuracy": "accuracy", "fairness": fairness_scorer("equalized_odds", with_accuracy=True)}
        search = GridSearchCV(
            pipeline,
            {"fairrobustclassifier__step_size": [0.0, 0.05]},
            scoring=scoring,
            refit="fairness",
            cv=2,
        )
        search.fit(data.features, data.labels, sensitive_features=data.groups)
        assert search.best_estimator_[-1].ratios_.shape == (2, 2)
        assert np.isfinite(search.cv_results_["mean_test_fairness"]).all()
        result = cross_validate(
            pipeline,
            data.features,
            data.labels,
            scoring=scoring,
            cv=2,
            params={"sensitive_features": data.groups},
            error_score="raise",
            return_estimator=True,
        )
        assert [len(each[-1].sensitive_values_) for each in result["estimator"]] == [2, 2]


def test_the_device_and_the_progress_bar(data, capsys):
    model = FairRobustClassifier(**SHORT, device="cpu", verbose=1)
    model.fit(data.features, data.labels, sensitive_features=data.groups)
    assert next(model.module_.parameters()).device.type == "cpu"
    assert capsys.readouterr().out == ""  # a bar is for the terminal, on standard error


def test_a_stopped_training_says_so(data, monkeypatch):
    trained = _solvers.fit

    def stopped(*arguments, **options):
        whole = trained(*arguments, **options)
        return type(whole)(**(whole.__dict__ | {"interrupted": True}))

    monkeypatch.setattr(_solvers, "fit", stopped)
    with pytest.warns(FairsieveWarning, match="training was stopped after 20 of 20 epochs"):
        model = FairRobustClassifier(**SHORT).fit(data.features, data.labels)
    assert model.interrupted_
    assert model.collapse_ is None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"clean_ratio": 1.5}, r"clean_ratio must be a number in \(0, 1\]"),
        ({"clean_ratio": "half"}, r"clean_ratio must be a number in \(0, 1\].*got 'half'"),
        ({"fairness": "none"}, "fairness must be one of equalized_odds"),
        ({"module": 3}, "module must be None, an nn.Module, or a callable"),
        ({"module": lambda n, k: n}, "module must make an nn.Module when called; got int"),
        ({"module": torch.nn.Linear(3, 5)}, r"outputs must be the logits of all 300 samples"),
        ({"epochs": 0}, "epochs must be a whole number of at least 1; got 0"),
        ({"warmup_epochs": -1}, "warmup_epochs must be"),
        ({"batch_size": 0}, "batch_size must be a whole number of at least 1; got 0"),
        ({"batch_size": "many"}, "batch_size must be a whole number"),
        ({"learning_rate": -1.0}, "learning_rate must be a finite number above 0"),
        ({"learning_rate": "fast"}, "learning_rate must be a finite number above 0; got 'fast'"),
        ({"step_size": 2}, r"step_size must be a number in \[0, 1\]"),
        ({"average_last": 0}, "average_last must be"),
        ({"signal": "margin"}, "signal must be one of loss, error"),
        ({"on_collapse": "ignore"}, "on_collapse must be one of warn, fallback, raise; got 'ignore'"),
        ({"random_state": -1}, "random_state must be a whole number of at least 0 and below 2.*; got -1"),
        ({"fairness": "equal_opportunity", "pos_label": 7}, r"pos_label must be one of \[0, 1\]; got 7"),
    ],
)
def test_bad_parameters_are_named_at_fit(data, options, message):
    model = FairRobustClassifier(**(SHORT | options))
    with pytest.raises(InvalidInputError, match=message):
        model.fit(data.features, data.labels, sensitive_features=data.groups)


def test_bad_data_is_named(data, fitted):
    model = FairRobustClassifier(**SHORT)
    with pytest.raises(
        InvalidInputError, match="sensitive_features must have one value per sample, 300; got 2"
    ):
        model.fit(data.features, data.labels, sensitive_features=[0, 1])
    with pytest.raises(
        InvalidInputError, match="y must have two or more classes to tell apart; got one class"
    ):
        model.fit(data.features, np.zeros(300))
    with pytest.raises(InvalidInputError, match="all weights are zero"):
        model.fit(data.features, data.labels, sample_weight=np.zeros(300))
    with pytest.raises(NotFittedError):
        clone(fitted).suspects()


def test_short_training_is_not_all_warm_up(data):
    short = FairRobustClassifier(clean_ratio=0.7, epochs=40, random_state=0)
    short.fit(data.features, data.labels, sensitive_features=data.groups)
    assert len(short.sample_indices_) <= 0.7 * len(data.labels)
    assert len(short.suspects()["row"])


def test_an_interrupt_of_the_plain_optimum_keeps_the_fair_model(data, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(_solvers, "find_plain_optimum", interrupted)
    model = FairRobustClassifier(clean_ratio=0.9, random_state=0)
    with pytest.warns(FairsieveWarning, match="training was stopped after 40 of 40 epochs.*not compared"):
        model.fit(data.features, data.labels, sensitive_features=data.groups)
    assert model.interrupted_
    assert model.plain_model_ is None
    assert (model.predict(data.features) == data.labels).mean() > 0.6
