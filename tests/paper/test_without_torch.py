"""Everything in paper/ except FR-Train works where torch is not installed."""

from __future__ import annotations

import os
import subprocess
import sys

PROGRAM = """
import sys, tempfile
from pathlib import Path


class Hider:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "torch":
            raise ModuleNotFoundError("No module named 'torch'", name=name)


sys.meta_path.insert(0, Hider())
from fairsieve.paper.compare import Comparison, compare
from fairsieve.paper.demo import run_demo
from fairsieve.paper.methods.registry import find_methods
from fairsieve.paper.reproduce import page, runner

titles = [row.title for row in run_demo(seeds=range(1), epochs=101).rows]
assert titles == ["LR", "ITLM", "FairBatch", "fairsieve"], titles
with tempfile.TemporaryDirectory() as folder:
    asked = Comparison(epochs=8, tune=False), find_methods("all"), [0]
    for record in compare(*asked, Path(folder) / "records.jsonl"):
        name, error = record["settings"]["method"], record.get("error")
        wanted = "FR-Train needs torch: pip install 'fairsieve[torch]'" if name == "fr-train" else None
        assert error == wanted, (name, error)
        assert "torch" not in sys.modules
"""


def test_the_demo_and_every_method_but_fr_train_work_without_torch():
    told = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    )
    assert told.returncode == 0, told.stderr
