"""The methods that differ in how they select and weigh samples, trained by the paper's loop.

LR, ITLM, FairBatch, the covariance penalty, the paper's method and its ablations, and two-step methods.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairsieve.benchmark.methods import Trained, TrainingInput
from fairsieve.notions import EO
from fairsieve.samples import Samples
from fairsieve.training.trainer import Settings
from fairsieve_reproduction.methods.loop import fit_paper

# ITLM cleans for this many times as long as the others train: after their epochs it has not converged.
LONGER = 4
LONGEST = (
    800  # epochs, with batches as large as those of Adult, at the larger learning rate: it has converged then
)
LARGE_BATCH, RATE = 2000, 0.0005
TRACED = 100  # epochs of a training whose losses are recorded


def trained_linear(parameters: NDArray[np.float64], data: Samples, **parts: Any) -> Trained:
    """Describe a linear model of two classes by its weights and its bias: scores above 0 are the second class."""
    classes = np.asarray(data.cells.classes)

    def predict(samples: Samples) -> NDArray[Any]:
        above = samples.features @ parameters[:-1] + parameters[-1] > 0
        return np.asarray(classes[above.astype(np.int64)])

    return Trained(predict=predict, **({"indices": np.arange(len(data))} | parts))


def train_loop(
    given: TrainingInput, method: str, *, times_as_long: int = 1, penalty_weight: float = 0.0
) -> Trained:
    """Train by a method of :data:`~fairsieve.training.trainer.SELECTION_METHODS`, for so many times the epochs."""
    settings = given.settings
    if times_as_long > 1:
        longer = settings.epochs * times_as_long
        if settings.batch_size >= LARGE_BATCH and settings.learning_rate >= RATE:
            longer = min(longer, LONGEST)
        settings = replace(settings, epochs=max(settings.epochs, longer))
    fitted = fit_paper(given.data, method, seed=given.seed, penalty_weight=penalty_weight, **vars(settings))
    if fitted.interrupted:  # half a training is a model, but not a result
        raise KeyboardInterrupt
    history = fitted.history
    shown = np.arange(0, settings.epochs, max(1, settings.epochs // TRACED))
    return Trained(
        predict=lambda samples: fitted.predict(samples.features),
        indices=fitted.indices,
        epochs=settings.epochs,
        trace={
            "classes": [str(label) for label in history.classes],
            "groups": [str(group) for group in history.groups],
            "counts": history.counts[0].tolist(),
            "epochs": shown.tolist(),
            "cell_losses": history.cell_losses[shown].round(4).tolist(),
        },
    )


def train_two_steps(
    given: TrainingInput, then: str, *, cleaning_penalty_weight: float = 0.0, penalty_weight: float = 0.0
) -> Trained:
    """Clean with ITLM, with a penalty that has some weight, and train on what it selected with another method."""
    settings = replace(given.settings, step_size=0.0)
    if not cleaning_penalty_weight:  # plain ITLM knows no fairness
        settings = replace(settings, fairness=EO)
    kept = _clean(given.data, settings, given.seed, cleaning_penalty_weight)
    second = train_loop(replace(given, data=given.data.take(kept)), then, penalty_weight=penalty_weight)
    return replace(second, indices=kept[second.indices])


@lru_cache(maxsize=1)
def _clean(data: Samples, settings: Settings, seed: int, penalty_weight: float) -> NDArray[np.int64]:
    """Return what ITLM selects: the same for both notions of fairness and all hyperparameters of the second step."""
    given = TrainingInput(data=data, settings=settings, seed=seed)
    return train_loop(given, "itlm", times_as_long=LONGER, penalty_weight=penalty_weight).indices
