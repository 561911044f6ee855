"""The search for fair ratios: which weights to shift between groups, how far, and when to stop.

Each *update* takes the widest gap between two groups and tries to shift weight: within the class that one group is
given too rarely, towards that group; within the other classes, away from it; both; or towards that group in all
classes. A move that narrows the widest gap is kept, and the next one is longer; a move that changes no rate is kept and
doubled; one that widens the gap is taken back and halved. So the way is monotone. The search stops when the widest gap
is at most ``tolerance``, or when no move of any length helps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from fairsieve.metrics import Rates, accuracy_from_table, compared_rates
from fairsieve.notions import ANY, WRONG, Rate
from fairsieve.thresholds import ThresholdRule

Floats = NDArray[np.float64]
Stopped = Literal["met", "cost", "unreachable", "limit", "interrupted"]

TOLERANCE = 0.02  # by default, or one standard error of the widest gap: the rows can tell no less
FIRST_MOVE = 0.25  # in the logarithm of the odds between two groups' ratios
LAST_MOVE = 0.05  # moves below this are not tried: they change the odds by five percent
GROWTH = 1.5
USED_UP = 1e-3  # of its natural ratio: a cell that has less than this has nothing left to give
GRAIN = 2.0**-32  # rates are rounded to this before they are compared


class RateGap(NamedTuple):
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


def find_rate_gaps(table: Floats, fairness: str, positive: int, named_groups: int) -> list[RateGap]:
    """List the gaps of a confusion table, the widest first.

    >>> table = np.array([[[8.0, 2.0], [5.0, 5.0]], [[1.0, 9.0], [1.0, 9.0]]])
    >>> gap = find_rate_gaps(table, "equalized-odds", 1, 2)[0]
    >>> gap.size, gap.low, gap.high, gap.error
    (0.3, 1, 0, 0.202)
    """
    if not named_groups:
        return []
    compared = compared_rates(fairness, len(table), positive)
    rates, totals = compared.of(table[:, :named_groups])
    there = totals > 0
    rates = np.round(rates / GRAIN) * GRAIN
    ends = np.stack([np.where(there, rates, np.inf).argmin(1), np.where(there, rates, -np.inf).argmax(1)], 1)
    spread = np.maximum(rates * (1 - rates), 0.0) / np.maximum(totals, 1e-300)
    low, high = np.take_along_axis(rates, ends, 1).T
    sizes, errors = (high - low).round(9), np.sqrt(np.take_along_axis(spread, ends, 1).sum(1)).round(3)
    order = np.argsort(-sizes, kind="stable")
    gaps = []
    for place in order[(there.sum(1) > 1)[order]]:  # rates that two groups or more have
        lowest, highest = ends[place].tolist()
        size, error = float(sizes[place]), float(errors[place])
        gaps.append(RateGap(size, compared.rates[place], lowest, highest, error))
    return gaps


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
    classes : int
    tolerance : float, optional
        The gap that may remain; by default .02, at a limited cost.
    max_accuracy_loss : float, optional
        What the default tolerance may cost.
    clean_ratio : float
        Below 1, rows are selected by their loss.
    threshold : ThresholdRule
        From which probability on the positive one of two classes is predicted.
    max_iter : int
    report : callable
        Told how many updates were made.
    """

    fairness: str
    positive: int
    named_groups: int
    classes: int = 2
    tolerance: float | None = None
    max_accuracy_loss: float | None = None
    clean_ratio: float = 1.0
    threshold: ThresholdRule = field(default_factory=ThresholdRule)
    max_iter: int = 200
    report: Callable[[int], None] = field(default=lambda done: None, repr=False)

    @property
    def rates(self) -> Rates:
        """The rates that are compared."""
        return compared_rates(self.fairness, self.classes, self.positive)

    def measure(self, table: Floats) -> tuple[float, list[RateGap]]:
        """Compute the accuracy and the gaps of a confusion table."""
        gaps = find_rate_gaps(table, self.fairness, self.positive, self.named_groups)
        return float(accuracy_from_table(table)), gaps


@dataclass(frozen=True, eq=False)
class State:
    """A model that was trained with some ratios: its accuracy, and its gaps, the widest first."""

    ratios: Floats
    accuracy: float
    gaps: list[RateGap]

    @property
    def gap(self) -> float:
        """The widest gap."""
        return self.gaps[0].size if self.gaps else 0.0


Trained = TypeVar("Trained", bound=State)


class Budget:
    """Counts updates, up to a limit.

    Parameters
    ----------
    most : int
    report : callable
        Told after every update how many there were.
    """

    def __init__(self, most: int, report: Callable[[int], None]) -> None:
        self.most, self.report, self.done = most, report, 0

    @property
    def is_spent(self) -> bool:
        return self.done >= self.most

    def count(self) -> None:
        self.done += 1
        self.report(self.done)


def search_ratios(
    start: Trained,
    train_at: Callable[[Trained, Floats], Trained],
    natural: Floats,
    settings: SolverSettings,
    tolerance: float,
    budget: Budget,
) -> Iterator[Trained]:
    """Walk from a state to fairer ones; yield each whose widest gap is narrower than that of the one before.

    The search ends within the tolerance, where no move helps, or with the budget.

    Parameters
    ----------
    start : State
    train_at : callable
        Trains with other ratios, beginning from a state.
    natural : array of shape (classes, groups)
        The share of each class that each group has by itself.
    settings : SolverSettings
    tolerance : float
    budget : Budget
        Each training is one update.
    """
    state = start
    lengths: dict[tuple[int, ...], float] = {}  # how far each move went
    while state.gap > tolerance:
        better = _improve(state, train_at, natural, settings, budget, lengths)
        if better is None:
            return
        state = better
        yield state


def _improve(
    state: Trained,
    train_at: Callable[[Trained, Floats], Trained],
    natural: Floats,
    settings: SolverSettings,
    budget: Budget,
    lengths: dict[tuple[int, ...], float],
) -> Trained | None:
    """Try the moves that may narrow the widest gap, the one that went furthest first; None if none does."""
    for move in sorted(list_moves(state.gaps[0], settings), key=lambda move: -lengths.get(move, FIRST_MOVE)):
        length, now = lengths.pop(move, FIRST_MOVE), state
        while length >= LAST_MOVE and not budget.is_spent:
            ratios = shift_ratios(now.ratios, natural, move, length)
            if ratios is None:  # used up
                break
            budget.count()
            trial = train_at(now, ratios)
            if trial.gap < state.gap:
                lengths[move] = length * GROWTH
                return trial
            if trial.gap == state.gap:  # no prediction has changed yet
                now, length = trial, 2 * length
            else:
                length /= 2
    return None


def list_moves(gap: RateGap, settings: SolverSettings) -> list[tuple[int, ...]]:
    """List moves against a gap: the class, the groups, and the signs in the class itself and in the others."""
    predicted, signs = [gap.rate.predicted], [(1, 0), (0, -1), (1, -1)]
    if len({rate.of_true for rate in settings.rates.rates}) > 1:
        signs.append((1, 1))  # the other classes' rates of the group are compared too
    if gap.rate.predicted < 0:  # right or wrong predictions, of whichever class
        predicted, signs = list(range(settings.classes)), [(1, 0), (1, -1), (1, 1)]
    if gap.rate.predicted == WRONG or gap.rate.of_predicted != ANY:
        # The rate rises as the group weighs less: errors, or hits among fewer predictions.
        signs = [(-own, -others) for own, others in signs]
    return [(label, gap.low, gap.high, *pair) for label in predicted for pair in signs]


def shift_ratios(ratios: Floats, natural: Floats, move: tuple[int, ...], length: float) -> Floats | None:
    """Move ratios towards a group in a class and, by the second sign, in the others; None if nothing can move."""
    label, low, high, own, others = move
    shifted, has_moved = ratios.copy(), False
    for row, sign in enumerate([own if code == label else others for code in range(len(ratios))]):
        if sign == 0 or not (natural[row, low] > 0 and natural[row, high] > 0):
            continue
        up, down = (low, high) if sign > 0 else (high, low)
        if shifted[row, down] < USED_UP * natural[row, down]:
            continue
        both, odds = shifted[row, up] + shifted[row, down], shifted[row, up] * np.exp(length)
        shifted[row, up] = both * odds / (odds + shifted[row, down])
        shifted[row, down] = both - shifted[row, up]
        has_moved = True
    return shifted if has_moved else None
