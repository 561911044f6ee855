"""What is kept loads without pickle and predicts the same."""

import json
import zipfile

import numpy as np
import pandas as pd
import pytest
import skops.io
from tests.bad_input.test_model_files import load
from tests.support.people import people, write_csv
from tests.support.programs import run_python

from fairsieve import tabular


@pytest.fixture
def folder(trained, tmp_path):
    return trained.save(tmp_path / "run")


def test_it_holds_scikit_learns_types_only(folder):
    ours = {"fairsieve.tabular.reading.encoding.Preparation", "numpy.dtype"}
    assert set(skops.io.get_untrusted_types(file=folder / "model.skops")) <= ours
    with zipfile.ZipFile(folder / "model.skops") as archive:
        names = archive.namelist()
        assert all(name == "schema.json" or name.endswith((".npy", ".npz")) for name in names)
        for name in names:
            if name.endswith(".npy"):
                with archive.open(name) as stream:
                    np.lib.format.read_array(stream, allow_pickle=False)


def test_predictions_of_new_rows(run, folder, tmp_path):
    table = people(50, seed=3)
    del table["income"], table["sex"]  # neither is needed
    table["job"][0] = "pilot"
    table["hours"][1] = ""  # no gap there in training
    path = write_csv(tmp_path / "new.csv", table)
    found = tabular.predict(folder, path)
    assert len(found.table) == len(found.predicted) == 50
    assert set(found.predicted) == {"high", "low"}
    assert (found.probability >= 0.5).all()
    assert found.notes == ["Column 'job' has values that training did not have ('pilot'); they are ignored."]


def test_what_counted_as_missing_counts_again(stored, tmp_path):
    table = people(50, seed=3) | {"flag": ["True"] * 50, "kind": ["1"] * 50}
    table["age"][0] = "unknown"
    assert len(tabular.predict(stored[1], write_csv(tmp_path / "new.csv", table)).predicted) == 50


GAPS = {
    "as pandas does": {},
    "as empty texts": {"keep_default_na": False},
    "by the file's own marks": {"na_values": ["?", "-99", "unknown"]},
    "as texts": {"dtype": str},
    "as texts without gaps": {"dtype": str, "keep_default_na": False},
    "as objects": {"dtype": object},
    "in nullable types": {"dtype_backend": "numpy_nullable"},
    "in Arrow's types": {"dtype_backend": "pyarrow"},
}


@pytest.fixture(scope="module", params=["logistic", "hist-gradient-boosting"])
def stored(request, tmp_path_factory):
    """A run on a table with gaps of every kind, and its table."""
    folder, random = tmp_path_factory.mktemp("gaps"), np.random.default_rng(0)
    table = people(400)
    marks = ["", "?", "NA", "unknown", "-99"]
    for name in ("age", "hours", "job"):
        table[name] = [random.choice(marks) if random.random() < 0.1 else value for value in table[name]]
    table["flag"] = [("True", "False", "")[row % 3] for row in range(400)]
    table["kind"] = [("1", "2", "3")[row % 3] for row in range(400)]
    path = write_csv(folder / "people.csv", table)
    settings = {"label": "income", "sensitive": "sex", "trees": 5, "test": 0.3, "clean_ratio": 0.9}
    odd = {"missing": ["unknown", "-99"], "categories": "kind"}
    result = tabular.train(path, **settings, **odd, model=request.param)
    return path, result.save(folder / "run")


@pytest.mark.parametrize("way", GAPS)
def test_the_stored_pipeline_predicts_as_predict_does_however_gaps_are_read(stored, way):
    path, run = stored
    pipeline = load(run)
    expected = tabular.predict(run, path, probabilities=True).chances
    frame = pd.read_csv(path, **GAPS[way])
    other = frame.replace({np.nan: None}) if way == "as objects" else frame.iloc[:, ::-1]
    for given in (frame, other):
        found = pipeline.predict_proba(given)
        np.testing.assert_array_equal(found, np.column_stack(list(expected.values())))


# ---- A stored model is scikit-learn's alone where pandas reads the table as it was read

# What somebody runs who has no fairsieve.
ELSEWHERE = """
import json, sys
sys.modules["fairsieve"] = None
import numpy, pandas, skops.io
for name, trusted in json.loads(sys.argv[1]).items():
    model = skops.io.load(f"{name}/model.skops", trusted=trusted)
    numpy.save(f"{name}.npy", model.predict_proba(pandas.read_csv("new.csv")))
"""


def employees(rows=800, seed=0):
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
    employees().to_csv(tmp_path / "people.csv", index=False)
    new = employees(100, seed=1)
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
    run_python("-c", ELSEWHERE, json.dumps(trusted), cwd=tmp_path)
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
    change(employees(300).dropna()).to_csv(tmp_path / "people.csv", index=False)
    result = train(tmp_path / "people.csv", max_iter=5)
    assert any(why in reason for reason in result.model.reading_["needs"])
    run = result.save(tmp_path / "run")
    trusted = skops.io.get_untrusted_types(file=run / "model.skops")
    assert "fairsieve.tabular.reading.encoding.Preparation" in trusted
    assert "Loading it needs fairsieve" in (run / "card.md").read_text()
