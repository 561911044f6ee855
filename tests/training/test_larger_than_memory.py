"""Data larger than the memory that a process may allocate: the program of the benchmark, in small."""

import json
from pathlib import Path

import pytest
from tests.support.programs import run_python

pytest.importorskip("torch")

PROGRAM = Path(__file__).parents[2] / "benchmarks" / "larger_than_memory.py"


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="counts what /proc shows")
def test_training_stays_under_a_limit_of_memory(tmp_path):
    sizes = ("--samples", "49152", "--features", "1024", "--limit", "24")
    told = run_python(PROGRAM, "--folder", tmp_path, "--alone", "0", *sizes, env={"OMP_NUM_THREADS": "1"})
    found = json.loads(told.stdout)
    assert found["data"] == 8 * found["limit"]
    assert found["peak"] < found["limit"]
    assert 0.8 * 49152 < found["selected"] <= 0.9 * 49152
    assert found["after"] < found["loss before"]
    assert list(tmp_path.iterdir()) == []
