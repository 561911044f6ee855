"""How well models tell labels apart in each group: AUC, average precision, precision, recall, balanced accuracy.

Accuracy says little where a label is rare: to predict it for nobody is right almost always.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fairsieve.intervals import average_of_shares, wilson
from fairsieve.metrics import count_table
from fairsieve.selection.cells import Cells
from fairsieve.tabular.bootstrap import Score
from fairsieve.tabular.evaluation import told_classes
from fairsieve.tabular.reading.roles import Labels

__all__ = ["EVERYONE", "ModelOutput", "Quality", "measure_quality"]

EVERYONE = "everyone"
MOST_DRAWS, FEWEST_DRAWS, CHUNK = 200, 50, 2_000_000
NORMAL = 1.959963984540054  # 97.5 % of a normal distribution lie below

Floats = NDArray[np.float64]


class ModelOutput(NamedTuple):
    """What a model says of the test part."""

    chances: Floats  # (n, classes)
    codes: NDArray[np.int64]  # the predicted classes


@dataclass(frozen=True)
class Quality:
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


def measure_quality(
    cells: Cells, plain: ModelOutput, fair: ModelOutput, labels: Labels, seed: int
) -> list[Quality]:
    """Measure both models in every group of ``cells``, and over everyone, with 95 % intervals.

    Parameters
    ----------
    cells : Cells
        Labels and groups of the test part.
    plain, fair : ModelOutput
    seed : int
        Of the draws behind the intervals of AUC and average precision.
    """
    parts = [*(np.flatnonzero(cells.group_codes == group) for group in range(cells.shape[1]))]
    parts.append(np.arange(len(cells)))
    found: list[Quality] = []
    for code, label in told_classes(labels):
        columns = [[_tell(cells, model, part, code, seed) for part in parts] for model in (plain, fair)]
        for name, (title, meaning) in _describe(label, labels).items():
            values = [[one[name] for one in column] for column in columns]
            found.append(Quality(name, title, meaning, label, *values))
    balanced = [[_balanced(cells, model, part) for part in parts] for model in (plain, fair)]
    meaning = "the mean, over the labels, of the share of those so labelled that are predicted so"
    found.append(Quality("balanced_accuracy", "balanced accuracy", meaning, "", *balanced))
    return found


def _describe(label: str, labels: Labels) -> dict[str, tuple[str, str]]:
    """Name what is computed for one label."""
    which = "" if len(labels.classes) == 2 else f" of {label}"
    return {
        "auc": (f"AUC{which}", f"how often one labelled {label} scores higher than one who is not"),
        "average_precision": (
            f"average precision{which}",
            f"the mean share labelled {label} among those who score highest",
        ),
        "precision": (f"precision{which}", f"of those predicted {label}, labelled {label}"),
        "recall": (f"recall{which}", f"of those labelled {label}, predicted {label}"),
    }


def _tell(
    cells: Cells, model: ModelOutput, part: NDArray[Any], code: int, seed: int
) -> dict[str, Score | None]:
    """Measure how well a label is told from the others among some rows."""
    positive = cells.label_codes[part] == code
    predicted = model.codes[part] == code
    hits = int((positive & predicted).sum())
    found = {
        "precision": _share(hits, int(predicted.sum())),
        "recall": _share(hits, int(positive.sum())),
    }
    return found | _rank(model.chances[part, code], positive, seed)


def _share(hits: int, total: int) -> Score | None:
    """Return a share with Wilson's interval; None where it is of nobody."""
    return Score(hits / total, wilson(hits, total)) if total else None


def _balanced(cells: Cells, model: ModelOutput, part: NDArray[Any]) -> Score | None:
    """Average the recalls of the labels that there are."""
    classes = cells.shape[0]
    nobody = np.zeros(len(part), np.int64)
    table = count_table(cells.label_codes[part], nobody, model.codes[part], classes, 1)[:, 0]
    shares = [(float(table[row, row]), float(table[row].sum())) for row in range(classes) if table[row].any()]
    if len(shares) < 2:
        return None
    value = float(np.mean([hits / total for hits, total in shares]))
    return Score(value, average_of_shares(shares))


def _rank(scores: Floats, positive: NDArray[np.bool_], seed: int) -> dict[str, Score | None]:
    """Compute AUC and average precision; their intervals come from drawing the rows again (bootstrap)."""
    count, wanted = len(scores), int(positive.sum())
    if not 0 < wanted < count:
        return {"auc": None, "average_precision": None}
    order = np.argsort(-scores, kind="stable")
    ends = np.append(np.flatnonzero(np.diff(scores[order])), count - 1)  # of those with the same score
    ordered = positive[order].astype(np.float64)
    values = _rank_scores(np.ones((1, count)), ordered, ends)
    drawn = [_rank_scores(weights, ordered, ends) for weights in _draws(count, seed)]
    fewest = min(wanted, count - wanted)
    return {
        name: _logit_score(float(value[0]), np.concatenate([one[name] for one in drawn]), fewest)
        for name, value in values.items()
    }


def _draws(count: int, seed: int) -> Iterator[Floats]:
    """Yield how often each row is drawn, in some of the draws at a time; fewer draws of many rows."""
    generator = np.random.default_rng(seed)
    left = int(np.clip(2 * CHUNK // count, FEWEST_DRAWS, MOST_DRAWS))
    while left:
        size = min(left, max(1, CHUNK // count))
        picked = generator.integers(0, count, (size, count)) + count * np.arange(size)[:, None]
        yield np.bincount(picked.reshape(-1), minlength=size * count).reshape(size, count).astype(np.float64)
        left -= size


def _rank_scores(weights: Floats, positive: Floats, ends: NDArray[Any]) -> dict[str, Floats]:
    """Compute AUC and average precision for each row of weights; NaN where a label has no weight.

    Parameters
    ----------
    weights : array of shape (draws, n)
        Of the samples, the highest score first.
    positive : array of shape (n,)
        1 where a sample has the label, 0 where it has not.
    ends : integer array
        The last of each run of equal scores.
    """
    hits = np.cumsum(weights * positive, axis=1)[:, ends]
    flagged = np.cumsum(weights, axis=1)[:, ends]
    steps = np.diff(hits, axis=1, prepend=0.0)
    false_steps = np.diff(flagged, axis=1, prepend=0.0) - steps
    area = (false_steps * (hits - steps / 2)).sum(axis=1)
    precision = np.divide(hits, flagged, out=np.zeros_like(hits), where=flagged > 0)
    wanted, others = hits[:, -1], flagged[:, -1] - hits[:, -1]
    with np.errstate(invalid="ignore", divide="ignore"):
        return {
            "auc": np.asarray(area / (wanted * others)),
            "average_precision": np.asarray((steps * precision).sum(axis=1) / wanted),
        }


def _logit_score(value: float, drawn: Floats, fewest: int) -> Score:
    """Give a value in [0, 1] an interval, from the deviation of its draws on the scale of logits.

    At 0 and 1 the draws say nothing; then the interval is that of a share of the rarer label.
    """
    if not 0 < value < 1:
        return Score(value, wilson(round(value * fewest), fewest))
    drawn = np.clip(drawn[np.isfinite(drawn)], 1e-6, 1 - 1e-6)
    deviation = float(np.log(drawn / (1 - drawn)).std(ddof=1)) if len(drawn) > 1 else math.inf
    middle = math.log(value / (1 - value))
    low, high = (
        1 / (1 + math.exp(-np.clip(middle + side * NORMAL * deviation, -50, 50))) for side in (-1, 1)
    )
    return Score(value, (low, high))
