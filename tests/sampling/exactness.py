"""Run on several ranks: sharded plans against one plan over everything, on every rank.

Groups of 1, 2, 3 and 4 of the processes each take the same random problems, cut into uneven shards.
"""

import json
import os
import sys
import time
from pathlib import Path

import numpy as np
import torch
import torch.distributed as dist

from fairsieve import SamplingMethod, ShardedBatchSampler
from fairsieve.errors import InvalidInputError, WorkerError
from fairsieve.sampling.sharded import ShardedPlan, Workers
from fairsieve.selection.cells import Cells
from fairsieve.selection.epoch import Plan

EPOCHS = 4
NOTIONS = ["equalized_odds", "demographic_parity", "equal_opportunity", None]


def random_problem(seed):
    """Cells, options, and losses and signals for some epochs."""
    rng = np.random.default_rng(seed)
    n, classes, groups = int(rng.integers(1, 300)), int(rng.integers(2, 4)), int(rng.integers(1, 4))
    labels, columns = rng.integers(0, classes, n), rng.integers(0, groups, n).astype(object)
    if seed % 5 == 4:
        columns[rng.random(n) < 0.2] = None
    known = {"classes": range(classes), "group_values": [*range(groups), *[None] * (None in columns)]}
    cells = Cells.of(labels, columns, missing="own", **known)
    options = {
        "fairness": NOTIONS[seed % 4], "clean_ratio": float(rng.choice([1.0, 0.9, 0.5, 0.29, 0.01])),
        "step_size": float(rng.choice([0.0005, 0.2])), "warmup_epochs": int(rng.integers(0, 2)),
        "constrained": bool(rng.random() < 0.8), "weighted": bool(rng.random() < 0.8),
        "signal": str(rng.choice(["loss", "error"])), "pos_label": 1,
        "batching": str(rng.choice(["even", "even", "paper"])), "seed": int(rng.integers(0, 1000)),
    }  # fmt: skip
    dtype = rng.choice([np.float32, np.float64])
    losses = {
        "smooth": lambda: rng.exponential(size=n) * 10.0 ** rng.integers(-9, 3),
        "ties": lambda: rng.choice([0.0, -0.0, 0.5, 1.0], n),
        "wild": lambda: rng.choice([np.inf, -1.5, 1e-30, 3e38, 0.1], n),
        "same": lambda: np.full(n, 0.7),
    }[str(rng.choice(["smooth", "ties", "wild", "same"]))]
    batch_size = int(rng.integers(1, 60))
    rows = [(losses().astype(dtype), rng.random((3, n)).astype(dtype)) for _ in range(EPOCHS)]
    cuts = [np.sort(rng.integers(0, n + 1, size - 1)) for size in (1, 2, 3, 4)]
    return cells, batch_size, options, rows, cuts


def part_of(cells, some):
    return Cells(cells.codes[some], cells.classes, cells.groups)


def check_problem(seed, workers):
    cells, batch_size, options, rows, cuts = random_problem(seed)
    edges = [0, *cuts[workers.size - 1], len(cells)]
    own = slice(int(edges[workers.rank]), int(edges[workers.rank + 1]))
    whole = Plan(cells, batch_size, **options)
    shard = ShardedPlan(part_of(cells, own), batch_size, workers, **options)
    targets = len(whole.comparisons.targets)
    for losses, signals in rows:
        whole.update(losses, signals[:targets])
        shard.update(losses[own], signals[:targets, own])
        where = (seed, workers.size, whole.epoch)
        expected = whole.indices[(whole.indices >= own.start) & (whole.indices < own.stop)]
        assert (shard.indices + shard.shard.start).tolist() == expected.tolist(), where
        assert shard.ratios.tobytes() == whole.ratios.tobytes(), where
        assert shard.counts.tolist() == whole.counts.tolist(), where
        matrix = whole.batches()
        parts = shard.batches()
        assert len(parts) == len(matrix) == shard.batches_per_epoch, where
        for row, part in zip(matrix, parts, strict=True):
            expected = row[(row >= own.start) & (row < own.stop)] - own.start
            assert part.tolist() == expected.tolist(), where
        whole.epoch += 1
        shard.epoch += 1
    return shard


def check_resuming(seed, workers):
    """From the states of other shards, and of one process, to the same next plan."""
    cells, batch_size, options, rows, _ = random_problem(seed)
    before = check_problem(seed, workers)
    parts = workers.gather_objects(before.state_dict())
    size = len(cells) // workers.size
    last = len(cells) if workers.rank == workers.size - 1 else (workers.rank + 1) * size
    own = slice(workers.rank * size, last)
    again = ShardedPlan(part_of(cells, own), batch_size, workers, **(options | {"seed": 7}))
    again.load_state_dict(parts)
    assert again.epoch == before.epoch
    whole = Plan(cells, batch_size, **options)
    for losses, signals in rows:
        whole.update(losses, signals[: len(whole.comparisons.targets)])
        whole.epoch += 1
    losses, signals = rows[0]
    signals = signals[: len(whole.comparisons.targets)]
    other = ShardedPlan(part_of(cells, own), batch_size, workers, **options)
    other.load_state_dict(whole.state_dict())
    for plan in (again, other):
        plan.update(losses[own], signals[:, own])
    whole.update(losses, signals)
    expected = whole.indices[(whole.indices >= own.start) & (whole.indices < own.stop)]
    for plan in (again, other):
        assert (plan.indices + own.start).tolist() == expected.tolist()
        assert plan.ratios.tobytes() == whole.ratios.tobytes()
    if workers.size > 1 and len(cells) > 1:
        try:
            again.load_state_dict(parts[:1] * 2)
        except (InvalidInputError, WorkerError) as error:
            assert "parts of all workers" in str(error), error
        else:
            raise AssertionError("half a state was taken")


def traffic(samples, workers):
    """Bytes and messages of an epoch, after the first."""
    rng = np.random.default_rng(workers.rank)
    cells = Cells.of(rng.integers(0, 2, samples), rng.integers(0, 2, samples), classes=[0, 1])
    plan = ShardedPlan(cells, 100, workers, clean_ratio=0.9, warmup_epochs=0)
    plan.update(rng.exponential(size=samples).astype(np.float32))
    workers.traffic.clear()
    plan.update(rng.exponential(size=samples).astype(np.float32))
    return workers.traffic["bytes"], workers.traffic["messages"]


def failures(rank, out):
    """A rank that fails, one that never comes, and one that dies: what the others are told, and when."""
    told = {}

    def attempt(name, losses, **options):
        dist.barrier()
        started = time.perf_counter()
        fixed = {"clean_ratio": 0.8, "warmup_epochs": 0, "timeout": 2}
        try:
            losses(ShardedBatchSampler([0, 1] * 5, list("aabbaabbab"), 8, **fixed, **options))
        except Exception as error:
            told[name] = [type(error).__name__, str(error), time.perf_counter() - started]

    fine = lambda sampler: sampler.update(torch.arange(10.0))  # noqa: E731
    attempt("fine", fine)
    attempt("a NaN", lambda s: s.update_losses([0.1, float("nan" if rank == 1 else 2), *[0.5] * 8]))
    attempt("a setting", fine, seed=rank // 2)
    attempt("a fairness", fine, fairness=None if rank == 3 else "equalized_odds")
    method = SamplingMethod(momentum=0.9 if rank == 1 else 0.5)
    attempt("a method", fine, method=method)
    attempt("a shape", lambda s: s.update(torch.zeros(10 - (rank == 2))))
    attempt("an epoch", lambda s: (s.set_epoch(rank), fine(s)))
    attempt("never comes", lambda s: time.sleep(4) if rank == 2 else fine(s))
    attempt("dies", lambda s: os._exit(0) if rank == 3 else fine(s))
    out.write_text(json.dumps(told))


def main():
    out, problems = Path(sys.argv[1]), int(sys.argv[2])
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    found = {}
    for size in (1, 2, 3, 4):
        group = dist.new_group(range(size))
        if rank < size:
            workers = Workers(group=group)
            for seed in range(problems):
                check_problem(seed, workers)
            for seed in range(problems, problems + problems // 2):
                check_resuming(seed, workers)
            found[size] = {samples: traffic(samples, workers) for samples in (10**3, 10**5)}
        dist.barrier()
    (out / f"traffic-{rank}.json").write_text(json.dumps(found))
    failures(rank, out / f"failures-{rank}.json")
    os._exit(0)  # the group is broken, on purpose: there is nothing to close


if __name__ == "__main__":
    main()
