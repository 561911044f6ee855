"""The Lightning callback on the real library, through the example."""

from functools import partial

import numpy as np
import pytest
import torch
from examples import lightning_trainer
from examples.lightning_trainer import Classifier, train
from lightning.pytorch import Trainer
from lightning.pytorch.callbacks import ModelCheckpoint
from tests.support.refusals import refused
from torch.utils.data import DataLoader, TensorDataset

from fairsieve.adapters.lightning import FairRobustCallback
from fairsieve.adapters.sieve import Sieve
from fairsieve.errors import FairsieveWarning

pytestmark = pytest.mark.filterwarnings("ignore")  # Lightning's advice on workers and logging

QUIET = {"logger": False, "enable_progress_bar": False, "enable_model_summary": False}
UNSAVED = QUIET | {"enable_checkpointing": False}


def test_trains_and_resumes_identically(tmp_path):
    options = {**QUIET, "enable_checkpointing": False}
    whole, sieve, trainer = train(epochs=8, **options)
    assert trainer.global_step == 8 * 20  # epochs of equal length, whatever is selected
    sampler = sieve.sieve.sampler
    assert sampler.epoch == 8
    assert 0 < len(sampler.indices) <= 1800
    assert sieve.sieve.is_observed
    assert whole["accuracy"] > 0.6
    _, _, half = train(epochs=8, stop=6, **options)
    half.save_checkpoint(tmp_path / "half.ckpt")
    again, resumed, trainer = train(epochs=8, resume=tmp_path / "half.ckpt", **options)
    assert trainer.global_step == 8 * 20
    assert resumed.sieve.sampler.indices.tolist() == sampler.indices.tolist()
    assert again == whole


def test_resumes_inside_an_epoch(tmp_path):
    options = {"epochs": 8, **QUIET}
    saving = ModelCheckpoint(tmp_path, "{step}", every_n_train_steps=127, save_on_train_epoch_end=False)
    whole, sieve, _ = train(callbacks=[saving], **options)
    again, resumed, trainer = train(resume=tmp_path / "step=127.ckpt", enable_checkpointing=False, **options)
    assert trainer.global_step == 8 * 20
    for name in ("indices", "ratios"):
        assert getattr(resumed.sieve.sampler, name).tolist() == getattr(sieve.sieve.sampler, name).tolist()
    assert again == whole


def test_workers_read_on_in_their_own_epoch_only(tmp_path, monkeypatch):
    """The Trainer begins a pass before an epoch does, and workers ask for its batches at once."""
    options = {"epochs": 4, "enable_checkpointing": False, **QUIET}
    at_once = lambda *arrays, **options: FairRobustCallback(*arrays, **options | {"warmup_epochs": 0})  # noqa: E731
    monkeypatch.setattr(lightning_trainer, "FairRobustCallback", at_once)
    whole, _, trainer = train(**options)
    assert trainer.global_step == 4 * 20
    monkeypatch.setattr(lightning_trainer, "DataLoader", partial(DataLoader, num_workers=1))
    assert train(**options)[0] == whole
    train(**options, stop=2)[2].save_checkpoint(tmp_path / "half.ckpt")
    assert train(resume=tmp_path / "half.ckpt", **options)[0] == whole


def test_data_that_cannot_be_selected_from_is_refused():
    callback = FairRobustCallback([0, 1], ["a", "b"], clean_ratio=1.0)
    trainer = Trainer(max_epochs=1, callbacks=[callback], accelerator="cpu", **UNSAVED)
    refused(r"one DataLoader with a batch_size.*got list", trainer.fit, Classifier(2), [torch.zeros(2, 2)])


@pytest.mark.parametrize("precision", ["bf16-true", "16-true", "64-true", "bf16-mixed"])
@pytest.mark.parametrize("observes", [True, False])
def test_every_precision_of_the_trainer(precision, observes, monkeypatch):
    if not observes:  # an epoch begins with a forward pass
        step = Classifier.training_step
        monkeypatch.setattr(Classifier, "training_step", lambda *arguments: step(*arguments)["loss"])
    found, sieve, trainer = train(epochs=6, precision=precision, enable_checkpointing=False, **QUIET)
    assert trainer.global_step == 6 * 20
    assert sieve.sieve.is_observed == observes
    assert 0 < len(sieve.sieve.sampler.indices) <= 1800
    assert found["accuracy"] > 0.5


def test_a_warm_up_as_long_as_the_training_warns():
    with pytest.warns(FairsieveWarning, match="warmup_epochs=5 is not less than the 2 epochs to train"):
        train(epochs=2, enable_checkpointing=False, **QUIET)


def test_a_training_without_effect_warns():
    data = TensorDataset(torch.zeros(8, 2))
    sieve = Sieve(data, [0, 1] * 4, list("aabb") * 2, 4, clean_ratio=1.0, epochs=1)
    sieve.begin_epoch(torch.nn.Linear(2, 2))
    with pytest.warns(FairsieveWarning, match="in 1 epochs no sample was left out and no ratio moved"):
        list(sieve.loader())


@pytest.mark.parametrize(("steps", "epochs", "warmup"), [(70, 4, 1), (400, 20, 7)])
def test_a_training_that_is_given_in_steps_selects(steps, epochs, warmup):
    """Seventy steps of twenty an epoch are three and a half epochs: the warm-up is a third of these."""
    x, y = torch.zeros(2000, 2), torch.tensor([0, 1] * 1000)
    callback = FairRobustCallback(y, [0, 0, 1, 1] * 500, clean_ratio=0.9)
    options = {"max_epochs": -1, "max_steps": steps, "accelerator": "cpu", "enable_checkpointing": False}
    trainer = Trainer(callbacks=[callback], **options, **QUIET)
    trainer.fit(Classifier(2), DataLoader(TensorDataset(x, y), batch_size=100))
    sampler = callback.sieve.sampler
    assert (sampler.epochs, sampler.plan.warmup_epochs) == (epochs, warmup)
    assert trainer.global_step == steps
    assert sampler.plan.is_selective


class Dictionaries(TensorDataset):
    def __getitem__(self, index):
        return {"x": self.tensors[0][index], "labels": self.tensors[1][index]}


def test_batches_that_the_model_does_not_take_are_told_at_set_up():
    data = Dictionaries(torch.zeros(8, 2), torch.tensor([0, 1] * 4))
    callback = FairRobustCallback(data.tensors[1], list("aabb") * 2, warmup_epochs=1)
    trainer = Trainer(max_epochs=3, callbacks=[callback], accelerator="cpu", **UNSAVED)
    told = "got a dictionary of x, labels: say how the model takes them"
    refused(told, trainer.fit, Classifier(2), DataLoader(data, batch_size=4))
    assert trainer.global_step == 0


@pytest.mark.parametrize("options", [{}, {"fairness": None}])
def test_the_only_sample_of_a_class_or_group_is_not_set_aside(options):
    y, z = [0, 1] * 20 + [2], ["b"] + ["a"] * 40
    data = TensorDataset(torch.zeros(41, 2))
    for seed in range(5):
        sieve = Sieve(data, y, None if options else z, 4, held_out=0.9, seed=seed, epochs=8, **options)
        trained = set(range(41)) - set(sieve.aside.indices)
        assert {y[i] for i in trained} == {0, 1, 2}
        assert options or 0 in trained
        assert len(sieve.aside) > 30


def test_samples_that_are_set_aside_are_judged_and_never_trained_on():
    x, y = torch.arange(200.0)[:, None].repeat(1, 2), torch.tensor([0, 1] * 100)
    z, seen = np.where(np.arange(200) % 10 < 2, "b", "a"), []

    class Watching(Classifier):
        def training_step(self, batch, batch_idx):
            seen.extend(batch[0][:, 0].int().tolist())
            return super().training_step(batch, batch_idx)

    callback = FairRobustCallback(y, z, clean_ratio=1.0, warmup_epochs=1, held_out=0.1)
    trainer = Trainer(max_epochs=4, callbacks=[callback], accelerator="cpu", **UNSAVED)
    trainer.fit(Watching(2), DataLoader(TensorDataset(x, y), batch_size=20))
    aside = set(callback.sieve.aside.indices)
    assert len(aside) == 20
    assert not aside & set(seen)
    assert callback.sieve.sampler.plan.balance.is_judged
    refused("held_out must be below 1", Sieve, TensorDataset(x), y, z, 20, held_out=1)
