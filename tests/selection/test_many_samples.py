"""Backends give the same answers, and memory stays bounded."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import fairsieve
from fairsieve.selection.cells import Cells

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.mark.parametrize("options", [{}, {"constrained": False}, {"weighted": False}, {"clean_ratio": 1.0}])
@pytest.mark.parametrize("size", [3000, 200_000])  # NumPy looks at 65,536 samples at a time
def test_plans_of_every_backend_are_the_same(options, size):
    rng = np.random.default_rng(0)
    cells = Cells.of(rng.integers(0, 2, size), rng.integers(0, 3, size))
    settings = {"clean_ratio": 0.9, "warmup_epochs": 0, **options}
    names = ("numpy", "torch")
    plans = [fairsieve.selection.epoch.Plan(cells, 100, **settings, backend=name) for name in names]
    for epoch in range(3):
        losses = rng.exponential(size=size).astype(np.float32)
        drawn = []
        for plan in plans:
            plan.epoch = epoch
            plan.update(losses)
            drawn.append(plan.batches().tolist())
        assert all((plan.ratios == plans[0].ratios).all() for plan in plans)
        assert all(batches == drawn[0] for batches in drawn)


def test_a_first_plan_of_few_samples_imports_neither_numba_nor_torch():
    program = (
        "import sys; from fairsieve.selection.cells import Cells; from fairsieve.selection.epoch import Plan; "
        "plan = Plan(Cells.of([0, 1] * 1000, [0, 0, 1, 1] * 500), 100, clean_ratio=0.9, warmup_epochs=0); "
        "plan.update([0.1] * 2000); plan.batches(); print('numba' in sys.modules, 'torch' in sys.modules)"
    )
    run = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert run.stdout.split() == ["False", "False"]


def test_an_unknown_backend_is_refused():
    with pytest.raises(
        fairsieve.errors.InvalidInputError, match="backend must be one of auto, numpy, torch; got 'gpu'"
    ):
        fairsieve.select([0.1], [0], [0], [[1.0]], 1.0, backend="gpu")


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="needs Linux's peak of memory")
def test_memory_beside_input_and_answer_is_at_most_three_bytes_a_sample():
    command = [sys.executable, str(BENCHMARKS / "selection.py"), "--memory-of", "4000000"]
    answer = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    assert max(answer.values()) <= 3
