"""Points: compromises between accuracy and equal rates, what they are made of, and which is the best bargain."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fairsieve.training.constraints import Lagrangian
from fairsieve.training.linear_model import LinearModel
from fairsieve.training.ratio_search import SolverSettings, State, Stopped, Trained, choose_point
from fairsieve.training.rows import LossLimit

Floats = NDArray[np.float64]

WORTH = (
    12.0  # times its size in gap: what a point of accuracy is worth, where nobody said; 8 to 40 choose alike
)
SURE = 1.645  # standard errors: one-sided, at 95 %


class Model(NamedTuple):
    """A linear model in training.

    Attributes
    ----------
    parameters : array of shape (outputs, d + 1)
    curvature : callable, optional
        Of its last step, to be used again.
    decrement : float
        Decrease of the mean loss that its last training promised.
    limit : LossLimit
        Up to which loss rows were selected to train it on.
    masses : array of shape (classes, groups)
        Weights of those rows.
    """

    parameters: Floats
    curvature: Any
    decrement: float
    limit: LossLimit
    masses: Floats


@dataclass(frozen=True, eq=False)
class Point(State):
    """A compromise: the model of all rows and, with folds, those that left one out, which are judged then.

    Attributes
    ----------
    counts : array of shape (classes, groups, classes)
        What is predicted, by true class.
    effective : array of shape (classes, groups)
        How much more each cell pulled than its rows would by themselves; below 0, towards another class.
    lagrangian : Lagrangian, optional
        What gaps cost, where they were constrained.
    """

    counts: Floats
    models: list[Model]
    effective: Floats
    shift: Any = 0.0  # of the features that the models were trained on
    cut: float = 0.0  # of two classes, the score from which on the second is predicted
    lagrangian: Lagrangian | None = None

    @property
    def linear(self) -> LinearModel:
        """The model of all rows, for features that are not shifted.

        Of many classes only the differences between intercepts matter: their mean is 0.
        """
        parameters = self.models[0].parameters.copy()
        parameters[:, -1] -= (parameters[:, :-1] * self.shift).sum(axis=1)
        if len(parameters) > 1:
            parameters[:, -1] -= parameters[:, -1].mean()
        return LinearModel(parameters[:, :-1], parameters[:, -1])


@dataclass(frozen=True, eq=False)
class Solution:
    """The compromises between accuracy and equal rates.

    Attributes
    ----------
    points : list of Point
        Those that no other beats in both, from the widest gap to the narrowest.
    natural : Point
        The model with natural ratios.
    plain : Point
        Plain logistic regression on the labels as given.
    chosen : Point
        The one that was asked for.
    tolerance : float
        The gap that might remain.
    stopped : {"met", "cost", "unreachable", "limit", "interrupted"}
    n_iter : int
    held_out : bool
        Whether accuracies and gaps were measured on rows that the models did not see.
    together : list of arrays of shape (classes, groups, classes, classes)
        For each point, how often the plain model and it predict which classes together.
    is_plain : bool, optional
        Whether the plain model is to be stored; None where nothing but the comparison with it says so.
    """

    points: list[Point]
    natural: Point
    plain: Point
    chosen: Point
    tolerance: float
    stopped: Stopped
    n_iter: int
    held_out: bool
    together: list[Floats]
    is_plain: bool | None = None

    @property
    def stored(self) -> Point:
        """The point that is stored: the plain model, where the one that was chosen is no fairer."""
        return self.plain if self.chosen.gap >= self.plain.gap else self.chosen


def front(points: list[Point]) -> list[Point]:
    """Return the points that no other beats in both accuracy and gap, from the widest gap to the narrowest."""
    kept: list[Point] = []
    for point in sorted(points, key=lambda point: (point.gap, -point.accuracy)):
        if not kept or point.accuracy > kept[-1].accuracy:
            kept.append(point)
    return kept[::-1]


def choose_bargain(
    points: Sequence[Trained], together: Sequence[Floats], tolerance: float, settings: SolverSettings
) -> Trained:
    """Choose a point: by the tolerance that was named or, where none was, the best bargain that does no harm.

    ``together`` is what the plain model and each point predict together. Labels that are wrong in one cell only hide
    what a fair model gains there, and the rows cannot tell which of two accuracies is the true one: that of the labels,
    or that where every group has the same share of each class. What may be lost is known up to its standard error
    alone, and the best bargain of many looks better than it is. So what may be lost at most is compared.
    """
    if settings.tolerance is not None:
        return points[choose_point(points, tolerance)]
    most = settings.max_accuracy_loss
    if most is None or settings.clean_ratio < 1.0:  # wrong labels hide what is lost
        most = np.inf
    bargains: list[tuple[float, int, Trained]] = []
    for point, table in zip(points, together, strict=True):
        gain, error = max(accuracy_gain(table), accuracy_gain(alike(table)))
        if SURE * error - gain <= most:
            bargains.append((max(point.gap, tolerance) - WORTH * gain, len(bargains), point))
    if not bargains:
        return max(points, key=lambda point: point.accuracy)
    return min(bargains, key=lambda each: each[:2])[2]


def alike(together: Floats) -> Floats:
    """Weigh cells as if every group had the same share of each class.

    >>> alike(np.array([[[[2.0]], [[1.0]]], [[[1.0]], [[2.0]]]])).ravel().tolist()
    [1.5, 1.5, 1.5, 1.5]
    """
    cells = together.sum(axis=(2, 3))
    wanted = cells.sum(axis=1, keepdims=True) * cells.sum(axis=0, keepdims=True) / cells.sum()
    return np.asarray(together * (wanted / np.maximum(cells, 1e-300))[:, :, None, None])


def accuracy_gain(together: Floats) -> tuple[float, float]:
    """Return how much more often the second of two models is right, and the standard error of that.

    >>> gain, error = accuracy_gain(np.array([[[[90.0, 0.0], [0.0, 10.0]]], [[[10.0, 10.0], [0.0, 80.0]]]]))
    >>> round(gain, 3), round(error, 4)
    (0.05, 0.0154)
    """
    labels, total = np.arange(len(together)), max(float(together.sum()), 1e-300)
    right = (labels[:, None] == labels).astype(float)
    change = right[:, None, None, :] - right[:, None, :, None]  # −1, 0 or 1 for each row
    mean = float((together * change).sum()) / total
    return mean, float(np.sqrt(max(float((together * change**2).sum()) / total - mean**2, 0.0) / total))


def strip(models: list[Model]) -> list[Model]:
    """Return models without their curvature, which holds on to the rows."""
    return [model._replace(curvature=None) for model in models]
