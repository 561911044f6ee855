"""A group of workers that succeed or fail together.

Everything that travels goes through here, so its size is known. A worker that fails says so to the
others, and one that is lost is waited for no longer than the timeout; either way all stop with an
error that names the reason.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, TypeVar

import numpy as np
import torch
import torch.distributed as dist
from numpy.typing import ArrayLike, NDArray

from fairsieve.errors import FairsieveError, InvalidInputError, WorkerError
from fairsieve.validation import check_at_least, check_positive

Result = TypeVar("Result")

LOST = (
    "gloo",
    "Connection closed by peer",
    "Connection reset",
    "Timed out waiting",
    "timeout caused",
    "NCCL",
)  # in messages


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

    def __init__(self, *, timeout: float = 300.0, group: Any | None = None) -> None:
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

    def sum(self, table: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the sum of every worker's table."""
        return self._reduced(table, dist.ReduceOp.SUM)

    def max(self, table: ArrayLike) -> NDArray[np.int64]:
        """Return the largest of the workers' numbers, place by place."""
        return self._reduced(np.array(table, np.int64), dist.ReduceOp.MAX)

    def gather(self, row: ArrayLike) -> NDArray[np.int64]:
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

    def _reduced(self, table: NDArray[np.int64], operation: Any) -> NDArray[np.int64]:
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
