"""Checkpoints: the training of a module that was stopped goes on to the same bits."""

import errno
import hashlib
import io
import os
import pickle
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch
from tests.support.refusals import refused
from tests.support.stopping import SHORT, Killed, everything, resumed_epochs, stop_after

from fairsieve import fit
from fairsieve.data import make_synthetic
from fairsieve.errors import CheckpointError, CheckpointWarning, InvalidInputError


@pytest.fixture(autouse=True)
def hurried(monkeypatch):
    """Skip fsync: these files need not survive a power failure."""
    monkeypatch.setattr(os, "fsync", lambda handle: None)


def network():
    torch.manual_seed(3)
    layers = torch.nn.Linear(3, 6), torch.nn.BatchNorm1d(6), torch.nn.Dropout(0.4), torch.nn.Linear(6, 2)
    return torch.nn.Sequential(*layers)


def train(data, folder, **change):
    return fit(network(), data, **(SHORT | {"checkpoint_dir": folder, "checkpoint_every": 2} | change))


def pack(content):
    """Write a checkpoint as it is in its file: a checksum, and what torch stores."""
    buffer = io.BytesIO()
    torch.save(content, buffer)
    return hashlib.sha256(buffer.getvalue()).digest() + buffer.getvalue()


def names(folder):
    return sorted(path.name for path in folder.iterdir())


@pytest.fixture(scope="module")
def whole(noisy):
    return everything(fit(network(), noisy, **SHORT))


@pytest.mark.parametrize("stop", [2, 5, 11])
@pytest.mark.parametrize("every", [1, 3])
def test_a_stopped_training_ends_with_the_bits_of_an_unstopped_one(noisy, whole, tmp_path, stop, every):
    with stop_after(stop), pytest.raises(Killed):
        train(noisy, tmp_path, checkpoint_every=every)
    with resumed_epochs() as begun:
        assert everything(train(noisy, tmp_path, checkpoint_every=every)) == whole
    assert begun == ([stop // every * every] if stop >= every else [])
    assert everything(train(noisy, tmp_path, checkpoint_every=every)) == whole
    assert names(tmp_path) == [f"{number:06d}.checkpoint" for number in (12 - every, 12)]


@pytest.mark.parametrize("optimizer", [
    lambda parameters: torch.optim.SGD(parameters, lr=0.1, momentum=0.9, nesterov=True),
    lambda parameters: torch.optim.AdamW(parameters, lr=0.01, amsgrad=True),
    lambda parameters: torch.optim.RMSprop(parameters, lr=0.01, centered=True),
    lambda parameters: torch.optim.Adafactor(parameters, lr=0.01),
], ids=["sgd", "adamw", "rmsprop", "adafactor"])  # fmt: skip
def test_other_optimisers_resume(noisy, tmp_path, optimizer):
    expected = everything(fit(network(), noisy, optimizer=optimizer, **SHORT))
    with stop_after(7), pytest.raises(Killed):
        train(noisy, tmp_path, optimizer=optimizer)
    assert everything(train(noisy, tmp_path, optimizer=optimizer)) == expected


@pytest.mark.parametrize("damage", ["cut", "a bit", "empty", "noise"])
def test_a_damaged_checkpoint_is_named_and_the_one_before_it_is_used(noisy, whole, tmp_path, damage):
    with stop_after(9), pytest.raises(Killed):
        train(noisy, tmp_path)
    last = tmp_path / "000008.checkpoint"
    content = bytearray(last.read_bytes())
    content[len(content) // 2] ^= 1
    changed = {"cut": content[:-5], "a bit": content, "empty": b"", "noise": os.urandom(500)}
    last.write_bytes(changed[damage])
    with resumed_epochs() as begun, pytest.warns(CheckpointWarning, match=r"000008.checkpoint is not used"):
        assert everything(train(noisy, tmp_path)) == whole
    assert begun == [6]


def test_a_checkpoint_that_could_run_code_is_refused(noisy, whole, tmp_path):
    class Code:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "it ran"),)

    (tmp_path / "000008.checkpoint").write_bytes(pack({"training": {}, "state": Code()}))
    with pytest.warns(CheckpointWarning, match=r"000008.checkpoint is not used: torch cannot load it"):
        assert everything(train(noisy, tmp_path)) == whole
    assert not (tmp_path / "it ran").exists()


def test_a_checkpoint_whose_state_does_not_fit_is_an_error(noisy, tmp_path):
    train(noisy, tmp_path)
    path = tmp_path / "000012.checkpoint"
    content = torch.load(io.BytesIO(path.read_bytes()[32:]))
    del content["state"]["optimizer"]
    path.write_bytes(pack(content))
    with pytest.raises(CheckpointError, match=r"checkpoints that fit the model; KeyError\('optimizer'\)"):
        train(noisy, tmp_path)


@pytest.mark.parametrize(("change", "message"), [
    ({"learning_rate": 0.01}, r"learning_rate was 0.0005 and is 0.01"),
    ({"seed": 1}, "seed was 0 and is 1"),
    ({"sample_weight": np.arange(1, 201)}, "sample_weight was None and is"),
    ({"method": "itlm"}, "method was .*sample-selection.* and is .*itlm"),
])  # fmt: skip
def test_checkpoints_of_another_training_are_an_error(noisy, tmp_path, change, message):
    train(noisy, tmp_path)
    refused(f"must hold checkpoints of this training.*{message}", train, noisy, tmp_path, **change)
    refused("another: data was", train, make_synthetic(200, seed=1), tmp_path)


def test_a_full_disk_gives_one_warning_and_does_not_stop_training(noisy, whole, tmp_path, monkeypatch):
    written = []

    def fsync(handle):
        written.append(handle)
        if len(written) in (2, 3):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", fsync)
    with pytest.warns(CheckpointWarning, match=r"000004.* could not be written \(No space left") as told:
        assert everything(train(noisy, tmp_path)) == whole
    assert len(told) == 1
    assert names(tmp_path) == ["000010.checkpoint", "000012.checkpoint"]


def test_bad_input_is_named_in_the_error(noisy, tmp_path):
    (tmp_path / "file").write_text("")
    refused(r"checkpoint_dir must be a folder that can be written; .*file", train, noisy, tmp_path / "file")
    told = "checkpoint_every must be a whole number of at least 1; got 0"
    refused(told, train, noisy, tmp_path / "new", checkpoint_every=0)
    with pytest.raises(InvalidInputError, match="checkpoint_dir must be None for the linear model"):
        fit(None, noisy, checkpoint_dir=tmp_path / "new", **SHORT)


def test_an_optimiser_state_that_cannot_be_stored_is_named(noisy, tmp_path):
    class Odd(torch.optim.SGD):
        def state_dict(self):
            return super().state_dict() | {"odd": Path("x")}

    refused(r"numbers, text and tensors only.*use another optimizer", train, noisy, tmp_path, optimizer=Odd)


KILLED = """
import sys, pickle, torch
data, network, options = pickle.load(open(sys.argv[1], "rb"))
torch.set_num_threads(1)
from fairsieve import fit
fit(network, data, checkpoint_dir=sys.argv[2], checkpoint_every=1, **options)
"""


@pytest.mark.skipif(os.name != "posix", reason="kills are signals")
def test_a_training_killed_at_any_moment_ends_with_the_same_bits(noisy, tmp_path):
    options = SHORT | {"epochs": 60}
    given, folder = tmp_path / "given", tmp_path / "kept"
    given.write_bytes(pickle.dumps((noisy, network(), options)))
    with subprocess.Popen([sys.executable, "-c", KILLED, given, folder]) as process:
        while len(list(folder.glob("*.checkpoint"))) < 2 and process.poll() is None:
            time.sleep(0.01)
        process.kill()
    torch.set_num_threads(1)
    with resumed_epochs() as begun:
        again = fit(network(), noisy, checkpoint_dir=folder, checkpoint_every=1, **options)
    assert begun[0] > 0
    assert all(path.suffix == ".checkpoint" for path in folder.iterdir())
    assert everything(again) == everything(fit(network(), noisy, **options))
