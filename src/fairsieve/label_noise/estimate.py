"""How many labels are right, and which ones: found from the data alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator

from fairsieve.inputs import Checked, check_samples, seed_of
from fairsieve.label_noise.flip_model import FlipModel, Observed, design, fit_flips, fit_plain
from fairsieve.samples import Samples
from fairsieve.selection.cells import Cells

__all__ = ["CleanRatioEstimate", "estimate_clean_ratio", "estimate_of"]

Ties = NDArray[np.int64] | None  # which rates are one, see fit_flips

MOST = 8_000  # samples that the flips are estimated from
MOST_AIMED = 5_000
FOLDS = 5
CLEARLY = 15.0  # by how much of log-likelihood aimed flips must explain the labels better
SURE = 0.9
CREDIBLE = 0.2  # share of aimed flips beyond which they are taken for the truth, see docs/clean-ratio.md
BLIND_NOISE = 0.1  # what is assumed then
NONE_OF_MANY = 3.0  # the rule of three: none among n is, with 95 % confidence, at most 3/n


@dataclass(frozen=True, eq=False)
class CleanRatioEstimate:
    """What the data say of their labels.

    Attributes
    ----------
    clean_ratio : float
        Share of right labels; one standard error below the likeliest value, since too high is worse
        than too low.
    interval : (float, float)
        95 % confidence, as far as the model of the flips holds.
    noise : array of shape (classes, groups)
        Share of wrong labels among those observed in each cell; NaN where there are none.
    flip_rates : array of shape (classes, groups)
        Chance of a label of that *true* class and group to be flipped.
    aimed : bool
        Whether labels look wrong on purpose: where they are surest, rather than at random.
    credible : bool
        Whether which labels are wrong can be told. Where too many are aimed, they pass for the
        truth; then the clean ratio is a guess.
    true_class : array of shape (n, classes)
        Probabilities of each sample's true class, given its features and its label.
    cells : Cells
        The classes and groups of the tables above.
    """

    clean_ratio: float
    interval: tuple[float, float]
    noise: NDArray[np.float64]
    flip_rates: NDArray[np.float64]
    aimed: bool
    credible: bool
    true_class: NDArray[np.float64]
    cells: Cells

    @property
    def wrong(self) -> NDArray[np.float64]:
        """How likely each label is wrong."""
        return 1 - self.true_class[np.arange(len(self.cells)), self.cells.label_codes]

    @property
    def believed(self) -> NDArray[np.int64]:
        """Samples whose label is more likely right than wrong; with aimed flips, not surely wrong."""
        return np.flatnonzero(self.wrong <= (SURE if self.aimed else 0.5))

    def keep(self, seed: int) -> NDArray[np.int64]:
        """Samples that, together, are labelled as if nobody had flipped labels; ascending.

        Aimed flips are far from the boundary between the classes: the labels that are surely wrong are
        left out. Of random ones each is kept with the chance that its label is right; keeping the
        likeliest instead would leave out whoever the model finds surprising, right or wrong. Where
        the classes of a group are flipped at different rates, the more trusted ones are thinned to
        match. Of samples alike the share is exact: draws are spread evenly along each cell.
        """
        wrong, stays = self.wrong, 1.0 - self.flip_rates
        if self.aimed:
            return np.union1d(self.believed, rightest_of_each_class(wrong, self.cells))
        chance = (1.0 - wrong) * (stays.min(axis=0) / stays).reshape(-1)[self.cells.codes]
        order = np.lexsort((wrong, self.cells.codes))
        turns = np.cumsum(chance[order]) + np.random.default_rng(seed).random()
        kept = order[np.diff(np.floor(turns), prepend=0.0) > 0]
        return np.union1d(kept, rightest_of_each_class(wrong, self.cells))


def estimate_clean_ratio(
    X: Any,
    y: ArrayLike,
    *,
    sensitive_features: Any = None,
    sample_weight: ArrayLike | None = None,
    random_state: Any = None,
) -> CleanRatioEstimate:
    """Estimate how many labels are right, from features, labels and groups alone.

    Two explanations of the labels are weighed: that they are wrong at random, at a rate of its own in
    every cell, and that they were aimed at the samples whose class is surest (see
    :mod:`~fairsieve.label_noise.flip_model`). Samples without a group are a group of their own here.

    Parameters
    ----------
    X : array, sparse matrix or data frame of shape (n, d)
    y : n labels
    sensitive_features : n values, or several columns of them, optional
    sample_weight : n numbers, optional
    random_state : int, RandomState or None
        Decides which samples are looked at, where there are more than 8,000, and the folds behind
        the interval.

    Examples
    --------
    >>> from fairsieve.data import flip_uniform, make_synthetic
    >>> data = make_synthetic(2000, seed=0)
    >>> noisy = flip_uniform(data, 0.2, seed=0).labels
    >>> found = estimate_clean_ratio(data.features, noisy, sensitive_features=data.groups, random_state=0)
    >>> 0.7 < found.clean_ratio < 0.85, found.aimed
    (True, False)
    """
    checked = check_samples(BaseEstimator(), X, y, sensitive_features, sample_weight)
    return estimate_of(checked, seed_of(random_state))


def estimate_of(checked: Checked, seed: int) -> CleanRatioEstimate:
    """The estimate for samples that have been checked."""
    data = checked.data
    rows = np.random.default_rng(seed).permutation(len(data))[:MOST]
    observed, bent = (_observe(data, checked.weights, curved=curved) for curved in (False, True))
    plain, curved = fit_plain(observed.take(rows)), fit_plain(bent.take(rows))
    some = rows[:MOST_AIMED]
    aimed = _fit_aimed(observed.take(some), plain, fit_flips(bent.take(some), curved).log_likelihood)
    if aimed is not None:
        return _aimed_estimate(aimed, observed, data.cells)
    if curved.criterion < plain.criterion:
        observed, plain = bent, curved
    model, ties = _fit_random(observed.take(rows), plain)
    return _random_estimate(model, ties, observed, rows, data.cells, seed)


def _observe(data: Samples, weights: NDArray[np.float64] | None, *, curved: bool) -> Observed:
    """Samples in the form the model of flips takes."""
    cells = data.cells
    return Observed(
        design(data.features, curved=curved),
        cells.label_codes,
        cells.group_codes,
        *cells.shape,
        np.ones(len(data)) if weights is None else weights,
    )


def _fit_aimed(observed: Observed, plain: FlipModel, curved: float) -> FlipModel | None:
    """Aimed flips, if they explain the labels clearly better than random ones do; else None.

    Also than random ones around a curved boundary between the classes, of which the log-likelihood
    is given: labels turn around behind a curve, too.
    """
    random = fit_flips(observed, plain)
    found = max(
        (fit_flips(observed, start, aimed=True) for start in (plain, random)),
        key=lambda model: model.log_likelihood,
    )
    upside_down = bool((random.level > 0).any())  # a cell with more wrong labels than right ones
    clearly = found.log_likelihood > max(random.log_likelihood, curved) + CLEARLY
    return found if upside_down or clearly else None


def _fit_random(observed: Observed, plain: FlipModel) -> tuple[FlipModel, Ties]:
    """Flips at random at no more different rates than the labels bear out.

    No flips, one rate for all, and a rate for each group are weighed by Akaike's criterion. Rates
    that differ by class shift the boundary between the classes, so they need the stronger evidence
    that the Bayesian criterion asks for.
    """
    groups, classes = observed.group_count, observed.classes
    by_group = np.repeat(np.arange(groups), classes).reshape(groups, classes)
    model, ties = plain, None
    for candidate in (np.zeros_like(by_group), by_group):
        found = fit_flips(observed, model, ties=candidate)
        if found.criterion < model.criterion:
            model, ties = found, candidate
    by_cell = np.arange(groups * classes).reshape(groups, classes)
    found = fit_flips(observed, model, ties=by_cell)
    gained = found.log_likelihood - model.log_likelihood
    if gained > (found.rates - model.rates) * np.log(len(observed)) / 2:
        model, ties = found, by_cell
    return model, ties


def _random_estimate(
    model: FlipModel, ties: Ties, observed: Observed, rows: NDArray[np.int64], cells: Cells, seed: int
) -> CleanRatioEstimate:
    """Flips at random: the mean over all samples, its error from leaving out a fold at a time."""
    noise, seen = model.noise(observed), observed.take(rows)
    if ties is None:  # none were found; how many there might be nonetheless
        one_rate = np.zeros_like(model.level, dtype=np.int64)
        most = fit_flips(seen, model, ties=one_rate)
        highest = most.noise(seen) + 1.96 * _jackknife_error(most, one_rate, seen, seed)
        highest = max(highest, NONE_OF_MANY / len(seen))  # where every fold comes to none, too
        ratio, interval = 1.0, (1 - highest, 1.0)
    else:
        error = _jackknife_error(model, ties, seen, seed)
        ratio, interval = 1 - noise - error, (1 - noise - 1.96 * error, 1 - noise + 1.96 * error)
    return CleanRatioEstimate(
        float(np.clip(ratio, 0.5, 1.0)),
        (max(interval[0], 0.0), min(interval[1], 1.0)),
        _noise_of(model.true_class(observed), cells),
        model.flip_rates.T,
        False,
        True,
        model.true_class(observed),
        cells,
    )


def _jackknife_error(model: FlipModel, ties: Ties, observed: Observed, seed: int) -> float:
    """Standard error of the share of wrong labels, from leaving out a fold at a time."""
    folds = min(FOLDS, len(observed))
    number = np.random.default_rng(seed).permutation(len(observed)) % folds
    parts = (observed.take(np.flatnonzero(number != fold)) for fold in range(folds))
    return float(
        np.sqrt((folds - 1) * np.var([fit_flips(part, model, ties=ties).noise(part) for part in parts]))
    )


def _aimed_estimate(model: FlipModel, observed: Observed, cells: Cells) -> CleanRatioEstimate:
    """Aimed flips: the labels that are surely wrong, where that is credible."""
    true_class = model.true_class(observed)
    wrong = 1 - true_class[np.arange(len(observed)), observed.labels]
    likely, sure, surest = (
        np.average(wrong > chance, weights=observed.weights) for chance in (0.5, SURE, 0.99)
    )
    credible = bool(sure <= CREDIBLE)
    flipped = true_class.copy()
    flipped[np.arange(len(observed)), observed.labels] = 0.0
    there = np.array([true_class[observed.groups == g].sum(axis=0) for g in range(observed.group_count)])
    gone = np.array([flipped[observed.groups == g].sum(axis=0) for g in range(observed.group_count)])
    rates = np.divide(gone, there, out=np.zeros_like(there), where=there > 0)
    return CleanRatioEstimate(
        float(1 - sure) if credible else 1 - BLIND_NOISE,
        (float(1 - likely), float(1 - surest)) if credible else (0.0, 1.0),
        _noise_of(true_class, cells),
        rates.T,
        True,
        credible,
        true_class,
        cells,
    )


def _noise_of(true_class: NDArray[np.float64], cells: Cells) -> NDArray[np.float64]:
    """Share of wrong labels in every cell; NaN where it is empty."""
    wrong = 1 - true_class[np.arange(len(cells)), cells.label_codes]
    sums = np.bincount(cells.codes, weights=wrong, minlength=cells.counts.size).reshape(cells.shape)
    empty = np.full(cells.shape, np.nan)
    return np.asarray(np.divide(sums, cells.counts, out=empty, where=cells.counts > 0))


def rightest_of_each_class(wrong: NDArray[np.float64], cells: Cells) -> NDArray[np.int64]:
    """One sample of each class that has any, so that none is lost."""
    order = np.argsort(wrong, kind="stable")
    _, first = np.unique(cells.label_codes[order], return_index=True)
    return np.asarray(order[first])
