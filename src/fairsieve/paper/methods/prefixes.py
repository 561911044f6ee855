"""Count how far the selections of a training are from the samples with the lowest losses."""

from __future__ import annotations

import numpy as np

from fairsieve.samples import Samples
from fairsieve.training.fit import new_trainer
from fairsieve.training.linear import LinearTrainer
from fairsieve.training.methods import selection_method
from fairsieve.training.settings import Settings, TrainingSpec

__all__ = ["prefix_differences"]


def prefix_differences(data: Samples, settings: Settings, *, seed: int) -> list[int]:
    """Train by ours, and count in every epoch after the warm-up the low losses that are not selected.

    These are the samples of a prefix of the losses that the selection lacks. A prefix has as many samples as the
    selection, those with the lowest losses. The linear model, two classes.

    Examples
    --------
    >>> from fairsieve.data import make_synthetic
    >>> settings = Settings(epochs=6, warmup_epochs=2, clean_ratio=0.9)
    >>> found = prefix_differences(make_synthetic(300, seed=0), settings, seed=0)
    >>> len(found)
    4
    """
    spec = TrainingSpec(data=data, method=selection_method("fairsieve"), settings=settings, seed=seed)
    trainer = new_trainer(None, spec)
    assert isinstance(trainer, LinearTrainer)
    signs, found = 2.0 * data.cells.label_codes - 1, []
    while trainer.done < settings.epochs:
        weights, bias = trainer.parameters[:-1], trainer.parameters[-1]
        margins = signs * (data.features @ weights + bias)  # the loss falls with the margin
        trainer.run_epochs(1)
        if trainer.done > settings.warmup_epochs:
            selected = trainer.plan.indices
            inside = np.zeros(len(data), dtype=bool)
            inside[selected] = True
            order = np.argsort(-margins, kind="stable")
            found.append(int((~inside[order[: len(selected)]]).sum()))
    return found
