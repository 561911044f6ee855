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
from scipy.stats import chi2

from fairsieve.estimators._forecast import Forecast, calibrate, flatten, group_chances
from fairsieve.estimators._learner import Folds, TrainingTask
from fairsieve.label_noise.estimate import CleanRatioEstimate, by_cell
from fairsieve.label_noise.flip_model import transitions, true_sums
from fairsieve.metrics import Rates, expected_counts
from fairsieve.samples import draw_rows
from fairsieve.selection.cells import Cells, Codes, Flags, Floats, divide
from fairsieve.selection.ratios import class_shares
from fairsieve.selection.select import select_cells
from fairsieve.thresholds import ThresholdRule
from fairsieve.training.compromises import TOLERANCE, SolverSettings, State, Stopped, Together
from fairsieve.training.newton import Cleaning

UNLIKELY = 0.01  # classes that are less likely are left out; the other chances of the sample make up for it
LEAST = 0.05  # of a cell's labels are right, whatever the tables say
WORTH_A_ROUND = 0.01  # of accuracy: a round within the tolerance that lost less is not tried to improve
FORECAST_ROWS = 10_000  # of more, a part is looked at, and corrected by what all show


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
    kept: Flags
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
        if found.verified is not None or (found.aimed and found.credible and clean_ratio == "auto"):
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
        own_ratios = np.divide(sums, totals, out=ratios.copy(), where=totals > 0)
        return LabelWeights(mass, own_ratios, right >= 0.5, judged, table)

    def _select(self, probabilities: Floats, ratios: Floats) -> LabelWeights:
        """Select by losses, under the ratios, where labels are wrong on purpose (Algorithm 1)."""
        cells, bounds = self.cells, ratios.copy()
        losses = -np.log(np.maximum(probabilities[np.arange(len(cells)), cells.label_codes], 1e-12))
        if cells.has_ungrouped:
            bounds[:, -1] = 1.0  # bounds nothing
        kept = np.zeros(len(cells), bool)
        kept[select_cells(losses, cells, bounds, self.clean_ratio).indices] = True
        for code in range(cells.shape[0]):  # one sample of each class, so that none is lost
            of_class = np.flatnonzero(cells.label_codes == code)
            if len(of_class):
                kept[of_class[losses[of_class].argmin()]] = True
        # Trained on what is kept, judged on everybody: a selection agrees with the model that made it.
        everybody, table = np.ones(len(cells)), transitions(np.zeros(cells.shape))
        return LabelWeights(kept.astype(np.float64), ratios.copy(), kept, everybody, table)

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
        collected = []
        for each in rounds:
            parts: dict[str, Any] = {"kept": np.ones(len(cells), bool), "ratios": class_shares(cells.counts)}
            if each.weights is not None:
                parts = {"kept": believed, "weights": np.bincount(self.rows, each.weights, len(cells))}
            collected.append(replace(each, probabilities=each.probabilities[first], **parts))
        return collected


@dataclass(frozen=True, eq=False, kw_only=True)
class CrossFit:
    """The classifier, fitted without each fold, and what it predicts there.

    Attributes
    ----------
    plain, task : TrainingTask
        The samples under their labels as given, and the entries under theirs.
    entries : Entries
    features : array of shape (n, columns)
        The samples as numbers.
    folds, pairs : pairs of rows
        Which samples, and which entries, each fold trains on and predicts.
    cleaning : Cleaning or None
        Which labels to leave out; of no fold does it know the labels that are predicted.
    predict : callable
        As :meth:`TrainingTask.out_of_fold`, which checkpoints may keep.
    n_jobs : int, optional
    """

    plain: TrainingTask
    task: TrainingTask
    entries: Entries
    features: Floats
    folds: Folds
    pairs: Folds
    cleaning: Cleaning | None
    predict: Callable[..., Floats]
    n_jobs: int | None

    def predict_plainly(self) -> Floats:
        """Predict the entries by the classifier of all samples as they are."""
        return self.predict(self.plain, None, self.folds, self.n_jobs)[self.entries.rows]

    def predict_weighted(self, weights: Floats, cleaned: bool) -> Floats:
        """Predict the entries by the classifier under weights; ``cleaned`` leaves the least believable labels out."""
        pairs = self.pairs
        if cleaned and self.cleaning is not None:
            masks = self.cleaning.by_fold
            pairs = [(seen[mask[seen]], tested) for (seen, tested), mask in zip(pairs, masks, strict=True)]
        return self.predict(self.task, weights, pairs, self.n_jobs)

    def predict_groups(self, probabilities: Floats, part: Codes) -> Floats:
        """Predict P(group | features, class) of some entries, ascending."""
        place = np.full(len(self.entries.cells), -1)
        place[part] = np.arange(len(part))
        pairs = [(place[seen], place[tested]) for seen, tested in self.pairs]
        folds = [(seen[seen >= 0], tested[tested >= 0]) for seen, tested in pairs]
        cells, features = self.entries.cells, self.features[self.entries.rows[part]]
        codes = cells.label_codes[part], cells.group_codes[part]
        return group_chances(features, probabilities[part], *codes, folds, cells.shape[1])


@dataclass(frozen=True, eq=False)
class Round(State):
    """The weights of a model, and its results out of fold."""

    weights: Floats | None  # None in the plain round; below 0 where the label is reversed
    kept: Flags
    probabilities: Floats
    pulls: Floats  # by which the cells were weighed, (classes, groups)
    table: Floats  # what is predicted, by true class and group


class Rounds:
    """The rounds of a sieve.

    Parameters
    ----------
    fits : CrossFit
    counts : array of shape (m,)
        How often each entry counts.
    settings : SolverSettings
    threshold : ThresholdRule
    max_accuracy_loss : float or None
        Aimed at where no tolerance is named.
    """

    def __init__(
        self,
        fits: CrossFit,
        counts: Floats,
        settings: SolverSettings,
        threshold: ThresholdRule,
        max_accuracy_loss: float | None,
    ) -> None:
        self.fits, self.entries, self.cells, self.counts = fits, fits.entries, fits.entries.cells, counts
        self.settings, self.threshold, self.max_accuracy_loss = settings, threshold, max_accuracy_loss
        self.cleaned, self.costs_too_much, self.fitted = False, False, 0
        probabilities, ratios = fits.predict_plainly(), class_shares(self.cells.counts)
        self.labels = self.entries.weigh(probabilities, ratios)
        self.natural = np.ones(self.cells.shape)
        self.done_rounds = [self.measure(None, ratios, probabilities, self.natural)]
        self.tolerance = TOLERANCE if settings.tolerance is None else settings.tolerance

    def run(self) -> Stopped:
        """Fit with believable labels, with weights that make labels and groups independent, and as is forecast."""
        state = self.clean()
        if self.settings.tolerance is None and state.gaps:
            self.tolerance = max(TOLERANCE, state.gaps[0].error)
        first, forecast = state, None
        while not self.is_enough(state, first):
            if self.fitted >= self.settings.max_iter:
                break
            forecast = forecast or self.forecast(first)
            aimed = self.aim(forecast, state, first)
            if aimed is None:
                break
            state = self.train(state, aimed)
        if min(each.gap for each in self.done_rounds) <= self.tolerance:
            return "met"
        if self.fitted >= self.settings.max_iter:
            return "limit"
        return "cost" if self.costs_too_much else "unreachable"

    def is_enough(self, state: Round, plain: Round) -> bool:
        """Say whether a round is within the tolerance, and no more accuracy was lost than might be won back."""
        return state.gap <= self.tolerance and plain.accuracy - state.accuracy <= WORTH_A_ROUND

    def clean(self) -> Round:
        """Fit under the labels that are believed, and their weights; the plain round, where these are all alike.

        Where no label is known to be wrong, the least believable ones are left out if that predicts labels as given
        better, by a standard error.
        """
        plain, mass = self.done_rounds[0], self.labels.mass
        if self.entries.chances is not None or np.ptp(mass) > 1e-9 * mass.max():
            return self.train(plain, self.natural)
        if self.fits.cleaning is None:
            return plain
        self.cleaned = True
        trial = self.train(plain, self.natural)
        before, after = (self.decide(each.probabilities) == self.cells.label_codes for each in (plain, trial))
        gain = after * 1.0 - before
        mean = float(np.average(gain, weights=self.counts))
        error = np.sqrt(float(self.counts**2 @ (gain - mean) ** 2)) / self.counts.sum()
        self.cleaned = mean > error
        if not self.cleaned:  # no point of the path, or chance would choose it
            self.done_rounds.pop()
        return self.done_rounds[-1]

    def train(self, state: Round, pulls: Floats) -> Round:
        """Fit with other weights of the cells.

        A selection is made anew by the round before.
        """
        shares = by_cell(self.labels.mass, self.cells) * np.maximum(pulls, 0.0)
        ratios = shares / np.maximum(shares.sum(axis=1, keepdims=True), 1e-300)
        if self.entries.flip_rates is None and state.weights is not None:
            self.labels = self.entries.weigh(state.probabilities, ratios)
        mass = self.labels.mass
        weights = mass * pulls[self.cells.label_codes, self.cells.group_codes]
        weights *= mass.sum() / max(float(np.abs(weights).sum()), 1e-300)
        self.fitted += 1
        self.settings.report(self.fitted)
        probabilities = self.fits.predict_weighted(weights, self.cleaned)
        if self.cleaned and self.fits.cleaning is not None:
            weights = weights * self.fits.cleaning.kept
        self.done_rounds.append(self.measure(weights, ratios, probabilities, pulls))
        return self.done_rounds[-1]

    def forecast(self, state: Round) -> Forecast:
        """Prepare to forecast what other weights would do, from the probabilities of a round."""
        chances, part = state.probabilities, draw_rows(len(self.cells), FORECAST_ROWS)
        labels, groups = self.cells.label_codes[part], self.cells.group_codes[part]
        classes = len(self.cells.classes)
        believed = np.linalg.inv(self.labels.table)[groups, labels]  # of each true class, below 0 for some
        judged = believed * (self.labels.judged * self.counts)[part][:, None]
        power = calibrate(chances[part], judged)
        cut = 0.5
        if classes == 2:
            place = self.choose_threshold(chances, self.cells)
            place = place if self.settings.positive == 1 else 1 - place
            cut = float(flatten(np.array([[1 - place, place]]), power)[0, 1])
        members = np.zeros((len(part), classes, self.cells.shape[1]))
        members[np.arange(len(part)), :, groups] = judged
        flat, by_group = flatten(chances[part], power), self.fits.predict_groups(chances, part)
        return Forecast(flat, by_group, members, self.settings.rates, self.settings.named_groups, cut)

    def aim(self, forecast: Forecast, state: Round, known: Round) -> Floats | None:
        """Choose the next weights: those that are forecast to meet the tolerance, as far as accuracy allows.

        The first are those that make labels and groups independent, unless they are forecast to widen the gap: they
        need no forecast to be right. Where no tolerance is named, a wider one is aimed at as long as more accuracy
        would be lost than may be.
        """
        if state is known:
            pulls = independent(by_cell(self.labels.mass, self.cells), self.settings.named_groups)
            if forecast.gap(pulls, state.pulls, state.table) < state.gap:
                return pulls
        target = self.tolerance
        while target < known.gap:
            pulls = forecast.solve(state.pulls, target, state.table)
            most = None if self.settings.tolerance is not None else self.max_accuracy_loss
            if most is None or forecast.loss(known.pulls, pulls) <= most:
                is_known = any(np.allclose(pulls, each.pulls, atol=1e-3) for each in self.done_rounds)
                return None if is_known else pulls
            self.costs_too_much = True
            target *= 2
        return None

    def measure(self, weights: Floats | None, ratios: Floats, probabilities: Floats, pulls: Floats) -> Round:
        """Estimate accuracy and gaps on the true labels, of all samples."""
        table = true_sums(self.observe(self.decide(probabilities)), self.labels.table)
        kept = np.ones(len(self.cells), bool) if weights is None else self.labels.kept
        return Round(ratios, *self.settings.measure(table), weights, kept, probabilities, pulls, table)

    def predict_together(self, plain: Round, fair: Round) -> Together:
        """Count what two rounds predict."""
        counts = self.observe(self.decide(plain.probabilities), self.decide(fair.probabilities))
        return Together(counts, np.asarray(np.linalg.inv(self.labels.table), np.float64))

    def instability(self, state: Round) -> float:
        """Return by how much the widest gap differs from fold to fold, in standard deviations beyond chance.

        Models of the folds whose gaps point in different directions have a small gap together. The model of all
        samples is one model, whose gap may be as wide as theirs. Below a chance of one in twenty, it is 0.
        """
        if not state.gaps:
            return 0.0
        gap, sizes, errors = state.gaps[0], [], []
        compared, signs = Rates([gap.rate]), np.zeros((1, self.cells.shape[1]))
        signs[0, [gap.high, gap.low]] = 1.0, -1.0
        back = np.linalg.inv(self.labels.table)  # of each group, from observed to true classes
        predicted = self.decide(state.probabilities)
        for _, tested in self.fits.pairs:
            observed = self.observe(predicted, rows=tested)
            table = true_sums(observed, self.labels.table)
            sizes.append(float((compared.of(table)[0] * signs).sum()))
            added = np.einsum("glc,cgp->lgp", back, compared.derivative(table, signs))
            errors.append(float((observed * added**2).sum()))
        spread, chance = np.var(sizes, ddof=1) if len(sizes) > 1 else 0.0, float(np.mean(errors))
        unlikely = chi2.isf(0.05, max(len(sizes) - 1, 1)) / max(len(sizes) - 1, 1)
        return float(np.sqrt(spread - chance)) if spread > unlikely * chance else 0.0

    def observe(self, *predicted: Codes, rows: Codes | slice = slice(None)) -> Floats:
        """Count the predictions of one or more models by observed label and group, of all entries or some."""
        codes = self.cells.label_codes, self.cells.group_codes, *predicted
        shape = *self.cells.shape, *[self.cells.shape[0]] * len(predicted)
        place = np.ravel_multi_index(tuple(code[rows] for code in codes), shape)
        counts: Any = np.bincount(place, (self.labels.judged * self.counts)[rows] + 1e-300, math.prod(shape))
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


def independent(masses: Floats, named: int) -> Floats:
    """Return the weights of cells under which labels do not depend on groups (Kamiran and Calders 2012).

    >>> independent(np.array([[30.0, 10.0], [20.0, 40.0]]), 2).round(3).tolist()
    [[0.667, 2.0], [1.5, 0.75]]
    """
    found, inside = np.ones_like(masses), masses[:, :named]
    found[:, :named] = divide(expected_counts(inside), inside, 1.0)
    return found


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
    scale = divide(wanted, totals)
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
    return low * flip_rates
