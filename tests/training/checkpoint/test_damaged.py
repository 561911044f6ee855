"""Checkpoints that are damaged, hostile or another training's are refused by name."""

from __future__ import annotations

import hashlib
import json
import os
import struct

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.stopping import ENGINES, SHORT, Killed, everything, names, resume, stop_after

from fairsieve import CheckpointError, InvalidInputError, fit
from fairsieve.data import make_synthetic
from fairsieve.training.checkpoint import store as checkpoints
from fairsieve.training.checkpoint.store import _read_checkpoint, _signed

pytestmark = pytest.mark.usefixtures("hurried")


@pytest.fixture(scope="module", params=ENGINES)
def stopped(request, noisy, tmp_path_factory):
    """Two checkpoints, of epochs 8 and 10, as files; and the training's end."""
    options, folder = SHORT | {"engine": request.param}, tmp_path_factory.mktemp("stopped")
    with pytest.MonkeyPatch.context() as patch:
        stop_after(patch, 11)
        with pytest.raises(Killed):
            fit(None, noisy, checkpoint_dir=folder, checkpoint_every=2, **options)
    files = {path.name: path.read_bytes() for path in sorted(folder.iterdir())}
    assert names(folder) == ["000008.json", "000008.safetensors", "000010.json", "000010.safetensors"]
    return files, options, everything(fit(None, noisy, **options))


@settings(max_examples=25)
@given(st.data())
def test_a_damaged_checkpoint_is_named_and_the_one_before_is_used(stopped, noisy, tmp_path_factory, data):
    files, options, end = stopped
    name = data.draw(st.sampled_from(["000010.json", "000010.safetensors"]))
    content, kind = (
        bytearray(files[name]),
        data.draw(st.sampled_from(["cut", "flip", "zeros", "longer", "gone"])),
    )
    place = data.draw(st.integers(0, len(content) - 1))
    if kind == "cut":
        del content[place:]
    elif kind == "flip":
        content[place] ^= 1 << data.draw(st.integers(0, 7))
    elif kind == "zeros":
        content[place:] = bytes(len(content) - place + 1)
    else:
        content += b" "
    folder = tmp_path_factory.mktemp("damaged")
    for other in files:
        (folder / other).write_bytes(files[other])
    (folder / name).write_bytes(content)
    if kind == "gone":
        (folder / name).unlink()
    assert resume(noisy, folder, options, "000010") == end
    assert names(folder) == ["000010.json", "000010.safetensors", "000012.json", "000012.safetensors"]


def test_training_starts_from_the_beginning_when_all_are_damaged(stopped, noisy, tmp_path):
    files, options, end = stopped
    for name, content in files.items():
        (tmp_path / name).write_bytes(content[:-1])  # the mark too
    assert resume(noisy, tmp_path, options, "000010", "000008") == end


def test_half_written_and_unknown_files_do_not_matter(stopped, noisy, tmp_path):
    files, options, end = stopped
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    (tmp_path / ".000012.json.abc.part").write_bytes(b"half")
    (tmp_path / "notes.txt").write_text("mine")
    assert resume(noisy, tmp_path, options) == end
    assert (tmp_path / "notes.txt").exists()
    assert not list(tmp_path.glob(".*"))


def test_links_and_huge_files_are_refused_without_reading(stopped, noisy, tmp_path):
    files, options, end = stopped
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    (tmp_path / "000010.safetensors").unlink()
    (tmp_path / "000010.safetensors").symlink_to("/dev/zero")
    os.mkfifo(tmp_path / "000011.json")
    with (tmp_path / "000009.json").open("wb") as sparse:
        sparse.truncate(2**40)
    os.truncate(tmp_path / "000008.safetensors", 2**40)
    assert resume(noisy, tmp_path, options, "000011", "000010", "000009", "000008") == end
    with pytest.raises(CheckpointError, match="at most 1,000 bytes"):
        _read_checkpoint(tmp_path, 12, largest=1000)


def forged(folder, number, tensors, change=lambda described: None):
    """A checkpoint whose checksums are right, whatever it holds."""
    path = folder / f"{number:06d}.json"
    described = json.loads(path.read_bytes())
    del described["sha256"]
    described["tensors_sha256"] = hashlib.sha256(tensors).hexdigest()
    change(described)
    (folder / f"{number:06d}.safetensors").write_bytes(tensors)
    path.write_bytes(_signed(described))


def raw(header, body=b"", length=None):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text) if length is None else length) + text + body


ONE = {"dtype": "F64", "shape": [1], "data_offsets": [0, 8]}
HOSTILE = {
    "nothing": b"",
    "absurd header length": raw({"ratios": ONE}, bytes(8), length=2**63),
    "header longer than the file": raw({"ratios": ONE}, bytes(8), length=10**6),
    "header that is no JSON": raw(b"{" * 100),
    "header nested deeply": raw(b'{"a":' * 100_000),
    "overlapping tensors": raw({"ratios": ONE, "selected": ONE}, bytes(8)),
    "offsets that go back": raw({"ratios": ONE | {"data_offsets": [8, 0]}}, bytes(8)),
    "offsets outside": raw({"ratios": ONE | {"data_offsets": [0, 2**60]}}, bytes(8)),
    "negative offsets": raw({"ratios": ONE | {"data_offsets": [-8, 0]}}, bytes(8)),
    "a hole": raw({"ratios": ONE | {"data_offsets": [8, 16]}}, bytes(16)),
    "huge shape": raw({"ratios": ONE | {"shape": [2**40, 2**40]}}, bytes(8)),
    "unknown type": raw({"ratios": ONE | {"dtype": "OBJECT"}}, bytes(8)),
    "a type of another size": raw({"ratios": ONE | {"dtype": "F16"}}, bytes(8)),
    "a path for a name": raw({"../../etc/passwd": ONE}, bytes(8)),
    "a pickle": b"\x80\x04\x95\x1d\x00\x00\x00\x00\x00\x00\x00\x8c\x05posix\x94\x8c\x06system\x94\x93\x94.",
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_hostile_arrays_are_refused_by_name(stopped, noisy, tmp_path, kind):
    files, options, end = stopped
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    forged(tmp_path, 10, HOSTILE[kind])
    assert resume(noisy, tmp_path, options, "000010") == end


def other_type(tensors):
    tensors["ratios"] = tensors["ratios"].astype(np.float32)


def other_shape(tensors):
    tensors["selected"] = tensors["selected"][:-1]


def one_less(tensors):
    del tensors["selected"]


def one_more(tensors):
    tensors["more"] = np.ones(1)


def not_numbers(tensors):
    tensors["ratios"][:] = float("nan")


def outside(tensors):
    tensors["ratios"][0] = [5.0, -4.0]


def no_average(tensors):
    for name in [name for name in tensors if name.startswith("average.")]:
        del tensors[name]


def negative_steps(tensors):
    name = "adam.steps" if "adam.steps" in tensors else "optimizer.state.0.step"
    tensors[name] -= 2**40


def other_moments(tensors):
    name = "adam.first" if "adam.first" in tensors else "optimizer.state.0.exp_avg"
    tensors[name] = np.zeros(1000, tensors[name].dtype)


def other_random_numbers(tensors):
    if "random.cpu" in tensors:
        tensors["random.cpu"] = np.full_like(tensors["random.cpu"], 255)
    else:
        one_more(tensors)


CHANGES = [
    other_type,
    other_shape,
    one_less,
    one_more,
    not_numbers,
    outside,
    no_average,
    negative_steps,
    other_moments,
    other_random_numbers,
]


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_arrays_that_do_not_fit_the_training_are_refused(stopped, noisy, tmp_path, change):
    files, options, end = stopped
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    tensors = _read_checkpoint(tmp_path, 10).arrays
    change(tensors)
    forged(tmp_path, 10, checkpoints.save(tensors))
    assert resume(noisy, tmp_path, options, "000010") == end


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("number", 8),
        ("training", "x"),
        ("values", []),
        ("values", {}),
        ("values", {"best_merit": "high", "optimizer": {"tensor": "../x"}}),
        ("values", {"best_merit": 0.5, "optimizer": {"dict": [["state", {"dict": [[99, {"dict": []}]]}]]}}),
        ("values", {"best_merit": True, "optimizer": [[]] * 3}),
    ],
)
def test_descriptions_that_do_not_fit_are_refused(stopped, noisy, tmp_path, field, value):
    files, options, end = stopped
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    if options["engine"] == "compiled" and field == "values" and "best_merit" in value:
        value = value | {"best_merit": "high"}
    forged(tmp_path, 10, files["000010.safetensors"], lambda described: described.update({field: value}))
    assert resume(noisy, tmp_path, options, "000010") == end


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"[]",
        b"{}",
        b"null",
        b"[" * 10**6,
        b'{"sha256": 3}',
        b"\xff",
        b"9" * 10**5,
        b'{"sha256": "x", "a": NaN}',
    ],
)
def test_hostile_json_is_refused(stopped, noisy, tmp_path, content):
    files, options, end = stopped
    for name in files:
        (tmp_path / name).write_bytes(files[name])
    (tmp_path / "000010.json").write_bytes(content)
    assert resume(noisy, tmp_path, options, "000010") == end


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"learning_rate": 0.1}, "learning_rate was 0.0005 and is 0.1"),
        ({"epochs": 20}, "epochs was 12 and is 20"),
        ({"seed": 5}, "seed was 0 and is 5"),
        ({"method": "itlm"}, "method was"),
        ({"sample_weight": np.linspace(1, 2, 200)}, "sample_weight was None and is '"),
        ({"data": make_synthetic(200, seed=1)}, "data was '"),
        ({"evaluation": make_synthetic(200, seed=1)}, "evaluation was None and is '"),
        ({"optimizer": torch.optim.SGD}, "optimizer was None and is 'torch.optim.sgd.SGD'"),
        ({"model": torch.nn.Linear(3, 2)}, "model was 'LogisticRegression .*' and is 'Linear"),
    ],
)
def test_a_checkpoint_of_another_training_is_an_error(stopped, noisy, tmp_path, change, field):
    files, options, _ = stopped
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    wanted = {"model": None, "data": noisy} | options | change
    if not {"model", "optimizer"}.isdisjoint(change):
        wanted["engine"] = "autograd"
    with pytest.raises(InvalidInputError, match=rf"must hold checkpoints of this training.*{field}"):
        fit(checkpoint_dir=tmp_path, **wanted)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == files


def test_a_later_format_is_an_error(stopped, noisy, tmp_path):
    files, options, _ = stopped
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    forged(tmp_path, 10, files["000010.safetensors"], lambda described: described.update(format=3))
    with pytest.raises(InvalidInputError, match=r"format 2; .*000010.json has format 3"):
        fit(None, noisy, checkpoint_dir=tmp_path, **options)
