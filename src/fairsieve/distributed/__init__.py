"""The same plan over several workers: each holds a shard of the samples, and only counts travel."""

from fairsieve.distributed.sampler import ShardedBatchSampler
from fairsieve.distributed.shards import shard_of
from fairsieve.distributed.workers import Workers

__all__ = ["ShardedBatchSampler", "Workers", "shard_of"]
