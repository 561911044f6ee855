"""Scorers: the metrics' values, the groups by metadata routing, picklable."""

import pickle

import numpy as np
import pytest
from fairlearn.metrics import MetricFrame
from sklearn import config_context
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from tests.support.refusals import refused

import fairsieve
from fairsieve import fairness_scorer
from fairsieve.errors import InvalidInputError
from fairsieve.metrics import accuracy
from fairsieve.notions import NOTIONS


@pytest.fixture(scope="module")
def model(data):
    return LogisticRegression().fit(data.features, data.labels)


@pytest.fixture(autouse=True)
def routing():
    with config_context(enable_metadata_routing=True):
        yield


@pytest.mark.parametrize("fairness", NOTIONS)
@pytest.mark.parametrize("method", ["to_overall", "between_groups"])
def test_score_is_the_negative_disparity(data, model, fairness, method):
    guessed, groups = model.predict(data.features), data.groups
    metric = getattr(fairsieve, f"{fairness}_disparity")
    disparity = metric(data.labels, guessed, sensitive_features=groups, method=method)
    for name in (fairness, fairness.replace("_", "-")):
        scorer = pickle.loads(pickle.dumps(fairness_scorer(name, method=method)))
        assert scorer(model, data.features, data.labels, sensitive_features=groups) == -disparity
    scorer = fairness_scorer(fairness, method=method, with_accuracy=True)
    found = scorer(model, data.features, data.labels, sensitive_features=groups)
    assert found == pytest.approx(accuracy(data.labels, guessed) - disparity)


def test_positive_label_changes_equal_opportunity(data, model):
    scorers = [fairness_scorer("equal_opportunity", pos_label=label) for label in (0, 1)]
    given = model, data.features, data.labels
    scores = [scorer(*given, sensitive_features=data.groups) for scorer in scorers]
    assert scores[0] != scores[1]


def test_grid_search_passes_the_groups_to_the_scorer(data):
    dummy, tried = DummyClassifier(random_state=0), {"strategy": ["most_frequent", "uniform"]}
    search = GridSearchCV(dummy, tried, scoring=fairness_scorer(), cv=3, error_score="raise")
    search.fit(data.features, data.labels, sensitive_features=data.groups)
    assert search.best_params_ == {"strategy": "most_frequent"}  # a constant is fair
    assert search.best_score_ == 0


def test_missing_groups_and_bad_parameters_are_named(data, model):
    with pytest.raises(InvalidInputError, match="sensitive_features must be given to a scorer of fairness"):
        fairness_scorer()(model, data.features, data.labels)
    refused("method must be one of", fairness_scorer, method="overall")
    refused("fairness must be one of", fairness_scorer, "none")


@pytest.mark.parametrize("fairness", NOTIONS)
def test_the_metrics_work_in_a_metric_frame(data, model, fairness):
    """Disparity between ages, within each sex; a missing age counts for accuracy alone."""
    rng = np.random.default_rng(0)
    age = np.where(rng.random(300) < 0.1, np.nan, rng.integers(0, 3, 300))
    sex, guessed = rng.choice(["f", "m"], 300), model.predict(data.features)
    metric = getattr(fairsieve, f"{fairness}_disparity")
    metrics, more = {"accuracy": accuracy, "disparity": metric}, {"disparity": {"sensitive_features": age}}
    given = {"y_true": data.labels, "y_pred": guessed, "sensitive_features": sex}
    frame = MetricFrame(metrics=metrics, **given, sample_params=more)
    for value in ("f", "m"):
        inside, there = sex == value, (sex == value) & ~np.isnan(age)
        expected = metric(data.labels[there], guessed[there], sensitive_features=age[there])
        assert frame.by_group.loc[value, "disparity"] == pytest.approx(expected)
        assert frame.by_group.loc[value, "accuracy"] == accuracy(data.labels[inside], guessed[inside])
