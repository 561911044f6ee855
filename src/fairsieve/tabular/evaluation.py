"""Measure two models, overall and for each group, with intervals."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fairsieve.intervals import NORMAL, newcombe, simultaneous, wilson
from fairsieve.metrics import count_table
from fairsieve.selection.cells import Cells
from fairsieve.tabular.reading.roles import Labels

__all__ = [
    "FEW",
    "Gap",
    "GroupRate",
    "Measure",
    "Share",
    "gap_between",
    "measure_groups",
    "told_classes",
    "widest_gap",
]

RateKind = Literal["accuracy", "selection", "true_positive", "false_positive"]
FEW = 10  # people to measure on; rates of fewer are chance


class Share(NamedTuple):
    """A proportion: ``hits`` out of ``total``."""

    hits: int
    total: int

    @property
    def value(self) -> float:
        """The proportion; NaN where ``total`` is 0."""
        return self.hits / self.total if self.total else math.nan

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % interval, by Wilson."""
        return wilson(self.hits, self.total)


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
    """How far the rate of one group lies below that of another, before and after.

    ``compared`` says of how many differences it is the widest; its intervals then hold for all of them at once.
    """

    measure: Measure
    low: int
    high: int
    plain: float
    fair: float
    plain_interval: tuple[float, float]
    fair_interval: tuple[float, float]
    compared: int = 1


class _Rate(NamedTuple):
    """What a measure counts in one group's table of (label, prediction): some, and of how many."""

    name: str
    title: str
    meaning: str
    notions: tuple[str, ...]
    kind: RateKind
    label: str
    rule: Callable[[NDArray[np.int64]], tuple[Any, Any]]


def measure_groups(
    cells: Cells, plain: NDArray[np.int64], fair: NDArray[np.int64], labels: Labels
) -> list[Measure]:
    """Compute every rate of both models' predictions (as class codes), for the groups of ``cells``."""
    classes, groups = cells.shape
    tables = [
        count_table(cells.label_codes, cells.group_codes, codes, classes, groups).astype(np.int64)
        for codes in (plain, fair)
    ]
    found = []
    for rate in _list_rates(labels):
        shares = [
            [Share(*map(int, rate.rule(table[:, group]))) for group in range(groups)] for table in tables
        ]
        found.append(Measure(*rate[:-1], *shares))
    return found


def _list_rates(labels: Labels) -> list[_Rate]:
    """List accuracy, and the rates of the classes that are reported."""
    meaning = "of everyone, predicted as labelled"
    rule = lambda table: (np.trace(table), table.sum())  # noqa: E731
    found = [_Rate("accuracy", "accuracy", meaning, (), "accuracy", "", rule)]
    for code, label in told_classes(labels):
        found += _class_rates(code, label, labels)
    return found


def _class_rates(code: int, label: str, labels: Labels) -> list[_Rate]:
    """List how often a class is predicted: to everyone, to its own, and of two classes to the other."""
    single = len(labels.classes) == 2
    which = "" if single else f" of {label}"
    notions = ("equalized_odds", "equal_opportunity") if label == labels.positive else ("equalized_odds",)
    found = [
        _Rate(
            f"selection_rate{which}",
            f"share predicted {label}",
            f"of everyone, predicted {label}",
            ("demographic_parity",),
            "selection",
            label,
            lambda table: (table[:, code].sum(), table.sum()),
        ),
        _Rate(
            f"true_positive_rate{which}",
            f"true-positive rate{which}",
            f"of those labelled {label}, predicted {label}",
            notions,
            "true_positive",
            label,
            lambda table: (table[code, code], table[code].sum()),
        ),
    ]
    if single:
        wrongly = _Rate(
            "false_positive_rate",
            "false-positive rate",
            f"of those labelled otherwise, predicted {label}",
            ("equalized_odds",),
            "false_positive",
            label,
            lambda table: (table[1 - code, code], table[1 - code].sum()),
        )
        found.append(wrongly)
    return found


def told_classes(labels: Labels) -> list[tuple[int, str]]:
    """Select the classes whose rates are reported: the positive one of two, or all."""
    pairs = list(enumerate(labels.classes))
    return [pair for pair in pairs if pair[1] == labels.positive] if len(pairs) == 2 else pairs


def gap_between(measure: Measure, low: int, high: int, compared: int = 1) -> Gap:
    """Compute how far group ``low`` lies below group ``high``; intervals by Newcombe, for ``compared`` at once."""
    normal = simultaneous(compared) if compared > 1 else NORMAL

    def below(shares: list[Share]) -> tuple[float, tuple[float, float]]:
        more, less = shares[high], shares[low]
        return more.value - less.value, newcombe(*more, *less, normal)

    (plain, plain_interval), (fair, fair_interval) = below(measure.plain), below(measure.fair)
    return Gap(measure, low, high, plain, fair, plain_interval, fair_interval, compared)


def widest_gap(
    measures: Sequence[Measure], fairness: str, groups: int, model: Literal["plain", "fair"] = "plain"
) -> Gap | None:
    """Find a model's widest gap among the rates that ``fairness`` compares; None if all are of too few people."""
    pairs = [
        (measure, low, high)
        for measure in measures
        if fairness in measure.notions
        for low in range(groups)
        for high in range(groups)
        if low != high and min(measure.plain[low].total, measure.plain[high].total) >= FEW
    ]
    gaps = [gap_between(*pair, compared=len(pairs) // 2) for pair in pairs]
    return max(gaps, key=lambda gap: float(getattr(gap, model)), default=None)
