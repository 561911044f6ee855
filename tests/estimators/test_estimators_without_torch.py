"""The sieve, the resampler, scorers and displays import and work where torch is not installed."""

from __future__ import annotations

import subprocess
import sys

import pytest

BLOCK = """
import sys
from importlib.abc import MetaPathFinder


class NoTorch(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("torch", "triton"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


sys.meta_path.insert(0, NoTorch())
import matplotlib
import numpy as np
import sklearn
from sklearn.linear_model import LogisticRegression

matplotlib.use("Agg")
rng = np.random.default_rng(0)
X, z = rng.normal(size=(120, 2)), rng.integers(0, 2, 120)
y = (X[:, 0] + 0.5 * rng.normal(size=120) > 0).astype(int)
OPTIONS = {"max_iter": 1, "cv": 2, "random_state": 0}
"""

SIEVE = """
from fairsieve import SieveClassifier
for clean_ratio in (0.9, "auto"):
    model = SieveClassifier(LogisticRegression(), clean_ratio=clean_ratio, **OPTIONS)
    model.fit(X, y, sensitive_features=z)
    assert model.score(X, y) > 0.7 and len(model.suspects()["row"]) + len(model.sample_indices_) == 120
"""

CHECKPOINTS = """
import tempfile
from fairsieve import SieveClassifier
with tempfile.TemporaryDirectory() as folder:
    model = SieveClassifier(LogisticRegression(), clean_ratio=0.9, checkpoint_dir=folder, **OPTIONS)
    first = model.fit(X, y, sensitive_features=z).weights_.tolist()
    assert model.fit(X, y, sensitive_features=z).weights_.tolist() == first
"""

RESAMPLER = """
from fairsieve import FairRobustClassifier, FairRobustResampler, SieveClassifier
sieve = SieveClassifier(LogisticRegression(), clean_ratio=0.9, **OPTIONS)
for estimator in (sieve, FairRobustClassifier(clean_ratio=0.9, random_state=0)):
    some, labels = FairRobustResampler(estimator, random_state=0).fit_resample(X, y, sensitive_features=z)
    assert 60 < len(some) == len(labels) <= 120
"""

SCORERS = """
from sklearn.model_selection import cross_validate
from fairsieve import fairness_scorer
sklearn.set_config(enable_metadata_routing=True)
scores = cross_validate(LogisticRegression(), X, y, scoring=fairness_scorer(), params={"sensitive_features": z})
assert (scores["test_score"] <= 0).all()
"""

DISPLAYS = """
from fairsieve import FairRobustClassifier, SelectionDisplay, TradeoffDisplay
model = FairRobustClassifier(clean_ratio=0.9, random_state=0)
model.fit(X, y, sensitive_features=z)
SelectionDisplay.from_estimator(model)
TradeoffDisplay.from_estimators({"fair": model}, X, y, sensitive_features=z)
"""


@pytest.mark.parametrize(
    "program",
    [SIEVE, CHECKPOINTS, RESAMPLER, SCORERS, DISPLAYS],
    ids=["sieve", "checkpoints", "resampler", "scorers", "displays"],
)
def test_it_works_without_torch(program):
    code = BLOCK + program + "\nassert 'torch' not in sys.modules"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
