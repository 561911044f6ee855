"""Pairs of experiments on the same draws: what the paper's claims are checked by."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fairsieve.paper.methods.registry import METHODS
from fairsieve.paper.reproduce.experiments import Experiment
from fairsieve.paper.reproduce.published import Line, PaperColumn
from fairsieve.paper.reproduce.results import Results
from fairsieve.paper.reproduce.titles import FLIPS, TITLES, line_title, number
from fairsieve.selection.fairness import ABBREVIATIONS

__all__ = ["OUTCOMES", "Outcome", "Pairing", "make_pairings", "most_speak_for", "none_speaks_against", "tell"]

Outcome = bool | None
OUTCOMES: dict[Outcome, str] = {True: "holds", False: "does not hold", None: "inconclusive"}


@dataclass(frozen=True)
class Pairing:
    """One method against another, by one measure.

    Attributes
    ----------
    one, other : Experiment
        ``one`` is claimed to do better.
    measure : str
        ``accuracy`` (more is better), a disparity or ``seconds`` (less is better).
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

    def gains(self, results: Results) -> NDArray[np.float64]:
        """Compute how much better ``one`` is, draw by draw."""
        mine, theirs = (results.values(experiment, self.measure) for experiment in (self.one, self.other))
        paired = min(len(mine), len(theirs))
        gains = mine[:paired] - theirs[:paired]
        return gains if self.measure == "accuracy" else -gains

    def outcome(self, results: Results) -> Outcome:
        """Return True or False where the mean gain is beyond twice its standard error, else None.

        With slack, True where ``one`` is better or worse by less than it.
        """
        gains = self.gains(results)
        if len(gains) < 2 or np.isnan(gains).any():
            return None
        error = float(gains.std(ddof=1)) / np.sqrt(len(gains))
        mean = float(gains.mean())
        if self.slack:
            return mean >= -self.slack
        return None if abs(mean) <= 2 * error else mean > 0

    def tell(self, results: Results) -> str:
        """Describe the rival: its mean, and on how many draws or splits it is beaten."""
        gains = self.gains(results)
        theirs = results.values(self.other, self.measure)[: len(gains)]
        won = int((gains > 0).sum())
        return f"{_experiment_title(self.other)} {number(float(theirs.mean()))} (beaten on {won} of {len(gains)})"


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


def none_speaks_against(outcomes: Sequence[Outcome]) -> Outcome:
    """Combine outcomes: True where none speaks against the claim and most speak for it.

    Examples
    --------
    >>> none_speaks_against([True, True, None]), none_speaks_against([True, True, False])
    (True, False)
    >>> print(none_speaks_against([True, None, None]))
    None
    """
    return False if False in outcomes else True if outcomes.count(True) > len(outcomes) / 2 else None


def most_speak_for(outcomes: Sequence[Outcome]) -> Outcome:
    """Combine outcomes: True where most speak for the claim; False where the inconclusive ones could not make it most.

    Examples
    --------
    >>> most_speak_for([True, True, False]), most_speak_for([True, False, False]), most_speak_for([True, None, None])
    (True, False, None)
    """
    half = len(outcomes) / 2
    if outcomes.count(True) > half:
        return True
    return None if outcomes.count(True) + outcomes.count(None) > half else False


def tell(results: Results, pairings: Sequence[Pairing]) -> str:
    """Describe the numbers behind pairings: a sentence for each column and measure."""
    grouped: dict[str, list[Pairing]] = {}
    for pairing in pairings:
        grouped.setdefault(_setting(pairing), []).append(pairing)
    return " ".join(
        f"{where}: "
        + "; ".join(
            f"{_experiment_title(one)} {number(float(results.values(one, same[0].measure).mean()))} against "
            + ", ".join(pairing.tell(results) for pairing in same if pairing.one == one)
            for one in dict.fromkeys(pairing.one for pairing in same)
        )
        + "."
        for where, same in grouped.items()
    )


def _experiment_title(experiment: Experiment) -> str:
    """Return the title of an experiment's method, as in tables."""
    return line_title(Line(experiment.method, experiment.validation))


def _setting(pairing: Pairing) -> str:
    """Describe where and what was measured."""
    experiment, measure = pairing.one, pairing.measure
    flips = FLIPS[experiment.noise]
    if experiment.rate != 0.1:
        flips = f"{experiment.rate:.3g} {flips}"
    notion = ABBREVIATIONS[pairing.fairness]
    what = f"{notion} disparity" if measure in ABBREVIATIONS else f"{measure} for {notion}"
    return f"{TITLES[experiment.data]}, {flips}, {what}"
