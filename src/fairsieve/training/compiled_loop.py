"""Whole epochs of the linear model in one compiled call.

A call releases the interpreter lock, so seeds train side by side on threads. Steps on small data are so
short that dispatching them is what takes the time.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairsieve.selection.backends.compiled import count_cells, draw_compiled, select_bits, sum_by_cell
from fairsieve.selection.backends.jit import compiled
from fairsieve.selection.batches import batch_count, batch_shares
from fairsieve.selection.epoch import Rules
from fairsieve.selection.ratios import cell_sizes, move_ratios, selection_bounds
from fairsieve.training.compiled_linear import evaluate, predict, train_batches
from fairsieve.training.history import Recording
from fairsieve.training.linear_task import Adam, Evaluation, Task, Workspace

__all__ = ["train_epochs"]

LOWEST = np.int64(np.iinfo(np.int64).min)


@compiled
def _begin_epoch(
    rules: Rules,
    losses: NDArray[np.float64],
    signals: NDArray[np.float64],
    ratios: NDArray[np.float64],
    selected: NDArray[np.int64],
    counts: NDArray[np.int64],
) -> Any:
    """Move the ratios in place and select anew, as :meth:`~fairsieve.selection.epoch.Plan.update` does."""
    if rules.rows.shape[0] > 0:
        sums = sum_by_cell(signals, rules.codes, selected, ratios.size)
        sizes = cell_sizes(counts, rules.by_group, rules.count_offset)
        move_ratios(ratios, sums, sizes, rules.rows, rules.by_group, rules.step_size, rules.has_ungrouped)
    bits = losses.view(np.int64)
    if rules.constrained:
        bounds = selection_bounds(ratios, rules.has_ungrouped)
        return select_bits(bits, LOWEST, rules.codes, bounds, rules.budget, rules.width)
    everyone = np.zeros_like(rules.codes)
    selected, _ = select_bits(bits, LOWEST, everyone, np.ones((1, 1)), rules.budget, rules.width)
    return selected, count_cells(selected, rules.codes, ratios.size)


@compiled
def _draw_epoch(
    rules: Rules,
    epoch: int,
    ratios: NDArray[np.float64],
    selected: NDArray[np.int64],
    counts: NDArray[np.int64],
) -> NDArray[np.int64]:
    """Draw the epoch's batches, as :meth:`~fairsieve.selection.epoch.Plan.batches` does."""
    size, batches = min(rules.batch_size, selected.size), batch_count(selected.size, rules.batch_size)
    codes, sizes, shares = rules.codes, counts, np.full(1, size)
    if rules.weighted and epoch >= rules.warmup_epochs and selected.size > 0:
        shares = batch_shares(ratios, counts, size)
    else:
        codes, sizes = np.zeros_like(codes), np.full(1, selected.size)
    return draw_compiled(selected, codes, sizes, shares, batches, rules.seed, epoch)


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
            selected, counts = _begin_epoch(rules, losses, signals, ratios, selected, counts)
        _record_plan(recording, epoch, ratios, selected, counts, selective)
        batches = _draw_epoch(rules, epoch, ratios, selected, counts)
        train_batches(task, parameters, adam, batches, selective)
    return selected, counts, True
