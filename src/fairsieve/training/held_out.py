"""What is chosen by held-out rows before the solver starts: the ridge, and how many labels to leave out.

Both choices compare models of the rows without a fold on the rows of that fold, labelled as given. Models start from
the one before them, which is close, so that a choice among several costs little more than one training for each fold.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import numpy as np
from numpy.typing import NDArray

from fairsieve.training.linear_rows import LinearRows, one_thread
from fairsieve.training.newton import Newton, Step

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]
Mask = NDArray[np.bool_]

RIDGES = (0.25, 1.0, 4.0, 16.0, 64.0, 256.0)
SHARES = (0.025, 0.05, 0.1, 0.15, 0.2, 0.3)  # of the labels, the least believable first
STEPS, PRECISION = 6, 1e-4  # a choice needs no more


@dataclass(frozen=True, eq=False)
class Cleaning:
    """Which rows are trained on, since their labels are believable enough.

    Attributes
    ----------
    share : float
        Of the labels, at most so many are left out.
    kept : boolean array of shape (n,)
    by_fold : list of boolean arrays of shape (n,)
        The same as it is found without each fold, whose rows are to say what the choice is worth.
    """

    share: float
    kept: Mask
    by_fold: list[Mask]


class _Fold:
    """Models of the rows without a fold, each starting from the one before it, with its curvature."""

    def __init__(self, whole: Newton, folds: Codes, fold: int, near: Step | None = None) -> None:
        rows = cast("LinearRows", whole.rows)
        self.inside, self.outside = np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)
        self.train, self.shown = rows.take(self.inside), rows.take(self.outside)
        self.newton = Newton(self.train, whole.ridge, whole)
        if near is not None:
            self.begin(whole, near)

    def begin(self, whole: Newton, near: Step) -> None:
        """Begin from a model of all rows."""
        self.newton.ridge = whole.ridge
        self.near = self.newton.adapt(whole, near)

    def train_with(self, kept: Mask | None = None) -> Floats:
        """Return the chances of each class for the rows that are left out, (n, classes)."""
        rows = self.train if kept is None else self.train.with_weights(np.asarray(self.train.weights) * kept)
        start, curvature, _ = self.near
        self.near = self.newton.minimise(np.ones(rows.shape), rows, start, curvature, STEPS, PRECISION)
        return self.shown.probabilities(self.near.parameters)

    def own_chances(self) -> Floats:
        """Return the chance of each label that is left out."""
        chances = self.train_with()
        return np.asarray(chances[np.arange(len(self.outside)), np.asarray(self.shown.labels)])


@one_thread("blas")
def choose_ridge(rows: LinearRows, folds: Codes) -> float:
    """Choose the strongest ridge up to which the held-out log loss surely falls, by two standard errors."""
    weights = np.asarray(rows.weights)
    whole, near, before = Newton(rows), None, np.full(rows.samples, np.inf)
    groups = [_Fold(whole, folds, fold) for fold in np.unique(folds)]
    chosen = RIDGES[0]
    for ridge in RIDGES:
        whole.ridge = ridge
        near = _train(whole, near)
        loss = np.empty(rows.samples)
        for each in groups:
            each.begin(whole, near)
            loss[each.outside] = -np.log(np.maximum(each.own_chances(), 1e-12))
        if np.isfinite(before).all():
            mean, error = _weigh(before - loss, weights)
            if mean <= 2 * error:
                break
        before, chosen = loss, ridge
    return chosen


@one_thread("blas")
def choose_cleaning(
    rows: LinearRows, believed: LinearRows, folds: Codes, inner: Codes, ridge: float
) -> Cleaning | None:
    """Leave out the least believable labels as long as that predicts given labels better, by a standard error.

    The rows that tell what is better must not have had a say in which of the other rows are left out: such a say
    alone makes leaving out look better by up to two points on a few hundred rows. So what is left out in training for
    a fold is found without it, by other folds inside.

    Parameters
    ----------
    rows, believed : LinearRows
        The rows as they are labelled, and as they are trained on.
    folds, inner : integer arrays of shape (n,)
        Two deals of the rows.
    ridge : float

    Returns
    -------
    Cleaning or None
        None where nobody is left out.
    """
    weights, labels = np.asarray(rows.weights), np.asarray(rows.labels)
    whole = Newton(believed, ridge)
    near = _train(whole)
    outer = [_Fold(whole, folds, fold, near) for fold in np.unique(folds)]
    chances = []
    for each in outer:
        given = Newton(rows.take(each.inside), ridge, whole)
        chances.append(_own_chances(given, inner[each.inside], given.adapt(whole, near)))
    before = np.zeros(rows.samples)
    for each in outer:
        before[each.outside] = each.train_with().argmax(axis=1) == labels[each.outside]
    best, chosen, masks = 0.0, 0.0, []
    for share in SHARES:
        right, found = np.zeros(rows.samples), []
        for each, own in zip(outer, chances, strict=True):
            kept = own >= _cut(own, weights[each.inside], share)
            right[each.outside] = each.train_with(kept).argmax(axis=1) == labels[each.outside]
            found.append(kept)
        mean, error = _weigh(right - before, weights)
        if mean <= best:
            break
        best = mean
        if mean > error:
            chosen, masks = share, found
    if not chosen:
        return None
    own = _own_chances(Newton(rows, ridge, whole), inner, near)
    by_fold = []
    for each, kept in zip(outer, masks, strict=True):
        by_fold.append(np.ones(rows.samples, bool))
        by_fold[-1][each.inside] = kept
    return Cleaning(chosen, own >= _cut(own, weights, chosen), by_fold)


def keep_believable(rows: LinearRows, share: float, ridge: float) -> Mask:
    """Say which of many rows to train on, by a model of all of them."""
    own = rows.own_chances(_train(Newton(rows, ridge)).parameters)
    return own >= _cut(own, rows.host_weights, share)


def _weigh(values: Floats, weights: Floats) -> tuple[float, float]:
    """Return the mean of values, and its standard error."""
    mean = float(weights @ values) / weights.sum()
    return mean, float(np.sqrt(weights @ (values - mean) ** 2)) / weights.sum()


def _train(newton: Newton, near: Step | None = None) -> Step:
    """Train on all rows."""
    start = None if near is None else near.parameters
    return newton.minimise(np.ones(newton.masses.shape), start=start, precision=PRECISION)


def _own_chances(newton: Newton, folds: Codes, near: Step) -> Floats:
    """Return the held-out chance of each row's label, by models that start near one of all rows."""
    own, ones = np.empty(len(folds)), np.ones(newton.masses.shape)
    near = newton.minimise(ones, None, near.parameters, near.curvature, STEPS, PRECISION)
    for fold in np.unique(folds):
        each = _Fold(newton, folds, fold, near)
        own[each.outside] = each.own_chances()
    return own


def _cut(own: Floats, weights: Floats, share: float) -> float:
    """Return the chance below which so many labels lie; at most a half."""
    order = np.argsort(own, kind="stable")
    passed = np.cumsum(weights[order]) / weights.sum()
    place = min(int(np.searchsorted(passed, share)), len(own) - 1)
    return min(float(own[order[place]]), 0.5)
