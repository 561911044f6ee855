"""Learn the chance of each true class from labels that somebody checked, and count by true class.

The chance of a true class c, given the plain model's out-of-fold logits s, the given label y, the group z and the
features x, is a logistic regression over the classes:

    u_c = θ·log q_c + β·log p_c(s) + [y = c]·(κ(z) + ρ·log p_c(s) + x·δ_c) + α_c(z) + x·γ_c

so that trust in a label depends on the group, on how likely the plain model finds it, and on the features. It starts
from chances q that were thought of before anybody checked (θ = 1, the others 0), and moves away from them as far as
the checked rows say. There are several such starts: what holds for labels wrong at random at a rate of .1; labels that
are right nineteen times in twenty, whatever the model thinks; and what the labels alone tell, where they do. The one
under which the checked labels are likeliest is taken. The coefficients of each group are pulled towards those of all,
so that a group with few checked rows borrows from the others. How firmly, and how firmly the features are held at 0, is
again what makes the checked labels likeliest. Columns of two values count as 0 and 1 there, the others are
standardised: a rare value must not weigh more for being rare.

The counts do not depend on that model being right: on the checked rows it is seen how far the chances are off, for
rows that they were not learnt from, and that difference is added, group by group (a difference estimator).
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from copy import copy
from itertools import product
from typing import Any

import numpy as np
from scipy.special import log_softmax, softmax

from fairsieve.intervals import wilson
from fairsieve.label_noise.flip_model import climb
from fairsieve.label_noise.verified import Verification, VerifiedRates
from fairsieve.selection.cells import Cells, Codes, Flags, Floats

Checks = tuple[Floats, Floats]  # weights of the checked rows, and of imagined checks (groups, classes)

ODDS_AT_RANDOM, ODDS_BELIEVED = np.log(9.0), np.log(19.0)  # of a label to be right
HOLD_START, HOLD_LOGIT, HOLD_SURE, HOLD_LABEL, HOLD_CLASS = (
    4.0,
    1.0,
    2.0,
    0.3,
    0.5,
)  # ridges of θ, β, ρ, κ and α
HOLD_GROUP = (2.0, 20.0)  # of what a group differs by; the likelier one is taken
HOLD_FEATURE = (0.2, 0.6, 2.0, 8.0)  # ridges of γ that are tried
HOLD_BY_LABEL = (8.0, 100.0)  # and of δ
MOST_FEATURES = 60
LEAST_LOG = -8.0  # of a label's chance by the plain model, where ρ takes it
MOST_COMPARED = 1_000  # checked rows that those are chosen by
FOLDS = 5
CLOSE = 1e-6  # the expected gain in log-likelihood at which a fit stops
CHUNK = 4_096
MOST_CHECKED = 20_000  # rows that are learnt from
DRAWS = 400
LEVELS = (2.5, 97.5)
IMAGINED = 2.0  # checks that each group is given in half of the draws: few checks may agree by chance
WIDENED = 30.0  # the variance of few checks in a group is raised, × (1 + WIDENED / checks); see docs/verified-labels.md


def learn_true_class(
    scores: Floats,
    features: Floats,
    cells: Cells,
    verified: Verification,
    sample_weight: Floats,
    seed: int,
    alone: Floats | None = None,
) -> tuple[Floats, Floats, VerifiedRates, tuple[float, float], TrueClassModel]:
    """Learn the chance of each true class of every sample.

    Parameters
    ----------
    scores : array of shape (n, classes − 1)
        Logits of a plain model of the given labels, out of fold.
    features : array of shape (n, columns)
        What else may say which labels are wrong; standardised here.
    alone : array of shape (n, classes), optional
        Chances of the true classes that the labels alone tell.

    Returns
    -------
    true_class : array of shape (n, classes)
        Chance of each true class; certain where somebody checked.
    unseen : array of shape (n, classes)
        The same, by models that did not see the check of the sample.
    rates : VerifiedRates
    interval : (float, float)
        Share of right labels, 95 %.
    model : TrueClassModel
        For other samples: without these.
    """
    model, rng = TrueClassModel(scores, features, cells, alone), np.random.default_rng(seed)
    codes, checked = verified.codes, np.flatnonzero(verified.codes >= 0)
    rows = np.sort(rng.permutation(checked)[:MOST_CHECKED])
    weights = np.ones(len(rows)) if verified.weight is None else verified.weight[rows]
    weights = weights / weights.mean()
    model.fit(rows, codes[rows], weights)
    true_class = model.chances()
    unseen = true_class.copy()
    unseen[rows] = model.held_out(rows, codes[rows], weights)
    true_class[checked] = np.eye(cells.shape[0])[codes[checked]]
    groups, labels = cells.group_codes, cells.label_codes
    sums = CheckedSums(unseen, codes, groups, labels, cells.shape, sample_weight, verified.weight)
    again = [np.tile(sums.uncorrected(), (DRAWS // 2, 1, 1, 1))] * 2
    checks = [sums.draw_checks(rng, DRAWS // 2, imagined=imagined, rows=False) for imagined in (True, False)]
    drawn = np.concatenate([sums.correct(*each) for each in zip(again, checks, strict=True)])
    there, stays = drawn.sum(axis=3), np.einsum("bczc->bcz", drawn)
    wrong = 1 - np.divide(stays, there, out=np.full(there.shape, np.nan), where=there > 0)
    low, high = bound_draws(wrong)
    seen_wrong = np.zeros(cells.shape, bool)
    mistaken = checked[codes[checked] != labels[checked]]
    seen_wrong[codes[mistaken], groups[mistaken]] = True
    low = np.where(seen_wrong, low, 0.0)  # where no check found a wrong label there may be none
    by_cell = np.bincount(cells.codes[checked], minlength=cells.counts.size).reshape(cells.shape)
    rates = VerifiedRates(by_cell, flip_rates_of(true_class, cells, sample_weight), low, high)
    model.take(scores[:0], features[:0], Cells(np.zeros(0, np.int64), cells.classes, cells.groups))
    return true_class, unseen, rates, _share_of_right(labels == codes, sums), model


def _share_of_right(right: Flags, sums: CheckedSums) -> tuple[float, float]:
    """Compute the 95 % interval of the share of right labels: Wilson's for the rows that nobody checked."""
    rows, own, checks = sums.rows, sums.weights, sums.checks
    known = own[rows].sum() / own.sum()
    size = checks.sum() ** 2 / (checks**2).sum()  # that many of equal weight say as much
    ends = wilson(size * float(np.average(right[rows], weights=checks)), size)
    seen = known * float(np.average(right[rows], weights=own[rows]))
    return tuple(float(np.clip(seen + (1 - known) * end, 0.0, 1.0)) for end in ends)  # type: ignore[return-value]


def flip_rates_of(true_class: Floats, cells: Cells, weights: Floats) -> Floats:
    """Compute the chance of a label of each true class and group to be wrong, (classes, groups); 0 where none is."""
    own = true_class * weights[:, None]
    kept = own * np.equal.outer(cells.label_codes, np.arange(cells.shape[0]))
    members = np.equal.outer(np.arange(cells.shape[1]), cells.group_codes).astype(np.float64)
    there, stays = (members @ own).T, (members @ kept).T
    return 1 - np.divide(stays, there, out=np.ones_like(there), where=there > 0)


class TrueClassModel:
    """The model above, for all samples; its parameters are learnt from checked ones, and hold for others too.

    Parameters
    ----------
    scores : array of shape (n, classes − 1)
        Logits of a plain model of the given labels, out of fold.
    features : array of shape (n, columns)
        Scaled here: centred, and columns of two values by the distance between these, the others by their deviation.
    cells : Cells
        Given labels and groups.
    alone : array of shape (n, classes), optional
        Chances of the true classes that the labels alone tell.
    """

    def __init__(self, scores: Floats, features: Floats, cells: Cells, alone: Floats | None = None) -> None:
        self.columns = np.flatnonzero(features.std(axis=0) > 1e-12)[:MOST_FEATURES]
        some = features[:, self.columns]
        low, high = some.min(axis=0), some.max(axis=0)
        two = ((some == low) | (some == high)).all(axis=0)
        self.centre, self.unit = some.mean(axis=0), np.where(two, high - low, some.std(axis=0))
        self.chosen = 0
        self.take(scores, features, cells, alone)
        self.hold_group = HOLD_GROUP[0]
        self.mean = np.zeros(len(self.ridge(0.0, 0.0)))
        self.mean[0] = 1.0

    def take(self, scores: Floats, features: Floats, cells: Cells, alone: Floats | None = None) -> None:
        """Take samples, in place of those that are there."""
        self.logs = log_softmax(np.column_stack([np.zeros(len(scores)), scores]), axis=1)
        self.cells, self.features = cells, (features[:, self.columns] - self.centre) / self.unit
        given = np.eye(cells.shape[0])[cells.label_codes]
        self.starts = [self.logs + given * ODDS_AT_RANDOM, given * ODDS_BELIEVED]
        if alone is not None:
            self.starts.append(np.maximum(np.log(np.maximum(alone, 1e-300)), LEAST_LOG))

    def chances_of(self, *samples: Any) -> Floats:
        """Compute the probabilities of the true classes of other samples, which :meth:`take` describes."""
        model = copy(self)
        model.take(*samples)
        return model.chances()

    def ridge(self, feature: float, by_label: float) -> Floats:
        """Return how firmly each parameter is held to its prior mean."""
        (classes, groups), width = self.cells.shape, self.features.shape[1]
        held = [HOLD_START, HOLD_LOGIT, HOLD_SURE, HOLD_LABEL] + [self.hold_group] * groups
        held += ([HOLD_CLASS] + [self.hold_group] * groups) * (classes - 1)
        return np.array(held + [feature] * (classes - 1) * width + [by_label] * classes * width)

    def tensor(self, rows: Codes) -> Floats:
        """Return the terms of some rows."""
        (classes, groups), features = self.cells.shape, self.features[rows]
        given, every = np.eye(classes)[self.cells.label_codes[rows]], np.eye(classes)
        group = np.column_stack([np.ones(len(rows)), np.eye(groups)[self.cells.group_codes[rows]]])
        terms = [
            self.starts[self.chosen][rows],
            self.logs[rows],
            given * np.maximum(self.logs[rows], LEAST_LOG),
            np.einsum("nc,ng->ncg", given, group),
            np.einsum("cd,ng->ncdg", every[:, 1:], group),
            np.einsum("cd,nx->ncdx", every[:, 1:], features),
            np.einsum("nc,cd,nx->ncdx", given, every, features),
        ]
        return np.concatenate([each.reshape(len(rows), classes, -1) for each in terms], axis=2)

    def fit(self, rows: Codes, codes: Codes, weights: Floats) -> None:
        """Fit the parameters to checked rows.

        How firmly the features are held is what makes the checked labels likeliest (Laplace's approximation).
        """
        few = slice(None, MOST_COMPARED)
        told = {}
        for place, hold in product(range(len(self.starts)), HOLD_GROUP):
            self.chosen, self.hold_group = place, hold
            compared = self.tensor(rows[few]), codes[few], weights[few], self.mean
            ridge = self.ridge(HOLD_FEATURE[-1], HOLD_BY_LABEL[-1])
            told[_maximise(*compared, ridge, self.mean)[1]] = place, hold
        self.chosen, self.hold_group = told[max(told)]
        terms = self.tensor(rows)
        best: tuple[float, Floats, Floats] | None = None
        for feature, by_label in product(HOLD_FEATURE, HOLD_BY_LABEL):
            ridge = self.ridge(feature, by_label)
            start = self.mean if best is None else best[1]
            found, evidence = _maximise(terms[few], codes[few], weights[few], self.mean, ridge, start)
            if best is None or evidence > best[0]:
                best = evidence, found, ridge
        assert best is not None
        self.held = best[2]
        self.found, _ = _maximise(terms, codes, weights, self.mean, self.held, best[1])

    def held_out(self, rows: Codes, codes: Codes, weights: Floats) -> Floats:
        """Predict checked rows by fits that did not see them, held as firmly as the fit to all."""
        terms, folds = self.tensor(rows), np.arange(len(rows)) % FOLDS
        found = np.empty((len(rows), self.cells.shape[0]))
        for fold in range(min(FOLDS, len(rows))):
            seen, left = folds != fold, folds == fold
            values, _ = _maximise(terms[seen], codes[seen], weights[seen], self.mean, self.held, self.found)
            found[left] = softmax(terms[left] @ values, axis=1)
        return found

    def chances(self) -> Floats:
        """Compute the probabilities of the true classes of all samples."""
        rows = np.arange(len(self.cells))
        parts = [rows[first : first + CHUNK] for first in range(0, len(rows), CHUNK)]
        return np.concatenate([softmax(self.tensor(part) @ self.found, axis=1) for part in parts])


def _maximise(
    terms: Floats, codes: Codes, weights: Floats, mean: Floats, ridge: Floats, start: Floats
) -> tuple[Floats, float]:
    """Maximise the penalised likelihood; return the parameters and the log evidence."""
    every = np.arange(len(terms))

    def value_at(values: Floats) -> float:
        logs = log_softmax(terms @ values, axis=1)
        return float(weights @ logs[every, codes] - 0.5 * ridge @ (values - mean) ** 2)

    def derivatives_at(values: Floats) -> tuple[Floats, Floats]:
        chances = softmax(terms @ values, axis=1)
        pull = -chances * weights[:, None]
        pull[every, codes] += weights
        slope = np.einsum("nc,ncp->p", pull, terms) - ridge * (values - mean)
        centred = terms - np.einsum("nc,ncp->np", chances, terms)[:, None]
        flat = (centred * np.sqrt(chances * weights[:, None])[:, :, None]).reshape(-1, terms.shape[2])
        return slope, flat.T @ flat + np.diag(ridge)

    found, value = climb(value_at, derivatives_at, start, CLOSE)
    curvature = derivatives_at(found)[1]
    evidence = value + 0.5 * float(np.log(ridge).sum() - np.linalg.slogdet(curvature)[1])
    return found, evidence


class CheckedSums:
    """Sums by true class, group and another column, such as a prediction.

    Parameters
    ----------
    chances : array of shape (n, classes)
        Of the true classes, by models that did not see the check of the row.
    checked : integer array
        The checked class of each row, −1 where nobody checked.
    groups, column : integer arrays
        Codes; those of the column are classes.
    shape : (int, int)
        Classes and groups.
    weights : array of shape (n,)
    inverse : array of shape (n,), optional
        The inverse of the chance to be checked.
    """

    def __init__(
        self,
        chances: Floats,
        checked: Codes,
        groups: Codes,
        column: Codes,
        shape: tuple[int, int],
        weights: Floats,
        inverse: Floats | None = None,
    ) -> None:
        self.shape, self.chances, self.groups, self.weights = shape, chances, groups, weights
        self.place = groups * shape[0] + column
        self.rows = np.flatnonzero((checked >= 0) & (self.weights > 0))
        self.off = np.eye(shape[0])[checked[self.rows]] - chances[self.rows]
        self.checks = self.weights[self.rows] * (1.0 if inverse is None else inverse[self.rows])

    def table(self) -> Floats:
        """Compute the sums, (classes, groups, classes)."""
        return self._corrected(self.uncorrected(), self.checks, np.zeros(self.shape[::-1]))

    def uncorrected(self) -> Floats:
        """Compute the sums of the chances alone."""
        return self._by_place(self.place, self.weights[:, None] * self.chances)

    def draw_checks(
        self, rng: np.random.Generator, times: int, *, imagined: bool, rows: bool = True
    ) -> list[Checks]:
        """Draw the checks again, by the weights of a Bayesian bootstrap, with some that are imagined or without.

        Where ``rows`` are not drawn again, the sums are those of these rows, and a group without an unchecked row is
        certain.
        """
        classes, groups = self.shape
        typical = self.checks.mean() if len(self.checks) else 1.0
        counts = np.bincount(self.groups[self.rows], minlength=groups)
        all_ = np.maximum(np.bincount(self.groups, self.weights > 0, minlength=groups), 1)
        open_ = np.ones(groups) if rows else 1 - counts / all_
        spread = ((1 + WIDENED / np.maximum(counts, 1)) * open_)[self.groups[self.rows]]
        shapes = 1 / np.maximum(spread, 1e-9)
        found = []
        for _ in range(times):
            few = np.zeros((groups, classes))
            if imagined:
                few = rng.gamma(IMAGINED / classes, size=few.shape) * typical * open_[:, None]
            found.append((self.checks * rng.gamma(shapes) / shapes, few))
        return found

    def correct(self, sums: Floats, checks: Sequence[Checks]) -> Floats:
        """Correct drawn sums of chances, (times, classes, groups, classes), by drawn checks."""
        return np.stack([self._corrected(each, *drawn) for each, drawn in zip(sums, checks, strict=True)])

    def _corrected(self, sums: Floats, checks: Floats, imagined: Floats) -> Floats:
        """Correct sums of chances under weights of the checks, and of imagined checks (groups, classes)."""
        off = self._by_place(self.place[self.rows], checks[:, None] * self.off)
        totals = sums.sum(axis=(0, 2))
        seen = np.bincount(self.groups[self.rows], checks, len(totals)) + imagined.sum(axis=1)
        scale = np.divide(totals, seen, out=np.zeros(len(totals)), where=seen > 0)
        shares = sums / np.maximum(totals[:, None], 1e-300)
        off += imagined.T[:, :, None] * shares.sum(axis=0) - imagined.sum(axis=1)[:, None] * shares
        return np.asarray(np.maximum(sums + scale[:, None] * off, 0.0))

    def _by_place(self, place: Codes, values: Floats) -> Floats:
        """Sum columns of values by group and column."""
        classes, groups = self.shape
        sums = [np.bincount(place, weights=each, minlength=groups * classes) for each in values.T]
        return np.stack(sums).reshape(classes, groups, classes).astype(np.float64)


def bound_draws(drawn: Floats) -> tuple[Floats, Floats]:
    """Return percentiles of draws, the wider of those with imagined checks (the first half) and those without.

    Imagined checks find wrong labels where none were, so without them the upper end of what is right would be too low;
    with none, few checks that agree by chance would leave no doubt.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # cells without samples
        ends = [np.nanpercentile(half, LEVELS, axis=0) for half in np.array_split(drawn, 2)]
    return np.fmin(ends[0][0], ends[1][0]), np.fmax(ends[0][1], ends[1][1])
