"""Trainings that are killed at random moments, or run out of disk space, end with the same bits."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")

PROGRAM = Path(__file__).parents[2] / "support" / "kills.py"
KILLS = 30 if os.environ.get("HYPOTHESIS_PROFILE") == "nightly" else 4

pytestmark = pytest.mark.skipif(os.name != "posix", reason="kills are signals")


def test_trainings_killed_at_random_moments_end_with_the_same_bits():
    told = subprocess.run(
        [sys.executable, PROGRAM, "--kills", str(KILLS), "--samples", "300"],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    )
    assert told.returncode == 0, told.stderr
    total = json.loads(told.stdout)
    assert total["kills"] == KILLS
    assert total["same"] == total["trainings"] > 0


FULL = """
import resource, sys, warnings
from fairsieve import CheckpointWarning, fit
from fairsieve.data import make_synthetic
options = {"epochs": 6, "warmup_epochs": 2, "clean_ratio": 0.9, "checkpoint_every": 2}
data = make_synthetic(300, seed=0)
whole = fit(None, data, **{k: v for k, v in options.items() if k != "checkpoint_every"})
resource.setrlimit(resource.RLIMIT_FSIZE, (1500, resource.RLIM_INFINITY))  # room for JSON, not for tensors
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    fitted = fit(None, data, checkpoint_dir=sys.argv[1], **options)
assert [w.category for w in caught] == [CheckpointWarning], caught
same = [p.tolist() for p in fitted.model.parameters()] == [p.tolist() for p in whole.model.parameters()]
print(same, caught[0].message)
"""


def test_training_goes_on_without_room_on_the_disk(tmp_path):
    folder = tmp_path / "checkpoints"
    told = subprocess.run(
        [sys.executable, "-c", FULL, folder], capture_output=True, text=True, check=True, cwd=tmp_path
    )
    assert told.stdout.startswith(f"True checkpoint 000002 could not be written to {folder} (File too large)")
    assert list(folder.glob("0*")) == []
