"""Selection + ratios → batches of indices, or weights (Eq. 3)."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fairsieve.selection.shuffle import shuffled


class Draw(NamedTuple):
    """What an epoch's batches are drawn by."""

    shares: NDArray[np.int64]  # samples of each cell in a batch
    batches: int
    seed: int
    epoch: int
    by_cell: bool = True  # False: all samples are drawn as one cell


def batch_count(selected: int, batch_size: int) -> int:
    """Count the batches of an epoch: as many whole ones as the selection fills, at least one if any is selected."""
    return max(1, selected // batch_size) if selected > 0 else 0


def batch_shares(
    ratios: NDArray[np.float64], counts: NDArray[np.int64], batch_size: int
) -> NDArray[np.int64]:
    """Return how many samples of each cell a batch has; they sum to ``batch_size`` exactly.

    A cell's quota is ``ratio · batch_size · |S_y| / |S|`` (the weights of Eq. 3). Quotas are rounded
    by largest remainder. A cell with nothing selected leaves its ratio to the others of its class.
    """
    classes, groups = ratios.shape
    total = counts.sum()
    quotas = np.zeros(counts.size)
    for label in range(classes):
        of_class, present = 0, 0.0
        for group in range(groups):
            cell = label * groups + group
            of_class += counts[cell]
            present += ratios[label, group] if counts[cell] > 0 else 0.0
        for group in range(groups):
            cell = label * groups + group
            if counts[cell] > 0:
                share = ratios[label, group] / present if present > 0 else counts[cell] / of_class
                quotas[cell] = share * batch_size * of_class / total
    shares = np.floor(quotas + 1e-9).astype(np.int64)
    remainders = quotas - shares
    for _ in range(batch_size - shares.sum()):
        cell = remainders.argmax()
        shares[cell] += 1
        remainders[cell] = -1.0
    return shares


def draw_batches(
    selected: NDArray[np.int64], codes: NDArray[Any], counts: NDArray[np.int64], draw: Draw
) -> NDArray[np.int64]:
    """Draw batches of indices, (batches, Σ shares), from the selected samples; ``counts`` are those of their cells.

    Each cell is gone through in a shuffled order, without replacement; when it is exhausted it is
    shuffled again and gone through once more.
    """
    members, sizes = selected, counts.sum(keepdims=True)
    if draw.by_cell:
        members, sizes = selected[np.argsort(codes[selected], kind="stable")], counts
    drawn = np.empty((draw.batches, int(draw.shares.sum())), np.int64)
    column, start = 0, 0
    for cell, (size, share) in enumerate(zip(sizes.tolist(), draw.shares.tolist(), strict=True)):
        if share:
            places = shuffled(size, draw.seed, draw.epoch, cell, 0, draw.batches * share)
            drawn[:, column : column + share] = members[start : start + size][places].reshape(-1, share)
        column += share
        start += size
    return drawn


def sample_weights(
    selected: NDArray[np.int64], codes: NDArray[Any], ratios: NDArray[np.float64], counts: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Return the weights of Eq. 3 for the selected samples, ``ratio · |S_y| / |S_cell|``.

    For models that take weights in place of batches.

    >>> ratios, counts = np.array([[0.5, 0.5]]), np.array([[1, 3]])
    >>> sample_weights(np.arange(4), np.array([0, 1, 1, 1]), ratios, counts).round(3).tolist()
    [2.0, 0.667, 0.667, 0.667]
    """
    table = counts.reshape(ratios.shape)
    present = np.where(table > 0, ratios, 0.0)
    shares = present / np.maximum(present.sum(axis=1, keepdims=True), 1e-300)
    weights = shares * table.sum(axis=1, keepdims=True) / np.maximum(table, 1)
    return np.asarray(weights.reshape(-1)[codes[selected]])
