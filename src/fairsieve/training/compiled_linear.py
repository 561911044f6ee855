"""The kernels of the linear model, compiled: outputs, losses, gradients in closed form, Adam; in double precision."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairsieve.training.fastmath import exp_negative, log1p_unit, sigmoid
from fairsieve.training.jit import compiled
from fairsieve.training.linear_task import STRANDS, Adam, SparseRows, Task, Workspace

__all__ = ["adam_step", "evaluate", "predict", "scores", "train_batches"]

LINE = 16  # numbers of single precision in a line of the cache


@compiled
def scores(
    features: NDArray[Any], rows: NDArray[np.int64], parameters: NDArray[np.float64], out: NDArray[np.float64]
) -> None:
    """Compute the outputs of the linear layer, (rows, outputs).

    The parameters are the weights, one row for each output, and then the biases.
    """
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
def _fetch(sparse: SparseRows, rows: NDArray[np.int64]) -> float:
    """Read a number from every cache line of some rows, so that they are in the cache when they are needed.

    Rows of a batch lie far apart, and a processor that adds up one does not look far enough ahead to fetch the next
    ones: it would wait for memory most of the time. The sum of the numbers means nothing.
    """
    total = 0.0
    for r in range(rows.size):
        for t in range(0, sparse.entries.shape[1], LINE):
            total += sparse.entries[rows[r], t] + sparse.columns[rows[r], t]
    return total


@compiled
def _sparse_scores(
    sparse: SparseRows, rows: NDArray[np.int64], parameters: NDArray[np.float64], out: NDArray[np.float64]
) -> None:
    """Do what :func:`scores` does, for rows without their zeros.

    The bits are the same: a parameter is added in the strand of its column, and a zero in the others, which changes
    nothing.
    """
    entries, columns, outputs = sparse.entries, sparse.columns, out.shape[1]
    d = parameters.size // outputs - 1
    if not np.isfinite(parameters).all():
        out[:] = np.nan  # as zero times infinity is
        return
    out[:1] = _fetch(sparse, rows)
    by_strand = np.zeros((d, STRANDS))
    for k in range(outputs):
        for j in range(d):
            by_strand[j, j % STRANDS if j < d // STRANDS * STRANDS else 0] = parameters[k * d + j]
        for r in range(rows.size):
            i = rows[r]
            a = b = c = e = 0.0
            for t in range(entries.shape[1]):
                x, j = entries[i, t], columns[i, t]
                a += x * by_strand[j, 0]
                b += x * by_strand[j, 1]
                c += x * by_strand[j, 2]
                e += x * by_strand[j, 3]
            out[r, k] = (a + b) + (c + e) + parameters[outputs * d + k]


@compiled
def _task_scores(
    task: Task, rows: NDArray[np.int64], parameters: NDArray[np.float64], out: NDArray[np.float64]
) -> None:
    """Compute the outputs of some of a task's samples."""
    if task.sparse.entries.size > 0:
        _sparse_scores(task.sparse, rows, parameters, out)
    else:
        scores(task.features, rows, parameters, out)


@compiled
def _cross_entropies(
    out: NDArray[np.float64], labels: NDArray[np.int64], losses: NDArray[np.float64]
) -> None:
    """Compute the loss of each row of outputs against its label; one output f stands for σ(2·f)."""
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
def predict(features: NDArray[Any], parameters: NDArray[np.float64], workspace: Workspace) -> None:
    """Compute outputs and predicted classes of every sample, into the workspace."""
    scores(features, workspace.everyone, parameters, workspace.out)
    _decide(workspace.out, workspace.predicted)


@compiled
def _decide(out: NDArray[np.float64], predicted: NDArray[np.int64]) -> None:
    """Find the class of the highest output; one output f above 0 stands for the second class."""
    for r in range(predicted.size):
        predicted[r] = (1 if out[r, 0] > 0 else 0) if out.shape[1] == 1 else out[r].argmax()


@compiled
def evaluate(
    task: Task, parameters: NDArray[np.float64], workspace: Workspace, signals: NDArray[np.float64]
) -> None:
    """Compute losses, predictions and signals of every sample, into the workspace and ``signals``."""
    out, losses, predicted = workspace.out, workspace.losses, workspace.predicted
    _task_scores(task, workspace.everyone, parameters, out)
    _decide(out, predicted)
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
    """Compute the gradient of the batch's mean cross-entropy, each sample's times its weight."""
    outputs = out.shape[1]
    _task_scores(task, batch, parameters, out)
    _residuals(task.labels, batch, out)
    if task.weights.size > 0:
        for r in range(batch.size):
            out[r] *= task.weights[batch[r]]
    slope[:] = 0.0
    if task.sparse.entries.size > 0:
        _add_sparse_products(task.sparse, batch, out, slope)
    else:
        _add_products(task.features, batch, out, slope)
    for r in range(batch.size):
        for k in range(outputs):
            slope[slope.size - outputs + k] += out[r, k]


@compiled
def _add_products(
    features: NDArray[Any], batch: NDArray[np.int64], out: NDArray[np.float64], slope: NDArray[np.float64]
) -> None:
    """Add featuresᵀ · out to the slope, sample by sample."""
    d = features.shape[1]
    for r in range(batch.size):
        for k in range(out.shape[1]):
            for j in range(d):
                slope[k * d + j] += out[r, k] * features[batch[r], j]


@compiled
def _add_sparse_products(
    sparse: SparseRows, batch: NDArray[np.int64], out: NDArray[np.float64], slope: NDArray[np.float64]
) -> None:
    """Do what :func:`_add_products` does, for rows without their zeros and with the same bits."""
    entries, columns = sparse.entries, sparse.columns
    outputs = out.shape[1]
    d = slope.size // outputs - 1
    for r in range(batch.size):
        i = batch[r]
        for k in range(outputs):
            for t in range(entries.shape[1]):
                slope[k * d + columns[i, t]] += out[r, k] * entries[i, t]


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
    """Replace outputs by the derivatives of the mean loss by them."""
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
    """Take one step of Adam with torch's defaults."""
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
    """Take one step for each batch."""
    outputs = parameters.size // (task.features.shape[1] + 1)
    out = np.empty((batches.shape[1], outputs))
    slope = np.empty(parameters.size)
    for b in range(batches.shape[0]):
        _gradient(task, parameters, batches[b], out, slope)
        if penalised:
            _add_penalty(task, parameters, slope)
        adam_step(parameters, slope, adam, task.learning_rate)
