"""The linear model trains, checkpoints and predicts where torch is not installed, to the same bits."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from fairsieve import fit, fit_seeds
from fairsieve.data import make_synthetic
from fairsieve.training.methods import SELECTION_METHODS

OPTIONS = {"epochs": 8, "warmup_epochs": 3, "clean_ratio": 0.9, "batch_size": 50, "step_size": 0.01}
PROGRAM = """
import json, sys

class NoTorch:  # as if it were not installed
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "torch":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, NoTorch())
from fairsieve import MissingExtraError, fit, fit_seeds
from fairsieve.data import make_synthetic
from fairsieve.training.linear_trainer import LinearTrainer
from fairsieve.training.methods import SELECTION_METHODS

class Killed(BaseException):
    pass

options, data = json.loads(sys.argv[1]), make_synthetic(200, seed=0)
found = {}
for method in SELECTION_METHODS:
    fitted = fit(None, data, method, evaluation=data, **options)
    found[method] = fitted.predictor.coef.tolist(), fitted.predict(data.features).tolist()
found["seeds"] = [each.predictor.coef.tolist() for each in fit_seeds(None, data, seeds=[0, 1], **options)]
run_epoch = LinearTrainer.run_epoch

def killed(self):
    if self.done == 5:
        raise Killed
    run_epoch(self)

LinearTrainer.run_epoch = killed
try:
    fit(None, data, checkpoint_dir=sys.argv[2], checkpoint_every=1, **options)
except Killed:
    LinearTrainer.run_epoch = run_epoch
fitted = fit(None, data, checkpoint_dir=sys.argv[2], checkpoint_every=1, **options)
found["resumed"] = fitted.predictor.coef.tolist()
errors = []
for call in (lambda: fitted.model, lambda: fit(None, data, engine="autograd"), lambda: fit(None, data, device="cuda")):
    try:
        call()
    except MissingExtraError as error:
        errors.append(str(error))
found["errors"] = errors
assert "torch" not in sys.modules
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    told = subprocess.run(
        [sys.executable, "-c", PROGRAM, json.dumps(OPTIONS), tmp_path_factory.mktemp("checkpoints")],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    )
    assert told.returncode == 0, told.stderr[-3000:]
    return json.loads(told.stdout)


@pytest.mark.parametrize("method", SELECTION_METHODS)
def test_every_method_gives_the_same_model(found, method):
    data = make_synthetic(200, seed=0)
    fitted = fit(None, data, method, evaluation=data, **OPTIONS)
    assert found[method] == [fitted.predictor.coef.tolist(), fitted.predict(data.features).tolist()]


def test_seeds_together_and_resumed_trainings_give_the_same_model(found):
    data = make_synthetic(200, seed=0)
    expected = [each.predictor.coef.tolist() for each in fit_seeds(None, data, seeds=[0, 1], **OPTIONS)]
    assert found["seeds"] == expected
    assert found["resumed"] == expected[0]


def test_calls_that_need_torch_name_the_extra(found):
    purposes = [
        "a linear model as a torch module",
        "training a module by autograd",
        "training on the device 'cuda'",
    ]
    assert found["errors"] == [
        f"{purpose} needs torch: pip install 'fairsieve[torch]'" for purpose in purposes
    ]
