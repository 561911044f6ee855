"""The plan of an epoch over shards: the same as that of one process over all samples, exactly."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fairsieve.errors import InvalidInputError, NotReadyError
from fairsieve.sampling.sharded_batches import own_places
from fairsieve.sampling.sharded_selection import select_shard
from fairsieve.sampling.shards import Shard
from fairsieve.sampling.workers import Workers
from fairsieve.selection.batches import batch_count, batch_shares
from fairsieve.selection.cells import Cells
from fairsieve.selection.epoch import Plan, bounds_of, step_ratios
from fairsieve.selection.ratios import class_shares, exact_sums, rounded_sums
from fairsieve.selection.select import budget_of

__all__ = ["ShardedPlan", "parts_of"]


class ShardedPlan(Plan):
    """:class:`~fairsieve.selection.epoch.Plan` over the shards of several workers.

    Indices are positions in the worker's own shard; ``shard.first`` is the number of its first sample
    in the whole. Shards follow one another in the order of the ranks and may differ in size.
    ``ratios`` and ``counts`` are those of all samples, the same on every worker.

    Parameters
    ----------
    cells : Cells
        Of the worker's own samples, with the classes and groups of all.
    batch_size : int
        Of a global batch, over all workers.
    workers : Workers
    **options
        As for :class:`~fairsieve.selection.epoch.Plan`.
    """

    def __init__(
        self, cells: Cells, batch_size: int, workers: Workers, *, clean_ratio: float = 1.0, **options: Any
    ) -> None:
        workers.together(lambda: Plan.__init__(self, cells, batch_size, clean_ratio=clean_ratio, **options))
        self.workers = workers
        sizes = workers.gather([len(cells)])[:, 0]
        self.shard = Shard(int(sizes[: workers.rank].sum()), len(cells), int(sizes.sum()))
        self.rules = self.rules._replace(budget=budget_of(clean_ratio, self.shard.samples))
        settings = ("budget", "batch_size", "seed", "warmup_epochs", "constrained", "weighted", "by_group")
        self.workers.agree(**{name: int(getattr(self.rules, name)) for name in settings})
        self.share_counts()
        self.ratios = class_shares(self.counts.reshape(cells.shape))

    def share_counts(self) -> None:
        """Tell how much of each cell is selected here, and learn it of the others."""
        own = np.bincount(self.cells.codes[self.indices], minlength=self.cells.counts.size)
        table = self.workers.gather(own)
        self.own_counts, self.counts = table[self.workers.rank], table.sum(axis=0)
        self.counts_before = table[: self.workers.rank].sum(axis=0)

    @property
    def selected(self) -> int:
        """Samples selected on all workers."""
        return int(self.counts.sum())

    @property
    def global_batch_size(self) -> int:
        """Samples in a batch, over all workers."""
        return min(self.rules.batch_size, self.selected)

    @property
    def batches_per_epoch(self) -> int:
        return batch_count(self.selected, self.rules.batch_size)

    def update(self, losses: ArrayLike, signals: NDArray[Any] | None = None) -> None:
        """Begin an epoch from the losses of the worker's own samples; all workers call it together."""
        if self.in_warmup:
            return
        values, rows = self.workers.together(lambda: self.checked(losses, signals))
        self.workers.agree(epoch=self.epoch, seed=self.rules.seed, bytes_of_a_loss=values.itemsize)
        if len(self.rules.rows):
            digits = exact_sums(rows, self.rules.codes, self.indices, self.ratios.size)
            sums = rounded_sums(self.workers.sum(digits))
            step_ratios(self.rules, sums, self.ratios, self.counts)
        bits = values.view(f"i{values.itemsize}")
        if self.rules.constrained:
            codes, bounds = self.rules.codes, bounds_of(self.rules, self.ratios)
            self.indices = select_shard(bits, codes, bounds, self.rules.budget, self.shard, self.workers)
        elif self.rules.budget < self.shard.samples:
            codes, bounds = self.rules.no_codes, np.ones((1, 1))
            self.indices = select_shard(bits, codes, bounds, self.rules.budget, self.shard, self.workers)
        self.share_counts()
        self.is_selective = True

    def places(
        self, batches: int | None = None
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """The worker's part of the present epoch's batches, see :func:`own_places`.

        ``batches`` asks for another number of them; beyond the selection they go through it again.
        """
        if not self.in_warmup and not self.is_selective:
            raise NotReadyError(
                f"epoch {self.epoch} selects samples, which needs the model's losses: call update() before "
                "each epoch from the end of the warm-up on"
            )
        rules, size = self.rules, self.global_batch_size
        if rules.weighted and not self.in_warmup and self.selected > 0:
            codes, own, before, totals = rules.codes, self.own_counts, self.counts_before, self.counts
            shares = batch_shares(self.ratios, totals, size)
        else:
            codes = rules.no_codes
            own, before, totals = (
                each.sum(keepdims=True) for each in (self.own_counts, self.counts_before, self.counts)
            )
            shares = np.full(1, size)
        count = self.batches_per_epoch if batches is None or self.selected == 0 else batches
        found: Any = own_places(
            self.indices, codes, own, before, totals, shares, count, rules.seed, self.epoch
        )
        return found  # type: ignore[no-any-return]

    def batches(self, count: int | None = None) -> list[NDArray[np.int64]]:  # type: ignore[override]
        """The worker's own samples in each batch of the present epoch; in some there may be none."""
        starts, samples, _ = self.places(count)
        return np.split(samples, starts[1:-1]) if len(starts) > 1 else []

    def state_dict(self) -> dict[str, Any]:
        """The worker's part of the state; those of all workers together are the state."""
        state = super().state_dict()
        state["indices"] += self.shard.first
        return {**state, "samples": self.shard.samples, "first": self.shard.first, "size": self.shard.size}

    def load_state_dict(self, state: Mapping[str, Any] | Iterable[Mapping[str, Any]]) -> None:
        """Take over the parts of a state, saved by any number of workers; all workers call it together."""
        parts = parts_of(state)
        own = self.workers.together(lambda: self._joined(parts))
        super().load_state_dict(own)
        self.share_counts()

    def _joined(self, parts: list[Mapping[str, Any]]) -> dict[str, Any]:
        """This worker's state from parts of other shards; they must cover its own."""
        first, last = self.shard.first, self.shard.last
        pieces, covered = [], 0
        for part in parts:
            if part.get("samples") != self.shard.samples:
                raise InvalidInputError(
                    f"state must be of the same {self.shard.samples} samples; got one of {part.get('samples')}"
                )
            begin = part.get("first", 0)
            end = begin + part.get("size", part["samples"])
            covered += max(0, min(end, last) - max(begin, first))
            indices = np.asarray(part["indices"], np.int64)
            pieces.append(indices[(indices >= first) & (indices < last)] - first)
        if covered != self.shard.size:
            raise InvalidInputError(
                f"state must be the parts of all workers, each once; those given hold {covered} of the "
                f"{self.shard.size} samples of rank {self.workers.rank}: load the files of all ranks"
            )
        own = {"samples": self.shard.size, "first": first, "size": self.shard.size}
        return {**parts[0], **own, "indices": np.sort(np.concatenate(pieces))}


def parts_of(state: Mapping[str, Any] | Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """A state in parts, or one that is whole, as a list; parts without samples of this worker too."""
    parts = [state] if isinstance(state, Mapping) else list(state)
    if not parts:
        raise InvalidInputError("state must hold at least one part; got none")
    return parts
