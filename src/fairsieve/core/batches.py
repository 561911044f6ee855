"""Selection + ratios → batches of indices."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairsieve.core.compiled import compiled
from fairsieve.core.shuffle import new_shuffle, shuffled

__all__ = ["batch_count", "batch_shares", "draw_batches", "sample_weights"]


@compiled
def batch_count(selected: int, batch_size: int) -> int:
    """Batches in an epoch: as many whole ones as the selection fills, at least one of what there is."""
    return max(1, selected // batch_size) if selected > 0 else 0


@compiled
def batch_shares(
    ratios: NDArray[np.float64], counts: NDArray[np.int64], batch_size: int
) -> NDArray[np.int64]:
    """Samples of each cell in a batch; they sum to ``batch_size`` exactly.

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


@compiled
def draw_batches(
    chosen: NDArray[np.int64],
    codes: NDArray[Any],
    counts: NDArray[np.int64],
    shares: NDArray[np.int64],
    batches: int,
    seed: int,
    epoch: int,
) -> NDArray[np.int64]:
    """Index batches, (batches, Σ shares), from the chosen samples.

    Each cell is gone through in a shuffled order, without replacement; when it is exhausted it is
    shuffled again and gone through once more.
    """
    cells = counts.size
    starts = np.zeros(cells, np.int64)
    for cell in range(1, cells):
        starts[cell] = starts[cell - 1] + counts[cell - 1]
    members = np.empty(chosen.size, np.int64)
    filled = starts.copy()
    for i in chosen:
        members[filled[codes[i]]] = i
        filled[codes[i]] += 1
    drawn = np.empty((batches, shares.sum()), np.int64)
    column = 0
    for cell in range(cells):
        size, share = counts[cell], shares[cell]
        if share == 0:
            continue
        lap, shuffle = 0, new_shuffle(size, seed, epoch, cell, 0)
        for batch in range(batches):
            for k in range(share):
                position = batch * share + k - lap * size
                if position == size:
                    position, lap = 0, lap + 1
                    shuffle = new_shuffle(size, seed, epoch, cell, lap)
                drawn[batch, column + k] = members[starts[cell] + shuffled(shuffle, position)]
        column += share
    return drawn


def sample_weights(
    chosen: NDArray[np.int64], codes: NDArray[Any], ratios: NDArray[np.float64], counts: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Weights of Eq. 3 for the chosen samples, ``ratio · |S_y| / |S_cell|``, for models that take weights.

    >>> ratios, counts = np.array([[0.5, 0.5]]), np.array([[1, 3]])
    >>> sample_weights(np.arange(4), np.array([0, 1, 1, 1]), ratios, counts).round(3).tolist()
    [2.0, 0.667, 0.667, 0.667]
    """
    table = counts.reshape(ratios.shape)
    present = np.where(table > 0, ratios, 0.0)
    shares = present / np.maximum(present.sum(axis=1, keepdims=True), 1e-300)
    weights = shares * table.sum(axis=1, keepdims=True) / np.maximum(table, 1)
    return np.asarray(weights.reshape(-1)[codes[chosen]])
