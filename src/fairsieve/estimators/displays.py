"""How fair models are: plots in scikit-learn's Display convention, and a scorer for its model selection.

A display has its data in ``__init__`` and is drawn by ``plot``. The scorer gets the groups by metadata routing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import cycle, islice
from typing import Any

import numpy as np
import pandas as pd
import sklearn
from numpy.typing import ArrayLike
from sklearn.metrics import make_scorer
from sklearn.utils.validation import check_is_fitted

from fairsieve.errors import InvalidInputError, NotReadyError, require
from fairsieve.metrics import (
    Method,
    accuracy,
    accuracy_from_table,
    confusion_table,
    disparity,
    disparity_from_table,
    grouped_part,
)
from fairsieve.notions import EO, find_notion
from fairsieve.report.page import SYMBOLS, THEMES, Look, looks_of
from fairsieve.selection.cells import Cells, Floats, Values, positive_code
from fairsieve.validation import check_choice, shown

HUES, MUTED = THEMES["light"].hues, THEMES["light"].muted
DRAWS = 500  # of the samples again, for intervals (bootstrap)
OUTSIDE: Any = {"loc": "center left", "bbox_to_anchor": (1.02, 0.5), "borderaxespad": 0}  # of a legend
LEAST_SPAN = 0.04  # of an axis, so that a difference of .002 looks as small as it is
IGNORED = 0.25  # of the weight that the rows of a cell would have


class TradeoffDisplay:
    """Accuracy against disparity of several estimators, with the Pareto front, or of the path of one.

    Make one with :meth:`from_estimators`, :meth:`from_predictions` or :meth:`from_estimator`.

    Parameters
    ----------
    names : sequence of str
    accuracy, disparity : arrays, one value for each name
    fairness : str
        The notion of fairness that ``disparity`` measures.
    accuracy_interval, disparity_interval : arrays of shape (names, 2), optional
        The 95 % interval of each value, from its lower to its upper end.
    chosen : int, optional
        The values are models on the path of one fit, of which this one is kept; ``disparity`` is then the widest gap
        between two groups.

    Attributes
    ----------
    front : list of (disparity, accuracy)
        The estimators that no other one exceeds in both, the fairest first.
    ax_, figure_ : matplotlib Axes and Figure
        After :meth:`plot`.

    Examples
    --------
    >>> display = TradeoffDisplay(["plain", "fair"], [0.8, 0.7], [0.3, 0.1], "equal_opportunity")
    >>> display.front
    [(0.1, 0.7), (0.3, 0.8)]
    """

    ax_: Any
    figure_: Any

    def __init__(
        self,
        names: Sequence[str],
        accuracy: ArrayLike,
        disparity: ArrayLike,
        fairness: str,
        *,
        accuracy_interval: ArrayLike | None = None,
        disparity_interval: ArrayLike | None = None,
        chosen: int | None = None,
    ) -> None:
        self.names = list(names)
        self.accuracy, self.disparity = (np.asarray(one, dtype=np.float64) for one in (accuracy, disparity))
        self.fairness = find_notion(fairness).name
        self.chosen = chosen
        if not self.accuracy.shape == self.disparity.shape == (len(self.names),):
            raise InvalidInputError(
                f"accuracy and disparity must have one value for each of the {len(self.names)} names; got the "
                f"shapes {self.accuracy.shape} and {self.disparity.shape}"
            )
        self.accuracy_interval = self._check_interval("accuracy_interval", accuracy_interval)
        self.disparity_interval = self._check_interval("disparity_interval", disparity_interval)

    def _check_interval(self, name: str, bounds: ArrayLike | None) -> Floats:
        """Check that there is an interval for each value; NaN where none are given."""
        shape = (len(self.names), 2)
        checked = np.full(shape, np.nan) if bounds is None else np.asarray(bounds, dtype=np.float64)
        if checked.shape != shape:
            raise InvalidInputError(
                f"{name} must have two ends for each of the {len(self.names)} names; got the shape {checked.shape}"
            )
        return checked

    @property
    def front(self) -> list[tuple[float, float]]:
        """The estimators that no other one exceeds in both accuracy and fairness."""
        front_points: list[tuple[float, float]] = []
        for unfair, right in sorted(zip(self.disparity.tolist(), (-self.accuracy).tolist(), strict=True)):
            if not front_points or -right > front_points[-1][1]:
                front_points.append((unfair, -right))
        return front_points

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None, **style: Any) -> TradeoffDisplay:
        """Plot the models on the path of one fit, from its ``path_``, on the rows that it is judged on.

        Parameters
        ----------
        estimator : fitted FairRobustClassifier or SieveClassifier
        ax : matplotlib Axes, optional
        **style : passed on to ``ax.scatter``
        """
        check_is_fitted(estimator)
        path = getattr(estimator, "path_", None)
        if path is None or estimator.fairness is None:
            raise InvalidInputError(
                f"estimator must have a path of models, as a fitted FairRobustClassifier that compares groups has; "
                f"got {type(estimator).__name__}: use from_estimators to compare several"
            )
        gaps = path["gap"].to_numpy(dtype=np.float64)
        chosen = int(np.abs(gaps - estimator.gap_).argmin())
        names = [f"update {place}" for place in range(len(path))]
        return cls(names, path["accuracy"], gaps, estimator.fairness, chosen=chosen).plot(ax=ax, **style)

    @classmethod
    def from_estimators(
        cls, estimators: Mapping[str, Any], X: Any, y: ArrayLike, **options: Any
    ) -> TradeoffDisplay:
        """Measure fitted estimators on labelled samples, and plot.

        Parameters
        ----------
        estimators : mapping of names to fitted estimators
        X, y : samples that were not trained on, with labels that are right
        **options : ``sensitive_features``, ``fairness``, ``ax`` and others, as in :meth:`from_predictions`
        """
        _check_named("estimators", estimators)
        predictions = {name: estimator.predict(X) for name, estimator in estimators.items()}
        return cls.from_predictions(y, predictions, **options)

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        predictions: Mapping[str, ArrayLike],
        *,
        sensitive_features: ArrayLike,
        fairness: str = EO,
        method: Method = "to_overall",
        pos_label: Any = None,
        ax: Any = None,
        **style: Any,
    ) -> TradeoffDisplay:
        """Measure predictions, given by the name of the model, and plot, with 95 % intervals (bootstrap).

        Parameters
        ----------
        y_true : labels that are right
        predictions : mapping of the names of models to what they predict
        sensitive_features : the groups; columns are crossed, samples without a group left out
        fairness, method, pos_label : see :mod:`fairsieve.metrics`
        ax : matplotlib Axes, optional
        **style : passed on to ``ax.scatter``
        """
        _check_named("predictions", predictions)
        name, each = find_notion(fairness).name, predictions.values()
        options: Any = {"sensitive_features": sensitive_features, "method": method, "pos_label": pos_label}
        bounds = np.reshape([_bootstrap(name, y_true, one, **options) for one in each], (-1, 2, 2))
        right = [accuracy(y_true, one) for one in each]
        unfair = [disparity(name, y_true, one, **options) for one in each]
        intervals: Any = {"accuracy_interval": bounds[:, 0], "disparity_interval": bounds[:, 1]}
        return cls(list(predictions), right, unfair, name, **intervals).plot(ax=ax, **style)

    def plot(self, ax: Any = None, **style: Any) -> TradeoffDisplay:
        """Draw into ``ax``, or into a figure of its own. ``style`` goes to ``ax.scatter``."""
        (self.ax_,) = [ax] if ax is not None else _new_axes(1)
        self.figure_ = self.ax_.figure
        notion = find_notion(self.fairness).title
        if self.chosen is None:
            title, places = f"{notion} disparity", dict(zip(self.names, range(len(self.names)), strict=True))
            looks = looks_of(self.names)
        else:  # the models of a path, joined in their order, and the one that is kept
            title, places = f"widest gap between groups ({notion})", {"start": 0, "kept model": self.chosen}
            looks = {"start": Look("grey"), "kept model": Look("blue")}
            points = {"color": MUTED, "linewidth": 1, "marker": "o", "markersize": 3, "label": "path"}
            self.ax_.plot(self.disparity, self.accuracy, **points)
        for name, place in places.items():
            x, y, look = self.disparity[place], self.accuracy[place], looks[name]
            options = {"color": HUES[look.hue], "marker": SYMBOLS[look.symbol].matplotlib, "zorder": 3}
            self.ax_.scatter(x, y, label=name, **(options | style))
            bars = {"color": HUES[look.hue], "linewidth": 1, "alpha": 0.6}
            self.ax_.hlines(y, *self.disparity_interval[place], **bars)
            self.ax_.vlines(x, *self.accuracy_interval[place], **bars)
        self.ax_.set(xlabel=title, ylabel="accuracy")
        self.ax_.set_xlim(*_span(self.disparity, self.disparity_interval, [0.0]))
        self.ax_.set_ylim(*_span(self.accuracy, self.accuracy_interval))
        if self.chosen is None:  # estimators below and to the right of the front are dominated
            (_, right), (bottom, _) = self.ax_.get_xlim(), self.ax_.get_ylim()
            disparity, highest = zip(*self.front, strict=True)
            x, y = [disparity[0], *disparity, right], [bottom, *highest, highest[-1]]
            line = {"where": "post", "color": MUTED, "linewidth": 1, "label": "Pareto front"}
            self.ax_.step(x, y, "--", scalex=False, scaley=False, **line)
        self.ax_.legend(**OUTSIDE)
        return self


def _check_named(name: str, values: Any) -> None:
    """Check that there is a mapping from names, with something in it."""
    if not isinstance(values, Mapping) or not values:
        given = "none" if isinstance(values, Mapping) else type(values).__name__
        raise InvalidInputError(
            f"{name} must be a mapping from the names of models, one or more; got {given}: pass a dict such as "
            "{'fair': …}"
        )


def _span(*values: ArrayLike) -> tuple[float, float]:
    """Span every point and interval, and no less than where small differences look small."""
    every = np.concatenate([np.ravel(one) for one in values])
    low, high = float(np.nanmin(every)), float(np.nanmax(every))
    wider = max(LEAST_SPAN - (high - low), 0.0) / 2 + 0.06 * max(high - low, LEAST_SPAN)
    return low - wider, high + wider


class SelectionDisplay:
    """What each cell weighed in a training, and its ratio.

    Make one with :meth:`from_estimator`.

    Parameters
    ----------
    weights : array of shape (classes, groups)
        The share of the training weight that each cell had, divided by its share of the rows.
    ratios : array of the same shape
        The share of each class that a group had.
    classes, groups : sequences
        What the rows and columns stand for; a group None, samples without one.

    Attributes
    ----------
    ax_ : array of two matplotlib Axes
        After :meth:`plot`: the weights, and the ratios.
    figure_ : matplotlib Figure

    Examples
    --------
    >>> display = SelectionDisplay([[1.2, 0.8]], [[0.6, 0.4]], ["yes"], ["a", "b"])  # .plot() draws it
    >>> display.weights.to_dict()
    {'yes, a': 1.2, 'yes, b': 0.8}
    """

    ax_: Values
    figure_: Any

    def __init__(
        self, weights: ArrayLike, ratios: ArrayLike, classes: Sequence[Any], groups: Sequence[Any]
    ) -> None:
        names = ["no group" if group is None else group for group in groups]
        cells = [f"{label}, {name}" for label in classes for name in names]
        self.weights, self.ratios = (pd.Series(np.ravel(values), cells) for values in (weights, ratios))

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None, **style: Any) -> SelectionDisplay:
        """Plot what each cell weighed in the training of a fitted estimator.

        Parameters
        ----------
        estimator : fitted FairRobustClassifier or SieveClassifier
        ax : two matplotlib Axes, optional
        **style : passed on to ``ax.barh``
        """
        check_is_fitted(estimator)
        if not hasattr(estimator, "effective_weights_"):
            raise InvalidInputError(
                "estimator must be a fitted FairRobustClassifier or SieveClassifier, which knows what each cell "
                f"weighed; got {type(estimator).__name__}: of a pipeline, pass the last step"
            )
        tables = np.asarray(estimator.effective_weights_), estimator.ratios_
        return cls(*tables, estimator.classes_, estimator.sensitive_values_).plot(ax=ax, **style)

    def plot(self, ax: Any = None, **style: Any) -> SelectionDisplay:
        """Draw into two ``ax``, or into a figure of its own. ``style`` goes to ``ax.barh``."""
        axes = np.asarray(_new_axes(2) if ax is None else ax, dtype=object).reshape(-1)
        if len(axes) != 2:
            raise InvalidInputError(
                f"ax must be two axes, for the weights and for the ratios; got {len(axes)}: pass two"
            )
        self.ax_, self.figure_ = axes, axes[0].figure
        options = {"color": list(islice(cycle(HUES.values()), len(self.weights)))} | style
        for axis, values in zip(axes, (self.weights, self.ratios), strict=True):
            values.plot.barh(ax=axis, **options)
            axis.invert_yaxis()
        axes[0].axvline(1, color=MUTED, linewidth=0.8)
        axes[0].axvline(IGNORED, color=MUTED, linewidth=0.8, linestyle=":")
        axes[0].set(title="Effective weight (1: as many as its rows)", ylabel="class, group")
        axes[1].set(title="Share of the class", xlim=(0, 1))
        return self


def _bootstrap(
    fairness: str,
    y_true: ArrayLike,
    y_pred: ArrayLike,
    sensitive_features: ArrayLike,
    method: Method,
    pos_label: Any,
) -> Floats:
    """Compute 95 % intervals of accuracy and disparity: their percentiles over samples drawn again."""
    table, classes, values = confusion_table(y_true, y_pred, sensitive_features)
    positive = positive_code(fairness, Cells(np.zeros(0, np.uint8), classes, values), pos_label)
    share = table.reshape(-1) / table.sum()
    drawn = np.random.default_rng(0).multinomial(round(table.sum()), share, size=DRAWS)
    tables = drawn.reshape(DRAWS, *table.shape).astype(np.float64)
    unfair = disparity_from_table(grouped_part(tables, values), fairness, positive=positive, method=method)
    return np.percentile([accuracy_from_table(tables), unfair], [2.5, 97.5], axis=1).T


def _new_axes(columns: int) -> list[Any]:
    """Make axes side by side in a new figure, with the user's own backend and style."""
    require("matplotlib", purpose="drawing figures")
    from matplotlib import pyplot as plt

    _, axes = plt.subplots(1, columns, figsize=(5.2 * columns, 4), layout="constrained", squeeze=False)
    return list(axes[0])


def fairness_scorer(
    fairness: str = EO,
    *,
    method: Method = "to_overall",
    pos_label: Any = None,
    with_accuracy: bool = False,
) -> Any:
    """Make a scorer of fairness: the negative disparity, because scores are maximised.

    With metadata routing enabled, ``search.fit(X, y, sensitive_features=z)`` passes the groups to it. It also
    takes ``sample_weight``, if that is requested.

    Parameters
    ----------
    fairness : str, default="equalized-odds"
        The name of a notion of fairness, see :mod:`fairsieve.notions`.
    method : {"to_overall", "between_groups"}, default="to_overall"
        See :mod:`fairsieve.metrics`.
    pos_label : label, optional
        For notions that are about one class; the last of two when None.
    with_accuracy : bool, default=False
        Score the accuracy minus the disparity. A constant prediction is fair, so choose hyperparameters
        by this, or by several scorers, and not by the disparity alone.

    Examples
    --------
    >>> with sklearn.config_context(enable_metadata_routing=True):
    ...     scoring = {"accuracy": "accuracy", "fairness": fairness_scorer("demographic-parity")}
    """
    if not sklearn.get_config()["enable_metadata_routing"]:
        raise NotReadyError(
            "fairness_scorer gets the groups by scikit-learn's metadata routing, which is off: call "
            "sklearn.set_config(enable_metadata_routing=True) first"
        )
    if not isinstance(with_accuracy, (bool, np.bool_)):
        raise InvalidInputError(f"with_accuracy must be True or False; got {shown(with_accuracy)}")
    options: dict[str, Any] = {
        "fairness": find_notion(fairness).name,
        "method": check_choice("method", method, ("to_overall", "between_groups")),
        "pos_label": pos_label,
        "with_accuracy": bool(with_accuracy),
    }
    return make_scorer(_fairness_score, **options).set_score_request(sensitive_features=True)


def _fairness_score(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    sensitive_features: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    fairness: str,
    with_accuracy: bool,
    **options: Any,
) -> float:
    """Compute the score of :func:`fairness_scorer`, in [−1, 0] or, with the accuracy, in [−1, 1].

    >>> options = {"fairness": "equalized-odds", "pos_label": None, "with_accuracy": False}
    >>> _fairness_score([0, 0, 1], [0, 1, 1], sensitive_features=list("abb"), **options)
    -0.5
    """
    if sensitive_features is None:
        raise InvalidInputError(
            "sensitive_features must be given to a scorer of fairness; got None: pass them to fit, as in "
            "search.fit(X, y, sensitive_features=z)"
        )
    right = accuracy(y_true, y_pred, sample_weight=sample_weight) if with_accuracy else 0.0
    options |= {"sensitive_features": sensitive_features, "sample_weight": sample_weight}
    return right - disparity(fairness, y_true, y_pred, **options)
