"""Checkpoints: a training that was stopped goes on to the same bits."""

from __future__ import annotations

import errno
import json
import os

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.stopping import (
    ENGINES,
    SHORT,
    Killed,
    everything,
    names,
    resume,
    stop_after,
    stopped_then_resumed,
)

from fairsieve import CheckpointWarning, FairRobustClassifier, InvalidInputError, Samples, fit, fit_seeds
from fairsieve.training import linear_trainer
from fairsieve.training.checkpoint import store as checkpoints
from fairsieve.training.checkpoint.optimizer_state import _unpack, pack, tensor_array
from fairsieve.training.checkpoint.store import CheckpointFolder, _read_checkpoint
from fairsieve.training.linear_trainer import LinearTrainer

pytestmark = pytest.mark.usefixtures("hurried")


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("watched", [True, False])
@pytest.mark.parametrize("stop", [2, 4, 5, 8, 11])
@pytest.mark.parametrize("every", [1, 3])
def test_a_stopped_training_ends_with_the_bits_of_an_unstopped_one(
    noisy, tmp_path, monkeypatch, engine, watched, stop, every
):
    options = SHORT | {"engine": engine, "watched": watched, "evaluation": noisy}
    whole = fit(None, noisy, **options)
    train = lambda: fit(None, noisy, checkpoint_dir=tmp_path, checkpoint_every=every, **options)  # noqa: E731
    resumed, begun = stopped_then_resumed(monkeypatch, stop, train)
    assert begun == [stop // every * every]
    assert everything(resumed) == everything(whole)
    assert everything(train()) == everything(whole)
    assert names(tmp_path) == [
        f"{number:06d}.{ending}" for number in (12 - every, 12) for ending in ("json", "safetensors")
    ]


def dropping(generator=None):
    torch.manual_seed(3)
    return torch.nn.Sequential(
        torch.nn.Linear(2, 6), torch.nn.BatchNorm1d(6), torch.nn.Dropout(0.4), torch.nn.Linear(6, 2)
    )


@pytest.mark.parametrize(
    "optimizer",
    [
        None,
        lambda parameters: torch.optim.SGD(parameters, lr=0.1, momentum=0.9, nesterov=True),
        lambda parameters: torch.optim.AdamW(parameters, lr=0.01, amsgrad=True),
        lambda parameters: torch.optim.RMSprop(parameters, lr=0.01, centered=True),
        lambda parameters: torch.optim.Adafactor(parameters, lr=0.01),
    ],
    ids=["adam", "sgd", "adamw", "rmsprop", "adafactor"],
)
def test_dropout_buffers_and_optimisers_resume(noisy, tmp_path, monkeypatch, optimizer):
    data = Samples(noisy.features[:, :2], noisy.labels, noisy.groups)
    options = SHORT | {"optimizer": optimizer}
    whole = fit(dropping(), data, **options)
    train = lambda: fit(dropping(), data, checkpoint_dir=tmp_path, checkpoint_every=2, **options)  # noqa: E731
    resumed, begun = stopped_then_resumed(monkeypatch, 7, train)
    assert begun == [6]
    assert everything(resumed) == everything(whole)


@pytest.mark.parametrize("engine", ENGINES)
def test_each_of_several_seeds_resumes(noisy, tmp_path, monkeypatch, engine):
    options = SHORT | {"engine": engine, "seeds": [4, 2]}
    whole = fit_seeds(None, noisy, **options)
    train = lambda: fit_seeds(None, noisy, checkpoint_dir=tmp_path, checkpoint_every=2, **options)  # noqa: E731
    resumed, begun = stopped_then_resumed(monkeypatch, 6, train)
    assert max(begun) == 6
    assert [everything(one) for one in resumed] == [everything(one) for one in whole]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["seed-2", "seed-4"]
    with pytest.raises(InvalidInputError, match=r"seeds must be different.*\[1, 1\]"):
        fit_seeds(None, noisy, checkpoint_dir=tmp_path, seeds=[1, 1], **SHORT)


def test_an_interrupted_training_that_was_resumed_has_the_same_best_state(noisy, tmp_path, monkeypatch):
    train = LinearTrainer.train

    def interrupted(self, batches):
        if self.done == 9:
            raise KeyboardInterrupt
        train(self, batches)

    monkeypatch.setattr(LinearTrainer, "train", interrupted)
    monkeypatch.setattr(linear_trainer, "LOADING", np.inf)  # compiled epochs do not call train
    whole = fit(None, noisy, **SHORT)
    go = lambda: fit(None, noisy, checkpoint_dir=tmp_path, checkpoint_every=1, **SHORT)  # noqa: E731
    resumed, begun = stopped_then_resumed(monkeypatch, 7, go)
    assert whole.interrupted
    assert begun == [7]
    assert everything(resumed) == everything(whole)


def test_other_first_weights_give_a_warning_and_the_checkpoint_goes_on(noisy, tmp_path, monkeypatch):
    first, second = torch.nn.Linear(3, 2), torch.nn.Linear(3, 2)
    whole = fit(first, noisy, **SHORT)
    with monkeypatch.context() as patch:
        stop_after(patch, 6)
        with pytest.raises(Killed):
            fit(first, noisy, checkpoint_dir=tmp_path, checkpoint_every=1, **SHORT)
    with pytest.warns(CheckpointWarning, match="began with other first weights"):
        resumed = fit(second, noisy, checkpoint_dir=tmp_path, checkpoint_every=1, **SHORT)
    assert everything(resumed) == everything(whole)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("watched", [True, False])
def test_a_full_disk_gives_one_warning_and_does_not_stop_training(
    noisy, tmp_path, monkeypatch, engine, watched
):
    options = SHORT | {"engine": engine, "watched": watched}
    whole = everything(fit(None, noisy, **options))
    write_whole = checkpoints.write_whole
    full = {"000004.json", "000006.safetensors", "000012.json"}

    def writing(target, content):
        if target.name in full:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        write_whole(target, content)

    with monkeypatch.context() as patch:
        patch.setattr(checkpoints, "write_whole", writing)
        with pytest.warns(CheckpointWarning, match=r"could not be written.*No space left") as told:
            fitted = fit(None, noisy, checkpoint_dir=tmp_path, checkpoint_every=2, **options)
    assert len(told) == 1
    assert everything(fitted) == whole
    assert sorted(path.name for path in tmp_path.glob("*.json")) == ["000008.json", "000010.json"]
    assert resume(noisy, tmp_path, options, "000012") == whole


def test_a_disk_that_is_full_from_the_start_gives_one_warning(noisy, tmp_path, monkeypatch):
    write_whole, calls = checkpoints.write_whole, []

    def writing(target, content):
        calls.append(target)
        if len(calls) < 4:  # then there is room again
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        write_whole(target, content)

    monkeypatch.setattr(checkpoints, "write_whole", writing)
    with pytest.warns(CheckpointWarning, match=r"could not be written.*No space left.*Make room") as told:
        fit(None, noisy, checkpoint_dir=tmp_path / "new", checkpoint_every=2, **SHORT)
    assert len(told) == 1
    assert names(tmp_path / "new")[-1] == "000012.safetensors"
    assert (tmp_path / "new" / checkpoints.MARK).exists()


@pytest.mark.parametrize("fails", [checkpoints.MARK, "000012.json"], ids=["at the start", "at the end"])
def test_a_full_disk_gives_one_warning_for_all_models_of_a_fit(noisy, tmp_path, monkeypatch, fails):
    write_whole = checkpoints.write_whole

    def writing(target, content):
        if target.name == fails:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        write_whole(target, content)

    monkeypatch.setattr(checkpoints, "write_whole", writing)
    with pytest.warns(CheckpointWarning, match=r"seed-[01] \(No space left") as told:
        fit_seeds(None, noisy, seeds=[0, 1], checkpoint_dir=tmp_path / "seeds", **SHORT)
    assert len(told) == 1
    folder, options = tmp_path / "models", {"solver": "adam", "clean_ratio": 0.9, "random_state": 0}
    model = FairRobustClassifier(epochs=12, checkpoint_dir=folder, **options)
    with pytest.warns(CheckpointWarning, match=r"fair \(No space left") as told:
        model.fit(noisy.features, noisy.labels, sensitive_features=noisy.groups)
    assert len(told) == 1  # nothing is remembered from the fit before
    assert [path.name for path in sorted(folder.iterdir())] == ["fair", "plain"]


def test_a_folder_that_cannot_be_made_is_an_error(noisy, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(
        InvalidInputError, match=r"checkpoint_dir must be a folder that can be written; .*file"
    ):
        fit(None, noisy, checkpoint_dir=tmp_path / "file", **SHORT)
    with pytest.raises(
        InvalidInputError, match="checkpoint_every must be a whole number of at least 1; got 0"
    ):
        fit(None, noisy, checkpoint_dir=tmp_path / "new", checkpoint_every=0, **SHORT)


def test_a_folder_with_files_of_somebody_else_is_refused(noisy, tmp_path):
    (tmp_path / "000001.json").write_text("an annotation of a picture")
    with pytest.raises(InvalidInputError, match=r"must be new, empty, or made by fairsieve.*000001.json"):
        fit(None, noisy, checkpoint_dir=tmp_path, **SHORT)
    assert names(tmp_path) == ["000001.json"]


def test_an_optimiser_state_that_cannot_be_stored_is_named(noisy, tmp_path):
    class Odd(torch.optim.SGD):
        def state_dict(self):
            return super().state_dict() | {"odd": {1, 2}}

    with pytest.raises(InvalidInputError, match=r"numbers, text and tensors only; optimizer.odd is a set"):
        fit(torch.nn.Linear(3, 2), noisy, checkpoint_dir=tmp_path, optimizer=Odd, **SHORT)


@settings(max_examples=60)
@given(
    st.recursive(
        st.none()
        | st.booleans()
        | st.integers()
        | st.floats()
        | st.text()
        | st.sampled_from([torch.ones(2), torch.tensor(3), torch.ones(2).bfloat16()]),
        lambda parts: (
            st.lists(parts) | st.lists(parts).map(tuple) | st.dictionaries(st.integers() | st.text(), parts)
        ),
        max_leaves=10,
    )
)
def test_optimiser_states_survive_packing_and_unpacking(value):
    tensors = {}
    packed = json.loads(json.dumps(pack(value, "x", tensors), allow_nan=False))
    arrays = {name: tensor_array(tensor) for name, tensor in tensors.items()}
    assert repr(_unpack(packed, arrays)) == repr(value)


def test_the_last_two_checkpoints_are_kept(tmp_path):
    kept = CheckpointFolder(tmp_path, {"seed": 1})
    for number in (3, 7, 9, 1_000_000, 2_000_000):
        kept.write(number, {}, {"a": np.array(number)})
    assert kept.numbers() == [1_000_000, 2_000_000]
    assert int(_read_checkpoint(tmp_path, 2_000_000).arrays["a"]) == 2_000_000
