"""Displays: what they hold, what they draw, and where."""

from __future__ import annotations

import sys

import matplotlib as mpl
import numpy as np
import pytest

mpl.use("Agg")
from matplotlib import pyplot as plt
from sklearn.dummy import DummyClassifier
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression

from fairsieve import InvalidInputError, MissingExtraError, accuracy, demographic_parity_disparity
from fairsieve.data import make_synthetic
from fairsieve.estimators.classifier import FairRobustClassifier
from fairsieve.estimators.displays import SelectionDisplay, TradeoffDisplay


@pytest.fixture(scope="module")
def data():
    return make_synthetic(300, seed=0)


@pytest.fixture(autouse=True)
def closing():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def estimator(data):
    groups = np.where(np.arange(300) % 5 == 0, np.nan, data.groups)
    model = FairRobustClassifier(clean_ratio=0.9, epochs=12, warmup_epochs=4, random_state=0)
    return model.fit(data.features, data.labels, sensitive_features=groups)


def test_trade_off_display_shows_accuracy_and_disparity_of_each_estimator(data, estimator):
    models = {
        "LR": LogisticRegression().fit(data.features, data.labels),
        "constant": DummyClassifier().fit(data.features, data.labels),
        "fairsieve": estimator,
    }
    options = {"sensitive_features": data.groups, "fairness": "demographic_parity"}
    display = TradeoffDisplay.from_estimators(models, data.features, data.labels, **options, s=50)
    for place, model in enumerate(models.values()):
        guessed = model.predict(data.features)
        assert display.accuracy[place] == accuracy(data.labels, guessed)
        assert display.disparity[place] == demographic_parity_disparity(
            data.labels, guessed, sensitive_features=data.groups
        )
    labels = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert labels == [*models, "Pareto front"]
    points = np.concatenate([part.get_offsets() for part in display.ax_.collections])
    assert points.tolist() == np.column_stack([display.disparity, display.accuracy]).tolist()
    assert all(part.get_sizes().tolist() == [50] for part in display.ax_.collections)
    assert display.ax_.get_xlabel() == "demographic parity disparity"
    assert display.figure_ is display.ax_.figure
    again = TradeoffDisplay.from_predictions(
        data.labels, {name: model.predict(data.features) for name, model in models.items()}, **options
    )
    assert again.disparity.tolist() == display.disparity.tolist()


def test_front_holds_the_estimators_that_none_dominates():
    names, right, unfair = list("abcd"), [0.9, 0.8, 0.7, 0.6], [0.4, 0.2, 0.3, 0.1]
    display = TradeoffDisplay(names, right, unfair, "equalized-odds").plot()
    assert display.front == [(0.1, 0.6), (0.2, 0.8), (0.4, 0.9)]  # c is beaten by b
    (line,) = display.ax_.lines
    assert line.get_xydata()[1:-1].tolist() == [list(point) for point in display.front]


def test_displays_draw_into_given_axes(estimator):
    figure, axes = plt.subplots(1, 3)
    trade_off = TradeoffDisplay(["a"], [0.5], [0.1], "equalized_odds").plot(ax=axes[0])
    selection = SelectionDisplay.from_estimator(estimator, ax=axes[1:])
    assert trade_off.ax_ is axes[0]
    assert selection.ax_.tolist() == axes[1:].tolist()
    assert selection.figure_ is figure
    assert plt.get_fignums() == [figure.number]
    with pytest.raises(InvalidInputError, match=r"ax must be two axes.*got 1"):
        SelectionDisplay.from_estimator(estimator, ax=axes[0])


def test_selection_display_shows_selected_shares_and_ratios(estimator):
    display = SelectionDisplay.from_estimator(estimator)
    history, (left, right) = estimator.history_, display.ax_
    assert (display.kept[:4] == 1).all()
    assert display.kept[-1] == pytest.approx(history.counts[-1] / history.sizes)
    assert history.sizes.sum() == 300
    drawn = np.array([line.get_ydata() for line in left.lines[:6]])
    assert drawn.tolist() == display.kept.reshape(12, 6).T.tolist()
    drawn = np.array([line.get_ydata() for line in right.lines[:6]])
    assert drawn.tolist() == history.ratios.reshape(12, 6).T.tolist()
    titles = [text.get_text() for text in right.get_legend().get_texts()]
    assert titles[:3] == ["0, 0.0", "0, 1.0", "0, no group"]


def test_an_empty_cell_is_not_drawn():
    rng = np.random.default_rng(0)
    features, labels = rng.normal(size=(60, 2)), np.arange(60) % 2
    groups = np.where(labels == 1, "a", np.where(np.arange(60) % 4 == 0, "a", "b"))
    model = FairRobustClassifier(clean_ratio=0.9, epochs=3, warmup_epochs=0, random_state=0)
    display = SelectionDisplay.from_estimator(model.fit(features, labels, sensitive_features=groups))
    assert np.isnan(display.kept[:, 1, 1]).all()
    assert np.isfinite(np.delete(display.kept.reshape(3, 4), 3, axis=1)).all()


def test_bad_input_of_displays_is_named(monkeypatch):
    with pytest.raises(InvalidInputError, match=r"one value for each of the 2 names; got the shapes \(1,\)"):
        TradeoffDisplay(["a", "b"], [0.5], [0.1, 0.2], "equalized_odds")
    with pytest.raises(NotFittedError):
        SelectionDisplay.from_estimator(FairRobustClassifier())
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'fairsieve\[plot\]'"):
        TradeoffDisplay(["a"], [0.5], [0.1], "equalized_odds").plot()
