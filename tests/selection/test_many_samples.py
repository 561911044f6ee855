"""Backends give the same answers, and memory stays bounded."""

import json
from pathlib import Path

import numpy as np
import pytest
from tests.support.programs import run_python

import fairsieve
from fairsieve.selection.cells import Cells
from fairsieve.selection.epoch import Plan

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


def test_plans_of_many_samples_are_the_same_on_every_backend():
    rng, size = np.random.default_rng(0), 200_000  # NumPy looks at 65,536 samples at a time
    cells = Cells.of(rng.integers(0, 2, size), rng.integers(0, 3, size))
    options = {"clean_ratio": 0.9, "warmup_epochs": 0}
    one, other = (Plan(cells, 100, **options, backend=name) for name in ("numpy", "torch"))
    for _ in range(2):
        losses = rng.exponential(size=size).astype(np.float32)
        one.update(losses)
        other.update(losses)
        assert (one.ratios == other.ratios).all()
        assert one.batches().tolist() == other.batches().tolist()


def test_an_unknown_backend_is_refused():
    told = "backend must be one of auto, numpy, torch; got 'gpu'"
    with pytest.raises(fairsieve.errors.InvalidInputError, match=told):
        fairsieve.select([0.1], [0], [0], [[1.0]], 1.0, backend="gpu")


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="needs Linux's peak of memory")
def test_memory_beside_input_and_answer_is_at_most_three_bytes_a_sample():
    answer = json.loads(run_python(BENCHMARKS / "selection.py", "--memory-of", "4000000").stdout)
    assert max(answer.values()) <= 3
