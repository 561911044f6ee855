"""What is kept loads without pickle, predicts the same, and refuses what could run code."""

from __future__ import annotations

import os
import zipfile

import numpy as np
import pytest
import skops.io
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer
from tests.support.people import people, write_csv

from fairsieve.errors import InvalidInputError
from fairsieve.tabular.saved_model import (
    TRUSTED,
    _linear_part,
    interpolate,
    load_model,
    make_pipeline,
    save_model,
)
from fairsieve.tabular.table_prediction import predict_table
from fairsieve.training.linear_model import LinearModel


@pytest.fixture
def folder(run, tmp_path):
    save_model(run.model, tmp_path / "model.skops")
    return tmp_path


def test_a_model_comes_back_the_same(run, folder):
    again = load_model(folder / "model.skops")
    frame = run.problem.test.frame
    np.testing.assert_array_equal(again.predict_proba(frame), run.model.predict_proba(frame))
    assert (folder / "model.skops").stat().st_size < 30_000


def test_it_holds_scikit_learns_types_only(folder):
    assert set(skops.io.get_untrusted_types(file=folder / "model.skops")) <= set(TRUSTED)
    with zipfile.ZipFile(folder / "model.skops") as archive:
        names = archive.namelist()
        assert all(name == "schema.json" or name.endswith((".npy", ".npz")) for name in names)
        for name in names:
            if name.endswith(".npy"):
                with archive.open(name) as stream:
                    np.lib.format.read_array(stream, allow_pickle=False)


def test_a_file_that_could_run_code_is_not_loaded(tmp_path, monkeypatch):
    hostile = Pipeline([("prepare", FunctionTransformer(os.system)), ("model", "passthrough")])
    path = tmp_path / "model.skops"
    skops.io.dump(hostile, path)
    monkeypatch.setattr(os, "system", lambda *_: pytest.fail("it ran"))
    with pytest.raises(
        InvalidInputError, match=r"must hold nothing but types of scikit-learn .*posix.system"
    ):
        load_model(path)


@pytest.mark.parametrize("content", [b"", b"nothing", b"PK\x05\x06" + bytes(18)])
def test_damaged_files_are_told(tmp_path, content):
    (tmp_path / "model.skops").write_bytes(content)
    with pytest.raises(InvalidInputError, match="is not a model that fairsieve kept, or it is damaged"):
        load_model(tmp_path / "model.skops")
    skops.io.dump(Pipeline([("other", "passthrough")]), tmp_path / "model.skops")
    with pytest.raises(InvalidInputError, match="is not a model that fairsieve kept"):
        load_model(tmp_path / "model.skops")
    with pytest.raises(InvalidInputError, match="must be a file that can be read"):
        load_model(tmp_path / "none.skops")


@pytest.mark.parametrize("classes", [2, 4])
def test_a_pipeline_predicts_as_its_linear_model(run, classes):
    prepared = run.model["prepare"]
    features = prepared.transform(run.problem.test.frame)
    random, outputs = np.random.default_rng(0), 1 if classes == 2 else classes
    linear = LinearModel(random.normal(size=(outputs, features.shape[1])), random.normal(size=outputs))
    names = [f"c{i}" for i in range(classes)]
    found = make_pipeline(prepared, linear, names, 5)
    np.testing.assert_allclose(
        found.predict_proba(run.problem.test.frame), linear.probabilities(features), atol=1e-12
    )
    np.testing.assert_array_equal(_linear_part(found).coef, linear.coef)


@pytest.mark.parametrize("classes", [2, 3])
def test_models_between_two_have_logits_between_theirs(classes):
    random, outputs = np.random.default_rng(0), 1 if classes == 2 else classes
    first, second = (
        LinearModel(random.normal(size=(outputs, 4)), random.normal(size=outputs)) for _ in range(2)
    )
    features = random.normal(size=(20, 4))
    for share in (0.0, 0.25, 1.0):
        expected = (1 - share) * first.decision(features) + share * second.decision(features)
        np.testing.assert_allclose(interpolate(first, second, share).decision(features), expected)


def test_predictions_of_new_rows(run, folder, tmp_path):
    table = people(50, seed=3)
    del table["income"], table["sex"]  # neither is needed
    table["job"][0] = "pilot"
    table["hours"][1] = ""  # no gap there in training
    path = write_csv(tmp_path / "new.csv", table)
    read, predicted, probability, notes = predict_table(folder, path)
    assert len(read) == len(predicted) == 50
    assert set(predicted) == {"high", "low"}
    assert (probability >= 0.5).all()
    assert notes == ["Column 'job' has values that training did not have ('pilot'); they are ignored."]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda table: table.update(hour=table.pop("hours")),
            "missing: 'hours'. Did you mean 'hour': rename it",
        ),
        (lambda table: table.update(age=["old", *table["age"][1:]]), "mixes numbers with 1 text "),
    ],
)
def test_new_rows_that_do_not_fit(folder, tmp_path, change, message):
    table = people(50, seed=3)
    change(table)
    path = write_csv(tmp_path / "new.csv", table)
    with pytest.raises(InvalidInputError, match=message):
        predict_table(folder, path)


def test_what_counted_as_missing_counts_again(run, folder, tmp_path):
    table = people(50, seed=3)
    table["age"][0] = "unknown"
    path = write_csv(tmp_path / "new.csv", table)
    (folder / "metrics.json").write_text('{"settings": {"missing": ["unknown"]}}')
    assert len(predict_table(folder, path)[1]) == 50


def test_a_folder_without_a_model_is_told(tmp_path):
    with pytest.raises(
        InvalidInputError, match=r"RUN must be a folder that fairsieve train made; .* has no model"
    ):
        predict_table(tmp_path, tmp_path / "new.csv")
