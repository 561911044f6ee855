"""The Lightning callback on the real library, through the example."""

from __future__ import annotations

import pytest
import torch
from examples.lightning_trainer import Classifier, train
from lightning.pytorch import Trainer

from fairsieve import InvalidInputError
from fairsieve.adapters.lightning import FairRobustCallback

pytestmark = pytest.mark.filterwarnings("ignore")  # Lightning's advice on workers and logging

QUIET = {"logger": False, "enable_progress_bar": False, "enable_model_summary": False}


def test_trains_and_resumes_identically(tmp_path):
    options = {**QUIET, "enable_checkpointing": False}
    whole, sieve, trainer = train(epochs=8, **options)
    assert trainer.global_step == 8 * 20  # epochs of equal length, whatever is selected
    sampler = sieve.sieve.sampler
    assert sampler.epoch == 8
    assert 0 < len(sampler.indices) < 1800
    assert sieve.sieve.is_observed
    assert whole["accuracy"] > 0.6
    _, _, half = train(epochs=6, **options)
    half.save_checkpoint(tmp_path / "half.ckpt")
    again, resumed, trainer = train(epochs=8, resume=tmp_path / "half.ckpt", **options)
    assert trainer.global_step == 8 * 20
    assert resumed.sieve.sampler.indices.tolist() == sampler.indices.tolist()
    assert again == whole


def test_without_losses_an_epoch_begins_with_a_forward_pass(monkeypatch):
    step = Classifier.training_step
    monkeypatch.setattr(Classifier, "training_step", lambda *arguments: step(*arguments)["loss"])
    _, sieve, _ = train(epochs=7, enable_checkpointing=False, **QUIET)
    assert not sieve.sieve.is_observed
    assert 0 < len(sieve.sieve.sampler.indices) < 1800


def test_data_that_cannot_be_chosen_from_is_refused():
    callback = FairRobustCallback([0, 1], ["a", "b"], clean_ratio=1.0)
    trainer = Trainer(
        max_epochs=1, callbacks=[callback], enable_checkpointing=False, accelerator="cpu", **QUIET
    )
    with pytest.raises(InvalidInputError, match=r"one DataLoader with a batch_size.*got list"):
        trainer.fit(Classifier(2), [torch.zeros(2, 2)])
