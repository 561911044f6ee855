"""Compare a fair model with a plain one, by how often the two predict which classes together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from fairsieve.metrics import accuracy_from_table
from fairsieve.training.ratio_search import Gap, find_gaps

__all__ = ["PlainComparison", "compare_models"]

Floats = NDArray[np.float64]
Verdict = Literal["better", "no different", "worse", "cannot be known"]

STANDARD_ERRORS = 2.0


@dataclass(frozen=True)
class PlainComparison:
    """How a fair model does beside a plain one.

    Attributes
    ----------
    accuracy, plain_accuracy : float
    gap, plain_gap : float
        The widest gap between two groups.
    accuracy_error, gap_error : float
        Standard errors of the two differences.
    noise : float
        The share of labels that may be wrong, where none could be corrected.
    believed : bool
        Whether the labels it was measured on can be believed.
    held_out : bool
        Whether it was measured on rows that neither model saw.
    """

    accuracy: float
    plain_accuracy: float
    gap: float
    plain_gap: float
    accuracy_error: float
    gap_error: float
    noise: float
    believed: bool
    held_out: bool

    @property
    def is_fairer(self) -> bool:
        """Whether the gap is narrower by more than chance."""
        return self.plain_gap - self.gap > STANDARD_ERRORS * self.gap_error

    @property
    def is_more_accurate(self) -> bool:
        """Whether it is right more often by more than chance."""
        return self.accuracy - self.plain_accuracy > STANDARD_ERRORS * self.accuracy_error

    @property
    def has_collapsed(self) -> bool:
        """Whether it is certainly less accurate, whichever labels are wrong.

        Accuracy on wrong labels differs from that on the true labels of the same rows by at most the share of wrong
        ones.
        """
        return self.noise > 0 and self.accuracy + self.noise < self.plain_accuracy - self.noise

    @property
    def verdict(self) -> Verdict:
        """Whether the fair model is the better one, as far as one can know."""
        if self.has_collapsed:
            return "worse"
        lost = self.plain_accuracy - self.accuracy > STANDARD_ERRORS * self.accuracy_error
        widened = self.gap - self.plain_gap > STANDARD_ERRORS * self.gap_error
        gained = self.is_fairer or self.is_more_accurate
        if not (gained or lost or widened):
            return "no different"
        if not self.believed:
            return "cannot be known"
        return "better" if gained else "worse"

    def __str__(self) -> str:
        where = "rows that neither saw" if self.held_out else "the training rows"
        return (
            f"on {where} the fair model is right {self.accuracy:.1%} of the time with a widest gap of {self.gap:.3f}, "
            f"the plain one {self.plain_accuracy:.1%} with {self.plain_gap:.3f}"
        )


def compare_models(
    joint: Floats,
    fairness: str,
    positive: int,
    named_groups: int,
    *,
    noise: float,
    believed: bool,
    held_out: bool,
) -> PlainComparison:
    """Compare two models by a table of what they predict together, (classes, groups, plain, fair).

    >>> joint = np.array([[[[8.0, 0.0], [0.0, 2.0]]], [[[2.0, 0.0], [0.0, 8.0]]]])
    >>> compare_models(joint, "equalized_odds", 1, 1, noise=0.0, believed=True, held_out=False).verdict
    'no different'
    """
    plain, fair = joint.sum(axis=3), joint.sum(axis=2)
    total = float(joint.sum())
    labels = np.arange(len(joint))
    # How much more often the fair model is right than the plain one: −1, 0 or 1 for each row.
    right = (labels[:, None] == labels).astype(float)
    change = right[:, None, None, :] - right[:, None, :, None]
    mean = float((joint * change).sum()) / total
    accuracy_error = np.sqrt(max(float((joint * change**2).sum()) / total - mean**2, 0.0) / total)
    gaps = [find_gaps(table, fairness, positive, named_groups) for table in (plain, fair)]
    widest = [found[0] if found else None for found in gaps]
    return PlainComparison(
        accuracy=float(accuracy_from_table(fair)),
        plain_accuracy=float(accuracy_from_table(plain)),
        gap=0.0 if widest[1] is None else widest[1].size,
        plain_gap=0.0 if widest[0] is None else widest[0].size,
        accuracy_error=float(accuracy_error),
        gap_error=_gap_error(joint, widest[0], widest[1]),
        noise=noise,
        believed=believed,
        held_out=held_out,
    )


def _gap_error(joint: Floats, plain: Gap | None, fair: Gap | None) -> float:
    """Return the standard error of the difference between two gaps, which are measured on the same rows."""
    if plain is None or fair is None:
        return 0.0
    classes, groups = joint.shape[:2]
    weights = [np.zeros((classes, groups, classes)) for _ in range(2)]  # what a row adds to each gap
    for weight, gap in zip(weights, (plain, fair), strict=True):
        for group, sign in ((gap.high, 1.0), (gap.low, -1.0)):
            conditions = slice(None) if gap.condition < 0 else slice(gap.condition, gap.condition + 1)
            weight[conditions, group, gap.predicted] = sign / joint[conditions, group].sum()
    added = weights[0][:, :, :, None] - weights[1][:, :, None, :]
    # The rates are taken within (condition, group): what varies is around the mean of each.
    if plain.condition < 0:
        joint, added = joint.sum(axis=0), added.sum(axis=0) / classes
    counts = joint.sum(axis=(-2, -1))
    means = (joint * added).sum(axis=(-2, -1)) / np.maximum(counts, 1e-300)
    variance = (joint * (added - means[..., None, None]) ** 2).sum()
    return float(np.sqrt(variance))
