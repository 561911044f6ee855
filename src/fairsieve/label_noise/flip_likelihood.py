"""The likelihood of a model of wrong labels, its slope, and its expected curvature.

The formula is in :mod:`~fairsieve.label_noise.flip_model`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, log_expit, log_softmax, logsumexp

__all__ = [
    "AIMS",
    "LEVELS",
    "FlipLikelihood",
    "FlipParameters",
    "Observed",
    "log_chances",
    "log_joint",
    "log_sum",
    "one_hot",
]

Floats = NDArray[np.float64]

RIDGE = 1.0  # of the weights, as in scikit-learn's LogisticRegression
SPREAD = 0.125  # pulls the rates of a class together where their cells say little
AIM_RIDGE = 0.5
LEVELS = (-8.0, 2.0)  # of a: rates from .0003 to .88
AIMS = (0.0, 8.0)


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


def log_joint(
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
class FlipParameters:
    """Weights of the true classes (columns, classes), and a and b of every (group, class)."""

    weights: Floats
    level: Floats
    aim: Floats


class FlipLikelihood:
    """The penalised log-likelihood of one fit, its slope and its expected curvature."""

    def __init__(
        self,
        observed: Observed,
        start: FlipParameters,
        ties: NDArray[np.int64] | None,
        aimed: bool,
    ) -> None:
        self.observed, self.start, self.aimed = observed, start, aimed
        self.tied = np.zeros((0, start.level.size)) if ties is None else one_hot(ties.ravel())
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

    def point(self, values: Floats) -> FlipParameters:
        """Unpack the parameters."""
        rest = values[: self.free].reshape(self.columns, -1)
        weights = np.column_stack([np.zeros(self.columns), rest])
        level, aim = self.start.level, self.start.aim
        if self.rates:
            level = (values[self.free : self.free + self.rates] @ self.tied).reshape(level.shape)
        if self.aimed:
            aim = (values[self.free + self.rates :] @ self.tied).reshape(aim.shape)
        return FlipParameters(weights, level, aim)

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
        joint = log_joint(observed, at.weights, at.level, at.aim)[0]
        return float(observed.weights @ log_sum(joint))

    def value(self, values: Floats) -> float:
        """Compute the penalised log-likelihood."""
        return self.likelihood(values) - self.penalty(values)

    def penalty(self, values: Floats) -> float:
        cost = float(self.ridge @ values[: self.free] ** 2) / 2
        if not self.rates:
            return cost
        at = self.point(values)
        cost += SPREAD * float(((at.level - at.level.mean(axis=0)) ** 2).sum())
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
        self, values: Floats, at: FlipParameters, slope: Floats, curvature: Floats
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
        self, values: Floats, at: FlipParameters, slope: Floats, curvature: Floats
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
        curvature.flat[:: self.size + 1] += diagonal
        return slope, curvature

    def _scores(self, at: FlipParameters, label: int) -> tuple[Floats, Floats, Floats]:
        """Compute log q of a label, and its slope by the logits and by the free rates, of each sample."""
        observed = self.observed
        joint, log_true, odds, flip = log_joint(observed, at.weights, at.level, at.aim, label)
        seen = log_sum(joint)
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


def log_chances(logits: Floats) -> Floats:
    """Compute the logarithm of the softmax of each row; two columns take a shorter way."""
    if logits.shape[1] != 2:
        return np.asarray(log_softmax(logits, axis=1))
    difference = logits[:, 1] - logits[:, 0]
    return np.column_stack([log_expit(-difference), log_expit(difference)])


def log_sum(joint: Floats) -> Floats:
    """Compute the logarithm of the sum of exponentials of each row."""
    if joint.shape[1] != 2:
        return np.asarray(logsumexp(joint, axis=1))
    return np.asarray(np.logaddexp(joint[:, 0], joint[:, 1]))


def one_hot(codes: NDArray[np.int64]) -> Floats:
    """Build a table (number of codes, length): 1 where a place has the code."""
    found, places = np.unique(codes, return_inverse=True)
    return np.equal.outer(np.arange(len(found)), places.reshape(-1)).astype(np.float64)
