"""SieveClassifier around any classifier, with any table, and with scikit-learn's tools."""

import pickle

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from joblib import parallel_config
from lightgbm import LGBMClassifier
from scipy import sparse
from sklearn import config_context
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier
from tests.support.refusals import refused

from fairsieve import (
    FairRobustResampler,
    SieveClassifier,
    demographic_parity_disparity,
    equalized_odds_disparity,
    fairness_scorer,
)
from fairsieve.data import flip_margin, flip_uniform, make_synthetic, synthetic_splits
from fairsieve.notions import NOTIONS

TREE = DecisionTreeClassifier(max_depth=3, random_state=0)
BOOSTER = LGBMClassifier(n_estimators=10, num_leaves=4, n_jobs=1, verbose=-1)
SHORT = {"clean_ratio": 0.9, "max_iter": 2, "cv": 2, "random_state": 0}


@pytest.fixture(scope="module")
def fitted(data):
    return SieveClassifier(TREE, **SHORT).fit(data.features, data.labels, sensitive_features=data.groups)


def test_a_tolerance_that_is_not_reached_names_the_gap_of_the_model_too():
    """Of rounds that are about as fair, the most accurate one is taken."""
    data = make_synthetic(500, seed=0)
    labels = flip_uniform(data, 0.15, seed=0).labels
    model = SieveClassifier(TREE, tolerance=0.05, random_state=0)
    with pytest.warns(ConvergenceWarning, match="at best") as caught:
        model.fit(data.features, labels, sensitive_features=np.where(np.arange(500) % 7, data.groups, np.nan))
    assert model.path_["gap"].min() < model.gap_
    assert f"({model.gap_:.3f} of the model that is kept)" in str(caught[0].message)


def same(one, other, features):
    assert one.predict_proba(features).tolist() == other.predict_proba(features).tolist()
    assert one.weights_.tolist() == other.weights_.tolist()
    assert one.ratios_.tolist() == other.ratios_.tolist()


@pytest.mark.parametrize("clean_ratio", [0.9, "auto"])
@pytest.mark.parametrize("estimator", [
    BOOSTER,
    HistGradientBoostingClassifier(max_iter=5),
    make_pipeline(StandardScaler(), LogisticRegression()),
], ids=["lightgbm", "hist-gradient-boosting", "pipeline"])  # fmt: skip
@pytest.mark.parametrize("fairness", NOTIONS)
def test_final_model_is_the_classifier_fitted_with_the_stored_weights(data, estimator, clean_ratio, fairness):
    model = SieveClassifier(estimator, fairness, **(SHORT | {"clean_ratio": clean_ratio}))
    model.fit(data.features, data.labels, sensitive_features=data.groups)
    assert (model.weights_ >= 0).all()
    assert model.ratios_.sum(axis=1) == pytest.approx([1, 1])
    assert len(model.path_) == model.n_iter_ + 1 <= 3
    again = fit_as_weighed(estimator, data, model.weights_)
    assert model.predict_proba(data.features) == pytest.approx(again.predict_proba(data.features))
    assert model.score(data.features, data.labels) == again.score(data.features, data.labels)
    plain = clone(estimator).fit(data.features, data.labels)
    expected = plain.predict_proba(data.features)
    assert model.plain_model_.predict_proba(data.features) == pytest.approx(expected)


def fit_as_weighed(estimator, data, weights):
    rows = np.flatnonzero(weights)
    name = "logisticregression__sample_weight" if hasattr(estimator, "steps") else "sample_weight"
    return clone(estimator).fit(data.features[rows], data.labels[rows], **{name: weights[rows]})


@pytest.mark.filterwarnings("ignore:sensitive_features has one group")
@settings(max_examples=15, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    classes=st.integers(2, 3),
    groups=st.integers(1, 3),
    fairness=st.sampled_from(["equalized_odds", "demographic_parity", "equal_error_rate"]),
    clean_ratio=st.sampled_from([0.6, 1.0]),
    cv=st.sampled_from([None, 2]),
)
def test_weights_ratios_and_selection_obey_their_laws(seed, classes, groups, fairness, clean_ratio, cv):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(90, 3))
    y = np.digitize(X[:, 0] + rng.normal(size=90), [-0.5, 0.5][: classes - 1])
    z = rng.integers(0, groups, 90)
    options = {"clean_ratio": clean_ratio, "cv": cv, "random_state": seed}
    model = SieveClassifier(TREE, fairness, **options, tolerance=0.1, max_iter=4)
    model.fit(X, y, sensitive_features=z)
    assert classes == 2 or (model.weights_ >= 0).all()
    assert (model.ratios_ >= 0).all()
    assert model.ratios_.sum(axis=1) == pytest.approx(np.ones(len(model.classes_)))
    path = model.path_.iloc[min(1, model.n_iter_) :]  # the plain round is there to compare with
    chosen = model.path_.iloc[model.path_index_]
    assert (model.stopped_ == "met") == (model.gap_ <= 0.1)
    if path["gap"].min() <= 0.1:
        assert chosen["gap"] <= 0.1
        assert chosen["accuracy"] == path.loc[path["gap"] <= 0.1, "accuracy"].max()
    elif not model.is_plain_:  # a gap that chance may have narrowed is worth no accuracy
        enough = path["gap"].min() + 0.1
        assert chosen["accuracy"] >= path.loc[path["gap"] <= enough, "accuracy"].max()
    suspects = model.suspects()
    assert set(suspects["row"]).isdisjoint(model.sample_indices_)
    assert (suspects["label"] != suspects["suggested"]).all()
    assert len(suspects) <= round(90 * (1 - model.clean_ratio_))
    names = np.array(["a", "b", "c"])  # in the same order: folds are dealt by cells
    same(clone(model).fit(X, y, sensitive_features=names[z]), model, X)
    same(clone(model).fit(X, names[y], sensitive_features=z), model, X)


def test_random_flips_are_estimated_and_lower_the_weights():
    """Over several draws: single rates may be off by .07 with so few features."""
    rates = []
    for seed in range(3):
        drawn = make_synthetic(6000, seed=seed)
        noisy = flip_uniform(drawn, 0.2, seed=seed)
        model = SieveClassifier(LogisticRegression(), max_iter=3, tolerance=1.0, random_state=0)
        model.fit(drawn.features, noisy.labels, sensitive_features=drawn.groups)
        rates.append(model.flip_rates_)
        low, high = model.estimate_.interval
        assert low <= 1 - noisy.flipped.mean() <= high
        assert model.weights_[noisy.flipped].mean() < 0.9 * model.weights_[~noisy.flipped].mean()
        assert noisy.flipped[model.suspects()["row"]].mean() > 2 * noisy.flipped.mean()
    assert np.mean(rates) == pytest.approx(0.2, abs=0.05)


@pytest.mark.parametrize("seed", [0, 2])
def test_aimed_flips_are_undone_though_trees_learn_them(seed):
    """A selection by the trees' own losses named right labels; where nobody can know, none is named."""
    parts = synthetic_splits(seed=seed)
    noisy = flip_margin(parts.train, 0.1)
    model = SieveClassifier(HistGradientBoostingClassifier(max_depth=3), random_state=0)
    model.fit(parts.train.features, noisy.labels, sensitive_features=parts.train.groups)
    rows = model.suspects()["row"]
    if not model.estimate_.credible:
        assert rows.empty
        return
    assert noisy.flipped[rows].mean() > 0.8
    given, models = (parts.test.features, parts.test.labels), (model, model.plain_model_)
    found, plain = (each.score(*given) for each in models)
    assert found > plain + 0.05


@pytest.mark.parametrize(("booster", "remaining"), [
    (LGBMClassifier(n_estimators=60, num_leaves=8, n_jobs=1, verbose=-1), 0.4),
    (BOOSTER, 0.85),
], ids=["usual", "coarse"])  # fmt: skip
@pytest.mark.parametrize(
    ("fairness", "disparity"),
    [("equalized_odds", equalized_odds_disparity), ("demographic_parity", demographic_parity_disparity)],
)
def test_fairer_than_the_plain_booster(booster, remaining, fairness, disparity):
    """With any seed. Ten trees of four leaves are coarse: where folds cannot tell, the plain ones may be kept."""
    train, test = make_synthetic(3000, seed=0), make_synthetic(20_000, seed=100)
    noisy = flip_uniform(train, 0.15, seed=0).labels
    groups = {"sensitive_features": test.groups}
    theirs = clone(booster).fit(train.features, noisy).predict(test.features)
    kept = 0
    for seed in range(4):
        model = SieveClassifier(booster, fairness, clean_ratio=0.85, tolerance=0.03, random_state=seed)
        ours = model.fit(train.features, noisy, sensitive_features=train.groups).predict(test.features)
        assert (ours == test.labels).mean() > (theirs == test.labels).mean() - 0.03
        kept += model.is_plain_
        wide, plain = (disparity(test.labels, each, **groups) for each in (ours, theirs))
        assert model.is_plain_ or wide < remaining * plain
    assert kept <= (2 if booster is BOOSTER else 0)


def test_gaps_of_the_folds_that_point_in_different_directions_are_not_taken_for_none():
    """Together they are fairer by .14 and less accurate, and their spread says that chance may have made it."""
    train = make_synthetic(3000, seed=3)
    noisy = flip_uniform(train, 0.15, seed=3).labels
    model = SieveClassifier(BOOSTER, clean_ratio=0.85, tolerance=0.03, random_state=20)
    model.fit(train.features, noisy, sensitive_features=train.groups)
    found = model.comparison_
    assert found.plain_gap - found.gap > 0.1 > found.plain_gap - found.gap - found.gap_error
    assert model.is_plain_
    assert model.predict(train.features).tolist() == model.plain_model_.predict(train.features).tolist()


@pytest.mark.parametrize("kind", ["sparse", "polars", "list"])
def test_containers_give_the_same_model_as_arrays(data, fitted, kind):
    kinds = {"sparse": sparse.csr_matrix, "polars": pl.DataFrame, "list": np.ndarray.tolist}
    X = kinds[kind](data.features)
    model = SieveClassifier(TREE, **SHORT).fit(X, data.labels, sensitive_features=data.groups)
    assert model.weights_ == pytest.approx(fitted.weights_)  # sums of a sparse matrix round in another order
    assert model.predict(X).tolist() == fitted.predict(data.features).tolist()


@pytest.mark.parametrize("clean_ratio", [0.9, "auto"])
def test_samples_without_a_group_train_and_their_ratio_stays(data, clean_ratio):
    groups = data.groups.astype(object)
    groups[::4] = None
    model = SieveClassifier(TREE, **(SHORT | {"clean_ratio": clean_ratio, "tolerance": 1.0}))
    model.fit(data.features, data.labels, sensitive_features=groups)
    assert model.sensitive_values_ == [0, 1, None]
    assert model.weights_[::4].any()
    if clean_ratio == 0.9:
        share = [np.mean([g is None for g in groups[data.labels == y]]) for y in (0, 1)]
        assert model.ratios_[:, 2] == pytest.approx(share, abs=0.01)


def test_without_groups_the_gap_is_zero(data):
    model = SieveClassifier(TREE, **SHORT).fit(data.features, data.labels)
    assert model.ratios_.tolist() == [[1.0], [1.0]]
    assert (model.path_["gap"] == 0).all()


def test_samples_of_weight_zero_are_left_out(data):
    weights = np.random.default_rng(0).integers(0, 3, 300)
    rows = np.flatnonzero(weights)

    def fit(some, own):
        options = {"sensitive_features": some.groups, "sample_weight": own}
        return SieveClassifier(TREE, **SHORT).fit(some.features, some.labels, **options)

    whole, part = fit(data, weights), fit(data.take(rows), weights[rows])
    assert whole.predict_proba(data.features).tolist() == part.predict_proba(data.features).tolist()
    assert whole.weights_[rows].tolist() == part.weights_.tolist()
    assert whole.suspects()["row"].tolist() == rows[part.suspects()["row"]].tolist()


def test_clone_pickle_and_parallel_folds_give_the_same_model(data, fitted):
    same(pickle.loads(pickle.dumps(fitted)), fitted, data.features)
    again = clone(fitted).set_params(n_jobs=2)
    assert not hasattr(again, "classes_")
    with parallel_config(backend="threading"):  # processes take seconds to start
        again.fit(data.features, data.labels, sensitive_features=data.groups)
    same(again, fitted, data.features)


def test_grid_search_passes_the_groups(data):
    with config_context(enable_metadata_routing=True):
        estimator = make_pipeline(StandardScaler(), LogisticRegression())
        model = SieveClassifier(estimator, **SHORT).set_fit_request(sensitive_features=True)
        tried = {"tolerance": [0.0, 0.1], "estimator__logisticregression__C": [0.1]}
        scoring = fairness_scorer(with_accuracy=True)
        search = GridSearchCV(model, tried, scoring=scoring, cv=2, error_score="raise")
        search.fit(data.features, data.labels, sensitive_features=data.groups)
    assert search.best_estimator_.ratios_.shape == (2, 2)
    assert search.best_estimator_.decision_function(data.features).shape == (300,)


def test_unfitted_models_and_missing_methods(fitted, data):
    assert not hasattr(fitted, "decision_function")
    with pytest.raises(NotFittedError):
        clone(fitted).predict(data.features)
    with pytest.raises(NotFittedError):
        clone(fitted).suspects()


BOOSTING = "HistGradientBoosting"
REGRESSOR = rf"must be a classifier.*got the regressor {BOOSTING}Regressor: pass {BOOSTING}Classifier\(\)"


@pytest.mark.parametrize(("estimator", "options", "message"), [
    (make_pipeline(StandardScaler(), KNeighborsClassifier()), {}, "got KNeighborsClassifier"),
    (HistGradientBoostingRegressor(), {}, f"estimator {REGRESSOR}"),
    (make_pipeline(StandardScaler(), Ridge()), {}, "got the regressor Pipeline: pass a classifier"),
    ("tree", {}, "estimator must take sample_weight"),
    (TREE, {"clean_ratio": 1.5}, r"clean_ratio must be a number in \(0, 1\].*got 1.5"),
    (TREE, {"clean_ratio": "half"}, r"clean_ratio must be a number in \(0, 1\].*got 'half'"),
    (TREE, {"fairness": "none"}, "fairness must be one of equalized_odds"),
    (TREE, {"max_iter": 0}, "max_iter must be a whole number of at least 1; got 0"),
    (TREE, {"cv": 301}, "cv must not exceed the samples, 300; got 301"),
    (TREE, {"tolerance": 2}, r"tolerance must be a number in \[0, 1\]; got 2"),
    (TREE, {"fairness": "equal_opportunity", "pos_label": 7}, r"pos_label must be one of \[0, 1\]; got 7"),
])  # fmt: skip
def test_bad_parameters_are_named_at_fit(data, estimator, options, message):
    model = SieveClassifier(estimator, **(SHORT | options))
    refused(message, model.fit, data.features, data.labels, sensitive_features=data.groups)


@pytest.mark.parametrize(
    "model", [SieveClassifier(TREE, **SHORT), FairRobustResampler(SieveClassifier(TREE))]
)
@pytest.mark.parametrize(("targets", "message"), [
    (np.linspace(0, 1, 300), r"Unknown label type: continuous. y must hold classes.*got 300 different values"),
    (np.linspace(0, 1, 300).astype(object), "Unknown label type"),
    (np.arange(300) + 0.5, r"such as 0\.5: put them into ranges, for example by numpy\.digitize"),
])  # fmt: skip
def test_continuous_targets_are_refused(data, model, targets, message):
    fit = getattr(model, "fit_resample", None) or model.fit
    refused(message, fit, data.features, targets, sensitive_features=data.groups)


def test_it_stops_within_its_tolerance_and_every_round_can_be_had():
    data = make_synthetic(2000, seed=0)
    options = {"clean_ratio": 1.0, "tolerance": 0.05, "keep_path": True}
    model = SieveClassifier(LogisticRegression(), **options, cv=2, random_state=0)
    model.fit(data.features, data.labels, sensitive_features=data.groups)
    assert model.stopped_ == "met"
    assert model.gap_ <= 0.05
    wide = model.at(tolerance=0.5)
    assert wide.gap_ <= 0.5
    assert wide.path_["accuracy"].iloc[wide.path_index_] == model.path_["accuracy"].max()
    own = [model._points[one.path_index_].weights for one in (model, wide)]  # None: all weigh the same
    for one, weights in zip((model, wide), own, strict=True):
        assert one.weights_.tolist() == (np.ones(2000) if weights is None else weights).tolist()
    assert not np.allclose(model.effective_weights_, wide.effective_weights_)
    refused("tolerance must be at least the smallest gap of the path", model.at, tolerance=0.0)
