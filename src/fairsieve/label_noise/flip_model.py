"""Model how labels went wrong: the observed label, given the features and the group.

The true class of a sample is softmax(x·W). A label of true class i in group z is flipped, to any other class
alike, with the chance

    ρ = σ(a(z, i) + b(z, i) · m),    m = log(p / (1 − p)), the log odds of the true class.

With b = 0 labels are wrong *at random*, at a rate of their own in each cell. With b > 0 they are wrong where
the class is surest, as an attacker aims them. Both are fitted by maximum likelihood. The only thing known about
the true labels is the shape of the softmax: random flips make it level off at 1 − ρ instead of 1, aimed flips
turn it around.

The fit uses Fisher scoring: steps of Newton's method with the expected curvature, which is never indefinite.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dposv
from scipy.special import expit, logit

from fairsieve.label_noise.flip_likelihood import (
    AIMS,
    LEVELS,
    FlipLikelihood,
    FlipParameters,
    Observed,
    log_chances,
    log_joint,
    log_sum,
    one_hot,
)
from fairsieve.label_noise.flip_likelihood_binary import new_likelihood

__all__ = ["FlipModel", "Observed", "fit_fixed", "fit_flips", "fit_plain", "log_chances"]

Floats = NDArray[np.float64]

CLOSE = 0.02  # the expected gain in log-likelihood at which the fit stops
MOST_STEPS = 60


@dataclass(frozen=True, eq=False)
class FlipModel:
    """A fitted model.

    Attributes
    ----------
    weights : array of shape (columns, classes)
        Of the true classes; those of the first class are 0.
    level, aim : arrays of shape (groups, classes)
        a and b above; a is minus infinity where no label is flipped.
    log_likelihood : float
    rates : int
        The number of free parameters in ``level`` and ``aim``.
    rate_covariance : array of shape (rates, rates)
        Covariance of the free parameters.
    ties : integer array of shape (groups, classes) or None
        Cells with the same number share a rate.
    """

    weights: Floats
    level: Floats
    aim: Floats
    log_likelihood: float
    rates: int = 0
    rate_covariance: Floats | None = None
    ties: NDArray[np.int64] | None = None

    @property
    def flip_rates(self) -> Floats:
        """The chance of a label of each (group, class) to be flipped, where the class is a toss-up."""
        return np.asarray(expit(self.level))

    def true_class(self, observed: Observed) -> Floats:
        """Compute the probabilities of the true classes, given the features and the observed label."""
        joint = log_joint(observed, self.weights, self.level, self.aim)[0]
        return np.asarray(np.exp(joint - log_sum(joint)[:, None]))

    def losses(self, observed: Observed) -> Floats:
        """Compute minus the log-likelihood of each sample's label, not weighted."""
        return np.asarray(-log_sum(log_joint(observed, self.weights, self.level, self.aim)[0]))

    def noise(self, observed: Observed) -> float:
        """Compute the share of wrong labels."""
        own = self.true_class(observed)[np.arange(len(observed)), observed.labels]
        return 1 - float(np.average(own, weights=observed.weights))

    def noise_error(self, observed: Observed) -> float:
        """Compute the standard error of the share of wrong labels, for flips at random.

        The share is Σ share(z, i) · ρ(z, i) over the true classes and groups; the error follows from the
        covariance of the rates.
        """
        if self.rate_covariance is None or self.ties is None:
            return 0.0
        true = np.exp(log_chances(observed.design @ self.weights)) * observed.weights[:, None]
        shares = np.array([true[observed.groups == g].sum(axis=0) for g in range(observed.group_count)])
        slope = (shares / max(shares.sum(), 1e-12) * self.flip_rates * (1 - self.flip_rates)).ravel()
        gradient = one_hot(self.ties.ravel()) @ slope
        covariance = self.rate_covariance[: len(gradient), : len(gradient)]
        return float(np.sqrt(max(gradient @ covariance @ gradient, 0.0)))


def fit_plain(observed: Observed, start: FlipModel | None = None, *, steps: int = MOST_STEPS) -> FlipModel:
    """Fit multinomial logistic regression: all labels are right."""
    shape = observed.group_count, observed.classes
    weights = np.zeros((observed.design.shape[1], observed.classes)) if start is None else start.weights
    model = FlipModel(weights, np.full(shape, -np.inf), np.zeros(shape), 0.0)
    return _maximise(observed, model, steps=steps)


def fit_fixed(observed: Observed, start: FlipModel, rates: float | Floats) -> FlipModel:
    """Fit the weights where the rates, one or a table (groups, classes), are given."""
    shape = observed.group_count, observed.classes
    level = np.clip(logit(np.broadcast_to(rates, shape).astype(np.float64)), -12.0, LEVELS[1])
    return _maximise(observed, FlipModel(start.weights, level, np.zeros(shape), 0.0))


def fit_flips(
    observed: Observed,
    start: FlipModel,
    *,
    aimed: bool = False,
    ties: NDArray[np.int64] | None = None,
    steps: int = MOST_STEPS,
) -> FlipModel:
    """Fit labels wrong at random, or aimed, starting from another model's weights and rates.

    ``ties`` numbers the rates of (group, class): cells with the same number share a rate. Every cell has a
    rate of its own when None.
    """
    level, aim = start.level, start.aim
    if not np.isfinite(level).all():
        level = np.full_like(level, -2.0)
    if aimed and not aim.any():
        aim = np.full_like(aim, 0.5)
    if ties is None:
        ties = np.arange(level.size).reshape(level.shape)
    return _maximise(observed, FlipModel(start.weights, level, aim, 0.0), ties=ties, aimed=aimed, steps=steps)


def _maximise(
    observed: Observed,
    start: FlipModel,
    *,
    ties: NDArray[np.int64] | None = None,
    aimed: bool = False,
    steps: int = MOST_STEPS,
) -> FlipModel:
    """Find the likeliest model by Fisher scoring with a line search."""
    parameters = FlipParameters(start.weights, start.level, start.aim)
    problem = new_likelihood(observed, parameters, ties, aimed)
    values = problem.first()
    value = problem.value(values)
    damping, curvature = 0.0, np.eye(problem.size)
    for _ in range(steps):
        slope, curvature = problem.slope_and_curvature(values)
        free = _free(problem, values, slope)
        step = np.zeros(problem.size)
        step[free] = _solve(curvature[free][:, free].copy(), slope[free], damping)
        if slope @ step < CLOSE:
            break
        length = 1.0
        while length > 1e-3:
            trial = problem.bounded(values + length * step)
            found = problem.value(trial)
            if found > value:
                break
            length /= 4
        else:
            break
        damping = 0.0 if length == 1.0 else max(10 * damping, 1e-3)
        if found - value < CLOSE / 4:
            values, value = trial, found
            break
        values, value = trial, found
    at = problem.point(values)
    covariance = _rate_covariance(curvature, problem.free) if problem.rates else None
    rates = problem.rates * (2 if aimed else 1)
    return FlipModel(
        at.weights,
        at.level,
        at.aim,
        problem.likelihood(values),
        rates,
        covariance,
        None if ties is None else ties,
    )


def _free(problem: FlipLikelihood, values: Floats, slope: Floats) -> NDArray[np.int64] | slice:
    """Return the parameters that are not held at a bound by the slope."""
    if not problem.rates:
        return slice(None)
    lowest, highest = np.full(problem.size, -np.inf), np.full(problem.size, np.inf)
    ends = problem.free, problem.free + problem.rates
    lowest[ends[0] : ends[1]], highest[ends[0] : ends[1]] = LEVELS
    lowest[ends[1] :], highest[ends[1] :] = AIMS
    held = ((values <= lowest) & (slope < 0)) | ((values >= highest) & (slope > 0))
    return np.flatnonzero(~held)


def _solve(curvature: Floats, slope: Floats, damping: float) -> Floats:
    """Solve for a step; more damping where the curvature is singular."""
    scale = curvature.diagonal().copy()
    for extra in (damping, max(damping, 1e-8), 1e-4, 1e-2):
        curvature.flat[:: len(scale) + 1] = scale * (1 + extra) + 1e-10
        # LAPACK itself: scipy's own functions take longer than the work
        _, step, failed = dposv(curvature, slope, lower=True)
        if not failed and np.isfinite(step).all():
            return np.asarray(step)
    return np.asarray(slope / np.maximum(scale, 1e-8))


def _rate_covariance(curvature: Floats, free: int) -> Floats:
    """Return the covariance of the rates: the inverse of the curvature, after the weights adapt."""
    inner, cross, own = curvature[:free, :free], curvature[:free, free:], curvature[free:, free:]
    explained = cross.T @ np.stack([_solve(inner.copy(), column, 0.0) for column in cross.T], axis=1)
    return np.asarray(np.linalg.pinv(own - explained + 1e-9 * np.eye(len(own)), hermitian=True))
