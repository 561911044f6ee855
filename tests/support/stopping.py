"""Trainings that are stopped, and all that they give back."""

from contextlib import contextmanager

import pytest

from fairsieve.training.linear_trainer import LinearTrainer
from fairsieve.training.models import AutogradTrainer
from fairsieve.training.solver import _Solver

SHORT = {
    "epochs": 12, "warmup_epochs": 4, "clean_ratio": 0.9, "batch_size": 50, "step_size": 0.01,
    "average_last": 5,
}  # fmt: skip


class Killed(BaseException):
    """As sudden as a signal, to the code that it passes through."""


def everything(fitted):
    """All that training gives back, as bytes."""
    history = fitted.history
    parts = [p.detach().numpy() for p in (*fitted.model.parameters(), *fitted.model.buffers())]
    parts += [fitted.indices, fitted.ratios, history.cell_losses, history.ratios, history.counts]
    parts += [history.train.accuracy, *history.train.disparity.values()]
    if history.evaluation is not None:
        parts += [history.evaluation.accuracy, *history.evaluation.disparity.values()]
    return [part.tobytes() for part in parts]


@contextmanager
def stop_after(epochs, error=Killed):
    """Let a training stop when it begins the epoch after."""
    with pytest.MonkeyPatch.context() as patch:
        for trainer in (AutogradTrainer, LinearTrainer):

            def run_epoch(self, original=trainer.run_epoch):
                if self.done >= epochs:
                    raise error
                original(self)

            patch.setattr(trainer, "run_epoch", run_epoch)
        yield


@contextmanager
def interrupt_solver_after(fits):
    """Interrupt FairRobustClassifier after so many fits of its linear model."""
    original, done = _Solver.train, []

    def train(self, *arguments, **options):
        done.append(0)
        if len(done) > fits:
            raise KeyboardInterrupt
        return original(self, *arguments, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_Solver, "train", train)
        yield


@contextmanager
def resumed_epochs():
    """Yield a list of the epochs that trainings go on from."""
    original, begun = AutogradTrainer.restore, []

    def restore(self, state):
        original(self, state)
        begun.append(self.done)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(AutogradTrainer, "restore", restore)
        yield begun
