"""What is kept loads without pickle and predicts the same."""

import zipfile

import numpy as np
import pandas as pd
import pytest
import skops.io
from tests.support.people import people, write_csv

from fairsieve import tabular


@pytest.fixture
def folder(trained, tmp_path):
    return trained.save(tmp_path / "run")


def load(folder):
    file = folder / "model.skops"
    return skops.io.load(file, trusted=skops.io.get_untrusted_types(file=file))


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
        table[name] = [
            marks[random.integers(len(marks))] if random.random() < 0.1 else value for value in table[name]
        ]
    table["flag"] = [("True", "False", "")[row % 3] for row in range(400)]
    table["kind"] = [("1", "2", "3")[row % 3] for row in range(400)]
    path = write_csv(folder / "people.csv", table)
    result = tabular.train(
        path,
        label="income",
        sensitive="sex",
        missing=["unknown", "-99"],
        categories="kind",
        model=request.param,
        trees=5,
        test=0.3,
        clean_ratio=0.9,
    )
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
