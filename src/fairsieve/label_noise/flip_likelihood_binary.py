"""The likelihood of a model of wrong labels for two classes, in a shorter way.

With two classes a label is one coin whose chance q of heads follows from the true class's chance p₁ = σ(m) and the
rates ρ: q = p₁·(1 − ρ₁) + p₀·ρ₀. So the slope by any parameter is (label − q) / (q·(1 − q)) times that of q, and the
expected curvature is Σ ∇q ∇qᵀ / (q·(1 − q)): no logarithms, and one pass over the samples.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, log_expit

from fairsieve.label_noise.flip_likelihood import FlipLikelihood, FlipParameters, Observed

__all__ = ["new_likelihood"]

Floats = NDArray[np.float64]

TINIEST = 1e-150  # of a chance: a trial step may go so far that a label has none


class _Coins(NamedTuple):
    """Chances of each sample, at one point."""

    at: FlipParameters
    logits: Floats  # m
    first: Floats  # p₀
    second: Floats  # p₁
    first_rate: Floats  # ρ₀
    second_rate: Floats  # ρ₁
    tails: Floats  # 1 − q
    heads: Floats  # q


class _BinaryFlipLikelihood(FlipLikelihood):
    """The same as :class:`FlipLikelihood`, for two classes."""

    def __init__(
        self, observed: Observed, start: FlipParameters, ties: NDArray[np.int64] | None, aimed: bool
    ) -> None:
        super().__init__(observed, start, ties, aimed)
        self._is_second = observed.labels == 1
        cells = self.tied.reshape(self.rates, observed.group_count, 2)
        self._tied = [cells[:, observed.groups, label].T for label in (0, 1)]
        self._last: tuple[Floats, _Coins] | None = None

    def likelihood(self, values: Floats) -> float:
        """Compute the log-likelihood alone."""
        if self._is_plain:
            return float(self.observed.weights @ log_expit(self._signed(values)))
        coins = self._coins(values)
        return float(self.observed.weights @ np.log(np.where(self._is_second, coins.heads, coins.tails)))

    def slope_and_curvature(self, values: Floats) -> tuple[Floats, Floats]:
        """Compute the slope, and the expected curvature, of the penalised log-likelihood."""
        observed, free = self.observed, self.free
        slope, curvature = np.zeros(self.size), np.zeros((self.size, self.size))
        if self._is_plain:
            logits = self.observed.design @ values[:free]
            second = expit(logits)
            slope[:free] = (observed.weights * (self._is_second - second)) @ observed.design
            curvature[:free, :free] = _gram(observed.design, observed.weights * second * (1 - second))
            return self._with_penalty(values, self.point(values), slope, curvature)
        coins = self._coins(values)
        by_logit, by_rate = self._slopes(coins)
        pull = observed.weights * np.where(self._is_second, 1 / coins.heads, -1 / coins.tails)
        mass = observed.weights / (coins.heads * coins.tails)
        slope[:free] = (pull * by_logit) @ observed.design
        slope[free:] = pull @ by_rate
        curvature[:free, :free] = _gram(observed.design, mass * by_logit**2)
        if self.rates:
            cross = observed.design.T @ (by_rate * (mass * by_logit)[:, None])
            curvature[:free, free:], curvature[free:, :free] = cross, cross.T
            curvature[free:, free:] = by_rate.T @ (by_rate * mass[:, None])
        return self._with_penalty(values, coins.at, slope, curvature)

    @property
    def _is_plain(self) -> bool:
        """Whether no label is flipped."""
        return not self.rates and bool(np.isneginf(self.start.level).all())

    def _signed(self, values: Floats) -> Floats:
        """Return the logit of each sample's own label."""
        logits = self.observed.design @ values[: self.free]
        return np.asarray(np.where(self._is_second, logits, -logits))

    def _coins(self, values: Floats) -> _Coins:
        """Compute the chances at a point; the last point's are kept."""
        if self._last is not None and self._last[0] is values:
            return self._last[1]
        at, groups = self.point(values), self.observed.groups
        logits = self.observed.design @ values[: self.free]
        level, aim = at.level[groups], at.aim[groups]
        second = expit(logits)
        first = expit(-logits)
        if aim.any():
            rates = expit(level[:, 0] - aim[:, 0] * logits), expit(level[:, 1] + aim[:, 1] * logits)
        else:
            table = expit(at.level)[groups]
            rates = table[:, 0], table[:, 1]
        tails = np.maximum(first * (1 - rates[0]) + second * rates[1], TINIEST)
        heads = np.maximum(second * (1 - rates[1]) + first * rates[0], TINIEST)
        coins = _Coins(at, logits, first, second, *rates, tails, heads)
        self._last = values, coins
        return coins

    def _slopes(self, coins: _Coins) -> tuple[Floats, Floats]:
        """Compute the slope of q by the logit and by the free rates, of each sample."""
        first = coins.first * coins.first_rate * (1 - coins.first_rate)
        second = -coins.second * coins.second_rate * (1 - coins.second_rate)
        by_logit = coins.first * coins.second * (1 - coins.first_rate - coins.second_rate)
        aim = coins.at.aim[self.observed.groups]
        if aim.any():
            by_logit += second * aim[:, 1] - first * aim[:, 0]
        by_rate = self._by_free_rate(first, second)
        if self.aimed:
            aimed = self._by_free_rate(-first * coins.logits, second * coins.logits)
            by_rate = np.column_stack([by_rate, aimed])
        return by_logit, by_rate

    def _by_free_rate(self, first: Floats, second: Floats) -> Floats:
        """Return slopes by the rates of both classes as slopes by the free rates, (n, rates)."""
        return first[:, None] * self._tied[0] + second[:, None] * self._tied[1]


def new_likelihood(
    observed: Observed, start: FlipParameters, ties: NDArray[np.int64] | None, aimed: bool
) -> FlipLikelihood:
    """Return the likelihood in its shortest form."""
    kind = _BinaryFlipLikelihood if observed.classes == 2 else FlipLikelihood
    return kind(observed, start, ties, aimed)


def _gram(design: Floats, weights: Floats) -> Floats:
    """Return ``designᵀ · diag(weights) · design``; a product with itself takes half the operations."""
    part = design * np.sqrt(weights)[:, None]
    return np.asarray(part.T @ part)
