"""What two threads, tables and kernels do is what the plain code does; and memory stays bounded."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from tests.support.literal import literal_selection
from tests.support.strategies import problems

import fairsieve
from fairsieve.selection import epoch as plan
from fairsieve.selection.backends import compiled as counting
from fairsieve.selection.backends.ending import finish, takes_one
from fairsieve.selection.batches import batch_shares, draw_batches, draw_many
from fairsieve.selection.cells import Cells
from fairsieve.selection.coding import rank_integers
from fairsieve.selection.select import bit_patterns

FORMATS = [torch.float16, torch.bfloat16, torch.float32, torch.float64]
BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def two_threads(monkeypatch):
    """The ways for many samples, for few."""
    monkeypatch.setattr(counting, "MANY", 2)
    monkeypatch.setattr(plan, "MANY", 2)


@pytest.mark.parametrize("dtype", FORMATS)
def test_infinities_zeros_and_ties_on_two_threads(two_threads, dtype):
    rng = np.random.default_rng(0)
    values = rng.choice([np.inf, -np.inf, 0.0, -0.0, 0.5, 1.0, 2.0], 400)
    labels, groups = rng.integers(0, 2, 400), rng.integers(0, 2, 400)
    ratios = [[0.3, 0.7], [0.6, 0.4]]
    losses = torch.from_numpy(values).to(dtype)
    found = fairsieve.select(losses, labels, groups, ratios, 0.8)
    expected, _ = literal_selection(losses.double().tolist(), labels, groups, ratios, 0.8)
    assert found.indices.tolist() == expected


def test_nan_is_found_on_two_threads(two_threads):
    with pytest.raises(fairsieve.InvalidInputError, match="got 1, the first at 7"):
        fairsieve.select([0.1] * 7 + [np.nan], [0, 1] * 4, [0] * 8, [[1.0], [1.0]], 0.9)


@pytest.mark.parametrize("options", [{}, {"constrained": False}, {"weighted": False}, {"clean_ratio": 1.0}])
def test_a_plan_of_many_samples_is_the_plan_of_few(monkeypatch, options):
    rng = np.random.default_rng(0)
    cells = Cells.of(rng.integers(0, 2, 3000), rng.integers(0, 3, 3000))
    plans = [
        fairsieve.Plan(cells, 100, **{"clean_ratio": 0.9, "warmup_epochs": 0, **options}) for _ in range(2)
    ]
    for epoch in range(3):
        losses = rng.exponential(size=3000).astype(np.float32)
        drawn = []
        for each, many in zip(plans, (10**9, 2), strict=True):
            monkeypatch.setattr(plan, "MANY", many)
            monkeypatch.setattr(counting, "MANY", many)
            each.epoch = epoch
            each.update(losses)
            drawn.append(each.batches())
        assert (plans[0].ratios == plans[1].ratios).all()
        assert (drawn[0] == drawn[1]).all()


def test_batches_on_two_threads_are_the_batches_and_laps_repeat_nothing():
    rng = np.random.default_rng(1)
    codes = rng.integers(0, 4, 5000).astype(np.uint8)
    chosen = np.flatnonzero(rng.random(5000) < 0.9)
    counts = np.bincount(codes[chosen], minlength=4)
    shares = batch_shares(np.array([[0.9, 0.1], [0.5, 0.5]]), counts, 64)
    one = draw_batches(chosen, codes, counts, shares, 90, 3, 4)
    assert (one == draw_many(chosen, codes, counts, shares, 90, 3, 4)).all()
    first = one[:, : shares[0]].ravel()[: counts[0]]  # the first lap of the first cell
    assert len(set(first)) == len(first)


def test_integers_far_apart_and_bools_have_codes():
    assert rank_integers(np.array([0, 2**40])) is None
    cells = Cells.of(np.array([0, 2**40]), np.array([True, False]))
    assert (cells.codes.tolist(), cells.classes, cells.groups) == ([1, 2], [0, 2**40], [False, True])


@settings(max_examples=300)
@given(problems())
def test_the_end_of_a_walk_over_everything_is_the_walk(problem):
    """With every sample listed, the end of the walk is all of it."""
    expected, counts = literal_selection(*problem)
    bits, infinity = bit_patterns(torch.from_numpy(problem.losses))
    wide = bits.long().numpy()
    keys = np.where(wide >= 0, wide, torch.iinfo(bits.dtype).min - wide)
    codes = problem.labels * problem.ratios.shape[1] + problem.groups
    listed = np.column_stack([keys.view(np.int32).reshape(-1, 2), np.arange(len(keys)), codes])
    budget = fairsieve.select(*problem).budget
    every = np.bincount(codes, minlength=problem.ratios.size)
    limits, taken, extra = finish(
        np.zeros(every.size, np.int32), listed.astype(np.int32), problem.ratios, budget,
        takes_one(problem.ratios, budget), infinity + 1, infinity, every,
    )  # fmt: skip
    below, index = limits[codes], limits[problem.ratios.size + codes]
    chosen = (keys < below) | ((keys == below) & (np.arange(len(keys)) < index))
    assert np.flatnonzero(chosen).tolist() == expected
    assert taken.tolist() == counts.ravel().tolist()
    assert extra.tolist() == expected


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="needs Linux's peak of memory")
def test_memory_beside_input_and_answer_is_at_most_three_bytes_a_sample():
    command = [sys.executable, str(BENCHMARKS / "selection.py"), "--memory-of", "4000000"]
    answer = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    assert max(answer.values()) <= 3


@pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="needs Triton")
def test_the_kernels_of_a_gpu_give_the_answers_of_the_host():
    """Run by Triton's interpreter, which needs no GPU."""
    command = [sys.executable, "-W", "ignore", str(Path(__file__).with_name("interpreted.py")), "20"]
    subprocess.run(command, check=True)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_the_gpu_gives_the_answers_of_the_host():
    sys.path.insert(0, str(BENCHMARKS))
    import selection_gpu

    assert selection_gpu.check(20) == 20
