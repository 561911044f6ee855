"""Compromises between accuracy and equal rates: two ways to find them, and which is the best bargain.

The first way moves weights between cells. Each *update* takes the widest gap between two groups and tries to shift
weight: within the class that one group is given too rarely, towards that group; within the other classes, away from
it; both; or towards that group in all classes. A move that narrows the widest gap is kept, and the next one is
longer; a move that changes no rate is kept and doubled; one that widens the gap is taken back and halved. So the
way is monotone. The search stops when the widest gap is at most ``tolerance``, or when no move of any length helps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, NamedTuple, TypeVar

import numpy as np
from scipy.linalg import solve_triangular
from scipy.optimize import minimize

from fairsieve.metrics import Rates, accuracy_from_table, compared_rates, expected_counts
from fairsieve.notions import ANY, WRONG, Rate
from fairsieve.selection.cells import Floats
from fairsieve.thresholds import ThresholdRule
from fairsieve.training.newton import LinearModel, Newton
from fairsieve.training.rows import LossLimit, Rows, Table

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
    lengths: dict[tuple[int, ...], float] = {}  # how far each move went
    state = start
    while state.gap > tolerance:
        better: Trained | None = None
        moves = list_moves(state.gaps[0], settings)
        for move in sorted(moves, key=lambda move: -lengths.get(move, FIRST_MOVE)):
            length, now = lengths.pop(move, FIRST_MOVE), state
            while better is None and length >= LAST_MOVE and not budget.is_spent:
                ratios = shift_ratios(now.ratios, natural, move, length)
                if ratios is None:  # used up
                    break
                budget.count()
                trial = train_at(now, ratios)
                if trial.gap < state.gap:
                    lengths[move], better = length * GROWTH, trial
                elif trial.gap == state.gap:  # no prediction has changed yet
                    now, length = trial, 2 * length
                else:
                    length /= 2
            if better is not None:
                break
        if better is None:  # no move helps
            return
        state = better
        yield state


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


# ---- Gaps between groups as smooth constraints, which an augmented Lagrangian holds down
#
# The rates of a table of *soft* predictions, where a row counts for each class as far as the model gives it
# to it, have a derivative, so that a model can be trained under ``gap ≤ target`` for every rate and pair of
# groups:
#
# 1. The loss is the mean log loss with the ridge, plus ``Σ (max(0, λ + ρ·violation)² − λ²) / 2ρ`` over the
#    constraints [1]_. What stands in the bracket is the *pull* of a constraint.
# 2. It is minimised by L-BFGS, in coordinates in which the curvature of the log loss is the identity. All
#    that is asked of the rows is their soft table, and the gradient of a weighted sum of its entries.
# 3. The pulls become the next multipliers λ, and ρ grows.
#
# It is not convex. So it starts from a model of the log loss alone with very soft predictions, which become
# sharper as the targets tighten, each model being the start of the next.
#
# .. [1] Nocedal and Wright, Numerical Optimization, 2006, chapter 17.4.

GRADIENT, DECREASE = 1e-4, 1e-7  # of the mean loss, in coordinates of unit curvature: L-BFGS has arrived


@dataclass(frozen=True, eq=False)
class Lagrangian:
    """What gaps cost.

    Attributes
    ----------
    multipliers, targets : arrays of shape (rates, groups, groups)
        The price of a gap, and how wide it may be; entry (rate, higher group, lower group).
    stiffness : float
        ρ, by how much a violation raises the price.
    temperature : float
        How soft predictions are.
    """

    multipliers: Floats
    targets: Floats
    stiffness: float
    temperature: float

    def pulls(self, rates: Floats, counted: Floats) -> Floats:
        """Return the price of each gap at these rates; 0 where a group has nobody who is counted."""
        gaps = rates[:, :, None] - rates[:, None, :] - self.targets
        there = counted > 0
        pulls = np.maximum(0.0, self.multipliers + self.stiffness * gaps)
        apart = ~np.eye(there.shape[1], dtype=bool)
        return np.where(there[:, :, None] & there[:, None, :] & apart, pulls, 0.0)

    def penalty(self, pulls: Floats) -> float:
        """Return what is added to the loss."""
        return float((pulls**2 - self.multipliers**2).sum()) / (2 * self.stiffness)


@dataclass(frozen=True, eq=False)
class Constrained:
    """The loss of some rows under constraints.

    Attributes
    ----------
    newton : Newton
        The rows that are trained on, and how their columns are scaled.
    train : Rows
        Those of them that are selected.
    table : Table
        By whose ``judged`` rows the soft rates are taken.
    rates : Rates
    named_groups : int
        How many of the groups are compared.
    cut : float
        Of two classes, the score from which on the second one is predicted.
    """

    newton: Newton
    train: Rows
    table: Table
    rates: Rates
    named_groups: int
    cut: float = 0.0

    def soften(self, parameters: Floats, temperature: float) -> Floats:
        """Return the table of soft predictions, by true class."""
        return self.table.correct(self.table.judged.soft_confusion(at_cut(parameters, self.cut), temperature))

    def slopes(self, soft: Floats, pulls: Floats) -> Floats:
        """Return the derivative of all gaps, each times its pull, by the table of judged labels."""
        signed = pulls.sum(axis=2) - pulls.sum(axis=1)
        found = np.zeros_like(soft)
        found[:, : self.named_groups] = self.rates.derivative(soft[:, : self.named_groups], signed)
        return self.table.uncorrect(found)

    def measure(self, soft: Floats) -> tuple[Floats, Floats]:
        """Return the rates, and how many are counted, each (rates, groups)."""
        return self.rates.of(soft[:, : self.named_groups])

    def minimise(
        self, start: Floats, metric: tuple[Floats, Floats], lagrangian: Lagrangian, most: int
    ) -> Floats:
        """Minimise the loss under constraints; return the parameters in the units of the features.

        Parameters
        ----------
        start : array of shape (outputs, d + 1)
        metric : pair of arrays
            The factored curvature of the loss, see :meth:`~fairsieve.training.newton.Newton.factor`.
        lagrangian : Lagrangian
        most : int
            Steps of L-BFGS.
        """
        newton, (lower, scale), temperature = self.newton, metric, lagrangian.temperature
        turn = np.stack([solve_triangular(each, np.eye(len(each)), lower=True) for each in lower])
        ones, total, shape = np.ones(self.newton.masses.shape), newton.total, start.shape
        unit = scale * np.sqrt(total)  # so that the curvature of the *mean* loss is the identity

        def straighten(turned: Floats) -> Floats:
            back = turned.reshape(shape)[:, None] @ turn  # by the transposed factor of each output
            return np.asarray((back.ravel() * unit).reshape(shape))

        def evaluate(turned: Floats) -> tuple[float, Floats]:
            at = straighten(turned)
            parameters = newton.raw(at)
            known = self.train.derivatives(parameters, ones)
            soft = self.soften(parameters, temperature)
            pulls = lagrangian.pulls(*self.measure(soft))
            shown = at_cut(parameters, self.cut)
            pulled = self.table.judged.soft_gradient(shown, self.slopes(soft, pulls), temperature)
            gradient = newton.gradient(known.gradient, at) / total
            gradient = gradient + newton.gradient(pulled, np.zeros_like(at))
            value = (known.value + newton.penalty(at)) / total + lagrangian.penalty(pulls)
            return value, (turn @ (gradient.ravel() * unit).reshape(shape)[:, :, None]).ravel()

        turned = ((newton.standardise(start).ravel() / unit).reshape(shape)[:, None] @ lower).ravel()
        options: Any = {"maxiter": most, "gtol": GRADIENT, "ftol": DECREASE}
        found = minimize(evaluate, turned, jac=True, method="L-BFGS-B", options=options)
        return newton.raw(straighten(found.x))


def at_cut(parameters: Floats, cut: float) -> Floats:
    """Shift the intercept of two classes so that the second is predicted above a score of 0.

    >>> at_cut(np.array([[2.0, 1.0]]), 0.5).tolist()
    [[2.0, 0.5]]
    """
    if cut == 0.0:
        return parameters
    shifted = parameters.copy()
    shifted[:, -1] -= cut
    return shifted


# ---- Points: compromises between accuracy and equal rates, what they are made of, and which is the best bargain

WORTH = 10.0  # times its size in gap: what a point of accuracy is worth; 8 to 40 choose alike
SURE = 1.645  # standard errors: one-sided, at 95 %


class Model(NamedTuple):
    """A linear model in training.

    Attributes
    ----------
    parameters : array of shape (outputs, d + 1)
    curvature : callable, optional
        Of its last step, to be used again.
    decrement : float
        Decrease of the mean loss that its last training promised.
    limit : LossLimit
        Up to which loss rows were selected to train it on.
    masses : array of shape (classes, groups)
        Weights of those rows.
    """

    parameters: Floats
    curvature: Any
    decrement: float
    limit: LossLimit
    masses: Floats


@dataclass(frozen=True, eq=False)
class Point(State):
    """A compromise: the model of all rows and, with folds, those that left one out, which are judged then.

    Attributes
    ----------
    counts : array of shape (classes, groups, classes)
        What is predicted, by true class.
    effective : array of shape (classes, groups)
        How much more each cell pulled than its rows would by themselves; below 0, towards another class.
    lagrangian : Lagrangian, optional
        What gaps cost, where they were constrained.
    """

    counts: Floats
    models: list[Model]
    effective: Floats
    shift: Any = 0.0  # of the features that the models were trained on
    cut: float = 0.0  # of two classes, the score from which on the second is predicted
    lagrangian: Lagrangian | None = None

    @property
    def linear(self) -> LinearModel:
        """The model of all rows, for features that are not shifted.

        Of many classes only the differences between intercepts matter: their mean is 0.
        """
        parameters = self.models[0].parameters.copy()
        parameters[:, -1] -= (parameters[:, :-1] * self.shift).sum(axis=1)
        if len(parameters) > 1:
            parameters[:, -1] -= parameters[:, -1].mean()
        return LinearModel(parameters[:, :-1], parameters[:, -1])


@dataclass(frozen=True, eq=False)
class Together:
    """What the plain model and another one predict for the same rows.

    Attributes
    ----------
    seen : array of shape (classes, groups, plain, other)
        How often, by the label that rows are judged by.
    to_true : array of shape (groups, classes, classes), optional
        As that of a :class:`~fairsieve.training.rows.Table`.
    """

    seen: Floats
    to_true: Floats | None = None

    @cached_property
    def counts(self) -> Floats:
        """The same by true class. Rare ones may come out below 0; raised to 0, they would speak for one side alone."""
        return self.seen if self.to_true is None else np.einsum("zji,jz...->iz...", self.to_true, self.seen)

    def add_squares(self, added: Floats) -> float:
        """Add up squares of what each row adds, by its true class, where that follows from its label."""
        by_label = added if self.to_true is None else np.einsum("zji,iz...->jz...", self.to_true, added)
        return float((self.seen * by_label**2).sum())

    def take_groups(self, order: Any) -> Together:
        """Return the groups in another order."""
        return Together(self.seen[:, order], None if self.to_true is None else self.to_true[order])


@dataclass(frozen=True, eq=False)
class Solution:
    """The compromises between accuracy and equal rates.

    Attributes
    ----------
    points : list of Point
        Those that no other beats in both, from the widest gap to the narrowest.
    natural : Point
        The model with natural ratios.
    plain : Point
        Plain logistic regression on the labels as given.
    chosen : Point
        The one that was asked for.
    tolerance : float
        The gap that might remain.
    stopped : {"met", "cost", "unreachable", "limit", "interrupted"}
    n_iter : int
    held_out : bool
        Whether accuracies and gaps were measured on rows that the models did not see.
    together : list of Together
        For each point, what the plain model and it predict.
    is_plain : bool, optional
        Whether the plain model is to be stored; None where nothing but the comparison with it says so.
    """

    points: list[Point]
    natural: Point
    plain: Point
    chosen: Point
    tolerance: float
    stopped: Stopped
    n_iter: int
    held_out: bool
    together: list[Together]
    is_plain: bool | None = None

    @property
    def stored(self) -> Point:
        """The point that is stored: the plain model, where the one that was chosen is no better."""
        gain, error = accuracy_gain(self.together[self.points.index(self.chosen)])
        return self.chosen if is_better(self.plain.gap - self.chosen.gap, gain, error) else self.plain


def front(points: list[Point]) -> list[Point]:
    """Return the points that no other beats in both accuracy and gap, from the widest gap to the narrowest."""
    kept: list[Point] = []
    for point in sorted(points, key=lambda point: (point.gap, -point.accuracy)):
        if not kept or point.accuracy > kept[-1].accuracy:
            kept.append(point)
    return kept[::-1]


def is_better(narrowed: float, gain: float, error: float) -> bool:
    """Say whether a model is better than the plain one: fairer, or surely more accurate by more than it is less fair.

    >>> is_better(0.01, -0.02, 0.0), is_better(-0.01, 0.02, 0.002), is_better(-0.01, 0.02, 0.01)
    (True, True, False)
    """
    return narrowed > 0 or gain - SURE * error > -narrowed


def choose_bargain(
    points: Sequence[Trained], together: Sequence[Together], tolerance: float, settings: SolverSettings
) -> Trained:
    """Choose a point: by the tolerance that was named or, where none was, the best bargain that does no harm.

    ``together`` is what the plain model and each point predict. Labels that are wrong in one cell only hide what a fair
    model gains there, and the rows cannot tell which of two accuracies is the true one: that of the labels, or that
    where every group has the same share of each class. What a point costs is known up to its standard error alone, and
    the best bargain of many looks better than it is. So each counts as a standard error worse than it looks, and what
    may be lost at most is compared with the limit.
    """
    if settings.tolerance is not None:
        return points[choose_point(points, tolerance)]
    most = settings.max_accuracy_loss
    doubt = 1.0
    if most is None or settings.clean_ratio < 1.0:  # wrong labels hide what is lost
        most, doubt = np.inf, 0.0
    bargains: list[tuple[float, int, Trained]] = []
    for point, both in zip(points, together, strict=True):
        gain, error = max(accuracy_gain(both), accuracy_gain(both, alike(both.counts.sum(axis=(2, 3)))))
        if SURE * error - gain <= most:
            value = max(point.gap, tolerance) - WORTH * (gain - doubt * error)
            bargains.append((value, len(bargains), point))
    if not bargains:
        return max(points, key=lambda point: point.accuracy)
    return min(bargains, key=lambda each: each[:2])[2]


def alike(cells: Floats) -> Floats:
    """Return what rows of each cell count if every group had the same share of each class, (classes, groups).

    >>> alike(np.array([[2.0, 1.0], [1.0, 2.0]])).tolist()
    [[0.75, 1.5], [1.5, 0.75]]
    """
    cells = np.maximum(cells, 0.0)
    # Where flips are undone, a cell may have nobody left: its rows say nothing.
    return np.divide(expected_counts(cells), cells, out=np.zeros_like(cells), where=cells >= 1.0)


def accuracy_gain(together: Together, weights: Floats | float = 1.0) -> tuple[float, float]:
    """Return how much more often the second of two models is right, and the standard error of that.

    ``weights``, (classes, groups), say what a row of each cell counts.

    >>> both = Together(np.array([[[[90.0, 0.0], [0.0, 10.0]]], [[[10.0, 10.0], [0.0, 80.0]]]]))
    >>> gain, error = accuracy_gain(both)
    >>> round(gain, 3), round(error, 4)
    (0.05, 0.0154)
    """
    shape = together.seen.shape
    labels, total = np.arange(shape[0]), max(float(together.seen.sum()), 1e-300)
    right = (labels[:, None] == labels).astype(float)
    change = right[:, None, None, :] - right[:, None, :, None]  # −1, 0 or 1 for each row
    change = change * np.broadcast_to(weights, shape[:2])[:, :, None, None]
    mean = float((together.counts * change).sum()) / total
    return mean, float(np.sqrt(max(together.add_squares(change) / total - mean**2, 0.0) / total))


def strip(models: list[Model]) -> list[Model]:
    """Return models without their curvature, which holds on to the rows."""
    return [model._replace(curvature=None) for model in models]
