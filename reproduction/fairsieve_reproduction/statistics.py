"""Paired comparisons of methods on the same draws or splits: gains, tests, and what they say."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from fairsieve.benchmark.summary import standard_error
from fairsieve_reproduction.experiments import Experiment, Results

LEVEL = 0.05  # of a claim's tests together
MARGIN = 0.01  # "at least as", "similar", "comparable"; a gain below it is no gain, a loss below it no loss
# How much better a method is claimed to be: by more than this, or at most so much worse.
BEYOND = {"": 0.0, "much": 0.03, "margin": -MARGIN, "same": -MARGIN}  # "much", "far", "very", "noticeably"


@dataclass(frozen=True)
class Pairing:
    """One method against another by one measure, and by how much the first is claimed to be better.

    Attributes
    ----------
    one, other : Experiment
    measure : str
        ``accuracy`` (more is better) or a disparity (less is better).
    beyond : float
        The claim is that ``one`` is better by more than this; below 0, that it is at most so much worse.
    equivalent : bool
        The claim is that they differ by at most −``beyond``, either way.
    ranked : bool
        The claim is that ``one`` is the best: the smallest gain is enough.
    strict : bool
        Whether the smallest loss speaks against the claim, as by the rules before.
    """

    one: Experiment
    other: Experiment
    measure: str
    beyond: float = 0.0
    equivalent: bool = False
    ranked: bool = False
    strict: bool = False

    @property
    def worst(self) -> float:
        """The gain below which a comparison speaks against the claim."""
        return self.beyond if self.beyond < 0 or self.strict else self.beyond - MARGIN

    @property
    def claims_size(self) -> bool:
        """Whether a gain below .01 is too small for the claim."""
        return self.beyond >= 0 and not self.ranked

    def gains(self, results: Results) -> NDArray[np.float64]:
        """Compute how much better ``one`` is, draw by draw; NaN for draws that either lacks."""
        mine, theirs = (results.values(each, self.measure) for each in (self.one, self.other))
        paired = min(len(mine), len(theirs))
        gains = mine[:paired] - theirs[:paired]
        return gains if self.measure == "accuracy" else -gains


@dataclass(frozen=True)
class Gain:
    """How much better one method is than another: the means, the mean difference with its interval, and the test.

    ``p`` is two-sided, of the hypothesis that the mean difference is the pairing's ``beyond``; where the claim is
    equivalence, the larger one of both bounds' one-sided tests. ``floor`` is the error that infinitely many splits of
    the same rows would leave.
    """

    pairing: Pairing
    one: float
    other: float
    mean: float
    error: float
    freedom: float
    n: int
    floor: float = 0.0

    @property
    def half(self) -> float:
        """Half of the width of the 95 % interval."""
        return float(stats.t.ppf(0.975, self.freedom)) * self.error if self.n > 1 else np.nan

    @property
    def p(self) -> float:
        """The p-value; 1 for a single draw."""
        if self.pairing.equivalent and self.n > 1:
            inside = -self.pairing.beyond - abs(self.mean)
            return self._tail(inside) if inside > 0 else min(1.0, 2 * self._tail(-inside))
        return self.p_that(self.pairing.beyond)

    @property
    def p_against(self) -> float:
        """The p-value of the test by which the comparison speaks against the claim."""
        return self.p if self.pairing.equivalent else self.p_that(self.pairing.worst)

    def p_that(self, gain: float) -> float:
        """Return the two-sided p-value of the hypothesis that the mean difference is ``gain``; 1 for one draw."""
        return min(1.0, 2 * self._tail(abs(self.mean - gain))) if self.n > 1 else 1.0

    def _tail(self, distance: float) -> float:
        if self.error == 0:
            return 0.0 if distance > 0 else 1.0
        return float(stats.t.sf(distance / self.error, self.freedom))

    @property
    def speaks_for(self) -> bool:
        """Whether the mean is on the claim's side."""
        if self.pairing.equivalent:
            return abs(self.mean) < -self.pairing.beyond
        return self.mean > self.pairing.beyond

    def needed(self, gain: float) -> float:
        """Return how many times as many draws or splits would tell the mean from ``gain`` at 5 %, were it this.

        It is infinite where splits of the same rows can never tell: their error does not go below ``floor``.
        """
        allowed = ((self.mean - gain) / 1.96) ** 2 - self.floor**2
        return (self.error**2 - self.floor**2) / allowed if self.n > 1 and allowed > 0 else np.inf


def _errors(values: NDArray[np.float64], experiment: Experiment, results: Results) -> tuple[float, float]:
    """Compute the standard error of a mean over draws or splits, and what infinitely many of them would leave of it."""
    if len(values) < 2:
        return np.nan, np.nan
    if experiment.data == "synthetic":
        return standard_error(values), 0.0
    rows = results.runs(experiment)[0]["rows"]
    ratio = rows["test"] / rows["train"]
    return standard_error(values, ratio), float(values.std(ddof=1) * np.sqrt(ratio))


def read_gain(pairing: Pairing, results: Results) -> Gain:
    """Compute the differences of a pairing, over the draws or splits that both methods have."""
    gains = pairing.gains(results)
    there = ~np.isnan(gains)
    n = int(there.sum())
    means = [float(results.values(each, pairing.measure)[: len(there)][there].mean()) if n else np.nan
             for each in (pairing.one, pairing.other)]  # fmt: skip
    mean = float(gains[there].mean()) if n else np.nan
    error, floor = _errors(gains[there], pairing.one, results)
    return Gain(pairing, means[0], means[1], mean, error, max(n - 1, 1), n, floor)


def pool(gains: Sequence[Gain], results: Results) -> Gain:
    """Average the gains of several comparisons, draw by draw, into one.

    Comparisons on one data set share its draws; data sets are independent of each other, so that their variances add
    up, with the degrees of freedom of Welch and Satterthwaite.
    """
    by_data: dict[str, list[Gain]] = {}
    for gain in gains:
        by_data.setdefault(gain.pairing.one.data, []).append(gain)
    mean = variance = squares = floor = 0.0
    fewest = 10**9
    for mine in by_data.values():
        rows = [gain.pairing.gains(results) for gain in mine]
        paired = min(map(len, rows))
        each = np.mean([row[:paired] for row in rows], axis=0)
        each, weight = each[~np.isnan(each)], len(mine) / len(gains)
        fewest = min(fewest, len(each))
        mean += weight * float(each.mean()) if len(each) else np.nan
        if len(each) > 1:
            own, least = ((weight * one) ** 2 for one in _errors(each, mine[0].pairing.one, results))
            variance, floor, squares = variance + own, floor + least, squares + own**2 / (len(each) - 1)
    freedom = variance**2 / squares if squares > 0 else max(fewest - 1, 1)
    error, floor = np.sqrt([variance, floor])
    return replace(gains[0], mean=mean, error=float(error), freedom=freedom, n=fewest, floor=float(floor))


def holm(p_values: Sequence[float]) -> list[float]:
    """Correct p-values for their number, by Holm's method.

    Examples
    --------
    >>> [round(p, 3) for p in holm([0.01, 0.04, 0.03])]
    [0.03, 0.06, 0.06]
    """
    order = np.argsort(p_values, kind="stable")
    corrected = np.arange(len(order), 0, -1) * np.asarray(p_values)[order]
    in_order = np.minimum(np.maximum.accumulate(corrected), 1.0)[np.argsort(order, kind="stable")]
    return [float(p) for p in in_order]


class Said(NamedTuple):
    """What a comparison says of a claim ("for", "against", "alike" or "open"), and the p-value that decides."""

    word: str
    p: float


def judge(gains: Sequence[Gain]) -> list[Said]:
    """Say of each comparison of a claim whether it speaks for it.

    For or against where a test, corrected for the number of comparisons, says so; alike where a gain is claimed and
    even the upper end of its interval is below .01 (to be the best claims no gain of some size); else open.
    """
    words = []
    ours, theirs = (holm(each) for each in ([gain.p for gain in gains], [gain.p_against for gain in gains]))
    for gain, p, p_against in zip(gains, ours, theirs, strict=True):
        pairing = gain.pairing
        is_behind = not gain.speaks_for if pairing.equivalent else gain.mean < pairing.worst
        if p < LEVEL and gain.speaks_for:
            words.append(Said("for", p))
        elif p_against < LEVEL and is_behind:
            words.append(Said("against", p_against))
        elif pairing.claims_size and gain.mean + gain.half < MARGIN:
            words.append(Said("alike", gain.p_that(MARGIN)))
        else:
            words.append(Said("open", min(p, p_against)))
    return words
