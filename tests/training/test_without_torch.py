"""The linear model trains and predicts where neither torch nor numba is installed, and says who needs them."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from fairsieve import fit
from fairsieve.data import make_synthetic
from fairsieve.training.settings import SELECTION_METHODS

OPTIONS = {"epochs": 8, "warmup_epochs": 3, "clean_ratio": 0.9, "batch_size": 50, "step_size": 0.01}
PROGRAM = """
import json, sys

class Missing:  # as if they were not installed
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("torch", "numba"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Missing())
from fairsieve import fit
from fairsieve.errors import MissingExtraError
from fairsieve.data import make_synthetic
from fairsieve.training.settings import SELECTION_METHODS

options, data = json.loads(sys.argv[1]), make_synthetic(200, seed=0)
found = {}
for method in SELECTION_METHODS:
    fitted = fit(None, data, method, evaluation=data, **options)
    found[method] = fitted.predictor.coef.tolist(), fitted.predict(data.features).tolist()
errors = []
for call in (lambda: fitted.model, lambda: fit(abs, data), lambda: fit(None, data, device="cuda"),
             lambda: fit(None, data, compiled=True)):
    try:
        call()
    except MissingExtraError as error:
        errors.append(str(error))
found["errors"] = errors
assert not {"torch", "numba"} & sys.modules.keys()
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def found():
    told = subprocess.run(
        [sys.executable, "-c", PROGRAM, json.dumps(OPTIONS)],
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


def test_calls_that_need_an_extra_name_it(found):
    assert found["errors"] == [
        f"{purpose} needs {package}: pip install 'fairsieve[{extra}]'"
        for purpose, package, extra in (
            ("a linear model as a torch module", "torch", "torch"),
            ("training a module by autograd", "torch", "torch"),
            ("training on the device 'cuda'", "torch", "torch"),
            ("the compiled loop of the linear model", "numba", "reproduce"),
        )
    ]
