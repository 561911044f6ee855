"""The search for fair ratios: which weights to shift between groups, how far, and when to stop.

Each *update* takes the widest gap between two groups and tries to shift weight: within the class that one group is
given too rarely, towards that group; within the other classes, away from it; both; or towards that group in all
classes. A move that narrows the widest gap is kept, and the next one is longer; a move that changes no rate is kept and
doubled; one that widens the gap is taken back and halved. So the way is monotone. The search stops when the widest gap
is at most ``tolerance``, or when no move of any length helps.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from fairsieve.metrics import accuracy_from_table
from fairsieve.notions import ANY, WRONG, Rate
from fairsieve.rates import compared_rates

Floats = NDArray[np.float64]
Stopped = Literal["met", "exhausted", "limit", "interrupted"]

TOLERANCE = 0.02  # by default, or one standard error of the widest gap: the rows can tell no less
FIRST_MOVE = 0.25  # in the logarithm of the odds between two groups' ratios
LAST_MOVE = 0.05  # moves below this are not tried: they change the odds by five percent
GROWTH = 1.5
USED_UP = 1e-3  # of its natural ratio: a cell that has less than this has nothing left to give
GRAIN = 2.0**-32  # rates are rounded to this before they are compared


class Gap(NamedTuple):
    """A difference between two groups in a rate that the notion compares.

    Attributes
    ----------
    size : float
    rate : Rate
        Which rate.
    low, high : int
        The groups with the lowest and the highest rate.
    error : float
        The standard error of the size.
    """

    size: float
    rate: Rate
    low: int
    high: int
    error: float


def choose_point(points: Sequence[Any], tolerance: float) -> int:
    """Return the place of the most accurate point within the tolerance; of the fairest, where there is none.

    Then points count as the fairest whose gap is no more than ``tolerance`` above the smallest: nobody should pay
    accuracy for less than that.
    """
    smallest = min(point.gap for point in points)
    enough = tolerance if smallest <= tolerance else smallest + tolerance
    able = [place for place, point in enumerate(points) if point.gap <= enough]
    return max(able, key=lambda place: (points[place].accuracy, -points[place].gap))


def find_gaps(table: Floats, fairness: str, positive: int, named_groups: int) -> list[Gap]:
    """List the gaps of a confusion table, the widest first.

    >>> table = np.array([[[8.0, 2.0], [5.0, 5.0]], [[1.0, 9.0], [1.0, 9.0]]])
    >>> gap = find_gaps(table, "equalized-odds", 1, 2)[0]
    >>> gap.size, gap.low, gap.high, gap.error
    (0.3, 1, 0, 0.202)
    """
    compared = compared_rates(fairness, len(table), positive)
    found = []
    for rate, rates, totals in zip(compared.rates, *compared.of(table[:, :named_groups]), strict=True):
        groups = np.flatnonzero(totals > 0)
        if len(groups) < 2:
            continue
        rates, totals = np.round(rates[groups] / GRAIN) * GRAIN, totals[groups]
        low, high = rates.argmin(), rates.argmax()
        spread = np.maximum(rates * (1 - rates), 0.0) / totals
        size = round(float(rates[high] - rates[low]), 9)
        error = round(float(np.sqrt(spread[low] + spread[high])), 3)
        found.append(Gap(size, rate, int(groups[low]), int(groups[high]), error))
    return sorted(found, key=lambda gap: -gap.size)


@dataclass(frozen=True, kw_only=True)
class SolverSettings:
    """What is compared between groups, and when to stop.

    Attributes
    ----------
    fairness : str
        The full name of a notion.
    positive : int
        Code of the positive class.
    named_groups : int
        How many of the groups are compared; the samples without a group come last.
    correct : callable, optional
        Turns counts by given label, (classes, groups, …), into counts by true class, where it is known how often labels
        are flipped; models are judged on the labels as given then.
    """

    fairness: str
    positive: int
    named_groups: int
    tolerance: float | None
    clean_ratio: float = 1.0
    max_iter: int = 200
    correct: Callable[[Floats], Floats] | None = field(default=None, repr=False)
    report: Callable[[int], None] = field(default=lambda done: None, repr=False)

    def measure(self, table: Floats) -> tuple[float, list[Gap]]:
        """Compute the accuracy and the gaps of a confusion table."""
        gaps = find_gaps(table, self.fairness, self.positive, self.named_groups)
        return float(accuracy_from_table(table)), gaps


@dataclass(frozen=True, eq=False)
class State:
    """A model that was trained with some ratios: its accuracy, and its gaps, the widest first."""

    ratios: Floats
    accuracy: float
    gaps: list[Gap]

    @property
    def gap(self) -> float:
        """The widest gap."""
        return self.gaps[0].size if self.gaps else 0.0


Trained = TypeVar("Trained", bound=State)


class RatioSearch(Generic[Trained]):
    """Walks from the natural ratios to fair ones; a subclass says what training with some ratios gives.

    Parameters
    ----------
    natural : array of shape (classes, groups)
        The share of each class that each group has by itself.
    settings : SolverSettings
        A default tolerance is set where the walk starts.
    """

    def __init__(self, natural: Floats, settings: SolverSettings) -> None:
        self.natural, self.settings = natural, settings
        self.tolerance = TOLERANCE if settings.tolerance is None else settings.tolerance
        self.moves: dict[tuple[int, ...], float] = {}
        self.done = 0

    def train_at(self, state: Trained, ratios: Floats) -> Trained:
        """Train with other ratios, from a state."""
        raise NotImplementedError

    def record(self, state: Trained) -> None:
        """Keep a point of the way."""

    def count(self) -> None:
        """Count an update."""
        self.done += 1
        self.settings.report(self.done)

    def walk(self, state: Trained) -> Stopped:
        """Move the ratios until the widest gap is within the tolerance, or nothing helps."""
        self.record(state)
        if self.settings.tolerance is None and state.gaps:
            self.tolerance = max(TOLERANCE, state.gaps[0].error)
        while state.gap > self.tolerance:
            better = self.improve(state)
            if better is None:
                return "exhausted" if self.done < self.settings.max_iter else "limit"
            state = better
            self.record(state)
        return "met"

    def improve(self, state: Trained) -> Trained | None:
        """Try the moves that may narrow the widest gap, the one that went furthest first; None if none does."""
        moves = sorted(self.candidates(state.gaps[0]), key=lambda move: -self.moves.get(move, FIRST_MOVE))
        for move in moves:
            length, now = self.moves.pop(move, FIRST_MOVE), state
            while length >= LAST_MOVE and self.done < self.settings.max_iter:
                ratios = self.shift(now.ratios, move, length)
                if ratios is None:  # used up
                    break
                self.count()
                trial = self.train_at(now, ratios)
                if trial.gap < state.gap:
                    self.moves[move] = length * GROWTH
                    return trial
                if trial.gap == state.gap:  # no prediction has changed yet
                    now, length = trial, 2 * length
                else:
                    length /= 2
        return None

    def candidates(self, gap: Gap) -> list[tuple[int, ...]]:
        """List moves: the class, the groups, and the signs in the class itself and in the others."""
        compared = compared_rates(self.settings.fairness, len(self.natural), self.settings.positive).rates
        predicted, signs = [gap.rate.predicted], [(1, 0), (0, -1), (1, -1)]
        if len({rate.of_true for rate in compared}) > 1:
            signs.append((1, 1))  # the other classes' rates of the group are compared too
        if gap.rate.predicted < 0:  # right or wrong predictions, of whichever class
            predicted, signs = list(range(len(self.natural))), [(1, 0), (1, -1), (1, 1)]
        if gap.rate.predicted == WRONG or gap.rate.of_predicted != ANY:
            # The rate rises as the group weighs less: errors, or hits among fewer predictions.
            signs = [(-own, -others) for own, others in signs]
        return [(label, gap.low, gap.high, *pair) for label in predicted for pair in signs]

    def shift(self, ratios: Floats, move: tuple[int, ...], length: float) -> Floats | None:
        """Move ratios towards a group in a class and, by the second sign, in the others; None if nothing can move."""
        label, low, high, own, others = move
        found, moved = ratios.copy(), False
        for row, sign in enumerate([own if code == label else others for code in range(len(ratios))]):
            if sign == 0 or not (self.natural[row, low] > 0 and self.natural[row, high] > 0):
                continue
            up, down = (low, high) if sign > 0 else (high, low)
            if found[row, down] < USED_UP * self.natural[row, down]:
                continue
            both, odds = found[row, up] + found[row, down], found[row, up] * np.exp(length)
            found[row, up] = both * odds / (odds + found[row, down])
            found[row, down] = both - found[row, up]
            moved = True
        return found if moved else None
