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

__all__ = ["plan_trainer", "shared_trainer", "two_step_trainer"]


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


# What the last cleaning was of, and what it selected: the same for both notions of fairness and all hyperparameters of
# the second step.
_last_cleaning: list[tuple[Samples, tuple[Any, ...], Fitted]] = []
CLEANING = ("clean_ratio", "batch_size", "learning_rate", "warmup_epochs", "signal")  # what ITLM looks at


def two_step_trainer(clean: TrainFunction, then: TrainFunction, *, penalised: bool = False) -> TrainFunction:
    """Make a train function that cleans with one method and trains on what it selected with another.

    ``penalised`` when the cleaning step knows the notion of fairness, by a penalty. Hyperparameters whose names begin
    with ``cleaning_`` go to the first step alone, without that beginning; ``converge`` and ``most_epochs`` too.
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
        shared: dict[str, Any] = {"seed": seed, "model": model, "progress": progress}
        own = {
            name: hyperparameters.pop(name)
            for name in tuple(hyperparameters)
            if name in ("converge", "most_epochs") or name.startswith("cleaning_")
        }
        own = {name.removeprefix("cleaning_"): value for name, value in own.items()}
        cleaning = replace(settings, penalty_weight=0.0)  # that of the settings is the second step's
        first = _clean_once(clean, data, cleaning, shared, own, penalised)
        kept = first.indices
        second = then(data.take(kept), settings, evaluation=evaluation, **shared, **hyperparameters)
        return on_everyone(second, kept, data.cells, first.seconds, first.interrupted)

    return train


def shared_trainer(clean: TrainFunction) -> TrainFunction:
    """Make the train function of a cleaning method by itself; a two-step method after it takes what it selected."""

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
        if model is not None or evaluation is not None or settings.penalty_weight != 0:
            return clean(data, settings, evaluation=evaluation, **shared, **hyperparameters)
        return _clean_once(clean, data, settings, shared, hyperparameters, False)

    return train


def _clean_once(
    clean: TrainFunction,
    data: Samples,
    settings: Settings,
    shared: dict[str, Any],
    own: dict[str, Any],
    penalised: bool,
) -> Fitted:
    """Clean, or return what the last cleaning selected if it was the same."""
    names = (*CLEANING, "fairness", "pos_label") if penalised else CLEANING
    epochs = settings.epochs if own.get("converge") is False else None
    values = tuple(getattr(settings, name) for name in names)
    key = (clean, shared["seed"], shared["model"], epochs, tuple(own.items()), values)
    for seen, old, fitted in _last_cleaning:
        if seen is data and old == key:
            return fitted
    fitted = clean(data, settings, **shared, **own)
    if not fitted.interrupted and shared["model"] is None:
        _last_cleaning[:] = [(data, key, fitted)]
    return fitted


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
