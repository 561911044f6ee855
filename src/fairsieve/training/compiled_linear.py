"""The kernels of the linear model, compiled: outputs, losses, gradients in closed form, Adam; in double precision."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairsieve.selection.backends.jit import compiled
from fairsieve.training.fastmath import exp_negative, log1p_unit, sigmoid
from fairsieve.training.linear_task import Adam, Task, Workspace

__all__ = ["adam_step", "evaluate", "predict", "scores", "train_batches"]


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
    out, predicted = workspace.out, workspace.predicted
    scores(features, workspace.everyone, parameters, out)
    for r in range(predicted.size):
        predicted[r] = (1 if out[r, 0] > 0 else 0) if out.shape[1] == 1 else out[r].argmax()


@compiled
def evaluate(
    task: Task, parameters: NDArray[np.float64], workspace: Workspace, signals: NDArray[np.float64]
) -> None:
    """Compute losses, predictions and signals of every sample, into the workspace and ``signals``."""
    out, losses, predicted = workspace.out, workspace.losses, workspace.predicted
    predict(task.features, parameters, workspace)
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
