"""Shards"""

import json
import threading

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.sampling.exactness import check_problem, check_resuming
from tests.sampling.launch import run_ranks
from tests.support.refusals import refused
from torch.utils.data import TensorDataset

from fairsieve import FairRobustBatchSampler, ShardedBatchSampler, shard_of
from fairsieve.errors import InvalidInputError, NotReadyError
from fairsieve.sampling.sharded import Workers

FEWER = settings(max_examples=settings.default.max_examples // 2)  # threads take their time
SIZES, SEEDS = st.integers(1, 4), st.integers(0, 2**32 - 1)


class Threads(Workers):
    """A worker whose group is threads of this process: they hand values over on a board."""

    def __init__(self, rank, board, barrier):
        super().__init__()
        self.rank, self.size, self.board, self.barrier = rank, len(board), board, barrier

    def gather_objects(self, value):
        self.board[self.rank] = value
        self.barrier.wait(60)
        values = list(self.board)
        self.barrier.wait(60)
        return values

    def gather(self, row):
        return np.array(self.gather_objects(np.array(row, np.int64)))

    def sum(self, table):
        return np.sum(self.gather_objects(table), axis=0)

    def max(self, table):
        return np.max(self.gather_objects(np.array(table, np.int64)), axis=0)


def on_threads(size, call):
    """``call(workers)`` on so many workers at once; the first error of any."""
    board, barrier, errors = [None] * size, threading.Barrier(size), []

    def work(rank):
        try:
            call(Threads(rank, board, barrier))
        except threading.BrokenBarrierError:
            pass  # another one failed
        except BaseException as error:
            errors.append(error)
            barrier.abort()

    threads = [threading.Thread(target=work, args=(rank,)) for rank in range(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


@FEWER
@given(SIZES, SEEDS)
def test_shards_make_the_plan_of_one_process(size, seed):
    """However the samples are cut into shards, ranks partition the plan of one process: selection and batches."""
    on_threads(size, lambda workers: check_problem(seed, workers))


@FEWER
@given(SIZES, SEEDS)
def test_a_state_goes_on_over_other_shards(size, seed):
    """The parts of a state, or a whole one, go on over any other shards to the same next plan."""
    on_threads(size, lambda workers: check_resuming(seed, workers))


@given(st.integers(0, 10**6), st.integers(1, 64))
def test_shards_cover_every_sample_once(samples, ranks):
    """Shards follow one another, cover every sample once, and differ by at most one in size."""
    shards = [shard_of(samples, rank, ranks) for rank in range(ranks)]
    ends = [0, *[shard.stop for shard in shards]]
    assert [shard.start for shard in shards] == ends[:-1]
    assert ends[-1] == samples
    assert max(map(len, shards)) - min(map(len, shards)) <= 1


# ---- Several processes plan what one would, send little, and fail together. One start of four processes


@pytest.fixture(scope="module")
def outcome(tmp_path_factory):
    folder = tmp_path_factory.mktemp("outcome")
    run_ranks(4, "exactness.py", folder, 6)
    return folder


def test_any_number_of_ranks_plans_what_one_process_does(outcome):
    """The processes compare, and this start fails where they differ; see ``exactness.py``."""
    assert len(list(outcome.glob("traffic-*.json"))) == 4


def test_messages_do_not_grow_with_the_samples(outcome):
    found = json.loads((outcome / "traffic-0.json").read_text())
    assert found["1"]["1000"] == found["1"]["100000"] == [0, 0]
    table = 4 * 2**10 * 8  # cells, digits, bytes of a number
    rounds = 1 + 4 * (4 + 2)  # a search for each cell, through 32 bits of losses and 17 of indices
    for ranks in ("2", "3", "4"):
        for total, messages in found[ranks].values():
            assert total < rounds * table + 4096
            assert messages < rounds + 8


def told(outcome, rank):
    return json.loads((outcome / f"failures-{rank}.json").read_text())


def test_a_rank_that_fails_stops_all(outcome):
    for rank in range(3):
        assert "fine" not in told(outcome, rank)
        kind, message, _ = told(outcome, rank)["a NaN"]
        assert kind == ("InvalidInputError" if rank == 1 else "WorkerError")
        assert "losses must not be NaN; got 1, the first at 1" in message
        assert rank == 1 or f"rank {rank} stops because rank 1 failed with InvalidInputError" in message
        _, message, _ = told(outcome, rank)["a shape"]
        assert "outputs must be the logits of all 10 samples" in message
        for name, words in (("a setting", "seed"), ("a fairness", "fairness"), ("a method", "method")):
            kind, message, seconds = told(outcome, rank)[name]
            assert kind == "InvalidInputError"
            assert f"{words} must be the same on all workers; it is " in message
            assert seconds < 30
        kind, message, _ = told(outcome, rank)["an epoch"]
        assert kind == "InvalidInputError"
        assert "epoch must be the same on all workers; it is from 0 to 3" in message


@pytest.mark.parametrize("rank", [0, 1])
@pytest.mark.parametrize("accident", ["never comes", "dies"])
def test_a_rank_that_is_lost_is_not_waited_for(outcome, rank, accident):
    kind, message, seconds = told(outcome, rank)[accident]
    assert kind == "WorkerError"
    assert f"rank {rank} lost another worker while" in message
    assert "timeout=2 seconds" in message
    assert seconds < 30


# ---- The sharded sampler in one process: a group of one, loaders of batches without samples, states in parts

N = 60


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
    batches = [np.array([3, 4]), np.array([], np.int64), np.array([5])]
    monkeypatch.setattr(sampler.plan, "batches", lambda: batches)
    model, sizes = torch.nn.Linear(3, 2), []
    for where, features, labels in sampler.loader(TensorDataset(torch.arange(N), x, y)):
        losses = torch.nn.functional.cross_entropy(model(features), labels, reduction="none")
        (losses.sum() * sampler.scale).backward()
        sampler.observe_losses(where, losses)
        sizes.append(len(where))
    assert sizes == [2, 0, 1]


def test_a_process_alone_has_all_samples():
    assert shard_of(5) == range(5)
    refused("rank must be one of 0 to 2; got 3", shard_of, 5, 3, 3)


def test_no_samples_at_all():
    refused("at least one sample; got none", ShardedBatchSampler, [], [], 4, clean_ratio=0.9)
