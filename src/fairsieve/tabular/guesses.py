"""Compare a model with guesses, to find out whether it tells the labels apart at all."""

from __future__ import annotations

import math
from typing import Literal, NamedTuple

from fairsieve.intervals import NORMAL, newcombe
from fairsieve.report.number_format import percent
from fairsieve.tabular.evaluation import Share
from fairsieve.tabular.table_run import TableRun

__all__ = ["better_than_chance", "predicted_labels"]


class _Better(NamedTuple):
    """By how much a model is better than one that guesses, with its 95 % interval, and in words."""

    value: float
    interval: tuple[float, float]
    sentence: str


def predicted_labels(run: TableRun, model: Literal["plain", "fair"]) -> dict[str, int]:
    """Count how often a model predicts each label on the test part; labels that it never predicts are left out."""
    labels = run.problem.labels
    found, total = {}, 0
    for measure in run.measures:
        if measure.name.startswith("selection_rate"):
            share = _pooled(getattr(measure, model))
            found[measure.name.partition(" of ")[2] or str(labels.positive)] = share.hits
            total = share.total
    if len(labels.classes) == 2:
        (other,) = (name for name in labels.classes if name != labels.positive)
        found[other] = total - found[str(labels.positive)]
    return {name: count for name, count in found.items() if count}


def better_than_chance(run: TableRun) -> _Better | None:
    """Compare how often the kept model predicts a label for those who have it, and for the others.

    Of two labels, the true-positive rate less the false-positive rate; of more, the mean true-positive rate less
    that of a guess. None where a label is missing on the test part.
    """
    rates = {one.name: _pooled(one.fair) for one in run.measures}
    labels = run.problem.labels
    if len(labels.classes) == 2:
        right, wrong = rates["true_positive_rate"], rates["false_positive_rate"]
        if not right.total or not wrong.total:
            return None
        text = (
            f"it predicts {labels.positive} for {percent(right.value)} of those who have that label, and for "
            f"{percent(wrong.value)} of the others"
        )
        return _Better(right.value - wrong.value, newcombe(*right, *wrong), text)
    shares = [share for name, share in rates.items() if name.startswith("true_positive_rate of ")]
    if not all(share.total for share in shares):
        return None
    mean, guess = sum(share.value for share in shares) / len(shares), 1 / len(shares)
    smoothed = [(share.hits + 1) / (share.total + 2) for share in shares]
    spread = sum(value * (1 - value) / share.total for value, share in zip(smoothed, shares, strict=True))
    half = NORMAL * math.sqrt(spread) / len(shares)
    text = f"on average it recognises {percent(mean)} of a label, and a guess {percent(guess)}"
    return _Better(mean - guess, (mean - guess - half, mean - guess + half), text)


def _pooled(shares: list[Share]) -> Share:
    """Add up the groups."""
    return Share(sum(share.hits for share in shares), sum(share.total for share in shares))
