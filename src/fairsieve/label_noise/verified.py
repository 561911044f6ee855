"""Labels to show to a person, and what users pass as labels that somebody checked."""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Sequence
from copy import copy
from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy.special import log_softmax, softmax

from fairsieve.errors import FairsieveWarning, InvalidInputError
from fairsieve.label_noise.flip_model import climb
from fairsieve.metrics import Bounds, wilson
from fairsieve.samples import Checked, Samples, dense
from fairsieve.selection.cells import (
    Cells,
    Codes,
    Flags,
    Floats,
    Integers,
    Values,
    divide,
    missing_in,
    unmasked,
)
from fairsieve.training.newton import log_probabilities
from fairsieve.validation import shown

if TYPE_CHECKING:
    from fairsieve.label_noise.estimate import CleanRatioEstimate

FEW = 10
DOUBTED = 0.25  # share of the rows to check next that goes to labels in doubt


class VerifiedRates(NamedTuple):
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

    checked: Integers
    flip_rates: Floats
    low: Floats
    high: Floats

    def narrowing(self, more: int) -> Floats:
        """Estimate by how much the intervals would narrow if ``more`` rows of each group were checked.

        >>> rates = VerifiedRates(np.full((2, 1), 15), np.zeros((2, 1)), np.zeros((2, 1)), np.full((2, 1), 0.2))
        >>> rates.narrowing(10).round(3).tolist()
        [[0.026], [0.026]]
        """
        now = self.checked.sum(axis=0) + 1.0
        return np.asarray((self.high - self.low) * (1 - np.sqrt(now / (now + more))))


class Verification(NamedTuple):
    """Checked labels of the samples: their codes, −1 where nobody checked, and their weights."""

    codes: Integers
    weight: Floats | None

    @property
    def enough(self) -> bool:
        """Whether there are enough to learn from."""
        return int((self.codes >= 0).sum()) >= FEW

    def correct(self, data: Samples) -> Values:
        """Return the labels with the checked ones set right."""
        classes = np.asarray(data.cells.classes, dtype=data.labels.dtype)
        return np.where(self.codes >= 0, classes[self.codes], data.labels)


def check_verification(
    checked: Checked, verified_labels: Any, verified_weight: ArrayLike | None
) -> Verification | None:
    """Check what users pass as ``verified_labels`` and ``verified_weight``; None where there are none."""
    if verified_labels is None:
        if verified_weight is not None:
            raise InvalidInputError("verified_weight belongs to verified_labels, which is None: pass both")
        return None
    data, given = checked.data, checked.given
    codes = _encode(verified_labels, data.cells, given)[checked.rows]
    known = codes >= 0
    if not known.any():
        raise InvalidInputError(
            "verified_labels must be known for a row that has a weight; sample_weight is 0 for all checked rows: give "
            "one of them a weight, or leave verified_labels out"
        )
    _warn_of_verified(codes, data.features, data.cells)
    if verified_weight is None:
        return Verification(codes, None)
    weight = np.asarray(unmasked(verified_weight, numbers=True), np.float64)
    if weight.shape != (given,):
        raise InvalidInputError(
            f"verified_weight must have one number per sample, the shape ({given},); got {weight.shape}"
        )
    weight = np.where(known, weight[checked.rows], 1.0)
    if not (np.isfinite(weight) & (weight > 0)).all():
        raise InvalidInputError("verified_weight must be finite and above 0 where somebody checked")
    return Verification(codes, weight)


def refuse_known_ratio(clean_ratio: Any) -> None:
    """Refuse a share of right labels beside checked labels, which say it."""
    if clean_ratio != "auto":
        raise InvalidInputError(
            f"verified_labels say how many labels are right; got clean_ratio={clean_ratio} too: pass clean_ratio='auto'"
        )


def _encode(verified_labels: Any, cells: Cells, given: int) -> Integers:
    """Return the code of each given row's checked class, −1 where it is None, NaN, NA or masked."""
    if isinstance(verified_labels, np.ma.MaskedArray):
        values = verified_labels.data.astype(object)
        values[np.ma.getmaskarray(verified_labels)] = None
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
        code = places.get(values[row]) if isinstance(values[row], Hashable) else None
        if code is None:
            raise InvalidInputError(
                f"verified_labels must be among the classes of y, {shown(cells.classes)}; got {shown(values[row])} in "
                f"row {int(row)}"
            )
        codes[row] = code
    return codes


class UncheckedGroupWarning(FairsieveWarning):
    """Nobody checked a row of a group; ``group`` tells which."""

    def __init__(self, group: Any) -> None:
        self.group = group
        super().__init__(
            f"verified_labels has no checked row of the group {shown(group)}: its rates are taken from the other groups"
        )


def _warn_of_verified(codes: Integers, features: Any, cells: Cells) -> None:
    """Warn of too few checked rows, groups without any, and equal rows that were checked differently."""
    checked = np.flatnonzero(codes >= 0)
    if len(checked) < FEW:
        warnings.warn(
            f"verified_labels has {len(checked)} checked {'row' if len(checked) == 1 else 'rows'}, which is too few to "
            f"learn from: those labels are corrected, and nothing else follows; check {FEW} or more",
            FairsieveWarning,
            stacklevel=4,
        )
        return  # no rates are learnt from them, of no group
    counts = np.bincount(cells.group_codes[checked], minlength=cells.shape[1])[: cells.named_groups]
    for group in np.flatnonzero(counts == 0):
        warnings.warn(UncheckedGroupWarning(cells.groups[group]), stacklevel=4)
    table = dense(features[checked]).reshape(len(checked), -1)
    table = np.column_stack([table, cells.group_codes[checked]])
    different, kinds = np.unique(table, axis=0, return_inverse=True)
    rows = int((pd.Series(codes[checked]).groupby(kinds.reshape(-1)).transform("nunique") > 1).sum())
    if rows and 2 * len(different) > len(checked):  # in a table of few different rows that is no surprise
        warnings.warn(
            f"verified_labels contradict each other: {rows} of {len(checked)} checked rows equal another one that was "
            "checked to be of another class. Both are used; look at them again",
            FairsieveWarning,
            stacklevel=4,
        )


def gain_on_checked(
    estimate: CleanRatioEstimate, first: Integers, second: Integers, weights: Floats
) -> Bounds:
    """Estimate how much more often the first of two models predicts the true class, and the standard error of that.

    All rows count by their chances, and how far these are off is seen on the checked rows, for chances that were not
    learnt from the row itself. One more check, which says the opposite, is imagined: a few may agree by chance.
    """
    codes, unseen = estimate.verified_codes, estimate.unseen
    if codes is None or unseen is None:
        raise ValueError("nothing was learnt from checked labels")
    every, rows = np.arange(len(codes)), np.flatnonzero(codes >= 0)
    expected = unseen[every, first] - unseen[every, second]
    checks = np.ones(len(rows)) if estimate.verified_weight is None else estimate.verified_weight[rows]
    seen = (first == codes)[rows].astype(float) - (second == codes)[rows]
    off, size = seen - expected[rows], checks.sum() ** 2 / (checks**2).sum()
    mean = float(np.average(off, weights=checks))
    variance = float(np.average((off - mean) ** 2, weights=checks)) + 1 / size
    return float(np.average(expected, weights=weights)) + mean, float(np.sqrt(variance / size))


# ---- Which labels to check


def suspects_of(
    decision: Floats,
    data: Samples,
    believed: Integers,
    rows: Integers,
    *,
    wrong: Floats | None = None,
    share: float = 1.0,
) -> pd.DataFrame:
    """List the samples that are not believed, the likeliest wrong label first.

    Without ``wrong`` only those to which the model would give another label: a selection leaves out others too, so
    that no group falls behind.

    Parameters
    ----------
    decision : array
        Logits of all samples of ``data``, as ``decision_function`` gives them.
    believed : integer array
        The samples whose labels are not in doubt.
    rows : integer array
        What to call the samples.
    wrong : array, optional
        How likely each label is wrong, which ranks them; the losses rank them when None.
    share : float
        The largest share of all samples to list.

    Examples
    --------
    >>> data = Samples(np.zeros((3, 1)), ["no", "no", "yes"], ["a", "b", "b"])
    >>> found = suspects_of(np.array([3.0, 1.0, 2.0]), data, np.array([2]), np.arange(3))
    >>> found[["row", "label", "suggested"]].to_numpy().tolist()
    [[0, 'no', 'yes'], [1, 'no', 'yes']]
    """
    in_doubt = np.ones(len(data), bool)
    in_doubt[believed] = False
    left = np.flatnonzero(in_doubt)
    logs, labels = log_probabilities(decision[left]), data.cells.label_codes[left]
    losses = -logs[np.arange(len(left)), labels]
    order = np.lexsort((-losses, np.zeros(len(left)) if wrong is None else -wrong[left]))
    if wrong is None:
        order = order[(logs.argmax(axis=1) != labels)[order]][: round(share * len(data))]
    left, losses, chances = left[order], losses[order], np.exp(logs[order])
    groups = np.empty(len(data.cells.groups), dtype=object)
    groups[:] = data.cells.groups  # element by element: crossed groups are tuples
    return pd.DataFrame(
        {
            "row": rows[left],
            "label": data.labels[left],
            "suggested": np.asarray(data.cells.classes, data.labels.dtype)[chances.argmax(axis=1)],
            "loss": losses,
            "probability": chances.max(axis=1),
            "group": groups[data.cells.group_codes[left]],
        }
    )


def choose_rows(
    n: int, open_: Flags, wrong: Floats, cells: Cells, rng: np.random.Generator
) -> tuple[Integers, Floats]:
    """Choose ``n`` of the rows that are open, each at a known chance; return the inverse of their chances, with mean 1.

    (Choosing half of the rows by how much their check would tell about the others trained no better models.)
    """
    share = open_ / open_.sum()
    doubt = open_ * wrong * (1 - wrong)
    if doubt.sum() > 0:
        share = (1 - DOUBTED) * share + DOUBTED * doubt / doubt.sum()
    chance = _inclusion(share, n)
    order = np.lexsort((rng.random(len(open_)), wrong, cells.codes))
    turns = np.cumsum(chance[order])
    ticks = (np.arange(n) + rng.random()) * turns[-1] / n
    rows = order[np.minimum(np.searchsorted(turns, ticks), len(order) - 1)]
    weights = 1.0 / chance[rows]
    return rows, weights / weights.mean()


def _inclusion(share: Floats, n: int) -> Floats:
    """Return chances to be chosen that follow the shares, none above 1, with the sum ``n``.

    >>> _inclusion(np.array([0.5, 0.25, 0.25, 0.0]), 2).tolist()
    [1.0, 0.5, 0.5, 0.0]
    >>> _inclusion(np.array([0.8, 0.1, 0.1, 0.0]), 2).tolist()
    [1.0, 0.5, 0.5, 0.0]
    """
    chance, sure = n * share, np.zeros(len(share), bool)
    while (chance > 1 + 1e-12).any():
        sure |= chance >= 1
        rest = np.where(sure, 0.0, share)
        chance = np.where(sure, 1.0, rest * (n - sure.sum()) / max(rest.sum(), 1e-300))
    return chance


# ---- Learn the chance of each true class from labels that somebody checked, and count by true class
#
# The chance of a true class c, given the plain model's out-of-fold logits s, the given label y, the group z
# and the features x, is a logistic regression over the classes:
#
# u_c = θ·log q_c + β·log p_c(s) + [y = c]·(κ(z) + ρ·log p_c(s) + x·δ_c) + α_c(z) + x·γ_c
#
# so that trust in a label depends on the group, on how likely the plain model finds it, and on the features.
# It starts from chances q that were thought of before anybody checked (θ = 1, the others 0), and moves away
# from them as far as the checked rows say. There are several such starts: what holds for labels wrong at
# random at a rate of .1; labels that are right nineteen times in twenty, whatever the model thinks; and what
# the labels alone tell, where they do. The one under which the checked labels are likeliest is taken. The
# coefficients of each group are pulled towards those of all, so that a group with few checked rows borrows
# from the others. How firmly, and how firmly the features are held at 0, is again what makes the checked
# labels likeliest. Columns of two values count as 0 and 1 there, the others are standardised: a rare value
# must not weigh more for being rare.
#
# The counts do not depend on that model being right: on the checked rows it is seen how far the chances are
# off, for rows that they were not learnt from, and that difference is added, group by group (a difference
# estimator).

Checks = tuple[Floats, Floats]  # weights of the checked rows, and of imagined checks (groups, classes)

ODDS_AT_RANDOM, ODDS_BELIEVED = np.log(9.0), np.log(19.0)  # of a label to be right
# Ridges of θ, β, ρ, κ and α.
HOLD_START, HOLD_LOGIT, HOLD_SURE, HOLD_LABEL, HOLD_CLASS = 4.0, 1.0, 2.0, 0.3, 0.5
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
    alone: Floats | None,
) -> tuple[Floats, Floats, VerifiedRates, Bounds, TrueClassModel]:
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
    wrong = 1 - divide(stays, there, np.nan)
    low, high = bound_draws(wrong)
    seen_wrong = np.zeros(cells.shape, bool)
    mistaken = checked[codes[checked] != labels[checked]]
    seen_wrong[codes[mistaken], groups[mistaken]] = True
    low = np.where(seen_wrong, low, 0.0)  # where no check found a wrong label there may be none
    by_cell = np.bincount(cells.codes[checked], minlength=cells.counts.size).reshape(cells.shape)
    rates = VerifiedRates(by_cell, flip_rates_of(true_class, cells, sample_weight), low, high)
    model.take(scores[:0], features[:0], Cells(np.zeros(0, np.int64), cells.classes, cells.groups))
    return true_class, unseen, rates, _share_of_right(labels == codes, sums), model


def _share_of_right(right: Flags, sums: CheckedSums) -> Bounds:
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
    return 1 - divide(stays, there, 1.0)


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
        scale = divide(totals, seen)
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
    with warnings.catch_warnings(action="ignore", category=RuntimeWarning):  # cells without samples
        ends = [np.nanpercentile(half, LEVELS, axis=0) for half in np.array_split(drawn, 2)]
    return np.fmin(ends[0][0], ends[1][0]), np.fmax(ends[0][1], ends[1][1])
