"""Selection + ratios → batches of indices."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairsieve.selection.backends.halves import both_halves
from fairsieve.selection.backends.jit import compiled
from fairsieve.selection.shuffle import new_shuffle, shuffle_block

__all__ = ["batch_count", "batch_shares", "draw_batches", "draw_many", "sample_weights"]

BLOCK = 2048  # places made at once


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
    members = np.empty(chosen.size, np.uint64)
    _group_by_cell(chosen, codes, counts, members)
    drawn = np.empty((batches, shares.sum()), np.int64)
    _draw_rows(members, counts, shares, seed, epoch, drawn, 0, batches)
    return drawn


@compiled
def _group_by_cell(
    chosen: NDArray[np.int64], codes: NDArray[Any], counts: NDArray[np.int64], members: NDArray[Any]
) -> None:
    """Write the chosen samples cell after cell, those of a cell ascending."""
    filled = np.zeros(counts.size, np.int64)
    for cell in range(1, counts.size):
        filled[cell] = filled[cell - 1] + counts[cell - 1]
    _append(chosen, codes, members, filled, 1)


@compiled
def _append(
    chosen: NDArray[np.int64],
    codes: NDArray[Any],
    members: NDArray[Any],
    filled: NDArray[np.int64],
    step: int,
) -> None:
    """Write each chosen sample where its cell is filled to, upwards (step 1) or downwards (−1)."""
    for i in chosen:
        members[filled[codes[i]]] = i
        filled[codes[i]] += step


@compiled
def _draw_rows(
    members: NDArray[Any],
    counts: NDArray[np.int64],
    shares: NDArray[np.int64],
    seed: int,
    epoch: int,
    drawn: NDArray[np.int64],
    first: int,
    last: int,
) -> None:
    """Fill the rows [first, last) of the batches from the members, which stand cell after cell.

    Places are made a block at a time and looked up afterwards, so that many reads are under way at
    once: they go all over the memory.
    """
    places = np.empty(BLOCK, members.dtype)  # unsigned: no index counts from the end
    column, start = 0, 0
    for cell in range(counts.size):
        size, share = counts[cell], shares[cell]
        if share > 0:
            own = members[start : start + size]
            position, end = first * share, last * share
            row, k = first, 0
            while position < end:
                lap = position // size
                shuffle = new_shuffle(size, seed, epoch, cell, lap)
                lap_end = min(end, (lap + 1) * size)
                while position < lap_end:
                    block = min(BLOCK, lap_end - position)
                    shuffle_block(shuffle, position - lap * size, places[:block])
                    j = 0
                    while j < block:
                        run = min(share - k, block - j)
                        part = drawn[row, column + k : column + k + run]
                        for q in range(run):
                            part[q] = own[places[j + q]]
                        j, k = j + run, k + run
                        if k == share:
                            row, k = row + 1, 0
                    position += block
        column += share
        start += size


def draw_many(
    chosen: NDArray[np.int64],
    codes: NDArray[Any],
    counts: NDArray[np.int64],
    shares: NDArray[np.int64],
    batches: int,
    seed: int,
    epoch: int,
) -> NDArray[np.int64]:
    """:func:`draw_batches` on two threads."""
    members = np.empty(chosen.size, np.uint32 if len(codes) <= 2**32 else np.uint64)
    ends = np.cumsum(counts)

    def group(a: int, b: int) -> None:
        if a == 0:
            _append(chosen[a:b], codes, members, ends - counts, 1)
        else:
            _append(chosen[a:b][::-1], codes, members, ends - 1, -1)

    both_halves(chosen.size, group)
    drawn = np.empty((batches, int(shares.sum())), np.int64)
    both_halves(batches, lambda a, b: _draw_rows(members, counts, shares, seed, epoch, drawn, a, b))
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
