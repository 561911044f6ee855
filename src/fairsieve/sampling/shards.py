"""Which worker holds which samples: contiguous shards, in the order of the ranks."""

from __future__ import annotations

from dataclasses import dataclass

import torch.distributed as dist

from fairsieve.errors import InvalidInputError
from fairsieve.validation import check_at_least

__all__ = ["Shard", "shard_of"]


@dataclass(frozen=True)
class Shard:
    """Samples ``first`` to ``first + size − 1`` of ``samples``."""

    first: int
    size: int
    samples: int

    @property
    def last(self) -> int:
        """The number after that of the last sample."""
        return self.first + self.size


def shard_of(samples: int, rank: int | None = None, ranks: int | None = None) -> range:
    """Return the samples of a rank when ``samples`` are shared out evenly; this process's when none is named.

    >>> [shard_of(10, rank, 3) for rank in range(3)]
    [range(0, 4), range(4, 7), range(7, 10)]
    """
    check_at_least("samples", samples, 0)
    if ranks is None:
        ranks = dist.get_world_size() if dist.is_available() and dist.is_initialized() else 1
    if rank is None:
        rank = dist.get_rank() if dist.is_available() and dist.is_initialized() else 0
    if not 0 <= rank < ranks:
        raise InvalidInputError(f"rank must be one of 0 to {ranks - 1}; got {rank}")
    each, more = divmod(samples, ranks)
    first = rank * each + min(rank, more)
    return range(first, first + each + (rank < more))
