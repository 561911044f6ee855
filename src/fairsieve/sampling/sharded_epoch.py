"""The plan of an epoch over shards: the same as that of one process over all samples, exactly."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairsieve.errors import InvalidInputError
from fairsieve.sampling.shards import Shard
from fairsieve.sampling.workers import Workers
from fairsieve.selection.backends.sharded import OwnBatches, ShardedBackend
from fairsieve.selection.cells import Cells
from fairsieve.selection.epoch import Plan
from fairsieve.selection.ratios import class_shares

__all__ = ["ShardedPlan", "listed_parts"]


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

    backend: ShardedBackend

    def __init__(
        self,
        cells: Cells,
        batch_size: int,
        workers: Workers,
        *,
        clean_ratio: Any = 1.0,
        **options: Any,
    ) -> None:
        self.workers = workers
        workers.together(lambda: Plan.__init__(self, cells, batch_size, clean_ratio=clean_ratio, **options))
        self._choice, self.backend = "sharded", ShardedBackend(cells, workers)
        self.shard = Shard(self.backend.first, len(cells), self.backend.samples)
        self._limit(clean_ratio)
        settings = ("budget", "batch_size", "seed", "warmup_epochs", "constrained", "weighted", "by_group")
        workers.agree(**{name: int(getattr(self.rules, name)) for name in settings})
        self._selected, self.counts = self.backend.hold(None)
        self._all_counts = self.counts.reshape(cells.shape)
        self.ratios = class_shares(self._all_counts)

    @property
    def _samples(self) -> int:
        return self.shard.samples if hasattr(self, "shard") else len(self.cells)

    @property
    def _cell_counts(self) -> NDArray[np.int64]:
        return self._all_counts

    @property
    def global_batch_size(self) -> int:
        """Samples in a batch, over all workers."""
        return min(self.rules.batch_size, self.selected)

    def update(self, losses: Any, signals: Any | None = None, **options: Any) -> None:
        """Begin an epoch from the losses of the worker's own samples; all workers call it together."""
        if not self.in_warmup:
            self.workers.agree(epoch=self.epoch, seed=self.rules.seed)
        super().update(losses, signals, **options)

    def _check_signals(self, signals: Any | None) -> Any | None:
        return self.workers.together(lambda: Plan._check_signals(self, signals))

    def places(self, batches: int | None = None) -> OwnBatches:
        """Return the worker's part of the present epoch's batches, and in which columns it stands.

        ``batches`` asks for another number of them; beyond the selection they go through it again.
        """
        return super().batches(batches)  # type: ignore[no-any-return]

    def batches(self, count: int | None = None) -> list[NDArray[np.int64]]:
        """Return the worker's own samples in each batch of the present epoch; in some there may be none."""
        starts, samples, _ = self.places(count)
        return np.split(samples, starts[1:-1]) if len(starts) > 1 else []

    def state_dict(self) -> dict[str, Any]:
        """Return the worker's part of the state; those of all workers together are the state."""
        state = super().state_dict()
        state["indices"] += self.shard.first
        return {**state, "samples": self.shard.samples, "first": self.shard.first, "size": self.shard.size}

    def load_state_dict(self, state: Mapping[str, Any] | Iterable[Mapping[str, Any]]) -> None:
        """Continue from the parts of a state, saved by any number of workers; all workers call it together."""
        parts = listed_parts(state)
        own = self.workers.together(lambda: self._joined(parts))
        super().load_state_dict(own)

    def _joined(self, parts: list[Mapping[str, Any]]) -> dict[str, Any]:
        """Return this worker's state from parts of other shards, which must cover its own."""
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


def listed_parts(state: Mapping[str, Any] | Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return a state in parts, or one that is whole, as a list."""
    parts = [state] if isinstance(state, Mapping) else list(state)
    if not parts:
        raise InvalidInputError("state must hold at least one part; got none")
    return parts
