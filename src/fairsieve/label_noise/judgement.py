"""Judge models for right labels: accuracy, rates and disparity as they would be if no label were wrong.

What is known of the labels decides what the judgement stands on, its *basis*:

- *verified labels*: the chances of the true classes, corrected by the rows that somebody checked (a difference
  estimator, see :mod:`~fairsieve.label_noise.true_classes`);
- *estimate*: the inverse of the table of flips, whose rates are drawn again together with the rows;
- *bounds*: labels may be wrong at random, at rates that are not known but have an upper end. Every way to be wrong is a
  world of its own: no label, all alike, one class, one group or one cell. An interval holds those of all worlds;
- *given labels*: as they are, where no wrong label is indicated.

A disparity is the largest of several differences. Its interval, and that of its change, come from tests of each
difference (see :func:`~fairsieve.intervals.bound_largest`), so that they can contain 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fairsieve.intervals import (
    NORMAL,
    Score,
    bound_change_of_largest,
    bound_largest,
    bound_value,
    needed_deviations,
)
from fairsieve.label_noise.estimate import CleanRatioEstimate
from fairsieve.label_noise.survey import MOST as MOST_SURVEYED
from fairsieve.label_noise.true_counts import (
    DRAWS,
    FEWER_DRAWS,
    Judged,
    World,
    count_as_given,
    count_by_aim,
    count_by_checks,
    undo_flips,
    undo_flips_of,
)
from fairsieve.metrics import accuracy_from_table, count_table, gaps_from_table, grouped_part, has_enough
from fairsieve.selection.cells import Cells, Flags, Floats

Basis = Literal["verified labels", "estimate", "bounds", "given labels"]
Verdict = Literal["holds", "fails", "cannot tell"]

FEWEST_CHECKS, MOST_CHECKS = 50, 10_000  # that are advised
MOST_TIMES = 1000  # rows beyond so many times those there are, are no answer
FEW = 10  # people to measure on; rates of fewer are chance
STEPS = 16  # on the way to the highest rates
HARMLESS = 0.01  # share of wrong labels up to which labels are taken as given


class Claim(NamedTuple):
    """Whether something can be said for right labels, and what would tell where it cannot.

    Attributes
    ----------
    verdict : {"holds", "fails", "cannot tell"}
    rows : int, optional
        Rows in all with which it could be told; None where it is told, or where rows alone will not tell.
    """

    verdict: Verdict
    rows: int | None = None


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

    @property
    def on_given_labels(self) -> Judgement:
        """The same numbers on the labels as they are given."""
        return self if self.given is None else self.given

    @cached_property
    def models(self) -> list[ModelJudgement]:
        """What each model is worth."""
        found = [[self._judge_one(*counts) for counts in world] for world in self.worlds()]
        models = [_widest_model(each) for each in zip(*found, strict=True)]
        for model in self.flawless:  # no check speaks against it
            value, (low, _) = models[model].accuracy
            models[model] = models[model]._replace(accuracy=Score(value, (low, 1.0)))
        return models

    def change(self, first: int = 0, second: int = -1) -> dict[str, Score]:
        """Return accuracy and disparity of the second model less those of the first, with paired intervals."""
        if (first, second) not in self._changes:
            self._changes[first, second] = self._compare(first, second)
        return self._changes[first, second]

    @cached_property
    def _changes(self) -> dict[tuple[int, int], dict[str, Score]]:
        return {}

    def _compare(self, first: int, second: int) -> dict[str, Score]:
        """Compute the change between two models in every world."""
        changes: dict[str, list[Score]] = {"accuracy": [], "disparity": []}
        for world in self.worlds():
            pair = world[first], world[second]
            before, after = ([accuracy_from_table(part) for part in one] for one in pair)
            changes["accuracy"].append(
                bound_value(float(after[0] - before[0]), np.asarray(after[1] - before[1]))
            )
            gaps = [self.gaps_between(*one) for one in pair]
            changes["disparity"].append(bound_change_of_largest(*gaps[0], *gaps[1]))
        return {name: _widest(scores) for name, scores in changes.items()}

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
            rates = {each: [_rate(part, *each)[0] for part in world[model]] for each in names}
            for found, (name, label, low, high) in zip(scores, asked, strict=True):
                value, drawn = rates[name, label]
                difference = drawn[:, high] - drawn[:, low]
                found.append(bound_value(float(value[high] - value[low]), difference, compared))
        return [_widest(found) for found in scores]

    def class_shares(self, label: int, compared: int = 1) -> list[Score]:
        """Return the share of each group that has a class, given as its code; ``compared`` as for gaps."""
        worlds = [[_rate(part, "class_share", label)[0] for part in world[0]] for world in self.worlds()]
        groups = range(self.judged.cells.shape[1])
        return [
            _widest([bound_value(float(value[group]), drawn[:, group], compared) for value, drawn in worlds])
            for group in groups
        ]

    def more_alike(self, first: int = 0, second: int = -1) -> Claim:
        """Say whether the second model treats groups more alike."""
        return self._claim("disparity", 0.0, first, second)

    def keeps_accuracy(self, within: float, first: int = 0, second: int = -1) -> Claim:
        """Say whether the accuracy of the second model is lower by ``within`` at most."""
        return self._claim("accuracy", -within, first, second)

    def _claim(self, name: str, boundary: float, first: int, second: int) -> Claim:
        """Say on which side of a boundary a change lies: that of a disparity should be below, of accuracy above."""
        found = self.change(first, second)[name]
        low, high = found.interval
        below, above = high < boundary, low >= boundary
        if below or above:
            return Claim("holds" if below == (name == "disparity") else "fails")
        by_chance = self.on_given_labels.change(first, second)[name]
        return Claim(
            "cannot tell", rows_needed(found, boundary, by_chance, len(self.judged.weights), self.basis)
        )

    def checks_to_tell(self, first: int = 0, second: int = -1) -> int | None:
        """Find how many labels, drawn at random, would have to be checked to tell whether groups are more alike.

        Checks are imagined whose answers are as likely as the estimate has it, twice as many each time, until both of
        two such draws tell. None where many would not do.
        """
        if self.estimate is None:
            return None
        chances, rng = _chances(self.estimate), np.random.default_rng(self.judged.seed)
        turns, order = rng.random((2, len(chances))), rng.permutation(len(chances))
        passed = np.cumsum(chances, axis=1)[:, :-1]
        checks = FEWEST_CHECKS
        while checks <= min(len(chances), MOST_CHECKS):
            told = []
            for turn in turns:
                codes = np.full(len(chances), -1)
                rows = order[:checks]
                codes[rows] = (passed[rows] < turn[rows, None]).sum(axis=1)
                known = replace(self.estimate, unseen=chances, verified_codes=codes, verified_weight=None)
                worlds = count_by_checks(self.judged, known)
                again = replace(self, worlds=partial(list, worlds))
                low, high = again._compare(first, second)["disparity"].interval
                told.append(high < 0 or low >= 0)
                if not told[-1]:
                    break
            if all(told):
                return checks
            checks *= 2
        return None

    @cached_property
    def enough(self) -> Flags:
        """Which rates of which groups have people enough, whichever model; others would decide by chance.

        As many as are labelled so, and as many as are left where flips are undone.
        """
        cells, there = self.judged.cells, self.judged.weights > 0
        classes, groups = cells.shape
        tables = [
            count_table(cells.label_codes, cells.group_codes, codes, classes, groups, there)
            for codes in self.judged.predictions
        ]
        each = there.sum() / max(float(self.judged.weights.sum()), 1e-300)
        tables += [counts.value * each for counts in next(iter(self.worlds()))]
        enough = has_enough(np.stack(tables), self.notion, FEW, positive=self.positive)
        return np.asarray(enough.all(axis=0))

    def gaps_between(self, value: Floats, drawn: Floats) -> tuple[Floats, Floats]:
        """Compute each difference that the disparity is the largest of, and draws of it."""
        found = []
        for tables in (value[None], drawn):
            tables = grouped_part(tables, self.judged.cells.groups)
            gaps = gaps_from_table(tables, self.notion, positive=self.positive, counted=self.enough)
            found.append(gaps.reshape(len(tables), -1))
        return found[0][0], found[1]

    def _judge_one(self, value: Floats, drawn: Floats) -> ModelJudgement:
        accuracy = bound_value(float(accuracy_from_table(value)), accuracy_from_table(drawn))
        return ModelJudgement(
            accuracy, bound_largest(*self.gaps_between(value, drawn)), self._rates(value, drawn), value
        )

    def _rates(self, value: Floats, drawn: Floats) -> list[GroupRate]:
        """Compute every rate of every group."""
        classes = range(self.judged.cells.shape[0])
        told = [self.positive] if len(classes) == 2 and self.positive >= 0 else classes
        names = [("accuracy", -1)]
        for label in told:
            names += [(name, label) for name in RATES]
        found = []
        for name, label in names:
            rates, people = _rate(value, name, label)
            again, _ = _rate(drawn, name, label)
            scores = [
                bound_value(float(rate), again[:, group]) if people[group] > 0 else None
                for group, rate in enumerate(rates)
            ]
            found.append(GroupRate(name, label, scores, people.tolist()))
        return found


def judge(
    cells: Cells,
    predictions: Sequence[NDArray[Any]],
    notion: str,
    *,
    positive: int = -1,
    estimate: CleanRatioEstimate | None = None,
    sample_weight: NDArray[Any] | None = None,
    clusters: NDArray[Any] | None = None,
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
    >>> judged.basis, judged.models[0].accuracy.value, judged.keeps_accuracy(0.01).verdict
    ('given labels', 1.0, 'fails')
    """
    weights = np.ones(len(cells)) if sample_weight is None else np.asarray(sample_weight, np.float64)
    numbers = None if clusters is None else np.unique(clusters, return_inverse=True)[1].reshape(-1)
    judged = Judged(cells, [np.asarray(codes, np.int64) for codes in predictions], weights, numbers, seed)
    as_given = count_as_given(judged)
    given = Judgement("given labels", judged, notion, positive, partial(list, [as_given]))
    basis, worlds = _choose_worlds(judged, estimate, given)
    if worlds is None:
        return given
    flawless: list[int] = []
    if estimate is not None and basis == "verified labels":
        rows, truth = estimate.checked, estimate.true_codes
        flawless = [
            model for model, codes in enumerate(judged.predictions) if (codes[rows] == truth[rows]).all()
        ]
    return Judgement(basis, judged, notion, positive, worlds, given, tuple(flawless), estimate)


def _chances(estimate: CleanRatioEstimate) -> Floats:
    """Return how likely each class is the true one; where it is not known, as if half as many were wrong as may be."""
    if estimate.acts:
        return estimate.true_class
    wrong, classes = (1 - estimate.interval[0]) / 2, estimate.cells.shape[0]
    given = np.eye(classes)[estimate.cells.label_codes]
    return given * (1 - wrong) + (1 - given) * wrong / max(classes - 1, 1)


def _choose_worlds(
    judged: Judged, estimate: CleanRatioEstimate | None, given: Judgement
) -> tuple[Basis, Callable[[], Iterable[World]] | None]:
    """Choose what right labels are known from; None where the labels are believed."""
    [as_given] = given.worlds()
    if estimate is None:
        return "given labels", None
    groups = np.arange(judged.cells.shape[1])  # people without a group come last, and none may be here
    if estimate.unseen is not None and len(estimate.checked):
        checked = count_by_checks(judged, estimate)
        return "verified labels", partial(list, checked)
    if estimate.acts and estimate.aimed:
        aimed = count_by_aim(judged, estimate)
        return "estimate", partial(list, aimed)
    if estimate.acts:
        rng = np.random.default_rng(judged.seed + 1)  # other draws than those of the rows
        worlds = [
            undo_flips(as_given, each.likeliest, each.draw(rng, DRAWS))
            for each in (found.spread(groups) for found in estimate.likely_rates)
        ]
        # Rows of which none was checked are judged by the rates that the checks of others show.
        return "estimate", partial(list, worlds or [undo_flips(as_given, estimate.flip_rates[:, groups])])
    if 1 - estimate.interval[0] > HARMLESS:
        highest = estimate.highest_rates
        unknown = np.ones(judged.cells.shape) if highest is None else highest[:, groups]
        ways = list(_ways_to_be_wrong(unknown, given))
        fewer = [one._replace(drawn=one.drawn[:FEWER_DRAWS]) for one in as_given]
        return "bounds", partial(map, partial(undo_flips, fewer), ways)
    return "given labels", None


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
        gaps = [given.gaps_between(one.value, undo_flips_of(one.value, steps)) for one in world]
        disparities = [np.abs(each).max(axis=1, initial=0.0) for _, each in gaps]
        measured = np.stack([*disparities, disparities[-1] - disparities[0]])
        yield from steps[sorted({STEPS - 1, *measured.argmin(axis=1), *measured.argmax(axis=1)})]


def _rate(tables: Floats, name: str, label: int) -> tuple[Floats, Floats]:
    """Compute a rate of each group, (…, groups), and how many people it is of."""
    if name == "accuracy":
        hits, people = np.einsum("...yzy->...z", tables), tables.sum(axis=(-3, -1))
    elif name == "selection_rate":
        hits, people = tables[..., label].sum(axis=-2), tables.sum(axis=(-3, -1))
    elif name == "class_share":
        hits, people = tables[..., label, :, :].sum(axis=-1), tables.sum(axis=(-3, -1))
    elif name == "precision":
        hits, people = tables[..., label, :, label], tables[..., label].sum(axis=-2)
    elif name == "true_positive_rate":
        hits, people = tables[..., label, :, label], tables[..., label, :, :].sum(axis=-1)
    else:
        others = np.delete(tables, label, axis=-3).sum(axis=-3)
        hits, people = others[..., label], others.sum(axis=-1)
    return np.divide(hits, people, out=np.zeros_like(hits), where=people > 0), people


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
    accuracy, disparity = (
        _widest([one.accuracy for one in judged]),
        _widest([one.disparity for one in judged]),
    )
    return ModelJudgement(accuracy, disparity, rates, judged[0].table)


# ---- What would tell


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
