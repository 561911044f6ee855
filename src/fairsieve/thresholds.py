"""Choose the probability from which on the positive class is predicted: by a rule, on labelled scores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from fairsieve.errors import InvalidInputError, spell
from fairsieve.selection.cells import Floats, Values
from fairsieve.validation import closest_hint, percent_hint, shown

NUMBER = "a probability between 0 and 1 such as 0.5"
WAYS = f"{NUMBER}, balanced, cost:FP,FN such as cost:1,5, or rate:SHARE such as rate:0.05"


@dataclass(frozen=True)
class ThresholdRule:
    """A rule that chooses a threshold.

    Attributes
    ----------
    kind : {"fixed", "balanced", "cost", "rate"}
        A given threshold; the highest balanced accuracy; the lowest cost of wrong predictions; a share of the samples
        that is predicted positive.
    values : tuple of floats
        The threshold; nothing; the costs of a false positive and of a false negative; the share.

    Examples
    --------
    >>> ThresholdRule.parse("cost:1,5")
    ThresholdRule(kind='cost', values=(1.0, 5.0))
    """

    kind: Literal["fixed", "balanced", "cost", "rate"] = "fixed"
    values: tuple[float, ...] = (0.5,)

    @classmethod
    def parse(cls, value: Any, name: str = "threshold") -> ThresholdRule:
        """Read a rule: a number, "balanced", "cost:FP,FN" or "rate:SHARE"."""
        if isinstance(value, ThresholdRule):
            return value
        text = str(value).strip()
        kind, colon, rest = text.partition(":")
        wanted: dict[str, int] = {"balanced": 0, "cost": 2, "rate": 1}
        if kind not in wanted:
            kind, colon, rest, wanted = "fixed", ":", text, {"fixed": 1}
        numbers = _read_numbers(rest)
        if (
            isinstance(value, bool)
            or numbers is None
            or len(numbers) != wanted[kind]
            or bool(colon) != bool(numbers)
        ):
            raise InvalidInputError(
                f"{spell(name)} must be {WAYS}; got {shown(value)}{closest_hint(value, ['balanced'])}"
            )
        if kind == "cost" and not (min(numbers) >= 0 and max(numbers) > 0):
            raise InvalidInputError(
                f"{spell(name)} must have costs of 0 or more, and not both 0; got {shown(value)}: give what a false "
                f"positive "
                "and a false negative cost, such as cost:1,5"
            )
        if kind in ("fixed", "rate") and not 0 < numbers[0] < 1:
            what = "a probability" if kind == "fixed" else "a share of the people"
            raise InvalidInputError(
                f"{spell(name)} must be {what} between 0 and 1; got {shown(value)}{percent_hint(numbers[0])}"
            )
        return cls(kind, tuple(numbers))  # type: ignore[arg-type]

    @property
    def is_default(self) -> bool:
        """Whether the likeliest of two classes is predicted."""
        return self == ThresholdRule()

    def __str__(self) -> str:
        if self.kind == "fixed":
            return f"{self.values[0]:g}"
        return ":".join(filter(None, [self.kind, ",".join(f"{value:g}" for value in self.values)]))

    def choose(self, scores: Floats, chances: Floats, weights: Floats | None = None) -> float:
        """Choose the threshold; a sample is predicted positive where its score is that or more.

        Parameters
        ----------
        scores : array of shape (n,)
            Probabilities of the positive class.
        chances : array of shape (n,)
            How likely each sample is positive: 0 or 1 for labels that are taken as they are.
        weights : array of shape (n,), optional
            A weight of 2 is the same as the sample twice.

        Examples
        --------
        >>> scores, labels = np.array([0.1, 0.2, 0.3, 0.4]), np.array([0.0, 0.0, 1.0, 1.0])
        >>> ThresholdRule("balanced", ()).choose(scores, labels), ThresholdRule("rate", (0.25,)).choose(scores, labels)
        (0.25, 0.35)
        """
        if self.kind == "fixed":
            return self.values[0]
        order = np.argsort(-scores, kind="stable")
        ordered = scores[order]
        last = np.append(np.flatnonzero(np.diff(ordered)), len(ordered) - 1)  # of those with the same score
        weights = np.ones(len(scores)) if weights is None else weights
        flagged = np.append(0.0, np.cumsum(weights[order])[last])
        hits = np.append(0.0, np.cumsum((weights * chances)[order])[last])
        worth = self._judge(flagged, hits, float(weights @ chances), float(weights.sum()))
        best = np.flatnonzero(worth >= worth.max() - 1e-12)
        place = int(best[(len(best) - 1) // 2])
        if place == len(last):  # everybody
            return 0.0
        above = 1.0 if place == 0 else float(ordered[last[place - 1]])
        below = float(ordered[last[place]])
        middle = (above + below) / 2
        return middle if middle > below else above  # neighbours have nothing between them

    def _judge(self, flagged: Values, hits: Floats, positives: float, total: float) -> Floats:
        """Return how good it is to predict the highest scores positive, for each number of them."""
        false = flagged - hits
        if self.kind == "rate":
            return -np.abs(flagged / total - self.values[0])
        if self.kind == "cost":
            return -(self.values[0] * false + self.values[1] * (positives - hits)) / total
        recall = hits / max(positives, 1e-300)
        spared = 1 - false / max(total - positives, 1e-300)
        return (recall + spared) / 2


def _read_numbers(text: str) -> list[float] | None:
    """Read numbers between commas; None where one is none."""
    try:
        numbers = [float(part) for part in text.split(",")] if text else []
    except ValueError:
        return None
    return numbers if np.isfinite(numbers).all() else None
