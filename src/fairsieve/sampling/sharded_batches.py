"""A worker's part of the global batches: those of its own samples, found by running the shuffles backwards."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairsieve.selection.backends.jit import compiled
from fairsieve.selection.shuffle import inverse_factors, new_shuffle, unshuffled

__all__ = ["own_places"]


@compiled
def own_places(
    chosen: NDArray[np.int64],
    codes: NDArray[Any],
    own: NDArray[np.int64],
    before: NDArray[np.int64],
    totals: NDArray[np.int64],
    shares: NDArray[np.int64],
    batches: int,
    seed: int,
    epoch: int,
) -> Any:
    """Where the chosen samples of a shard stand in :func:`~fairsieve.selection.batches.draw_batches` of all.

    Parameters
    ----------
    chosen, codes
        The shard's selected samples, and the cell of each of its samples.
    own, before, totals : (cells,)
        Selected samples of each cell in this shard, in those before it, and in all.
    shares : (cells,)
        Samples of each cell in a batch.

    Returns
    -------
    starts, samples, columns
        Batch b has ``samples[starts[b] : starts[b + 1]]`` of this shard, in these columns of it.
    """
    cells = totals.size
    members = np.empty(chosen.size, np.int64)
    filled = np.zeros(cells, np.int64)
    filled[1:] = np.cumsum(own)[:-1]
    begins = filled.copy()
    for i in chosen:
        members[filled[codes[i]]] = i
        filled[codes[i]] += 1
    room = 0
    for cell in range(cells):
        if own[cell] > 0 and shares[cell] > 0:
            room += own[cell] * ((batches * shares[cell] + totals[cell] - 1) // totals[cell])
    rows, found, places = np.empty(room, np.int64), np.empty(room, np.int64), np.empty(room, np.int64)
    starts = np.zeros(batches + 1, np.int64)
    count, column = 0, 0
    for cell in range(cells):
        size, share = totals[cell], shares[cell]
        draws = batches * share
        lap = 0
        while own[cell] > 0 and lap * size < draws:
            shuffle = new_shuffle(size, seed, epoch, cell, lap)
            inverses = inverse_factors(shuffle)
            for j in range(own[cell]):
                position = lap * size + unshuffled(shuffle, inverses, before[cell] + j)
                if position < draws:
                    rows[count] = position // share
                    found[count] = members[begins[cell] + j]
                    places[count] = column + position % share
                    starts[rows[count] + 1] += 1
                    count += 1
            lap += 1
        column += share
    return _in_order(np.cumsum(starts), rows[:count], found[:count], places[:count])


@compiled
def _in_order(
    starts: NDArray[np.int64], rows: NDArray[np.int64], found: NDArray[np.int64], places: NDArray[np.int64]
) -> Any:
    """Samples by batch, and in a batch by column."""
    samples, columns = np.empty_like(found), np.empty_like(found)
    filled = starts.copy()
    for i in range(rows.size):
        samples[filled[rows[i]]] = found[i]
        columns[filled[rows[i]]] = places[i]
        filled[rows[i]] += 1
    for batch in range(starts.size - 1):
        part = slice(starts[batch], starts[batch + 1])
        order = np.argsort(columns[part])
        samples[part] = samples[part][order]
        columns[part] = columns[part][order]
    return starts, samples, columns
