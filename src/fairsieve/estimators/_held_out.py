"""Train a fair and a plain model on part of the samples, and predict those that they did not see."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from fairsieve.estimators._solvers import new_solver
from fairsieve.inputs import Checked
from fairsieve.label_noise.collapse import Collapse, compare_held_out
from fairsieve.label_noise.estimate import CleanRatioEstimate
from fairsieve.training.linear_model import LinearModel

if TYPE_CHECKING:
    from fairsieve.estimators.classifier import FairRobustClassifier

__all__ = ["find_held_out_collapse"]

MOST = 4_000  # samples that are used
FEWEST = 40  # of a class, or there is too little to train on


class _HeldOut(NamedTuple):
    """Predictions, as class codes, of samples by models that did not see them."""

    rows: NDArray[np.int64]
    fair: NDArray[np.int64]
    plain: NDArray[np.int64]


def find_held_out_collapse(estimator: FairRobustClassifier, checked: Checked, seed: int) -> Collapse | None:
    """Compare fair and plain models on samples that neither saw, where there is an estimate to judge by."""
    estimate = estimator.estimate_
    if estimate is None:
        return None
    found = _predict_held_out(estimator, checked, seed, estimator.clean_ratio_, estimate)
    if found is None:
        return None
    cells = checked.data.take(found.rows).cells
    return compare_held_out(
        found.fair,
        found.plain,
        cells,
        estimate.take(found.rows, cells),
        fairness=estimator.fairness,
        pos_label=estimator.pos_label,
        weights=None if checked.weights is None else checked.weights[found.rows],
    )


def _predict_held_out(
    estimator: FairRobustClassifier,
    checked: Checked,
    seed: int,
    clean_ratio: float,
    estimate: CleanRatioEstimate,
) -> _HeldOut | None:
    """Train on each half of the samples and predict the other; None where there are too few, or on Ctrl-C.

    The halves have equally many samples of each class and group.
    """
    data, weights = checked.data, checked.weights
    counts = data.cells.counts.sum(axis=1)
    if counts[counts > 0].min() < FEWEST:
        return None
    rows = np.sort(np.random.default_rng(seed).permutation(len(data))[:MOST])
    half = np.empty(len(rows), np.int64)
    half[np.argsort(data.cells.codes[rows], kind="stable")] = np.arange(len(rows)) % 2
    quiet = clone(estimator).set_params(checkpoint_dir=None, checkpoint_every=None, verbose=0)
    found = _HeldOut(rows, np.zeros(len(rows), np.int64), np.zeros(len(rows), np.int64))
    for number in (0, 1):
        inside, outside = rows[half != number], rows[half == number]
        part = data.take(inside)
        own = None if weights is None else weights[inside]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            solver = new_solver(quiet, Checked(part, own, np.arange(len(inside)), len(inside)), seed)
            fair = solver.train_fair(clean_ratio, estimate.take(inside, part.cells))
            plain = fair if fair.interrupted else solver.train_plain()
        if plain.interrupted:
            return None
        unseen = data.features[outside]
        for fitted, codes in ((fair, found.fair), (plain, found.plain)):
            if not isinstance(fitted.predictor, LinearModel):
                return None
            codes[half == number] = fitted.predictor.predict_codes(unseen)
    return found
