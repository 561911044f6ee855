"""The greedy attack of Paudice et al. (2018): flip the labels that make a learner most wrong on right labels.

Their attack flips one label at a time: the one after whose flip the retrained learner has the highest loss on a
validation set. To train once for every candidate takes hours; here a candidate is scored by what its flip does to the
loss of logistic regression to first order. With θ the parameters and H the curvature of the training loss, a flip of
sample i moves θ by −H⁻¹ (2yᵢ − 1) xᵢ, so that the validation loss L changes by −(2yᵢ − 1) xᵢ · H⁻¹ ∇L. The regression
is trained again after every round of flips, and the scores are taken anew.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from fairsieve.data.flips import NoisyLabels, check_samples_object, count_flips, flipped_to
from fairsieve.errors import InvalidInputError
from fairsieve.samples import Samples
from fairsieve.validation import check_at_least

Floats = NDArray[np.float64]


def flip_greedily(
    samples: Samples, rate: float, *, validation: Samples | None = None, rounds: int = 100
) -> NoisyLabels:
    """Flip the labels, one after the other, that raise the loss of a logistic regression on right labels most.

    It is the strongest of the attacks here: it may flip most labels of one cell, after which no method without right
    labels can recover. Two classes.

    Parameters
    ----------
    rate : float in [0, 1]
        Share of the samples to flip.
    validation : Samples, optional
        Samples with right labels that the loss is measured on; the samples themselves, with their right labels, when
        None.
    rounds : int
        How often the regression is trained again; each round flips as many labels. With as many rounds as flips, labels
        are flipped one by one.

    Examples
    --------
    >>> from fairsieve.data import make_synthetic
    >>> noisy = flip_greedily(make_synthetic(1000, seed=0), 0.1, rounds=20)
    >>> int(noisy.flipped.sum())
    100
    """
    check_samples_object(samples)
    check_at_least("rounds", rounds, 1)
    cells, wanted = samples.cells, count_flips(rate, len(samples))
    if cells.shape[0] != 2:
        raise InvalidInputError(
            f"samples must have two classes for this attack; got {cells.shape[0]}: use flip_margin"
        )
    right, shift, scale = cells.label_codes.astype(np.int64), 0.0, 1.0
    features = samples.features.reshape(len(samples), -1).astype(np.float64)
    shift, scale = features.mean(axis=0), np.maximum(features.std(axis=0), 1e-12)
    x = _with_ones((features - shift) / scale)
    target, target_labels = x, right
    if validation is not None:
        check_samples_object(validation)
        target = _with_ones((validation.features.reshape(len(validation), -1) - shift) / scale)
        target_labels = np.array([cells.classes.index(label) for label in validation.labels], dtype=np.int64)
    labels, model = right.copy(), LogisticRegression(max_iter=1000, warm_start=True)
    free = np.ones(len(samples), dtype=bool)
    left = np.diff(np.round(np.linspace(0, wanted, min(rounds, max(wanted, 1)) + 1)).astype(int))
    for flips in left[left > 0]:
        if len(np.unique(labels)) < 2:
            break  # nothing is left to learn
        model.fit(x[:, :-1], labels)
        scores = np.where(free, _effects(model, x, labels, target, target_labels), -np.inf)
        chosen = np.argsort(-scores, kind="stable")[:flips]
        labels[chosen] = 1 - labels[chosen]
        free[chosen] = False
    chosen = np.flatnonzero(labels != right)
    return flipped_to(samples, chosen, labels[chosen])


def _with_ones(table: Floats) -> Floats:
    return np.column_stack([table, np.ones(len(table))])


def _effects(
    model: Any, x: Floats, labels: NDArray[np.int64], target: Floats, target_labels: NDArray[np.int64]
) -> Floats:
    """Compute by how much the flip of each sample raises the validation loss, to first order."""
    at = np.append(model.coef_[0], model.intercept_)
    chances, ridge = expit(x @ at), np.append(np.full(x.shape[1] - 1, 1.0 / model.C), 1e-9)
    curvature = (x.T * (chances * (1 - chances))) @ x + np.diag(ridge)
    slope = (expit(target @ at) - target_labels) @ target / len(target)
    return np.asarray(-(2 * labels - 1) * (x @ np.linalg.solve(curvature, slope)))
