"""How many labels are right, and which ones: found from the data alone, as far as the data can say."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator

from fairsieve.inputs import Checked, check_samples, read_seed
from fairsieve.label_noise.clean_ratio_estimate import (
    SURE,
    CleanRatioEstimate,
    Credibility,
    Unseen,
    noise_by_cell,
    warn_if_inconclusive,
)
from fairsieve.label_noise.explanations import (
    RandomFlips,
    Tried,
    explain_at_random,
    explain_by_aim,
    stack,
    try_predictors,
)
from fairsieve.label_noise.flip_model import FlipModel, Observed
from fairsieve.label_noise.survey import Survey, chunks
from fairsieve.label_noise.true_classes import MOST_FEATURES, flip_rates_of, learn_true_class
from fairsieve.label_noise.verified import Verification, VerifiedRates, check_verification
from fairsieve.samples import Samples
from fairsieve.selection.cells import Cells
from fairsieve.training.threads import one_blas_thread

__all__ = ["CleanRatioEstimate", "Credibility", "estimate_clean_ratio", "estimate_of", "warn_if_inconclusive"]

MOST_GROUPS = 24
CREDIBLE = 0.2  # share of aimed flips beyond which they are taken for the truth, see docs/clean-ratio.md
GUESSED_NOISE = 0.1  # what is assumed then
NONE_OF_MANY = 3.0  # the rule of three: none among n is, with 95 % confidence, at most 3/n
WIDE = 0.4  # an interval that is wider says nothing
UNSEEN = 0.2  # as does one in which so many labels may be wrong although none were found
ON_TOP = "labels wrong systematically, by a feature or for one group, do not show and would come on top"


def estimate_clean_ratio(
    X: Any,
    y: ArrayLike,
    *,
    sensitive_features: Any = None,
    sample_weight: ArrayLike | None = None,
    verified_labels: Any = None,
    verified_weight: ArrayLike | None = None,
    random_state: Any = None,
) -> CleanRatioEstimate:
    """Estimate how many labels are right, from features, labels and groups alone.

    The labels are predicted by a linear, a curved and a boosted model that all see the group; then three
    explanations are weighed: that no label is wrong, that labels are wrong at random, at one rate or at one for each
    group, and that they were aimed at the samples whose class is surest (see
    :mod:`~fairsieve.label_noise.explanations`). Where the data cannot say, the estimate is inconclusive and no
    label is called wrong. Labels that are wrong systematically, by a feature or for one class, cannot be told from a
    real difference without labels that somebody checked: what is found is a lower bound of the wrong labels.
    Samples without a group are a group of their own here. The same data give the same estimate, in any order.

    Parameters
    ----------
    X : array, sparse matrix or data frame of shape (n, d)
    y : n labels
    sensitive_features : n values, or several columns of them, optional
    sample_weight : n numbers, optional
    verified_labels : n labels, optional
        The checked label where somebody checked; None, NaN or masked elsewhere. ``y`` keeps the given labels.
    verified_weight : n numbers, optional
        For rows that were not checked at random: the inverse of the chance to be checked.
    random_state : int, RandomState or None
        Of the draws that the intervals of checked labels come from; it decides nothing else.

    Examples
    --------
    >>> from fairsieve.data import flip_uniform, make_synthetic
    >>> data = make_synthetic(4000, seed=1)
    >>> noisy = flip_uniform(data, 0.2, seed=0).labels
    >>> found = estimate_clean_ratio(data.features, noisy, sensitive_features=data.groups)
    >>> 0.7 < found.clean_ratio < 0.85, found.aimed
    (True, False)
    """
    checked = check_samples(BaseEstimator(), X, y, sensitive_features, sample_weight)
    verified = check_verification(checked, verified_labels, verified_weight)
    return estimate_of(checked, read_seed(random_state), verified)


def estimate_of(checked: Checked, seed: int, verified: Verification | None = None) -> CleanRatioEstimate:
    """Estimate from samples that have been checked, and labels that somebody verified, if any.

    Where groups are many, the smaller ones are one group.
    """
    cells = checked.data.cells
    if cells.shape[1] <= MOST_GROUPS:
        return _estimate(checked, seed, verified)
    pool = np.zeros(cells.shape[1], np.int64)
    pool[np.argsort(-cells.counts.sum(axis=0), kind="stable")[: MOST_GROUPS - 1]] = np.arange(1, MOST_GROUPS)
    data = Samples(checked.data.features, checked.data.labels, pool[cells.group_codes], classes=cells.classes)
    found = _estimate(checked._replace(data=data), seed, verified)
    rates = found.verified
    if rates is not None:
        own = rates.flip_rates[:, pool], rates.low[:, pool], rates.high[:, pool]
        rates = VerifiedRates(rates.checked[:, pool], *own)
    return replace(
        found,
        cells=cells,
        noise=found.noise[:, pool],
        flip_rates=found.flip_rates[:, pool],
        verified=rates,
    )


@one_blas_thread()
def _estimate(checked: Checked, seed: int, verified: Verification | None) -> CleanRatioEstimate:
    survey = Survey.draw(checked.data, checked.weights)
    tried = try_predictors(survey)
    if verified is not None and verified.enough:
        return _verified_estimate(verified, tried, survey, checked, seed)
    found = _weigh(survey, tried, checked)
    return found if verified is None else _corrected(found, verified.codes)


def _weigh(survey: Survey, tried: Tried, checked: Checked) -> CleanRatioEstimate:
    """Weigh the explanations and build the estimate."""
    aimed, disagree = explain_by_aim(survey, tried)
    if aimed is not None:
        return _aimed_estimate(aimed, tried, survey, checked)
    random = explain_at_random(survey, tried)
    verdict = _judge(random, disagree)
    if verdict and random.model is not None:
        return _random_estimate(random, verdict, survey, tried, checked)
    most = max(random.most, random.share, NONE_OF_MANY / survey.size)
    return _without_suspects(verdict, 1.0 if disagree else most, tried, checked, aimed=disagree)


def _judge(random: RandomFlips, disagree: bool) -> Credibility:
    """Say whether the explanations are conclusive, and why."""
    least, most = random.least, max(random.most, random.share)
    span = f"between {_percent(least)} and {_percent(most)}"
    if disagree:
        why = (
            "the explanations disagree: wrong labels aimed at the clearest rows fit, but so do others of them, or a "
            "bent boundary without wrong labels."
        )
    elif random.model is None and most > UNSEEN:
        why = (
            f"the features say too little about the labels: up to {most:.0%} of them could be wrong at random without "
            "showing."
        )
    elif random.model is None:
        up_to = max(math.ceil(100 * most - 1e-9), 1)
        return Credibility(
            True,
            f"no wrong labels were found, though up to {up_to}% of them could be wrong at random without showing; "
            f"{ON_TOP}.",
        )
    elif random.unsure:
        why = (
            "even the surest rows are not sure. Labels wrong at random would do that, but so would an outcome that "
            "nobody can be sure of."
        )
    elif most - least > WIDE:
        why = f"{span} of the labels are wrong at random, which is too wide to go by."
    elif random.model.flip_rates.max() >= 0.5:
        why = "some groups would have more wrong labels than right ones."
    else:
        return Credibility(
            True,
            f"about {_percent(random.share)} of the labels look wrong ({span}): even where a class is surest, some "
            f"labels say another, as labels wrong at random do; {ON_TOP}.",
        )
    return Credibility(False, why)


def _percent(share: float) -> str:
    """Write a share in percent, of small ones a tenth more."""
    return f"{share:.0%}" if share >= 0.0095 else f"{share:.1%}"


def _without_suspects(
    verdict: Credibility, most: float, tried: Tried, checked: Checked, *, aimed: bool
) -> CleanRatioEstimate:
    """Build the estimate where no label is called wrong: none were found, or it cannot be known."""
    cells = checked.data.cells
    own = np.eye(cells.shape[0])[cells.label_codes]
    return CleanRatioEstimate(
        1 - GUESSED_NOISE if aimed else 1.0,
        (max(1 - most, 0.0), 1.0),
        noise_by_cell(own, cells) if verdict else np.full(cells.shape, np.nan),
        np.zeros(cells.shape),
        aimed,
        verdict,
        own,
        cells,
        tried.choice,
    )


def _random_estimate(
    random: RandomFlips, verdict: Credibility, survey: Survey, tried: Tried, checked: Checked
) -> CleanRatioEstimate:
    """Build the estimate for flips at random: how likely each label is wrong follows from the rates."""
    data, cells = checked.data, checked.data.cells
    assert random.model is not None
    design = stack([each.all_scores(survey, data) for each in random.used], cells.group_codes, cells.shape[1])
    true_class = random.model.true_class(_observe(design, cells))
    low, high = max(1 - max(random.most, random.share), 0.0), 1 - random.least
    return CleanRatioEstimate(
        float(np.clip(1 - random.share - random.error, low, high)),
        (low, high),
        noise_by_cell(true_class, cells),
        random.model.flip_rates.T.copy(),
        False,
        verdict,
        true_class,
        cells,
        tried.choice,
    )


def _aimed_estimate(model: FlipModel, tried: Tried, survey: Survey, checked: Checked) -> CleanRatioEstimate:
    """Build the estimate for aimed flips: the labels that are surely wrong, where that is credible."""
    data, cells, expand = checked.data, checked.data.cells, tried.linear.design
    assert expand is not None
    parts = [
        model.true_class(_observe(expand(survey.features_of(data, part)), cells, part))
        for part in chunks(len(data))
    ]
    true_class = np.concatenate(parts)
    wrong = 1 - true_class[np.arange(len(data)), cells.label_codes]
    likely, sure, surest = (
        float(np.average(wrong > chance, weights=checked.weights)) for chance in (0.5, SURE, 0.99)
    )
    if sure > CREDIBLE:
        verdict = Credibility(
            False,
            f"labels look wrong on purpose, but so many ({sure:.0%}) that they may be the truth and the others "
            "wrong.",
        )
        return _without_suspects(verdict, 1.0, tried, checked, aimed=True)
    return CleanRatioEstimate(
        1 - sure,
        (1 - likely, 1 - surest),
        noise_by_cell(true_class, cells),
        flip_rates_of(true_class, cells, checked.weights),
        True,
        Credibility(
            True, f"labels turn around where the class is surest, as if they were wrong on purpose; {ON_TOP}."
        ),
        true_class,
        cells,
        tried.choice,
    )


def _observe(design: NDArray[np.float64], cells: Cells, part: slice = slice(None)) -> Observed:
    """Return samples in the form the model of flips takes."""
    labels, groups = cells.label_codes[part], cells.group_codes[part]
    return Observed(design, labels, groups, *cells.shape, np.ones(len(labels)))


def _verified_estimate(
    verified: Verification, tried: Tried, survey: Survey, checked: Checked, seed: int
) -> CleanRatioEstimate:
    """Build the estimate from labels that somebody checked."""
    data, cells = checked.data, checked.data.cells
    scores = tried.best.all_scores(survey, data)
    columns = survey.telling(MOST_FEATURES)
    features = np.concatenate([survey.features_of(data, part)[:, columns] for part in chunks(len(data))])
    learnt = learn_true_class(scores, features, cells, verified, sample_weight=checked.weights, seed=seed)
    noise = noise_by_cell(learnt.true_class, cells)
    wrong = 1 - learnt.true_class[np.arange(len(data)), cells.label_codes]
    count = int((verified.codes >= 0).sum())
    return CleanRatioEstimate(
        float(np.clip(1 - np.average(wrong, weights=checked.weights), *learnt.interval)),
        learnt.interval,
        noise,
        learnt.rates.flip_rates,
        False,
        Credibility(True, f"learnt from {count} checked labels."),
        learnt.true_class,
        cells,
        tried.choice,
        learnt.rates,
        verified.codes,
        Unseen(learnt.unseen, verified.weight),
    )


def _corrected(found: CleanRatioEstimate, codes: NDArray[np.int64]) -> CleanRatioEstimate:
    """Set the few checked labels right."""
    rows = np.flatnonzero(codes >= 0)
    true_class = found.true_class.copy()
    true_class[rows] = np.eye(found.cells.shape[0])[codes[rows]]
    return replace(found, true_class=true_class, verified_codes=codes)
