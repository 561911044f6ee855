"""Model files and checkpoints from others: refused, and nothing in them runs."""

from __future__ import annotations

import io
import json
import os
import pickle
import struct
import tracemalloc
import zipfile
import zlib

import numpy as np
import pytest
import skops.io
import torch
from sklearn.dummy import DummyClassifier
from sklearn.pipeline import Pipeline
from tests.support.people import people, write_csv

from fairsieve import tabular
from fairsieve.adapters.transformers import _read_state
from fairsieve.errors import CheckpointError, InvalidInputError
from fairsieve.tabular import model_files as model_module
from fairsieve.tabular.model_files import read_model, write_model
from fairsieve.tabular.settings import TableSettings
from fairsieve.tabular.table_run import train_table

REFUSED = "is not a model that fairsieve kept, or it is damaged|must hold nothing but types of scikit-learn"


class Attack:
    """Its pickle makes a file when it is loaded."""

    def __reduce__(self):
        return os.mkdir, ("ran",)


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    folder = tmp_path_factory.mktemp("kept")
    run = train_table(
        TableSettings(
            write_csv(folder / "people.csv", people(300)), "income", ["sex"], clean_ratio=0.9, max_iter=4
        )
    )
    write_model(run.model, folder)
    return folder


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A place to work in; if an attack ran, it left something there."""
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    assert not (tmp_path / "ran").exists()


def parts_of(path):
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def write_parts(path, parts):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in parts.items():
            archive.writestr(name, content)


CALL = {"__class__": "mkdir", "__module__": "os", "__id__": 1}
NODES = {
    "a function": CALL | {"__loader__": "FunctionNode"},
    "a type": CALL | {"__loader__": "TypeNode"},
    "a partial": {
        "__class__": "partial",
        "__module__": "functools",
        "__loader__": "PartialNode",
        "content": {"func": CALL | {"__loader__": "FunctionNode"}, "args": [], "kwds": {}, "namespace": {}},
    },
    "a method": {
        "__class__": "function",
        "__module__": "builtins",
        "__loader__": "MethodNode",
        "content": {"func": "mkdir", "obj": CALL | {"__loader__": "FunctionNode"}},
    },
    "an operator": {
        "__class__": "call",
        "__module__": "operator",
        "__loader__": "OperatorFuncNode",
        "attrs": CALL | {"__loader__": "FunctionNode"},
    },
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
    with pytest.raises(InvalidInputError, match=REFUSED):
        read_model(here)


@pytest.mark.parametrize(
    "content",
    [
        pickle.dumps(Attack()),
        b"#!/bin/sh\nmkdir ran\n",
        b"PK\x03\x04",
        b"",
    ],
    ids=["pickle", "script", "torn", "empty"],
)
def test_other_files_by_that_name_are_refused(here, content):
    (here / "model.skops").write_bytes(content)
    with pytest.raises(InvalidInputError, match=r"or it is damaged .*: train again"):
        read_model(here)


def test_a_pickle_in_the_place_of_an_array_is_refused(kept, here):
    parts = parts_of(kept / "model.skops")
    pickled = io.BytesIO()
    np.save(pickled, np.array([Attack()], dtype=object), allow_pickle=True)
    arrays = {name: pickled.getvalue() for name in parts if name.endswith(".npy")}
    assert arrays
    write_parts(here / "model.skops", parts | arrays)
    with pytest.raises(InvalidInputError, match="allow_pickle=False"):
        read_model(here)


def test_bombs_are_refused_unread(kept, here, monkeypatch):
    parts = parts_of(kept / "model.skops")
    write_parts(here / "model.skops", parts | {"schema.json": b"[" * 100_000})  # nested, and deep
    with pytest.raises(InvalidInputError, match=REFUSED):
        read_model(here)
    monkeypatch.setattr(model_module, "LARGEST", 2**20)
    write_parts(here / "model.skops", parts | {"zeros.npy": bytes(2**21)})
    assert (here / "model.skops").stat().st_size < 2**16
    monkeypatch.setattr(zipfile.ZipFile, "read", lambda *_: pytest.fail("it was unpacked"))
    with pytest.raises(InvalidInputError, match=r"it unpacks to more than 1,048,576 bytes"):
        read_model(here)
    (here / "model.skops").write_bytes(bytes(2**21))
    with pytest.raises(InvalidInputError, match=REFUSED):
        read_model(here)


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_members_that_unpack_without_a_bound_are_refused(kept, here, method):
    with zipfile.ZipFile(here / "model.skops", "w", method) as archive:
        for name, content in parts_of(kept / "model.skops").items():
            archive.writestr(name, content)
    with pytest.raises(InvalidInputError, match="neither stored nor deflated"):
        read_model(here)


def test_an_archive_whose_sizes_lie_does_not_fill_the_memory(kept, here):
    """The member declares 1,000 bytes, with a checksum that fits them, and has a gigabyte."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    packed = b"".join(packer.compress(bytes(2**20)) for _ in range(1024)) + packer.flush()
    lie, checksum, name = 1000, zlib.crc32(bytes(1000)), b"zeros.npy"
    sizes = struct.pack("<III", checksum, len(packed), lie)
    local = (
        b"PK\x03\x04"
        + struct.pack("<HHHHH", 20, 0, 8, 0, 0)
        + sizes
        + struct.pack("<HH", len(name), 0)
        + name
    )
    central = b"PK\x01\x02" + struct.pack("<HHHHHH", 20, 20, 0, 8, 0, 0) + sizes
    central += struct.pack("<HHHHHII", len(name), 0, 0, 0, 0, 0, 0) + name
    end = b"PK\x05\x06" + struct.pack("<HHHHIIH", 0, 0, 1, 1, len(central), len(local) + len(packed), 0)
    (here / "model.skops").write_bytes(local + packed + central + end)
    tracemalloc.start()
    try:
        with pytest.raises(InvalidInputError, match=REFUSED):
            read_model(here)
        assert tracemalloc.get_traced_memory()[1] < 50 * 2**20
    finally:
        tracemalloc.stop()


def with_other_end(model):
    return Pipeline([("prepare", model["prepare"]), ("model", DummyClassifier())])


def with_a_cache(model):
    return Pipeline(model.steps, memory="ran")


def with_wrong_weights(model):
    model["model"].coef_ = model["model"].coef_[:, 1:]
    return model


def with_no_numbers(model):
    model["model"].coef_ = model["model"].coef_ * np.nan
    return model


def with_a_step_more(model):
    return Pipeline([*model.steps[:1], ("also", "passthrough"), *model.steps[1:]])


@pytest.mark.parametrize(
    "change",
    [with_other_end, with_a_cache, with_wrong_weights, with_no_numbers, with_a_step_more],
    ids=lambda change: change.__name__,
)
def test_a_model_that_is_not_built_as_ours_is_refused(kept, here, change):
    skops.io.dump(change(read_model(kept)), here / "model.skops")
    with pytest.raises(InvalidInputError, match=r"or it is damaged \(it"):
        read_model(here)


def test_a_model_that_breaks_while_predicting_is_told(kept, here):
    model = read_model(kept)
    del model["prepare"].mean_
    skops.io.dump(model, here / "model.skops")
    with pytest.raises(InvalidInputError, match="or it is damaged"):
        tabular.predict(here, kept / "people.csv")


@pytest.mark.parametrize("hostile", [{"parts": [], "is_observed": Attack()}, Attack(), np.array([1, 2])])
def test_a_trainers_state_is_numbers_and_tensors_only(here, hostile):
    torch.save(hostile, here / "fairsieve.pt")
    with pytest.raises(CheckpointError, match="must hold numbers and tensors only, as fairsieve writes it"):
        _read_state(here / "fairsieve.pt")
    (here / "fairsieve.pt").write_bytes(pickle.dumps(hostile))
    with pytest.raises(CheckpointError, match="must hold numbers and tensors only"):
        _read_state(here / "fairsieve.pt")
