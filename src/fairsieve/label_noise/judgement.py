"""Judge models for right labels: accuracy, rates and disparity as they would be if no label were wrong.

What is known of the labels decides what the judgement stands on, its *basis*:

- *verified labels*: the chances of the true classes, corrected by the rows that somebody checked (a difference
  estimator, see :mod:`~fairsieve.label_noise.verified`);
- *estimate*: the inverse of the table of flips, whose rates are drawn again together with the rows;
- *bounds*: labels may be wrong at random, at rates that are not known but have an upper end. Every way to be wrong is a
  world of its own: no label, all alike, one class, one group or one cell. An interval holds those of all worlds;
- *given labels*: as they are, where no wrong label is indicated.

Rows matter by their *kind* alone: label, group and what each model predicts. How many rows of each kind there are is
drawn again many times (a Bayesian bootstrap, the same draws for all models, so that what two models share cancels), and
each draw is turned from given into true classes. Where labels can be wrong in several ways that cannot be told apart,
each way is a *world*, with counts of its own. What is counted and its draws are one array, of which the first entry is
what was counted; so are all numbers that follow from it.

A disparity is the largest of several differences. Its interval, and that of its change, come from tests of each
difference (see :func:`~fairsieve.metrics.bound_largest`), so that they can contain 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from statistics import NormalDist
from typing import Literal, NamedTuple

import numpy as np

from fairsieve.label_noise.estimate import CleanRatioEstimate
from fairsieve.label_noise.flip_model import transitions
from fairsieve.label_noise.survey import MOST as MOST_SURVEYED
from fairsieve.label_noise.verified import CheckedSums
from fairsieve.metrics import (
    NORMAL,
    Score,
    accuracy_from_table,
    bound_change_of_largest,
    bound_largest,
    bound_value,
    count_table,
    gaps_from_table,
    grouped_part,
    has_enough,
    needed_deviations,
)
from fairsieve.selection.cells import Cells, Codes, Flags, Floats, Values, divide

Basis = Literal["verified labels", "estimate", "bounds", "given labels"]
Verdict = Literal["holds", "fails", "cannot tell"]

FEW = 10  # people to measure on; rates of fewer are chance
STEPS = 16  # on the way to the highest rates
HARMLESS = 0.01  # share of wrong labels up to which labels are taken as given
DRAWS = 1000
FEWER_DRAWS = 400  # where there are many worlds, or checks to draw again
BINS = 8  # of the chance that the given label is right, where counts go by chances
BATCH = 4096  # clusters drawn together
# Chances from which a label is taken to be wrong on purpose, the usual one first.
SURELY_WRONG = (0.9, 0.5, 0.99)


# Of each model, counts by true class, group and prediction, and draws of them: (1 + draws, classes, groups, classes).
World = list[Floats]


@dataclass(frozen=True, eq=False)
class Judged:
    """What is judged: given labels and groups, and what models predict, as codes.

    Attributes
    ----------
    cells : Cells
    predictions : sequence of integer arrays
    weights : array of shape (n,)
    clusters : integer array of shape (n,), optional
        Rows of one number are drawn again together.
    seed : int
    """

    cells: Cells
    predictions: Sequence[Codes]
    weights: Floats
    clusters: Codes | None = None
    seed: int = 0


class Kinds:
    """How many rows there are of each kind, by other labels than those given or by further codes if so wanted.

    Attributes
    ----------
    codes : integer array of shape (columns, kinds)
        Label, group, and what each model predicts; further codes, if any.
    masses : array of shape (kinds,)
        The weights of the rows of each kind.
    kind : integer array of shape (n,)
        The kind of each row.
    """

    def __init__(self, judged: Judged, labels: Codes | None = None, more: Sequence[Codes] = ()) -> None:
        self.judged, self.shape = judged, judged.cells.shape
        given = judged.cells.label_codes if labels is None else labels
        columns = [given, judged.cells.group_codes, *judged.predictions, *more]
        place = np.zeros(len(judged.weights), np.int64)
        for column in columns:  # renumbered each time, so that many models do not overflow
            place = np.unique(place * (int(column.max(initial=0)) + 1) + column, return_inverse=True)[1]
        _, first, self.kind = np.unique(place, return_index=True, return_inverse=True)
        self.codes = np.stack(columns)[:, first]
        self.masses = np.bincount(self.kind, judged.weights, len(first)).astype(np.float64)

    def draw(self, rng: np.random.Generator, times: int) -> Floats:
        """Draw the masses again, (times, kinds): each row, or cluster of rows, with an exponential weight.

        The weights of many rows are drawn at once: their sum has a gamma distribution.
        """
        weights, clusters, size = self.judged.weights, self.judged.clusters, len(self.masses)
        if clusters is None:
            clusters = np.arange(len(weights))
        pairs, pair = np.unique(clusters * size + self.kind, return_inverse=True)
        shares = np.bincount(pair, weights, len(pairs))
        cluster, kind = np.divmod(pairs, size)
        mixed = np.bincount(cluster)[cluster] > 1  # of several kinds
        sums, squares = (np.bincount(kind, np.where(mixed, 0, shares) ** power, size) for power in (1, 2))
        people = divide(sums**2, squares, 1.0)
        drawn = rng.gamma(people, size=(times, size)) * sums / people
        cluster, kind, shares = np.unique(cluster[mixed], return_inverse=True)[1], kind[mixed], shares[mixed]
        for first in range(0, int(cluster.max(initial=-1)) + 1, BATCH):
            in_batch = (cluster >= first) & (cluster < first + BATCH)
            table = np.zeros((BATCH, size))
            table[cluster[in_batch] - first, kind[in_batch]] = shares[in_batch]
            drawn += rng.exponential(size=(times, BATCH)) @ table
        return drawn

    def tables(self, masses: Floats, model: int, chances: Floats | None = None) -> Floats:
        """Sum masses by class, group and a model's prediction, (…, classes, groups, classes).

        ``chances`` are those of each kind's classes, (kinds, classes); the class is the label when None.
        """
        classes, groups = self.shape
        label, group, codes = self.codes[0], self.codes[1], self.codes[2 + model]
        own_chances = np.eye(classes)[label] if chances is None else chances
        place = np.zeros((len(label), groups, classes))
        place[np.arange(len(label)), group, codes] = 1.0
        spread = np.einsum("kc,kgp->kcgp", own_chances, place).reshape(len(label), -1)
        return np.asarray(masses @ spread).reshape(*masses.shape[:-1], classes, groups, classes)


class DrawnRows(NamedTuple):
    """Rows of each kind, and draws of how many there are.

    Attributes
    ----------
    kinds : Kinds
    masses : array of shape (1 + draws, kinds)
        First those that there are.
    imagined : list of arrays
        Imagined people for each model, see :func:`imagine`; none at first.
    """

    kinds: Kinds
    masses: Floats
    imagined: list[Floats]

    def world(self) -> World:
        """Believe the labels."""
        return [self.kinds.tables(self.masses, model) + people for model, people in enumerate(self.imagined)]

    def move(self, influence: Floats) -> Floats:
        """Compute by how much each draw moves what the rows have ``influence`` on, (draws, …), by their kinds."""
        kinds = self.kinds
        weighed = (influence * kinds.judged.weights[:, None]).T
        sums = [np.bincount(kinds.kind, each, len(kinds.masses)) for each in weighed]
        means = np.stack(sums, axis=1) / np.maximum(kinds.masses, 1e-300)[:, None]
        return (self.masses[1:] - kinds.masses) @ means


AskedGap = tuple[str, int, int, int]
RATES = ("selection_rate", "true_positive_rate", "false_positive_rate", "precision")  # of a label


class GroupRate(NamedTuple):
    """A rate of one model by group, for right labels.

    Attributes
    ----------
    name : {"accuracy", "selection_rate", "true_positive_rate", "false_positive_rate", "precision"}
    label : int
        Code of the class that it is about; −1 for accuracy.
    groups : list of Score or None
        None where a group has nobody to compute it from.
    people : list of float
        How many it is computed from, of each group.
    """

    name: str
    label: int
    groups: list[Score | None]
    people: list[float]


class ModelJudgement(NamedTuple):
    """What one model is worth on right labels.

    Attributes
    ----------
    accuracy, disparity : Score
    rates : list of GroupRate
    table : array of shape (classes, groups, classes)
        Estimated rows of each true class and group that are predicted to be of each class.
    """

    accuracy: Score
    disparity: Score
    rates: list[GroupRate]
    table: Floats


@dataclass(frozen=True, eq=False)
class Judgement:
    """What models are worth on right labels, and how they differ.

    Attributes
    ----------
    basis : {"verified labels", "estimate", "bounds", "given labels"}
        What right labels are known from.
    """

    basis: Basis
    judged: Judged
    notion: str
    positive: int
    worlds: Callable[[], Iterable[World]]
    given: Judgement | None = None
    flawless: tuple[int, ...] = ()
    estimate: CleanRatioEstimate | None = None  # what is known of the labels, where they are not believed
    _changes: dict[tuple[int, int], dict[str, Score]] = field(default_factory=dict, init=False)

    @property
    def on_given_labels(self) -> Judgement:
        """The same numbers on the labels as they are given."""
        return self if self.given is None else self.given

    @cached_property
    def models(self) -> list[ModelJudgement]:
        """What each model is worth."""
        found = [map(self._judge_one, world) for world in self.worlds()]
        models = [_widest_model(each) for each in zip(*found, strict=True)]
        for model in self.flawless:  # no check speaks against it
            value, (low, _) = models[model].accuracy
            models[model] = models[model]._replace(accuracy=Score(value, (low, 1.0)))
        if self.is_compared:
            return models
        return [one._replace(disparity=Score(one.disparity.value, (0.0, 1.0))) for one in models]

    def are_same(self, first: int, second: int) -> bool:
        """Return whether two models predict the same of every row."""
        return np.array_equal(self.judged.predictions[first], self.judged.predictions[second])

    def change(self, first: int = 0, second: int = -1) -> dict[str, Score]:
        """Return accuracy and disparity of the second model less those of the first, with paired intervals."""
        if (first, second) not in self._changes:
            self._changes[first, second] = self._compare(first, second)
        return self._changes[first, second]

    def _compare(self, first: int, second: int) -> dict[str, Score]:
        """Compute the change between two models in every world."""
        changes: dict[str, list[Score]] = {"accuracy": [], "disparity": []}
        for world in self.worlds():
            pair = world[first], world[second]
            before, after = map(accuracy_from_table, pair)
            changes["accuracy"].append(bound_value(after - before))
            changes["disparity"].append(bound_change_of_largest(*map(self.gaps_between, pair)))
        found = {name: _widest(scores) for name, scores in changes.items()}
        if not self.is_compared:
            found["disparity"] = Score(found["disparity"].value, (-1.0, 1.0))
        return found

    def gaps(self, model: int, asked: Sequence[AskedGap], compared: int = 1) -> list[Score]:
        """Return how far a rate of one group lies below that of another, for several of both at a time.

        The intervals are among ``compared`` that all hold together with 95 % (Bonferroni).

        Parameters
        ----------
        asked : sequence of (name, label, low, high)
            A rate as in :class:`GroupRate`, and two groups.
        """
        names = sorted({(name, label) for name, label, _, _ in asked})
        scores: list[list[Score]] = [[] for _ in asked]
        for world in self.worlds():
            rates = {each: _rate(world[model], *each)[0] for each in names}
            for found, (name, label, low, high) in zip(scores, asked, strict=True):
                rate = rates[name, label]
                found.append(bound_value(rate[:, high] - rate[:, low], compared))
        return [_widest(found).within(-1.0, 1.0) for found in scores]

    def class_shares(self, label: int, compared: int = 1) -> list[Score]:
        """Return the share of each group that has a class, given as its code; ``compared`` as for gaps."""
        worlds = [_rate(world[0], "class_share", label)[0].T for world in self.worlds()]
        by_group = (
            [bound_value(share, compared) for share in shares] for shares in zip(*worlds, strict=True)
        )
        return [_widest(scores).within(0.0, 1.0) for scores in by_group]

    def more_alike(self, first: int = 0, second: int = -1) -> Verdict:
        """Say whether the second model treats groups more alike."""
        return self._claim("disparity", 0.0, first, second)

    def keeps_accuracy(self, within: float) -> Verdict:
        """Say whether the accuracy of the last model is lower than that of the first by ``within`` at most."""
        return self._claim("accuracy", -within)

    def _claim(self, name: str, boundary: float, *models: int) -> Verdict:
        """Say on which side of a boundary a change lies: that of a disparity should be below, of accuracy above."""
        low, high = self.change(*models)[name].interval
        below, above = high < boundary, low >= boundary
        if below or above:
            return "holds" if below == (name == "disparity") else "fails"
        return "cannot tell"

    def to_tell(self, small: float = 0.0) -> Needed:
        """Find what would tell whether groups are more alike, or that the change is within ``small``.

        What is told by then is not known yet: the change may come out anywhere that today's interval leaves open,
        sooner where it is small. Enough is what tells most of these outcomes. Rows alone are no answer where labels are
        in doubt.
        """
        (low, high), count = self.change()["disparity"].interval, len(self.judged.weights)
        reach, usual = (high - low) / 2, self.models[0].disparity.value
        needed = telling_reach((low + high) / 2, reach, small, max(usual, small))
        if self.estimate is None:  # the labels are believed
            return Needed(_times(count, reach / needed))
        imagined = _Imagined(self, self.estimate)
        right = min(imagined.right, reach)
        if right <= needed:
            checks = imagined.checks(needed**2 - right**2)
            return Needed(None, checks) if checks and checks <= count else NOTHING
        # Not even if all labels were known to be right: half of what is open is left to the rows, and half to the
        # checks.
        rows, checks = _times(count, math.sqrt(2) * right / needed), imagined.checks(needed**2 / 2)
        if rows is None or checks is None or checks > min(rows, MOST_CHECKS):
            return NOTHING
        return Needed(rows, checks)

    def chances_at(self, rates: Floats) -> Floats:
        """Compute how likely each class is the true one of each row, by its kind, for labels wrong at such rates."""
        kinds = Kinds(self.judged)
        (label, group), shape = kinds.codes[:2], self.judged.cells.shape
        predicted = np.unique(kinds.codes[2:], axis=1, return_inverse=True)[1].reshape(-1)
        given = np.zeros((*shape, int(predicted.max(initial=0)) + 1))
        given[label, group, predicted] = kinds.masses
        chances = undo_flips(given, rates)[:, group, predicted].T * transitions(rates)[group, :, label]
        chances[chances.sum(axis=1) <= 0] = 1.0
        return np.asarray(chances / chances.sum(axis=1, keepdims=True))[kinds.kind]

    def knowing(self, labels: Codes, chances: Floats | None, rows: Codes | None = None) -> Judgement:
        """Judge as if ``rows`` had been checked, with these labels, and others had these chances; all when None."""
        if rows is None or chances is None or self.estimate is None:
            worlds = [draw_rows(self.judged, labels).world()]
        else:
            codes = np.full(len(labels), -1)
            codes[rows] = labels[rows]
            known = replace(self.estimate, unseen=chances, verified_codes=codes, verified_weight=None)
            worlds = count_by_checks(self.judged, known)
        return replace(self, worlds=partial(list, worlds))

    @cached_property
    def enough(self) -> Flags:
        """Which rates of which groups have people enough, whichever model; others would decide by chance.

        As many as are labelled so, and as many as are left where flips are undone.
        """
        cells, there = self.judged.cells, self.judged.weights > 0
        classes, groups = cells.shape
        rows = cells.label_codes, cells.group_codes
        tables = [count_table(*rows, codes, classes, groups, there) for codes in self.judged.predictions]
        each = there.sum() / max(float(self.judged.weights.sum()), 1e-300)
        tables += [counts[0] * each for counts in next(iter(self.worlds()))]
        return np.asarray(has_enough(np.stack(tables), self.notion, FEW, positive=self.positive).all(axis=0))

    @cached_property
    def is_compared(self) -> bool:
        """Whether two groups have people enough to be compared, or there is one group; else a gap may be any."""
        named = self.judged.cells.named_groups
        return named < 2 or bool((self.enough[..., :named].sum(axis=-1) >= 2).any())

    def gaps_between(self, tables: Floats) -> Floats:
        """Compute each difference that the disparity is the largest of, (tables, differences)."""
        grouped = grouped_part(tables, self.judged.cells.groups)
        gaps = gaps_from_table(grouped, self.notion, positive=self.positive, counted=self.enough)
        return gaps.reshape(len(tables), -1)

    def _judge_one(self, tables: Floats) -> ModelJudgement:
        accuracy = bound_value(accuracy_from_table(tables))
        disparity = bound_largest(self.gaps_between(tables))
        return ModelJudgement(accuracy, disparity, self._rates(tables), tables[0])

    def _rates(self, tables: Floats) -> list[GroupRate]:
        """Compute every rate of every group."""
        classes = range(self.judged.cells.shape[0])
        told = [self.positive] if len(classes) == 2 and self.positive >= 0 else classes
        names, found = [("accuracy", -1), *((name, label) for label in told for name in RATES)], []
        for name, label in names:
            rates, people = _rate(tables, name, label)
            pairs = zip(rates.T, people[0], strict=True)
            scores = [bound_value(rate) if count > 0 else None for rate, count in pairs]
            found.append(GroupRate(name, label, scores, people[0].tolist()))
        return found


def judge(
    cells: Cells,
    predictions: Sequence[Values],
    notion: str,
    *,
    positive: int = -1,
    estimate: CleanRatioEstimate | None = None,
    sample_weight: Values | None = None,
    clusters: Values | None = None,
    seed: int = 0,
) -> Judgement:
    """Judge models by predictions for rows that they did not see.

    Parameters
    ----------
    cells : Cells
        Given labels and groups.
    predictions : sequence of integer arrays
        The class codes that each model predicts, held out or cross-fitted.
    notion : str
        The notion of fairness that the disparity measures.
    positive : int
        Code of the positive class; −1 where there is none.
    estimate : CleanRatioEstimate, optional
        What is known of the labels of the same rows; None believes them.
    sample_weight : n numbers, optional
    clusters : n codes, optional
        Rows of one number are drawn again together, such as copies of one person.
    seed : int
        Of the draws that intervals come from.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> cells = Cells.of(rng.integers(0, 2, 1000), rng.integers(0, 2, 1000))
    >>> judged = judge(cells, [cells.label_codes, rng.integers(0, 2, 1000)], "equal_opportunity")
    >>> judged.basis, judged.models[0].accuracy.value, judged.keeps_accuracy(0.01)
    ('given labels', 1.0, 'fails')
    """
    weights = np.ones(len(cells)) if sample_weight is None else np.asarray(sample_weight, np.float64)
    numbers = None if clusters is None else np.unique(clusters, return_inverse=True)[1].reshape(-1)
    judged = Judged(cells, [np.asarray(codes, np.int64) for codes in predictions], weights, numbers, seed)
    drawn = draw_rows(judged)
    given = Judgement("given labels", judged, notion, positive, partial(list, [drawn.world()]))
    if estimate is None:
        return given
    basis, worlds = _choose_worlds(judged, estimate, given, drawn)
    if basis == "given labels":
        return given
    flawless: list[int] = []
    if basis == "verified labels":
        rows, truth = estimate.checked, estimate.true_codes[estimate.checked]
        flawless = [model for model, codes in enumerate(judged.predictions) if (codes[rows] == truth).all()]
    return Judgement(basis, judged, notion, positive, worlds, given, tuple(flawless), estimate)


def _choose_worlds(
    judged: Judged, estimate: CleanRatioEstimate, given: Judgement, drawn: DrawnRows
) -> tuple[Basis, Callable[[], Iterable[World]]]:
    """Choose what right labels are known from."""
    [as_given] = given.worlds()
    groups = np.arange(judged.cells.shape[1])  # people without a group come last, and none may be here
    if estimate.unseen is not None and len(estimate.checked):
        return "verified labels", partial(list, count_by_checks(judged, estimate))
    if estimate.acts and estimate.aimed:
        return "estimate", partial(list, count_by_aim(judged, estimate))
    if estimate.acts:
        rng = np.random.default_rng(judged.seed + 1)  # other draws than those of the rows themselves
        rates = [each.spread(groups).draw(rng, drawn.move(each.influence)) for each in estimate.likely_rates]
        # Rows of which none was checked are judged by the rates that the checks of others show.
        rates = rates or [estimate.flip_rates[:, groups]]
        return "estimate", partial(list, [correct_world(as_given, drawn) for drawn in rates])
    if 1 - estimate.interval[0] > HARMLESS:
        highest = estimate.highest_rates
        unknown = np.ones(judged.cells.shape) if highest is None else highest[:, groups]
        ways = list(_ways_to_be_wrong(unknown, given))
        fewer = [each[: 1 + FEWER_DRAWS] for each in as_given]
        return "bounds", partial(map, partial(correct_world, fewer), ways)
    return "given labels", given.worlds


def _ways_to_be_wrong(highest: Floats, given: Judgement) -> Iterator[Floats]:
    """List flip rates, (classes, groups), up to the highest: of none, all, one class, one group, or one cell.

    On the way there a gap may close, and open again on the other side. So rates below the highest count too where a
    disparity, or its change, is the smallest or the largest.
    """
    classes, groups = highest.shape
    yield np.zeros_like(highest)
    [world] = given.worlds()
    parts = [slice(None), *range(classes), *((slice(None), group) for group in range(groups))]
    for part in [*parts, *np.ndindex(classes, groups)]:
        way = np.zeros_like(highest)
        way[part] = highest[part].min()
        steps = way * np.linspace(0, 1, STEPS + 1)[1:, None, None]
        gaps = [given.gaps_between(undo_flips(each[0], steps)) for each in world]
        disparities = [np.abs(each).max(axis=1, initial=0.0) for each in gaps]
        measured = np.stack([*disparities, disparities[-1] - disparities[0]])
        yield from steps[sorted({STEPS - 1, *measured.argmin(axis=1), *measured.argmax(axis=1)})]


def _rate(tables: Floats, name: str, label: int) -> tuple[Floats, Floats]:
    """Compute a rate of each group, (…, groups), and how many people it is of."""
    everyone, right = tables.sum(axis=(-3, -1)), tables[..., label, :, label]
    said, of_class = tables[..., label].sum(axis=-2), tables[..., label, :, :].sum(axis=-1)
    hits, people = {
        "accuracy": (np.einsum("...yzy->...z", tables), everyone),
        "selection_rate": (said, everyone),
        "class_share": (of_class, everyone),
        "precision": (right, said),
        "true_positive_rate": (right, of_class),
        "false_positive_rate": (said - right, everyone - of_class),
    }[name]
    return divide(hits, people), people


def _widest(scores: Sequence[Score]) -> Score:
    """Take the value of the first world, and an interval that holds the truth of whichever world is the true one.

    Worlds apart need less room for chance at each end: a truth near one end is missed there only (Imbens and Manski
    2004). Ends that are 0 stay, since a disparity is no less.
    """
    values = [one.value for one in scores]
    spread = float(np.mean([one.interval[1] - one.interval[0] for one in scores])) / (2 * NORMAL)
    part = needed_deviations((max(values) - min(values)) / max(spread, 1e-12)) / NORMAL
    lows = [value - part * (value - low) if low else 0.0 for value, (low, _) in scores]
    highs = [value + part * (high - value) for value, (_, high) in scores]
    return Score(scores[0].value, (min(lows), max(highs)))


def _widest_model(judged: Sequence[ModelJudgement]) -> ModelJudgement:
    """Take the widest intervals of a model's numbers over all worlds."""
    rates = []
    for same in zip(*(one.rates for one in judged), strict=True):
        columns = zip(*(one.groups for one in same), strict=True)
        scores = [[score for score in column if score is not None] for column in columns]
        rates.append(same[0]._replace(groups=[_widest(each) if each else None for each in scores]))
    accuracy = _widest([one.accuracy for one in judged])
    return ModelJudgement(accuracy, _widest([one.disparity for one in judged]), rates, judged[0].table)


# ---- Counts by true class


def draw_rows(judged: Judged, labels: Codes | None = None) -> DrawnRows:
    """Draw the rows again, by their labels as given or others."""
    kinds, rng = Kinds(judged, labels), np.random.default_rng(judged.seed)
    masses = np.vstack([kinds.masses, kinds.draw(rng, DRAWS)])
    return DrawnRows(kinds, masses, [imagine(kinds, rng, DRAWS) for _ in judged.predictions])


def imagine(kinds: Kinds, rng: np.random.Generator, times: int) -> Floats:
    """Draw imagined people, one in each cell, shared among the predictions: half a one of each with two classes.

    Without them a rate that nobody speaks against would be certain (Jeffreys's prior). In what was counted are none.
    """
    classes = kinds.shape[0]
    typical = kinds.masses.sum() / max(np.count_nonzero(kinds.judged.weights), 1)
    drawn = rng.gamma(1 / classes, size=(times, *kinds.shape, classes)) * typical
    return np.concatenate([np.zeros_like(drawn[:1]), drawn])


def undo_flips(tables: Floats, rates: Floats) -> Floats:
    """Turn counts by given label into those by true class, for labels wrong at random at rates (…, classes, groups).

    The table of flips is inverted; a group keeps its size, and no count is below 0.
    """
    inverse = np.linalg.inv(transitions(rates))  # (…, groups, true, given)
    true = np.maximum(np.einsum("...zji,...jzp->...izp", inverse, tables), 0.0)
    before, after = tables.sum(axis=-3, keepdims=True), true.sum(axis=-3, keepdims=True)
    return np.asarray(true * divide(before, after, 1.0))


def correct_world(given: World, rates: Floats) -> World:
    """Undo flips in the counts of every model."""
    return [undo_flips(tables, rates) for tables in given]


def count_by_checks(judged: Judged, estimate: CleanRatioEstimate) -> list[World]:
    """Count by the chances of the true classes, corrected by the rows that somebody checked.

    There are two worlds: in one each group is given imagined checks, since few checks may agree by chance; in the
    other not, since those find wrong labels where none were.
    """
    chances, codes = estimate.unseen, estimate.verified_codes
    if chances is None or codes is None:
        raise ValueError("the estimate was not learnt from checked labels")
    cells, rng = judged.cells, np.random.default_rng(judged.seed)
    right = chances[np.arange(len(cells)), cells.label_codes]
    kinds = Kinds(judged, more=[np.minimum((right * BINS).astype(np.int64), BINS - 1)])
    masses, totals = kinds.draw(rng, FEWER_DRAWS), np.maximum(kinds.masses, 1e-300)
    weighted = chances * judged.weights[:, None]
    by_kind = [np.bincount(kinds.kind, each, len(totals)) for each in weighted.T]
    typical = np.stack(by_kind, axis=1) / totals[:, None]
    rows, weights = (chances, codes, cells.group_codes), (judged.weights, estimate.verified_weight)
    sums = [CheckedSums(*rows, each, cells.shape, *weights) for each in judged.predictions]
    worlds: list[World] = []
    for imagined in (True, False):
        checks = sums[0].draw_checks(rng, FEWER_DRAWS, imagined=imagined)
        drawn = [kinds.tables(masses, model, typical) for model in range(len(sums))]
        pairs = zip(sums, drawn, strict=True)
        worlds.append([np.stack([each.table(), *each.correct(again, checks)]) for each, again in pairs])
    return worlds


def count_by_aim(judged: Judged, estimate: CleanRatioEstimate) -> list[World]:
    """Take labels that look wrong on purpose for the other class, as surely as is usual, more and less so."""
    wrong, likeliest = estimate.wrong, estimate.true_class.argmax(axis=1)
    given = judged.cells.label_codes
    labels = [np.where(wrong > chance, likeliest, given) for chance in SURELY_WRONG]
    return [draw_rows(judged, each).world() for each in labels]


# ---- How many rows, or checked labels, would tell what cannot be told yet
#
# The reach of an interval, half its width, has parts of its own: chance, which narrows with the root of the
# rows, and what is not known of the labels, which narrows with the checks. Both are seen by imagining right
# labels that are as likely as the estimate has it: of all rows, or of some that are checked.

FEWEST_CHECKS, MOST_CHECKS = 50, 10_000  # that are imagined
MOST_TIMES = 1000  # rows beyond so many times those there are, are no answer
LIKELY = 0.8  # chance that it is told by then
TRIES = 4  # draws of right labels


class Needed(NamedTuple):
    """What would tell.

    Attributes
    ----------
    rows, checks : int or None
        How many in all; where both are named, it takes both, and where none is, no number of them would do.
    """

    rows: int | None = None
    checks: int | None = None


NOTHING = Needed()


def telling_reach(centre: float, reach: float, small: float, usual: float) -> float:
    """Find how far an interval may reach so that it is likely to tell.

    It tells where it lies on one side of 0, or within ``small`` of it. What it is then around is not known: today's
    interval around ``centre`` says it, and that a change is seldom larger than is ``usual``.

    >>> [round(telling_reach(centre, 0.1, 0.02, 0.1), 3) for centre in (0.0, 0.05, 0.09)]
    [0.016, 0.018, 0.039]
    """
    low, high, error, normal = 0.0, reach, reach / NORMAL, NormalDist()
    weight = usual**2 / (usual**2 + error**2)
    for _ in range(40):
        middle = (low + high) / 2
        known = min((middle / reach) ** 2, 1 - 1e-9)  # the part of what will be known that is known today
        mean = centre * (known + weight * (1 - known))
        spread = (1 - known) * math.sqrt(weight * error**2 + (middle / NORMAL) ** 2 / (1 - known))
        beyond = 1 - normal.cdf((middle - mean) / spread) + normal.cdf((-middle - mean) / spread)
        inner = max(small - middle, 0.0)
        within = normal.cdf((inner - mean) / spread) - normal.cdf((-inner - mean) / spread)
        low, high = (middle, high) if beyond + within >= LIKELY else (low, middle)
    return max(low, 1e-9)


def _times(count: int, times: float | None) -> int | None:
    """Return how many rows there are in all, where their root has to grow so many times."""
    return None if times is None or times**2 > MOST_TIMES else max(math.ceil(count * times**2), count + 1)


@dataclass(frozen=True, eq=False)
class _Imagined:
    """Right labels that are as likely as the estimate has it."""

    judged: Judgement
    estimate: CleanRatioEstimate

    @cached_property
    def chances(self) -> Floats:
        """How likely each class is the true one, so that the models differ as far as is judged today.

        What a model of the labels finds likely would not do: by it, groups seem more alike than they are judged, and
        a gap that turns round tells less than one that stays. Where rates have only an upper end, half of it counts.
        """
        estimate, cells = self.estimate, self.judged.judged.cells
        if estimate.likely_rates:
            likely = estimate.likely_rates[0].spread(np.arange(cells.shape[1]))
            return self.judged.chances_at(likely.likeliest)
        if estimate.acts:
            return estimate.true_class
        return self.judged.chances_at(np.full(cells.shape, (1 - estimate.interval[0]) / 2))

    def labels(self, draw: int) -> Codes:
        """Draw labels by these chances."""
        turns = np.random.default_rng([self.judged.judged.seed, draw]).random(len(self.chances))
        return np.asarray((np.cumsum(self.chances, axis=1)[:, :-1] < turns[:, None]).sum(axis=1))

    def reach(self, checks: int | None = None, draw: int = 0) -> float:
        """Compute how far the interval of the change reaches where so many of them are checked; all when None."""
        rows = None
        if checks is not None:
            rows = np.random.default_rng(self.judged.judged.seed + 1).permutation(len(self.chances))[:checks]
        low, high = self.judged.knowing(self.labels(draw), self.chances, rows).change()["disparity"].interval
        return (high - low) / 2

    @cached_property
    def right(self) -> float:
        """How far it may reach where all are checked: by chance a gap turns round, and then it reaches further."""
        return max(self.reach(draw=draw) for draw in range(TRIES))

    def checks(self, room: float) -> int | None:
        """Find how many checks leave no more than ``room`` of the reach's square, beyond that of right labels."""
        checks, most, right = FEWEST_CHECKS, min(len(self.chances), MOST_CHECKS), self.reach()
        while checks <= most:
            left = self.reach(checks) ** 2 - right**2
            if left <= room:
                return checks
            checks *= 2
        if room <= 0:
            return None
        return math.ceil(checks / 2 * left / room) if checks > FEWEST_CHECKS else None


def rows_needed(found: Score, boundary: float, by_chance: Score, rows: int, basis: Basis) -> int | None:
    """Compute with how many rows an interval would end before a boundary; None where rows alone will not do it.

    Chance narrows with the root of the rows. What is left, by which the interval is wider than it is ``by_chance``,
    is not known of the labels and stays; but for an estimate, which narrows too as long as it looks at all rows.
    """
    room, half = abs(found.value - boundary), _reach(found, boundary)
    chance = min(_reach(by_chance, by_chance.value + boundary - found.value), half)
    left = room - (half - chance)
    if left > chance / math.sqrt(MOST_TIMES):
        return max(math.ceil(rows * (chance / left) ** 2), rows + 1)
    with_estimate = rows * (half / max(room, 1e-12)) ** 2
    return math.ceil(with_estimate) if basis == "estimate" and with_estimate <= MOST_SURVEYED else None


def _reach(found: Score, boundary: float) -> float:
    """Return how far an interval reaches from its value towards a boundary."""
    low, high = found.interval
    return high - found.value if found.value < boundary else found.value - low
