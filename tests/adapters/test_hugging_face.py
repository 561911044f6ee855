"""Accelerate and the Hugging Face Trainer, the real libraries, through the examples."""

import os
import pickle

import pytest
import torch
from accelerate import Accelerator
from examples import accelerate_loop, transformers_trainer
from tests.support.refusals import refused
from torch.utils.data import TensorDataset

from fairsieve.adapters.accelerate import prepared_sieve
from fairsieve.adapters.transformers import FairRobustTrainer
from fairsieve.errors import CheckpointError

pytestmark = pytest.mark.filterwarnings("ignore")


def test_accelerate_trains_and_resumes_identically(tmp_path):
    whole, sieve = accelerate_loop.train(epochs=8)
    assert 0 < len(sieve.sampler.indices) <= 1800
    assert whole["accuracy"] > 0.6
    accelerate_loop.train(stop=6, save=tmp_path / "half")
    again, resumed = accelerate_loop.train(epochs=8, resume=tmp_path / "half")
    assert resumed.sampler.indices.tolist() == sieve.sampler.indices.tolist()
    assert again == whole


def test_accelerate_resumes_inside_an_epoch(tmp_path):
    generator = torch.Generator().manual_seed(0)
    x, z = torch.randn(90, 3, generator=generator), torch.randint(0, 2, (90,), generator=generator)
    y = (x[:, 0] > 0).long()

    def trained(saved=None):
        """Three epochs of nine steps, saved after four of the last, or gone on from there."""
        accelerator, model = Accelerator(cpu=True), torch.nn.Linear(3, 2)
        torch.nn.init.zeros_(model.weight)
        torch.nn.init.zeros_(model.bias)
        optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
        model, optimizer = accelerator.prepare(model, optimizer)
        given, options = (TensorDataset(x, y), y, z, 10), {"clean_ratio": 0.8, "warmup_epochs": 0}
        sieve, loader = prepared_sieve(accelerator, *given, **options)
        first = 0
        if saved is not None:
            accelerator.load_state(str(saved))
            first = 4
        while first or sieve.sampler.epoch < 3:
            if first:
                sieve.continue_epoch(first)
            else:
                sieve.begin_epoch(model)
            for step, (features, targets) in enumerate(loader, first):
                losses = torch.nn.functional.cross_entropy(model(features), targets, reduction="none")
                sieve.observe(step, losses)
                optimizer.zero_grad()
                accelerator.backward(losses.mean() * sieve.weight(step))
                optimizer.step()
                if saved is None and sieve.sampler.epoch == 3 and step == 3:
                    accelerator.save_state(str(tmp_path / "inside"))
            assert step == 8
            first = 0
        return model.weight.tolist(), sieve.sampler.running.losses.tolist()

    whole = trained()
    assert trained(tmp_path / "inside") == whole


def test_trainer_trains_and_resumes_identically(tmp_path):
    options = {"epochs": 5, "samples": 500, "save_strategy": "epoch", "save_total_limit": None}
    whole, trainer = transformers_trainer.train(tmp_path, **options)
    sampler = trainer.sieve.sampler
    assert trainer.state.global_step == 25
    assert 0 < len(sampler.indices) <= 450
    assert trainer.sieve.is_observed
    for later in ("checkpoint-20", "checkpoint-25"):
        (tmp_path / later).rename(tmp_path / f"old-{later}")
    again, resumed = transformers_trainer.train(tmp_path, resume=True, **options)
    assert resumed.state.global_step == 25
    assert resumed.sieve.sampler.indices.tolist() == sampler.indices.tolist()
    assert again == pytest.approx(whole)


class Attack:
    """Its pickle makes a folder when it is loaded."""

    def __init__(self, folder):
        self.folder = folder

    def __reduce__(self):
        return os.mkdir, (str(self.folder / "ran"),)


@pytest.mark.parametrize("accumulated", [1, 2])
def test_trainer_resumes_inside_an_epoch(tmp_path, accumulated):
    saves = {"save_strategy": "steps", "save_steps": 7, "save_total_limit": None}
    options = {"epochs": 4, "samples": 500, "gradient_accumulation_steps": accumulated, **saves}
    whole, trainer = transformers_trainer.train(tmp_path / "one", **options)
    kept = (tmp_path / "one" / "checkpoint-7").rename(tmp_path / "kept")
    again, resumed = transformers_trainer.train(tmp_path / "other", resume=str(kept), **options)
    assert resumed.state.global_step == trainer.state.global_step == 4 * -(-5 // accumulated)
    for one, other in zip(*(run.sieve.state_dict()["parts"] for run in (trainer, resumed)), strict=True):
        assert one["indices"].tolist() == other["indices"].tolist()
        assert one["running"]["losses"].tolist() == other["running"]["losses"].tolist()
    assert again == whole
    state = kept / "fairsieve.pt"
    state.unlink()
    told = r"fairsieve\.pt must hold numbers and tensors only, as fairsieve writes it"
    with pytest.raises(CheckpointError, match=told):
        transformers_trainer.train(tmp_path / "other", resume=str(kept), **options)
    # Nothing in a state of somebody else's runs.
    for hostile in ({"parts": [], "is_observed": Attack(tmp_path)}, Attack(tmp_path)):
        for write in (lambda one: torch.save(one, state), lambda one: state.write_bytes(pickle.dumps(one))):
            write(hostile)
            with pytest.raises(CheckpointError, match=told):
                transformers_trainer.train(tmp_path / "other", resume=str(kept), **options)
    assert not (tmp_path / "ran").exists()


def test_the_trainer_requires_a_dataset(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # the Trainer makes a folder
    refused("train_dataset must be given", FairRobustTrainer, torch.nn.Linear(2, 2), sieve={})


def test_the_trainer_knows_its_length_in_steps(tmp_path):
    _, trainer = transformers_trainer.train(tmp_path, epochs=99, samples=500, max_steps=12)
    assert trainer.state.global_step == 12
    assert trainer.sieve.sampler.epochs == 3  # of five steps
    assert trainer.sieve.sampler.plan.is_selective
