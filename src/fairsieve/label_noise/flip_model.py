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

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dposv
from scipy.special import expit, log_expit, softmax

__all__ = [
    "FlipModel",
    "Observed",
    "fit_flips",
    "fit_left_out",
    "fit_plain",
    "log_losses",
    "probabilities",
]

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]

RIDGE = 1.0  # of the weights, as in scikit-learn's LogisticRegression
AIM_RIDGE = 1.0
LEVELS = (-8.0, 2.0)  # of a: rates from .0003 to .88
AIMS = (0.0, 8.0)
CLOSE = 0.02  # the expected gain in log-likelihood at which the fit stops
MOST_STEPS = 60
TINIEST = 1e-150  # of a chance: a trial step may go so far that a label has none


@dataclass(frozen=True, eq=False)
class Observed:
    """Design matrix, labels and groups of samples, as codes, and how often each counts."""

    design: Floats
    labels: Codes
    groups: Codes
    classes: int
    group_count: int
    weights: Floats

    def __len__(self) -> int:
        return len(self.labels)

    def take(self, rows: Codes | NDArray[np.bool_] | slice) -> Observed:
        """Return some of the samples."""
        return replace(
            self,
            design=self.design[rows],
            labels=self.labels[rows],
            groups=self.groups[rows],
            weights=self.weights[rows],
        )

    def share_by_group(self, values: Floats) -> Floats:
        """Sum columns of values by group, as shares of all, (groups, columns)."""
        own = np.equal.outer(np.arange(self.group_count), self.groups) * self.weights
        return np.asarray(own @ values / self.weights.sum())


@dataclass(frozen=True, eq=False)
class FlipModel:
    """A fitted model.

    Attributes
    ----------
    weights : array of shape (columns, classes − 1)
        Of the true classes; those of the first class are 0.
    level, aim : arrays of shape (groups, classes)
        a and b above; a is minus infinity where no label is flipped.
    log_likelihood : float
    ties : integer array of shape (groups, classes) or None
        Which free rate each cell has; cells with the same number share one.
    rate_covariance : array of shape (rates, rates)
        Covariance of the free a.
    """

    weights: Floats
    level: Floats
    aim: Floats
    log_likelihood: float = 0.0
    ties: Codes | None = None
    rate_covariance: Floats | None = None

    @property
    def flip_rates(self) -> Floats:
        """The chance of a label of each (group, class) to be flipped, where the class is a toss-up."""
        return np.asarray(expit(self.level))

    def joint(self, observed: Observed) -> Floats:
        """Compute the probability of each true class together with the observed label."""
        chances = probabilities(observed.design @ self.weights)
        transfer = _rates(self, observed.groups, chances) / max(observed.classes - 1, 1)
        rows = np.arange(len(observed))
        transfer[rows, observed.labels] = 1 - transfer[rows, observed.labels] * max(observed.classes - 1, 1)
        return np.asarray(np.maximum(chances * transfer, TINIEST))

    def true_class(self, observed: Observed) -> Floats:
        """Compute the probabilities of the true classes, given the features and the observed label."""
        joint = self.joint(observed)
        return np.asarray(joint / joint.sum(axis=1, keepdims=True))

    def losses(self, observed: Observed) -> Floats:
        """Compute minus the log-likelihood of each sample's label, not weighted."""
        return np.asarray(-np.log(self.joint(observed).sum(axis=1)))

    def noise(self, observed: Observed) -> tuple[float, float]:
        """Compute the share of labels wrong at random, Σ share(z, i) · ρ(z, i), and its standard error."""
        shares = observed.share_by_group(probabilities(observed.design @ self.weights))
        share = float((shares * self.flip_rates).sum())
        if self.rate_covariance is None or self.ties is None:
            return share, 0.0
        slope = (shares * self.flip_rates * (1 - self.flip_rates)).ravel()
        gradient = np.bincount(self.ties.ravel(), slope)
        variance = float(gradient @ self.rate_covariance @ gradient)
        return share, max(variance, 0.0) ** 0.5


def fit_plain(observed: Observed, start: Floats | None = None, *, steps: int = MOST_STEPS) -> FlipModel:
    """Fit multinomial logistic regression: all labels are right. ``start`` are weights to begin with."""
    shape = observed.group_count, observed.classes
    weights = np.zeros((observed.design.shape[1], observed.classes - 1)) if start is None else start
    return _maximise(observed, FlipModel(weights, np.full(shape, -np.inf), np.zeros(shape)), steps=steps)


def fit_left_out(observed: Observed, model: FlipModel, folds: Codes) -> Floats:
    """Compute the logits of each fold by plain models that did not see it, (n, classes − 1).

    Each is one step of Newton's method away from the model of all samples, so all folds together take the work of one
    step.
    """
    problem = _Likelihood(observed, model, None, False)
    values, ridge = problem.first(), np.diag(problem.ridge)
    parts = [
        _Likelihood(observed.take(folds == fold), model, None, False).slope_and_curvature(values)
        for fold in range(int(folds.max(initial=0)) + 1)
    ]
    slope = sum((part[0] for part in parts), (1 - len(parts)) * -problem.ridge * values)
    curvature = sum((part[1] for part in parts), (1 - len(parts)) * ridge)
    found = np.empty((len(observed), observed.classes - 1))
    for fold, (its_slope, its_curvature) in enumerate(parts):
        left_out, penalty = folds == fold, problem.ridge * values
        step = _solve(curvature - its_curvature + ridge, slope - its_slope - penalty, 0.0)
        found[left_out] = observed.design[left_out] @ (values + step).reshape(model.weights.shape)
    return found


def fit_flips(
    observed: Observed, start: FlipModel, ties: Codes, *, aimed: bool = False, steps: int = MOST_STEPS
) -> FlipModel:
    """Fit labels wrong at random, or aimed, starting from another model's weights and rates.

    ``ties`` numbers the rates of (group, class) from 0: cells with the same number share a rate.
    """
    level = np.where(np.isfinite(start.level), start.level, -2.0)
    aim = np.where(start.aim > 0, start.aim, 0.5) if aimed else np.zeros_like(level)
    return _maximise(observed, FlipModel(start.weights, level, aim), ties, aimed, steps)


def probabilities(logits: Floats) -> Floats:
    """Compute the probabilities of the classes from logits against the first; two classes take a shorter way."""
    if logits.shape[1] != 1:
        return np.asarray(softmax(np.column_stack([np.zeros(len(logits)), logits]), axis=1))
    return np.column_stack([expit(-logits[:, 0]), expit(logits[:, 0])])


def log_losses(logits: Floats, labels: Codes) -> Floats:
    """Compute the log loss of each label, from logits against the first class."""
    if logits.shape[1] == 1:
        return np.asarray(-log_expit(np.where(labels == 1, logits[:, 0], -logits[:, 0])))
    return np.asarray(-np.log(np.maximum(probabilities(logits)[np.arange(len(labels)), labels], TINIEST)))


def _rates(model: FlipModel, groups: Codes, chances: Floats) -> Floats:
    """Compute the chance of each sample to be flipped, if a class is its true one."""
    if not model.aim.any():
        return np.asarray(expit(model.level)[groups])
    return np.asarray(expit(model.level[groups] + model.aim[groups] * _log_odds(chances)))


def _log_odds(chances: Floats) -> Floats:
    return np.asarray(np.log(np.maximum(chances, 1e-12)) - np.log(np.maximum(1 - chances, 1e-12)))


class _Likelihood:
    """The penalised log-likelihood of one fit, its slope and its expected curvature.

    The parameters are the weights, then the free a, then the free b.
    """

    def __init__(self, observed: Observed, start: FlipModel, ties: Codes | None, aimed: bool) -> None:
        self.observed, self.start, self.ties, self.aimed = observed, start, ties, aimed
        self.rates = 0 if ties is None else int(ties.max()) + 1
        self.weights = start.weights.size
        self.size = self.weights + self.rates * (2 if aimed else 1)
        ridge = np.full(start.weights.shape, RIDGE)
        ridge[-1] = 1e-8  # the constant is free
        self.ridge = np.concatenate([ridge.ravel(), np.zeros(self.size - self.weights)])
        if aimed:
            self.ridge[self.weights + self.rates :] = AIM_RIDGE
        self.lowest, self.highest = (np.full(self.size, end) for end in (-np.inf, np.inf))
        for place, ends in ((self.weights, LEVELS), (self.weights + self.rates, AIMS)):
            self.lowest[place : place + self.rates], self.highest[place : place + self.rates] = ends

    def first(self) -> Floats:
        """Return the parameters to start from."""
        parts = [self.start.weights.ravel()]
        if self.ties is not None:
            counts = np.bincount(self.ties.ravel())
            tables = (self.start.level, self.start.aim) if self.aimed else (self.start.level,)
            parts += [np.bincount(self.ties.ravel(), table.ravel()) / counts for table in tables]
        return np.clip(np.concatenate(parts), self.lowest, self.highest)

    def model(self, values: Floats) -> FlipModel:
        """Unpack the parameters."""
        weights = values[: self.weights].reshape(self.start.weights.shape)
        level, aim = self.start.level, self.start.aim
        if self.ties is not None:
            level = values[self.weights : self.weights + self.rates][self.ties]
            aim = values[self.weights + self.rates :][self.ties] if self.aimed else aim
        return FlipModel(weights, level, aim, ties=self.ties)

    def value(self, values: Floats) -> float:
        """Compute the penalised log-likelihood."""
        return self.likelihood(values) - float(self.ridge @ values**2) / 2

    def likelihood(self, values: Floats) -> float:
        """Compute the log-likelihood alone."""
        model, observed = self.model(values), self.observed
        if np.isneginf(model.level).all():
            losses = log_losses(observed.design @ model.weights, observed.labels)
        else:
            losses = model.losses(observed)
        return -float(observed.weights @ losses)

    def slope_and_curvature(self, values: Floats) -> tuple[Floats, Floats]:
        """Compute the slope, and the expected curvature, of the penalised log-likelihood.

        The curvature is Σ_n Σ_c ∇q_c ∇q_cᵀ / q_c, where q_c is the chance of label c of sample n. With two labels the
        slope of one is minus that of the other, so one pass over the samples does.
        """
        observed, design, model = self.observed, self.observed.design, self.model(values)
        chances = probabilities(design @ model.weights)
        rates, others = _rates(model, observed.groups, chances), observed.classes - 1
        slope, curvature = -self.ridge * values, np.diag(self.ridge)
        for label in range(1 if others == 1 else 0, observed.classes):
            sign = np.full(
                observed.classes, 1 / max(others, 1)
            )  # of the chance to get the label, by the flip's
            sign[label] = -1.0
            transfer = rates * sign
            transfer[:, label] += 1
            seen = np.maximum((chances * transfer).sum(axis=1), TINIEST)
            by_logit, by_rate = self._slopes(model, chances, transfer, seen, rates, sign)
            if others == 1:
                unseen = np.maximum(1 - seen, TINIEST)
                pull = observed.weights * np.where(observed.labels == 1, 1 / seen, -1 / unseen)
                mass = observed.weights / (seen * unseen)
            else:
                pull = observed.weights * (observed.labels == label) / seen
                mass = observed.weights / seen
            slope[: self.weights] += (design.T @ (by_logit * pull[:, None])).ravel()
            slope[self.weights :] += pull @ by_rate
            self._add(curvature, by_logit, by_rate, mass)
        return slope, curvature

    def _add(self, curvature: Floats, by_logit: Floats, by_rate: Floats, mass: Floats) -> None:
        """Add what a label contributes to the curvature."""
        design, others, free = self.observed.design, by_logit.shape[1], self.weights
        for i in range(others):
            rows = slice(i, free, others)
            for j in range(i + 1):
                columns = slice(j, free, others)
                if i == j:  # a product with itself takes half the operations
                    part = design * (by_logit[:, i] * np.sqrt(mass))[:, None]
                    curvature[rows, columns] += part.T @ part
                else:
                    block = design.T @ (design * (by_logit[:, i] * by_logit[:, j] * mass)[:, None])
                    curvature[rows, columns] += block
                    curvature[columns, rows] += block
            if self.rates:
                cross = design.T @ (by_rate * (by_logit[:, i] * mass)[:, None])
                curvature[rows, free:] += cross
                curvature[free:, rows] += cross.T
        curvature[free:, free:] += by_rate.T @ (by_rate * mass[:, None])

    def _slopes(
        self,
        model: FlipModel,
        chances: Floats,
        transfer: Floats,
        seen: Floats,
        rates: Floats,
        sign: Floats,
    ) -> tuple[Floats, Floats]:
        """Compute the slopes of the chance of a label, by the logits and by the free rates, of each sample."""
        by_logit = chances * (transfer - seen[:, None])
        by_rate = np.zeros((len(seen), self.size - self.weights))
        if self.ties is None:
            return by_logit[:, 1:], by_rate
        groups, every = self.observed.groups, np.arange(len(seen))
        by_level = chances * sign * rates * (1 - rates)
        parts = [by_level]
        if self.aimed:
            pull = by_level * model.aim[groups] / np.maximum(1 - chances, 1e-12)
            by_logit += pull - chances * pull.sum(axis=1, keepdims=True)
            parts.append(by_level * _log_odds(chances))
        for number, part in enumerate(parts):
            for label in range(part.shape[1]):
                by_rate[every, number * self.rates + self.ties[groups, label]] += part[:, label]
        return by_logit[:, 1:], by_rate


def _maximise(
    observed: Observed,
    start: FlipModel,
    ties: Codes | None = None,
    aimed: bool = False,
    steps: int = MOST_STEPS,
) -> FlipModel:
    """Find the likeliest model by Fisher scoring with a line search."""
    problem = _Likelihood(observed, start, ties, aimed)
    values = problem.first()
    value, damping, curvature = problem.value(values), 0.0, np.eye(problem.size)
    for _ in range(steps):
        slope, curvature = problem.slope_and_curvature(values)
        held = ((values <= problem.lowest) & (slope < 0)) | ((values >= problem.highest) & (slope > 0))
        free, step = np.flatnonzero(~held), np.zeros(problem.size)
        step[free] = _solve(curvature[np.ix_(free, free)], slope[free], damping)
        if slope @ step < CLOSE:
            break
        for length in (1.0, 0.25, 0.06, 0.015, 0.004):
            trial = np.clip(values + length * step, problem.lowest, problem.highest)
            found = problem.value(trial)
            if found > value:
                break
        else:
            break
        damping = 0.0 if length == 1.0 else max(10 * damping, 1e-3)
        gained = found - value
        values, value = trial, found
        if gained < CLOSE / 4:
            break
    covariance = _rate_covariance(curvature, problem) if problem.rates else None
    return replace(
        problem.model(values), log_likelihood=problem.likelihood(values), rate_covariance=covariance
    )


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


def _rate_covariance(curvature: Floats, problem: _Likelihood) -> Floats:
    """Return the covariance of the free a: the inverse of the curvature, after all else adapts."""
    ridge = 1e-9 * np.eye(problem.size)
    inverse = np.linalg.pinv(curvature + ridge, hermitian=True)
    own = slice(problem.weights, problem.weights + problem.rates)
    return np.asarray(inverse[own, own])
