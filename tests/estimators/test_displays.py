"""Displays: what they hold, what they draw, and where."""

import sys

import matplotlib as mpl
import numpy as np
import pandas
import pytest
from tests.support.refusals import refused

mpl.use("Agg")
from matplotlib import pyplot as plt
from sklearn.base import BaseEstimator
from sklearn.dummy import DummyClassifier
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression

from fairsieve import SelectionDisplay, TradeoffDisplay, demographic_parity_disparity
from fairsieve.errors import InvalidInputError, MissingExtraError


class Fitted(BaseEstimator):
    """What the displays read of a fitted estimator."""

    fairness = "equalized_odds"

    def fit(self):
        self.classes_, self.sensitive_values_ = np.array([0, 1]), ["a", "b", "c", "d"]
        self.effective_weights_ = np.linspace(0.2, 1.6, 8).reshape(2, 4)
        self.ratios_ = np.full((2, 4), 0.25)
        path = {"accuracy": [0.8, 0.799, 0.798], "gap": [0.3, 0.1, 0.02], "selected": [9, 9, 8]}
        self.path_ = pandas.DataFrame(path)
        self.gap_ = 0.02
        return self


@pytest.fixture(autouse=True)
def closing():
    yield
    plt.close("all")


def in_view(axis, x, y):
    (left, right), (bottom, top) = axis.get_xlim(), axis.get_ylim()
    return bool(np.all((np.asarray(x) > left) & (np.asarray(x) < right)) and np.all((y > bottom) & (y < top)))


def test_trade_off_display_shows_accuracy_and_disparity_of_each_estimator(data):
    models = {"LR": LogisticRegression(), "constant": DummyClassifier()}
    models = {name: model.fit(data.features, data.labels) for name, model in models.items()}
    options = {"sensitive_features": data.groups, "fairness": "demographic_parity"}
    display = TradeoffDisplay.from_estimators(models, data.features, data.labels, **options, s=50)
    for place, model in enumerate(models.values()):
        guessed = model.predict(data.features)
        assert display.accuracy[place] == model.score(data.features, data.labels)
        expected = demographic_parity_disparity(data.labels, guessed, sensitive_features=data.groups)
        assert display.disparity[place] == expected
    labels = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert labels == [*models, "Pareto front"]
    assert display.ax_.get_xlabel() == "demographic parity disparity"
    assert display.figure_ is display.ax_.figure
    guessed = {name: model.predict(data.features) for name, model in models.items()}
    again = TradeoffDisplay.from_predictions(data.labels, guessed, **options)
    assert again.disparity.tolist() == display.disparity.tolist()
    # The intervals hold the values, and every end is in view.
    for measure in ("accuracy", "disparity"):
        values, bounds = getattr(display, measure), getattr(display, f"{measure}_interval")
        assert (bounds[:, 0] <= values).all()
        assert (values <= bounds[:, 1]).all()
    assert in_view(display.ax_, display.disparity_interval, display.accuracy_interval)


def test_small_differences_look_small_and_no_point_is_cut():
    display = TradeoffDisplay(["a", "b"], [0.8, 0.802], [0.0, 0.001], "equalized_odds").plot()
    assert in_view(display.ax_, display.disparity, display.accuracy)
    bottom, top = display.ax_.get_ylim()
    assert 0.002 / (top - bottom) < 0.1


def test_front_holds_the_estimators_that_none_dominates():
    names, right, unfair = list("abcd"), [0.9, 0.8, 0.7, 0.6], [0.4, 0.2, 0.3, 0.1]
    display = TradeoffDisplay(names, right, unfair, "equalized-odds").plot()
    assert display.front == [(0.1, 0.6), (0.2, 0.8), (0.4, 0.9)]  # c is beaten by b
    (line,) = display.ax_.lines
    assert line.get_xydata()[1:-1].tolist() == [list(point) for point in display.front]


def test_the_path_of_one_fit_is_drawn_with_the_kept_model():
    display = TradeoffDisplay.from_estimator(Fitted().fit())
    assert display.chosen == 2
    (line,) = display.ax_.lines
    assert line.get_xydata().tolist() == [[0.3, 0.8], [0.1, 0.799], [0.02, 0.798]]
    assert in_view(display.ax_, display.disparity, display.accuracy)
    told = r"a path of models.*got LogisticRegression: use from_estimators"
    refused(told, TradeoffDisplay.from_estimator, LogisticRegression().fit([[0], [1]], [0, 1]))


def test_displays_draw_into_given_axes():
    figure, axes = plt.subplots(1, 3)
    trade_off = TradeoffDisplay(["a"], [0.5], [0.1], "equalized_odds").plot(ax=axes[0])
    selection = SelectionDisplay.from_estimator(Fitted().fit(), ax=axes[1:])
    assert trade_off.ax_ is axes[0]
    assert selection.ax_.tolist() == axes[1:].tolist()
    assert selection.figure_ is figure
    assert plt.get_fignums() == [figure.number]
    refused(r"ax must be two axes.*got 1", SelectionDisplay.from_estimator, Fitted().fit(), ax=axes[0])


def test_an_estimator_shows_what_each_cell_weighed():
    display = SelectionDisplay.from_estimator(Fitted().fit())
    widths = [[bar.get_width() for bar in axis.patches] for axis in display.ax_]
    assert widths[0] == np.linspace(0.2, 1.6, 8).tolist()
    assert widths[1] == [0.25] * 8
    assert [text.get_text() for text in display.ax_[0].get_yticklabels()][:2] == ["0, a", "0, b"]


def test_bad_input_of_displays_is_named(monkeypatch):
    with pytest.raises(InvalidInputError, match=r"one value for each of the 2 names; got the shapes \(1,\)"):
        TradeoffDisplay(["a", "b"], [0.5], [0.1, 0.2], "equalized_odds")
    told = r"accuracy_interval must have two ends for each of the 1 names"
    refused(told, TradeoffDisplay, ["a"], [0.5], [0.1], "equalized_odds", accuracy_interval=[0.4, 0.6])
    with pytest.raises(NotFittedError):
        SelectionDisplay.from_estimator(Fitted())
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'fairsieve\[plot\]'"):
        TradeoffDisplay(["a"], [0.5], [0.1], "equalized_odds").plot()
