"""What the kernels of the linear model work on, in NumPy and in compiled code."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["Adam", "Evaluation", "Task", "Workspace", "new_adam", "new_workspace"]


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


class Workspace(NamedTuple):
    """Arrays that every epoch fills anew."""

    everyone: NDArray[np.int64]  # 0 … n − 1
    out: NDArray[np.float64]  # (n, outputs)
    losses: NDArray[np.float64]  # (n,)
    predicted: NDArray[np.int64]


class Evaluation(NamedTuple):
    """Samples to measure every epoch on; none, where there is no evaluation."""

    features: NDArray[Any]
    codes: NDArray[Any]


def new_workspace(samples: int, outputs: int) -> Workspace:
    """Make the arrays for so many samples."""
    return Workspace(
        np.arange(samples), np.empty((samples, outputs)), np.empty(samples), np.empty(samples, np.int64)
    )


def new_adam(parameters: int) -> Adam:
    """Make the state of an optimiser that has taken no step."""
    return Adam(np.zeros(parameters), np.zeros(parameters), np.zeros(1, np.int64))
