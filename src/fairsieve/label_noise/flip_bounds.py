"""Bound how many labels can be wrong at random, whatever the truth looks like, and test whether the rate is steady.

Where a class is surest, no fewer labels say another class than are flipped. So the surest samples of each class
and group bound its rate from above, with no model of the truth. From below there is no such bound: any table of
probabilities could be the truth. And labels that are wrong systematically, by a feature or for one group, do not show
in either.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.stats import chi2

from fairsieve.label_noise.flip_model import FlipModel, Observed, log_chances
from fairsieve.label_noise.predictors import Survey
from fairsieve.label_noise.true_counts import surest_share, transitions, true_sums

__all__ = ["BOUND", "highest_share", "is_steady"]

Floats = NDArray[np.float64]

BOUND = 2.5  # standard errors: the lowest of several shares is too low
SURE = 0.9  # chance of a class, without flips, from which on other labels are mostly flips
FEWEST = 50  # samples to test by
CHANCE = 1e-3  # of a steady rate that looks as uneven
UNEVEN = 0.05  # variance of a rate over its square that is worth telling
MOST_CURVED = 6  # numeric columns whose squares and products are tested too


def highest_share(survey: Survey, chances: Floats) -> float:
    """Find the highest share of labels wrong at random, at any rates by class and group, at 95 % confidence.

    Parameters
    ----------
    chances : array of shape (n, classes)
        Of the labels as they are, by models that did not see the samples.
    """
    shape = survey.classes, survey.group_count
    rates = np.zeros(shape)
    for place in np.ndindex(shape):
        alike = np.zeros(shape, bool)
        alike[place] = True
        share, error = surest_share(alike, chances, survey.labels, survey.groups)
        rates[place] = min(share + BOUND * error, 1.0)
    table = transitions(rates)
    kept = np.diagonal(table, axis1=1, axis2=2).T
    seen = np.zeros(shape)
    np.add.at(seen, (survey.labels, survey.groups), survey.weights)
    true = true_sums(seen, table)
    true *= seen.sum(axis=0) / np.maximum(true.sum(axis=0), 1e-12)
    return float(((1 - kept) * true).sum() / seen.sum())


def is_steady(survey: Survey, observed: Observed, model: FlipModel) -> bool:
    """Say whether labels that contradict a sure class are spread evenly over the samples of a class and group.

    Flips at random are. If the features tell where such labels are, they are no flips at random: the truth has a rule
    that the predictors missed, or labels are wrong by a feature. This is a score test of a rate that
    depends on the features, among the samples that are sure.

    Parameters
    ----------
    observed : Observed
        The logits of the surveyed samples.
    model : FlipModel
        Fitted to them, with flips at random.
    """
    chances = np.exp(log_chances(observed.design @ model.weights))
    likeliest = chances.argmax(axis=1)
    sure = chances[np.arange(len(survey)), likeliest]
    rate = model.flip_rates[survey.groups, likeliest]
    others = max(survey.classes - 1, 1)
    expected = sure * rate + (1 - sure) * (1 - rate / others)
    rows = np.flatnonzero((sure > SURE) & (rate > 0.5 / len(survey)))
    if len(rows) < FEWEST:
        return True
    expected = expected[rows]
    surprise = (survey.labels != likeliest)[rows] - expected
    spread = expected * (1 - expected) * survey.weights[rows]
    cells = survey.groups[rows] * survey.classes + likeliest[rows]
    features = _within(_with_products(survey, rows), cells, spread)
    slope = features.T @ (surprise * survey.weights[rows])
    curvature = (features * spread[:, None]).T @ features
    inverse = np.linalg.pinv(curvature, rcond=1e-8, hermitian=True)
    freedom = int(np.linalg.matrix_rank(curvature, hermitian=True))
    score = float(slope @ inverse @ slope)
    mean = float(expected.mean())
    uneven = (score - freedom) / len(rows) * (1 - mean) / mean
    return freedom == 0 or uneven < UNEVEN or float(chi2.sf(score, freedom)) > CHANCE


def _with_products(survey: Survey, rows: NDArray[np.int64]) -> Floats:
    """Return the features, with squares and products of the first numeric columns."""
    features = survey.features[rows]
    numeric = features[:, survey.numeric_columns[:MOST_CURVED]]
    numeric = (numeric - numeric.mean(axis=0)) / np.maximum(numeric.std(axis=0), 1e-12)
    first, second = np.triu_indices(numeric.shape[1])
    return np.column_stack([features, numeric[:, first] * numeric[:, second]])


def _within(features: Floats, cells: NDArray[np.int64], weights: Floats) -> Floats:
    """Standardise columns, and take the mean of each cell off; columns that are constant then become 0."""
    spread = features.std(axis=0)
    scaled = features / np.where(spread > 1e-12, spread, np.inf)
    _, cells = np.unique(cells, return_inverse=True)
    own = np.equal.outer(np.arange(cells.max() + 1), cells) * weights
    return np.asarray(scaled - (own @ scaled / own.sum(axis=1, keepdims=True))[cells])
