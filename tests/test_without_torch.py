"""Properties we test of an environment without torch and numba: what needs neither works, the rest names the extra."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

import fairsieve
from fairsieve import fit
from fairsieve.data import make_synthetic

NEEDS_TORCH = {"FairRobustBatchSampler", "ShardedBatchSampler", "sample_losses", "shard_of"}
METHODS = ["lr", "itlm", "fairbatch", "fairsieve", "fairsieve-no-constraints", "fairsieve-no-weights"]
SHORT = {"epochs": 8, "warmup_epochs": 3, "clean_ratio": 0.9, "batch_size": 50, "step_size": 0.01}

# Every part runs in one process, which starts once: errors by part, and the models of fit.
PROGRAM = """
import json
import sys
import traceback
import warnings


class Hider:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("torch", "triton", "numba"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


sys.meta_path.insert(0, Hider())

import matplotlib
import numpy as np

import fairsieve
from fairsieve.data import flip_uniform, make_synthetic

matplotlib.use("Agg")
warnings.simplefilter("ignore", fairsieve.errors.FairsieveWarning)
data = make_synthetic(400, seed=0)
X, y, z = data.features, flip_uniform(data, 0.1, seed=0).labels, data.groups
parts, methods, short = json.loads(sys.argv[1])


def run_command(*words):
    from fairsieve.cli.app import app

    try:
        app(list(words), standalone_mode=False)
    except SystemExit as stop:
        assert not stop.code, stop.code


told = {"errors": {}, "needs": {}, "models": {}}
for name, code in parts.items():
    try:
        exec(code, globals() | {"__name__": "part"})
        assert not {"torch", "numba"} & sys.modules.keys()
        told["errors"][name] = ""
    except BaseException:
        told["errors"][name] = traceback.format_exc()
small = make_synthetic(200, seed=0)
for method in methods:
    fitted = fairsieve.fit(None, small, method, evaluation=small, **short)
    told["models"][method] = fitted.predictor.coef.tolist(), fitted.predict(small.features).tolist()
calls = {name: lambda name=name: getattr(fairsieve, name) for name in fairsieve.__all__} | {
    "model": lambda: fitted.model,
    "module": lambda: fairsieve.fit(abs, small),
    "device": lambda: fairsieve.fit(None, small, device="cuda"),
    "compiled": lambda: fairsieve.fit(None, small, compiled=True),
}
for name, call in calls.items():
    try:
        call()
    except fairsieve.errors.MissingExtraError as error:
        told["needs"][name] = str(error)
print(json.dumps(told))
"""

PARTS = {
    "FairRobustClassifier and displays": """
model = fairsieve.FairRobustClassifier(random_state=0).fit(X, y, sensitive_features=z)
assert model.predict(X).shape == (400,) and model.predict_proba(X).shape == (400, 2)
fairsieve.SelectionDisplay.from_estimator(model)
fairsieve.TradeoffDisplay.from_estimators({"fair": model}, X, y, sensitive_features=z)
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
}


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, json.dumps([PARTS, METHODS, SHORT])],
        cwd=tmp_path_factory.mktemp("without"),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("name", PARTS)
def test_a_part_works_without_torch(told, name):
    assert told["errors"][name] == ""


@pytest.mark.parametrize("method", METHODS)
def test_every_method_gives_the_same_model(told, method):
    data = make_synthetic(200, seed=0)
    fitted = fit(None, data, method, evaluation=data, **SHORT)
    assert told["models"][method] == [fitted.predictor.coef.tolist(), fitted.predict(data.features).tolist()]


def test_what_needs_an_extra_names_it(told):
    needs = {
        "model": ("a linear model as a torch module", "torch", "torch"),
        "module": ("training a module by autograd", "torch", "torch"),
        "device": ("training on the device 'cuda'", "torch", "torch"),
        "compiled": ("the compiled loop of the linear model", "numba", "reproduce"),
    } | {name: (f"fairsieve.{name}", "torch", "torch") for name in NEEDS_TORCH}
    assert told["needs"] == {
        name: f"{purpose} needs {package}: pip install 'fairsieve[{extra}]'"
        for name, (purpose, package, extra) in needs.items()
    }
    assert set(fairsieve.__all__) >= NEEDS_TORCH
