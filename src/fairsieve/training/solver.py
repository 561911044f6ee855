"""The fair linear solver: from a cleaned model towards equal rates, until the widest gap is within a tolerance.

It starts from the model with the natural ratios, and shifts weight between groups as
:mod:`~fairsieve.training.ratio_search` says. Every point of the way is a compromise between that model and the
fair one.

With a clean ratio below 1 every model is trained on the low losses of the one before (Algorithm 1, whose budgets,
taken as continuous, end at one loss for all cells).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fairsieve.notions import find_notion
from fairsieve.samples import draw_rows
from fairsieve.selection.search import budget_used
from fairsieve.training.linear_model import LinearModel
from fairsieve.training.linear_rows import EVERYTHING, LinearRows, LossLimit
from fairsieve.training.newton import Newton
from fairsieve.training.ratio_search import RatioSearch, SolverSettings, State, Stopped, choose_point
from fairsieve.training.threads import one_thread

Floats = NDArray[np.float64]

PRECISION = 1e-5  # decrease of the mean loss that a model on the way may still promise
SETTLED = 1e-6  # decrease of the mean loss that another selection promises when cleaning is done
BINS, LEVELS = 1024, 4  # a loss is located among 1024⁴ places
MANY, PART = 60_000, 50_000  # of more rows than this, the way is found on a part


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
    """A point of the way: the model of all rows and, with folds, those that left one out, which are judged then."""

    models: list[Model]
    shift: Any = 0.0  # of the features that the models were trained on

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
class Solution:
    """The way from the model with natural ratios to the fair one.

    Attributes
    ----------
    points : list of Point
    plain : Point
        Plain logistic regression, judged as the others are, on the labels as given.
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

    def effective_weights(self, point: Point) -> Floats:
        """Return the share of the training weight that each cell had, divided by its share of the rows."""
        masses, given = point.models[0].masses, self.plain.models[0].masses
        shares = point.ratios * masses.sum(axis=1, keepdims=True) / max(float(masses.sum()), 1e-300)
        expected = given / max(float(given.sum()), 1e-300)
        return np.asarray(np.divide(shares, expected, out=np.ones_like(shares), where=given > 0))


@one_thread("blas")
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
        The fold of each row: then accuracies and gaps are those of models that did not see the rows. Very many rows
        need none.
    """
    if rows.samples <= MANY:
        return _Search(rows, plain_rows, settings, folds).run(None)
    part = draw_rows(rows.samples, PART)
    coarse = solve(rows.take(part), plain_rows.take(part), settings)
    return _Search(rows, plain_rows, settings, None).run(coarse)


class _Search(RatioSearch[Point]):
    """The solver at work."""

    def __init__(
        self,
        rows: LinearRows,
        plain_rows: LinearRows,
        settings: SolverSettings,
        folds: NDArray[np.int64] | None,
    ) -> None:
        judged = rows if settings.correct is None else plain_rows
        self.newtons, self.judges, labelled = [Newton(rows)], [judged], [plain_rows]
        if folds is not None:
            numbers = np.unique(folds)
            inside = [np.flatnonzero(folds != number) for number in numbers]
            self.newtons += [Newton(rows.take(part)) for part in inside]
            labelled += [plain_rows.take(part) for part in inside]
            self.judges = [judged.take(np.flatnonzero(folds == number)) for number in numbers]
        self.first = 0 if folds is None else 1  # of the models that are judged
        self.plain_newtons = self.newtons if plain_rows is rows else [Newton(each) for each in labelled]
        self.points: list[Point] = []
        super().__init__(_shares(self.newtons[0].masses), settings)

    def run(self, coarse: Solution | None) -> Solution:
        """Walk from the model with natural ratios to the end of the way, or on from where a part of the rows led."""
        start = None if coarse is None else coarse.plain.models[0].parameters
        plain = [self.train_plainly(newton, start) for newton in self.plain_newtons]
        try:
            stopped = self.walk(self.clean(plain) if coarse is None else self.go_on(coarse))
        except KeyboardInterrupt:
            if not self.points:
                raise
            stopped = "interrupted"
        chosen = choose_point(self.points, self.tolerance)
        pairs = zip(self.judges, plain[self.first :], self.points[chosen].models[self.first :], strict=True)
        tables = [rows.confusion(one.parameters, other.parameters) for rows, one, other in pairs]
        return Solution(
            self.points,
            self.measure(plain, _shares(plain[0].masses)),
            chosen,
            self.tolerance,
            self.correct(np.sum(tables, axis=0)),
            stopped,
            self.done,
            bool(self.first),
        )

    def train_plainly(self, newton: Newton, start: Floats | None = None, most: int = 100) -> Model:
        """Train on all rows as they come."""
        step = newton.minimise(np.ones_like(self.natural), start=start, most=most)
        return Model(step.parameters, None, step.decrement, EVERYTHING, newton.masses)

    def go_on(self, coarse: Solution) -> Point:
        """Measure the way on a part of the rows again, on all, and train its last model on them."""
        self.done = coarse.n_iter
        for point in coarse.points[: coarse.chosen]:
            _, masses = self.find_limit(self.newtons[0], point.models[0].parameters, point.ratios)
            self.record(self.measure([point.models[0]._replace(masses=masses)], point.ratios))
        end = coarse.points[coarse.chosen]
        self.count()
        return self.train(end.models, end.ratios, most=5)

    def clean(self, plain: list[Model]) -> Point:
        """Find the model with natural ratios: the plain one or, of low losses alone, where the selection settles."""
        if self.settings.clean_ratio >= 1.0:
            return self.train(plain, self.natural, most=100)
        # The first step from a model that knows nothing counts labels, however far they are from the boundary: an
        # optimum would have learnt wrong labels too, and would select them.
        start = [self.train_plainly(newton, most=1) for newton in self.newtons]
        state = self.train(start, self.natural, most=1)
        while state.models[0].decrement > SETTLED and self.done < self.settings.max_iter:
            self.count()
            state = self.train(_without_curvature(state.models), self.natural, most=1)
        return state

    def train_at(self, state: Point, ratios: Floats) -> Point:
        """Take a few steps with other ratios."""
        return self.train(state.models, ratios, most=3)

    def train(self, models: list[Model], ratios: Floats, most: int) -> Point:
        """Select by the losses of the models, and take Newton steps under the weights of Eq. 3."""
        found = []
        for newton, (start, curvature, *_) in zip(self.newtons, models, strict=True):
            limit, masses = self.find_limit(newton, start, ratios)
            table = ratios * masses.sum(axis=1, keepdims=True) / np.maximum(masses, 1e-300)
            rows = newton.rows.select(start, limit)
            step = newton.minimise(np.where(masses > 0, table, 0.0), rows, start, curvature, most, PRECISION)
            found.append(Model(*step, limit, masses))
        return self.measure(found, ratios)

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
        before, after = _used(np.stack([below, below + counts], axis=-1), ratios).T
        rising = after > before
        room = np.divide(budget - before, after - before, out=np.ones_like(before), where=rising)
        share = float(np.clip(room.min(), 0.0, 1.0))
        return LossLimit(low, high, share), below + share * counts

    def measure(self, models: list[Model], ratios: Floats) -> Point:
        """Measure accuracy and gaps.

        A notion that needs no labels is judged on all rows, the others on the rows that are selected, where wrong
        labels are left out: those that stay are believed.
        """
        settings, tables = self.settings, []
        for rows, model in zip(self.judges, models[self.first :], strict=True):
            by_labels = find_notion(settings.fairness).needs_labels
            judged = rows.select(model.parameters, model.limit) if by_labels else rows
            tables.append(judged.confusion(model.parameters))
        measured = settings.measure(self.correct(np.sum(tables, axis=0)))
        return Point(ratios, *measured, models, self.newtons[0].rows.shift)

    def correct(self, table: Floats) -> Floats:
        """Count by true class, where it is known how often labels are flipped."""
        return table if self.settings.correct is None else self.settings.correct(table)

    def record(self, state: Point) -> None:
        self.points.append(replace(state, models=_without_curvature(state.models)))


def _without_curvature(models: list[Model]) -> list[Model]:
    return [model._replace(curvature=None) for model in models]


def _shares(masses: Floats) -> Floats:
    """Return the share of each class that each group has."""
    return np.asarray(masses / np.maximum(masses.sum(axis=1, keepdims=True), 1e-300))


def _used(counts: Floats, ratios: Floats) -> Floats:
    """Return how much of the budget each constraint of Eq. 7 uses, for counts of shape (classes, groups, …)."""
    total = counts.sum(axis=(0, 1))
    of_class = counts.sum(axis=1, keepdims=True)
    cells = budget_used(total, counts, ratios[..., None], of_class)
    return np.concatenate([total[None], cells.reshape(-1, *total.shape)])
