"""The paper's methods except FR-Train: selection, a penalty, or two steps in a row."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairsieve.paper.methods.contract import TrainFunction, TrainingInput
from fairsieve.samples import Samples
from fairsieve.selection.cells import Cells
from fairsieve.training.result import Fitted

__all__ = ["plan_trainer", "shared_trainer", "two_step_trainer"]


def plan_trainer(method: str, *, penalty_weight: float | None = None) -> TrainFunction:
    """Make the train function of a method of :data:`~fairsieve.training.methods.SELECTION_METHODS`.

    ``penalty_weight`` adds the covariance penalty, with that weight unless the settings have one.
    """

    def train(given: TrainingInput, **hyperparameters: Any) -> Fitted:
        chosen = replace(given.settings, **hyperparameters)
        if penalty_weight is None:
            chosen = replace(chosen, penalty_weight=0.0)
        elif chosen.penalty_weight == 0:
            chosen = replace(chosen, penalty_weight=penalty_weight)
        return given.fit(method, chosen)

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

    def train(given: TrainingInput, **hyperparameters: Any) -> Fitted:
        own = {
            name: hyperparameters.pop(name)
            for name in tuple(hyperparameters)
            if name in ("converge", "most_epochs") or name.startswith("cleaning_")
        }
        own = {name.removeprefix("cleaning_"): value for name, value in own.items()}
        cleaning = replace(given.settings, penalty_weight=0.0)  # that of the settings is the second step's
        first = _clean_once(clean, replace(given, settings=cleaning, evaluation=None), own, penalised)
        kept = first.indices
        second = then(replace(given, data=given.data.take(kept)), **hyperparameters)
        return on_everyone(second, kept, given.data.cells, first.seconds, first.interrupted)

    return train


def shared_trainer(clean: TrainFunction) -> TrainFunction:
    """Make the train function of a cleaning method by itself; a two-step method after it takes what it selected."""

    def train(given: TrainingInput, **hyperparameters: Any) -> Fitted:
        if given.evaluation is not None or given.settings.penalty_weight != 0:
            return clean(given, **hyperparameters)
        return _clean_once(clean, given, hyperparameters, False)

    return train


def _clean_once(clean: TrainFunction, given: TrainingInput, own: dict[str, Any], penalised: bool) -> Fitted:
    """Clean, or return what the last cleaning selected if it was the same."""
    names = (*CLEANING, "fairness", "pos_label") if penalised else CLEANING
    epochs = given.settings.epochs if own.get("converge") is False else None
    values = tuple(getattr(given.settings, name) for name in names)
    key = (clean, given.seed, given.model, epochs, tuple(own.items()), values)
    for seen, old, fitted in _last_cleaning:
        if seen is given.data and old == key:
            return fitted
    fitted = clean(given, **own)
    if not fitted.interrupted and given.model is None:
        _last_cleaning[:] = [(given.data, key, fitted)]
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
