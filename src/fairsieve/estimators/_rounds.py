"""Run the rounds of a sieve around any classifier: fit, measure, shift weight between groups, fit again.

Labels wrong at random are weighed by the chance p_y T_yy / q_y to be right, where q are the probabilities of the
labels, which the classifier learns, and p those of the classes, q = Tᵀp (T is explained in
:mod:`~fairsieve.label_noise.flip_model`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fairsieve.label_noise.estimate import CleanRatioEstimate, by_cell
from fairsieve.label_noise.flip_model import transitions, true_sums
from fairsieve.selection.batches import sample_weights
from fairsieve.selection.cells import Cells
from fairsieve.selection.ratios import class_shares
from fairsieve.selection.select import select_cells
from fairsieve.thresholds import ThresholdRule
from fairsieve.training.ratio_search import RatioSearch, SolverSettings, State, Stopped

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]

UNLIKELY = 0.01  # classes that are less likely are left out; the other chances of the sample make up for it
LEAST = 0.05  # of a cell's labels are right, whatever the tables say


class LabelWeights(NamedTuple):
    """What the labels are worth.

    Attributes
    ----------
    mass : array of shape (n,)
        What each sample weighs in training, before the ratios.
    ratios : array of shape (classes, groups)
        The shares of each class by group that these labels have by themselves, or should have.
    kept : boolean array of shape (n,)
        The samples whose label is likely right.
    judged : array of shape (n,)
        What each sample counts when a model is judged.
    table : array of shape (groups, classes, classes)
        How true classes turn into those labels.
    """

    mass: Floats
    ratios: Floats
    kept: NDArray[np.bool_]
    judged: Floats
    table: Floats


@dataclass(frozen=True, eq=False)
class Entries:
    """What is weighed in every round: each sample under its given label, or under every label that may be right.

    Attributes
    ----------
    rows : integer array of shape (m,)
        Which sample each entry is; ascending.
    cells : Cells
        Labels and groups of the entries.
    chances : array of shape (m,) or None
        How likely that label is the true one, where somebody checked labels; they sum to 1 for each sample.
    clean_ratio : float
    flip_rates : array of shape (classes, groups) or None
        None where samples are selected.
    """

    rows: Codes
    cells: Cells
    chances: Floats | None
    clean_ratio: float
    flip_rates: Floats | None

    @classmethod
    def of(cls, found: CleanRatioEstimate, cells: Cells, clean_ratio: Any) -> Entries:
        """List the labels of samples, by what is estimated and the clean ratio that was given, or "auto"."""
        if found.verified is not None:
            chances = np.where(found.true_class < UNLIKELY, 0.0, found.true_class)
            chances /= chances.sum(axis=1, keepdims=True)
            rows, codes = np.nonzero(chances)
            listed = Cells(codes * cells.shape[1] + cells.group_codes[rows], cells.classes, cells.groups)
            return cls(rows, listed, chances[rows, codes], found.clean_ratio, found.flip_rates)
        known = found.clean_ratio if clean_ratio == "auto" else float(clean_ratio)
        rates = None if found.aimed else found.flip_rates
        if rates is not None and clean_ratio != "auto":
            rates = scaled_rates(rates, 1 - known, cells)
        return cls(np.arange(len(cells)), cells, None, known, rates)

    def weigh(self, probabilities: Floats, ratios: Floats) -> LabelWeights:
        """Weigh the labels by their chances, by a classifier's out-of-fold probabilities, or select by these."""
        if self.flip_rates is None:
            return self._select(probabilities, ratios)
        table = transitions(self.flip_rates if self.chances is None else np.zeros(self.cells.shape))
        if self.chances is not None:
            right, mass, judged = self.chances, self.chances, self.chances
        else:  # nobody is left out, each counts by the chance to be right
            (right, mass), judged = chance_right(probabilities, self.cells, table), np.ones(len(self.cells))
        sums = by_cell(mass, self.cells)
        totals = sums.sum(axis=1, keepdims=True)
        own = np.divide(sums, totals, out=ratios.copy(), where=totals > 0)
        return LabelWeights(mass, own, right >= 0.5, judged, table)

    def _select(self, probabilities: Floats, ratios: Floats) -> LabelWeights:
        """Select by losses, under the ratios, where labels are wrong on purpose (Algorithm 1)."""
        cells, bounds = self.cells, ratios.copy()
        losses = -np.log(np.maximum(probabilities[np.arange(len(cells)), cells.label_codes], 1e-12))
        if cells.has_ungrouped:
            bounds[:, -1] = 1.0  # bounds nothing
        kept = np.zeros(len(cells), bool)
        kept[select_cells(losses, cells, bounds, self.clean_ratio).indices] = True
        for code in range(cells.shape[0]):  # one sample of each class, so that none is lost
            own = np.flatnonzero(cells.label_codes == code)
            kept[own[losses[own].argmin() if len(own) else slice(0)]] = True
        mass = kept.astype(np.float64)
        return LabelWeights(mass, ratios.copy(), kept, mass, transitions(np.zeros(cells.shape)))

    def find(self, samples: Codes) -> Codes:
        """Return the entries of some samples."""
        if self.chances is None:
            return samples
        inside = np.zeros(self.rows[-1] + 1, bool)
        inside[samples] = True
        return np.flatnonzero(inside[self.rows])

    def by_sample(self, rounds: list[Round], cells: Cells) -> list[Round]:
        """Return the rounds with one weight and one prediction per sample, whose cells are given."""
        if self.chances is None:
            return rounds
        first, believed = np.searchsorted(self.rows, np.arange(len(cells))), np.zeros(len(cells), bool)
        given = cells.label_codes[self.rows] == self.cells.label_codes
        believed[self.rows[given & (self.chances >= 0.5)]] = True
        found = []
        for each in rounds:
            parts: dict[str, Any] = {"kept": np.ones(len(cells), bool), "ratios": class_shares(cells.counts)}
            if each.weights is not None:
                parts = {"kept": believed, "weights": np.bincount(self.rows, each.weights, len(cells))}
            found.append(replace(each, probabilities=each.probabilities[first], **parts))
        return found


@dataclass(frozen=True, eq=False)
class Round(State):
    """The weights of a model, and its results out of fold."""

    weights: Floats | None  # None in the plain round
    kept: NDArray[np.bool_]
    probabilities: Floats


class Rounds(RatioSearch[Round]):
    """The rounds of a sieve.

    Parameters
    ----------
    ask : callable
        Training weights of the entries → out-of-fold probabilities.
    entries : Entries
    settings : SolverSettings
    threshold : ThresholdRule
    """

    def __init__(
        self,
        ask: Callable[[Floats | None], Floats],
        entries: Entries,
        settings: SolverSettings,
        threshold: ThresholdRule,
    ) -> None:
        self.ask, self.entries, self.cells = ask, entries, entries.cells
        self.threshold = threshold
        probabilities, ratios = ask(None), class_shares(self.cells.counts)
        self.labels = entries.weigh(probabilities, ratios)
        super().__init__(self.labels.ratios, settings)
        self.done_rounds = [self.measure(None, ratios, probabilities)]

    def run(self) -> Stopped:
        """Run the plain round, one with corrected labels, and those that shift weight between groups."""
        self.count()
        return self.walk(self.train_at(self.done_rounds[0], self.natural))

    def train_at(self, state: Round, ratios: Floats) -> Round:
        """Fit with other ratios.

        A selection is made anew by the round before, but models are judged on the first one, since each agrees with
        its own ever more.
        """
        if self.entries.flip_rates is None:
            labels = self.entries.weigh(state.probabilities, ratios)
            self.labels = labels._replace(judged=self.labels.judged)
        mass = self.labels.mass
        sums: Any = by_cell(mass, self.cells)
        weights = mass * sample_weights(np.arange(len(self.cells)), self.cells.codes, ratios, sums)
        for known in self.done_rounds:
            if known.weights is not None and np.array_equal(known.weights, weights):
                return known
        self.done_rounds.append(self.measure(weights, ratios, self.ask(weights)))
        return self.done_rounds[-1]

    def measure(self, weights: Floats | None, ratios: Floats, probabilities: Floats) -> Round:
        """Estimate accuracy and gaps on the true labels."""
        table = true_sums(self.observe(self.decide(probabilities)), self.labels.table)
        kept = np.ones(len(self.cells), bool) if weights is None else self.labels.kept
        return Round(ratios, *self.settings.measure(table), weights, kept, probabilities)

    def predict_together(self, plain: Round, fair: Round) -> Floats:
        """Count what two rounds predict together, by true class and group, (classes, groups, plain, fair)."""
        counts = self.observe(self.decide(plain.probabilities), self.decide(fair.probabilities))
        return true_sums(counts, self.labels.table)

    def observe(self, *predicted: Codes) -> Floats:
        """Count the predictions of one or more models by observed label and group."""
        labels, groups = self.cells.label_codes, self.cells.group_codes
        shape = *self.cells.shape, *[self.cells.shape[0]] * len(predicted)
        place = np.ravel_multi_index((labels, groups, *predicted), shape)
        counts: Any = np.bincount(place, self.labels.judged + 1e-300, math.prod(shape))
        return np.asarray(counts.reshape(shape))

    def decide(self, probabilities: Floats) -> Codes:
        """Return the predicted class of each sample, as a code."""
        if self.threshold.is_default:
            return np.asarray(probabilities.argmax(axis=1))
        positive = self.settings.positive
        threshold = self.choose_threshold(probabilities, self.cells)
        return np.where(probabilities[:, positive] >= threshold, positive, 1 - positive)

    def choose_threshold(self, probabilities: Floats, cells: Cells) -> float:
        """Choose the threshold of two classes, on out-of-fold probabilities and the labels as they are."""
        if self.threshold.is_default:
            return 0.5
        positive = self.settings.positive
        return self.threshold.choose(probabilities[:, positive], (cells.label_codes == positive) * 1.0)


def chance_right(probabilities: Floats, cells: Cells, table: Floats) -> tuple[Floats, Floats]:
    """Compute how likely each label is right, and a weight under which labels are as if none were flipped.

    Each sample weighs what its label is likely right; where the classes of a group are flipped at
    different rates, and where probabilities are off, cells are scaled to their true counts.

    Parameters
    ----------
    probabilities : array of shape (n, classes)
        Of the labels as observed, by a model that did not see the sample.
    """
    rows, labels, groups = np.arange(len(cells)), cells.label_codes, cells.group_codes
    classes = np.einsum("nji,nj->ni", np.linalg.inv(table)[groups], probabilities)
    classes = np.maximum(classes, 1e-6)
    classes /= classes.sum(axis=1, keepdims=True)
    seen = np.einsum("nij,ni->nj", table[groups], classes)
    right = classes[rows, labels] * table[groups, labels, labels] / seen[rows, labels]
    wanted = np.maximum(true_sums(cells.counts.astype(np.float64), table), LEAST * cells.counts)
    totals = by_cell(right, cells)
    scale = np.divide(wanted, totals, out=np.zeros(wanted.shape), where=totals > 0)
    return right, right * scale[labels, groups]


def scaled_rates(flip_rates: Floats, noise: float, cells: Cells) -> Floats:
    """Scale the rates so that the given share of all labels is wrong.

    Where all are 0 they become one rate for everybody. The share may be more than rates can reach.

    >>> cells = Cells.of([0] * 10 + [1] * 10, ["a"] * 20)
    >>> scaled_rates(np.array([[0.1], [0.1]]), 0.2, cells).round(6).tolist()
    [[0.2], [0.2]]
    """
    if not flip_rates.any():
        return np.full_like(flip_rates, noise)

    def wrong(factor: float) -> float:
        table = transitions(factor * flip_rates)
        right = np.diagonal(table, axis1=1, axis2=2).T
        return float(((1.0 - right) * true_sums(cells.counts.astype(np.float64), table)).sum() / len(cells))

    low, high = 0.0, 1.0 / float(flip_rates.max())
    for _ in range(30):
        middle = (low + high) / 2
        low, high = (middle, high) if wrong(middle) < noise else (low, middle)
    return np.asarray(low * flip_rates)
