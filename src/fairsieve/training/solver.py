"""The fair linear solver: from the plain model towards equal rates, until the widest gap is within a tolerance.

It starts from the model with the natural ratios, and shifts weight between groups as
:mod:`~fairsieve.training.ratio_search` says. Every point of the way is a compromise between the plain model and the
fair one.

With a clean ratio below 1 every model is trained on the low losses of the one before (Algorithm 1, whose budgets,
taken as continuous, end at one loss for all cells).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fairsieve.metrics import accuracy_from_table
from fairsieve.training.linear_rows import EVERYTHING, LinearRows, LossLimit
from fairsieve.training.newton import Newton
from fairsieve.training.ratio_search import Gap, RatioSearch, Stopped, choose_point, find_gaps
from fairsieve.training.threads import one_blas_thread

__all__ = ["Point", "Solution", "SolverSettings", "fit_plain", "solve"]

Floats = NDArray[np.float64]

PRECISION = 1e-5  # decrease of the mean loss that a model on the way may still promise
SETTLED = 1e-6  # decrease of the mean loss that another selection promises when cleaning is done
BINS, LEVELS = 1024, 4  # a loss is located among 1024⁴ places
MANY, PART = 60_000, 50_000  # of more rows than this, the way is found on a part


def _ignore(done: int) -> None:
    """Report nothing."""


@dataclass(frozen=True, kw_only=True)
class SolverSettings:
    """What to solve.

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
    report: Callable[[int], None] = field(default=_ignore, repr=False)


class Point(NamedTuple):
    """A model on the way.

    Attributes
    ----------
    models : list of array
        The parameters of the model of all rows and, with folds, of those that left one out.
    accuracy, gap : float
        On the rows that it is judged on: held-out ones, with folds.
    selected : float
        Weight of the rows that it was trained on.
    effective_weights : array of shape (classes, groups)
        The share of the training weight that each cell had, divided by its share of the rows.
    limit : LossLimit
    """

    models: list[Floats]
    ratios: Floats
    accuracy: float
    gap: float
    selected: float
    effective_weights: Floats
    limit: LossLimit


@dataclass(frozen=True, eq=False)
class Solution:
    """The way from the model with natural ratios to the fair one.

    Attributes
    ----------
    points : list of Point
    plain : Point
        Plain logistic regression, judged as the others are.
    chosen : int
        The place of the model that was asked for.
    tolerance : float
        The gap that might remain.
    together : array of shape (classes, groups, classes, classes)
        How often the plain model and that one predict which classes together.
    stopped : {"met", "exhausted", "limit", "interrupted"}
    n_iter : int
    held_out : bool
        Whether accuracies and gaps were measured on rows that the models did not see.
    """

    points: list[Point]
    plain: Point
    chosen: int
    tolerance: float
    together: Floats
    stopped: Stopped
    n_iter: int
    held_out: bool


@one_blas_thread()
def fit_plain(rows: LinearRows, start: Floats | None = None) -> tuple[Floats, bool]:
    """Fit plain logistic regression; return its parameters and whether it converged."""
    newton = Newton.of(rows)
    if start is None and rows.samples > MANY:
        start = fit_plain(rows.take(_draw(rows.samples)))[0]
    step = newton.minimise(np.ones(rows.shape), start=start)
    return step.parameters, step.converged


@one_blas_thread()
def solve(
    rows: LinearRows, plain_rows: LinearRows, settings: SolverSettings, folds: NDArray[np.int64] | None = None
) -> Solution:
    """Find the way from the model with natural ratios to the fair one.

    Parameters
    ----------
    rows : LinearRows
    plain_rows : LinearRows
        The same rows with their labels as given, for the plain model.
    folds : integer array, optional
        The fold of each row: then accuracies and gaps are those of models that did not see the rows.
    """
    search = _Search(rows, plain_rows, settings, folds)
    if rows.samples > MANY:
        part = _draw(rows.samples)
        coarse = solve(rows.take(part), plain_rows.take(part), settings)
        return search.refine(coarse)
    return search.run()


def _draw(samples: int) -> NDArray[np.int64]:
    """Draw a part of very many rows, ascending; always the same ones."""
    return np.sort(np.random.default_rng(0).choice(samples, PART, replace=False, shuffle=False))


class _State(NamedTuple):
    """The models in training, one for all rows and one for each fold, and how they do."""

    models: list[Floats]
    limits: list[LossLimit]
    curvatures: list[Any]
    ratios: Floats
    masses: Floats  # weights of the rows that were trained on, by class and group
    accuracy: float
    gaps: list[Gap]
    decrement: float

    @property
    def gap(self) -> float:
        return self.gaps[0].size if self.gaps else 0.0


class _Search(RatioSearch[_State]):
    """The solver at work."""

    def __init__(
        self,
        rows: LinearRows,
        plain_rows: LinearRows,
        settings: SolverSettings,
        folds: NDArray[np.int64] | None,
    ) -> None:
        self.settings, self.rows = settings, rows
        judged = rows if settings.correct is None else plain_rows
        self.newtons, self.judges, plain = [Newton.of(rows)], [judged], [plain_rows]
        if folds is not None:
            numbers = np.unique(folds)
            inside = [np.flatnonzero(folds != number) for number in numbers]
            self.newtons += [Newton.of(rows.take(part)) for part in inside]
            plain += [plain_rows.take(part) for part in inside]
            self.judges = [judged.take(np.flatnonzero(folds == number)) for number in numbers]
        self.held_out = folds is not None
        self.plain_rows = plain
        self.plain_newton = self.newtons[0] if plain_rows is rows else Newton.of(plain_rows)
        self.points: list[Point] = []
        natural = _shares(self.newtons[0].masses)
        super().__init__(natural, settings.fairness, settings.tolerance, settings.max_iter)

    def run(self) -> Solution:
        """Walk from the model with natural ratios to the end of the way."""
        plain = [fit_plain(rows)[0] for rows in self.plain_rows]
        try:
            stopped = self.walk(self.clean(plain))
        except KeyboardInterrupt:
            if not self.points:
                raise
            stopped = "interrupted"
        return self.solution(plain, stopped)

    def refine(self, coarse: Solution) -> Solution:
        """Go on, on all rows, from where the way on a part of them ended."""
        plain = [fit_plain(self.plain_rows[0], coarse.plain.models[0])[0]]
        self.done = coarse.n_iter
        try:
            for point in coarse.points[: coarse.chosen]:
                _, masses = self.find_limit(self.newtons[0], point.models[0], point.ratios)
                self.record(self.measure(point.models, [point.limit], [None], point.ratios, masses, 0.0))
            end = coarse.points[coarse.chosen]
            self.count()
            stopped = self.walk(self.train(end.models, end.ratios, [None], most=5))
        except KeyboardInterrupt:
            if not self.points:
                raise
            stopped = "interrupted"
        return self.solution(plain, stopped)

    def solution(self, plain: list[Floats], stopped: Stopped) -> Solution:
        """Judge the plain model too, beside the point that was asked for."""
        masses = self.plain_newton.masses
        everything = [EVERYTHING] * len(plain)
        state = self.measure(plain, everything, [None] * len(plain), _shares(masses), masses, 0.0)
        chosen = choose_point(self.points, self.tolerance)
        first = 1 if self.held_out else 0
        pairs = zip(self.judges, plain[first:], self.points[chosen].models[first:], strict=True)
        together = self.correct(np.asarray(sum(rows.confusion(one, other) for rows, one, other in pairs)))
        return Solution(
            self.points,
            self.as_point(state),
            chosen,
            self.tolerance,
            together,
            stopped,
            self.done,
            self.held_out,
        )

    def clean(self, plain: list[Floats]) -> _State:
        """Find the model with natural ratios: the plain one or, of low losses alone, where the selection settles."""
        if self.settings.clean_ratio >= 1.0:
            return self.train(plain, self.natural, [None] * len(plain), most=100)
        # The first step from a model that knows nothing counts labels, however far they are from the boundary: an
        # optimum would have learnt wrong labels too, and would select them.
        start = [newton.minimise(np.ones_like(self.natural), most=1).parameters for newton in self.newtons]
        state = self.train(start, self.natural, [None] * len(start), most=1)
        while state.decrement > SETTLED and self.done < self.settings.max_iter:
            self.count()
            state = self.train(state.models, self.natural, [None] * len(start), most=1)
        return state

    def train_at(self, state: _State, ratios: Floats) -> _State:
        """Take a few steps with other ratios."""
        return self.train(state.models, ratios, state.curvatures, most=3)

    def train(self, models: list[Floats], ratios: Floats, curvatures: list[Any], most: int) -> _State:
        """Select by the losses of the models, and take Newton steps under the weights of Eq. 3."""
        found: list[Floats] = []
        limits, kept, trained, decrement = [], [], self.newtons[0].masses, 0.0
        for newton, model, curvature in zip(self.newtons, models, curvatures, strict=True):
            limit, masses = self.find_limit(newton, model, ratios)
            table = ratios * masses.sum(axis=1, keepdims=True) / np.maximum(masses, 1e-300)
            step = newton.minimise(
                np.where(masses > 0, table, 0.0),
                newton.rows.select(model, limit),
                model,
                curvature,
                most,
                PRECISION,
            )
            if not found:
                trained, decrement = masses, step.decrement
            found.append(step.parameters)
            limits.append(limit)
            kept.append(step.curvature)
        return self.measure(found, limits, kept, ratios, trained, decrement)

    def find_limit(self, newton: Newton, model: Floats, ratios: Floats) -> tuple[LossLimit, Floats]:
        """Find up to which loss samples are selected (Algorithm 1), and the weight of each cell below it."""
        if self.settings.clean_ratio >= 1.0:
            return EVERYTHING, newton.masses
        budget = self.settings.clean_ratio * float(newton.masses.sum())
        low, high, below = 0.0, 1.0 + 1e-9, np.zeros_like(ratios)
        counts = below
        for _ in range(LEVELS):
            bins = newton.rows.loss_counts(model, low, high, BINS)
            sums = below[..., None] + bins.cumsum(axis=-1)
            broken = _used(sums, ratios).max(axis=0) > budget * (1 + 1e-12) + 1e-9
            if not broken[-1]:
                return EVERYTHING, newton.masses
            place = int(broken.argmax())
            below, counts = (sums[..., place - 1] if place else below), bins[..., place]
            width = (high - low) / BINS
            low, high = low + place * width, low + (place + 1) * width
        before, after = (
            _used(below[..., None], ratios)[:, 0],
            _used((below + counts)[..., None], ratios)[:, 0],
        )
        rising = after > before
        room = np.divide(budget - before, after - before, out=np.ones_like(before), where=rising)
        share = float(np.clip(room.min(), 0.0, 1.0))
        return LossLimit(low, high, share), below + share * counts

    def measure(
        self,
        models: list[Floats],
        limits: list[LossLimit],
        curvatures: list[Any],
        ratios: Floats,
        masses: Floats,
        decrement: float,
    ) -> _State:
        """Measure accuracy and gaps.

        Demographic parity needs no labels, and is judged on all rows. The other notions are judged on the rows that
        are selected, where wrong labels are left out: those that stay are believed.
        """
        first = 1 if self.held_out else 0
        table = self.judge(self.judges, models[first:], limits[first:])
        accuracy = float(accuracy_from_table(table))
        return _State(models, limits, curvatures, ratios, masses, accuracy, self.find_gaps(table), decrement)

    def judge(self, judges: list[LinearRows], models: list[Floats], limits: list[LossLimit]) -> Floats:
        """Count the predictions of the rows that models are judged on."""
        by_labels = self.settings.fairness != "demographic_parity"
        trios = zip(judges, models, limits, strict=True)
        return self.correct(
            np.asarray(
                sum(
                    (rows.select(model, limit) if by_labels else rows).confusion(model)
                    for rows, model, limit in trios
                )
            )
        )

    def correct(self, table: Floats) -> Floats:
        """Count by true class, where it is known how often labels are flipped."""
        return table if self.settings.correct is None else self.settings.correct(table)

    def find_gaps(self, table: Floats) -> list[Gap]:
        settings = self.settings
        return find_gaps(table, settings.fairness, settings.positive, settings.named_groups)

    def record(self, state: _State) -> None:
        self.points.append(self.as_point(state))

    def as_point(self, state: _State) -> Point:
        """Return what is kept of a state."""
        weight = (
            state.ratios * state.masses.sum(axis=1, keepdims=True) / max(float(state.masses.sum()), 1e-300)
        )
        given = self.plain_newton.masses / max(float(self.plain_newton.masses.sum()), 1e-300)
        effective = np.divide(weight, given, out=np.ones_like(weight), where=given > 0)
        return Point(
            models=state.models,
            ratios=state.ratios,
            accuracy=state.accuracy,
            gap=state.gap,
            selected=float(state.masses.sum()),
            effective_weights=effective,
            limit=state.limits[0],
        )

    def count(self) -> None:
        super().count()
        self.settings.report(self.done)


def _shares(masses: Floats) -> Floats:
    """Return the share of each class that each group has."""
    return np.asarray(masses / np.maximum(masses.sum(axis=1, keepdims=True), 1e-300))


def _used(counts: Floats, ratios: Floats) -> Floats:
    """Return how much of the budget each constraint of Eq. 7 uses, for counts of shape (classes, groups, …)."""
    total = counts.sum(axis=(0, 1))
    of_class = counts.sum(axis=1, keepdims=True)
    cells = total + counts - ratios[..., None] * of_class
    return np.concatenate([total[None], cells.reshape(-1, *total.shape)])
