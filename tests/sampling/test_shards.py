"""Shards"""

import threading

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.sampling.exactness import check_problem, check_resuming

from fairsieve import shard_of
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
