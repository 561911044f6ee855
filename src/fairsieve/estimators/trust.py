"""How far labels can be trusted, by a classifier's own out-of-fold probabilities.

Labels wrong at random turn true classes into observed ones by a table of each group, T(z), whose row i
holds the chances of each label for a sample of true class i. Whatever is counted over observed labels
then follows for the true ones from the inverse of that table, with no model in between; and a label
is right with the chance p_y T_yy / q_y, where q are the probabilities of the labels, which a classifier
learns, and p those of the classes, q = Tᵀp.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fairsieve.core.cells import Cells

__all__ = ["chance_right", "refined_rates", "transitions", "true_sums"]

Floats = NDArray[np.float64]

SUREST = (0.02, 0.05, 0.1, 0.2, 0.4)  # shares of a group, those first that a class is surest for
LEAST = 0.05  # of a cell's labels are right, whatever the tables say


def transitions(flip_rates: Floats) -> Floats:
    """T, (groups, true classes, labels), from the flip rates, (classes, groups); to any other class alike.

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
    """Sums by true class and group, (classes, groups, …), from those by observed label.

    >>> true_sums(np.array([[11.0], [9.0]]), transitions(np.array([[0.1], [0.2]]))).round(9).tolist()
    [[10.0], [10.0]]
    """
    inverse = np.linalg.inv(table)  # observed = Tᵀ · true
    return np.asarray(np.maximum(np.einsum("zji,jz...->iz...", inverse, observed), 0.0))


def chance_right(probabilities: Floats, cells: Cells, table: Floats) -> tuple[Floats, Floats]:
    """How likely each label is right, and a weight under which labels are as if none were flipped.

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


def refined_rates(flip_rates: Floats, probabilities: Floats, cells: Cells) -> Floats:
    """Flip rates closer to the truth than an estimate's, by the samples that a classifier is surest of.

    No part of a group has fewer labels other than i than class i is flipped there, so the surest
    samples bound the rate from above. Where that bound is near the estimate it replaces it, having
    more data behind it. Groups then share one rate for a class, unless they clearly differ (by the
    Bayesian information criterion): what fairness compares hangs on the differences.
    """
    bounds, errors = surest_rates(probabilities, cells)
    near = bounds <= 1.5 * flip_rates + 0.01
    rates = np.where(near, bounds, flip_rates)
    for label in range(len(rates)):
        alike = near[label]
        if alike.sum() > 1:
            precision = errors[label, alike] ** -2.0
            mean = np.average(rates[label, alike], weights=precision)
            spread = precision @ (rates[label, alike] - mean) ** 2
            if spread < (alike.sum() - 1) * np.log(len(cells)):
                rates[label, alike] = mean
    return rates


def surest_rates(probabilities: Floats, cells: Cells) -> tuple[Floats, Floats]:
    """Shares of other labels where a class is surest, (classes, groups), and their standard errors.

    Of several sizes of such a part the lowest share counts, a standard error added, since the lowest
    of several is too low by chance.
    """
    labels, groups = cells.label_codes, cells.group_codes
    rates, errors = np.ones(cells.shape), np.ones(cells.shape)
    for group in range(cells.shape[1]):
        members = np.flatnonzero(groups == group)
        sizes = np.unique(np.ceil(np.array(SUREST) * len(members)).astype(np.int64))
        for label in range(cells.shape[0]) if len(members) else ():
            order = members[np.argsort(-probabilities[members, label], kind="stable")]
            shares = np.cumsum(labels[order] != label)[sizes - 1] / sizes
            spread = np.sqrt((shares * (1 - shares) + 1 / sizes) / sizes)
            lowest = int(np.argmin(shares + spread))
            rates[label, group], errors[label, group] = shares[lowest] + spread[lowest], spread[lowest]
    return rates, errors
