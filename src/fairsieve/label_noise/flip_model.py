"""Model how labels went wrong: the observed label, given the features and the group.

The true class of a sample is softmax(x·W). A label of true class i in group z is flipped, to any other class
alike, with the chance

    ρ = σ(a(z, i) + b(z, i) · m),    m = log(p / (1 − p)), the log odds of the true class.

With b = 0 labels are wrong *at random*, at a rate of their own in each cell. With b > 0 they are wrong where
the class is surest, as an attacker aims them. Both are fitted by maximum likelihood. The only thing known about
the true labels is the shape of the softmax: random flips make it level off at 1 − ρ instead of 1, aimed flips
turn it around.

Labels wrong at random turn true classes into observed ones by a table of each group, T(z), whose row i holds the
chances of each label for a sample of true class i. Whatever is counted over observed labels then follows for the true
ones from the inverse of that table, with no model in between.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from scipy.linalg.lapack import dposv
from scipy.optimize import minimize
from scipy.special import expit, softmax

from fairsieve.selection.cells import Codes, Flags, Floats

RIDGE = 1.0  # of the weights, as in scikit-learn's LogisticRegression
AIM_RIDGE = 1.0
LEVELS = (-8.0, 2.0)  # of a: rates from .0003 to .88
AIMS = (0.0, 8.0)
CLOSE = 0.02  # the expected gain in log-likelihood at which a plain fit stops
TOLERANCE = 1e-7  # of the log-likelihood, relative, at which other fits stop
MOST_STEPS = 100
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

    @cached_property
    def own(self) -> Flags:
        """Whether each class is the label, (classes, n)."""
        return np.equal.outer(np.arange(self.classes), self.labels)

    @cached_property
    def members(self) -> Floats:
        """The weight of each sample in each group, (groups, n)."""
        return np.equal.outer(np.arange(self.group_count), self.groups) * self.weights

    def by_group(self, table: Floats) -> Floats:
        """Return for each sample the entries of its group, (classes, n), of a table of shape (groups, classes)."""
        return np.asarray(table.T.take(self.groups, axis=1))  # many times as fast as an index

    def take(self, rows: Codes | Flags | slice) -> Observed:
        """Return some of the samples."""
        labels, groups, weights = self.labels[rows], self.groups[rows], self.weights[rows]
        return Observed(self.design[rows], labels, groups, self.classes, self.group_count, weights)


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
    ties : integer array of shape (groups, classes)
        Which free rate each cell has, in a model of flips; cells with the same number share one.
    """

    weights: Floats
    level: Floats
    aim: Floats
    log_likelihood: float = 0.0
    ties: Codes = field(default_factory=lambda: np.zeros((0, 0), np.int64))

    @property
    def flip_rates(self) -> Floats:
        """The chance of a label of each (group, class) to be flipped, where the class is a toss-up."""
        return np.asarray(expit(self.level))

    def true_class(self, observed: Observed) -> Floats:
        """Compute the probabilities of the true classes, given the features and the observed label."""
        joint = _joint(self, observed)[-1]
        return np.ascontiguousarray((joint / joint.sum(axis=0)).T)

    def losses(self, observed: Observed) -> Floats:
        """Compute minus the log-likelihood of each sample's label, not weighted."""
        return np.asarray(-np.log(_joint(self, observed)[-1].sum(axis=0)))

    def noise(self, observed: Observed) -> tuple[float, float]:
        """Compute the share of labels wrong at random, Σ share(z, i) · ρ(z, i), and its standard error."""
        shares = observed.members @ probabilities(observed.design @ self.weights) / observed.weights.sum()
        share = float((shares * self.flip_rates).sum())
        slope = np.bincount(self.ties.ravel(), (shares * self.flip_rates * (1 - self.flip_rates)).ravel())
        return share, max(float(slope @ self.covariance(observed) @ slope), 0.0) ** 0.5

    def covariance(self, observed: Observed) -> Floats:
        """Compute the covariance of the free rates' logits, from the information in the labels."""
        return self._inform(observed)[0]

    def influence(self, observed: Observed) -> Floats:
        """Compute by how much each sample moves the free rates' logits, (n, rates), for each unit of its weight."""
        return self._inform(observed)[1]

    def _inform(self, observed: Observed) -> tuple[Floats, Floats]:
        _, by_logit, by_level, _ = _scores(self, observed, aimed=False)
        tied = np.equal.outer(np.arange(self.ties.max() + 1), self.ties)[:, observed.groups]
        parts = [observed.design * each[:, None] for each in by_logit]
        scores = np.column_stack([*parts, np.einsum("cn,rnc->nr", by_level, tied)])  # r: rates
        information = scores.T @ (scores * observed.weights[:, None]) + 1e-6 * np.eye(scores.shape[1])
        rates = np.linalg.pinv(information, hermitian=True)[-len(tied) :]
        return np.asarray(rates[:, -len(tied) :]), np.asarray(scores @ rates.T)


def fit_plain(observed: Observed, start: Floats | None = None) -> FlipModel:
    """Fit multinomial logistic regression by Newton's method: all labels are right.

    ``start`` are weights to begin with.
    """
    weights = np.zeros((observed.design.shape[1], observed.classes - 1)) if start is None else start
    ridge = _ridge(observed).ravel()

    def value_at(flat: Floats) -> float:
        losses = log_losses(observed.design @ flat.reshape(weights.shape), observed.labels)
        return -float(observed.weights @ losses) - float(ridge @ flat**2) / 2

    def derivatives_at(flat: Floats) -> tuple[Floats, Floats]:
        slope, curvature = _slope_and_curvature(observed, flat.reshape(weights.shape))
        return slope - ridge * flat, curvature + np.diag(ridge)

    flat, value = climb(value_at, derivatives_at, weights.ravel(), CLOSE)
    shape = observed.group_count, observed.classes
    likelihood = value + float(ridge @ flat**2) / 2
    return FlipModel(flat.reshape(weights.shape), np.full(shape, -np.inf), np.zeros(shape), likelihood)


def climb(
    value_at: Callable[[Floats], float],
    derivatives_at: Callable[[Floats], tuple[Floats, Floats]],
    start: Floats,
    close: float,
) -> tuple[Floats, float]:
    """Maximise by Newton's method, with shorter steps until the value rises; return where, and the value.

    It ends where a step promises less than ``close``. ``derivatives_at`` returns the slope and the negative curvature.
    """
    found, value = start, value_at(start)
    for _ in range(MOST_STEPS):
        slope, curvature = derivatives_at(found)
        step = _solve(curvature, slope)
        if slope @ step < close:
            break
        for length in (1.0, 0.25, 0.06, 0.015):
            trial = found + length * step
            reached = value_at(trial)
            if reached > value:
                break
        else:
            break
        found, value = trial, reached
    return found, value


def fit_left_out(observed: Observed, model: FlipModel, folds: Codes) -> Floats:
    """Compute the logits of each fold by plain models that did not see it, (n, classes − 1).

    Each is one step of Newton's method away from the model of all samples, so all folds together take the work of one
    step.
    """
    ridge, left_out = _ridge(observed), [folds == fold for fold in range(int(folds.max(initial=0)) + 1)]
    parts = [_slope_and_curvature(observed.take(own), model.weights) for own in left_out]
    slope = sum(part[0] for part in parts) - (ridge * model.weights).ravel()
    curvature = sum(part[1] for part in parts) + np.diag(ridge.ravel())
    found = np.empty((len(observed), observed.classes - 1))
    for own, (its_slope, its_curvature) in zip(left_out, parts, strict=True):
        step = _solve(curvature - its_curvature, slope - its_slope).reshape(model.weights.shape)
        found[own] = observed.design[own] @ (model.weights + step)
    return found


def fit_flips(
    observed: Observed,
    start: FlipModel,
    ties: Codes,
    *,
    aimed: bool = False,
    steps: int = MOST_STEPS,
    known: bool = False,
) -> FlipModel:
    """Fit labels wrong at random, or aimed, starting from another model's weights and rates.

    ``ties`` numbers the rates of (group, class) from 0: cells with the same number share a rate. Where rates are
    ``known``, they stay those of ``start``.
    """
    size, rates, counts = start.weights.size, int(ties.max()) + 1, np.bincount(ties.ravel())
    # Near a rate of 0 the slope is too small to leave it.
    level = start.level if known else np.where(start.level > -4.0, start.level, -2.0)
    aim = np.where(start.aim > 0, start.aim, 0.5) if aimed else np.zeros_like(level)
    tables = [np.bincount(ties.ravel(), table.ravel()) / counts for table in (level, aim)[: 1 + aimed]]
    ridge = np.concatenate([_ridge(observed).ravel(), np.zeros(rates), np.full(rates * aimed, AIM_RIDGE)])

    levels = [(level, level) for level in tables[0].tolist()] if known else [LEVELS] * rates

    def model_at(values: Floats) -> FlipModel:
        by_cell = [part[ties] for part in np.split(values[size:], 1 + aimed)]
        return FlipModel(values[:size].reshape(start.weights.shape), *(by_cell if aimed else [*by_cell, aim]))

    def cost(values: Floats) -> tuple[float, Floats]:
        model = model_at(values)
        likelihood, by_weight, *by_cell = _slopes(model, observed, aimed)
        by_rate = [np.bincount(ties.ravel(), each.ravel()) for each in by_cell[: 1 + aimed]]
        slope = np.concatenate([by_weight.ravel(), *by_rate])
        return float(ridge @ values**2) / 2 - likelihood, ridge * values - slope

    found = minimize(
        cost,
        np.concatenate([start.weights.ravel(), *tables]),
        jac=True,
        method="L-BFGS-B",
        bounds=[(None, None)] * size + levels + [AIMS] * (rates * aimed),
        options={"maxiter": steps, "ftol": TOLERANCE},
    )
    model = model_at(found.x)
    return replace(model, log_likelihood=float(ridge @ found.x**2) / 2 - float(found.fun), ties=ties)


def probabilities(logits: Floats) -> Floats:
    """Compute the probabilities of the classes from logits against the first, (n, classes)."""
    return np.ascontiguousarray(class_chances(logits).T)


def class_chances(logits: Floats) -> Floats:
    """Compute the same as (classes, n): sums over a few classes are slow where these come last."""
    if logits.shape[1] != 1:
        return np.ascontiguousarray(softmax(np.column_stack([np.zeros(len(logits)), logits]), axis=1).T)
    scores = logits[:, 0]
    small = np.exp(-np.abs(scores))  # several times as fast as SciPy's expit
    chances = np.where(scores > 0, [small, np.ones_like(small)], [np.ones_like(small), small])
    return np.asarray(chances / (1.0 + small))


def log_losses(logits: Floats, labels: Codes) -> Floats:
    """Compute the log loss of each label, from logits against the first class."""
    if logits.shape[1] == 1:
        against = np.where(labels == 1, -logits[:, 0], logits[:, 0])
        return np.asarray(np.maximum(against, 0.0) + np.log1p(np.exp(-np.abs(against))))
    return -np.log(np.maximum(probabilities(logits)[np.arange(len(labels)), labels], TINIEST))


def transitions(flip_rates: Floats) -> Floats:
    """Build T, (…, groups, true classes, labels), from the flip rates, (…, classes, groups); to any other class alike.

    Rates are bounded so that the table can be inverted.

    >>> transitions(np.array([[0.1], [0.2]])).round(2).tolist()
    [[[0.9, 0.1], [0.2, 0.8]]]
    """
    classes = flip_rates.shape[-2]
    others = max(classes - 1, 1)
    rates = np.clip(flip_rates, 0.0, 0.9 * others / (others + 1)).swapaxes(-1, -2)
    table = np.repeat((rates / others)[..., None], classes, axis=-1)
    table[..., np.arange(classes), np.arange(classes)] = 1.0 - rates
    return np.asarray(table)


def true_sums(observed: Floats, table: Floats) -> Floats:
    """Compute sums by true class and group, (classes, groups, …), from those by observed label.

    >>> true_sums(np.array([[11.0], [9.0]]), transitions(np.array([[0.1], [0.2]]))).round(9).tolist()
    [[10.0], [10.0]]
    """
    inverse = np.linalg.inv(table)  # observed = Tᵀ · true
    return np.asarray(np.maximum(np.einsum("zji,jz...->iz...", inverse, observed), 0.0))


def _joint(model: FlipModel, observed: Observed) -> tuple[Floats, Floats, Flags, Floats]:
    """Compute the chance of each class to be true, of a flip if it is, whether it is the label, and of both.

    Each is of shape (classes, n).
    """
    chances, own = class_chances(observed.design @ model.weights), observed.own
    if model.aim.any():
        level, aim = (observed.by_group(each) for each in (model.level, model.aim))
        rates = expit(level + aim * _log_odds(chances))
    else:
        rates = observed.by_group(model.flip_rates)
    transfer = np.where(own, 1 - rates, rates / max(observed.classes - 1, 1))
    return chances, rates, own, np.maximum(chances * transfer, TINIEST)


def _log_odds(chances: Floats) -> Floats:
    return np.log(np.maximum(chances, 1e-12)) - np.log(np.maximum(1 - chances, 1e-12))


def _slopes(model: FlipModel, observed: Observed, aimed: bool) -> tuple[float, Floats, Floats, Floats]:
    """Compute the log-likelihood and its slopes by the weights, and by a and b of every (group, class)."""
    seen, by_logit, by_level, by_aim = _scores(model, observed, aimed)
    likelihood = float(observed.weights @ np.log(seen))
    by_weight = ((by_logit * observed.weights) @ observed.design).T
    return likelihood, by_weight, observed.members @ by_level.T, observed.members @ by_aim.T


def _scores(model: FlipModel, observed: Observed, aimed: bool) -> tuple[Floats, Floats, Floats, Floats]:
    """Compute the chance of each sample's label, and the slopes of its logarithm by the logits, a and b."""
    chances, rates, own, joint = _joint(model, observed)
    seen = joint.sum(axis=0)
    posterior = joint / seen
    by_level, by_logit = posterior * (~own - rates), posterior - chances
    by_aim = np.zeros_like(by_level)
    if aimed:
        pull = by_level * observed.by_group(model.aim) / np.maximum(1 - chances, 1e-12)
        by_logit += pull - chances * pull.sum(axis=0)
        by_aim = by_level * _log_odds(chances)
    return seen, by_logit[1:], by_level, by_aim


def _slope_and_curvature(observed: Observed, weights: Floats) -> tuple[Floats, Floats]:
    """Compute the slope of the plain log-likelihood by the weights, and its curvature."""
    design, others = observed.design, observed.classes - 1
    chances, own = class_chances(design @ weights)[1:], observed.own[1:]
    slope = (((own - chances) * observed.weights) @ design).T.ravel()
    curvature = np.empty((len(slope), len(slope)))
    for i in range(others):
        for j in range(i + 1):
            mass = observed.weights * chances[i] * ((i == j) - chances[j])
            if i == j:  # a product with itself takes half the operations
                part = design * np.sqrt(mass)[:, None]
                curvature[i::others, i::others] = part.T @ part
            else:
                block = design.T @ (design * mass[:, None])
                curvature[i::others, j::others] = curvature[j::others, i::others] = block
    return slope, curvature


def _ridge(observed: Observed) -> Floats:
    """Return how firmly each weight is held at 0; the last column, the constant, is free."""
    ridge = np.full((observed.design.shape[1], observed.classes - 1), RIDGE)
    ridge[-1] = 1e-8
    return ridge


def _solve(curvature: Floats, slope: Floats) -> Floats:
    """Solve for a step; with damping where the curvature is singular."""
    scale = curvature.diagonal().copy()
    for damping in (0.0, 1e-8, 1e-4, 1e-2):
        curvature.flat[:: len(scale) + 1] = scale * (1 + damping) + 1e-10
        # LAPACK itself: scipy's own functions take longer than the work
        _, step, failed = dposv(curvature, slope, lower=True)
        if not failed and np.isfinite(step).all():
            return np.asarray(step)
    return slope / np.maximum(scale, 1e-8)
