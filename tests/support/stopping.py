"""Trainings that are stopped, and all that they give back."""

from __future__ import annotations

import warnings

import pytest

from fairsieve import CheckpointWarning, fit
from fairsieve.training.autograd import AutogradTrainer
from fairsieve.training.checkpoint import store as checkpoints
from fairsieve.training.checkpoint.resume import TrainerCheckpoints
from fairsieve.training.linear_trainer import LinearTrainer

SHORT = {
    "epochs": 12,
    "warmup_epochs": 4,
    "clean_ratio": 0.9,
    "batch_size": 50,
    "step_size": 0.01,
    "average_last": 5,
}
ENGINES = ["compiled", "autograd"]


class Killed(BaseException):
    """As sudden as a signal, to the code that it passes through."""


def everything(fitted):
    """All that training gives back, as bytes."""
    history = fitted.history
    parts = [p.detach().numpy() for p in (*fitted.model.parameters(), *fitted.model.buffers())]
    parts += [
        fitted.indices,
        fitted.ratios,
        history.cell_losses,
        history.ratios,
        history.counts,
        history.times_selected,
    ]
    parts += [history.train.accuracy, *history.train.disparity.values()]
    if history.evaluation is not None:
        parts += [history.evaluation.accuracy, *history.evaluation.disparity.values()]
    return [part.tobytes() for part in parts]


def names(folder):
    return sorted(path.name for path in folder.iterdir() if path.name != checkpoints.MARK)


def stop_after(monkeypatch, epochs):
    """Training stops when it begins the epoch after; resumed, it goes to its end."""

    def stopping(original):
        def method(self, *count):
            if self.done >= epochs:
                raise Killed
            original(self, *count)

        return method

    for kind, name in (
        (AutogradTrainer, "run_epoch"),
        (LinearTrainer, "run_epoch"),
        (LinearTrainer, "run_epochs"),
    ):
        monkeypatch.setattr(kind, name, stopping(getattr(kind, name)))


def stopped_then_resumed(monkeypatch, stop, train):
    with monkeypatch.context() as patch:
        stop_after(patch, stop)
        with pytest.raises(Killed):
            train()
    begun = []
    with monkeypatch.context() as patch:
        original = TrainerCheckpoints.resume
        patch.setattr(
            TrainerCheckpoints, "resume", lambda self: (original(self), begun.append(self.trainer.done))
        )
        return train(), begun


def resume(noisy, folder, options, *damaged):
    """Train on from a folder; every damaged checkpoint, and no other, is named in a warning."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fitted = fit(None, noisy, checkpoint_dir=folder, checkpoint_every=2, **options)
    told = [str(one.message) for one in caught if issubclass(one.category, CheckpointWarning)]
    assert len(told) == len(caught) == len(damaged), [str(one.message) for one in caught]
    for message, number in zip(told, damaged, strict=True):
        assert number in message
        assert str(folder) in message
    return everything(fitted)
