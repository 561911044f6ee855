"""Two trials side by side, paired by draw: what a claim of the paper comes down to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fairsieve.paper.methods.registry import METHODS
from fairsieve.paper.reproduce.published import Column, Line
from fairsieve.paper.reproduce.results import Results
from fairsieve.paper.reproduce.trials import Trial
from fairsieve.paper.reproduce.wording import FLIPS, TITLES, line_title, number
from fairsieve.selection.fairness import ABBREVIATIONS

__all__ = ["OUTCOMES", "Duel", "Outcome", "all_of", "duels_of", "most_of", "tell"]

Outcome = bool | None
OUTCOMES: dict[Outcome, str] = {True: "holds", False: "does not hold", None: "cannot tell"}


@dataclass(frozen=True)
class Duel:
    """One method against another, by one measure.

    Attributes
    ----------
    one, other : Trial
        ``one`` is claimed to do better.
    measure : str
        ``accuracy`` (more is better), a disparity or ``seconds`` (less is better).
    slack : float
        How much worse ``one`` may be and still count as no worse: "similar", "comparable".
    """

    one: Trial
    other: Trial
    measure: str
    slack: float = 0.0

    @property
    def fairness(self) -> str:
        """The notion of fairness that is asked for, of whichever method knows one."""
        plain = METHODS[self.one.method].family in ("plain", "robust")
        return self.measure if self.measure in ABBREVIATIONS else (self.other if plain else self.one).fairness

    def gains(self, results: Results) -> NDArray[np.float64]:
        """How much better ``one`` is, draw by draw."""
        mine, theirs = (results.values(trial, self.measure) for trial in (self.one, self.other))
        paired = min(len(mine), len(theirs))
        gains = mine[:paired] - theirs[:paired]
        return gains if self.measure == "accuracy" else -gains

    def outcome(self, results: Results) -> Outcome:
        """True and False where the mean gain is beyond twice its standard error, else None.

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
        """The rival, its mean, and on how many draws or splits it is beaten."""
        gains = self.gains(results)
        theirs = results.values(self.other, self.measure)[: len(gains)]
        won = int((gains > 0).sum())
        return f"{_line_of(self.other)} {number(float(theirs.mean()))} (beaten on {won} of {len(gains)})"


def duels_of(
    rivals: Sequence[str],
    columns: Sequence[Column],
    measure: str,
    *,
    method: str = "fairsieve",
    slack: float = 0,
) -> list[Duel]:
    """A method against each rival in each column; ``measure`` is accuracy or disparity."""
    return [
        Duel(
            Trial(method, column.data, column.noise, column.fairness),
            Trial(rival, column.data, column.noise, column.fairness),
            column.fairness if measure == "disparity" else measure,
            slack,
        )
        for column in columns
        for rival in rivals
    ]


def all_of(outcomes: Sequence[Outcome]) -> Outcome:
    """None speaks against it, and most speak for it.

    Examples
    --------
    >>> all_of([True, True, None]), all_of([True, True, False]), all_of([True, None, None])
    (True, False, None)
    """
    return False if False in outcomes else True if outcomes.count(True) > len(outcomes) / 2 else None


def most_of(outcomes: Sequence[Outcome]) -> Outcome:
    """Most speak for it, whatever the others say; False where not even those that cannot tell would make it most.

    Examples
    --------
    >>> most_of([True, True, False]), most_of([True, False, False]), most_of([True, None, None])
    (True, False, None)
    """
    half = len(outcomes) / 2
    if outcomes.count(True) > half:
        return True
    return None if outcomes.count(True) + outcomes.count(None) > half else False


def tell(results: Results, duels: Sequence[Duel]) -> str:
    """The numbers behind some duels: a sentence for each column and measure."""
    grouped: dict[str, list[Duel]] = {}
    for duel in duels:
        grouped.setdefault(_setting(duel), []).append(duel)
    return " ".join(
        f"{where}: "
        + "; ".join(
            f"{_line_of(one)} {number(float(results.values(one, same[0].measure).mean()))} against "
            + ", ".join(duel.tell(results) for duel in same if duel.one == one)
            for one in dict.fromkeys(duel.one for duel in same)
        )
        + "."
        for where, same in grouped.items()
    )


def _line_of(trial: Trial) -> str:
    """A trial's method, as tables name it."""
    return line_title(Line(trial.method, trial.validation))


def _setting(duel: Duel) -> str:
    """Where and what was measured."""
    trial, measure = duel.one, duel.measure
    flips = f"{FLIPS[trial.noise]}" if trial.rate == 0.1 else f"{trial.rate:.3g} {FLIPS[trial.noise]}"
    notion = ABBREVIATIONS[duel.fairness]
    what = f"{notion} disparity" if measure in ABBREVIATIONS else f"{measure} for {notion}"
    return f"{TITLES[trial.data]}, {flips}, {what}"
