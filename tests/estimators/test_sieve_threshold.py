"""A sieve with a threshold, the classifiers of its rounds, and the labels it suspects."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

from fairsieve import SieveClassifier
from fairsieve.data import make_synthetic
from fairsieve.errors import InvalidInputError


@pytest.fixture(scope="module")
def data():
    return make_synthetic(600, seed=0)


SHORT = {"clean_ratio": 0.9, "max_iter": 2, "cv": 2, "random_state": 0}


def fit(data, **settings):
    model = SieveClassifier(LogisticRegression(), **SHORT | settings)
    return model.fit(data.features, data.labels, sensitive_features=data.groups)


@pytest.mark.parametrize("positive", [None, 0])
def test_a_rate_is_kept_out_of_fold(data, positive):
    model = fit(data, threshold="rate:0.2", pos_label=positive)
    place = 1 if positive is None else 0
    out_of_fold = model._points[model.path_index_].probabilities[:, place]
    assert np.mean(out_of_fold >= model.threshold_) == pytest.approx(0.2, abs=0.002)
    chances = model.predict_proba(data.features)[:, place]
    np.testing.assert_array_equal(model.predict(data.features) == place, chances >= model.threshold_)


def test_rounds_are_scored_under_the_threshold(data):
    plain, strict = fit(data), fit(data, threshold=0.9)
    assert plain.threshold_ == 0.5
    assert strict.threshold_ == 0.9
    # The first round is the same model, judged by other predictions.
    np.testing.assert_array_equal(plain._points[0].probabilities, strict._points[0].probabilities)
    assert strict.path_["accuracy"][0] < plain.path_["accuracy"][0]


def test_the_classifiers_of_all_rounds_are_kept(data):
    model = fit(data, keep_path=True)
    assert len(model.path_models_) == len(model._points) == len(model.path_)
    assert model.path_models_[0] is model.plain_model_
    assert model.path_models_[model.path_index_] is model.estimator_
    assert not hasattr(fit(data), "path_models_")


def test_suspects_are_named_where_plain_training_is_the_best():
    random = np.random.default_rng(0)
    features, groups = random.normal(size=(300, 1)), random.integers(0, 2, 300)
    wrong = random.random(300) < 0.1
    labels = (features[:, 0] > 0) ^ wrong
    tree = DecisionTreeClassifier(max_depth=1)
    model = SieveClassifier(tree, clean_ratio=0.9, max_iter=1, cv=2, random_state=0)
    model.fit(features, labels, sensitive_features=groups)
    assert model.path_index_ == 0
    assert (model.weights_ == 1).all()
    suspects = model.suspects()["row"]
    assert set(np.flatnonzero(wrong)) <= set(suspects)
    assert wrong[suspects].mean() > 0.9


def test_a_threshold_of_three_classes_is_refused(data):
    labels = np.arange(len(data)) % 3
    told = r"threshold must be 0.5 for more than two labels.*got balanced with 3"
    with pytest.raises(InvalidInputError, match=told):
        SieveClassifier(LogisticRegression(), threshold="balanced").fit(data.features, labels)
    with pytest.raises(InvalidInputError, match=r"threshold must be a probability .*got 'often'"):
        SieveClassifier(LogisticRegression(), threshold="often").fit(data.features, data.labels)


@pytest.mark.parametrize("threshold", [0.5, "balanced"])
@pytest.mark.parametrize("positive", [None, 0])
def test_the_classifier_alone_predicts_the_same(data, threshold, positive):
    model = fit(data, threshold=threshold, pos_label=positive)
    alone = model.to_sklearn()
    assert type(alone).__module__.startswith("sklearn.")
    assert alone.predict(data.features).tolist() == model.predict(data.features).tolist()
    skops = pytest.importorskip("skops.io")
    again = skops.loads(skops.dumps(alone))
    assert again.predict(data.features).tolist() == model.predict(data.features).tolist()


def test_every_round_knows_its_own_suspects_and_rows(data):
    model = fit(data, clean_ratio=0.8, tolerance=0.0, keep_path=True)
    assert len(model.path_) == 3
    for gap in model.path_["gap"]:
        point = model.at(tolerance=float(gap))
        place = point.path_index_
        assert set(point.sample_indices_) <= set(np.flatnonzero(point.weights_))
        likeliest = model._points[max(place, 1)].probabilities.argmax(axis=1)
        suspects = point.suspects()
        assert (suspects["suggested"] == likeliest[suspects["row"]]).all()
        assert (point.comparison_ is None) == (place == 0)


def test_weights_that_sum_to_less_than_the_rows_are_shares_for_a_sieve_too(data):
    model, fits = SieveClassifier(DecisionTreeClassifier(max_depth=3), random_state=0), []
    for weights in (None, np.full(len(data), 1 / len(data))):
        options = {"sensitive_features": data.groups, "sample_weight": weights}
        fits.append(clone(model).fit(data.features, data.labels, **options))
    assert fits[0].tolerance_ == fits[1].tolerance_
    assert fits[0].path_["gap"].tolist() == pytest.approx(fits[1].path_["gap"].tolist(), abs=1e-9)
