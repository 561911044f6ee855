"""What a sieve forecasts, what a default fit costs, and that it does no harm."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

from fairsieve import SieveClassifier
from fairsieve.data import make_synthetic
from fairsieve.errors import InvalidInputError
from fairsieve.estimators import sieve
from fairsieve.estimators._forecast import Forecast
from fairsieve.estimators._learner import TrainingTask
from fairsieve.label_noise.estimate import estimate_of
from fairsieve.metrics import compared_rates
from fairsieve.training.newton import Cleaning

TREE = DecisionTreeClassifier(random_state=0)


def known_table(rng, classes, groups):
    """Draw a table of eight kinds of rows, and the chances of its cells by kind, which nobody needs to estimate."""
    kinds, y, z = rng.integers(0, 8, 400), rng.integers(0, classes, 400), rng.integers(0, groups, 400)
    counts = np.zeros((8, classes, groups))
    np.add.at(counts, (kinds, y, z), 1.0)
    of_class = counts.sum(axis=2) / counts.sum(axis=(1, 2))[:, None]
    of_group = counts / np.maximum(counts.sum(axis=2, keepdims=True), 1e-12)
    members = np.zeros((400, classes, groups))
    members[np.arange(400), y, z] = 1.0
    rates = compared_rates("equalized_odds", classes)
    forecast = Forecast(of_class[kinds], of_group[kinds], members, rates, groups)
    return kinds[:, None].astype(float), y, z, forecast


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), classes=st.integers(2, 3), groups=st.integers(1, 3))
def test_where_the_chances_are_known_the_forecast_is_the_fitted_model(seed, classes, groups):
    rng = np.random.default_rng(seed)
    X, y, z, forecast = known_table(rng, classes, groups)
    weights = rng.uniform(-0.5 if classes == 2 else 0.1, 2.0, (classes, groups))
    task = TrainingTask(estimator=TREE, X=X, labels=y, classes=np.arange(classes))
    fitted = task.fit(weights[y, z]).predict_proba(X, np.arange(classes)).argmax(axis=1)
    assert (forecast.predict(weights, 1e-9).argmax(axis=1) == fitted).mean() > 0.99  # but for ties


@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), tolerance=st.sampled_from([0.05, 0.2]))
def test_the_weights_that_are_found_narrow_the_gap_that_is_forecast(seed, tolerance):
    rng = np.random.default_rng(seed)
    _, _, _, forecast = known_table(rng, 2, 2)
    ones = np.ones((2, 2))
    table = forecast.count(forecast.predict(ones, 1e-9))
    before = forecast.gap(ones, ones, table)
    found = forecast.solve(ones, tolerance, table)
    assert forecast.gap(found, ones, table) <= max(before, tolerance) + 0.05


def test_a_weight_below_zero_is_a_reversed_label():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 3)), np.array(["no", "yes"])[rng.integers(0, 2, 200)]
    weights = rng.uniform(-1, 1, 200)
    task = TrainingTask(estimator=LogisticRegression(), X=X, labels=y, classes=np.array(["no", "yes"]))
    turned = np.where(weights < 0, np.where(y == "no", "yes", "no"), y)
    expected = LogisticRegression().fit(X, turned, sample_weight=np.abs(weights))
    assert task.fit(weights).estimator.coef_ == pytest.approx(expected.coef_)


class Counting(DecisionTreeClassifier):
    """A tree that remembers how many rows all its copies were fitted to."""

    rows = 0

    def fit(self, X, y, sample_weight=None):
        Counting.rows += len(X)
        return super().fit(X, y, sample_weight)


@pytest.mark.parametrize("tolerance", [None, 0.0])
@pytest.mark.parametrize("clean_ratio", ["auto", 0.9])
def test_a_default_fit_costs_at_most_ten_plain_ones(clean_ratio, tolerance):
    data, Counting.rows = make_synthetic(900, seed=0), 0
    tree = Counting(max_depth=4, random_state=0)
    model = SieveClassifier(tree, clean_ratio=clean_ratio, tolerance=tolerance)
    model.set_params(random_state=0).fit(data.features, data.labels, sensitive_features=data.groups)
    assert 900 * 4 <= Counting.rows <= 900 * 10


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), loss=st.sampled_from([0.0, 0.01, 0.05]))
def test_without_a_named_tolerance_no_more_accuracy_is_lost_than_may_be(seed, loss):
    """At 95 % confidence, by the labels or as if groups had the same shares of each class, if that is kinder."""
    rng = np.random.default_rng(seed)
    z = rng.integers(0, 2, 300)
    X = rng.normal(size=(300, 3)) + z[:, None] * rng.normal(size=3)
    y = (X[:, 0] + rng.normal(size=300) > 0).astype(int)
    model = SieveClassifier(LogisticRegression(), clean_ratio=1.0, max_accuracy_loss=loss, random_state=0)
    path = model.fit(X, y, sensitive_features=z).path_
    plain, chosen = path.iloc[0], path.iloc[model.path_index_]
    first, last = (model._points[place].probabilities.argmax(axis=1) == y for place in (0, model.path_index_))
    change = last * 1.0 - first
    ones = np.ones(300)
    cells = np.array([[((y == label) & (z == group)).mean() for group in (0, 1)] for label in (0, 1)])
    alike = (cells.sum(axis=1, keepdims=True) * cells.sum(axis=0) / np.maximum(cells, 1e-9))[y, z]
    surely = []
    for weights in (ones, alike):
        mean = np.average(change, weights=weights)
        error = np.sqrt(np.average((change - mean) ** 2, weights=weights) / 300)
        surely.append((mean, error))
    mean, error = max(surely)
    assert model.is_plain_ or 1.645 * error - mean <= loss + 1e-9
    assert model.is_plain_ or chosen["accuracy"] > plain["accuracy"] or chosen["gap"] < plain["gap"]


def test_max_accuracy_loss_is_a_share():
    data = make_synthetic(200, seed=0)
    with pytest.raises(InvalidInputError, match=r"max_accuracy_loss must be a number in \[0, 1\]; got 2"):
        SieveClassifier(clone(TREE), max_accuracy_loss=2).fit(data.features, data.labels, data.groups)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("helps", [True, False])
def test_labels_are_left_out_where_that_predicts_better(helps, seed, monkeypatch):
    """Whatever is proposed, the classifier tries it out of fold; nobody is suspected because of it."""
    data = make_synthetic(1500, seed=0)
    wrong = np.random.default_rng(0).random(1500) < 0.25
    labels = np.where(wrong, 1 - data.labels, data.labels)
    left_out = wrong if helps else ~wrong & (np.random.default_rng(1).random(1500) < 0.5)
    proposed = Cleaning(0.3, ~left_out, [~left_out] * 3)
    monkeypatch.setattr(sieve, "choose_cleaning", lambda *given: proposed)
    # An estimate that knows of no wrong label, as where they cannot be told.
    monkeypatch.setattr(sieve, "estimate_of", lambda rows, *given: estimate_of(unknowable(rows), *given))
    model = SieveClassifier(clone(TREE).set_params(min_samples_leaf=10), tolerance=1.0, random_state=seed)
    model.fit(data.features, labels, sensitive_features=data.groups)
    assert (model.weights_[left_out] == 0).all() == helps
    assert set(model.sample_indices_) == set(np.flatnonzero(~left_out if helps else np.ones(1500, bool)))
    assert len(model.suspects()) == 0
    assert len(model.path_) == (2 if helps else 1)


def unknowable(checked):
    """Return the rows with labels that nobody flipped, for an estimate that finds none to be wrong."""
    return checked._replace(data=checked.data.with_labels(make_synthetic(1500, seed=0).labels))
