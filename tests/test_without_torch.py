"""Properties we test of an environment without torch: what needs no torch works, and the rest names the extra."""

from __future__ import annotations

import subprocess
import sys

import pytest

import fairsieve

NEEDS_TORCH = {
    "FairRobustBatchSampler",
    "ShardedBatchSampler",
    "sample_losses",
    "shard_of",
}

PROGRAM = """
import sys
import warnings


class Hider:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "torch":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


sys.meta_path.insert(0, Hider())

import numpy as np

import fairsieve
from fairsieve.data import flip_uniform, make_synthetic

warnings.simplefilter("ignore", fairsieve.errors.FairsieveWarning)
data = make_synthetic(400, seed=0)
noisy = flip_uniform(data, 0.1, seed=0).labels
X, y, z = data.features, noisy, data.groups


def run_command(*words):
    from fairsieve.cli.app import app

    try:
        app(list(words), standalone_mode=False)
    except SystemExit as stop:
        assert not stop.code, stop.code


"""

WORKS = {
    "select": """
found = fairsieve.select(np.arange(400.0), y, z, np.full((2, 2), 0.5), clean_ratio=0.9)
assert len(found.indices) <= 360
""",
    "Plan": """
from fairsieve.selection.cells import Cells
from fairsieve.selection.epoch import Plan
plan = Plan(Cells.of(y, z), 50, clean_ratio=0.9, warmup_epochs=0)
plan.update(np.arange(400.0))
assert plan.batches().shape[1] == 50
""",
    "metrics": "assert 0 <= fairsieve.equalized_odds_disparity(y, data.labels, sensitive_features=z) <= 1",
    "FairRobustClassifier": """
model = fairsieve.FairRobustClassifier(random_state=0).fit(X, y, sensitive_features=z)
assert model.predict(X).shape == (400,) and model.predict_proba(X).shape == (400, 2)
""",
    "SieveClassifier": """
from sklearn.linear_model import LogisticRegression

model = fairsieve.SieveClassifier(LogisticRegression(), random_state=0).fit(X, y, sensitive_features=z)
assert model.predict(X).shape == (400,)
""",
    "FairRobustResampler": """
sampler = fairsieve.FairRobustResampler(random_state=0)
assert len(sampler.fit_resample(X, y, sensitive_features=z)[0])
""",
    "estimate_clean_ratio": """
found = fairsieve.estimate_clean_ratio(X, y, sensitive_features=z, random_state=0)
assert 0 < found.clean_ratio <= 1
""",
    "fit": """
fitted = fairsieve.fit(None, data, clean_ratio=0.9, epochs=5, warmup_epochs=2)
assert fitted.predict(X).shape == (400,)
try:
    fitted.model
except ImportError as error:
    assert "fairsieve[torch]" in str(error), error
else:
    raise AssertionError("a module without torch")
""",
    "fairsieve train, predict, audit": """
import pandas as pd

frame = pd.DataFrame(X, columns=["a", "b", "c"])
frame["label"], frame["group"] = np.where(y == 1, "yes", "no"), np.where(z == 1, "x", "y")
frame.to_csv("people.csv", index=False)
roles = ("--label", "label", "--sensitive", "group")
run_command("train", "people.csv", *roles, "--positive", "yes", "--out", "run")
run_command("predict", "run", "people.csv", "-o", "predicted.csv")
run_command("audit", "people.csv", *roles)
""",
    "fairsieve demo": """
run_command("demo", "--seeds", "1", "--out", "demo")
""",
    "fairsieve data": "run_command('data', 'list')",
}


def run_without_torch(code, folder):
    """Run a program in a process in which torch cannot be imported."""
    return subprocess.run(
        [sys.executable, "-c", PROGRAM + code], cwd=folder, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize("name", WORKS)
def test_works_without_torch(name, tmp_path):
    done = run_without_torch(WORKS[name], tmp_path)
    assert done.returncode == 0, done.stderr[-2000:]


def test_a_name_that_needs_torch_says_which_extra_to_install(tmp_path):
    code = """
for name in fairsieve.__all__:
    try:
        getattr(fairsieve, name)
    except ImportError as error:
        print(name)
        assert str(error).endswith("needs torch: pip install 'fairsieve[torch]'"), error
"""
    done = run_without_torch(code, tmp_path)
    assert done.returncode == 0, done.stderr
    assert set(done.stdout.split()) == NEEDS_TORCH <= set(fairsieve.__all__)
