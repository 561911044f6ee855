"""Properties we test of an environment without torch and numba: what needs neither works, the rest names the extra."""

import json

import pytest

import fairsieve
from fairsieve import fit
from fairsieve.data import make_synthetic
from tests.support.programs import run_python

NEEDS_TORCH = {"FairRobustBatchSampler", "ShardedBatchSampler", "sample_losses", "shard_of"}
METHODS = [
    "lr", "itlm", "fairbatch", "sample-selection", "sample-selection-no-constraints",
    "sample-selection-no-weights",
]  # fmt: skip
SHORT = {"epochs": 8, "warmup_epochs": 3, "clean_ratio": 0.9, "batch_size": 50, "step_size": 0.01}

# What must work, in one process; it tells what needs an extra, and the models of fit.
PROGRAM = """
import json
import sys
import warnings


class Hider:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("torch", "triton", "numba"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


sys.meta_path.insert(0, Hider())

import matplotlib
import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression

import fairsieve
from fairsieve.cli.app import app
from fairsieve.data import flip_uniform, make_synthetic

matplotlib.use("Agg")
warnings.simplefilter("ignore", fairsieve.errors.FairsieveWarning)
data = make_synthetic(400, seed=0)
X, y, z = data.features, flip_uniform(data, 0.1, seed=0).labels, data.groups
frame = pd.DataFrame(X, columns=["a", "b", "c"])
frame["label"], frame["group"] = np.where(y == 1, "yes", "no"), np.where(z == 1, "x", "y")
frame.to_csv("people.csv", index=False)
for line in (
    "train people.csv --label label --sensitive group --positive yes --out run",
    "predict run people.csv -o predicted.csv",
    "audit people.csv --label label --sensitive group",
    "data describe synthetic",
):
    app(line.split(), standalone_mode=False)
model = fairsieve.FairRobustClassifier(random_state=0).fit(X, y, sensitive_features=z)
fairsieve.SelectionDisplay.from_estimator(model)
fairsieve.TradeoffDisplay.from_estimators({"fair": model}, X, y, sensitive_features=z)
sieve = fairsieve.SieveClassifier(LogisticRegression(), max_iter=1, cv=2, random_state=0)
fairsieve.FairRobustResampler(sieve, random_state=0).fit_resample(X, y, sensitive_features=z)

told, (methods, short) = {"needs": {}, "models": {}}, json.loads(sys.argv[1])
small = make_synthetic(200, seed=0)
for method in methods:
    fitted = fairsieve.fit(None, small, method, evaluation=small, **short)
    told["models"][method] = fitted.predictor.coef.tolist(), fitted.predict(small.features).tolist()
calls = {name: lambda name=name: getattr(fairsieve, name) for name in fairsieve.__all__} | {
    "model": lambda: fitted.model,
    "module": lambda: fairsieve.fit(abs, small),
    "device": lambda: fairsieve.fit(None, small, device="cuda"),
}
for name, call in calls.items():
    try:
        call()
    except fairsieve.errors.MissingExtraError as error:
        told["needs"][name] = str(error)
assert not {"torch", "numba"} & sys.modules.keys()
print(json.dumps(told))
"""


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    asked = json.dumps([METHODS, SHORT])
    done = run_python("-c", PROGRAM, asked, cwd=tmp_path_factory.mktemp("without"))
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("method", METHODS)
def test_every_method_gives_the_same_model(told, method):
    data = make_synthetic(200, seed=0)
    fitted = fit(None, data, method, evaluation=data, **SHORT)
    assert told["models"][method] == [fitted.predictor.coef.tolist(), fitted.predict(data.features).tolist()]


def test_what_needs_an_extra_names_it(told):
    needs = {"model": "a linear model as a torch module", "module": "training a module by autograd"}
    needs |= {"device": "training on the device 'cuda'"} | {name: f"fairsieve.{name}" for name in NEEDS_TORCH}
    rest = "needs torch: pip install 'fairsieve[torch]'"
    assert told["needs"] == {name: f"{purpose} {rest}" for name, purpose in needs.items()}
    assert set(fairsieve.__all__) >= NEEDS_TORCH
