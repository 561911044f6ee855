"""Confident learning with thresholds of each group (after Northcutt et al. 2021 and Li et al. 2025).

A model that did not see a sample says how likely each class is. A class counts as *confident* for a
sample when it is at least as likely as it is on average for the samples that carry its label. With
one average for everybody, a group whose labels are harder to predict (or noisier) loses far more
samples; here the averages are taken within each group.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression

from fairsieve.data.corruption.flips import flipped_to
from fairsieve.data.splits import fold_numbers
from fairsieve.errors import InvalidInputError
from fairsieve.paper.methods.contract import TrainingInput
from fairsieve.paper.methods.fitted_estimator import settings_with
from fairsieve.paper.methods.planned import on_everyone, plan_trainer
from fairsieve.samples import Samples
from fairsieve.selection.cells import Cells
from fairsieve.training.fit import check_data
from fairsieve.training.result import Fitted
from fairsieve.validation import check_at_least

__all__ = ["confident_classes", "train_group_confident_learning"]

PLAIN = plan_trainer("lr")


@dataclass(frozen=True, eq=False)
class _ConfidentLabels:
    """Whose labels to trust.

    Attributes
    ----------
    kept : boolean array of shape (n,)
        False where another class is confident.
    labels : array of shape (n,)
        That class, and the label as given for all who are kept.
    """

    kept: NDArray[np.bool_]
    labels: NDArray[Any]


def _confident_labels(
    samples: Samples, *, folds: int = 5, seed: int, decoupled: bool = False
) -> _ConfidentLabels:
    """Find the labels that confident learning, done within each group, takes for wrong.

    Parameters
    ----------
    folds : int
        Parts of the cross-validation that the probabilities come from; every cell is spread over all.
    seed : int
        Decides the parts.
    decoupled : bool
        Whether each group has a regression of its own too, rather than one for all.

    Returns
    -------
    ConfidentLabels
        Of every cell that has samples, at least one is kept.

    Examples
    --------
    >>> from fairsieve.data import make_synthetic
    >>> found = _confident_labels(make_synthetic(1000, seed=0), seed=0)
    >>> found.kept.shape
    (1000,)
    """
    probabilities = _out_of_fold_probabilities(samples, folds=folds, seed=seed, decoupled=decoupled)
    kept, likeliest = confident_classes(probabilities, samples.cells)
    doubted = np.flatnonzero(~kept)
    return _ConfidentLabels(kept, flipped_to(samples, doubted, likeliest[doubted]).labels)


def confident_classes(
    probabilities: NDArray[np.float64], cells: Cells
) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
    """Return whose label is kept, and the code of the likeliest of each sample's confident classes.

    With one group for everybody this is confident learning as it is commonly done.
    """
    own = probabilities[np.arange(len(cells)), cells.label_codes]
    sums = np.bincount(cells.codes, weights=own, minlength=cells.counts.size).reshape(cells.shape)
    empty = np.full(cells.shape, np.inf)  # a class that a group lacks is never confident in it
    thresholds = np.divide(sums, cells.counts, out=empty, where=cells.counts > 0)
    confident = probabilities >= thresholds.T[cells.group_codes]
    likeliest = np.where(confident, probabilities, -1.0).argmax(axis=1)
    kept = ~confident.any(axis=1) | (likeliest == cells.label_codes)
    _keep_a_sample_of_each_cell(kept, cells.codes, own)
    return kept, likeliest


def _out_of_fold_probabilities(
    samples: Samples, *, folds: int = 5, seed: int, decoupled: bool = False
) -> NDArray[np.float64]:
    """Compute probabilities of the classes, (n, classes), by regressions that did not see the sample."""
    cells = samples.cells
    check_at_least("folds", folds, 2)
    if len(samples) < folds:
        raise InvalidInputError(f"folds must not exceed the samples, {len(samples)}; got {folds}")
    fold = fold_numbers(cells, folds, check_at_least("seed", seed, 0))
    groups = cells.group_codes if decoupled else np.zeros(len(samples), np.int64)
    probabilities = np.empty((len(samples), cells.shape[0]))
    for held_out in range(folds):
        for group in np.unique(groups):
            seen = (fold != held_out) & (groups == group)
            shown = (fold == held_out) & (groups == group)
            if shown.any():
                # A group that is all in one part is judged by everyone else.
                seen = seen if seen.any() else fold != held_out
                probabilities[shown] = class_probabilities(
                    samples.features[seen], cells.label_codes[seen], samples.features[shown], cells.shape[0]
                )
    return probabilities


def class_probabilities(
    features: NDArray[Any], labels: NDArray[np.int64], shown: NDArray[Any], classes: int
) -> NDArray[np.float64]:
    """Train a logistic regression on some samples, and predict the probabilities of others."""
    features, shown = features.reshape(len(features), -1), shown.reshape(len(shown), -1)
    probabilities = np.zeros((len(shown), classes))
    found = np.unique(labels)
    if len(found) == 1:
        probabilities[:, found] = 1.0
    else:
        regression = LogisticRegression(max_iter=1000).fit(features, labels)
        probabilities[:, found] = regression.predict_proba(shown)
    return probabilities


def _keep_a_sample_of_each_cell(
    kept: NDArray[np.bool_], codes: NDArray[Any], own: NDArray[np.float64]
) -> None:
    """Keep one sample of each cell that would be lost: the one whose own label is likeliest."""
    gone = np.setdiff1d(codes, codes[kept])
    for cell in gone:
        members = np.flatnonzero(codes == cell)
        kept[members[own[members].argmax()]] = True


def train_group_confident_learning(
    given: TrainingInput,
    *,
    folds: int = 5,
    decoupled: bool = False,
    **hyperparameters: Any,
) -> Fitted:
    """Drop the labels that :func:`_confident_labels` takes for wrong, then train plainly; any module."""
    name = "group-confident-learning"
    data, settings = given.data, settings_with(name, given.settings, hyperparameters, ("folds", "decoupled"))
    check_data(data, given.evaluation)
    started = time.perf_counter()
    found = _confident_labels(data, folds=folds, seed=given.seed, decoupled=decoupled)
    rows, seconds = np.flatnonzero(found.kept), time.perf_counter() - started
    fitted = PLAIN(replace(given, data=data.take(rows), settings=settings))
    return replace(on_everyone(fitted, rows, data.cells, seconds, False), method=name)
