"""Run the rounds of a sieve around any classifier: fit, measure, shift weight between groups, fit again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fairsieve.label_noise.true_counts import true_sums
from fairsieve.label_noise.weighting import LabelWeights, by_cell
from fairsieve.metrics import accuracy_from_table, count_table
from fairsieve.selection.batches import sample_weights
from fairsieve.selection.cells import Cells
from fairsieve.selection.ratios import initial_ratios
from fairsieve.thresholds import ThresholdRule
from fairsieve.training.ratio_search import Gap, RatioSearch, Stopped, find_gaps

__all__ = ["Round", "RoundSettings", "Rounds", "choose_threshold"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class RoundSettings:
    """What is compared between groups, and when to stop.

    Attributes
    ----------
    positive : int
        Code of the positive class.
    named_groups : int
        How many groups are compared.
    """

    fairness: str
    positive: int
    named_groups: int
    tolerance: float | None
    max_iter: int
    threshold: ThresholdRule = field(default=ThresholdRule(), repr=False)


class Round(NamedTuple):
    """The weights of a model, and its results out of fold."""

    weights: Floats | None  # None in the plain round
    ratios: Floats
    kept: NDArray[np.bool_]
    probabilities: Floats
    accuracy: float
    gaps: list[Gap]

    @property
    def gap(self) -> float:
        """The widest gap."""
        return self.gaps[0].size if self.gaps else 0.0


class Rounds(RatioSearch[Round]):
    """The rounds of a sieve.

    Parameters
    ----------
    ask : callable
        Training weights → out-of-fold probabilities.
    weigh_labels : callable
        Probabilities and ratios → what the labels are worth.
    """

    def __init__(
        self,
        ask: Callable[[Floats | None], Floats],
        weigh_labels: Callable[[Floats, Floats], LabelWeights],
        cells: Cells,
        settings: RoundSettings,
        report: Callable[[int], None] = lambda done: None,
    ) -> None:
        self.ask, self.weigh_labels, self.cells = ask, weigh_labels, cells
        self.settings, self.report = settings, report
        probabilities = ask(None)
        self.labels = weigh_labels(probabilities, initial_ratios(cells))
        super().__init__(self.labels.ratios, settings.fairness, settings.tolerance, settings.max_iter)
        self.done_rounds = [self.measure(None, initial_ratios(cells), probabilities)]

    def run(self) -> Stopped:
        """Run the plain round, one with corrected labels, and those that shift weight between groups."""
        self.count()
        return self.walk(self.train_at(self.done_rounds[0], self.natural))

    def train_at(self, state: Round, ratios: Floats) -> Round:
        """Fit with other ratios; what the labels are worth follows from the round before."""
        labels = self.labels = self.weigh_labels(state.probabilities, ratios)
        sums: Any = by_cell(labels.mass, self.cells)
        weights = labels.mass * sample_weights(np.arange(len(self.cells)), self.cells.codes, ratios, sums)
        for known in self.done_rounds:
            if known.weights is not None and np.array_equal(known.weights, weights):
                return known
        self.done_rounds.append(self.measure(weights, ratios, self.ask(weights)))
        return self.done_rounds[-1]

    def measure(self, weights: Floats | None, ratios: Floats, probabilities: Floats) -> Round:
        """Estimate accuracy and gaps on the true labels."""
        settings = self.settings
        table = true_sums(self.observe(self.decide(probabilities)), self.labels.table)
        gaps = find_gaps(table, settings.fairness, settings.positive, settings.named_groups)
        kept = np.ones(len(self.cells), bool) if weights is None else self.labels.kept
        return Round(weights, ratios, kept, probabilities, float(accuracy_from_table(table)), gaps)

    def predict_together(self, plain: Round, fair: Round) -> Floats:
        """Count what two rounds predict together, by true class and group, (classes, groups, plain, fair)."""
        classes = self.cells.shape[0]
        both = self.decide(plain.probabilities) * classes + self.decide(fair.probabilities)
        observed = np.stack(
            [self.observe(both // classes, (both % classes == code) * 1.0) for code in range(classes)],
            axis=-1,
        )
        return true_sums(observed, self.labels.table)

    def observe(self, predicted: NDArray[np.int64], part: Floats | float = 1.0) -> Floats:
        """Count predictions by observed label and group."""
        cells = self.cells
        return count_table(
            cells.label_codes, cells.group_codes, predicted, *cells.shape, self.labels.judged * part + 1e-300
        )

    def decide(self, probabilities: Floats) -> NDArray[np.int64]:
        """Return the predicted class of each sample, as a code."""
        if self.settings.threshold.is_default:
            return np.asarray(probabilities.argmax(axis=1))
        positive = self.settings.positive
        threshold = choose_threshold(probabilities, self.cells, self.settings)
        return np.where(probabilities[:, positive] >= threshold, positive, 1 - positive)

    def count(self) -> None:
        super().count()
        self.report(self.done)


def choose_threshold(probabilities: Floats, cells: Cells, settings: RoundSettings) -> float:
    """Choose the threshold of two classes, on out-of-fold probabilities and the labels as they are."""
    positive = settings.positive
    return settings.threshold.choose(
        probabilities[:, positive], (cells.label_codes == positive).astype(np.float64)
    )
