"""A model of wrong labels: what is observed, given the features and the group.

The true class of a sample is softmax(x·W). A label of true class i in group z is flipped, to any
other class alike, with the chance

    ρ = σ(a(z, i) + b(z, i) · m),    m = log(p / (1 − p)), the log odds of the true class.

With b = 0 labels are wrong *at random*, at a rate of their own in each cell. With b > 0 they are wrong
where the class is surest, as an attacker aims them. Both are fitted by maximum likelihood; what is
known of the true labels is the shape of the softmax alone. Random flips bend it (probabilities level
off at 1 − ρ instead of 1), aimed ones turn it around, and that is how they show.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular
from scipy.optimize import minimize
from scipy.special import expit, log_expit, log_softmax, logsumexp

__all__ = ["FlipModel", "Observed", "design", "fit_flips", "fit_plain"]

Floats = NDArray[np.float64]

RIDGE = 1.0  # of the weights, as in scikit-learn's LogisticRegression
SPREAD = 0.125  # holds the cells of a class together where they say little themselves
AIM_RIDGE = 0.5
MOST_CURVED = 20  # columns; they make 210 products
LEVELS = (-8.0, 2.0)  # of a: rates from .0003 to .88
AIMS = (0.0, 8.0)


@dataclass(frozen=True, eq=False)
class Observed:
    """Design matrix, labels and groups of samples, as codes, and how much each weighs."""

    design: Floats
    labels: NDArray[np.int64]
    groups: NDArray[np.int64]
    classes: int
    group_count: int
    weights: Floats

    def __len__(self) -> int:
        return len(self.labels)

    def take(self, rows: NDArray[np.int64]) -> Observed:
        """Some of the samples."""
        return Observed(
            self.design[rows],
            self.labels[rows],
            self.groups[rows],
            self.classes,
            self.group_count,
            self.weights[rows],
        )


@dataclass(frozen=True, eq=False)
class FlipModel:
    """Weights of the true classes (columns, classes), and a and b of every (group, class)."""

    weights: Floats
    level: Floats
    aim: Floats
    log_likelihood: float
    rates: int = 0

    @property
    def parameters(self) -> int:
        """How many numbers were free."""
        return int(self.weights.shape[0] * (self.weights.shape[1] - 1)) + self.rates

    @property
    def criterion(self) -> float:
        """Akaike's: the likelier of two models is the one with less of it."""
        return 2 * (self.parameters - self.log_likelihood)

    @property
    def flip_rates(self) -> Floats:
        """Chance of a label of each (group, class) to be flipped, where the class is a toss-up."""
        return np.asarray(expit(self.level))

    def true_class(self, observed: Observed) -> Floats:
        """Probabilities of the true classes, given the features and the observed label."""
        joint = _joint_of(observed, self.weights, self.level, self.aim)[0]
        return np.asarray(np.exp(joint - logsumexp(joint, axis=1, keepdims=True)))

    def noise(self, observed: Observed) -> float:
        """Share of wrong labels."""
        own = self.true_class(observed)[np.arange(len(observed)), observed.labels]
        return 1 - float(np.average(own, weights=observed.weights))


def design(features: NDArray[np.floating], *, curved: bool) -> Floats:
    """Standardised features and a constant; with squares and products of the numeric ones if curved.

    Columns of two values have no curve, and their products would let a model learn the flips by
    heart, so they are left out of those.
    """
    X = _standardised(np.asarray(features, np.float64).reshape(len(features), -1))
    if curved:
        numeric = [column for column in X.T if len(np.unique(column)) > 2][:MOST_CURVED]
        products = [left * right for index, left in enumerate(numeric) for right in numeric[index:]]
        X = np.column_stack([X, _standardised(np.column_stack(products))]) if products else X
    return np.column_stack([X, np.ones(len(X))])


def _standardised(X: Floats) -> Floats:
    """Columns with mean 0 and deviation 1; constant ones are 0."""
    spread = X.std(axis=0)
    constant = spread <= 1e-12 * np.abs(X).max(axis=0, initial=1.0)
    scaled: Floats = (X - X.mean(axis=0)) / np.where(constant, np.inf, spread)
    return scaled


def fit_plain(observed: Observed) -> FlipModel:
    """All labels right: multinomial logistic regression."""
    shape = observed.group_count, observed.classes
    weights = np.zeros((observed.design.shape[1], observed.classes))
    never = np.full(shape, -np.inf)
    return _maximise(observed, FlipModel(weights, never, np.zeros(shape), 0.0))


def fit_flips(
    observed: Observed, start: FlipModel, *, aimed: bool = False, ties: NDArray[np.int64] | None = None
) -> FlipModel:
    """Labels wrong at random, or aimed; starting from another model's weights (and rates, if any)."""
    level, aim = start.level, start.aim
    if not np.isfinite(level).all():
        level, aim = np.full_like(level, -2.0), np.full_like(aim, 0.5 if aimed else 0.0)
    if ties is None:
        ties = np.arange(level.size).reshape(level.shape)
    return _maximise(observed, FlipModel(start.weights, level, aim, 0.0), ties=ties, aimed=aimed)


def _joint_of(
    observed: Observed, weights: Floats, level: Floats, aim: Floats
) -> tuple[Floats, Floats, Floats, Floats]:
    """log P(true class, observed label), log P(true class), its log odds m, and the flip's log odds."""
    log_true = log_softmax(observed.design @ weights, axis=1)
    odds = log_true - np.log(-np.expm1(np.minimum(log_true, -1e-12)))
    flip = level[observed.groups] + aim[observed.groups] * odds
    transfer = log_expit(flip) - np.log(max(observed.classes - 1, 1))
    rows = np.arange(len(observed))
    transfer[rows, observed.labels] = log_expit(-flip[rows, observed.labels])
    return log_true + transfer, log_true, odds, flip


def _maximise(
    observed: Observed, start: FlipModel, *, ties: NDArray[np.int64] | None = None, aimed: bool = False
) -> FlipModel:
    """The likeliest model, by L-BFGS in coordinates in which it is about equally curved all around.

    ``ties`` numbers the rates of (group, class): those of one number are one rate. None leaves the
    rates as they are.
    """
    shape, size = start.weights.shape, start.weights.size
    likely = np.exp(log_softmax(observed.design @ start.weights, axis=1))
    curvature = observed.weights * (likely * (1 - likely)).mean(axis=1)
    gram = observed.design.T @ (observed.design * curvature[:, None])
    factor = np.linalg.cholesky(gram + RIDGE * np.eye(shape[0]))
    tied = np.zeros((0, start.level.size)) if ties is None else _one_hot(ties.ravel())
    rates = len(tied)

    def parts(values: Floats) -> tuple[Floats, Floats, Floats]:
        weights = solve_triangular(factor.T, values[:size].reshape(shape), lower=False)
        level, aim = start.level, start.aim
        if rates:
            level = (values[size : size + rates] @ tied).reshape(level.shape)
        if aimed:
            aim = (values[size + rates :] @ tied).reshape(aim.shape)
        return weights, level, aim

    def negative(values: Floats) -> tuple[float, Floats]:
        weights, level, aim = parts(values)
        likelihood, (by_weights, by_level, by_aim) = _slope_of(observed, weights, level, aim)
        ridge = weights.copy()
        ridge[-1] = 0.0  # the constant is free
        held = level - level.mean(axis=0) if rates else np.zeros_like(level)
        cost = RIDGE * (ridge**2).sum() / 2 + SPREAD * (held**2).sum() + AIM_RIDGE * (aim**2).sum()
        gradient = [
            solve_triangular(factor, RIDGE * ridge - by_weights, lower=True).ravel(),
            tied @ (2 * SPREAD * held - by_level).ravel(),
            tied @ (2 * AIM_RIDGE * aim - by_aim).ravel() if aimed else np.zeros(0),
        ]
        return cost - likelihood, np.concatenate(gradient)

    shares = tied / np.maximum(tied.sum(axis=1, keepdims=True), 1.0)
    first = [
        (factor.T @ start.weights).ravel(),
        shares @ start.level.ravel() if rates else np.zeros(0),
        shares @ start.aim.ravel() if aimed else np.zeros(0),
    ]
    free: list[tuple[float | None, float | None]] = [(None, None)]
    found = minimize(
        negative,
        np.concatenate(first),
        jac=True,
        method="L-BFGS-B",
        bounds=free * size + [LEVELS] * rates + [AIMS] * (rates if aimed else 0),
        options={"maxiter": 300, "maxcor": 20, "ftol": 1e-7},
    )
    weights, level, aim = parts(found.x)
    likelihood = _slope_of(observed, weights, level, aim)[0]
    return FlipModel(weights, level, aim, likelihood, rates * (2 if aimed else 1))


def _one_hot(codes: NDArray[np.int64]) -> Floats:
    """(number of codes, length): 1 where a place has the code."""
    found, places = np.unique(codes, return_inverse=True)
    return np.equal.outer(np.arange(len(found)), places.reshape(-1)).astype(np.float64)


def _slope_of(
    observed: Observed, weights: Floats, level: Floats, aim: Floats
) -> tuple[float, tuple[Floats, Floats, Floats]]:
    """The log-likelihood and its derivatives by the weights, a and b."""
    joint, log_true, odds, flip = _joint_of(observed, weights, level, aim)
    seen = logsumexp(joint, axis=1)
    posterior = np.exp(joint - seen[:, None]) * observed.weights[:, None]
    own = np.zeros_like(flip)
    own[np.arange(len(observed)), observed.labels] = 1.0
    by_flip = posterior * (1.0 - own - expit(flip))  # of log P by the flip's log odds
    rate = aim[observed.groups]
    pull = posterior + by_flip * rate / np.maximum(-np.expm1(log_true), 1e-12)
    by_true = pull - np.exp(log_true) * pull.sum(axis=1, keepdims=True)
    sums = np.zeros((2, *level.shape))
    for group in range(observed.group_count):
        members = observed.groups == group
        sums[0, group] = by_flip[members].sum(axis=0)
        sums[1, group] = (by_flip[members] * odds[members]).sum(axis=0)
    return float(observed.weights @ seen), (observed.design.T @ by_true, sums[0], sums[1])
