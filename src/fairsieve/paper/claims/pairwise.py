"""Pairs of experiments on the same draws: what the paper's claims are checked by."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from fairsieve.paper.methods.registry import METHODS
from fairsieve.paper.reproduce.experiments import Experiment, table_experiment
from fairsieve.paper.reproduce.published import Line, PaperColumn, paper_tables
from fairsieve.paper.reproduce.results import Results
from fairsieve.paper.reproduce.titles import FLIPS, TITLES, line_title
from fairsieve.selection.fairness import ABBREVIATIONS

__all__ = [
    "ALIKE",
    "LEVEL",
    "OUTCOMES",
    "Gain",
    "Outcome",
    "Pairing",
    "Word",
    "holm",
    "judge",
    "make_pairings",
    "most_speak_for",
    "none_speaks_against",
    "on_the_whole",
    "pool",
    "printed_value",
    "read_gain",
]

Outcome = bool | None
OUTCOMES: dict[Outcome, str] = {True: "holds", False: "does not hold", None: "inconclusive"}
Word = Literal["better", "worse", "alike", "open"]

LEVEL = 0.05  # of a claim's tests together
ALIKE = 0.01  # a method that is better by less is no better


@dataclass(frozen=True)
class Pairing:
    """One method against another, by one measure.

    Attributes
    ----------
    one, other : Experiment
        ``one`` is claimed to do better.
    measure : str
        ``accuracy`` (more is better), a disparity or ``cpu_seconds`` (less is better).
    slack : float
        How much worse ``one`` may be and still count as no worse: "similar", "comparable".
    """

    one: Experiment
    other: Experiment
    measure: str
    slack: float = 0.0

    @property
    def fairness(self) -> str:
        """The notion of fairness that is asked for, of whichever method knows one."""
        plain = METHODS[self.one.method].family in ("plain", "robust")
        return self.measure if self.measure in ABBREVIATIONS else (self.other if plain else self.one).fairness

    @property
    def experiments(self) -> tuple[Experiment, Experiment]:
        """Both experiments."""
        return self.one, self.other

    @property
    def setting(self) -> str:
        """Where and what is measured, in words."""
        experiment = self.one if self.one.noise != "none" else self.other
        flips = FLIPS[experiment.noise]
        if experiment.rate != 0.1:
            flips = f"{experiment.rate:.3g} {flips}"
        notion = ABBREVIATIONS[self.fairness]
        what = {"accuracy": f"accuracy ({notion})", "cpu_seconds": "seconds"}.get(
            self.measure, f"{notion} disparity"
        )
        return f"{TITLES[experiment.data]}, {flips}, {what}"

    def titles(self) -> tuple[str, str]:
        """Return the titles of the two methods."""
        one, other = (line_title(Line(each.method, each.validation)) for each in self.experiments)
        return one, other

    def with_methods(self, names: dict[str, str]) -> Pairing:
        """Return the same pairing with some methods in place of others."""
        one, other = (replace(each, method=names.get(each.method, each.method)) for each in self.experiments)
        return replace(self, one=one, other=other)

    def gains(self, results: Results) -> NDArray[np.float64]:
        """Compute how much better ``one`` is, draw by draw; draws that either lacks are left out."""
        mine, theirs = (results.values(experiment, self.measure) for experiment in self.experiments)
        paired = min(len(mine), len(theirs))
        gains = mine[:paired] - theirs[:paired]
        gains = gains if self.measure == "accuracy" else -gains
        return np.asarray(gains[~np.isnan(gains)])


@dataclass(frozen=True)
class Gain:
    """How much better one method is than another, over draws: mean, interval and test.

    Attributes
    ----------
    pairing : Pairing
    one, other : float
        Means of the measure, over the draws that both have.
    mean, low, high : float
        Of the paired differences, and their 95 % interval (Student's t).
    p : float
        Of the two-sided paired t-test that the mean difference is 0; with slack, that it is −slack.
    n : int
    """

    pairing: Pairing
    one: float
    other: float
    mean: float
    low: float
    high: float
    p: float
    n: int

    def needed(self, level: float = LEVEL) -> int | None:
        """Return how many draws a test at this level would need, were the means and deviations those of many draws."""
        shifted = self.mean + self.pairing.slack
        half = (self.high - self.low) / 2
        if self.n < 2 or shifted == 0 or not np.isfinite(half):
            return None
        deviation = half / stats.t.ppf(0.975, self.n - 1) * np.sqrt(self.n)
        return int(np.ceil((stats.norm.ppf(1 - level / 2) * deviation / abs(shifted)) ** 2)) + 1


def read_gain(pairing: Pairing, results: Results) -> Gain:
    """Compute the differences of a pairing; a single draw has no interval and no test."""
    gains = pairing.gains(results)
    n = len(gains)
    one, other = (_mean(results.values(each, pairing.measure)[: max(n, 1)]) for each in pairing.experiments)
    if n == 0:
        return Gain(pairing, one, other, np.nan, np.nan, np.nan, 1.0, 0)
    mean = float(gains.mean())
    if n < 2:
        return Gain(pairing, one, other, mean, np.nan, np.nan, 1.0, n)
    error = float(gains.std(ddof=1)) / np.sqrt(n)
    half = float(stats.t.ppf(0.975, n - 1)) * error
    shifted = mean + pairing.slack
    certain = 0.0 if shifted != 0 else 1.0  # without deviation
    p = certain if error == 0 else float(2 * stats.t.sf(abs(shifted) / error, n - 1))
    return Gain(pairing, one, other, mean, mean - half, mean + half, p, n)


def _mean(values: NDArray[np.float64]) -> float:
    there = values[~np.isnan(values)]
    return float(there.mean()) if len(there) else np.nan


def pool(gains: Sequence[Gain], results: Results) -> Gain:
    """Average the gains of several comparisons, draw by draw, into one.

    Comparisons on one data set share its draws, of which those that all of them have count; data sets are independent
    of each other, so their variances add up. The test has the degrees of freedom of Welch and Satterthwaite.
    """
    by_data: dict[str, list[NDArray[np.float64]]] = {}
    for gain in gains:
        found = gain.pairing.gains(results)
        by_data.setdefault(gain.pairing.one.data, []).append(found + gain.pairing.slack)
    mean = variance = squares = 0.0
    fewest = min(min(map(len, rows)) for rows in by_data.values())
    for rows in by_data.values():
        paired, weight = min(map(len, rows)), len(rows) / len(gains)
        if paired == 0:
            return replace(gains[0], mean=np.nan, low=np.nan, high=np.nan, p=1.0, n=0)
        each = np.mean([row[:paired] for row in rows], axis=0)
        mean += weight * float(each.mean())
        own = weight**2 * (float(each.var(ddof=1)) / paired if paired > 1 else np.nan)
        variance, squares = variance + own, squares + own**2 / max(paired - 1, 1)
    slack = float(np.mean([gain.pairing.slack for gain in gains]))
    one, other = (float(np.mean([getattr(gain, name) for gain in gains])) for name in ("one", "other"))
    if fewest < 2:
        return Gain(gains[0].pairing, one, other, mean - slack, np.nan, np.nan, 1.0, fewest)
    error = float(np.sqrt(variance))
    freedom = variance**2 / squares if squares > 0 else fewest - 1
    half = float(stats.t.ppf(0.975, freedom)) * error
    certain = 0.0 if mean != 0 else 1.0
    p = certain if error == 0 else float(2 * stats.t.sf(abs(mean) / error, freedom))
    return Gain(
        gains[0].pairing, one, other, mean - slack, mean - slack - half, mean - slack + half, p, fewest
    )


def holm(p_values: Sequence[float]) -> list[float]:
    """Correct p-values for their number, by Holm's method.

    Examples
    --------
    >>> [round(p, 3) for p in holm([0.01, 0.04, 0.03])]
    [0.03, 0.06, 0.06]
    """
    order = np.argsort(p_values, kind="stable")
    corrected, highest = [0.0] * len(p_values), 0.0
    for rank, place in enumerate(order):
        highest = max(highest, min(1.0, (len(p_values) - rank) * p_values[place]))
        corrected[place] = highest
    return corrected


def judge(gains: Sequence[Gain]) -> list[Word]:
    """Say of each comparison of a claim whether it speaks for it.

    Better or worse where the test, corrected for the number of comparisons, says so; alike where even the upper end of
    the interval is below .01, so that the first method is at most that much better; else open. With slack, "better"
    means no worse than that.
    """
    words: list[Word] = []
    for gain, p in zip(gains, holm([gain.p for gain in gains]), strict=True):
        alike = not gain.pairing.slack and gain.pairing.measure != "cpu_seconds"
        if p < LEVEL:
            words.append("better" if gain.mean + gain.pairing.slack > 0 else "worse")
        elif alike and gain.high < ALIKE:
            words.append("alike")
        else:
            words.append("open")
    return words


def make_pairings(
    rivals: Sequence[str],
    columns: Sequence[PaperColumn],
    measure: str,
    *,
    method: str = "fairsieve",
    slack: float = 0,
) -> list[Pairing]:
    """Pair a method with each rival in each column; ``measure`` is accuracy or disparity."""
    return [
        Pairing(
            Experiment(method, column.data, column.noise, column.fairness),
            Experiment(rival, column.data, column.noise, column.fairness),
            column.fairness if measure == "disparity" else measure,
            slack,
        )
        for column in columns
        for rival in rivals
    ]


def none_speaks_against(words: Sequence[Word], pooled: Sequence[Word]) -> Outcome:
    """Combine comparisons: True where every measure is better on the whole, and no comparison is worse.

    False where a comparison is worse, or a measure is worse or alike on the whole.

    Examples
    --------
    >>> none_speaks_against(["better", "open"], ["better"]), none_speaks_against(["better", "worse"], ["better"])
    (True, False)
    >>> none_speaks_against(["open", "alike"], ["alike"]), none_speaks_against(["better", "open"], ["open"])
    (False, None)
    """
    return False if "worse" in words else on_the_whole(words, pooled)


def on_the_whole(words: Sequence[Word], pooled: Sequence[Word]) -> Outcome:
    """Combine comparisons: True where every measure is better on the whole, whatever single comparisons say.

    Examples
    --------
    >>> on_the_whole(["better", "worse"], ["better"]), on_the_whole(["better"], ["better", "alike"])
    (True, False)
    """
    if "worse" in pooled or "alike" in pooled:
        return False
    return None if "open" in pooled else True


def most_speak_for(words: Sequence[Word]) -> Outcome:
    """Combine cases: True where most are better; False where the open ones could not make it most.

    Examples
    --------
    >>> most_speak_for(["better", "better", "worse"]), most_speak_for(["better", "alike", "worse"])
    (True, False)
    """
    half = len(words) / 2
    if words.count("better") > half:
        return True
    return None if words.count("better") + words.count("open") > half else False


@cache
def _printed() -> dict[tuple[Experiment, str], float]:
    """Return every number that the paper prints in a table, by experiment and measure."""
    found: dict[tuple[Experiment, str], float] = {}
    for table in paper_tables().values():
        for line, cells in table.lines.items():
            for column, numbers in zip(table.columns, cells, strict=True):
                names = ("cpu_seconds",) if table.number == 4 else ("accuracy", column.fairness)
                for name, number in zip(names, numbers, strict=True):
                    experiment = table_experiment(line, column)
                    found.setdefault((experiment, name), number.value)
    return found


def printed_value(experiment: Experiment, measure: str) -> float | None:
    """Return what the paper prints for an experiment; None where it prints no number."""
    return _printed().get((experiment, measure))
