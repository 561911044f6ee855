"""Newton steps on the linear model's objective, and the optimum of plain logistic regression."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairsieve.optional import require
from fairsieve.samples import Samples
from fairsieve.training.curvature import Curvature
from fairsieve.training.linear_model import LinearModel
from fairsieve.training.linear_objective import LinearObjective
from fairsieve.training.threads import one_blas_thread

__all__ = [
    "MANY",
    "PART",
    "PlainOptimum",
    "draw_part",
    "find_plain_optimum",
    "new_objective",
    "take_step",
    "to_model",
]

PLAIN_STEPS = 100
PLAIN_ACCURACY = 1e-6  # decrease of the summed loss that a step promises, at which the plain model is done
PLAIN_NOISE = {8: 1e-14, 4: 1e-10}  # the same, relative to the loss: below this it is rounding, by item size
SAME_CURVATURE = 0.1  # of the last step's promise: while steps shrink as fast, they share one curvature
HALVINGS = 20
MANY = 60_000  # samples from which on most steps use a part of them
PART = 50_000


@dataclass(frozen=True, eq=False)
class PlainOptimum:
    """The optimum of plain logistic regression on some samples.

    Attributes
    ----------
    parameters : array of shape (outputs, d + 1)
        The intercepts come last.
    steps : int
        Newton steps on all samples.
    converged : bool
    """

    parameters: NDArray[np.float64]
    steps: int
    converged: bool

    @property
    def model(self) -> LinearModel:
        """The model."""
        return to_model(self.parameters)


def to_model(parameters: NDArray[np.float64]) -> LinearModel:
    """Make a model of parameters whose last column holds the intercepts.

    Of many classes only the differences between intercepts matter: they are given with mean 0.
    """
    shift = parameters[:, -1].mean() if len(parameters) > 1 else 0.0
    return LinearModel(parameters[:, :-1].copy(), parameters[:, -1] - shift)


@one_blas_thread()
def find_plain_optimum(
    objective: LinearObjective,
    weights: Any = None,
    start: NDArray[np.float64] | None = None,
) -> PlainOptimum:
    """Minimise the objective; on a part of very many samples first.

    Examples
    --------
    >>> objective = LinearObjective(np.array([[-1.0], [1.0], [2.0]]), np.array([0, 1, 1]), 2)
    >>> find_plain_optimum(objective).parameters.round(2).tolist()
    [[0.85, 0.29]]
    """
    weights = objective.ones() if weights is None else objective.as_values(weights)
    if start is None and objective.samples > MANY:
        rows = draw_part(objective.samples, PART)
        start = find_plain_optimum(objective.take(rows), weights[rows]).parameters
    parameters = objective.zeros() if start is None else start
    scores = objective.scores(parameters)
    losses = objective.losses(scores)
    noise = PLAIN_NOISE[objective.features.dtype.itemsize]
    curvature, last = None, np.inf
    for number in range(1, PLAIN_STEPS + 1):
        if curvature is None:
            curvature = objective.curvature(scores, weights, exact=True)
        step = take_step(objective, curvature, parameters, scores, losses, weights)
        parameters = step.parameters
        if step.decrement <= PLAIN_ACCURACY + noise * step.value:
            return PlainOptimum(parameters, number, converged=True)
        if step.decrement > SAME_CURVATURE * last or not np.isfinite(last):
            curvature = None
        last = step.decrement
    return PlainOptimum(parameters, PLAIN_STEPS, converged=False)


def draw_part(samples: int, size: int) -> NDArray[np.int64]:
    """Draw ``size`` of so many samples, ascending; always the same ones."""
    return np.sort(np.random.default_rng(0).choice(samples, size, replace=False, shuffle=False))


@dataclass(frozen=True, kw_only=True, eq=False)
class _Step:
    """A model after a Newton step, and how much the step promised to gain."""

    parameters: NDArray[np.float64]
    value: float
    decrement: float


def take_step(
    objective: LinearObjective,
    curvature: Curvature,
    parameters: NDArray[np.float64],
    scores: Any,
    losses: Any,
    weights: Any,
) -> _Step:
    """Take one Newton step; halve it until the objective falls. Scores and losses become those of the new model."""
    gradient = objective.gradient(parameters, scores, weights)
    direction = curvature.solve(gradient)
    slope = float((gradient * direction).sum())
    before, length = objective.value(parameters, losses, weights), 1.0
    noise = PLAIN_NOISE[objective.features.dtype.itemsize]
    for _ in range(HALVINGS):
        there = parameters + length * direction
        value = objective.move_to(there, scores, losses, weights)
        if value <= before + 1e-4 * length * slope + 100 * noise * abs(before):
            break
        length /= 2
    return _Step(parameters=there, value=value, decrement=-slope)


def new_objective(data: Samples, device: str | None = None) -> LinearObjective:
    """Make the objective of a linear model over samples, on a device."""
    features, labels = data.features, data.cells.host_codes // data.cells.shape[1]  # a byte each, mostly
    if device not in (None, "cpu"):
        torch = require("torch", extra="torch", purpose=f"training on the device {device!r}")
        dense = features.toarray() if hasattr(features, "toarray") else features
        features = torch.from_numpy(np.require(dense, requirements="W")).to(device)
        labels = torch.from_numpy(labels.astype(np.int64)).to(device)
    return LinearObjective(features, labels, data.cells.shape[0])
