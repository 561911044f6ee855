"""The backend over several workers: each holds a shard of the samples, and only sums of counts travel.

Each worker follows the same search over the same sums, so all come to the same closing points; each
then takes its own samples below them. Equal losses go on by the sample's number in the whole, as in
one process. A worker's part of the global batches are those of its own samples: it runs the shuffles
backwards to see where they come.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fairsieve.selection.backends.numpy import Measured, NumpyBackend
from fairsieve.selection.batches import Draw
from fairsieve.selection.cells import Cells
from fairsieve.selection.search import Limits
from fairsieve.selection.shuffle import unshuffled

CHUNK = 2**18  # places of the shuffle computed together


class ShardSelection(NamedTuple):
    """A worker's part of a selection."""

    indices: NDArray[np.int64]  # positions in the shard, ascending
    counts: NDArray[np.int64]  # selected samples of each cell in all shards,
    own: NDArray[np.int64]  # in this one,
    before: NDArray[np.int64]  # and in those before it


class ShardedBackend(NumpyBackend):
    """Answers for the samples of all workers; every worker asks the same questions together.

    Parameters
    ----------
    cells : Cells
        Of the worker's own samples.
    workers : Workers
        See :mod:`fairsieve.sampling.workers`.
    """

    def __init__(self, cells: Cells, workers: Any) -> None:
        super().__init__(cells)
        self.workers = workers
        sizes = workers.gather([len(cells)])[:, 0]
        self.first, self.samples = int(sizes[: workers.rank].sum()), int(sizes.sum())

    def measure(self, losses: Any, signals: Any | None) -> Measured:
        """Take in the losses of the own samples; all workers raise when one refuses."""
        own = super().measure
        measured: Measured = self.workers.together(lambda: own(losses, signals))
        self.workers.agree(bytes_of_a_loss=measured.losses.itemsize)
        return measured

    def sum_signals(self, measured: Measured, selected: ShardSelection) -> NDArray[np.float64]:
        """Add up the signals by cell over all workers, in the order of the ranks: the same bits on each."""
        own = super().sum_signals(measured, selected)
        parts = self.workers.gather(own.reshape(-1).view(np.int64)).view(np.float64)
        return np.asarray(parts.sum(axis=0).reshape(own.shape))

    def count_below(self, measured: Measured, limits: NDArray[np.float64]) -> NDArray[np.int64]:
        """Count the samples of all workers."""
        return self._sum(super().count_below(measured, limits))

    def select(self, measured: Measured, limits: Limits) -> ShardSelection:
        """Search the closing points of all workers' samples, and take the own ones below them."""
        return self.hold(super().select(measured, limits).indices)

    def _sum(self, table: NDArray[np.int64]) -> NDArray[np.int64]:
        return np.asarray(self.workers.sum(table))

    def _max(self, row: list[int]) -> NDArray[np.int64]:
        return np.asarray(self.workers.max(row))

    def hold(self, indices: Any | None) -> ShardSelection:
        """Tell the other workers how much of each cell is selected here, and learn it of them."""
        chosen = super().hold(indices)
        table = self.workers.gather(chosen.counts)
        before = table[: self.workers.rank].sum(axis=0)
        return ShardSelection(chosen.indices, table.sum(axis=0), chosen.counts, before)

    def draw(self, selected: ShardSelection, draw: Draw) -> list[NDArray[np.int64]]:
        """Return the own samples in each of the global batches, in their order there; in some there may be none."""
        members, totals, own, before = selected
        if draw.by_cell:
            members = members[np.argsort(self.codes[members], kind="stable")]
        else:
            totals, own, before = (each.sum(keepdims=True) for each in (totals, own, before))
        places, samples = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]  # a place is row · size + column
        start, begin = np.zeros(draw.batches, np.int64), 0
        for cell, size in enumerate(own.tolist()):
            end = draw.ends(cell)
            drawn = np.cumsum(end - start)  # samples of the cell up to the end of each batch
            total = int(drawn[-1]) if draw.batches else 0
            for laps, ranks in _parts(int(totals[cell]), size, total):
                back = unshuffled(int(totals[cell]), draw.seed, draw.epoch, cell, laps, before[cell] + ranks)
                position = laps[:, None] * int(totals[cell]) + back
                lap, which = np.nonzero(position < total)
                position = position[lap, which]
                row = np.searchsorted(drawn, position, side="right")
                places.append(row * draw.size + end[row] - drawn[row] + position)
                samples.append(members[begin + ranks[which]])
            start = end
            begin += size
        place, sample = np.concatenate(places), np.concatenate(samples)
        del places, samples
        order = np.argsort(place)
        starts = np.searchsorted(place[order], np.arange(1, draw.batches) * draw.size)
        return np.split(sample[order], starts) if draw.batches else []


def _parts(total: int, own: int, draws: int) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Yield laps through a cell of ``total`` samples, and some of its own ones, a part in memory at a time."""
    laps = -(-draws // total) if own and draws else 0
    together = max(1, CHUNK // max(1, own))
    for first in range(0, laps, together):
        for rank in range(0, own, CHUNK):
            yield np.arange(first, min(laps, first + together)), np.arange(rank, min(own, rank + CHUNK))
