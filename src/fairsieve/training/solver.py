"""The fair linear solver: from a cleaned model towards equal rates, until the widest gap is within a tolerance.

Points of two kinds are compromises between accuracy and equal rates:

1. *Weights* are moved between the cells, as :mod:`~fairsieve.training.compromises` says, from the model with natural
   ratios or from the one under which class and group are independent (reweighing [1]_). This is the paper's way, and
   the one that survives labels that are wrong on purpose.
2. *Gaps of smoothed rates* are constrained ever more tightly, see :mod:`~fairsieve.training.compromises`, where a
   tolerance was named that weights do not reach, as where the group is no feature.

Both are judged by the same rates of the same rows, with labels as they are believed, by models that did not see a row
where rows are few, as are models between two that were found. The path keeps the points that no other beats in both
accuracy and gap.

With a clean ratio below 1 every model of the first kind is trained on the low losses of the one before (Algorithm 1,
whose budgets, taken as continuous, end at one loss for all cells); a step is judged by what it selects, as in the
paper, and the points of the path by all rows.

.. [1] Kamiran and Calders, Data preprocessing techniques for classification without discrimination, 2012.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations, pairwise
from typing import Any, cast

import numpy as np

from fairsieve.samples import draw_rows
from fairsieve.selection.cells import Flags, Floats, Integers, divide
from fairsieve.selection.search import budget_used
from fairsieve.training.compromises import (
    TOLERANCE,
    Budget,
    Constrained,
    Lagrangian,
    Model,
    Point,
    Solution,
    SolverSettings,
    Stopped,
    Together,
    at_cut,
    choose_bargain,
    choose_point,
    front,
    search_ratios,
    strip,
)
from fairsieve.training.newton import Newton, Step
from fairsieve.training.rows import EVERYTHING, LossLimit, RowsInMemory, Table, one_thread

PRECISION = 1e-5  # decrease of the mean loss that a model on the way may still promise
SETTLED = 1e-6  # decrease of the mean loss that another selection promises when cleaning is done
BINS, LEVELS = 1024, 4  # a loss is located among 1024⁴ places
MANY, PART = 12_000, 10_000  # of more rows than this, the way is found on a part

NEARLY = 0.005  # a tolerance of 0 is not approached by targets below this
TIGHTER = 0.6  # each target is this part of the one before
SOFTEST, SHARPEST, SHARPER = 0.5, 0.12, 0.7  # temperature of predictions, in spreads of the scores
STIFFEST, STIFFER, STIFFNESS = 60.0, 1.6, 2.0  # the growth of ρ
STEPS, FOLD_STEPS = 40, 8  # of L-BFGS: a model that leaves out a fold is close to that of all rows
BLENDINGS, BLENDED, BETWEEN = 2, 8, 7  # rounds, models, and points between two of them
OUTER, LAST_OUTER = 2, 6  # updates of the multipliers for each target, and for the last ones


@dataclass(frozen=True, eq=False)
class _Side:
    """Rows to train on: all of them, or without a fold; and the rows that models of them are judged on."""

    table: Table
    shown: Table
    ridge: float
    like: Newton | None = None

    @cached_property
    def plain(self) -> Newton:
        return Newton(self.table.given, self.ridge, self.like)

    @cached_property
    def newton(self) -> Newton:
        if self.table.given is self.table.train:
            return self.plain
        return Newton(self.table.train, self.ridge, self.plain)


@dataclass(frozen=True, eq=False)
class Folds:
    """The fold of each row, and which rows are trained on without each fold, in their order.

    Attributes
    ----------
    deals : list of integer arrays of shape (n,)
        Where there are several, what is measured is their mean.
    kept : list of boolean arrays of shape (n,), optional
        Of the first deal, if it is the only one.
    """

    deals: list[Integers]
    kept: list[Flags] | None = None

    def take(self, rows: Integers) -> Folds:
        return Folds([each[rows] for each in self.deals], self.kept and [each[rows] for each in self.kept])

    def outside(self) -> list[Integers]:
        """Return the rows of each fold, deal by deal."""
        return [np.flatnonzero(deal == number) for deal in self.deals for number in np.unique(deal)]

    def split(self, table: Table) -> Iterator[tuple[Table, Table]]:
        """Yield, for each fold, the rows to train on without it, and those of it."""
        for place, outside in enumerate(self.outside()):
            train = table.train
            if self.kept is not None:
                believed = cast("RowsInMemory", table.believed)
                train = believed.with_weights(believed.host_weights * self.kept[place])
            inside = np.delete(np.arange(len(self.deals[0])), outside)
            yield replace(table, train=train).take(inside), table.take(outside)


@one_thread("blas")
def solve(table: Table, settings: SolverSettings, folds: Folds | None = None, ridge: float = 1.0) -> Solution:
    """Find compromises between accuracy and equal rates, and choose one.

    Parameters
    ----------
    table : Table
    settings : SolverSettings
    folds : Folds, optional
        Then accuracies and gaps are those of models that did not see the rows. Very many rows
        need none.
    ridge : float
    """
    if table.judged.samples <= MANY:
        return _Solver(table, settings, folds, ridge).run()
    part = draw_rows(table.judged.samples, PART)
    whole = _Solver(table, settings, None, ridge)
    few = _Solver(table.take(part), settings, folds and folds.take(part), ridge, whole.sides[0].plain)
    coarse = few.run()
    return whole.run(coarse, whole.sides[0].plain.adapt(few.sides[0].plain, Step(*few.plain_models[0][:3])))


def keep_fairer(
    ours: Solution,
    others: Solution,
    here: tuple[Table, Folds | None],
    there: tuple[Table, Folds | None],
    settings: SolverSettings,
    is_better: Callable[[Integers, Integers], bool],
) -> Solution:
    """Return what was found by one judgement of labels, if its gap is no wider than that of the other, by both.

    Otherwise return what the others found, judged by ours, unless ours ``is_better`` all the same.

    Parameters
    ----------
    ours, others : Solution
    here, there : pairs of Table and Folds
        The same rows, as labels are judged for each; those of the others are in memory.
    settings : SolverSettings
    is_better : callable
        Says so by the classes that our model and the other predict for each row.
    """
    # Very many rows have no models that left out a fold, and their sample may have them.
    by_folds = ours.held_out and others.held_out
    judges = [_Solver(table, settings, folds if by_folds else None, 1.0) for table, folds in (here, there)]
    mine, theirs = ([judge.measure_again(each.stored) for judge in judges] for each in (ours, others))
    is_as_fair = all(own.gap <= other.gap for own, other in zip(mine, theirs, strict=True))
    if is_as_fair or is_better(*(judges[1].predict(each[1]) for each in (mine, theirs))):
        return ours
    plain, chosen = (judges[0].measure_again(point) for point in (ours.plain, others.chosen))
    rest = [point for point in ours.points if point.gap > chosen.gap or point.accuracy < chosen.accuracy]
    points = front([*rest, chosen])
    return replace(
        ours,
        points=points,
        chosen=chosen,
        stopped="met" if chosen.gap <= ours.tolerance else "cost",
        together=[judges[0].predict_together(plain, point) for point in points],
        is_plain=others.stored is others.plain,
    )


class _Solver:
    """The solver at work; its columns are measured ``like`` those of another."""

    plain_models: list[Model]

    def __init__(
        self,
        table: Table,
        settings: SolverSettings,
        folds: Folds | None,
        ridge: float,
        like: Newton | None = None,
    ) -> None:
        self.settings, self.sides = settings, [_Side(table, table, ridge, like)]
        for inside, outside in [] if folds is None else folds.split(table):
            self.sides.append(_Side(inside, outside, ridge, self.sides[0].plain))
        self.folds, self.first = folds, 0 if folds is None else 1  # the first of the models that are judged
        self.is_part = like is not None  # of the rows of another
        self.given = table.given.confusion().astype(float)
        self.natural = _shares(self.sides[0].newton.masses)
        self.tolerance = TOLERANCE if settings.tolerance is None else settings.tolerance
        self.budget = Budget(settings.max_iter, settings.report)
        self.found: list[Point] = []
        self.counted: dict[Point, Together] = {}

    def run(self, coarse: Solution | None = None, near: Step | None = None) -> Solution:
        """Find the points, on all rows or from where a part of them led, and choose one."""
        whole = self.sides[0].plain
        models = [self.train_plainly(whole, near)]
        near = Step(*models[0][:3])
        models += [self.train_plainly(side.plain, side.plain.adapt(whole, near)) for side in self.sides[1:]]
        self.plain_models = models
        plain = self.judge(strip(models), _shares(models[0].masses))
        interrupted = False
        try:
            self.explore() if coarse is None else self.go_on(coarse, plain)
        except KeyboardInterrupt:
            if not self.found:
                raise
            interrupted = True
        natural, points = self.found[0], front(self.found)
        together = [self.predict_together(plain, point) for point in points]
        chosen = choose_bargain(points, together, self.tolerance, self.settings)
        stopped: Stopped = "unreachable"
        if interrupted:
            stopped = "interrupted"
        elif chosen.gap <= self.tolerance:
            stopped = "met"
        elif min(point.gap for point in points) <= self.tolerance:
            stopped = "cost"
        elif self.budget.is_spent:
            stopped = "limit"
        elif self.settings.tolerance is None:  # constraints might reach it; nobody asked for what they cost
            stopped = "cost"
        found = points, natural, plain, chosen, self.tolerance, stopped
        return Solution(*found, self.budget.done, bool(self.first), together)

    def explore(self) -> None:
        """Find points of both kinds."""
        start = self.clean()
        natural = self.keep(start)
        self.set_tolerance(natural)
        if natural.gap <= self.tolerance:
            return
        best = start
        for point in self.reweigh(start):
            self.keep(point)
            best = min(best, point, key=lambda each: each.gap)
        self.search(best)
        # A model under constraints fits the very gaps that it is judged by: on larger tables it cost accuracy, and
        # narrowed nothing on new rows that weights did not. So it is for named tolerances that weights do not reach.
        if not self.is_met and self.settings.tolerance is not None:
            self.found.extend(self.constrain(natural))
        self.blend()

    @property
    def is_met(self) -> bool:
        """Whether a point is within the tolerance."""
        return min(point.gap for point in self.found) <= self.tolerance

    def blend(self) -> None:
        """Try models between two others: neighbours or, where a tolerance was named, towards it or accuracy within it.

        Where columns have few values, rates jump as one combination of them passes the boundary. Between two models
        the combinations pass one by one.
        """
        if self.settings.tolerance is None:
            # Where each selected its own rows, none were selected for a model between them. Of very many rows, of which
            # this is a part, models between others change nothing.
            is_tried = self.settings.clean_ratio >= 1.0 and not self.is_part
            for first, second in pairwise(front(self.found)) if is_tried else ():
                self.found.extend(self.mix(first, second, share) for share in (1 / 3, 2 / 3))
            return
        for _ in range(BLENDINGS):
            different = {(point.gap, point.accuracy): point for point in self.found}
            fairest = [different[key] for key in sorted(different)]
            pairs = list(combinations(fairest[:BLENDED], 2))
            if self.is_met:
                best = self.found[choose_point(self.found, self.tolerance)]
                better = [point for point in fairest if point.accuracy > best.accuracy]
                pairs = [(best, point) for point in better[: BLENDED // 2]]
            for first, second in pairs:
                was_met = self.is_met
                for share in np.linspace(0.0, 1.0, BETWEEN + 2)[1:-1]:
                    self.found.append(self.mix(first, second, float(share)))
                if self.is_met and not was_met:
                    break

    def mix(self, first: Point, second: Point, share: float) -> Point:
        """Return the point whose models are between those of two others."""
        both = zip(first.models, second.models, strict=True)
        models = [a._replace(parameters=(1 - share) * a.parameters + share * b.parameters) for a, b in both]
        ratios = (1 - share) * first.ratios + share * second.ratios
        effective = (1 - share) * first.effective + share * second.effective
        return replace(self.judge(models, ratios, effective=effective), lagrangian=second.lagrangian)

    def set_tolerance(self, natural: Point) -> None:
        """Set the tolerance that was not named: two points, or what the rows can tell if that is more."""
        if self.settings.tolerance is None and natural.gaps:
            self.tolerance = max(TOLERANCE, natural.gaps[0].error)

    def keep(self, point: Point) -> Point:
        """Keep a point, judged by all rows."""
        self.found.append(self.judge(strip(point.models), point.ratios, effective=point.effective))
        return self.found[-1]

    def search(self, start: Point) -> None:
        """Move weights between cells from a point on, and keep what is found."""
        asked = self.settings, self.tolerance, self.budget
        for point in search_ratios(start, self.train_at, self.natural, *asked):
            self.keep(point)

    def go_on(self, coarse: Solution, plain: Point) -> None:
        """Measure what was found on a part of the rows again, on all, and train its choice on them."""
        self.budget.done = coarse.n_iter
        for point in [coarse.natural, *coarse.points]:
            model = point.models[0]
            if model.limit is not EVERYTHING:
                masses = self.find_limit(self.sides[0].newton, model.parameters, point.ratios)[1]
                model = model._replace(masses=masses)
            judged = self.judge([model], point.ratios, effective=point.effective)
            self.found.append(replace(judged, lagrangian=point.lagrangian))
        self.set_tolerance(self.found[0])
        points = front(self.found)
        together = [self.predict_together(plain, point) for point in points]
        end = choose_bargain(points, together, self.tolerance, self.settings)
        if end.lagrangian is None:
            self.budget.count()
            models = [end.models[0]._replace(curvature=self.plain_models[0].curvature)]
            state = self.train(models, end.ratios, most=5)
            self.keep(state)
            self.search(state)
        if not self.is_met and self.settings.tolerance is not None:
            able = [point for point in self.found if point.lagrangian is not None]
            fairest = min(able, key=lambda point: point.gap, default=None)
            self.found.extend(self.constrain(self.found[0], fairest if end.lagrangian is None else end))
        if self.settings.tolerance is not None:
            self.blend()

    def train_plainly(self, newton: Newton, near: Step | None) -> Model:
        """Train on all rows as they come, starting near a model of others."""
        start, curvature = (None, None) if near is None else near[:2]
        step = newton.minimise(np.ones_like(newton.masses), start=start, curvature=curvature)
        return Model(*step, EVERYTHING, newton.masses)

    def clean(self) -> Point:
        """Find the model with natural ratios: of all rows or, of low losses alone, where the selection settles."""
        if self.settings.clean_ratio >= 1.0:
            return self.train(self.plain_models, self.natural, most=100)
        # The first step from a model that knows nothing counts labels, however far they are from the boundary: an
        # optimum would have learnt wrong labels too, and would select them.
        start = []
        for newton in (side.newton for side in self.sides):
            step = newton.minimise(np.ones_like(newton.masses), most=1)
            start.append(Model(step.parameters, None, step.decrement, EVERYTHING, newton.masses))
        state = self.train(start, self.natural, most=1)
        while state.models[0].decrement > SETTLED and not self.budget.is_spent:
            self.budget.count()
            models = [model._replace(curvature=None) for model in state.models]
            state = self.train(models, self.natural, most=1)
        return state

    def reweigh(self, start: Point) -> Iterator[Point]:
        """Train with weights under which class and group are independent, and half-way there."""
        groups, wanted = self.settings.named_groups, self.natural.copy()
        masses = start.models[0].masses[:, :groups]
        inside = self.natural[:, :groups].sum(axis=1, keepdims=True)
        wanted[:, :groups] = inside * masses.sum(axis=0) / max(float(masses.sum()), 1e-300)
        wanted[self.natural <= 0] = 0.0
        for share in (0.5, 1.0):
            if not self.budget.is_spent:
                self.budget.count()
                ratios = self.natural ** (1 - share) * wanted**share
                yield self.train(start.models, _shares(ratios), most=5)

    def train_at(self, state: Point, ratios: Floats) -> Point:
        """Take a few steps with other ratios."""
        return self.train(state.models, ratios, most=3)

    def train(self, models: list[Model], ratios: Floats, most: int) -> Point:
        """Select by the losses of the models, and take Newton steps under the weights of Eq. 3."""
        trained = []
        for side, (start, curvature, *_) in zip(self.sides, models, strict=True):
            limit, masses = self.find_limit(side.newton, start, ratios)
            table = ratios * masses.sum(axis=1, keepdims=True) / np.maximum(masses, 1e-300)
            rows = side.newton.rows.select(start, limit)
            table[masses <= 0] = 0.0
            step = side.newton.minimise(table, rows, start, curvature, most, PRECISION)
            trained.append(Model(*step, limit, masses))
        return self.judge(trained, ratios, by_selection=True)

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
        room = divide(budget - before, after - before, 1.0)
        share = float(np.clip(room.min(), 0.0, 1.0))
        return LossLimit(low, high, share), below + share * counts

    def constrain(self, natural: Point, end: Point | None = None) -> Iterator[Point]:
        """Constrain the gaps ever more tightly, from the model with natural ratios, or as a point was constrained."""
        settings, groups = self.settings, self.settings.named_groups
        sides = []
        for side, model in zip(self.sides, natural.models, strict=True):
            rows = side.newton.rows.select(model.parameters, model.limit)
            sides.append(Constrained(side.newton, rows, side.table, settings.rates, groups))
        models = (end or natural).models
        newton, total = sides[0].newton, float(natural.counts.sum())
        start = newton.standardise(natural.models[0].parameters)
        metric = newton.factor(sides[0].train, start, np.ones_like(self.natural))
        sums = sides[0].table.judged.score_moments(natural.models[0].parameters)
        spread = float(np.sqrt(max(sums[2] / sums[0] - (sums[1] / sums[0]) ** 2, 1e-300)))
        none = np.zeros((len(settings.rates.rates), groups, groups))
        if end is not None and end.lagrangian is not None:
            price = end.lagrangian
            levels = [self.tolerance, 0.5 * self.tolerance, 0.0]
        else:
            price, levels = Lagrangian(none, none, STIFFNESS, SOFTEST * spread), []
            level = natural.gap * TIGHTER
            while level > max(1.2 * self.tolerance, NEARLY):
                levels.append(level)
                level *= TIGHTER
            levels += [self.tolerance, 0.5 * self.tolerance, 0.0]
        bias, point = none, natural
        for level in levels:
            is_last = level <= self.tolerance
            for _ in range(LAST_OUTER if is_last else OUTER):
                if self.budget.is_spent:
                    return
                self.budget.count()
                temperature = max(SHARPEST * spread, price.temperature * SHARPER)
                price = replace(price, targets=level - bias, temperature=temperature)
                cut = self.find_cut(models)
                sides = [replace(each, cut=cut) for each in sides]
                moved = sides[0].minimise(models[0].parameters, metric, price, STEPS)
                change = moved - models[0].parameters
                trained = [models[0]._replace(parameters=moved)]
                for constrained, model in zip(sides[1:], models[1:], strict=True):
                    there = constrained.minimise(model.parameters + change, metric, price, FOLD_STEPS)
                    trained.append(model._replace(parameters=there))
                models = trained
                soft = sides[0].soften(moved, temperature)
                rates, counted = sides[0].measure(soft)
                pulls = price.pulls(rates, counted)
                price = replace(price, multipliers=pulls, stiffness=min(price.stiffness * STIFFER, STIFFEST))
                point = self.judge(models, self.natural)
                slopes = sides[0].slopes(soft, pulls) * total
                own = np.einsum("cgc->cg", slopes)
                others = (slopes.sum(axis=2) - own) / max(slopes.shape[2] - 1, 1)
                effective = natural.effective + others - own
                shares = np.maximum(effective * self.given, 0.0)
                point = replace(point, effective=effective, ratios=_shares(shares), lagrangian=price)
                yield point
                if is_last:  # what the rates are, beyond what they are as smoothed
                    hard, _ = settings.rates.of(point.counts[:, :groups])
                    seen = hard[:, :, None] - hard[:, None, :] - rates[:, :, None] + rates[:, None, :]
                    bias = 0.5 * (bias + seen)
                if point.gap <= level:
                    break
            if is_last and point.gap <= self.tolerance:
                return

    def measure_again(self, point: Point) -> Point:
        """Judge a point that was found for the same rows, labelled or shifted in another way."""
        models, shift = [], self.sides[0].table.given.shift
        for model in point.models[: len(self.sides)]:
            parameters = model.parameters.copy()
            apart = np.broadcast_to(shift - point.shift, parameters.shape[1] - 1)
            parameters[:, -1] += parameters[:, :-1] @ apart
            models.append(model._replace(parameters=parameters))
        again = self.judge(models, point.ratios, effective=point.effective)
        return replace(again, lagrangian=point.lagrangian)

    def predict(self, point: Point) -> Integers:
        """Predict the class of each row by the models that did not see it."""
        parts: list[Any] = [slice(None)] if self.folds is None else self.folds.outside()
        codes = np.zeros(self.sides[0].shown.given.samples, np.int64)
        pairs = zip(parts, self.sides[self.first :], point.models[self.first :], strict=True)
        for part, side, model in pairs:
            parameters = at_cut(model.parameters, point.cut)
            codes[part] = side.shown.given.in_memory.probabilities(parameters).argmax(axis=1)
        return codes

    def find_cut(self, models: list[Model]) -> float:
        """Return the score from which on the second of two classes is predicted, by the threshold or its rule."""
        rule, positive = self.settings.threshold, self.settings.positive
        if rule.is_default or self.settings.classes != 2:
            return 0.0
        place = rule.values[0] if rule.kind == "fixed" else 0.5
        if rule.kind != "fixed":
            shown = [side.shown.given.in_memory for side in self.sides[self.first :]]
            pairs = zip(shown, models[self.first :], strict=True)
            scores = [rows.probabilities(model.parameters)[:, positive] for rows, model in pairs]
            labels = [rows.host_labels == positive for rows in shown]
            weights = [rows.host_weights for rows in shown]
            place = rule.choose(*(np.concatenate(each).astype(float) for each in (scores, labels, weights)))
        logit = float(np.log(max(place, 1e-300)) - np.log(max(1 - place, 1e-300)))
        return logit if positive == 1 else -logit

    def judge(
        self, models: list[Model], ratios: Floats, *, by_selection: bool = False, effective: Any = None
    ) -> Point:
        """Measure accuracy and gaps, by all rows or, as the paper does on its way, by those that are selected."""
        tables, cut = [], self.find_cut(models)
        for side, model in zip(self.sides[self.first :], models[self.first :], strict=True):
            rows = side.shown.judged
            if by_selection:
                rows = rows.select(model.parameters, model.limit)
            tables.append(rows.confusion(at_cut(model.parameters, cut)))
        counts = self.sides[0].table.correct(self.add_up(tables))
        if effective is None:
            masses = models[0].masses
            shares = ratios * masses.sum(axis=1, keepdims=True) / max(float(masses.sum()), 1e-300)
            expected = self.given / max(float(self.given.sum()), 1e-300)
            effective = divide(shares, expected, 1.0)
        accuracy, gaps = self.settings.measure(counts)
        return Point(ratios, accuracy, gaps, counts, models, effective, self.sides[0].table.given.shift, cut)

    def predict_together(self, plain: Point, point: Point) -> Together:
        """Count what two models predict."""
        if point in self.counted:
            return self.counted[point]
        judged = (each[self.first :] for each in (self.sides, plain.models, point.models))
        tables = [
            side.shown.judged.confusion(at_cut(a.parameters, plain.cut), at_cut(b.parameters, point.cut))
            for side, a, b in zip(*judged, strict=True)
        ]
        self.counted[point] = Together(self.add_up(tables), self.sides[0].table.to_true)
        return self.counted[point]

    def add_up(self, tables: list[Floats]) -> Floats:
        """Add up counts of the rows that each model did not see; of several deals, return the mean."""
        deals = 1 if self.folds is None else len(self.folds.deals)
        return np.asarray(np.sum(tables, axis=0) / deals)


def _shares(masses: Floats) -> Floats:
    """Return the share of each class that each group has."""
    return np.asarray(masses / np.maximum(masses.sum(axis=1, keepdims=True), 1e-300))


def _used(counts: Floats, ratios: Floats) -> Floats:
    """Return how much of the budget each constraint of Eq. 7 uses, for counts of shape (classes, groups, …)."""
    total = counts.sum(axis=(0, 1))
    cells = budget_used(total, counts, ratios[..., None], counts.sum(axis=1, keepdims=True))
    return np.concatenate([total[None], cells.reshape(-1, *total.shape)])
