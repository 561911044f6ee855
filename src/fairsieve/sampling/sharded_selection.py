"""Algorithm 1 over shards: the walk asks, every worker counts, and the sums answer.

Each worker follows the same walk (:mod:`fairsieve.selection.search`) over the same sums, so all come to the
same closing points; each then takes its own samples below them. Equal losses go on by the sample's
number in the whole, as in one process.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairsieve.sampling.shards import Shard
from fairsieve.sampling.workers import Workers
from fairsieve.selection.backends.compiled import count_part, key_of, key_span
from fairsieve.selection.backends.jit import compiled
from fairsieve.selection.search import Walk, advance, new_walk

__all__ = ["DIGIT_WIDTH", "select_shard"]

# Bits counted at once. Narrower digits are smaller messages but more rounds: three for losses
# between 10⁻⁹ and 100, and the answer is the same.
DIGIT_WIDTH = 10


def select_shard(
    bits: NDArray[Any],
    codes: NDArray[Any],
    ratios: NDArray[np.float64],
    budget: int,
    shard: Shard,
    workers: Workers,
) -> NDArray[np.int64]:
    """Positions in the shard, ascending, of its part of the selection among all samples."""
    lowest = np.int64(np.iinfo(bits.dtype).min)
    none = np.iinfo(np.int64).max
    low, high = none, -none
    if bits.size:
        low, span = key_span(bits, lowest)
        high = int(low) + int(span)
    ends = workers.max([-int(low), high])
    smallest = np.int64(-ends[0])
    walk = new_walk(ratios, budget, np.uint64(int(ends[1]) - int(smallest)), shard.samples, DIGIT_WIDTH)
    first = np.full(1, shard.first)
    while True:
        counts = count_part(bits, lowest, smallest, codes, first, walk.window, ratios.size)
        if advance(walk, workers.sum(counts)):
            return _take_own(bits, lowest, smallest, codes, walk, shard.first)


@compiled
def _take_own(
    bits: NDArray[Any], lowest: Any, smallest: Any, codes: NDArray[Any], walk: Walk, first: int
) -> NDArray[np.int64]:
    """The samples below their cell's closing point, ascending."""
    is_taken = np.empty(bits.size, np.bool_)
    base = np.uint64(smallest)
    for i in range(bits.size):
        order = np.uint64(key_of(bits[i], lowest)) - base
        limit = walk.key_limit[codes[i]]
        is_taken[i] = order < limit or (order == limit and np.uint64(first + i) < walk.index_limit[codes[i]])
    return np.flatnonzero(is_taken)
