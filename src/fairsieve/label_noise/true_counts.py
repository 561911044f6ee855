"""Count what is true from what is observed, by a classifier's own out-of-fold probabilities.

Labels wrong at random turn true classes into observed ones by a table of each group, T(z), whose row i
holds the chances of each label for a sample of true class i. Whatever is counted over observed labels
then follows for the true ones from the inverse of that table, with no model in between; and a label
is right with the chance p_y T_yy / q_y, where q are the probabilities of the labels, which a classifier
learns, and p those of the classes, q = Tᵀp.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fairsieve.selection.cells import Cells

__all__ = ["chance_right", "scaled_rates", "surest_share", "transitions", "true_sums"]

Floats = NDArray[np.float64]

SUREST = (0.1, 0.2, 0.4)  # parts of the samples, those that a class is surest for
LEAST = 0.05  # of a cell's labels are right, whatever the tables say


def transitions(flip_rates: Floats) -> Floats:
    """Build T, (groups, true classes, labels), from the flip rates, (classes, groups); to any other class alike.

    Rates are bounded so that the table can be inverted.

    >>> transitions(np.array([[0.1], [0.2]])).round(2).tolist()
    [[[0.9, 0.1], [0.2, 0.8]]]
    """
    classes = flip_rates.shape[0]
    others = max(classes - 1, 1)
    rates = np.clip(flip_rates, 0.0, 0.9 * others / (others + 1)).T
    table = np.repeat((rates / others)[:, :, None], classes, axis=2)
    table[:, np.arange(classes), np.arange(classes)] = 1.0 - rates
    return np.asarray(table)


def true_sums(observed: Floats, table: Floats) -> Floats:
    """Compute sums by true class and group, (classes, groups, …), from those by observed label.

    >>> true_sums(np.array([[11.0], [9.0]]), transitions(np.array([[0.1], [0.2]]))).round(9).tolist()
    [[10.0], [10.0]]
    """
    inverse = np.linalg.inv(table)  # observed = Tᵀ · true
    return np.asarray(np.maximum(np.einsum("zji,jz...->iz...", inverse, observed), 0.0))


def chance_right(probabilities: Floats, cells: Cells, table: Floats) -> tuple[Floats, Floats]:
    """Compute how likely each label is right, and a weight under which labels are as if none were flipped.

    Each sample weighs what its label is likely right; where the classes of a group are flipped at
    different rates, and where probabilities are off, cells are scaled to their true counts.

    Parameters
    ----------
    probabilities : array of shape (n, classes)
        Of the labels as observed, by a model that did not see the sample.
    """
    rows, labels, groups = np.arange(len(cells)), cells.label_codes, cells.group_codes
    classes = np.einsum("nji,nj->ni", np.linalg.inv(table)[groups], probabilities)
    classes = np.maximum(classes, 1e-6)
    classes /= classes.sum(axis=1, keepdims=True)
    seen = np.einsum("nij,ni->nj", table[groups], classes)
    right = classes[rows, labels] * table[groups, labels, labels] / seen[rows, labels]
    wanted = np.maximum(true_sums(cells.counts.astype(np.float64), table), LEAST * cells.counts)
    totals = np.bincount(cells.codes, weights=right, minlength=wanted.size)
    scale = np.divide(wanted.reshape(-1), totals, out=np.zeros(wanted.size), where=totals > 0)
    return right, right * scale[cells.codes]


def scaled_rates(flip_rates: Floats, noise: float, cells: Cells) -> Floats:
    """Scale the rates so that the given share of all labels is wrong.

    Where all are 0 they become one rate for everybody. The share may be more than rates can reach.

    >>> cells = Cells.of([0] * 10 + [1] * 10, ["a"] * 20)
    >>> scaled_rates(np.array([[0.1], [0.1]]), 0.2, cells).round(6).tolist()
    [[0.2], [0.2]]
    """
    if not flip_rates.any():
        return np.full_like(flip_rates, noise)

    def wrong(factor: float) -> float:
        table = transitions(factor * flip_rates)
        right = np.diagonal(table, axis1=1, axis2=2).T
        return float(((1.0 - right) * true_sums(cells.counts.astype(np.float64), table)).sum() / len(cells))

    low, high = 0.0, 1.0 / float(flip_rates.max())
    for _ in range(30):
        middle = (low + high) / 2
        low, high = (middle, high) if wrong(middle) < noise else (low, middle)
    return np.asarray(low * flip_rates)


def surest_share(
    alike: NDArray[np.bool_],
    probabilities: Floats,
    labels: NDArray[np.int64],
    groups: NDArray[np.int64],
    weights: Floats | None = None,
) -> tuple[float, float]:
    """Find the lowest share of other labels where a class is surest, and its standard error.

    Looks over the classes and groups where ``alike``, (classes, groups), and over several sizes.
    """
    found = [(1.0, 0.0)]
    weights = np.ones(len(labels)) if weights is None else weights
    for label in np.flatnonzero(alike.any(axis=1)):
        members = np.flatnonzero(alike[label][groups])
        if len(members) > 0:
            order = members[np.argsort(-probabilities[members, label], kind="stable")]
            counts = np.cumsum(weights[order])
            ends = np.searchsorted(counts, np.array(SUREST) * counts[-1] * (1 - 1e-12))
            sizes = counts[ends]
            shares = np.cumsum(weights[order] * (labels[order] != label))[ends] / sizes
            errors = np.sqrt((shares * (1 - shares) + 1 / sizes) / sizes)
            found += zip(shares.tolist(), errors.tolist(), strict=True)
    return min(found, key=sum)
