"""Measure two models on the test part, overall and for each group, and count who was left out of training.

Every number has a 95 % interval: Wilson's for rates, Newcombe's for differences, and for accuracy and disparity the
percentiles over samples drawn again (bootstrap).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fairsieve.intervals import newcombe, paired_change, simultaneous, wilson
from fairsieve.metrics import accuracy_from_table, count_table, disparity_from_table, grouped_part
from fairsieve.selection.cells import Cells
from fairsieve.tabular.reading.roles import Labels

RateKind = Literal["accuracy", "selection", "true_positive", "false_positive"]
FEW = 10  # people to measure on; rates of fewer are chance
DRAWS = 1000
LEVELS = (2.5, 97.5)
NOTICEABLE = 0.02  # a smaller difference is none worth telling
IGNORED = 0.25  # of the weight that its rows would have

Bounds = tuple[float, float]


class Score(NamedTuple):
    """A number of a model, and its 95 % interval."""

    value: float
    interval: Bounds


class Share(NamedTuple):
    """A proportion: ``hits`` out of ``total``."""

    hits: int
    total: int

    @property
    def value(self) -> float:
        """The proportion; NaN where ``total`` is 0."""
        return self.hits / self.total if self.total else math.nan

    @property
    def interval(self) -> Bounds:
        """The 95 % interval, by Wilson."""
        return wilson(self.hits, self.total)

    def less(self, other: Share, compared: int = 1) -> Score:
        """Subtract the share of other people; by Newcombe, with an interval for ``compared`` differences at once."""
        return Score(self.value - other.value, newcombe(*self, *other, simultaneous(compared)))


@dataclass(frozen=True)
class Measure:
    """A rate, group by group, under the plain and under the fair model.

    Attributes
    ----------
    name, title : str
        Such as "true_positive_rate" and "true-positive rate".
    meaning : str
        Whose share of what.
    notions : tuple of str
        The notions of fairness that compare it.
    kind : {"accuracy", "selection", "true_positive", "false_positive"}
    label : str
        The label that it is about; empty for accuracy.
    plain, fair : lists of Share
        One for each group.
    """

    name: str
    title: str
    meaning: str
    notions: tuple[str, ...]
    kind: RateKind
    label: str
    plain: list[Share]
    fair: list[Share]


class GroupRate(NamedTuple):
    """The rate of one group under the plain and under the fair model."""

    group: str
    plain: Share
    fair: Share


class Gap(NamedTuple):
    """How far the rate of group ``low`` lies below that of group ``high``, under both models."""

    measure: Measure
    low: int
    high: int
    plain: Score
    fair: Score


def measure_groups(
    cells: Cells, plain: NDArray[np.int64], fair: NDArray[np.int64], labels: Labels
) -> list[Measure]:
    """Compute every rate of both models' predictions (as class codes), for the groups of ``cells``."""
    classes, groups = cells.shape
    # By model, label, group and prediction.
    table = np.stack(
        [
            count_table(cells.label_codes, cells.group_codes, codes, classes, groups).astype(np.int64)
            for codes in (plain, fair)
        ]
    )
    people = table.sum(axis=(1, 3))
    found = []

    def add(hits: NDArray[Any], totals: NDArray[Any], kind: RateKind, label: str, *words: Any) -> None:
        counts = np.stack([hits, totals], axis=-1).tolist()
        before, after = ([Share(*pair) for pair in side] for side in counts)
        name, title, meaning, notions = words
        found.append(Measure(name, title, meaning, notions, kind, label, before, after))

    right = np.trace(table, axis1=1, axis2=3)
    add(right, people, "accuracy", "", "accuracy", "accuracy", "of everyone, predicted as labelled", ())
    for code, label in told_classes(labels):
        which = "" if classes == 2 else f" of {label}"
        said, own = table[..., code], table[:, code].sum(axis=-1)
        words: list[Any] = [
            f"selection_rate{which}",
            f"share predicted {label}",
            f"of everyone, predicted {label}",
        ]
        add(said.sum(axis=1), people, "selection", label, *words, ("demographic_parity",))
        words = [f"true_positive_rate{which}", f"true-positive rate{which}"]
        words.append(f"of those labelled {label}, predicted {label}")
        odds = ("equalized_odds", "equal_opportunity") if label == labels.positive else ("equalized_odds",)
        add(said[:, code], own, "true_positive", label, *words, odds)
        if classes == 2:
            words = [
                "false_positive_rate",
                "false-positive rate",
                f"of those labelled otherwise, predicted {label}",
            ]
            add(said[:, 1 - code], people - own, "false_positive", label, *words, ("equalized_odds",))
    return found


def told_classes(labels: Labels) -> list[tuple[int, str]]:
    """Select the classes whose rates are reported: the positive one of two, or all."""
    pairs = list(enumerate(labels.classes))
    return [pair for pair in pairs if pair[1] == labels.positive] if len(pairs) == 2 else pairs


def list_gaps(measures: Sequence[Measure], fairness: str, groups: int, *, at_once: bool = False) -> list[Gap]:
    """List how far every group lies below every other, in the rates of enough people that ``fairness`` compares.

    With ``at_once``, the intervals hold for all of them together, so that the widest may be picked.
    """
    pairs = [
        (measure, low, high)
        for measure in measures
        if fairness in measure.notions
        for low, high in permutations(range(groups), 2)
        if min(measure.plain[low].total, measure.plain[high].total) >= FEW
    ]
    compared = len(pairs) // 2 if at_once else 1
    return [
        Gap(one, low, high, *(side[high].less(side[low], compared) for side in (one.plain, one.fair)))
        for one, low, high in pairs
    ]


def order_gaps(gaps: Sequence[Gap]) -> list[Gap]:
    """Take each pair of groups once, the widest gap under the plain model first."""
    once = [gap for gap in gaps if gap.plain.value > 0 or (gap.plain.value == 0 and gap.low < gap.high)]
    return sorted(once, key=lambda gap: -gap.plain.value)


# ---- Accuracy and disparity


def score_models(
    cells: Cells,
    predictions: Sequence[NDArray[np.int64]],
    fairness: str,
    positive: int,
    seed: int,
    kept: int = -1,
) -> tuple[list[dict[str, Score]], dict[str, Score]]:
    """Measure accuracy and disparity of several models on the same samples, and that at ``kept`` less the first.

    The samples are drawn again, with replacement, 1,000 times, the same for every model, so that what
    the difference between two owes to the choice of people cancels (bootstrap, percentiles). Cells of
    fewer than 10 people do not count for the disparity. Where few or no predictions differ, drawing again
    says too little of chance: intervals of accuracy are at least as wide as Wilson's, and those of its change as
    Agresti and Min's.

    Parameters
    ----------
    predictions : sequence of integer arrays
        The class codes that each model predicts.
    positive : int
        Code of the positive class; −1 where there is none.
    """
    classes, groups = cells.shape
    # Cells with too few people for a rate would decide the disparity by chance.
    people = cells.counts.sum(axis=0, keepdims=True) if fairness == "demographic_parity" else cells.counts
    enough = np.broadcast_to((people >= FEW)[:, :, None], (*cells.shape, 1))

    def measured(tables: NDArray[np.float64]) -> dict[str, NDArray[np.float64]]:
        grouped = grouped_part(tables, cells.groups) * enough
        disparity = disparity_from_table(grouped, fairness, positive=positive)
        return {"accuracy": accuracy_from_table(tables), "disparity": disparity}

    kinds, counts = _joint_counts(cells.codes, predictions, classes)
    draws = np.random.default_rng(seed).multinomial(len(cells), counts / counts.sum(), size=DRAWS)
    values, drawn = [], []
    for model, codes in enumerate(predictions):
        table = count_table(cells.label_codes, cells.group_codes, codes, classes, groups)
        tables = np.zeros((DRAWS, classes * groups * classes))
        np.add.at(tables.T, kinds[0] * classes + kinds[model + 1], draws.T)
        values.append({name: float(value[0]) for name, value in measured(table[None]).items()})
        drawn.append(measured(tables.reshape(DRAWS, classes, groups, classes)))
    rights = [codes == cells.label_codes for codes in predictions]
    gained, lost = int((rights[kept] & ~rights[0]).sum()), int((rights[0] & ~rights[kept]).sum())
    least = [wilson(int(right.sum()), len(cells)) for right in rights]
    models = [_scores(*one) for one in zip(values, drawn, least, strict=True)]
    change = _scores(
        {name: values[kept][name] - values[0][name] for name in values[0]},
        {name: drawn[kept][name] - drawn[0][name] for name in values[0]},
        paired_change(gained, lost, len(cells)),
    )
    return models, change


def _scores(
    values: dict[str, float], drawn: dict[str, NDArray[np.float64]], least: Bounds
) -> dict[str, Score]:
    """Give values the intervals of their draws; that of accuracy holds ``least``."""
    bounds = {name: tuple(map(float, np.percentile(again, LEVELS))) for name, again in drawn.items()}
    low, high = bounds["accuracy"]
    bounds["accuracy"] = (min(low, least[0]), max(high, least[1]))
    return {name: Score(value, bounds[name]) for name, value in values.items()}  # type: ignore[arg-type]


def _joint_counts(
    cells: NDArray[Any], predictions: Sequence[NDArray[np.int64]], classes: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Count the different (cell, prediction of each model); the samples matter by these alone.

    Examples
    --------
    >>> kinds, counts = _joint_counts(np.array([0, 1, 0]), [np.array([1, 0, 1])], 2)
    >>> kinds.tolist(), counts.tolist()
    ([[0, 1], [1, 0]], [2, 1])
    """
    kinds = np.stack([cells.astype(np.int64), *predictions])
    joint = kinds[0]
    for codes in predictions:  # numbered anew each time, since many models of many classes would overflow
        joint = np.unique(joint * classes + codes, return_inverse=True)[1]
    _, first, counts = np.unique(joint, return_index=True, return_counts=True)
    return kinds[:, first], counts


# ---- Who was left out of training


@dataclass(frozen=True)
class DroppedCell:
    """The people of one label in one group (None: without a group).

    Attributes
    ----------
    label, group : str
    dropped : Share
        Those left out in the last epoch, of all.
    suspects : int
        Those whose label looks wrong.
    estimated_noise : float or None
        Estimated share of wrong labels, where it was estimated.
    effective_weight : float or None
        Effective weight: the cell's share of the training weight, divided by its share of the rows.
    """

    label: str
    group: str | None
    dropped: Share
    suspects: int
    estimated_noise: float | None
    effective_weight: float | None = None

    @property
    def is_ignored(self) -> bool:
        """Whether the cell has less than a quarter of the weight that its rows would have."""
        return self.effective_weight is not None and self.effective_weight < IGNORED


class Uneven(NamedTuple):
    """Two groups of one label, of which ``most`` was dropped more.

    ``expected`` is the difference that their estimated wrong labels explain; 0 where none were estimated, and where
    the group that was dropped more has fewer of them.
    """

    most: DroppedCell
    least: DroppedCell
    difference: Score
    expected: float

    @property
    def even_handed(self) -> bool:
        """Whether the difference is small, no more than chance, or what wrong labels explain."""
        value, (low, _) = self.difference
        return value - self.expected < NOTICEABLE or low <= self.expected


def dropped_cells(
    cells: Cells,
    kept: NDArray[np.int64],
    suspects: NDArray[np.int64],
    noise: NDArray[np.float64] | None,
    weights: NDArray[np.float64] | None = None,
) -> list[DroppedCell]:
    """Describe every cell that is not empty; ``kept`` and ``suspects`` are positions of samples.

    ``weights`` are effective weights, by class and group.
    """
    left = np.ones(len(cells), bool)
    left[kept] = False
    dropped, wrong = (
        np.bincount(cells.codes[rows], minlength=cells.counts.size).reshape(cells.shape)
        for rows in (left, suspects)
    )

    def known(values: NDArray[np.float64] | None, place: tuple[int, int]) -> float | None:
        return None if values is None or np.isnan(values[place]) else float(values[place])

    return [
        DroppedCell(
            str(cells.classes[place[0]]),
            cells.groups[place[1]],
            Share(int(dropped[place]), int(count)),
            int(wrong[place]),
            known(noise, place),
            known(weights, place),
        )
        for place, count in np.ndenumerate(cells.counts)
        if count
    ]


def most_uneven(cells: list[DroppedCell]) -> Uneven | None:
    """Find the difference between two groups of one label that is explained least; of those that are, the largest.

    None where groups are too small to tell.
    """
    compared = [cell for cell in cells if cell.group is not None and cell.dropped.total >= FEW]
    found = [
        Uneven(
            one,
            other,
            one.dropped.less(other.dropped),
            max((one.estimated_noise or 0.0) - (other.estimated_noise or 0.0), 0.0),
        )
        for one, other in permutations(compared, 2)
        if one.label == other.label
    ]

    def weight(one: Uneven) -> tuple[bool, float]:
        explained = 0.0 if one.even_handed else one.expected
        return not one.even_handed, one.difference.value - explained

    return max(found, key=weight, default=None)
