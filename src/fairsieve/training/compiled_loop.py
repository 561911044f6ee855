"""Whole epochs of the linear model in one compiled call.

A call releases the interpreter lock, so seeds train side by side on threads. Steps on small data are so
short that dispatching them is what takes the time.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairsieve.selection.epoch import Rules
from fairsieve.training.compiled_linear import evaluate, predict, train_batches
from fairsieve.training.compiled_plan import begin_epoch, draw_epoch
from fairsieve.training.history import Recording
from fairsieve.training.jit import compiled
from fairsieve.training.linear_task import Adam, Evaluation, Task, Workspace

__all__ = ["train_epochs"]


@compiled
def _count_predictions(predicted: NDArray[np.int64], codes: NDArray[Any], table: NDArray[np.float64]) -> None:
    """Do what :func:`~fairsieve.training.history.count_predictions` does."""
    for i in range(predicted.size):
        table[codes[i], predicted[i]] += 1


@compiled
def _record_model(
    recording: Recording,
    epoch: int,
    losses: NDArray[np.float64],
    predicted: NDArray[np.int64],
    codes: NDArray[Any],
    selected: NDArray[np.int64],
    counts: NDArray[np.int64],
) -> None:
    """Do what :func:`~fairsieve.training.history.record_model` does."""
    _count_predictions(predicted, codes, recording.tables[epoch])
    selected_table, cell_losses = recording.selected_tables[epoch], recording.cell_losses[epoch]
    for i in selected:
        selected_table[codes[i], predicted[i]] += 1
        cell_losses[codes[i]] += losses[i]
    for cell in range(counts.size):
        cell_losses[cell] /= max(counts[cell], 1)


@compiled
def _record_plan(
    recording: Recording,
    epoch: int,
    ratios: NDArray[np.float64],
    selected: NDArray[np.int64],
    counts: NDArray[np.int64],
    selective: bool,
) -> None:
    """Do what :func:`~fairsieve.training.history.record_plan` does."""
    recording.ratios[epoch] = ratios.ravel()
    recording.counts[epoch] = counts
    times_selected = recording.times_selected
    if selective:
        for i in selected:
            times_selected[i] += 1


@compiled
def train_epochs(
    task: Task,
    rules: Rules,
    parameters: NDArray[np.float64],
    adam: Adam,
    ratios: NDArray[np.float64],
    selected: NDArray[np.int64],
    counts: NDArray[np.int64],
    first: int,
    last: int,
    workspace: Workspace,
    signals: NDArray[np.float64],
    evaluation: Evaluation,
    shown: Workspace,
    recording: Recording,
    parameters_by_epoch: NDArray[np.float64],
) -> Any:
    """Train the epochs from ``first`` up to ``last``; return the last selection, its counts, and success.

    Takes the steps of :meth:`~fairsieve.training.trainer.Trainer.run_epoch`, for trainers that share the
    processors. ``parameters``, ``adam``, ``ratios``, ``recording`` and ``parameters_by_epoch`` (the
    parameters as each epoch begins) are updated in place. Stops, without success, at an epoch that
    begins with a loss that is not a number.
    """
    for epoch in range(first, last):
        evaluate(task, parameters, workspace, signals)
        losses = workspace.losses
        if np.isnan(losses.sum()):
            return selected, counts, False
        _record_model(recording, epoch, losses, workspace.predicted, rules.codes, selected, counts)
        parameters_by_epoch[epoch - first] = parameters
        predict(evaluation.features, parameters, shown)
        _count_predictions(shown.predicted, evaluation.codes, recording.evaluation_tables[epoch])
        selective = epoch >= rules.warmup_epochs
        if selective:
            selected, counts = begin_epoch(rules, losses, signals, ratios, selected, counts)
        _record_plan(recording, epoch, ratios, selected, counts, selective)
        batches = draw_epoch(rules, epoch, ratios, selected, counts)
        train_batches(task, parameters, adam, batches, selective)
    return selected, counts, True
