"""The paper's methods except FR-Train: selection, a penalty, or two steps in a row."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairsieve.paper.methods.contract import TrainFunction
from fairsieve.samples import Samples
from fairsieve.selection.cells import Cells
from fairsieve.training.fit import ModelLike, fit
from fairsieve.training.result import Fitted
from fairsieve.training.settings import Settings

__all__ = ["plan_trainer", "two_step_trainer"]


def plan_trainer(method: str, *, penalty_weight: float | None = None) -> TrainFunction:
    """Make the train function of a method of :data:`~fairsieve.training.methods.SELECTION_METHODS`.

    ``penalty_weight`` adds the covariance penalty, with that weight unless the settings have one.
    """

    def train(
        data: Samples,
        settings: Settings,
        *,
        seed: int,
        model: ModelLike = None,
        validation: Samples | None = None,
        evaluation: Samples | None = None,
        progress: bool = False,
        **hyperparameters: Any,
    ) -> Fitted:
        chosen = replace(settings, **hyperparameters)
        if penalty_weight is None:
            chosen = replace(chosen, penalty_weight=0.0)
        elif chosen.penalty_weight == 0:
            chosen = replace(chosen, penalty_weight=penalty_weight)
        return fit(
            model,
            data,
            method,
            seed=seed,
            evaluation=evaluation,
            progress=progress,
            watched=progress,
            **as_options(chosen),
        )

    return train


def two_step_trainer(clean: TrainFunction, then: TrainFunction) -> TrainFunction:
    """Make a train function that cleans with one method and trains on what it selected with another."""

    def train(
        data: Samples,
        settings: Settings,
        *,
        seed: int,
        model: ModelLike = None,
        validation: Samples | None = None,
        evaluation: Samples | None = None,
        progress: bool = False,
        **hyperparameters: Any,
    ) -> Fitted:
        shared: dict[str, Any] = {"seed": seed, "model": model, "progress": progress}
        first = clean(data, settings, **shared, **hyperparameters)
        kept = first.indices
        second = then(data.take(kept), settings, evaluation=evaluation, **shared, **hyperparameters)
        return on_everyone(second, kept, data.cells, first.seconds, first.interrupted)

    return train


def on_everyone(
    fitted: Fitted, kept: NDArray[np.int64], cells: Cells, seconds: float, interrupted: bool
) -> Fitted:
    """Describe a result on a part of the data as one on all of it."""
    return replace(
        fitted.over(kept, len(cells)),
        seconds=fitted.seconds + seconds,
        interrupted=fitted.interrupted or interrupted,
    )


def as_options(settings: Settings) -> dict[str, Any]:
    """Return the settings as keyword arguments."""
    return {name: getattr(settings, name) for name in settings.__dataclass_fields__}
