"""SieveClassifier around the common boosters: shapes, labels, categories, missing values, early stopping."""

from typing import ClassVar

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.tree import DecisionTreeClassifier
from tests.support.refusals import refused

from fairsieve import SieveClassifier
from fairsieve.data import make_synthetic

BOOSTERS = ["catboost", "xgboost", "lightgbm", "hist_gradient_boosting"]
SHORT = {"clean_ratio": 0.9, "max_iter": 1, "cv": 2, "random_state": 0}


def make_booster(name, **options):
    if name != "hist_gradient_boosting":
        pytest.importorskip(name)
    if name == "catboost":
        from catboost import CatBoostClassifier

        chosen = {"iterations": 5, "depth": 3, "verbose": False, "thread_count": 1} | options
        return CatBoostClassifier(allow_writing_files=False, **chosen)
    if name == "xgboost":
        from xgboost import XGBClassifier

        return XGBClassifier(**({"n_estimators": 5, "max_depth": 3, "n_jobs": 1} | options))
    if name == "lightgbm":
        from lightgbm import LGBMClassifier

        return LGBMClassifier(**({"n_estimators": 5, "num_leaves": 4, "n_jobs": 1, "verbose": -1} | options))
    return HistGradientBoostingClassifier(**({"max_iter": 5} | options))


def make_problem(classes, text_labels):
    """Three numeric columns, two or three classes, two groups."""
    data = make_synthetic(300, seed=0)
    labels = np.digitize(data.features[:, 0], [-1, 1] if classes == 3 else [0])
    names = np.array(["10", "9", "none"])[:classes]  # in no order that the numbers have
    return data.features, names[labels] if text_labels else labels, data.groups


@pytest.mark.parametrize("text_labels", [False, True], ids=["numbers", "texts"])
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("name", BOOSTERS)
def test_predictions_have_one_dimension_and_are_the_most_probable_classes(name, classes, text_labels):
    X, y, z = make_problem(classes, text_labels)
    model = SieveClassifier(make_booster(name), keep_path=True, **SHORT).fit(X, y, sensitive_features=z)
    predicted, chances = model.predict(X), model.predict_proba(X)
    assert predicted.shape == y.shape
    assert predicted.dtype == y.dtype
    assert chances.shape == (300, classes)
    assert model.classes_.tolist() == sorted(set(y.tolist()))
    assert predicted.tolist() == model.classes_[chances.argmax(axis=1)].tolist()
    assert np.mean(predicted == y) == model.score(X, y) > 0.8
    assert model.at(tolerance=1.0).score(X, y) > 0.8


class ColumnPredictor(DecisionTreeClassifier):
    """Predicts a column of labels, as CatBoost does for three classes."""

    def predict(self, X, check_input=True):
        return super().predict(X, check_input).reshape(-1, 1)


@pytest.mark.parametrize("classes", [2, 3])
def test_a_column_of_predictions_becomes_one_dimension(classes):
    X, y, z = make_problem(classes, text_labels=True)
    model = SieveClassifier(ColumnPredictor(max_depth=3), **SHORT).fit(X, y, sensitive_features=z)
    assert model.predict(X).shape == (300,)
    assert model.score(X, y) > 0.8


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("name", BOOSTERS)
def test_native_categories_and_missing_values(name, classes):
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"number": np.where(rng.random(400) < 0.1, np.nan, rng.normal(size=400))})
    X["colour"] = pd.Categorical(rng.choice(["blue", "green", "red"], 400))
    by_name = {"catboost": {"cat_features": ["colour"]}, "lightgbm": {}}
    by_name["xgboost"] = {"enable_categorical": True, "tree_method": "hist"}
    by_name["hist_gradient_boosting"] = {"categorical_features": "from_dtype"}
    options = by_name[name]
    y = X["colour"].astype(str).to_numpy() if classes == 3 else np.where(X["colour"] == "red", "good", "bad")
    y = np.where(rng.random(400) < 0.1, y[rng.permutation(400)], y)
    z = rng.choice(["f", "m"], 400)
    model = SieveClassifier(make_booster(name, **options), **SHORT).fit(X, y, sensitive_features=z)
    assert model.predict(X).shape == (400,)
    assert model.score(X, y) > 0.8


@pytest.mark.parametrize("name", ["xgboost", "lightgbm", "catboost"])
def test_a_fold_without_one_of_the_classes(name):
    X, y, z = make_problem(3, text_labels=False)
    order = np.argsort(y != 1, kind="stable")  # class 1 comes first, and only there
    X, y, z = X[order], y[order], z[order]
    middle = int((y == 1).sum())
    folds = [(np.arange(middle, 300), np.arange(middle)), (np.arange(middle), np.arange(middle, 300))]
    model = SieveClassifier(make_booster(name), **(SHORT | {"cv": folds})).fit(X, y, sensitive_features=z)
    assert model.predict_proba(X).shape == (300, 3)


EARLY = {
    "catboost": {"iterations": 200, "early_stopping_rounds": 3},
    "xgboost": {"n_estimators": 200, "early_stopping_rounds": 3},
    "lightgbm": {"n_estimators": 200, "early_stopping_round": 3},
}
TREES = {"catboost": "tree_count_", "xgboost": "best_iteration", "lightgbm": "best_iteration_"}


# LightGBM's eval_y takes no texts.
@pytest.mark.filterwarnings("ignore:The argument 'eval_set' is deprecated")
@pytest.mark.parametrize("text_labels", [False, True], ids=["numbers", "texts"])
@pytest.mark.parametrize("name", EARLY)
def test_early_stopping_on_samples_that_are_passed_to_fit(name, text_labels):
    X, y, z = make_problem(3, text_labels)
    y = np.where(np.random.default_rng(0).random(300) < 0.2, y[::-1], y)  # there is something to overfit
    X, X_check, y, y_check, z, _ = train_test_split(X, y, z, random_state=0)
    options = {"verbose": False} if name == "xgboost" else {}
    model = SieveClassifier(make_booster(name, **EARLY[name]), **SHORT)
    model.fit(X, y, sensitive_features=z, eval_set=[(X_check, y_check)], **options)
    assert getattr(model.estimator_, TREES[name]) < 150
    assert model.score(X_check, y_check) > 0.6


class Recorder(DecisionTreeClassifier):
    """Remembers the parameters of its fits."""

    calls: ClassVar[list] = []  # shared, since copies are fitted

    def fit(self, X, y, sample_weight=None, **options):
        self.calls.append((X[:, 0].copy(), sample_weight, options))
        return super().fit(X, y, sample_weight=sample_weight)


def test_fit_parameters_with_one_value_per_sample_are_divided_like_the_samples():
    X, y, z = make_problem(2, text_labels=False)
    X = np.column_stack([np.arange(300), X])
    weights = (np.arange(300) % 5 > 0).astype(float)  # every fifth sample is left out
    Recorder.calls.clear()
    model = SieveClassifier(make_pipeline(FunctionTransformer(), Recorder(max_depth=2)), **SHORT)
    options = {"recorder__ages": np.arange(300) * 10, "recorder__note": "as it is", "recorder__few": [1, 2]}
    model.fit(X, y, sensitive_features=z, sample_weight=weights, **options)
    assert len(Recorder.calls) >= 5
    for rows, _, found in Recorder.calls:
        assert found["ages"].tolist() == (rows * 10).tolist()
        assert (found["note"], found["few"]) == ("as it is", [1, 2])


def test_evaluation_labels_of_an_unknown_class_are_refused():
    X, y, z = make_problem(2, text_labels=True)
    model = SieveClassifier(make_booster("xgboost"), **SHORT)
    told = r"eval_set must have labels among \['10', '9'\]; got 'other'"
    refused(told, model.fit, X, y, sensitive_features=z, eval_set=[(X[:2], ["other", "9"])])
