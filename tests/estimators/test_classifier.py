"""FairRobustClassifier: it settles, its tolerance means what it says, and its laws hold."""

import copy
import pickle
import re
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
import skops.io
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn import config_context
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from tests.support.refusals import refused
from tests.support.stopping import interrupt_solver_after

from fairsieve import FairRobustClassifier, equalized_odds_disparity
from fairsieve.data import flip_group_targeted, flip_uniform, load_authors_arrays, make_synthetic
from fairsieve.errors import FairnessWarning, FairsieveWarning
from fairsieve.estimators import classifier
from fairsieve.metrics import disparity
from fairsieve.notions import NOTIONS
from fairsieve.training import solver

ARRAYS = Path(__file__).parents[3] / "shared" / "authors-arrays"


@pytest.fixture(scope="module")
def data():
    return make_synthetic(1500, seed=0)


@pytest.fixture(scope="module")
def fitted(data):
    return fit(data, clean_ratio=0.9)


def fit(data, *, labels=None, **options):
    model = FairRobustClassifier(options.pop("fairness", "equalized_odds"), **options)
    labels = data.labels if labels is None else labels
    return model.fit(data.features, labels, sensitive_features=data.groups)


def fit_quietly(X, y, z, weights=None, **options):
    with warnings.catch_warnings(action="ignore"):
        return FairRobustClassifier(**options).fit(X, y, sensitive_features=z, sample_weight=weights)


@pytest.mark.parametrize("fairness", NOTIONS)
@pytest.mark.parametrize("clean_ratio", [1.0, 0.9])
def test_met_means_that_no_two_groups_differ_by_more_than_the_tolerance(data, fairness, clean_ratio):
    model = fit(data, fairness=fairness, clean_ratio=clean_ratio, tolerance=0.05)
    assert (model.stopped_ == "met") == (model.path_["gap"].iloc[-1] <= 0.05)
    assert (model.stopped_ == "met") == (model.gap_ <= 0.05)
    assert model.stopped_ == "met" or clean_ratio < 1.0
    options = {"sensitive_features": data.groups, "method": "between_groups"}
    found = disparity(fairness, data.labels, model.predict(data.features), **options)
    assert found == pytest.approx(model.gap_, abs=1e-6)  # of all rows, also of those that were not selected


def test_many_columns_and_classes_are_scikit_learns_model():
    """So many parameters that steps are solved for by conjugate gradients."""
    rng = np.random.default_rng(0)
    features = StandardScaler().fit_transform(rng.normal(size=(500, 300)))
    labels = (features[:, :3] + rng.normal(size=(500, 3))).argmax(axis=1)
    # On columns that are measured by two standard deviations a quarter is scikit-learn's C=1 on standardised ones.
    model = FairRobustClassifier(None, clean_ratio=1.0, ridge=0.25).fit(features, labels)
    oracle = LogisticRegression(tol=1e-8, max_iter=1000).fit(features, labels)
    assert model.predict_proba(features) == pytest.approx(oracle.predict_proba(features), abs=0.01)


@pytest.mark.skipif(not ARRAYS.exists(), reason="the authors' arrays are not beside the project")
@pytest.mark.parametrize(("flips", "fairness", "accuracy", "most"), [
    ("general", "equalized_odds", 0.720, 0.085),
    ("general", "demographic_parity", 0.714, 0.03),
    ("group-targeted", "equalized_odds", 0.718, 0.075),
    ("group-targeted", "demographic_parity", 0.712, 0.07),
])  # fmt: skip
def test_on_the_authors_arrays_it_settles_where_the_paper_does(flips, fairness, accuracy, most):
    parts, noisy = load_authors_arrays(ARRAYS)
    found = []
    for max_iter in (200, 400, 800):
        model = fit(parts.train, labels=noisy[flips], fairness=fairness, clean_ratio=0.9, max_iter=max_iter)
        assert model.stopped_ != "limit"
        predicted = model.predict(parts.test.features)
        right = float((predicted == parts.test.labels).mean())
        groups = {"sensitive_features": parts.test.groups}
        found.append((right, disparity(fairness, parts.test.labels, predicted, **groups)))
    assert len(set(found)) == 1
    assert found[0][0] >= accuracy
    assert found[0][1] <= most


def test_of_few_rows_it_is_told_that_a_tolerance_cannot_be_told_from_chance():
    """The gap is a mean over several deals of the rows to folds; and it is within the tolerance on these rows alone."""
    rng = np.random.default_rng(0)
    groups = rng.integers(0, 2, 300)
    features = np.column_stack([rng.normal(size=(300, 8)), groups])
    labels = (features @ [1.0, -1.0, 0.5, 0, 0, 0, 0, 0, 0.5] + rng.logistic(size=300) > 0.2).astype(int)
    model = FairRobustClassifier(clean_ratio=1.0, tolerance=0.04)
    with warnings.catch_warnings(record=True, action="always") as caught:
        model.fit(features, labels, sensitive_features=groups)
    assert model.stopped_ == "met"
    told = [str(each.message) for each in caught if "so few cannot tell" in str(each.message)]
    assert len(told) == 1
    assert f"the widest gap is {model.gap_:.3f} on rows" in told[0]


def test_the_path_is_monotone_and_every_point_of_it_can_be_had(data):
    model = fit(data, clean_ratio=1.0, tolerance=0.03)
    gaps = model.path_["gap"].to_numpy()
    assert (np.diff(gaps) < 0).all()
    for wanted in (0.2, 0.1, 0.03):
        point = model.at(tolerance=wanted)
        assert point.gap_ <= wanted
        able = model.path_[model.path_["gap"] <= wanted]
        assert point.path_.loc[model.path_["gap"] == point.gap_, "accuracy"].iloc[0] == able["accuracy"].max()
        options = {"sensitive_features": data.groups, "method": "between_groups"}
        again = equalized_odds_disparity(data.labels, point.predict(data.features), **options)
        assert again == pytest.approx(point.gap_, abs=1e-6)
    refused("tolerance must be at least the smallest gap of the path", model.at, tolerance=0.0)


@settings(max_examples=15, deadline=None)
@given(
    column=st.integers(0, 2),
    shift=st.sampled_from([-1e3, 30.0, 1e3, 1e7]),
    scale=st.sampled_from([1e-6, 1.0, 1e6]),
    clean_ratio=st.sampled_from([0.9, 1.0]),
)
def test_affine_columns_move_no_probability(column, shift, scale, clean_ratio):
    data = make_synthetic(900, seed=1)
    X = data.features.astype(np.float64)
    other = X.copy()
    other[:, column] = (X[:, column] + shift * X[:, column].std()) * scale
    options = {"clean_ratio": clean_ratio, "tolerance": 0.05}
    models = (fit_quietly(each, data.labels, data.groups, **options) for each in (X, other))
    one, two = (model.predict_proba(each) for model, each in zip(models, (X, other), strict=True))
    assert np.abs(one - two).max() <= 1e-6


@pytest.mark.parametrize("clean_ratio", [0.9, "auto"])
def test_numbers_of_accounts_are_a_column_as_any_other(clean_ratio):
    """A shift of a billion spreads changes no prediction; where it destroys what a column says, nothing breaks."""
    rng = np.random.default_rng(0)
    X, z = np.c_[rng.normal(size=(500, 2)), rng.integers(0, 2000, 500)], rng.integers(0, 2, 500)
    y = np.digitize(X[:, 0] + X[:, 2] / 500 + 0.5 * z + rng.normal(size=500), [2.0])
    far = X + np.array([0, 0, 10**12])
    settings = {"clean_ratio": clean_ratio, "tolerance": 0.05}
    one, two = (FairRobustClassifier(**settings).fit(each, y, sensitive_features=z) for each in (X, far))
    milder = max(one.gap_, two.gap_) + 0.05
    pairs = [(one, two), (one.at(tolerance=milder), two.at(tolerance=milder))]
    pairs += [(one.plain_model_, two.plain_model_), *zip(one.path_models_, two.path_models_, strict=True)]
    for before, after in pairs:
        assert before.predict(X).tolist() == after.predict(far).tolist()
        assert before.predict_proba(X) == pytest.approx(after.predict_proba(far), abs=1e-5)
    assert one.suspects()["row"].tolist() == two.suspects()["row"].tolist()
    for lost in (far.astype(np.float32), sparse.csr_matrix(far), np.c_[X, np.full(500, 1e12)]):
        model = FairRobustClassifier(clean_ratio=clean_ratio).fit(lost, y, sensitive_features=z)
        chances = model.predict_proba(lost)
        assert np.isfinite(chances).all()


def test_the_seed_decides_nothing(data):
    noisy = flip_uniform(data, 0.2, seed=0).labels
    found = [fit(data, labels=noisy, random_state=seed).predict_proba(data.features) for seed in (0, 7)]
    assert np.array_equal(*found)


def test_wrong_labels_are_left_out_and_listed():
    data = make_synthetic(2000, seed=3)
    noisy = flip_group_targeted(data, 0.1)
    model = fit(data, labels=noisy.labels, clean_ratio=0.9)
    suspects = model.suspects()
    assert isinstance(suspects, pd.DataFrame)
    assert list(suspects) == ["row", "label", "suggested", "loss", "probability", "group"]
    assert noisy.flipped[suspects["row"]].sum() >= 0.8 * noisy.flipped.sum()
    assert set(suspects["row"]).isdisjoint(model.sample_indices_)
    assert (suspects["label"] != suspects["suggested"]).all()
    assert len(suspects) <= 200
    plain = LogisticRegression().fit(data.features, noisy.labels)
    assert model.score(data.features, data.labels) > plain.score(data.features, data.labels) + 0.05
    assert fit(data, labels=noisy.labels, clean_ratio=1.0).suspects().empty


def test_no_suspects_where_no_label_is_wrong(data):
    assert fit(data).suspects().empty


def test_what_weights_cannot_reach_constraints_do_and_the_cost_is_told(data):
    """The group is no feature, so that no weight of its rows equalises."""
    for tolerance in (0.1, 0.02):
        model = FairRobustClassifier(clean_ratio=1.0, tolerance=tolerance)
        with pytest.warns(FairnessWarning, match=r"the tolerance of .* costs .*% of accuracy"):
            model.fit(data.features[:, :2], data.labels, sensitive_features=data.groups)
        assert model.stopped_ == "met"
        assert model.gap_ <= tolerance
    unnamed = FairRobustClassifier(clean_ratio=1.0)
    unnamed.fit(data.features[:, :2], data.labels, sensitive_features=data.groups)
    assert unnamed.stopped_ == "cost"
    assert unnamed.comparison_.accuracy >= unnamed.comparison_.plain_accuracy - 0.01
    assert unnamed.gap_ <= unnamed.comparison_.plain_gap


def test_an_unreachable_tolerance_names_the_gap_that_is_left():
    """Ten people of one label in one group: a rate of theirs is a tenth or more from any other, or none at all."""
    rng = np.random.default_rng(0)
    groups = np.repeat([0, 1], [300, 30])
    labels = np.r_[rng.integers(0, 2, 300), rng.integers(0, 2, 30)]
    X = np.c_[labels + rng.normal(size=330), groups]
    model = FairRobustClassifier(clean_ratio=1.0, tolerance=0.0)
    with warnings.catch_warnings(record=True, action="always") as caught:
        model.fit(X, labels, sensitive_features=groups)
    assert model.stopped_ == "unreachable"
    told = r"how often . is predicted of those labelled .: . least"
    assert any(re.search(told, str(each.message)) for each in caught)


def test_the_limit_is_told():
    data = make_synthetic(2000, seed=2)
    with pytest.warns(ConvergenceWarning, match="after max_iter=1 updates, above the tolerance of 0.001"):
        fit(data, clean_ratio=1.0, tolerance=0.001, max_iter=1)


def test_without_groups_no_fairness_is_asked_for(data):
    with pytest.warns(FairnessWarning, match="no fairness was asked for, since no group was named"):
        FairRobustClassifier(clean_ratio=1.0).fit(data.features, data.labels)
    in_pipeline = make_pipeline(FairRobustClassifier(clean_ratio=1.0))
    with pytest.warns(FairnessWarning, match="pipeline as STEP__sensitive_features=.*metadata routing"):
        in_pipeline.fit(data.features, data.labels)
    with warnings.catch_warnings(action="error"):
        model = FairRobustClassifier(None, clean_ratio=1.0, ridge=0.25).fit(data.features, data.labels)
    plain = LogisticRegression(C=1.0).fit(StandardScaler().fit_transform(data.features), data.labels)
    chances = plain.predict_proba(StandardScaler().fit_transform(data.features))
    assert model.predict_proba(data.features) == pytest.approx(chances, abs=1e-3)
    assert model.comparison_ is None


def test_the_plain_model_is_kept_where_the_fair_one_is_no_better():
    rng = np.random.default_rng(0)
    X, groups = rng.normal(size=(1200, 3)), rng.integers(0, 2, 1200)
    labels = (X[:, 0] + rng.normal(size=1200) > 0).astype(int)
    labels_of_all = FairRobustClassifier(clean_ratio=1.0)
    with pytest.warns(FairnessWarning, match="The plain model is kept"):
        labels_of_all.fit(X, X[:, 0] > 0, sensitive_features=groups)
    assert labels_of_all.is_plain_
    assert np.array_equal(labels_of_all.coef_, labels_of_all.plain_model_.coef_)
    named = FairRobustClassifier(clean_ratio=1.0, tolerance=0.02)
    with pytest.warns(FairnessWarning, match="The fair model is kept, as tolerance was named"):
        named.fit(X, labels, sensitive_features=groups)
    assert not named.is_plain_


def test_a_given_ratio_leaves_the_comparison_open(fitted):
    assert fitted.comparison_.verdict == "cannot be known"
    assert not fitted.is_plain_


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_frames_and_strings_are_arrays_and_codes(data, fitted, frame):
    X = frame({f"x{number}": column for number, column in enumerate(data.features.T)})
    labels, groups = np.array(["no", "yes"])[data.labels], np.array(["a", "b"])[data.groups]
    model = FairRobustClassifier(clean_ratio=0.9).fit(X, labels, sensitive_features=groups)
    assert model.predict_proba(X) == pytest.approx(fitted.predict_proba(data.features), abs=1e-6)
    assert set(model.predict(X)) <= {"no", "yes"}
    assert model.sensitive_values_ == ["a", "b"]
    assert list(model.feature_names_in_) == ["x0", "x1", "x2"]


def test_sparse_is_dense(data, fitted):
    model = FairRobustClassifier(clean_ratio=0.9)
    model.fit(sparse.csr_array(data.features), data.labels, sensitive_features=data.groups)
    assert model.predict_proba(data.features) == pytest.approx(fitted.predict_proba(data.features), abs=1e-5)


@pytest.mark.parametrize("fairness", NOTIONS)
def test_three_classes_three_groups_and_missing_ones(fairness):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(1800, 3))
    groups = rng.integers(0, 3, 1800).astype(object)
    X[:, 2] = groups.astype(float) + 0.3 * rng.normal(size=1800)
    labels = np.digitize(X[:, 0] + 0.5 * X[:, 2] + rng.normal(size=1800), [0.0, 1.0])
    groups[:30] = None
    model = FairRobustClassifier(fairness, clean_ratio=1.0, tolerance=0.05, pos_label=2)
    model.fit(X, labels, sensitive_features=groups)
    assert model.sensitive_values_ == [0, 1, 2, None]
    gaps = model.path_["gap"].to_numpy()
    assert gaps[-1] < gaps[0] or gaps[0] <= 0.05
    assert (np.diff(gaps) < 0).all()
    assert np.allclose(model.ratios_.sum(axis=1), 1)
    assert model.coef_.shape == (3, 3)


def test_effective_weights_say_who_is_seen(data):
    model = fit(data, clean_ratio=1.0, tolerance=0.02)
    shares = np.array([[np.mean((data.labels == y) & (data.groups == z)) for z in (0, 1)] for y in (0, 1)])
    weights = model.effective_weights_
    assert weights.index.tolist() == [0, 1]
    assert weights.columns.tolist() == [0, 1]
    assert (weights.to_numpy() * shares).sum() == pytest.approx(1)
    natural = fit(data, clean_ratio=1.0, tolerance=1.0)
    assert natural.effective_weights_.to_numpy() == pytest.approx(np.ones((2, 2)))


def test_clone_pickle_and_scikit_learns_own_model(data, fitted):
    assert clone(fitted).get_params() == fitted.get_params()
    again = pickle.loads(pickle.dumps(fitted))
    assert np.array_equal(again.predict_proba(data.features), fitted.predict_proba(data.features))
    assert len(pickle.dumps(fitted)) < 200_000  # it does not keep the training data's features
    plain = fitted.to_sklearn()
    assert plain.predict_proba(data.features) == pytest.approx(fitted.predict_proba(data.features), abs=1e-12)
    with pytest.raises(NotFittedError):
        FairRobustClassifier().predict(data.features)


@pytest.mark.parametrize("names", [[0, 1], ["no", "yes"]])
@pytest.mark.parametrize("noise", [0.0, 0.2])
def test_skops_stores_a_fitted_model_whole(data, names, noise):
    labels = np.array(names)[flip_uniform(data, noise, seed=0).labels]
    model = fit(data, labels=labels)
    stored = skops.io.dumps(model)
    again = skops.io.loads(stored, trusted=skops.io.get_untrusted_types(data=stored))
    for other in (again, pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
        assert (other.predict(data.features) == model.predict(data.features)).all()
        pd.testing.assert_frame_equal(other.path_, model.path_)
        pd.testing.assert_frame_equal(other.suspects(), model.suspects())


def test_in_pipelines_and_searches(data):
    with config_context(enable_metadata_routing=True):
        inside = FairRobustClassifier(clean_ratio=0.9).set_fit_request(sensitive_features=True)
        tried = {"fairrobustclassifier__tolerance": [0.05, 0.2]}
        search = GridSearchCV(make_pipeline(StandardScaler(), inside), tried, cv=2)
        search.fit(data.features, data.labels, sensitive_features=data.groups)
    assert search.best_params_["fairrobustclassifier__tolerance"] in (0.05, 0.2)


def test_a_stopped_training_says_so(data):
    with interrupt_solver_after(12), pytest.warns(FairsieveWarning, match="training was stopped after"):
        model = fit(data, clean_ratio=0.9, tolerance=0.001)
    assert model.stopped_ == "interrupted"
    assert np.isfinite(model.predict_proba(data.features)).all()


@pytest.mark.parametrize(("options", "message"), [
    ({"clean_ratio": 1.5}, "clean_ratio must be"),
    ({"clean_ratio": 0.0001}, "clean_ratio must select at least one sample"),
    ({"tolerance": -0.1}, "tolerance must be"),
    ({"max_iter": 0}, "max_iter must be a whole number of at least 1; got 0"),
    ({"pos_label": 7}, "pos_label"),
    ({"random_state": "x"}, "random_state must be"),
    ({"clean_ratio": 0.9, "device": "nowhere"}, "nowhere"),
])  # fmt: skip
def test_bad_parameters_are_named_at_fit(data, options, message):
    refused(message, fit, data, **options)


def test_bad_data_is_named(data, fitted):
    X, y, z = data.features, data.labels, data.groups
    texts, told = [["a"]] * len(y), "X must hold numbers; column 0 holds texts such as 'a'"
    for features, message in ((np.where(X > 2, np.nan, X), "NaN"), (texts, told)):
        with pytest.raises(ValueError, match=message):
            FairRobustClassifier(clean_ratio=0.9).fit(features, y, z)
    with pytest.raises(ValueError, match="3 features"):
        fitted.predict(X[:, :2])


def test_wide_tables_of_very_many_rows(monkeypatch):
    """The way that a part of the rows showed is walked on all of them, without folds."""
    monkeypatch.setattr(solver, "MANY", 400)
    monkeypatch.setattr(solver, "PART", 300)
    rng = np.random.default_rng(0)
    data = make_synthetic(500, seed=0)
    features = np.column_stack([data.features, rng.normal(size=(500, 5))])
    model = FairRobustClassifier(clean_ratio=1.0, tolerance=0.1)
    model.fit(features, data.labels, sensitive_features=data.groups)
    assert not model.comparison_.held_out
    assert model.gap_ <= 0.1


def test_another_point_of_the_path_has_its_own_comparison(data):
    model = fit(data, clean_ratio=1.0, tolerance=0.03)
    milder = model.at(tolerance=0.2)
    assert milder.comparison_.gap == pytest.approx(milder.gap_)
    assert model.comparison_.gap == pytest.approx(model.gap_)


def test_ids_are_no_classes_and_overflowing_numbers_are_named(data):
    for labels in (np.arange(1500) % 150, np.arange(1500)):
        refused("y must have at most 100 classes", fit, data, labels=labels)
    X = data.features.astype(float)
    X[3, 0] = 1e155
    told = r"X must hold numbers of at most 1e\+150 in size.* got 1e\+155"
    refused(told, FairRobustClassifier().fit, X, data.labels, sensitive_features=data.groups)


@settings(max_examples=6, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    samples=st.integers(150, 300),
    classes=st.integers(2, 3),
    clean_ratio=st.sampled_from(["auto", 0.8, 1.0]),
    tolerance=st.sampled_from([None, 0.05]),
    most=st.just(8),
)
@example(seed=1, samples=80, classes=3, clean_ratio=0.8, tolerance=0.05, most=200)  # as far as it goes
def test_names_orders_and_copies_move_no_probability(seed, samples, classes, clean_ratio, tolerance, most):
    """Numbers, categories with few values, columns that hold as many ones as another; a weight is so many copies."""
    rng = np.random.default_rng(seed)
    groups, half = rng.integers(0, 3, samples), np.arange(samples) % 2
    categories = [rng.integers(0, 2, samples), rng.permutation(half), rng.permutation(half)]
    X = np.c_[rng.normal(size=(samples, 2)) + 0.5 * groups[:, None], np.transpose(categories)]
    scores = X[:, 0] + X[:, 2] + 0.4 * groups + rng.normal(size=samples)
    labels = np.digitize(scores, [1.0, 2.0][: classes - 1])
    columns, rows = rng.permutation(5), rng.permutation(samples)
    weights = rng.integers(1, 4, samples)
    options = {"clean_ratio": clean_ratio, "tolerance": tolerance, "max_iter": most}
    expected = fit_quietly(X, labels, groups, weights, **options)
    names, copies = np.array(["c", "a", "b"])[groups], np.repeat(rows, weights[rows])
    renamed = np.c_[np.full(samples, 7.0), X[:, columns]], labels, names, weights
    for features, y, z, counted in (renamed, (X[copies], labels[copies], groups[copies], None)):
        model = fit_quietly(features, y, z, counted, **options)
        chances = expected.predict_proba(X if counted is not None else features)
        assert np.abs(model.predict_proba(features) - chances).max() <= 1e-6
        assert model.gap_ == pytest.approx(expected.gap_, abs=1e-9)
        assert model.clean_ratio_ == pytest.approx(expected.clean_ratio_, abs=1e-9)


@pytest.mark.parametrize("clean_ratio", [0.9, "auto"])
@pytest.mark.parametrize("seed", range(100, 104))
def test_noise_in_the_last_digits_moves_no_probability(seed, clean_ratio):
    rng = np.random.default_rng(seed)
    groups = rng.integers(0, 2, 600)
    X = rng.normal(size=(600, 4)) + 0.5 * groups[:, None] * [1, 0, 1, 0]
    labels = X @ [1, 1, 0.5, 0] + 0.4 * groups + rng.logistic(size=600) > 0.5
    labels ^= rng.random(600) < 0.1
    moved = X + 1e-7 * rng.normal(size=X.shape)
    models = (fit_quietly(each, labels, groups, clean_ratio=clean_ratio) for each in (X, moved))
    one, two = (model.predict_proba(X) for model in models)
    assert one == pytest.approx(two, abs=1e-4)


@settings(max_examples=15, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    samples=st.integers(90, 500),
    columns=st.integers(0, 3),
    clean_ratio=st.sampled_from(["auto", 0.9, 1.0]),
)
def test_people_who_are_alike_are_predicted_as_well_as_the_path_says(seed, samples, columns, clean_ratio):
    """None of the kinds is held out whole: the others say nothing about it."""
    rng = np.random.default_rng(seed)
    X, groups = np.c_[np.ones(samples), rng.integers(0, 2, (samples, columns))], rng.integers(0, 2, samples)
    labels = (X[:, -1] > 0) ^ (rng.random(samples) < 0.15) if columns else np.arange(samples) % 2
    model = fit_quietly(X, labels, groups, clean_ratio=clean_ratio)
    reached = model.at(tolerance=1.0).score(X, labels)
    assert model.path_["accuracy"][0] == pytest.approx(reached, abs=0.05)


def test_weights_that_sum_to_less_than_the_rows_are_shares(data):
    given = data.features, data.labels, data.groups
    one, shares = (fit_quietly(*given, each, tolerance=0.05) for each in (None, np.full(1500, 1 / 1500)))
    assert shares.predict_proba(data.features) == pytest.approx(one.predict_proba(data.features), abs=1e-6)
    assert fit_quietly(*given, np.full(1500, 1e-9)).tolerance_ < 0.1


@pytest.mark.parametrize("device", ["cuda", "gpu7"])
def test_a_device_that_torch_lacks_is_named(data, device):
    torch = pytest.importorskip("torch")
    if device == "cuda" and torch.cuda.is_available():
        pytest.skip("there is one")
    refused(f"torch can use here, such as 'cpu'; got '{device}' .*leave dev", fit, data, device=device)


def test_each_point_of_a_path_under_a_given_ratio_knows_its_own_suspects(data):
    noisy = flip_group_targeted(data, 0.1).labels
    model = fit(data, labels=noisy, clean_ratio=0.9, tolerance=0.02)
    points = [model.at(tolerance=float(gap)) for gap in model.path_["gap"]]
    assert len(points) > 1
    assert [point.path_index_ for point in points] == list(range(len(points)))
    for point in points:
        suspects = point.suspects()
        own = point.predict(data.features)[suspects["row"]]
        assert (own == suspects["suggested"]).all()
        assert set(suspects["row"]).isdisjoint(point.sample_indices_)
        assert 1000 < len(point.sample_indices_) < 1500
    again = pickle.loads(pickle.dumps(model)).at(tolerance=1.0)
    pd.testing.assert_frame_equal(again.suspects(), model.at(tolerance=1.0).suspects())


def test_what_other_points_of_many_rows_selected_is_not_known_and_said(data, monkeypatch):
    monkeypatch.setattr(classifier, "MANY", 1000)
    point = fit(data, clean_ratio=0.9, tolerance=0.02).at(tolerance=1.0)
    refused(r"needs the training rows.*fit with this tolerance", point.suspects)
    with pytest.raises(AttributeError, match="sample_indices_ needs the training rows"):
        point.sample_indices_  # noqa: B018


def test_models_of_scikit_learn_predict_at_the_threshold(data):
    model = fit(data, threshold=0.3, clean_ratio=1.0)
    assert (model.to_sklearn().predict(data.features) == model.predict(data.features)).all()
    plain = model.plain_model_
    chances = plain.predict_proba(data.features)[:, 1]
    assert (plain.predict(data.features) == (chances >= 0.3)).all()


def test_rates_are_equal_at_the_threshold_that_predictions_use(data):
    for threshold in (0.3, "rate:0.2", "balanced"):
        model = fit(data, clean_ratio=1.0, tolerance=0.05, threshold=threshold)
        predicted = model.predict(data.features)
        assert np.array_equal(predicted == 1, model.predict_proba(data.features)[:, 1] > model.threshold_)
        options = {"sensitive_features": data.groups, "method": "between_groups"}
        found = equalized_odds_disparity(data.labels, predicted, **options)
        assert found == pytest.approx(model.gap_, abs=0.01)
        assert model.gap_ <= 0.05


def test_fits_in_threads_leave_blas_as_it_was(data):
    from concurrent.futures import ThreadPoolExecutor

    from threadpoolctl import threadpool_info, threadpool_limits

    from fairsieve.training.rows import one_thread

    def threads():
        return [each["num_threads"] for each in threadpool_info() if each["user_api"] == "blas"]

    with threadpool_limits(limits=2, user_api="blas"):
        before = threads()
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(lambda _: fit(data, clean_ratio=1.0, tolerance=0.1), range(6)))
        assert threads() == before
        # The one that came first leaves first, and the other one, in another thread, last.
        first, second = one_thread("blas"), one_thread("blas")
        with ThreadPoolExecutor(1) as other:
            first.__enter__()
            other.submit(second.__enter__).result()
            first.__exit__(None, None, None)
            assert set(threads()) == {1}
            other.submit(second.__exit__, None, None, None).result()
        assert threads() == before
