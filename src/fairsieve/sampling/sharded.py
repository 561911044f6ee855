"""The backend, plan and batch sampler of several workers: exactly those of one process over all samples.

Each holds a shard, and only sums of counts travel. Everything that travels goes through :class:`Workers`, so its size
is known. A worker that fails says so to the others, and one that is lost is waited for no longer than the timeout;
either way all stop with an error that names the reason.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
import torch
import torch.distributed as dist
from numpy.typing import ArrayLike
from torch.utils.data import DataLoader, Dataset, default_collate

from fairsieve.errors import FairsieveError, InvalidInputError, WorkerError
from fairsieve.sampling.sampler import FairRobustBatchSampler
from fairsieve.sampling.states import join_parts, plain_settings
from fairsieve.selection.backends import Measured
from fairsieve.selection.backends.numpy import NumpyBackend
from fairsieve.selection.batches import Draw, unshuffled
from fairsieve.selection.cells import Cells, Floats, Integers, merged
from fairsieve.selection.epoch import Plan
from fairsieve.selection.search import Limits
from fairsieve.validation import check_at_least, check_positive

Result = TypeVar("Result")

OWN_TO_A_WORKER = ("label_weights", "folder", "device")
CHUNK = 2**18  # places of the shuffle computed together
# In messages of torch, where another worker was lost.
LOST = (
    "gloo",
    "Connection closed by peer",
    "Connection reset",
    "Timed out waiting",
    "timeout caused",
    "NCCL",
)


class Workers:
    """The processes of ``torch.distributed`` as one group; a process alone is a group of one.

    Parameters
    ----------
    timeout : float
        Seconds that a worker waits for the others in what the sampler sends. It does not cover the loop's own
        steps: their process group has a timeout of its own, see :meth:`guard`.
    group : process group, optional
        A gloo group to use as it is, with a timeout of its own. When None, one is made of all
        processes: what travels are small tables in the host's memory, whatever the training uses.

    Examples
    --------
    >>> workers = Workers()  # a process alone
    >>> workers.size, workers.sum(np.array([1, 2])).tolist()
    (1, [1, 2])
    """

    def __init__(self, *, timeout: float = 300.0, group: Any = None) -> None:
        self.timeout = check_positive("timeout", timeout)
        self.traffic: Counter[str] = Counter()  # messages and bytes that this worker handed over
        self._group = group
        self.rank, self.size = 0, 1
        if dist.is_available() and dist.is_initialized():
            if group is None:
                with self.guard("forming the group"):
                    self._group = dist.new_group(timeout=timedelta(seconds=self.timeout), backend="gloo")
            elif dist.get_backend(group) != "gloo":
                raise InvalidInputError(
                    f"group must be of the gloo backend; got {dist.get_backend(group)}: make one of the same "
                    "ranks with torch.distributed.new_group(ranks, backend='gloo')"
                )
            self.rank, self.size = dist.get_rank(self._group), dist.get_world_size(self._group)

    def sum(self, table: Integers) -> Integers:
        """Return the sum of every worker's table."""
        return self._reduced(table, dist.ReduceOp.SUM)

    def max(self, table: ArrayLike) -> Integers:
        """Return the largest of the workers' numbers, place by place."""
        return self._reduced(np.array(table, np.int64), dist.ReduceOp.MAX)

    def gather(self, row: ArrayLike) -> Integers:
        """Return every worker's row of numbers, one below the other."""
        own = torch.from_numpy(np.array(row, np.int64))
        if self.size == 1:
            return own.numpy()[None]
        rows = torch.empty((self.size, len(own)), dtype=torch.int64)
        self.traffic.update(messages=1, bytes=own.nbytes)
        with self.guard("sharing counts"):
            dist.all_gather(list(rows), own, group=self._group)
        return rows.numpy()

    def gather_objects(self, value: Any) -> list[Any]:
        """Return every worker's value, of any kind; for small and rare ones."""
        values: list[Any] = [value] * self.size
        if self.size > 1:
            with self.guard("sharing values"):
                dist.all_gather_object(values, value, group=self._group)
        return values

    def together(self, call: Callable[[], Result]) -> Result:
        """Call something that may fail on some workers: when it does on one, all raise."""
        if self.size == 1:
            return call()
        failure, result = None, None
        try:
            result = call()
        except Exception as error:
            failure = error
        if not self.max([failure is not None])[0]:
            return result  # type: ignore[return-value]
        told = self.gather_objects(None if failure is None else f"{type(failure).__name__}: {failure}")
        if failure is not None:
            raise failure
        reasons = "; ".join(f"rank {rank} failed with {text}" for rank, text in enumerate(told) if text)
        raise WorkerError(f"rank {self.rank} stops because {reasons}")

    def agree(self, **values: int) -> None:
        """Raise an error where the workers' values differ."""
        own = np.array(list(values.values()), np.int64)
        highest = self.max(np.concatenate([own, -own]))
        most, least = highest[: len(own)], -highest[len(own) :]
        for name, low, high in zip(values, least, most, strict=True):
            if low != high:
                raise InvalidInputError(
                    f"{name} must be the same on all workers; it is from {low} to {high}, and on rank "
                    f"{self.rank} {values[name]}"
                )

    def _reduced(self, table: Integers, operation: Any) -> Integers:
        if self.size == 1:
            return table
        values = torch.from_numpy(np.ascontiguousarray(table))
        self.traffic.update(messages=1, bytes=values.nbytes)
        with self.guard("adding up counts"):
            dist.all_reduce(values, operation, group=self._group)
        return values.numpy()

    @contextmanager
    def guard(self, what: str = "training") -> Iterator[None]:
        """Turn an error of ``torch.distributed`` inside the block into a :class:`WorkerError`.

        For a loop's own steps, such as the sums inside ``DistributedDataParallel``. How long those wait
        is the timeout of their own process group.
        """
        try:
            yield
        except RuntimeError as error:
            is_ours = isinstance(error, FairsieveError)
            if is_ours or not (isinstance(error, dist.DistError) or any(word in str(error) for word in LOST)):
                raise
            raise WorkerError(
                f"rank {self.rank} lost another worker while {what}: it has ended, or has not come within the timeout "
                f"(timeout={self.timeout:g} seconds for what the sampler sends, that of their process group for the "
                "loop's own steps). Look for the first error among the other ranks, or raise the timeout where one of "
                f"them may take that much longer ({error})"
            ) from error


def shard_of(samples: int, rank: int | None = None, ranks: int | None = None) -> range:
    """Return the samples of a rank when ``samples`` are shared out evenly; this process's when none is named.

    >>> [shard_of(10, rank, 3) for rank in range(3)]
    [range(0, 4), range(4, 7), range(7, 10)]
    """
    check_at_least("samples", samples, 0)
    is_alone = not (dist.is_available() and dist.is_initialized())
    ranks = (1 if is_alone else dist.get_world_size()) if ranks is None else ranks
    rank = (0 if is_alone else dist.get_rank()) if rank is None else rank
    if not 0 <= rank < ranks:
        raise InvalidInputError(f"rank must be one of 0 to {ranks - 1}; got {rank}")
    each, more = divmod(samples, ranks)
    first = rank * each + min(rank, more)
    return range(first, first + each + (rank < more))


class ShardSelection(NamedTuple):
    """A worker's part of a selection."""

    indices: Integers  # positions in the shard, ascending
    counts: Integers  # selected samples of each cell in all shards,
    own: Integers  # in this one,
    before: Integers  # and in those before it


class ShardedBackend(NumpyBackend):
    """Answers for the samples of all workers; every worker asks the same questions together.

    Each follows the same search over the same sums, so all come to the same closing points; each then takes its own
    samples below them. Equal losses go on by the sample's number in the whole, as in one process.

    Parameters
    ----------
    cells : Cells
        Of the worker's own samples.
    workers : Workers
        See :mod:`fairsieve.sampling.sharded`.
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

    def sum_signals(self, measured: Measured, selected: ShardSelection) -> Floats:
        """Add up the signals by cell over all workers, in the order of the ranks: the same bits on each."""
        own = super().sum_signals(measured, selected)
        parts = self.workers.gather(own.reshape(-1).view(np.int64)).view(np.float64)
        return np.asarray(parts.sum(axis=0).reshape(own.shape))

    def count_below(self, measured: Measured, limits: Floats) -> Integers:
        """Count the samples of all workers."""
        return self._sum(super().count_below(measured, limits))

    def select(self, measured: Measured, limits: Limits) -> ShardSelection:
        """Search the closing points of all workers' samples, and take the own ones below them."""
        return self.hold(super().select(measured, limits).indices)

    def _sum(self, table: Integers) -> Integers:
        return np.asarray(self.workers.sum(table))

    def _max(self, row: list[int]) -> Integers:
        return np.asarray(self.workers.max(row))

    def hold(self, indices: Any | None) -> ShardSelection:
        """Tell the other workers how much of each cell is selected here, and learn it of them."""
        chosen = super().hold(indices)
        table = self.workers.gather(chosen.counts)
        before = table[: self.workers.rank].sum(axis=0)
        return ShardSelection(chosen.indices, table.sum(axis=0), chosen.counts, before)

    def draw(self, selected: ShardSelection, draw: Draw) -> list[Integers]:
        """Return the own samples in each of the global batches, in their order there; in some there may be none.

        The shuffles run backwards, to see where the own samples come.
        """
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


def _parts(total: int, own: int, draws: int) -> Iterator[tuple[Integers, Integers]]:
    """Yield laps through a cell of ``total`` samples, and some of its own ones, a part in memory at a time."""
    laps = -(-draws // total) if own and draws else 0
    together = max(1, CHUNK // max(1, own))
    for first in range(0, laps, together):
        for rank in range(0, own, CHUNK):
            yield np.arange(first, min(laps, first + together)), np.arange(rank, min(own, rank + CHUNK))


class ShardedPlan(Plan):
    """:class:`~fairsieve.selection.epoch.Plan` over the shards of several workers.

    Indices are positions in the worker's own shard; ``shard`` are the numbers of its samples in the
    whole. Shards follow one another in the order of the ranks and may differ in size.
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

    def __init__(self, cells: Cells, batch_size: int, workers: Workers, **options: Any) -> None:
        self.workers = workers
        workers.together(lambda: Plan(cells, batch_size, **options))  # all refuse what one does
        super().__init__(cells, batch_size, backend=ShardedBackend(cells, workers), **options)
        self.samples = self.backend.samples
        self.shard = range(self.backend.first, self.backend.first + len(cells))
        settings = ("budget", "batch_size", "seed", "warmup_epochs", "constrained", "weighted")
        agreed = {name: int(getattr(self, name)) for name in settings}
        workers.agree(**agreed, by_group=int(self.comparisons.by_group))

    @property
    def global_batch_size(self) -> int:
        """Samples in a batch, over all workers."""
        return min(self.batch_size, self.selected)

    def update(self, losses: Any, signals: Any = None, **options: Any) -> None:
        """Begin an epoch from the losses of the worker's own samples; all workers call it together."""
        if not self.in_warmup:
            self.workers.agree(epoch=self.epoch, seed=self.seed)
        super().update(losses, signals, **options)

    def _check_signals(self, signals: Any | None) -> Any | None:
        return self.workers.together(lambda: Plan._check_signals(self, signals))

    def state_dict(self) -> dict[str, Any]:
        """Return the worker's part of the state; those of all workers together are the state."""
        state = super().state_dict()
        state["indices"] += self.shard.start
        return {**state, "samples": self.samples, "first": self.shard.start, "size": len(self.shard)}

    def load_state_dict(self, state: Mapping[str, Any] | Iterable[Mapping[str, Any]]) -> None:
        """Continue from the parts of a state, saved by any number of workers; all workers call it together."""
        whole = self.workers.together(lambda: join_parts(state, self.samples))
        indices, shard = whole["indices"], self.shard
        own = indices[(indices >= shard.start) & (indices < shard.stop)] - shard.start
        super().load_state_dict({**whole, "samples": len(shard), "indices": own})


class ShardedBatchSampler(FairRobustBatchSampler):
    """:class:`~fairsieve.FairRobustBatchSampler` where each worker holds a shard of the samples.

    Labels, groups, losses and indices are those of the worker's own shard, in order; the shards
    follow one another in the order of the ranks (see :func:`~fairsieve.shard_of`). All
    workers together train exactly the batches that one process would for the same losses and seed:
    each gets its own samples of every global batch. Only tables of counts travel, whose size does not
    depend on the number of samples.

    :meth:`state_dict`, which all workers call together, is this worker's part of the state: save it under a name of
    its own.

    A step must weigh samples, not workers: ``(losses.sum() * sampler.scale).backward()`` under
    ``DistributedDataParallel`` is the mean over the global batch.

    Parameters
    ----------
    labels, sensitive_features
        Of the worker's shard.
    batch_size : int
        Of a global batch, over all workers.
    timeout : float, default=300.0
        Seconds to wait for the other workers before all fail. It covers what the sampler sends, not the
        steps of your loop: set a timeout for their process group too, and see ``sampler.workers.guard``.
    group : process group, optional
        All processes when None; without ``torch.distributed`` this process is alone.
    **options
        As for :class:`~fairsieve.FairRobustBatchSampler`.

    Examples
    --------
    >>> sampler = ShardedBatchSampler([0, 1] * 4, list("aabbaabb"), 4, clean_ratio=1.0, warmup_epochs=0)
    >>> sampler.update(torch.zeros(8))
    >>> [len(batch) for batch in sampler], sampler.scale
    ([4, 4], 0.25)
    """

    plan: ShardedPlan

    def __init__(
        self,
        labels: ArrayLike | torch.Tensor,
        sensitive_features: ArrayLike | torch.Tensor,
        batch_size: int,
        *,
        timeout: float = 300.0,
        group: Any = None,
        **options: Any,
    ) -> None:
        self.workers = Workers(timeout=timeout, group=group)
        self._compare({"batch_size": batch_size} | options)
        if options.get("folder") is not None:
            options["folder"] = Path(options["folder"]) / f"rank-{self.workers.rank}"
        super().__init__(labels, sensitive_features, batch_size, **options)

    def _compare(self, options: dict[str, Any]) -> None:
        """Refuse settings that differ between workers, before anybody waits for what others never send."""
        own = plain_settings({name: value for name, value in options.items() if name not in OWN_TO_A_WORKER})
        for rank, theirs in enumerate(self.workers.gather_objects(own)):
            for name in sorted(own.keys() | theirs.keys()):
                mine, other = (repr(each[name]) if name in each else "left out" for each in (own, theirs))
                if mine != other:
                    raise InvalidInputError(
                        f"{name} must be the same on all workers; it is {mine} on rank {self.workers.rank} and {other} "
                        f"on rank {rank}"
                    )

    def _find_cells(self, labels: Any, sensitive_features: Any, classes: Sequence[Any] | None) -> Cells:
        workers = self.workers
        found = workers.together(lambda: Cells.of(labels, sensitive_features, classes=classes, missing="own"))
        known = workers.gather_objects((found.classes, found.groups))
        of_all, groups = (merged([each[side] for each in known]) for side in (0, 1))
        classes = of_all if classes is None else classes
        return Cells.of(labels, sensitive_features, classes=classes, group_values=groups, missing="own")

    def _new_plan(self, cells: Cells, **options: Any) -> Plan:
        plan = ShardedPlan(cells, workers=self.workers, **options)
        self.first = plan.shard.start
        return plan

    def _agree(self, compute: Callable[[], Any]) -> Any:
        return self.workers.together(compute)

    def _added_up(self, table: Integers) -> Integers:
        return self.workers.sum(table)

    def _warn_of_copies(self) -> None:
        """Warn of nothing: each process has a shard of its own."""

    @property
    def scale(self) -> float:
        """What a sum of losses is multiplied by, so that gradients averaged over workers are those of the batch."""
        return self.workers.size / max(1, self.plan.global_batch_size)

    def loader(
        self,
        dataset: Dataset[Any],
        *,
        collate_fn: Callable[[list[Any]], Any] = default_collate,
        **options: Any,
    ) -> DataLoader[Any]:
        """Return a ``DataLoader`` of this worker's batches from its shard, also where a batch has none of them.

        Such a batch comes as tensors of length 0, so that every worker takes as many steps.
        """
        collate = _PossiblyEmpty(dataset, collate_fn)
        return DataLoader(dataset, batch_sampler=self, collate_fn=collate, **options)

    def _checksum(self) -> int:
        return int(self.workers.sum(np.array([super()._checksum()]))[0] % 2**62)

    def load_state_dict(self, state: Mapping[str, Any] | Iterable[Mapping[str, Any]]) -> None:
        """Resume from the parts that all workers saved, were they as many as now or not."""
        whole = self.workers.together(lambda: join_parts(state, self.plan.samples))
        own = slice(self.first, self.plan.shard.stop)
        if "running" in whole:
            whole["running"] = {name: values[..., own] for name, values in whole["running"].items()}
        if "averages" in whole:
            whole["averages"] = whole["averages"][..., own]
        super().load_state_dict(whole)


class _PossiblyEmpty:
    """Collates a batch that may have no samples: one of the dataset's shows what there are none of."""

    def __init__(self, dataset: Dataset[Any], collate: Callable[[list[Any]], Any]) -> None:
        self.dataset, self.collate = dataset, collate

    def __call__(self, items: list[Any]) -> Any:
        return self.collate(items) if items else _emptied(self.collate([self.dataset[0]]))


def _emptied(batch: Any) -> Any:
    """Return a batch without its samples.

    >>> _emptied([torch.ones(1, 3), {"name": ["a"]}])
    [tensor([], size=(0, 3)), {'name': []}]
    """
    if isinstance(batch, torch.Tensor):
        return batch[:0]
    if isinstance(batch, Mapping):
        return {name: _emptied(value) for name, value in batch.items()}
    if not isinstance(batch, (list, tuple)):
        return batch
    return type(batch)(_emptied(value) for value in batch if not isinstance(value, str))
