"""The linear model's own training loop: closed-form gradients, compiled, beside the autograd one.

Steps on small data are so short that dispatching them is what takes the time. Here whole epochs
(losses, plan, gradients, Adam) run in one compiled call, with the same plan kernels as the sampler
and in double precision. A call gives up the interpreter lock, so seeds run side by side on threads.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fairsieve.selection.backends.compiled import count_cells, draw_compiled, select_bits, sum_by_cell
from fairsieve.selection.backends.jit import compiled
from fairsieve.selection.batches import batch_count, batch_shares
from fairsieve.selection.epoch import Rules
from fairsieve.selection.ratios import move_ratios, selection_bounds
from fairsieve.training.fastmath import exp_negative, log1p_unit, sigmoid
from fairsieve.training.history import Recording, count_predictions, record_model, record_plan

__all__ = [
    "Adam",
    "Evaluation",
    "Task",
    "evaluate",
    "new_adam",
    "new_workspace",
    "predict",
    "scores",
    "train_batches",
    "train_epochs",
]

LOWEST = np.int64(np.iinfo(np.int64).min)


class Task(NamedTuple):
    """What is learned."""

    features: NDArray[Any]  # (n, d)
    labels: NDArray[np.int64]  # class of each sample
    classes: int
    targets: NDArray[np.int64]  # labels that the groups' signals are measured against, −1: their own
    by_error: bool  # groups are compared by errors, not losses
    learning_rate: float
    penalty_weight: float
    directions: NDArray[np.float64]  # (terms, parameters): the penalty is Σ |direction · parameters|
    weights: NDArray[np.float64]  # of the samples' losses, with mean 1; none, where all weigh the same


class Adam(NamedTuple):
    """The optimiser's state for parameters in one flat array."""

    first: NDArray[np.float64]
    second: NDArray[np.float64]
    steps: NDArray[np.int64]  # one number


class _Workspace(NamedTuple):
    """Arrays that every epoch fills anew."""

    everyone: NDArray[np.int64]  # 0 … n − 1
    out: NDArray[np.float64]  # (n, outputs)
    losses: NDArray[np.float64]  # (n,)
    predicted: NDArray[np.int64]


class Evaluation(NamedTuple):
    """Samples to measure every epoch on; none, where there is no evaluation."""

    features: NDArray[Any]
    codes: NDArray[Any]


@compiled
def new_workspace(samples: int, outputs: int) -> _Workspace:
    return _Workspace(
        np.arange(samples), np.empty((samples, outputs)), np.empty(samples), np.empty(samples, np.int64)
    )


def new_adam(parameters: int) -> Adam:
    return Adam(np.zeros(parameters), np.zeros(parameters), np.zeros(1, np.int64))


@compiled
def scores(
    features: NDArray[Any], rows: NDArray[np.int64], parameters: NDArray[np.float64], out: NDArray[np.float64]
) -> None:
    """Outputs of the linear layer, (rows, outputs); weights first, one row an output, then the biases."""
    d, outputs = features.shape[1], out.shape[1]
    whole = d // 4 * 4
    for r in range(rows.size):
        i = rows[r]
        for k in range(outputs):
            first = k * d
            a = b = c = e = 0.0  # four strands, so that additions need not wait for each other
            for j in range(0, whole, 4):
                a += features[i, j] * parameters[first + j]
                b += features[i, j + 1] * parameters[first + j + 1]
                c += features[i, j + 2] * parameters[first + j + 2]
                e += features[i, j + 3] * parameters[first + j + 3]
            for j in range(whole, d):
                a += features[i, j] * parameters[first + j]
            out[r, k] = (a + b) + (c + e) + parameters[outputs * d + k]


@compiled
def _cross_entropies(
    out: NDArray[np.float64], labels: NDArray[np.int64], losses: NDArray[np.float64]
) -> None:
    """Loss of each row of outputs against its label; one output f stands for σ(2·f)."""
    if out.shape[1] == 1:
        for r in range(losses.size):
            logit = (2.0 - 4.0 * labels[r]) * out[r, 0]
            losses[r] = max(logit, 0.0) + log1p_unit(exp_negative(-abs(logit)))
        return
    for r in range(losses.size):
        highest = out[r].max()
        total = 0.0
        for k in range(out.shape[1]):
            total += exp_negative(out[r, k] - highest)
        losses[r] = highest - out[r, labels[r]] + np.log(total)


@compiled
def predict(out: NDArray[np.float64], predicted: NDArray[np.int64]) -> None:
    """Class of each row of outputs."""
    for r in range(predicted.size):
        predicted[r] = (1 if out[r, 0] > 0 else 0) if out.shape[1] == 1 else out[r].argmax()


@compiled
def evaluate(
    task: Task, parameters: NDArray[np.float64], workspace: _Workspace, signals: NDArray[np.float64]
) -> None:
    """Losses, predictions and signals of every sample."""
    out, losses, predicted = workspace.out, workspace.losses, workspace.predicted
    scores(task.features, workspace.everyone, parameters, out)
    predict(out, predicted)
    _cross_entropies(out, task.labels, losses)
    for t in range(task.targets.size):
        labels = task.labels
        if task.targets[t] >= 0:
            labels = np.full(labels.size, task.targets[t])
        if task.by_error:
            for i in range(labels.size):
                signals[t, i] = 1.0 if predicted[i] != labels[i] else 0.0
        elif task.targets[t] >= 0:
            _cross_entropies(out, labels, signals[t])
        else:
            signals[t] = losses


@compiled
def _gradient(
    task: Task,
    parameters: NDArray[np.float64],
    batch: NDArray[np.int64],
    out: NDArray[np.float64],
    slope: NDArray[np.float64],
) -> None:
    """Gradient of the batch's mean cross-entropy, each sample's times its weight."""
    features = task.features
    d, outputs = features.shape[1], out.shape[1]
    scores(features, batch, parameters, out)
    _residuals(task.labels, batch, out)
    if task.weights.size > 0:
        for r in range(batch.size):
            out[r] *= task.weights[batch[r]]
    slope[:] = 0.0
    for r in range(batch.size):
        for k in range(outputs):
            for j in range(d):
                slope[k * d + j] += out[r, k] * features[batch[r], j]
            slope[outputs * d + k] += out[r, k]


@compiled
def _add_penalty(task: Task, parameters: NDArray[np.float64], slope: NDArray[np.float64]) -> None:
    """Add the gradient of the penalty over everyone."""
    for term in range(task.directions.shape[0]):
        direction = task.directions[term]
        covariance = 0.0
        for k in range(parameters.size):
            covariance += direction[k] * parameters[k]
        for k in range(parameters.size):
            slope[k] += task.penalty_weight * np.sign(covariance) * direction[k]


@compiled
def _residuals(labels: NDArray[np.int64], batch: NDArray[np.int64], out: NDArray[np.float64]) -> None:
    """Outputs → derivatives of the mean loss by the outputs, in place."""
    if out.shape[1] == 1:
        for r in range(batch.size):
            out[r, 0] = sigmoid(2.0 * out[r, 0])
        for r in range(batch.size):
            out[r, 0] = 2.0 * (out[r, 0] - labels[batch[r]]) / batch.size
        return
    for r in range(batch.size):
        highest = out[r].max()
        total = 0.0
        for k in range(out.shape[1]):
            out[r, k] = exp_negative(out[r, k] - highest)
            total += out[r, k]
        for k in range(out.shape[1]):
            hit = 1.0 if labels[batch[r]] == k else 0.0
            out[r, k] = (out[r, k] / total - hit) / batch.size


@compiled
def adam_step(
    parameters: NDArray[np.float64], slope: NDArray[np.float64], adam: Adam, learning_rate: float
) -> None:
    """One step of Adam with torch's defaults."""
    adam.steps[0] += 1
    unbias_first = 1 - 0.9 ** adam.steps[0]
    unbias_second = np.sqrt(1 - 0.999 ** adam.steps[0])
    first, second = adam.first, adam.second
    for k in range(parameters.size):
        first[k] += 0.1 * (slope[k] - first[k])
        second[k] = 0.999 * second[k] + 0.001 * slope[k] * slope[k]
        scale = np.sqrt(second[k]) / unbias_second + 1e-8
        parameters[k] -= learning_rate / unbias_first * first[k] / scale


@compiled
def train_batches(
    task: Task, parameters: NDArray[np.float64], adam: Adam, batches: NDArray[np.int64], penalised: bool
) -> None:
    """One step for each batch."""
    outputs = parameters.size // (task.features.shape[1] + 1)
    out = np.empty((batches.shape[1], outputs))
    slope = np.empty(parameters.size)
    for b in range(batches.shape[0]):
        _gradient(task, parameters, batches[b], out, slope)
        if penalised:
            _add_penalty(task, parameters, slope)
        adam_step(parameters, slope, adam, task.learning_rate)


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
        move_ratios(ratios, sums, counts, rules.rows, rules.by_group, rules.step_size, rules.has_ungrouped)
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
def train_epochs(
    task: Task,
    rules: Rules,
    parameters: NDArray[np.float64],
    adam: Adam,
    ratios: NDArray[np.float64],
    chosen: NDArray[np.int64],
    counts: NDArray[np.int64],
    first: int,
    last: int,
    evaluation: Evaluation,
    recording: Recording,
    parameters_by_epoch: NDArray[np.float64],
) -> Any:
    """Train the epochs from ``first`` up to ``last``; returns the last selection, its counts, and success.

    The same steps as :meth:`~fairsieve.training.trainer.Run.run_epoch`, for runs that share the
    processors. ``parameters``, ``adam``, ``ratios``, ``recording`` and ``parameters_by_epoch`` (the
    parameters as each epoch begins) are updated in place. Stops, without success, at an epoch that
    begins with a loss that is not a number.
    """
    outputs = parameters.size // (task.features.shape[1] + 1)
    workspace = new_workspace(task.labels.size, outputs)
    shown = new_workspace(evaluation.codes.size, outputs)
    signals = np.empty((task.targets.size, task.labels.size))
    for epoch in range(first, last):
        evaluate(task, parameters, workspace, signals)
        losses = workspace.losses
        if np.isnan(losses.sum()):
            return chosen, counts, False
        record_model(recording, epoch, losses, workspace.predicted, rules.codes, chosen, counts)
        parameters_by_epoch[epoch] = parameters
        scores(evaluation.features, shown.everyone, parameters, shown.out)
        predict(shown.out, shown.predicted)
        count_predictions(shown.predicted, evaluation.codes, recording.evaluation_tables[epoch])
        selective = epoch >= rules.warmup_epochs
        if selective:
            chosen, counts = _begin_epoch(rules, losses, signals, ratios, chosen, counts)
        record_plan(recording, epoch, ratios, chosen, counts, selective)
        batches = _draw_epoch(rules, epoch, ratios, chosen, counts)
        train_batches(task, parameters, adam, batches, selective)
    return chosen, counts, True
