"""Count rows by true class, group and prediction, and draw these counts again.

The rows matter by their *kind* alone: label, group and what each model predicts. How many rows of each kind there are
is drawn again many times (a Bayesian bootstrap, the same draws for all models, so that what two models share cancels).
Each draw is then turned from given into true classes. Where the labels can be wrong in several ways that cannot be told
apart, each way is a *world*, with counts of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from fairsieve.label_noise.estimate import CleanRatioEstimate
from fairsieve.label_noise.flip_model import transitions
from fairsieve.label_noise.true_classes import CheckedSums
from fairsieve.selection.cells import Cells, Codes, Floats

DRAWS = 1000
FEWER_DRAWS = 400  # where there are many worlds, or checks to draw again
BINS = 8  # of the chance that the given label is right, where counts go by chances
BATCH = 4096  # clusters drawn together
SURELY_WRONG = (
    0.9,
    0.5,
    0.99,
)  # aimed flips: chances from which a label is taken to be wrong, the usual one first


class Counts(NamedTuple):
    """Counts by true class, group and prediction of one model: (classes, groups, classes), and draws of them."""

    value: Floats
    drawn: Floats


World = list[Counts]  # one for each model


@dataclass(frozen=True, eq=False)
class Judged:
    """What is judged: given labels and groups, and what models predict, as codes.

    Attributes
    ----------
    cells : Cells
    predictions : sequence of integer arrays
    weights : array of shape (n,)
    clusters : integer array of shape (n,), optional
        Rows of one number are drawn again together.
    seed : int
    """

    cells: Cells
    predictions: Sequence[Codes]
    weights: Floats
    clusters: Codes | None = None
    seed: int = 0

    def kinds(self, *, labels: Codes | None = None, more: Sequence[Codes] = ()) -> Kinds:
        """Count the rows of each kind, by other labels or further codes if so wanted."""
        given = self.cells.label_codes if labels is None else labels
        columns = [given, self.cells.group_codes, *self.predictions, *more]
        return Kinds([np.asarray(column, np.int64) for column in columns], self)


class Kinds:
    """How many rows there are of each kind.

    Attributes
    ----------
    codes : integer array of shape (columns, kinds)
        Label, group, and what each model predicts; further codes, if any.
    masses : array of shape (kinds,)
        The weights of the rows of each kind.
    kind : integer array of shape (n,)
        The kind of each row.
    """

    def __init__(self, columns: list[Codes], judged: Judged) -> None:
        self.judged, self.shape = judged, judged.cells.shape
        place = np.zeros(len(judged.weights), np.int64)
        for column in columns:  # renumbered each time, so that many models do not overflow
            place = np.unique(place * (int(column.max(initial=0)) + 1) + column, return_inverse=True)[1]
        _, first, self.kind = np.unique(place, return_index=True, return_inverse=True)
        self.codes = np.stack(columns)[:, first]
        self.masses = np.bincount(self.kind, judged.weights, len(first)).astype(np.float64)

    def draw(self, rng: np.random.Generator, times: int) -> Floats:
        """Draw the masses again, (times, kinds): each row, or cluster of rows, with an exponential weight.

        The weights of many rows are drawn at once: their sum has a gamma distribution.
        """
        weights, clusters, size = self.judged.weights, self.judged.clusters, len(self.masses)
        if clusters is None:
            clusters = np.arange(len(weights))
        pairs, pair = np.unique(clusters * size + self.kind, return_inverse=True)
        shares = np.bincount(pair, weights, len(pairs))
        cluster, kind = np.divmod(pairs, size)
        mixed = np.bincount(cluster)[cluster] > 1  # of several kinds
        sums, squares = (np.bincount(kind, np.where(mixed, 0, shares) ** power, size) for power in (1, 2))
        people = np.divide(sums**2, squares, out=np.ones(size), where=squares > 0)
        drawn = np.asarray(rng.gamma(people, size=(times, size)) * sums / people)
        cluster, kind, shares = np.unique(cluster[mixed], return_inverse=True)[1], kind[mixed], shares[mixed]
        for first in range(0, int(cluster.max(initial=-1)) + 1, BATCH):
            in_batch = (cluster >= first) & (cluster < first + BATCH)
            table = np.zeros((BATCH, size))
            table[cluster[in_batch] - first, kind[in_batch]] = shares[in_batch]
            drawn += rng.exponential(size=(times, BATCH)) @ table
        return drawn

    def tables(self, masses: Floats, model: int, chances: Floats | None = None) -> Floats:
        """Sum masses by class, group and a model's prediction, (…, classes, groups, classes).

        ``chances`` are those of each kind's classes, (kinds, classes); the class is the label when None.
        """
        classes, groups = self.shape
        label, group, codes = self.codes[0], self.codes[1], self.codes[2 + model]
        own_chances = np.eye(classes)[label] if chances is None else chances
        place = np.zeros((len(label), groups, classes))
        place[np.arange(len(label)), group, codes] = 1.0
        spread = np.einsum("kc,kgp->kcgp", own_chances, place).reshape(len(label), -1)
        return np.asarray(masses @ spread).reshape(*masses.shape[:-1], classes, groups, classes)


def count_as_given(judged: Judged, labels: Codes | None = None) -> World:
    """Believe the labels, those given or others."""
    kinds, rng = judged.kinds(labels=labels), np.random.default_rng(judged.seed)
    masses = kinds.draw(rng, DRAWS)
    return [
        Counts(kinds.tables(kinds.masses, model), kinds.tables(masses, model) + imagine(kinds, rng, DRAWS))
        for model in range(len(judged.predictions))
    ]


def imagine(kinds: Kinds, rng: np.random.Generator, times: int) -> Floats:
    """Draw imagined people, one in each cell, shared among the predictions: half a one of each with two classes.

    Without them a rate that nobody speaks against would be certain (Jeffreys's prior).
    """
    classes = kinds.shape[0]
    typical = kinds.masses.sum() / max(np.count_nonzero(kinds.judged.weights), 1)
    return np.asarray(rng.gamma(1 / classes, size=(times, *kinds.shape, classes)) * typical)


def undo_flips(given: World, rates: Floats, drawn_rates: Floats | None = None) -> World:
    """Turn counts by given label into those by true class, for labels wrong at random at rates (classes, groups).

    ``drawn_rates``, (draws, classes, groups), go with the draws of the rows.
    """
    again = rates if drawn_rates is None else drawn_rates
    return [Counts(undo_flips_of(one.value, rates), undo_flips_of(one.drawn, again)) for one in given]


def undo_flips_of(tables: Floats, rates: Floats) -> Floats:
    """Invert the table of flips; a group keeps its size, and no count is below 0."""
    inverse = np.linalg.inv(transitions(rates))  # (…, groups, true, given)
    true = np.maximum(np.einsum("...zji,...jzp->...izp", inverse, tables), 0.0)
    before, after = tables.sum(axis=-3, keepdims=True), true.sum(axis=-3, keepdims=True)
    return np.asarray(true * np.divide(before, after, out=np.ones_like(after), where=after > 0))


def count_by_checks(judged: Judged, estimate: CleanRatioEstimate) -> list[World]:
    """Count by the chances of the true classes, corrected by the rows that somebody checked.

    There are two worlds: in one each group is given imagined checks, since few checks may agree by chance; in the
    other not, since those find wrong labels where none were.
    """
    chances, codes = estimate.unseen, estimate.verified_codes
    if chances is None or codes is None:
        raise ValueError("the estimate was not learnt from checked labels")
    cells, rng = judged.cells, np.random.default_rng(judged.seed)
    right = chances[np.arange(len(cells)), cells.label_codes]
    kinds = judged.kinds(more=[np.minimum((right * BINS).astype(np.int64), BINS - 1)])
    masses, totals = kinds.draw(rng, FEWER_DRAWS), np.maximum(kinds.masses, 1e-300)
    weighted = chances * judged.weights[:, None]
    typical = (
        np.stack([np.bincount(kinds.kind, each, len(totals)) for each in weighted.T], axis=1)
        / totals[:, None]
    )
    sums = [
        CheckedSums(
            chances, codes, cells.group_codes, each, cells.shape, judged.weights, estimate.verified_weight
        )
        for each in judged.predictions
    ]
    worlds: list[World] = []
    for imagined in (True, False):
        checks = sums[0].draw_checks(rng, FEWER_DRAWS, imagined=imagined)
        worlds.append(
            [
                Counts(one.table(), one.correct(kinds.tables(masses, model, typical), checks))
                for model, one in enumerate(sums)
            ]
        )
    return worlds


def count_by_aim(judged: Judged, estimate: CleanRatioEstimate) -> list[World]:
    """Take labels that look wrong on purpose for the other class, as surely as is usual, more and less so."""
    wrong, likeliest = estimate.wrong, estimate.true_class.argmax(axis=1)
    given = judged.cells.label_codes
    return [count_as_given(judged, np.where(wrong > chance, likeliest, given)) for chance in SURELY_WRONG]
