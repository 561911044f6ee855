"""How well models tell labels apart in each group, and whether their probabilities mean what they say.

Accuracy says little where a label is rare: to predict it for nobody is right almost always.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata
from sklearn.metrics import average_precision_score

from fairsieve.intervals import NORMAL, average_of_shares, wilson
from fairsieve.selection.cells import Cells
from fairsieve.tabular.evaluation import FEW, Score, Share, told_classes
from fairsieve.tabular.reading.roles import Labels

EVERYONE = "everyone"
BINS = 10  # of probabilities

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]


class ModelOutput(NamedTuple):
    """What a model says of the test part."""

    chances: Floats  # (n, classes)
    codes: NDArray[np.int64]  # the predicted classes


class Quality(NamedTuple):
    """A number of both models, group by group.

    Attributes
    ----------
    name, title : str
        Such as "average_precision" and "average precision".
    meaning : str
    label : str
        The label that is told from the others; empty for a number of all labels together.
    plain, fair : lists of Score or None
        One for each group, and a last one for everyone; None where a group has nobody to compute it from.
    """

    name: str
    title: str
    meaning: str
    label: str
    plain: list[Score | None]
    fair: list[Score | None]


def measure_quality(cells: Cells, plain: ModelOutput, fair: ModelOutput, labels: Labels) -> list[Quality]:
    """Measure both models in every group of ``cells``, and over everyone, with 95 % intervals."""
    parts = [*(cells.group_codes == group for group in range(cells.shape[1])), np.ones(len(cells), bool)]
    found: list[Quality] = []
    for code, label in told_classes(labels):
        which = "" if len(labels.classes) == 2 else f" of {label}"
        columns = [
            [
                _tell(cells.label_codes[part] == code, one.codes[part] == code, one.chances[part, code])
                for part in parts
            ]
            for one in (plain, fair)
        ]
        meanings = {
            "AUC": f"how often one labelled {label} scores higher than one who is not",
            "average precision": f"the mean share labelled {label} among those who score highest",
            "precision": f"of those predicted {label}, labelled {label}",
            "recall": f"of those labelled {label}, predicted {label}",
        }
        for title, meaning in meanings.items():
            values = [[one[title] for one in column] for column in columns]
            found.append(
                Quality(title.lower().replace(" ", "_"), title + which, meaning, label, values[0], values[1])
            )
    balanced = [
        [_balance(cells.label_codes[part], one.codes[part]) for part in parts] for one in (plain, fair)
    ]
    meaning = "the mean, over the labels, of the share of those so labelled that are predicted so"
    return [*found, Quality("balanced_accuracy", "balanced accuracy", meaning, "", balanced[0], balanced[1])]


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
        precision = float(average_precision_score(positive, scores))
        # As of a share of those with the label (Boyd, Eng and Page 2013).
        found["average precision"] = _logit_score(
            precision, math.sqrt(precision * (1 - precision) / count), fewest
        )
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


def _balance(codes: NDArray[np.int64], predicted: NDArray[np.int64]) -> Score | None:
    """Average the recalls of the labels that there are."""
    shares = [
        (float((predicted[codes == one] == one).sum()), float((codes == one).sum())) for one in set(codes)
    ]
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
    label : str
        What the probabilities are of; empty for the predicted label, where no label of many is named.
    bins : list of _CalibrationBin
        From low to high probabilities; those of fewer than ten people of the group are left out.
    predicted : float
        The mean probability.
    observed : Share
        Those of the group that have the label.
    """

    model: str
    group: str | None
    label: str
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
        found += calibrate_scores(name, cells, scores, hits, labels.positive or "")
    return found


def calibrate_scores(model: str, cells: Cells, scores: Floats, hits: Flags, label: str) -> list[Calibration]:
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
