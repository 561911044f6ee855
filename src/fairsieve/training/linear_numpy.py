"""The kernels of the linear model in NumPy, with the bits of the compiled ones and nothing to compile.

Every sum is taken in the order of :mod:`~fairsieve.training.compiled_linear`, and exp and log1p are the
polynomials of :mod:`~fairsieve.training.fastmath`, so a training may change from one to the other at any epoch.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairsieve.training.linear_task import Adam, Task, Workspace
from fairsieve.training.math_constants import (
    EXP_SERIES,
    LN2,
    LN2_HIGH,
    LN2_LOW,
    LOG2_E,
    LOG_SERIES,
    LOWEST_POWER,
    POWERS,
)

__all__ = ["evaluate", "predict", "train_batches"]

Floats = NDArray[np.float64]


def _exp_negative(x: Floats) -> Floats:
    """Compute exp(x) for x ≤ 0, see :func:`~fairsieve.training.fastmath.exp_negative`."""
    inside = x > -708.0
    bounded = np.where(inside, x, -708.0)
    k = np.floor(bounded * LOG2_E + 0.5)
    r = (bounded - k * LN2_HIGH) - k * LN2_LOW
    series: Floats = _horner(EXP_SERIES, r) * POWERS[k.astype(np.int32) + LOWEST_POWER]
    return series if inside.all() else np.where(inside, series, np.where(x <= -708.0, 0.0, x))


def _log1p_unit(u: Floats) -> Floats:
    """Compute log(1 + u) for u in [0, 1], see :func:`~fairsieve.training.fastmath.log1p_unit`."""
    halve = u > 0.41421356237309503
    s = np.where(halve, (u - 1.0) / (u + 3.0), u / (u + 2.0))
    q = s * s
    result = 2.0 * (s + s * q * _horner(LOG_SERIES, q))
    return np.asarray(np.where(halve, result + LN2, result))


def _horner(coefficients: tuple[float, ...], x: Floats) -> Floats:
    """Evaluate a polynomial, the highest power first."""
    series = np.full(x.shape, coefficients[0])
    for coefficient in coefficients[1:]:
        series *= x
        series += coefficient
    return series


def _sum_in_order(terms: Floats) -> Floats:
    """Add up rows from the first to the last; NumPy's own sum would take them in pairs."""
    return np.asarray(np.add.accumulate(terms, axis=0)[-1]) if len(terms) else np.zeros(terms.shape[1:])


def _scores(features: NDArray[Any], parameters: Floats, outputs: int) -> Floats:
    """Compute the outputs of the linear layer, (rows, outputs)."""
    rows, d = features.shape
    whole = d // 4 * 4
    out = np.empty((rows, outputs))
    for k in range(outputs):
        products = features * parameters[k * d : (k + 1) * d]
        strands = np.zeros((rows, 4))
        for j in range(0, whole, 4):
            strands += products[:, j : j + 4]
        for j in range(whole, d):
            strands[:, 0] += products[:, j]
        a, b, c, e = strands.T
        out[:, k] = (a + b) + (c + e) + parameters[outputs * d + k]
    return out


def _cross_entropies(out: Floats, labels: NDArray[np.int64]) -> Floats:
    """Compute the loss of each row of outputs against its label."""
    if out.shape[1] == 1:
        logit = (2.0 - 4.0 * labels) * out[:, 0]
        losses: Floats = np.maximum(logit, 0.0) + _log1p_unit(_exp_negative(-np.abs(logit)))
        return losses
    highest = out.max(axis=1)
    total = _sum_in_order(_exp_negative(out - highest[:, None]).T)
    logs = np.array([math.log(value) for value in total])  # NumPy's own may differ in the last bit
    return np.asarray(highest - out[np.arange(len(out)), labels] + logs)


def predict(features: NDArray[Any], parameters: Floats, workspace: Workspace) -> None:
    """Compute outputs and predicted classes of every sample, into the workspace."""
    out = workspace.out
    with np.errstate(all="ignore"):
        out[...] = _scores(features, parameters, out.shape[1])
    workspace.predicted[...] = out[:, 0] > 0 if out.shape[1] == 1 else out.argmax(axis=1)


def evaluate(task: Task, parameters: Floats, workspace: Workspace, signals: Floats) -> None:
    """Compute losses, predictions and signals of every sample, into the workspace and ``signals``."""
    predict(task.features, parameters, workspace)
    with np.errstate(all="ignore"):
        workspace.losses[...] = _cross_entropies(workspace.out, task.labels)
        for t, target in enumerate(task.targets):
            labels = task.labels if target < 0 else np.full(task.labels.size, target)
            if task.by_error:
                signals[t] = workspace.predicted != labels
            else:
                signals[t] = workspace.losses if target < 0 else _cross_entropies(workspace.out, labels)


def train_batches(
    task: Task, parameters: Floats, adam: Adam, batches: NDArray[np.int64], penalised: bool
) -> None:
    """Take one step for each batch."""
    with np.errstate(all="ignore"):  # what diverges is noticed by its losses
        for batch in batches:
            slope = _gradient(task, parameters, batch)
            if penalised:
                for direction in task.directions:
                    sign = np.sign(_sum_in_order(direction * parameters))
                    slope += task.penalty_weight * sign * direction
            _adam_step(parameters, slope, adam, task.learning_rate)


def _gradient(task: Task, parameters: Floats, batch: NDArray[np.int64]) -> Floats:
    """Compute the gradient of the batch's mean cross-entropy, each sample's times its weight."""
    features, labels = task.features[batch], task.labels[batch]
    outputs = parameters.size // (features.shape[1] + 1)
    out = _scores(features, parameters, outputs)
    if outputs == 1:
        small = _exp_negative(-np.abs(2.0 * out[:, 0]))
        chance = np.where(out[:, 0] >= 0, 1.0, small) / (1.0 + small)
        out[:, 0] = 2.0 * (chance - labels) / batch.size
    else:
        odds = _exp_negative(out - out.max(axis=1)[:, None])
        hits = labels[:, None] == np.arange(outputs)
        out = (odds / _sum_in_order(odds.T)[:, None] - hits) / batch.size
    if task.weights.size > 0:
        out *= task.weights[batch][:, None]
    slopes = [_sum_in_order(out[:, k, None] * features) for k in range(outputs)]
    return np.concatenate([*slopes, _sum_in_order(out)])


def _adam_step(parameters: Floats, slope: Floats, adam: Adam, learning_rate: float) -> None:
    """Take one step of Adam with torch's defaults."""
    adam.steps[0] += 1
    steps = int(adam.steps[0])
    unbias_first, unbias_second = 1 - _power(0.9, steps), math.sqrt(1 - _power(0.999, steps))
    first, second = adam.first, adam.second
    first += 0.1 * (slope - first)
    second[...] = 0.999 * second + 0.001 * slope * slope
    parameters -= learning_rate / unbias_first * first / (np.sqrt(second) / unbias_second + 1e-8)


def _power(base: float, exponent: int) -> float:
    """Raise to a power by repeated squaring, as compiled code does.

    >>> _power(2.0, 10)
    1024.0
    """
    result = 1.0
    while exponent:
        if exponent & 1:
            result *= base
        exponent >>= 1
        base *= base
    return result
