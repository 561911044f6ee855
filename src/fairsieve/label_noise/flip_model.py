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
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.special import expit, log_expit, log_softmax, logit, logsumexp

__all__ = ["FlipModel", "Observed", "fit_fixed", "fit_flips", "fit_plain", "log_chances"]

Floats = NDArray[np.float64]

RIDGE = 1.0  # of the weights, as in scikit-learn's LogisticRegression
SPREAD = 0.125  # pulls the rates of a class together where their cells say little
AIM_RIDGE = 0.5
LEVELS = (-8.0, 2.0)  # of a: rates from .0003 to .88
AIMS = (0.0, 8.0)
CLOSE = 0.02  # the expected gain in log-likelihood at which the fit stops
MOST_STEPS = 60


@dataclass(frozen=True, eq=False)
class Observed:
    """Design matrix, labels and groups of samples, as codes, and their weights."""

    design: Floats
    labels: NDArray[np.int64]
    groups: NDArray[np.int64]
    classes: int
    group_count: int
    weights: Floats

    def __len__(self) -> int:
        return len(self.labels)

    def take(self, rows: NDArray[np.int64]) -> Observed:
        """Return some of the samples."""
        return replace(
            self,
            design=self.design[rows],
            labels=self.labels[rows],
            groups=self.groups[rows],
            weights=self.weights[rows],
        )


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
        joint = _log_joint(observed, self.weights, self.level, self.aim)[0]
        return np.asarray(np.exp(joint - _log_sum(joint)[:, None]))

    def losses(self, observed: Observed) -> Floats:
        """Compute minus the log-likelihood of each sample's label, not weighted."""
        return np.asarray(-logsumexp(_log_joint(observed, self.weights, self.level, self.aim)[0], axis=1))

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
        gradient = _one_hot(self.ties.ravel()) @ slope
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


def _log_joint(
    observed: Observed, weights: Floats, level: Floats, aim: Floats, label: int | None = None
) -> tuple[Floats, Floats, Floats, Floats]:
    """Compute log P(true class, label), log P(true class), its log odds m, and the flip's log odds.

    The label is the observed one or, where ``label`` is given, that one for every sample.
    """
    log_true = log_chances(observed.design @ weights)
    odds = log_true - np.log(-np.expm1(np.minimum(log_true, -1e-12)))
    flip = level[observed.groups] + (aim[observed.groups] * odds if aim.any() else 0.0)
    if np.isneginf(level).all():  # no label is flipped
        joint = np.full_like(log_true, -np.inf)
        rows = np.arange(len(observed))
        labels = observed.labels if label is None else np.full(len(observed), label)
        joint[rows, labels] = log_true[rows, labels]
        return joint, log_true, odds, flip
    transfer = log_expit(flip) - np.log(max(observed.classes - 1, 1))
    rows = np.arange(len(observed))
    labels = observed.labels if label is None else np.full(len(observed), label)
    transfer[rows, labels] = log_expit(-flip[rows, labels])
    return log_true + transfer, log_true, odds, flip


@dataclass
class _Point:
    """Values of the free parameters: weights of all classes but the first, then rates, then aims."""

    weights: Floats
    level: Floats
    aim: Floats


class _Problem:
    """The penalised log-likelihood of one fit, its slope and its expected curvature."""

    def __init__(
        self, observed: Observed, start: FlipModel, ties: NDArray[np.int64] | None, aimed: bool
    ) -> None:
        self.observed, self.start, self.aimed = observed, start, aimed
        self.tied = np.zeros((0, start.level.size)) if ties is None else _one_hot(ties.ravel())
        self.rates = len(self.tied)
        self.columns = observed.design.shape[1]
        self.free = self.columns * (observed.classes - 1)
        self.size = self.free + self.rates * (2 if aimed else 1)
        ridge = np.full((self.columns, observed.classes - 1), RIDGE)
        ridge[-1] = 1e-8  # the constant is free
        self.ridge = ridge.ravel()

    def first(self) -> Floats:
        """Return the parameters to start from."""
        shares = self.tied / np.maximum(self.tied.sum(axis=1, keepdims=True), 1.0)
        weights = self.start.weights - self.start.weights[:, :1]
        parts = [weights[:, 1:].ravel()]
        if self.rates:
            parts.append(np.clip(shares @ self.start.level.ravel(), *LEVELS))
        if self.aimed:
            parts.append(np.clip(shares @ self.start.aim.ravel(), *AIMS))
        return np.concatenate(parts)

    def point(self, values: Floats) -> _Point:
        """Unpack the parameters."""
        rest = values[: self.free].reshape(self.columns, -1)
        weights = np.column_stack([np.zeros(self.columns), rest])
        level, aim = self.start.level, self.start.aim
        if self.rates:
            level = (values[self.free : self.free + self.rates] @ self.tied).reshape(level.shape)
        if self.aimed:
            aim = (values[self.free + self.rates :] @ self.tied).reshape(aim.shape)
        return _Point(weights, level, aim)

    def bounded(self, values: Floats) -> Floats:
        """Return the parameters within their bounds."""
        values = values.copy()
        ends = self.free, self.free + self.rates
        values[ends[0] : ends[1]] = np.clip(values[ends[0] : ends[1]], *LEVELS)
        values[ends[1] :] = np.clip(values[ends[1] :], *AIMS)
        return values

    def likelihood(self, values: Floats) -> float:
        """Compute the log-likelihood alone."""
        at, observed = self.point(values), self.observed
        if np.isneginf(at.level).all():  # no label is flipped
            log_true = log_chances(observed.design @ at.weights)
            return float(observed.weights @ log_true[np.arange(len(observed)), observed.labels])
        joint = _log_joint(observed, at.weights, at.level, at.aim)[0]
        return float(observed.weights @ _log_sum(joint))

    def value(self, values: Floats) -> float:
        """Compute the penalised log-likelihood."""
        return self.likelihood(values) - self.penalty(values)

    def penalty(self, values: Floats) -> float:
        at = self.point(values)
        held = at.level - at.level.mean(axis=0) if self.rates else np.zeros(1)
        cost = float(self.ridge @ values[: self.free] ** 2) / 2 + SPREAD * float((held**2).sum())
        return cost + (AIM_RIDGE * float((at.aim**2).sum()) if self.aimed else 0.0)

    def slope_and_curvature(self, values: Floats) -> tuple[Floats, Floats]:
        """Compute the slope, and the expected curvature, of the penalised log-likelihood.

        The curvature is Σ_n Σ_c q_c · s_c s_cᵀ, where s_c is the slope of log q_c for sample n.
        """
        observed, at = self.observed, self.point(values)
        slope, curvature = np.zeros(self.size), np.zeros((self.size, self.size))
        if not self.rates and np.isneginf(at.level).all():
            return self._plain_slope_and_curvature(values, at, slope, curvature)
        inner = np.zeros((observed.classes - 1, observed.classes - 1, len(observed)))
        cross = np.zeros((observed.classes - 1, self.size - self.free, len(observed)))
        for label in range(observed.classes):
            seen, by_class, by_rate = self._scores(at, label)
            mass = observed.weights * np.exp(seen)
            own = observed.weights * (observed.labels == label)
            slope[: self.free] += (observed.design.T @ (by_class * own[:, None])).ravel()
            slope[self.free :] += own @ by_rate
            inner += np.einsum("ni,nj,n->ijn", by_class, by_class, mass)
            cross += np.einsum("ni,nk,n->ikn", by_class, by_rate, mass)
            curvature[self.free :, self.free :] += by_rate.T @ (by_rate * mass[:, None])
        self._add_blocks(curvature, inner)
        others = observed.classes - 1
        for i in range(others if self.rates else 0):
            rows = np.arange(self.columns) * others + i
            block = observed.design.T @ cross[i].T
            curvature[rows, self.free :] = block
            curvature[self.free :, rows] = block.T
        return self._with_penalty(values, at, slope, curvature)

    def _plain_slope_and_curvature(
        self, values: Floats, at: _Point, slope: Floats, curvature: Floats
    ) -> tuple[Floats, Floats]:
        """Do the same where no label is flipped, which takes less work."""
        observed = self.observed
        likely = np.exp(log_chances(observed.design @ at.weights))[:, 1:]
        own = np.equal.outer(observed.labels, np.arange(1, observed.classes))
        slope[: self.free] = (observed.design.T @ ((own - likely) * observed.weights[:, None])).ravel()
        inner = -np.einsum("ni,nj,n->ijn", likely, likely, observed.weights)
        for i in range(observed.classes - 1):
            inner[i, i] += likely[:, i] * observed.weights
        self._add_blocks(curvature, inner)
        return self._with_penalty(values, at, slope, curvature)

    def _add_blocks(self, curvature: Floats, inner: Floats) -> None:
        """Write the curvature by the weights, from that by the logits, (classes − 1, classes − 1, n)."""
        design, others = self.observed.design, len(inner)
        for i in range(others):
            rows = np.arange(self.columns) * others + i
            for j in range(i, others):
                columns = np.arange(self.columns) * others + j
                block = design.T @ (design * inner[i, j][:, None])
                curvature[np.ix_(rows, columns)] = block
                curvature[np.ix_(columns, rows)] = block.T

    def _with_penalty(
        self, values: Floats, at: _Point, slope: Floats, curvature: Floats
    ) -> tuple[Floats, Floats]:
        """Add what the ridges contribute."""
        diagonal = np.zeros(self.size)
        slope[: self.free] -= self.ridge * values[: self.free]
        diagonal[: self.free] = self.ridge
        ends = self.free, self.free + self.rates
        if self.rates:
            held = at.level - at.level.mean(axis=0)
            slope[ends[0] : ends[1]] -= self.tied @ (2 * SPREAD * held).ravel()
            diagonal[ends[0] : ends[1]] = 2 * SPREAD
        if self.aimed:
            slope[ends[1] :] -= self.tied @ (2 * AIM_RIDGE * at.aim).ravel()
            diagonal[ends[1] :] = 2 * AIM_RIDGE * self.tied.sum(axis=1)
        curvature[np.diag_indices(self.size)] += diagonal
        return slope, curvature

    def _scores(self, at: _Point, label: int) -> tuple[Floats, Floats, Floats]:
        """Compute log q of a label, and its slope by the logits and by the free rates, of each sample."""
        observed = self.observed
        joint, log_true, odds, flip = _log_joint(observed, at.weights, at.level, at.aim, label)
        seen = _log_sum(joint)
        posterior = np.exp(joint - seen[:, None])
        own = np.zeros(observed.classes)
        own[label] = 1.0
        pull, by_rate = posterior, np.zeros((len(observed), 0))
        if self.rates or at.aim.any():
            by_flip = posterior * (1.0 - own - expit(flip))  # of log q by the flip's log odds
            if at.aim.any():
                pull = posterior + by_flip * at.aim[observed.groups] / np.maximum(-np.expm1(log_true), 1e-12)
            by_rate = self._by_rate(by_flip)
            if self.aimed:
                by_rate = np.column_stack([by_rate, self._by_rate(by_flip * odds)])
        by_true = pull - np.exp(log_true) * pull.sum(axis=1, keepdims=True)
        return seen, by_true[:, 1:], by_rate

    def _by_rate(self, by_flip: Floats) -> Floats:
        """Sum the slopes by (group, class) into those by free rate, (n, rates)."""
        cells = self.tied.reshape(self.rates, *self.start.level.shape)  # rates, groups, classes
        return np.asarray(np.einsum("nc,nrc->nr", by_flip, cells[:, self.observed.groups].transpose(1, 0, 2)))


def _maximise(
    observed: Observed,
    start: FlipModel,
    *,
    ties: NDArray[np.int64] | None = None,
    aimed: bool = False,
    steps: int = MOST_STEPS,
) -> FlipModel:
    """Find the likeliest model by Fisher scoring with a line search."""
    problem = _Problem(observed, start, ties, aimed)
    values = problem.first()
    value = problem.value(values)
    damping, curvature = 0.0, np.eye(problem.size)
    for _ in range(steps):
        slope, curvature = problem.slope_and_curvature(values)
        free = _free(problem, values, slope)
        step = np.zeros(problem.size)
        step[free] = _solve(curvature[np.ix_(free, free)], slope[free], damping)
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
        at.weights, at.level, at.aim, problem.likelihood(values), rates, covariance, None if ties is None else ties
    )


def _free(problem: _Problem, values: Floats, slope: Floats) -> NDArray[np.int64]:
    """Return the parameters that are not held at a bound by the slope."""
    lowest, highest = np.full(problem.size, -np.inf), np.full(problem.size, np.inf)
    ends = problem.free, problem.free + problem.rates
    lowest[ends[0] : ends[1]], highest[ends[0] : ends[1]] = LEVELS
    lowest[ends[1] :], highest[ends[1] :] = AIMS
    held = ((values <= lowest) & (slope < 0)) | ((values >= highest) & (slope > 0))
    return np.flatnonzero(~held)


def _solve(curvature: Floats, slope: Floats, damping: float) -> Floats:
    """Solve for a step; more damping where the curvature is singular."""
    diagonal = np.diag_indices_from(curvature)
    scale = curvature[diagonal].copy()
    for extra in (damping, max(damping, 1e-8), 1e-4, 1e-2):
        curvature[diagonal] = scale * (1 + extra) + 1e-10
        try:
            return np.asarray(cho_solve(cho_factor(curvature, lower=True), slope))
        except LinAlgError:
            continue
    return np.asarray(slope / np.maximum(scale, 1e-8))


def _rate_covariance(curvature: Floats, free: int) -> Floats:
    """Return the covariance of the rates: the inverse of the curvature, after the weights adapt."""
    inner, cross, own = curvature[:free, :free], curvature[:free, free:], curvature[free:, free:]
    explained = cross.T @ np.stack([_solve(inner.copy(), column, 0.0) for column in cross.T], axis=1)
    return np.asarray(np.linalg.pinv(own - explained + 1e-9 * np.eye(len(own)), hermitian=True))


def log_chances(logits: Floats) -> Floats:
    """Compute the logarithm of the softmax of each row; two columns take a shorter way."""
    if logits.shape[1] != 2:
        return np.asarray(log_softmax(logits, axis=1))
    difference = logits[:, 1] - logits[:, 0]
    return np.column_stack([log_expit(-difference), log_expit(difference)])


def _log_sum(joint: Floats) -> Floats:
    """Compute the logarithm of the sum of exponentials of each row."""
    if joint.shape[1] != 2:
        return np.asarray(logsumexp(joint, axis=1))
    return np.asarray(np.logaddexp(joint[:, 0], joint[:, 1]))


def _one_hot(codes: NDArray[np.int64]) -> Floats:
    """Build a table (number of codes, length): 1 where a place has the code."""
    found, places = np.unique(codes, return_inverse=True)
    return np.equal.outer(np.arange(len(found)), places.reshape(-1)).astype(np.float64)
