"""Model the chance of each true class, given what is known of a sample.

The chance of a true class c, given the plain model's out-of-fold logits s, the given label y, the group z and the
features x, is a logistic regression over the classes:

    u_c = β·log p_c(s) + [y = c]·(κ(z) + ρ·log p_c(s) + x·δ_c) + α_c(z) + x·γ_c

so that trust in a label depends on the group, on how likely the plain model finds it, and on the features. It starts
from what holds for labels wrong at random at a rate of .1 (β = 1, κ = log 9) and moves away from it as far as the
checked rows say. The coefficients of each group are pulled towards those of all, so that a group with few checked rows
borrows from the others. How firmly the features are held at 0 is what makes the checked labels likeliest. Columns of
two values count as 0 and 1 there, the others are standardised: a rare value must not weigh more for being rare.
"""

from __future__ import annotations

from itertools import product

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax, softmax

from fairsieve.selection.cells import Cells

__all__ = ["MOST_FEATURES", "TrueClassModel"]

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]

PRIOR_ODDS = np.log(9.0)  # of a label to be right
HOLD_LOGIT, HOLD_SURE, HOLD_LABEL, HOLD_CLASS = 1.0, 2.0, 0.3, 0.5  # ridges of β, ρ, κ and α
HOLD_GROUP = 2.0  # of what a group differs by
HOLD_FEATURE = (0.2, 0.6, 2.0, 8.0)  # ridges of γ that are tried
HOLD_BY_LABEL = (8.0, 100.0)  # and of δ
MOST_FEATURES = 60
LEAST_LOG = -8.0  # of a label's chance by the plain model, where ρ takes it
MOST_COMPARED = 1_000  # checked rows that those are chosen by
FOLDS = 5
STEPS = 30
CHUNK = 4_096


class TrueClassModel:
    """The model above, for all samples; its parameters are learnt from checked ones.

    Parameters
    ----------
    scores : array of shape (n, classes − 1)
        Logits of a plain model of the given labels, out of fold.
    features : array of shape (n, columns)
        Scaled here.
    cells : Cells
        Given labels and groups.
    """

    def __init__(self, scores: Floats, features: Floats, cells: Cells) -> None:
        self.logs = log_softmax(np.column_stack([np.zeros(len(scores)), scores]), axis=1)
        self.cells, classes, groups = cells, *cells.shape
        self.features = _scale(features)
        others = classes - 1
        width = self.features.shape[1]
        self.sizes = (2, 1 + groups, others * (1 + groups), others * width, classes * width)
        self.mean = np.zeros(sum(self.sizes))
        self.mean[:3] = 1.0, 0.0, PRIOR_ODDS

    def ridge(self, feature: float, by_label: float) -> Floats:
        """Return how firmly each parameter is held to its prior mean."""
        classes, groups = self.cells.shape
        return np.concatenate(
            [
                [HOLD_LOGIT, HOLD_SURE, HOLD_LABEL],
                np.full(groups, HOLD_GROUP),
                np.tile([HOLD_CLASS] + [HOLD_GROUP] * groups, classes - 1),
                np.full(self.sizes[3], feature),
                np.full(self.sizes[4], by_label),
            ]
        )

    def tensor(self, rows: Codes) -> Floats:
        """Return the terms of some rows."""
        classes, groups = self.cells.shape
        labels, group = self.cells.label_codes[rows], self.cells.group_codes[rows]
        found = np.zeros((len(rows), classes, sum(self.sizes)))
        found[:, :, 0] = self.logs[rows]
        every = np.arange(len(rows))
        found[every, labels, 1] = np.maximum(self.logs[rows, labels], LEAST_LOG)
        found[every, labels, 2] = 1.0
        found[every, labels, 3 + group] = 1.0
        first = 3 + groups
        for c in range(1, classes):
            place = first + (c - 1) * (1 + groups)
            found[:, c, place] = 1.0
            found[every, c, place + 1 + group] = 1.0
        first += (classes - 1) * (1 + groups)
        width = self.features.shape[1]
        for c in range(1, classes):
            found[:, c, first + (c - 1) * width : first + c * width] = self.features[rows]
        first += (classes - 1) * width
        for c in range(classes):
            own = np.flatnonzero(labels == c)
            found[own, c, first + c * width : first + (c + 1) * width] = self.features[rows][own]
        return found

    def fit(self, rows: Codes, codes: Codes, weights: Floats) -> Floats:
        """Fit the parameters to checked rows.

        How firmly the features are held is what makes the checked labels likeliest (Laplace's approximation).
        """
        terms, few = self.tensor(rows), slice(None, MOST_COMPARED)
        best: tuple[float, Floats, Floats] | None = None
        for feature, by_label in product(HOLD_FEATURE, HOLD_BY_LABEL):
            ridge = self.ridge(feature, by_label)
            start = self.mean if best is None else best[1]
            found, evidence = _newton(terms[few], codes[few], weights[few], self.mean, ridge, start)
            if best is None or evidence > best[0]:
                best = evidence, found, ridge
        assert best is not None
        self.held = best[2]
        self.found, _ = _newton(terms, codes, weights, self.mean, self.held, best[1])
        return self.found

    def held_out(self, rows: Codes, codes: Codes, weights: Floats) -> Floats:
        """Predict checked rows by fits that did not see them, held as firmly as the fit to all."""
        terms, folds = self.tensor(rows), np.arange(len(rows)) % FOLDS
        found = np.empty((len(rows), self.cells.shape[0]))
        for fold in range(min(FOLDS, len(rows))):
            seen, left = folds != fold, folds == fold
            values, _ = _newton(terms[seen], codes[seen], weights[seen], self.mean, self.held, self.found)
            found[left] = softmax(terms[left] @ values, axis=1)
        return found

    def chances(self, values: Floats) -> Floats:
        """Compute the probabilities of the true classes of all samples."""
        rows = np.arange(len(self.cells))
        parts = [rows[first : first + CHUNK] for first in range(0, len(rows), CHUNK)]
        return np.concatenate([softmax(self.tensor(part) @ values, axis=1) for part in parts])


def _scale(features: Floats) -> Floats:
    """Centre the columns; scale those of two values by the distance between these, the others by their deviation."""
    spread = features.std(axis=0)
    some = features[:, np.flatnonzero(spread > 1e-12)[:MOST_FEATURES]]
    low, high = some.min(axis=0), some.max(axis=0)
    two = ((some == low) | (some == high)).all(axis=0)
    return np.asarray((some - some.mean(axis=0)) / np.where(two, high - low, some.std(axis=0)))


def _newton(
    terms: Floats,
    codes: Codes,
    weights: Floats,
    mean: Floats,
    ridge: Floats,
    start: Floats,
) -> tuple[Floats, float]:
    """Maximise the penalised likelihood; return the parameters and the log evidence."""
    every = np.arange(len(terms))

    def value_at(values: Floats) -> tuple[float, Floats]:
        logs = log_softmax(terms @ values, axis=1)
        return float(weights @ logs[every, codes] - 0.5 * ridge @ (values - mean) ** 2), logs

    found, (value, logs) = start, value_at(start)
    for _ in range(STEPS):
        chances = np.exp(logs)
        pull = -chances * weights[:, None]
        pull[every, codes] += weights
        slope = np.einsum("nc,ncp->p", pull, terms) - ridge * (found - mean)
        curvature = _curvature(terms, chances, weights, ridge)
        step, size = np.linalg.solve(curvature, slope), 1.0
        gain = float(slope @ step)
        while size > 1e-3 and value_at(found + size * step)[0] < value:
            size /= 2
        found = found + size * step
        value, logs = value_at(found)
        if gain < 1e-6:
            break
    curvature = _curvature(terms, np.exp(logs), weights, ridge)
    evidence = value + 0.5 * float(np.log(ridge).sum() - np.linalg.slogdet(curvature)[1])
    return found, evidence


def _curvature(terms: Floats, chances: Floats, weights: Floats, ridge: Floats) -> Floats:
    centred = terms - np.einsum("nc,ncp->np", chances, terms)[:, None]
    flat = (centred * np.sqrt(chances * weights[:, None])[:, :, None]).reshape(-1, terms.shape[2])
    return np.asarray(flat.T @ flat + np.diag(ridge))
