"""Measure two models on the test part, overall and for each group.

Beside accuracy: how well models tell labels apart, and whether their probabilities mean what they say. Accuracy says
little where a label is rare: to predict it for nobody is right almost always.

Every number has a 95 % interval: Wilson's for rates, Newcombe's for differences, and for accuracy and disparity the
percentiles over samples drawn again (bootstrap).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import rankdata
from sklearn.metrics import average_precision_score

from fairsieve import notions
from fairsieve.intervals import (
    NORMAL,
    Bounds,
    average_of_shares,
    newcombe,
    paired_change,
    simultaneous,
    wilson,
)
from fairsieve.intervals import Score as Score
from fairsieve.metrics import accuracy_from_table, count_table, disparity_from_table, grouped_part, has_enough
from fairsieve.rates import Rates
from fairsieve.selection.cells import Cells
from fairsieve.tabular.reading.roles import Labels

FEW = 10  # people to measure on; rates of fewer are chance
DRAWS = 1000
LEVELS = (2.5, 97.5)

EVERYONE = "everyone"
BINS = 10  # of probabilities

Codes = NDArray[np.int64]
Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]


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


Value = TypeVar("Value")


class Measure(NamedTuple, Generic[Value]):
    """A number of both models, group by group: a rate, or how well labels are told apart.

    Attributes
    ----------
    name, title : str
        Such as "true_positive_rate" and "true-positive rate".
    meaning : str
        Whose share of what.
    label : str
        The label that it is about; empty for a number of all labels together.
    plain, fair : lists
        One Share of each group for a rate. Of the others one Score of each group, and a last one for everyone; None
        where a group has nobody to compute it from.
    notions : tuple of str
        The notions of fairness that compare it.
    """

    name: str
    title: str
    meaning: str
    label: str
    plain: list[Value]
    fair: list[Value]
    notions: tuple[str, ...] = ()


Rate = Measure[Share]
Quality = Measure[Score | None]


class GroupRate(NamedTuple):
    """The rate of one group under the plain and under the fair model."""

    group: str
    plain: Share
    fair: Share


class Gap(NamedTuple):
    """How far the rate of group ``low`` lies below that of group ``high``, under both models."""

    measure: Rate
    low: int
    high: int
    plain: Score
    fair: Score


def measure_groups(cells: Cells, plain: Codes, fair: Codes, labels: Labels) -> list[Rate]:
    """Compute every rate of both models' predictions (as class codes), for the groups of ``cells``."""
    classes, groups = cells.shape
    # By model, label, group and prediction.
    table = np.stack(
        [count_table(cells.label_codes, cells.group_codes, codes, classes, groups) for codes in (plain, fair)]
    )
    found: list[Rate] = []

    def add(rate: notions.Rate, label: str, name: str, title: str, meaning: str) -> None:
        counts = np.concatenate(Rates([rate]).count(table), axis=1).astype(np.int64)
        before, after = ([Share(*pair) for pair in side] for side in counts.swapaxes(1, 2).tolist())
        compared = [
            one.name for one in notions.NOTIONS.values() if one.compares(rate, classes, labels.positive_code)
        ]
        found.append(Measure(name, title, meaning, label, before, after, tuple(compared)))

    add(
        notions.Rate(notions.ANY, notions.RIGHT),
        "",
        "accuracy",
        "accuracy",
        "of everyone, predicted as labelled",
    )
    for code, label in told_classes(labels):
        which = "" if classes == 2 else f" of {label}"
        title, meaning = f"share predicted {label}", f"of everyone, predicted {label}"
        add(notions.Rate(notions.ANY, code), label, f"selection_rate{which}", title, meaning)
        title, meaning = f"true-positive rate{which}", f"of those labelled {label}, predicted {label}"
        add(notions.Rate(code, code, of_true=code), label, f"true_positive_rate{which}", title, meaning)
        if classes == 2:
            title, meaning = "false-positive rate", f"of those labelled otherwise, predicted {label}"
            add(notions.Rate(1 - code, code, of_true=1 - code), label, "false_positive_rate", title, meaning)
    return found


def told_classes(labels: Labels) -> list[tuple[int, str]]:
    """Select the classes whose rates are reported: the positive one of two, or all."""
    pairs = list(enumerate(labels.classes))
    return [pair for pair in pairs if pair[1] == labels.positive] if len(pairs) == 2 else pairs


def count_predicted(codes: Codes, labels: Labels) -> dict[str, int]:
    """Count how often each label is predicted; those that never are, are left out."""
    counts = np.bincount(codes, minlength=len(labels.classes)).tolist()
    return {label: count for label, count in zip(labels.classes, counts, strict=True) if count}


def list_gaps(measures: Sequence[Rate], fairness: str, groups: int, *, at_once: bool = False) -> list[Gap]:
    """List how far every group lies below every other, in the rates of enough people that ``fairness`` compares.

    With ``at_once``, the intervals hold for all of them together, so that the widest may be picked.
    """
    pairs = [
        (measure, low, high)
        for measure in measures
        if fairness in measure.notions
        for low, high in permutations(range(groups), 2)
        if min(side[group].total for side in (measure.plain, measure.fair) for group in (low, high)) >= FEW
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
    cells: Cells, predictions: Sequence[Codes], fairness: str, positive: int, seed: int, kept: int = -1
) -> tuple[list[dict[str, Score]], dict[str, Score]]:
    """Measure accuracy and disparity of several models on the same samples, and that at ``kept`` less the first.

    The samples are drawn again, with replacement, 1,000 times, the same for every model, so that what
    the difference between two owes to the choice of people cancels (bootstrap, percentiles). Rates of
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
    of_models = np.stack(
        [count_table(cells.label_codes, cells.group_codes, codes, classes, groups) for codes in predictions]
    )
    enough = np.all(has_enough(of_models, fairness, FEW, positive=positive), axis=0)

    def measured(tables: Floats) -> dict[str, Floats]:
        grouped = grouped_part(tables, cells.groups)
        disparity = disparity_from_table(grouped, fairness, positive=positive, counted=enough)
        return {"accuracy": accuracy_from_table(tables), "disparity": disparity}

    # The samples matter by their cell and by what each model predicts alone.
    counted = pd.DataFrame(dict(enumerate([cells.codes, *predictions]))).value_counts(sort=False).sort_index()
    kinds, counts = counted.index.to_frame().to_numpy().T, counted.to_numpy()
    draws = np.random.default_rng(seed).multinomial(len(cells), counts / counts.sum(), size=DRAWS)
    values, drawn = [], []
    for model in range(len(predictions)):
        tables = np.zeros((DRAWS, classes * groups * classes))
        np.add.at(tables.T, kinds[0] * classes + kinds[model + 1], draws.T)
        values.append({name: float(value) for name, value in measured(of_models[model]).items()})
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


def _scores(values: dict[str, float], drawn: dict[str, Floats], least: Bounds) -> dict[str, Score]:
    """Give values the intervals of their draws; that of accuracy holds ``least``."""
    bounds = {name: tuple(map(float, np.percentile(again, LEVELS))) for name, again in drawn.items()}
    low, high = bounds["accuracy"]
    bounds["accuracy"] = (min(low, least[0]), max(high, least[1]))
    return {name: Score(value, bounds[name]) for name, value in values.items()}  # type: ignore[arg-type]


# ---- How well labels are told apart


class ModelOutput(NamedTuple):
    """What a model says of the test part."""

    chances: Floats  # (n, classes)
    codes: Codes  # the predicted classes


def measure_quality(cells: Cells, plain: ModelOutput, fair: ModelOutput, labels: Labels) -> list[Quality]:
    """Measure both models in every group of ``cells``, and over everyone, with 95 % intervals."""
    models = plain, fair
    parts = [*(cells.group_codes == group for group in range(cells.shape[1])), np.ones(len(cells), bool)]
    found: list[Quality] = []
    for code, label in told_classes(labels):
        which = "" if len(labels.classes) == 2 else f" of {label}"
        columns = [
            [
                _tell(cells.label_codes[part] == code, one.codes[part] == code, one.chances[part, code])
                for part in parts
            ]
            for one in models
        ]
        meanings = {
            "AUC": f"how often one labelled {label} scores higher than one who is not",
            "average precision": f"the mean share labelled {label} among those who score highest",
            "precision": f"of those predicted {label}, labelled {label}",
            "recall": f"of those labelled {label}, predicted {label}",
        }
        for title, meaning in meanings.items():
            values = [[one[title] for one in column] for column in columns]
            name = title.lower().replace(" ", "_")
            found.append(Measure(name, title + which, meaning, label, values[0], values[1]))
    balanced = [[_balance(cells.label_codes[part], one.codes[part]) for part in parts] for one in models]
    meaning = "the mean, over the labels, of the share of those so labelled that are predicted so"
    return [*found, Measure("balanced_accuracy", "balanced accuracy", meaning, "", balanced[0], balanced[1])]


def _tell(positive: Flags, predicted: Flags, scores: Floats) -> dict[str, Score | None]:
    """Measure how well a label is told from the others among some rows."""
    hits = int((positive & predicted).sum())
    totals = {"precision": int(predicted.sum()), "recall": int(positive.sum())}
    found: dict[str, Score | None] = dict.fromkeys(("AUC", "average precision"))
    for name, total in totals.items():
        found[name] = Score(hits / total, wilson(hits, total)) if total else None
    count = int(positive.sum())
    if 0 < count < len(positive):
        fewest = min(count, len(positive) - count)
        found["AUC"] = _logit_score(*_auc(positive, scores), fewest)
        # Shares that are 1 together may add up to a little more, or less.
        precision = round(float(average_precision_score(positive, scores)), 12)
        # As of a share of those with the label (Boyd, Eng and Page 2013).
        deviation = math.sqrt(precision * (1 - precision) / count)
        found["average precision"] = _logit_score(precision, deviation, fewest)
    return found


def _auc(positive: Flags, scores: Floats) -> tuple[float, float]:
    """Compute the AUC and its standard deviation (DeLong, by ranks as Sun and Xu 2014)."""
    ranks = rankdata(scores)
    counts = [int((~positive).sum()), int(positive.sum())]
    # How many of the other label each sample stands above, as a share.
    above = [
        (ranks[positive == one] - rankdata(scores[positive == one])) / counts[not one]
        for one in (False, True)
    ]
    spread = [side.var(ddof=1) / len(side) if len(side) > 1 else math.inf for side in above]
    return float(above[1].mean()), math.sqrt(sum(spread))


def _logit_score(value: float, deviation: float, fewest: int) -> Score:
    """Give a value in [0, 1] an interval on the scale of logits.

    At 0 and 1 the deviation says nothing; then the interval is that of a share of the rarer label.
    """
    if not 0 < value < 1:
        return Score(value, wilson(round(value * fewest), fewest))
    middle, half = math.log(value / (1 - value)), NORMAL * deviation / (value * (1 - value))
    low, high = (1 / (1 + math.exp(-np.clip(middle + side * half, -50, 50))) for side in (-1, 1))
    return Score(value, (low, high))


def _balance(codes: Codes, predicted: Codes) -> Score | None:
    """Average the recalls of the labels that there are."""
    right = predicted == codes
    shares = [(float(right[codes == one].sum()), float((codes == one).sum())) for one in set(codes)]
    if len(shares) < 2:
        return None
    return Score(sum(hits / total for hits, total in shares) / len(shares), average_of_shares(shares))


# ---- Probabilities


class _CalibrationBin(NamedTuple):
    """People with about the same probability: its mean, and the share of them that has the label."""

    predicted: float
    observed: Share


@dataclass(frozen=True)
class Calibration:
    """The probabilities of one model in one group.

    Attributes
    ----------
    model : {"plain", "fair"}
    group : str or None
    label : str or None
        What the probabilities are of; None for the predicted label, where no label of many is named.
    bins : list of _CalibrationBin
        From low to high probabilities; those of fewer than ten people of the group are left out.
    predicted : float
        The mean probability.
    observed : Share
        Those of the group that have the label.
    """

    model: str
    group: str | None
    label: str | None
    bins: list[_CalibrationBin]
    predicted: float
    observed: Share

    @property
    def error(self) -> Score:
        """How far the share that has the label lies above the mean probability, with its 95 % interval."""
        low, high = self.observed.interval
        return Score(self.observed.value - self.predicted, (low - self.predicted, high - self.predicted))


def measure_calibration(
    cells: Cells, plain: ModelOutput, fair: ModelOutput, labels: Labels
) -> list[Calibration]:
    """Compare the probabilities of both models with what was found, in every group of ``cells``."""
    found = []
    for name, model in (("plain", plain), ("fair", fair)):
        if labels.positive is None:  # many labels, and none of them named
            scores, hits = model.chances.max(axis=1), model.chances.argmax(axis=1) == cells.label_codes
        else:
            place = labels.classes.index(labels.positive)
            scores, hits = model.chances[:, place], cells.label_codes == place
        found += calibrate_scores(name, cells, scores, hits, labels.positive)
    return found


def calibrate_scores(
    model: str, cells: Cells, scores: Floats, hits: Flags, label: str | None
) -> list[Calibration]:
    """Compare the scores of one model with what was found (``hits``), in every group of ``cells``.

    Everybody's scores are cut into ten parts of equally many people, the same for all groups; into fewer where a group
    is small.
    """
    people = np.bincount(cells.group_codes, minlength=cells.shape[1])[: cells.named_groups]
    parts = int(np.clip(people.min(initial=len(cells)) // (2 * FEW), 2, BINS))
    edges = np.unique(np.quantile(scores, np.linspace(0, 1, parts + 1)[1:-1]))
    places = np.searchsorted(edges, scores, side="right")

    def describe(rows: NDArray[Any]) -> _CalibrationBin:
        return _CalibrationBin(float(scores[rows].mean()), Share(int(hits[rows].sum()), len(rows)))

    found = []
    for code, group in enumerate(cells.groups):
        inside = np.flatnonzero(cells.group_codes == code)
        if len(inside):
            bins = [inside[places[inside] == place] for place in np.unique(places[inside])]
            told = [describe(rows) for rows in bins if len(rows) >= FEW]
            found.append(Calibration(model, group, label, told, *describe(inside)))
    return found
