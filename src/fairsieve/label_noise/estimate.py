"""How many labels are right, and which ones: found from the data alone, as far as the data can say."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator

from fairsieve.errors import FairsieveWarning
from fairsieve.inputs import Checked, check_samples, seed_of
from fairsieve.label_noise.explanations import (
    Choice,
    RandomFlips,
    choose,
    choose_base,
    explain_at_random,
    explain_by_aim,
    stack,
)
from fairsieve.label_noise.flip_model import FlipModel, Observed, fit_fixed, fit_plain
from fairsieve.label_noise.predictors import Predictor, Survey, boosted_predictor, chunks
from fairsieve.selection.cells import Cells

__all__ = ["CleanRatioEstimate", "Verdict", "estimate_clean_ratio", "estimate_of", "warn_if_inconclusive"]

MOST = 8_000  # samples that the estimate looks at
SURE = 0.9
CREDIBLE = 0.2  # share of aimed flips beyond which they are taken for the truth, see docs/clean-ratio.md
GUESSED_NOISE = 0.1  # what is assumed then
NONE_OF_MANY = 3.0  # the rule of three: none among n is, with 95 % confidence, at most 3/n
WIDE = 0.3  # an interval that is wider says nothing
UNSEEN = 0.2  # as does one in which so many labels may be wrong although none were found


@dataclass(frozen=True)
class Verdict:
    """Whether the estimate is conclusive, and why; true in conditions where it is.

    Examples
    --------
    >>> bool(Verdict(False, "the labels say nothing")), str(Verdict(False, "the labels say nothing"))
    (False, 'the labels say nothing')
    """

    conclusive: bool
    reason: str

    def __bool__(self) -> bool:
        return self.conclusive

    def __str__(self) -> str:
        return self.reason


@dataclass(frozen=True, eq=False)
class CleanRatioEstimate:
    """What the data say about their labels.

    Attributes
    ----------
    clean_ratio : float
        Share of right labels; one standard error below the likeliest value, since too high is worse
        than too low. Where the estimate is inconclusive, what training assumes.
    interval : (float, float)
        95 % confidence, as far as the model of the flips holds.
    noise : array of shape (classes, groups)
        Share of wrong labels among those observed in each cell; NaN where there are none, and where the
        estimate is inconclusive.
    flip_rates : array of shape (classes, groups)
        Chance of a label of that *true* class and group to be flipped.
    aimed : bool
        Whether labels look wrong on purpose: where they are surest, rather than at random.
    credible : Verdict
        Whether the estimate is conclusive, with the reason in words; it can be used as a condition. Where
        it is not, no label is called wrong.
    true_class : array of shape (n, classes)
        Probabilities of each sample's true class, given its features and its label.
    cells : Cells
        The classes and groups of the tables above.
    predictor : Choice, optional
        The model of the labels that the estimate stands on, and by how much it beat the simpler one.
    """

    clean_ratio: float
    interval: tuple[float, float]
    noise: NDArray[np.float64]
    flip_rates: NDArray[np.float64]
    aimed: bool
    credible: Verdict
    true_class: NDArray[np.float64]
    cells: Cells
    predictor: Choice | None = None

    @property
    def wrong(self) -> NDArray[np.float64]:
        """How likely each label is wrong."""
        return 1 - self.true_class[np.arange(len(self.cells)), self.cells.label_codes]

    @property
    def believed(self) -> NDArray[np.int64]:
        """Samples whose label is more likely right than wrong; with aimed flips, not surely wrong."""
        return np.flatnonzero(self.wrong <= (SURE if self.aimed else 0.5))

    @property
    def training(self) -> str:
        """What training does with the estimate, in words."""
        if not self.credible:
            if self.aimed:
                return f"selects by losses, as if {self.clean_ratio:.0%} of the labels were right"
            return "leaves no sample out and only moves the shares of the groups"
        if not self.flip_rates.any():
            return "leaves no sample out and moves the shares of the groups"
        return "leaves out labels that are likely wrong and moves the shares of the groups"

    def take(self, rows: NDArray[np.int64], cells: Cells) -> CleanRatioEstimate:
        """Return the estimate for some of the samples, whose cells are given."""
        return replace(self, true_class=self.true_class[rows], cells=cells)

    def keep(self, seed: int) -> NDArray[np.int64]:
        """Return samples that, together, are labelled as if nobody had flipped labels; ascending.

        Aimed flips are far from the boundary between the classes: the labels that are surely wrong are
        left out. Of random ones each is kept with the chance that its label is right; keeping the
        likeliest instead would leave out whoever the model finds surprising, right or wrong. Where
        the classes of a group are flipped at different rates, the more reliable ones are thinned to
        match. Draws are spread evenly along each cell, so that the share among similar samples is exact.
        """
        wrong, stays = self.wrong, 1.0 - self.flip_rates
        if self.aimed:
            return np.union1d(self.believed, rightest_of_each_class(wrong, self.cells))
        chance = (1.0 - wrong) * (stays.min(axis=0) / stays).reshape(-1)[self.cells.codes]
        if (chance == 1.0).all():
            return np.arange(len(self.cells))
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

    The labels are predicted by a linear, a curved and a boosted model that all see the group; then three
    explanations are weighed: that no label is wrong, that labels are wrong at random, at a rate of their own in
    every cell, and that they were aimed at the samples whose class is surest (see
    :mod:`~fairsieve.label_noise.explanations`). Where the data cannot say, the estimate is inconclusive and no
    label is called wrong. Samples without a group are a group of their own here.

    Parameters
    ----------
    X : array, sparse matrix or data frame of shape (n, d)
    y : n labels
    sensitive_features : n values, or several columns of them, optional
    sample_weight : n numbers, optional
    random_state : int, RandomState or None
        Decides which samples are looked at, where there are more than 8,000, and the folds.

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
    """Estimate from samples that have been checked."""
    data = checked.data
    survey = Survey.draw(data, checked.weights, seed, MOST)
    tried, base, levelled = choose_base(survey)
    linear, boosted = tried[0], boosted_predictor(survey, seed)
    tried += [] if boosted is None else [boosted]
    choice, best = choose(tried, base, levelled, survey)
    lowest = float(np.average(levelled, weights=survey.weights))
    aimed, disagree = explain_by_aim(survey, linear, lowest, boosted)
    if aimed is not None:
        return _aimed_estimate(aimed, linear, survey, checked, choice)
    random = explain_at_random(survey, base, levelled, boosted)
    verdict = _judge(random, disagree, choice, survey)
    if not verdict or not random.found:
        return _without_suspects(random, verdict, disagree, data.cells, choice, len(survey))
    used = [base if random.model is None else base.with_model(random.model)]
    used += [boosted] if best is boosted and boosted is not None else []
    return _random_estimate(random, used, verdict, survey, checked, choice)


def warn_if_inconclusive(estimate: CleanRatioEstimate) -> None:
    """Warn that it cannot be known which labels are wrong, and say what training does instead."""
    if not estimate.credible:
        warnings.warn(
            f"which labels are wrong cannot be known: {estimate.credible} No label is called wrong; training "
            f"{estimate.training}. Pass clean_ratio= if you know it",
            FairsieveWarning,
            stacklevel=4,
        )


def _judge(random: RandomFlips, disagree: bool, choice: Choice, survey: Survey) -> Verdict:
    """Say whether the explanations are conclusive, and why."""
    stands = f"The estimate stands on {choice}."
    if disagree:
        return Verdict(
            False,
            "the explanations disagree: wrong labels aimed at the clearest rows and a bent boundary without wrong "
            f"labels both fit. {stands}",
        )
    if random.found and 4 * random.error > WIDE:
        return Verdict(False, f"the share of wrong labels is uncertain by ±{2 * random.error:.0%}. {stands}")
    if random.found and random.rates.max() >= 0.5:
        return Verdict(False, f"some cells would have more wrong labels than right ones. {stands}")
    if random.found:
        return Verdict(
            True, f"even where a class is surest, some labels say another, at a steady rate. {stands}"
        )
    if random.most > UNSEEN:
        return Verdict(
            False,
            f"the features say too little about the labels: up to {random.most:.0%} of them could be wrong without "
            f"showing. {stands}",
        )
    return Verdict(
        True,
        "no labels wrong at random, and none aimed at the clearest rows, were found; labels wrong in another way, "
        f"by the features, do not show. {stands}",
    )


def _without_suspects(
    random: RandomFlips, verdict: Verdict, aimed: bool, cells: Cells, choice: Choice, surveyed: int
) -> CleanRatioEstimate:
    """Build the estimate where no label is called wrong: none were found, or it cannot be known."""
    own = np.zeros((len(cells), cells.shape[0]))
    own[np.arange(len(cells)), cells.label_codes] = 1.0
    noise = _noise_of(own, cells)
    if verdict:
        most = max(random.most, NONE_OF_MANY / surveyed)
        interval = (max(1 - most, 0.0), 1.0)
    else:
        noise = np.full(cells.shape, np.nan)
        interval = (0.0, 1.0) if aimed else (max(1 - max(random.most, random.rates.max()), 0.0), 1.0)
    ratio = 1 - GUESSED_NOISE if aimed else 1.0
    return CleanRatioEstimate(
        ratio, interval, noise, np.zeros(cells.shape), aimed, verdict, own, cells, choice
    )


def _random_estimate(
    random: RandomFlips,
    used: list[Predictor],
    verdict: Verdict,
    survey: Survey,
    checked: Checked,
    choice: Choice,
) -> CleanRatioEstimate:
    """Build the estimate for flips at random: how likely each label is wrong follows from the rates."""
    data, cells = checked.data, checked.data.cells
    scores = [each.all_scores(survey, data) for each in used]
    weights = np.ones(len(data)) if checked.weights is None else checked.weights
    design = stack(scores, cells.group_codes, cells.shape[1])
    whole = Observed(design, cells.label_codes, cells.group_codes, *cells.shape, weights)
    seen = whole.take(survey.rows)
    model = fit_fixed(seen, fit_plain(seen), random.rates)
    true_class = model.true_class(whole)
    noise = model.noise(whole)
    error = random.error
    return CleanRatioEstimate(
        float(np.clip(1 - noise - error, 0.5, 1.0)),
        (max(1 - noise - 1.96 * error, 0.0), min(1 - noise + 1.96 * error, 1.0)),
        _noise_of(true_class, cells),
        random.rates.T.copy(),
        False,
        verdict,
        true_class,
        cells,
        choice,
    )


def _aimed_estimate(
    model: FlipModel, linear: Predictor, survey: Survey, checked: Checked, choice: Choice
) -> CleanRatioEstimate:
    """Build the estimate for aimed flips: the labels that are surely wrong, where that is credible."""
    data, cells = checked.data, checked.data.cells
    labels, groups = cells.label_codes, cells.group_codes
    weights = np.ones(len(data)) if checked.weights is None else checked.weights
    true_class = np.empty((len(data), cells.shape[0]))
    for part in chunks(len(data)):
        design = linear.design(survey.features_of(data, part))
        true_class[part] = model.true_class(
            Observed(design, labels[part], groups[part], *cells.shape, weights[part])
        )
    wrong = 1 - true_class[np.arange(len(data)), labels]
    likely, sure, surest = (
        float(np.average(wrong > chance, weights=weights)) for chance in (0.5, SURE, 0.99)
    )
    if sure > CREDIBLE:
        verdict = Verdict(
            False,
            f"labels look wrong on purpose, but so many ({sure:.0%}) that they may be the truth and the others "
            "wrong.",
        )
        return _without_suspects(
            RandomFlips(np.zeros((1, 1)), 0.0, 1.0), verdict, True, cells, choice, len(survey)
        )
    flipped = true_class.copy()
    flipped[np.arange(len(data)), labels] = 0.0
    there = np.array([true_class[groups == group].sum(axis=0) for group in range(cells.shape[1])])
    gone = np.array([flipped[groups == group].sum(axis=0) for group in range(cells.shape[1])])
    rates = np.divide(gone, there, out=np.zeros_like(there), where=there > 0)
    return CleanRatioEstimate(
        1 - sure,
        (1 - likely, 1 - surest),
        _noise_of(true_class, cells),
        rates.T,
        True,
        Verdict(True, "labels turn around where the class is surest, as if they were wrong on purpose"),
        true_class,
        cells,
        choice,
    )


def _noise_of(true_class: NDArray[np.float64], cells: Cells) -> NDArray[np.float64]:
    """Compute the share of wrong labels in every cell; NaN where it is empty."""
    wrong = 1 - true_class[np.arange(len(cells)), cells.label_codes]
    sums = np.bincount(cells.codes, weights=wrong, minlength=cells.counts.size).reshape(cells.shape)
    empty = np.full(cells.shape, np.nan)
    return np.asarray(np.divide(sums, cells.counts, out=empty, where=cells.counts > 0))


def rightest_of_each_class(wrong: NDArray[np.float64], cells: Cells) -> NDArray[np.int64]:
    """Return one sample of each class that has any, so that none is lost."""
    order = np.argsort(wrong, kind="stable")
    _, first = np.unique(cells.label_codes[order], return_index=True)
    return np.asarray(order[first])
