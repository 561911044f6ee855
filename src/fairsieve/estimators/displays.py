"""Plots of estimators, in scikit-learn's Display convention: data in ``__init__``, drawn by ``plot``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from fairsieve.errors import InvalidInputError, MissingExtraError
from fairsieve.estimators.scorers import disparity_by_name
from fairsieve.metrics import Method, accuracy
from fairsieve.report.front import pareto_front
from fairsieve.report.looks import SYMBOLS, THEMES, looks_of
from fairsieve.selection.fairness import fairness_name
from fairsieve.training.history import History, cell_names

__all__ = ["SelectionDisplay", "TradeoffDisplay"]

HUES, MUTED = THEMES["light"].hues, THEMES["light"].muted


class TradeoffDisplay:
    """Accuracy against disparity of several estimators, with the Pareto front.

    Make one with :meth:`from_estimators` or :meth:`from_predictions`.

    Parameters
    ----------
    names : sequence of str
    accuracy, disparity : arrays, one value for each name
    fairness : str
        The notion of fairness that ``disparity`` measures.

    Attributes
    ----------
    front : list of (disparity, accuracy)
        The estimators that no other one exceeds in both, the fairest first.
    ax_, figure_ : matplotlib Axes and Figure
        After :meth:`plot`.

    Examples
    --------
    >>> display = TradeoffDisplay(["plain", "fair"], [0.8, 0.7], [0.3, 0.1], "equalized_odds")
    >>> display.front
    [(0.1, 0.7), (0.3, 0.8)]
    """

    ax_: Any
    figure_: Any

    def __init__(
        self, names: Sequence[str], accuracy: ArrayLike, disparity: ArrayLike, fairness: str
    ) -> None:
        self.names = list(names)
        self.accuracy = np.asarray(accuracy, dtype=np.float64)
        self.disparity = np.asarray(disparity, dtype=np.float64)
        self.fairness = fairness_name(fairness)
        if not self.accuracy.shape == self.disparity.shape == (len(self.names),):
            raise InvalidInputError(
                f"accuracy and disparity must have one value for each of the {len(self.names)} names; got the "
                f"shapes {self.accuracy.shape} and {self.disparity.shape}"
            )

    @property
    def front(self) -> list[tuple[float, float]]:
        """The estimators that no other one exceeds in both accuracy and fairness."""
        return pareto_front(list(zip(self.disparity.tolist(), self.accuracy.tolist(), strict=True)))

    @classmethod
    def from_estimators(
        cls,
        estimators: Mapping[str, Any],
        X: Any,
        y: ArrayLike,
        *,
        sensitive_features: ArrayLike,
        fairness: str = "equalized_odds",
        method: Method = "to_overall",
        pos_label: Any | None = None,
        ax: Any | None = None,
        **style: Any,
    ) -> TradeoffDisplay:
        """Measure fitted estimators on labelled samples, and plot.

        Parameters
        ----------
        estimators : mapping of names to fitted estimators
        X, y : samples that were not trained on, with labels that are right
        sensitive_features : their groups; columns are crossed, samples without a group left out
        fairness, method, pos_label : see :mod:`fairsieve.metrics`
        ax : matplotlib Axes, optional
        **style : passed on to ``ax.scatter``
        """
        return cls.from_predictions(
            y,
            {name: estimator.predict(X) for name, estimator in estimators.items()},
            sensitive_features=sensitive_features,
            fairness=fairness,
            method=method,
            pos_label=pos_label,
            ax=ax,
            **style,
        )

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        predictions: Mapping[str, ArrayLike],
        *,
        sensitive_features: ArrayLike,
        fairness: str = "equalized_odds",
        method: Method = "to_overall",
        pos_label: Any | None = None,
        ax: Any | None = None,
        **style: Any,
    ) -> TradeoffDisplay:
        """Measure predictions, given by the name of the model, and plot; see :meth:`from_estimators`."""
        name = fairness_name(fairness)
        options: dict[str, Any] = {"sensitive_features": sensitive_features, "method": method}
        display = cls(
            list(predictions),
            [accuracy(y_true, guessed) for guessed in predictions.values()],
            [
                disparity_by_name(name, y_true, guessed, pos_label=pos_label, **options)
                for guessed in predictions.values()
            ],
            name,
        )
        return display.plot(ax=ax, **style)

    def plot(self, ax: Any | None = None, **style: Any) -> TradeoffDisplay:
        """Draw into ``ax``, or into a figure of its own. ``style`` goes to ``ax.scatter``."""
        (self.ax_,) = [ax] if ax is not None else _new_axes(1)
        self.figure_ = self.ax_.figure
        for name, look in looks_of(self.names).items():
            place = self.names.index(name)
            options = {
                "color": HUES[look.hue],
                "marker": SYMBOLS[look.symbol].matplotlib,
                "zorder": 3,
            } | style
            self.ax_.scatter(self.disparity[place], self.accuracy[place], label=name, **options)
        self.ax_.set(xlabel=f"{self.fairness.replace('_', ' ')} disparity", ylabel="accuracy")
        self.ax_.set_xlim(left=min(0.0, self.ax_.get_xlim()[0]))
        self._plot_front()
        self.ax_.legend()
        return self

    def _plot_front(self) -> None:
        """Draw the Pareto front as steps; estimators below and to the right of it are dominated."""
        (_, right), (bottom, _) = self.ax_.get_xlim(), self.ax_.get_ylim()
        disparity, highest = zip(*self.front, strict=True)
        self.ax_.plot(
            [disparity[0], *disparity, right],
            [bottom, *highest, highest[-1]],
            drawstyle="steps-post",
            color=MUTED,
            linestyle="--",
            linewidth=1,
            label="Pareto front",
            scalex=False,
            scaley=False,
        )


class SelectionDisplay:
    """Share of each cell that was selected, and ratio of each cell, by epoch.

    Make one with :meth:`from_estimator`.

    Parameters
    ----------
    history : History
        Of a training.

    Attributes
    ----------
    kept : array of shape (epochs, classes, groups)
        The share of each cell that was selected; NaN where a cell has no samples.
    ax_ : array of two matplotlib Axes
        After :meth:`plot`: the selected shares, and the ratios.
    figure_ : matplotlib Figure

    Examples
    --------
    >>> from fairsieve import fit
    >>> from fairsieve.data import make_synthetic
    >>> fitted = fit(None, make_synthetic(500, seed=0), clean_ratio=0.9, epochs=5, warmup_epochs=2)
    >>> SelectionDisplay(fitted.history).kept.shape  # .plot() draws it
    (5, 2, 2)
    """

    ax_: NDArray[Any]
    figure_: Any

    def __init__(self, history: History) -> None:
        self.history = history
        sizes = history.sizes.astype(np.float64)
        self.kept = history.counts / np.where(sizes > 0, sizes, np.nan)

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any | None = None, **style: Any) -> SelectionDisplay:
        """Plot the training of a fitted estimator, from its ``history_``.

        Parameters
        ----------
        estimator : fitted estimator, such as FairRobustClassifier
        ax : two matplotlib Axes, optional
        **style : passed on to ``ax.plot``
        """
        check_is_fitted(estimator)
        return cls(estimator.history_).plot(ax=ax, **style)

    def plot(self, ax: Any | None = None, **style: Any) -> SelectionDisplay:
        """Draw into two ``ax``, or into a figure of its own. ``style`` goes to ``ax.plot``."""
        axes = np.asarray(_new_axes(2) if ax is None else ax, dtype=object).reshape(-1)
        if len(axes) != 2:
            raise InvalidInputError(
                f"ax must be two axes, for the selected shares and for the ratios; got {len(axes)}: pass two"
            )
        self.ax_, self.figure_ = axes, axes[0].figure
        history = self.history
        cells = cell_names(history.classes, history.groups)
        titles = [f"{label}, {'no group' if group is None else group}" for (_, label), (_, group) in cells]
        looks = looks_of(titles)
        for axis, values in zip(axes, (self.kept, history.ratios), strict=True):
            for title, ((row, _), (column, _)) in zip(titles, cells, strict=True):
                options = {"color": HUES[looks[title].hue], "label": title} | style
                axis.plot(history.epochs, values[:, row, column], **options)
            axis.axvline(history.warmup_epochs, color=MUTED, linewidth=0.8, linestyle=":")
            axis.set(xlabel="epoch", ylim=(-0.02, 1.02))
        axes[0].set(title="Samples selected", ylabel="share of the cell")
        axes[1].set(title="Ratios", ylabel="share of the class")
        axes[1].legend(title="class, group")
        return self


def _new_axes(columns: int) -> list[Any]:
    """Make axes side by side in a new figure, with the user's own backend and style."""
    try:
        from matplotlib import pyplot as plt
    except ImportError:
        raise MissingExtraError("matplotlib", extra="plot", purpose="drawing figures") from None
    _, axes = plt.subplots(1, columns, figsize=(5.2 * columns, 4), layout="constrained", squeeze=False)
    return list(axes[0])
