"""Model files from others, damaged ones and old ones: refused, and nothing in them runs."""

import copy
import io
import json
import os
import pickle
import re
import struct
import tracemalloc
import zipfile
import zlib

import numpy as np
import pandas as pd
import pytest
import skops.io
from sklearn.compose import ColumnTransformer
from sklearn.dummy import DummyClassifier
from sklearn.pipeline import Pipeline
from tests.support.people import people, write_csv

from fairsieve import tabular
from fairsieve.errors import InvalidInputError

REFUSED = "is not a model that fairsieve kept, or it is damaged|must hold nothing but types of scikit-learn"


class Attack:
    """Its pickle makes a file when it is loaded."""

    def __reduce__(self):
        return os.mkdir, ("ran",)


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    folder = tmp_path_factory.mktemp("kept")
    path = write_csv(folder / "people.csv", people(300))
    settings = {"label": "income", "sensitive": "sex", "clean_ratio": 0.9, "max_iter": 4, "test": 0.3}
    return tabular.train(path, **settings).save(folder / "run")


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A place to work in; if an attack ran, it left something there."""
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    assert not (tmp_path / "ran").exists()


def load(folder):
    file = folder / "model.skops"
    return skops.io.load(file, trusted=skops.io.get_untrusted_types(file=file))


def refused(folder, message=REFUSED):
    """Expect that the model in a folder is not loaded."""
    with pytest.raises(InvalidInputError, match=message):
        tabular.predict(folder, pd.DataFrame(people(40)))


def parts_of(path):
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def write_parts(path, parts):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in parts.items():
            archive.writestr(name, content)


CALL = {"__class__": "mkdir", "__module__": "os", "__id__": 1}
FUNCTION = CALL | {"__loader__": "FunctionNode"}


def node(module, name, loader, **parts):
    return {"__class__": name, "__module__": module, "__loader__": loader, **parts}


NODES = {
    "a function": FUNCTION,
    "a type": CALL | {"__loader__": "TypeNode"},
    "a partial": node("functools", "partial", "PartialNode",
                      content={"func": FUNCTION, "args": [], "kwds": {}, "namespace": {}}),
    "a method": node("builtins", "function", "MethodNode", content={"func": "mkdir", "obj": FUNCTION}),
    "an operator": node("operator", "call", "OperatorFuncNode", attrs=FUNCTION),
    "a reduced object": CALL | {"__loader__": "ReduceNode", "__reduce__": {"args": ["ran"]}},
    "an object of ours": CALL | {"__module__": "fairsieve.label_noise.weighting", "__loader__": "ObjectNode"},
    "an unknown loader": CALL | {"__loader__": "ExecNode"},
    "a loader that is none": CALL | {"__loader__": 7},
}  # fmt: skip


@pytest.mark.parametrize("where", ["the whole", "a parameter"])
@pytest.mark.parametrize("kind", NODES)
def test_a_model_with_something_to_call_is_refused(kept, here, kind, where):
    parts = parts_of(kept / "model.skops")
    schema = json.loads(parts["schema.json"])
    if where == "the whole":
        schema |= NODES[kind]
    else:
        schema["content"]["content"]["memory"] = NODES[kind]
    write_parts(here / "model.skops", parts | {"schema.json": json.dumps(schema)})
    refused(here)


@pytest.mark.parametrize(
    "content",
    [pickle.dumps(Attack()), b"#!/bin/sh\nmkdir ran\n", b"PK\x03\x04", b""],
    ids=["pickle", "script", "torn", "empty"],
)
def test_other_files_by_that_name_are_refused(here, content):
    (here / "model.skops").write_bytes(content)
    refused(here, r"or it is damaged .*: train again")


def test_a_pickle_in_the_place_of_an_array_is_refused(kept, here):
    parts = parts_of(kept / "model.skops")
    pickled = io.BytesIO()
    np.save(pickled, np.array([Attack()], dtype=object), allow_pickle=True)
    arrays = {name: pickled.getvalue() for name in parts if name.endswith(".npy")}
    assert arrays
    write_parts(here / "model.skops", parts | arrays)
    refused(here, "allow_pickle=False")


def test_bombs_are_refused_unread(kept, here, monkeypatch):
    parts = parts_of(kept / "model.skops")
    write_parts(here / "model.skops", parts | {"schema.json": b"[" * 100_000})  # nested, and deep
    refused(here)
    monkeypatch.setattr("fairsieve.tabular.model_files.LARGEST", 2**20)
    write_parts(here / "model.skops", parts | {"zeros.npy": bytes(2**21)})
    assert (here / "model.skops").stat().st_size < 2**16
    monkeypatch.setattr(zipfile.ZipFile, "read", lambda *_: pytest.fail("it was unpacked"))
    refused(here, r"it unpacks to more than 1,048,576 bytes")
    (here / "model.skops").write_bytes(bytes(2**21))
    refused(here)


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_members_that_unpack_without_a_bound_are_refused(kept, here, method):
    with zipfile.ZipFile(here / "model.skops", "w", method) as archive:
        for name, content in parts_of(kept / "model.skops").items():
            archive.writestr(name, content)
    refused(here, "neither stored nor deflated")


def test_an_archive_whose_sizes_lie_does_not_fill_the_memory(kept, here):
    """The member declares 1,000 bytes, with a checksum that fits them, and has a gigabyte."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    packed = b"".join(packer.compress(bytes(2**20)) for _ in range(1024)) + packer.flush()
    lie, checksum, name = 1000, zlib.crc32(bytes(1000)), b"zeros.npy"
    sizes = struct.pack("<III", checksum, len(packed), lie)
    local = b"PK\x03\x04" + struct.pack("<HHHHH", 20, 0, 8, 0, 0) + sizes
    local += struct.pack("<HH", len(name), 0) + name
    central = b"PK\x01\x02" + struct.pack("<HHHHHH", 20, 20, 0, 8, 0, 0) + sizes
    central += struct.pack("<HHHHHII", len(name), 0, 0, 0, 0, 0, 0) + name
    end = b"PK\x05\x06" + struct.pack("<HHHHIIH", 0, 0, 1, 1, len(central), len(local) + len(packed), 0)
    (here / "model.skops").write_bytes(local + packed + central + end)
    tracemalloc.start()
    try:
        refused(here)
        assert tracemalloc.get_traced_memory()[1] < 50 * 2**20
    finally:
        tracemalloc.stop()


def change_weights(weights):
    def change(model):
        model["model"].coef_ = weights(model["model"].coef_)
        return model

    return change


CHANGES = {
    "another classifier": lambda model: Pipeline([("prepare", model["prepare"]), ("model", DummyClassifier())]),
    "a cache": lambda model: Pipeline(model.steps, memory="ran"),
    "weights of another shape": change_weights(lambda weights: weights[:, 1:]),
    "weights that are not numbers": change_weights(lambda weights: weights * np.nan),
    "a step more": lambda model: Pipeline([model.steps[0], ("also", "passthrough"), model.steps[1]]),
}  # fmt: skip


@pytest.mark.parametrize("change", CHANGES)
def test_a_model_that_is_not_built_as_ours_is_refused(kept, here, change):
    skops.io.dump(CHANGES[change](load(kept)), here / "model.skops")
    refused(here, r"or it is damaged \(")


def test_a_model_that_breaks_while_predicting_is_told(kept, here):
    model = load(kept)
    del model["prepare"].mean_
    skops.io.dump(model, here / "model.skops")
    refused(here, "or it is damaged")


@pytest.mark.parametrize("where", ["coef_", "intercept_", "mean_", "scale_", "fill_"])
def test_a_model_with_a_number_that_is_not_finite_is_refused(kept, here, where):
    model = load(kept)
    getattr(model["model" if where in ("coef_", "intercept_") else "prepare"], where)[..., 0] = np.nan
    skops.io.dump(model, here / "model.skops")
    refused(here, f"its {where} holds a number that is not finite")


@pytest.fixture(scope="module", params=["lightgbm", "hist-gradient-boosting"])
def trees(request):
    if request.param == "lightgbm":
        pytest.importorskip("lightgbm")
    settings = {"model": request.param, "trees": 3, "max_iter": 2, "clean_ratio": 0.9, "test": 0.3}
    return tabular.train(pd.DataFrame(people(300)), label="income", sensitive="sex", **settings).model


@pytest.mark.parametrize("place", [0, 1, 2])
def test_damaged_trees_are_refused(trees, here, place):
    """Numbers that are not finite, and trees that know another number of columns."""
    model = copy.deepcopy(trees)
    if hasattr(model["model"], "trees"):
        changes = ("leaf_value=nan", "leaf_value=1e400", "max_feature_idx=1")
        old = re.sub("=.*", r"=\\S+", changes[place])
        model["model"].trees = re.sub(old, changes[place], model["model"].trees, count=1)
    elif place == 2:
        model["model"]._baseline_prediction = np.array([[np.nan]])
    else:
        model["model"]._predictors[0][0].nodes[("value", "num_threshold")[place]] = np.nan
    skops.io.dump(model, here / "model.skops")
    refused(here, "is not a model that fairsieve kept, or it is damaged")


def test_models_of_an_earlier_version_are_refused_in_words(kept, here):
    skops.io.dump(Pipeline([("prepare", ColumnTransformer([])), load(kept).steps[1]]), here / "model.skops")
    refused(here, r"its parts are not those of a model of this version\): train again")
    (here / "model.skops").unlink()
    refused(here, r"RUN must be a folder that fairsieve train made; .* has no model")
