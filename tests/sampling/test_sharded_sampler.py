"""The sharded sampler in one process: a group of one, loaders of batches without samples, states in parts."""

import numpy as np
import pytest
import torch
from torch.utils.data import TensorDataset

from fairsieve import FairRobustBatchSampler, ShardedBatchSampler, shard_of
from fairsieve.errors import InvalidInputError, NotReadyError

N = 60


@pytest.fixture
def data():
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(N, 3, generator=generator)
    return x, torch.randint(0, 2, (N,), generator=generator), np.where(x[:, 0].numpy() > 0, "a", "b")


def test_one_worker_samples_like_one_process(data):
    x, y, z = data
    options = {"clean_ratio": 0.8, "warmup_epochs": 1, "fairness": "demographic_parity", "seed": 3}
    one, sharded = FairRobustBatchSampler(y, z, 7, **options), ShardedBatchSampler(y, z, 7, **options)
    for epoch in range(4):
        if epoch == 2:
            with pytest.raises(NotReadyError, match="60 of 60 samples have no loss yet"):
                sharded.update()
        one.update(x[:, 0] + epoch)
        sharded.update(x[:, 0] + epoch)
        assert list(sharded) == list(one)
        assert sharded.ratios.tolist() == one.ratios.tolist()
    assert (sharded.first, sharded.scale) == (0, 1 / 7)
    again = ShardedBatchSampler(y, z, 7, **options)
    again.load_state_dict(one.state_dict())
    with pytest.raises(InvalidInputError, match="state must be of the same 60 samples; got one of 61"):
        again.load_state_dict(one.state_dict() | {"samples": 61})
    again.update(x[:, 1])
    one.update(x[:, 1])
    assert list(again) == list(one)


def test_batches_without_samples_of_this_worker(data, monkeypatch):
    x, y, z = data
    sampler = ShardedBatchSampler(y, z, 10, clean_ratio=1.0, warmup_epochs=1)
    monkeypatch.setattr(
        sampler.plan, "batches", lambda: [np.array([3, 4]), np.array([], np.int64), np.array([5])]
    )
    model, sizes = torch.nn.Linear(3, 2), []
    for where, features, labels in sampler.loader(TensorDataset(torch.arange(N), x, y)):
        losses = torch.nn.functional.cross_entropy(model(features), labels, reduction="none")
        (losses.sum() * sampler.scale).backward()
        sampler.observe_losses(where, losses)
        sizes.append(len(where))
    assert sizes == [2, 0, 1]


def test_a_process_alone_has_all_samples():
    assert shard_of(5) == range(5)
    with pytest.raises(InvalidInputError, match="rank must be one of 0 to 2; got 3"):
        shard_of(5, 3, 3)


def test_no_samples_at_all():
    with pytest.raises(InvalidInputError, match="at least one sample; got none"):
        ShardedBatchSampler([], [], 4, clean_ratio=0.9)
