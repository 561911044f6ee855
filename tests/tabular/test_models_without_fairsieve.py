"""A stored model is scikit-learn's alone where pandas reads the table as it was read."""

import json
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
import skops.io

from fairsieve import tabular

# What somebody runs who has no fairsieve.
ELSEWHERE = """
import json, sys
sys.modules["fairsieve"] = None
import numpy, pandas, skops.io
for name, trusted in json.loads(sys.argv[1]).items():
    model = skops.io.load(f"{name}/model.skops", trusted=trusted)
    numpy.save(f"{name}.npy", model.predict_proba(pandas.read_csv("new.csv")))
"""


def people(rows=800, seed=0):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({"age": rng.integers(18, 90, rows), "hours": rng.normal(40, 9, rows).round(3)})
    frame["town"] = [f"town {int(place)}" for place in rng.exponential(25, rows)]  # more than are kept
    frame["job"] = rng.choice(["cook", "nurse", "clerk"], rows)
    frame["sex"] = rng.choice(["woman", "man"], rows)
    score = 0.05 * (frame["age"] - 50) + 0.1 * (frame["hours"] - 40) + (frame["job"] == "cook")
    frame["income"] = np.where(score + rng.logistic(size=rows) > 0, "high", "low")
    frame.loc[rng.random(rows) < 0.1, "hours"] = np.nan
    frame.loc[rng.random(rows) < 0.1, "job"] = None
    return frame


def train(data, **more):
    return tabular.train(data, label="income", sensitive="sex", clean_ratio=0.95, test=0.3, **more)


def test_stored_models_load_and_predict_without_fairsieve(tmp_path):
    people().to_csv(tmp_path / "people.csv", index=False)
    new = people(100, seed=1)
    new.loc[:3, "job"] = "pilot"
    new.loc[4:7, "town"] = "elsewhere"
    new["age"] = new["age"].astype(float)
    new.loc[8:9, "age"] = np.nan  # no gap there in training
    new.to_csv(tmp_path / "new.csv", index=False)
    trusted = {}
    for model in ("logistic", "hist-gradient-boosting"):
        run = train(tmp_path / "people.csv", model=model, trees=5, max_iter=5).save(tmp_path / model)
        trusted[model] = skops.io.get_untrusted_types(file=run / "model.skops")
        assert not [name for name in trusted[model] if "fairsieve" in name]
        assert "needs no fairsieve" in (run / "card.md").read_text()
    command = [sys.executable, "-c", ELSEWHERE, json.dumps(trusted)]
    subprocess.run(command, cwd=tmp_path, check=True, timeout=120)
    for model in trusted:
        expected = tabular.predict(tmp_path / model, tmp_path / "new.csv", probabilities=True).chances
        found = np.load(tmp_path / f"{model}.npy")
        np.testing.assert_allclose(found, np.column_stack(list(expected.values())), rtol=0, atol=1e-9)


@pytest.mark.parametrize(("change", "why"), [
    (lambda frame: frame.assign(hours=frame["hours"].map("{:.1f} %".format)), "'hours' has numbers with signs"),
    (lambda frame: frame.assign(job=frame["job"].where(frame["age"] > 20, "?")), "a way of their own ('?')"),
    (lambda frame: frame.assign(job=frame["job"].replace("cook", " cook")), "spaces around"),
    (lambda frame: frame.assign(job=(frame["age"] > 50).map(str)), "'job' has categories that pandas"),
    (lambda frame: frame.assign(job=frame["job"].replace("cook", "None")), "'job' has categories that pandas"),
])  # fmt: skip
def test_what_pandas_alone_would_not_read_so_needs_fairsieve_and_says_so(tmp_path, change, why):
    change(people(300).dropna()).to_csv(tmp_path / "people.csv", index=False)
    result = train(tmp_path / "people.csv", max_iter=5)
    assert any(why in reason for reason in result.model.reading_["needs"])
    run = result.save(tmp_path / "run")
    trusted = skops.io.get_untrusted_types(file=run / "model.skops")
    assert "fairsieve.tabular.reading.encoding.Preparation" in trusted
    assert "Loading it needs fairsieve" in (run / "card.md").read_text()
