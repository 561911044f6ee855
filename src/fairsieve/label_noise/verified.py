"""Learn how likely each class is the true one from labels that somebody checked.

The chance of a true class c, given the plain model's out-of-fold logits s, the given label y, the group z and the
features x, is a logistic regression over the classes:

    u_c = β·log p_c(s) + κ(z)·[y = c] + α_c(z) + x·γ_c

It starts from what holds for labels wrong at random at a rate of .1 (β = 1, κ = log 9) and moves away from it as far
as the checked rows say. The coefficients of each group are pulled towards those of all, so that a group with few
checked rows borrows from the others.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import minimize
from scipy.special import log_softmax, softmax

from fairsieve.errors import FairsieveWarning, InvalidInputError
from fairsieve.inputs import Checked
from fairsieve.samples import Samples, check_weights
from fairsieve.selection.cells import Cells
from fairsieve.selection.missing import missing_in
from fairsieve.validation import shown

__all__ = [
    "Verification",
    "VerifiedRates",
    "check_verification",
    "check_verified",
    "learn_true_class",
    "refuse_known_ratio",
]

Floats = NDArray[np.float64]

PRIOR_ODDS = np.log(9.0)  # of a label to be right
HOLD_LOGIT, HOLD_LABEL, HOLD_CLASS = 2.0, 0.3, 0.5  # ridges of β, κ and α
HOLD_GROUP = 2.0  # of what a group differs by
HOLD_FEATURE = 10.0
MOST_FEATURES = 20
MOST_CHECKED = 20_000  # rows that are learnt from
MOST_COUNTED = 4_000  # rows that intervals are computed from
DRAWS = 60
WIDENED = 2.0  # variance; without it 25 of 30 intervals held the truth, since the form of the model is off
FEW = 10


@dataclass(frozen=True, eq=False)
class VerifiedRates:
    """What checked labels say about the flip rates.

    Attributes
    ----------
    checked : array of shape (classes, groups)
        Checked rows by given label and group.
    flip_rates : array of shape (classes, groups)
        Chance of a label of that true class and group to be wrong.
    low, high : arrays of shape (classes, groups)
        95 % intervals of the same.
    """

    checked: NDArray[np.int64]
    flip_rates: Floats
    low: Floats
    high: Floats

    def narrowing(self, more: int = 10) -> Floats:
        """Estimate by how much the intervals would narrow if ``more`` rows of each group were checked.

        >>> rates = VerifiedRates(np.full((2, 1), 15), np.zeros((2, 1)), np.zeros((2, 1)), np.full((2, 1), 0.2))
        >>> rates.narrowing(10).round(3).tolist()
        [[0.026], [0.026]]
        """
        now = self.checked.sum(axis=0) + 1.0
        return np.asarray((self.high - self.low) * (1 - np.sqrt(now / (now + more))))


class Verification(NamedTuple):
    """Checked labels of the samples: their codes, −1 where nobody checked, and their weights."""

    codes: NDArray[np.int64]
    weight: NDArray[np.float64] | None

    @property
    def enough(self) -> bool:
        """Whether there are enough to learn from."""
        return int((self.codes >= 0).sum()) >= FEW

    def correct(self, data: Samples) -> NDArray[Any]:
        """Return the labels with the checked ones set right."""
        classes = np.asarray(data.cells.classes, dtype=data.labels.dtype)
        return np.where(self.codes >= 0, classes[self.codes], data.labels)


def refuse_known_ratio(name: str, value: Any) -> None:
    """Refuse a parameter that says how labels went wrong beside checked labels, which say it."""
    if value != "auto":
        raise InvalidInputError(
            f"verified_labels say how many labels are right; got {name}={value} too: pass {name}='auto'"
        )


def check_verification(
    checked: Checked, verified_labels: Any, verified_weight: ArrayLike | None = None
) -> Verification | None:
    """Check what users pass as ``verified_labels`` and ``verified_weight``; None where there are none."""
    if verified_labels is None:
        if verified_weight is not None:
            raise InvalidInputError("verified_weight belongs to verified_labels, which is None: pass both")
        return None
    data = checked.data
    codes = check_verified(verified_labels, data.cells, checked.rows, checked.given)
    _warn_of_verified(codes, data.features, data.cells)
    if verified_weight is None:
        return Verification(codes, None)
    weight = np.asarray(verified_weight, np.float64)
    if weight.shape != (checked.given,):
        raise InvalidInputError(
            f"verified_weight must have one number per sample, the shape ({checked.given},); got {weight.shape}"
        )
    known = codes >= 0
    weight = np.where(known, weight[checked.rows], 1.0)
    if not (np.isfinite(weight[known]) & (weight[known] > 0)).all():
        raise InvalidInputError("verified_weight must be finite and above 0 where somebody checked")
    return Verification(codes, weight)


def check_verified(
    verified_labels: Any, cells: Cells, rows: NDArray[np.int64], given: int
) -> NDArray[np.int64]:
    """Return the code of each sample's checked class, −1 where nobody checked.

    Parameters
    ----------
    verified_labels : array
        One value per sample given; None, NaN, NA or masked where nobody checked.
    cells : Cells
        Of the samples that have a weight.
    rows : integer array
        Where those stand in what was given.
    given : int
        How many samples were given.
    """
    if isinstance(verified_labels, np.ma.MaskedArray):
        masked = np.ma.getmaskarray(verified_labels)
        values = np.asarray(verified_labels.data).astype(object)
        values[masked] = None
    else:
        values = np.asarray(verified_labels, dtype=object)
    if values.shape != (given,):
        raise InvalidInputError(
            f"verified_labels must have one value per sample, the shape ({given},); got {values.shape}: use None or "
            "NaN where nobody checked"
        )
    unknown = missing_in(values)
    if unknown.all():
        raise InvalidInputError(
            f"verified_labels must have a value where somebody checked; all {given} are missing: leave it out"
        )
    places = {value: code for code, value in enumerate(cells.classes)}
    codes = np.full(given, -1, np.int64)
    for row in np.flatnonzero(~unknown):
        code = places.get(_plain(values[row]))
        if code is None:
            raise InvalidInputError(
                f"verified_labels must be among the classes of y, {shown(cells.classes)}; got {shown(values[row])} in "
                f"row {int(row)}"
            )
        codes[row] = code
    return codes[rows]


def _warn_of_verified(codes: NDArray[np.int64], features: Any, cells: Cells) -> None:
    """Warn of too few checked rows, groups without any, and equal rows that were checked differently."""
    checked = np.flatnonzero(codes >= 0)
    if len(checked) < FEW:
        warnings.warn(
            f"verified_labels has {len(checked)} checked {'row' if len(checked) == 1 else 'rows'}, which is too few to "
            f"learn from: those labels are corrected, and nothing else follows; check {FEW} or more",
            FairsieveWarning,
            stacklevel=4,
        )
    counts = np.bincount(cells.group_codes[checked], minlength=cells.shape[1])
    for group in np.flatnonzero((counts == 0) & (cells.counts.sum(axis=0) > 0)):
        warnings.warn(
            f"verified_labels has no checked row of the group {shown(cells.groups[group])}: its rates are taken from "
            "the other groups",
            FairsieveWarning,
            stacklevel=4,
        )
    table = np.asarray(features[checked].toarray() if hasattr(features, "toarray") else features[checked])
    table = np.column_stack([table.reshape(len(checked), -1), cells.group_codes[checked]])
    _, kinds = np.unique(table, axis=0, return_inverse=True)
    kinds = kinds.reshape(-1)
    pairs = np.unique(np.column_stack([kinds, codes[checked]]), axis=0)
    contradicted = np.bincount(pairs[:, 0], minlength=kinds.max() + 1) > 1
    rows = int(contradicted[kinds].sum())
    if rows and 2 * (kinds.max() + 1) > len(checked):  # in a table of few different rows that is no surprise
        warnings.warn(
            f"verified_labels contradict each other: {rows} of {len(checked)} checked rows equal another one that was "
            "checked to be of another class. Both are used; look at them again",
            FairsieveWarning,
            stacklevel=4,
        )


def learn_true_class(
    scores: Floats,
    features: Floats,
    cells: Cells,
    codes: NDArray[np.int64],
    *,
    verified_weight: ArrayLike | None = None,
    seed: int = 0,
) -> tuple[Floats, VerifiedRates, tuple[float, float]]:
    """Learn the chance of each true class of every sample.

    Parameters
    ----------
    scores : array of shape (n, classes − 1)
        Logits of a plain model of the given labels, out of fold.
    features : array of shape (n, columns)
        What else may say which labels are wrong; standardised here.
    codes : integer array
        The checked class of each sample, −1 where nobody checked.
    verified_weight : n numbers, optional
        For rows that were not checked at random: the inverse of the chance to be checked.

    Returns
    -------
    true_class : array of shape (n, classes)
    rates : VerifiedRates
    interval : (float, float)
        Share of right labels, 95 %.
    """
    design = _Terms(scores, features, cells)
    weights = np.ones(len(cells)) if verified_weight is None else check_weights(verified_weight, len(cells))
    rng = np.random.default_rng(seed)
    checked = np.flatnonzero((codes >= 0) & (weights > 0))
    rows = np.sort(rng.permutation(checked)[:MOST_CHECKED])
    own = weights[rows] / weights[rows].mean()
    found, covariance = design.fit(rows, codes[rows], own)
    true_class = design.chances(np.arange(len(cells)), found)
    true_class[checked] = np.eye(cells.shape[0])[codes[checked]]
    counted = np.sort(rng.permutation(len(cells))[:MOST_COUNTED])
    draws = rng.multivariate_normal(found, WIDENED * covariance, size=DRAWS, method="svd")
    rates, shares = [], []
    for values in draws:
        chances = design.chances(counted, values)
        known = codes[counted] >= 0
        chances[known] = np.eye(cells.shape[0])[codes[counted][known]]
        rates.append(
            _flip_rates(chances, cells.label_codes[counted], cells.group_codes[counted], cells.shape)
        )
        shares.append(chances[np.arange(len(counted)), cells.label_codes[counted]].mean())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # cells without samples
        low, high = np.nanpercentile(rates, [2.5, 97.5], axis=0)
    flip_rates = _flip_rates(true_class, cells.label_codes, cells.group_codes, cells.shape)
    by_cell = np.bincount(cells.codes[checked], minlength=cells.counts.size).reshape(cells.shape)
    interval = (float(np.percentile(shares, 2.5)), float(np.percentile(shares, 97.5)))
    return true_class, VerifiedRates(by_cell, np.nan_to_num(flip_rates), low, high), interval


class _Terms:
    """The terms of u_c: a tensor (rows, classes, parameters) that the parameters multiply."""

    def __init__(self, scores: Floats, features: Floats, cells: Cells) -> None:
        self.logs = log_softmax(np.column_stack([np.zeros(len(scores)), scores]), axis=1)
        self.cells, classes, groups = cells, *cells.shape
        spread = features.std(axis=0)
        kept = np.flatnonzero(spread > 1e-12)[:MOST_FEATURES]
        self.features = (features[:, kept] - features[:, kept].mean(axis=0)) / spread[kept]
        others = classes - 1
        self.sizes = (1, 1 + groups, others * (1 + groups), others * len(kept))
        self.mean = np.zeros(sum(self.sizes))
        self.mean[:2] = 1.0, PRIOR_ODDS
        self.ridge = np.concatenate(
            [
                [HOLD_LOGIT, HOLD_LABEL],
                np.full(groups, HOLD_GROUP),
                np.tile([HOLD_CLASS] + [HOLD_GROUP] * groups, others),
                np.full(others * len(kept), HOLD_FEATURE),
            ]
        )

    def tensor(self, rows: NDArray[np.int64]) -> Floats:
        """Return the terms of some rows."""
        classes, groups = self.cells.shape
        labels, group = self.cells.label_codes[rows], self.cells.group_codes[rows]
        found = np.zeros((len(rows), classes, sum(self.sizes)))
        found[:, :, 0] = self.logs[rows]
        every = np.arange(len(rows))
        found[every, labels, 1] = 1.0
        found[every, labels, 2 + group] = 1.0
        first = 2 + groups
        for c in range(1, classes):
            place = first + (c - 1) * (1 + groups)
            found[:, c, place] = 1.0
            found[every, c, place + 1 + group] = 1.0
        first += (classes - 1) * (1 + groups)
        width = self.features.shape[1]
        for c in range(1, classes):
            found[:, c, first + (c - 1) * width : first + c * width] = self.features[rows]
        return found

    def fit(
        self, rows: NDArray[np.int64], codes: NDArray[np.int64], weights: Floats
    ) -> tuple[Floats, Floats]:
        """Fit the parameters to checked rows; return them and their covariance."""
        terms, every = self.tensor(rows), np.arange(len(rows))

        def negative(values: Floats) -> tuple[float, Floats]:
            logs = log_softmax(terms @ values, axis=1)
            away = values - self.mean
            value = -weights @ logs[every, codes] + 0.5 * self.ridge @ away**2
            pull = np.exp(logs)
            pull[every, codes] -= 1.0
            return float(value), np.einsum("nc,ncp->p", pull * weights[:, None], terms) + self.ridge * away

        found = minimize(negative, self.mean, jac=True, method="L-BFGS-B", options={"maxiter": 200}).x
        chances = softmax(terms @ found, axis=1)
        centred = terms - np.einsum("nc,ncp->np", chances, terms)[:, None]
        curvature = np.einsum("ncp,ncq,nc->pq", centred, centred, chances * weights[:, None], optimize=True)
        return found, np.linalg.inv(curvature + np.diag(self.ridge))

    def chances(self, rows: NDArray[np.int64], values: Floats) -> Floats:
        """Compute the probabilities of the true classes of some rows."""
        parts = [rows[first : first + 20_000] for first in range(0, len(rows), 20_000)]
        return np.concatenate([softmax(self.tensor(part) @ values, axis=1) for part in parts])


def _flip_rates(
    true_class: Floats, labels: NDArray[np.int64], groups: NDArray[np.int64], shape: tuple[int, int]
) -> Floats:
    """Compute the chance of a label of each true class and group to be wrong, (classes, groups)."""
    there, gone = np.zeros(shape), np.zeros(shape)
    for c in range(shape[0]):
        chance = true_class[:, c]
        there[c] = np.bincount(groups, weights=chance, minlength=shape[1])
        gone[c] = np.bincount(groups, weights=chance * (labels != c), minlength=shape[1])
    return np.asarray(np.divide(gone, there, out=np.full(shape, np.nan), where=there > 0))


def _plain(value: Any) -> Any:
    """Return a NumPy scalar as the Python value that it stands for."""
    return value.item() if isinstance(value, np.generic) else value
