"""Gaps between groups as smooth constraints, which an augmented Lagrangian holds down.

The rates of a table of *soft* predictions, where a row counts for each class as far as the model gives it to it, have
a derivative, so that a model can be trained under ``gap ≤ target`` for every rate and pair of groups:

1. The loss is the mean log loss with the ridge, plus ``Σ (max(0, λ + ρ·violation)² − λ²) / 2ρ`` over the constraints
   [1]_. What stands in the bracket is the *pull* of a constraint.
2. It is minimised by L-BFGS, in coordinates in which the curvature of the log loss is the identity. All that is asked
   of the rows is their soft table, and the gradient of a weighted sum of its entries.
3. The pulls become the next multipliers λ, and ρ grows.

It is not convex. So it starts from a model of the log loss alone with very soft predictions, which become sharper as
the targets tighten, each model being the start of the next.

.. [1] Nocedal and Wright, Numerical Optimization, 2006, chapter 17.4.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular
from scipy.optimize import minimize

from fairsieve.metrics import Rates
from fairsieve.training.newton import Newton
from fairsieve.training.rows import Rows, Table

Floats = NDArray[np.float64]

GRADIENT, DECREASE = 1e-4, 1e-7  # of the mean loss, in coordinates of unit curvature: L-BFGS has arrived


@dataclass(frozen=True, eq=False)
class Lagrangian:
    """What gaps cost.

    Attributes
    ----------
    multipliers, targets : arrays of shape (rates, groups, groups)
        The price of a gap, and how wide it may be; entry (rate, higher group, lower group).
    stiffness : float
        ρ, by how much a violation raises the price.
    temperature : float
        How soft predictions are.
    """

    multipliers: Floats
    targets: Floats
    stiffness: float
    temperature: float

    def pulls(self, rates: Floats, counted: Floats) -> Floats:
        """Return the price of each gap at these rates; 0 where a group has nobody who is counted."""
        gaps = rates[:, :, None] - rates[:, None, :] - self.targets
        there = counted > 0
        pulls = np.maximum(0.0, self.multipliers + self.stiffness * gaps)
        return np.where(
            there[:, :, None] & there[:, None, :] & ~np.eye(there.shape[1], dtype=bool), pulls, 0.0
        )

    def penalty(self, pulls: Floats) -> float:
        """Return what is added to the loss."""
        return float((pulls**2 - self.multipliers**2).sum()) / (2 * self.stiffness)


@dataclass(frozen=True, eq=False)
class Constrained:
    """The loss of some rows under constraints.

    Attributes
    ----------
    newton : Newton
        The rows that are trained on, and how their columns are scaled.
    train : Rows
        Those of them that are selected.
    table : Table
        By whose ``judged`` rows the soft rates are taken.
    rates : Rates
    named_groups : int
        How many of the groups are compared.
    cut : float
        Of two classes, the score from which on the second one is predicted.
    """

    newton: Newton
    train: Rows
    table: Table
    rates: Rates
    named_groups: int
    cut: float = 0.0

    def soften(self, parameters: Floats, temperature: float) -> Floats:
        """Return the table of soft predictions, by true class."""
        return self.table.correct(self.table.judged.soft_confusion(at_cut(parameters, self.cut), temperature))

    def slopes(self, soft: Floats, pulls: Floats) -> Floats:
        """Return the derivative of all gaps, each times its pull, by the table of judged labels."""
        signed = pulls.sum(axis=2) - pulls.sum(axis=1)
        found = np.zeros_like(soft)
        found[:, : self.named_groups] = self.rates.derivative(soft[:, : self.named_groups], signed)
        return self.table.uncorrect(found)

    def measure(self, soft: Floats) -> tuple[Floats, Floats]:
        """Return the rates, and how many are counted, each (rates, groups)."""
        return self.rates.of(soft[:, : self.named_groups])

    def minimise(
        self, start: Floats, metric: tuple[Floats, Floats], lagrangian: Lagrangian, most: int
    ) -> Floats:
        """Minimise the loss under constraints; return the parameters in the units of the features.

        Parameters
        ----------
        start : array of shape (outputs, d + 1)
        metric : pair of arrays
            The factored curvature of the loss, see :meth:`~fairsieve.training.newton.Newton.factor`.
        lagrangian : Lagrangian
        most : int
            Steps of L-BFGS.
        """
        newton, (lower, scale), temperature = self.newton, metric, lagrangian.temperature
        turn = np.stack([solve_triangular(each, np.eye(len(each)), lower=True) for each in lower])
        ones, total, shape = np.ones(self.newton.masses.shape), newton.total, start.shape
        unit = scale * np.sqrt(total)  # so that the curvature of the *mean* loss is the identity

        def straighten(turned: Floats) -> Floats:
            back = turned.reshape(shape)[:, None] @ turn  # by the transposed factor of each output
            return np.asarray((back.ravel() * unit).reshape(shape))

        def evaluate(turned: Floats) -> tuple[float, Floats]:
            at = straighten(turned)
            parameters = newton.raw(at)
            known = self.train.derivatives(parameters, ones)
            soft = self.soften(parameters, temperature)
            pulls = lagrangian.pulls(*self.measure(soft))
            pulled = self.table.judged.soft_gradient(
                at_cut(parameters, self.cut), self.slopes(soft, pulls), temperature
            )
            gradient = newton.gradient(known.gradient, at) / total + newton.gradient(
                pulled, np.zeros_like(at)
            )
            value = (known.value + newton.penalty(at)) / total + lagrangian.penalty(pulls)
            return value, (turn @ (gradient.ravel() * unit).reshape(shape)[:, :, None]).ravel()

        turned = ((newton.standardise(start).ravel() / unit).reshape(shape)[:, None] @ lower).ravel()
        options: Any = {"maxiter": most, "gtol": GRADIENT, "ftol": DECREASE}
        return newton.raw(
            straighten(minimize(evaluate, turned, jac=True, method="L-BFGS-B", options=options).x)
        )


def at_cut(parameters: Floats, cut: float) -> Floats:
    """Shift the intercept of two classes so that the second is predicted above a score of 0.

    >>> at_cut(np.array([[2.0, 1.0]]), 0.5).tolist()
    [[2.0, 0.5]]
    """
    if cut == 0.0:
        return parameters
    shifted = parameters.copy()
    shifted[:, -1] -= cut
    return shifted
