"""The same plan over several workers: each holds a shard of the samples, and only counts travel."""

from fairsieve.sampling.sharded_sampler import ShardedBatchSampler
from fairsieve.sampling.shards import shard_of
from fairsieve.sampling.workers import Workers

__all__ = ["ShardedBatchSampler", "Workers", "shard_of"]
