"""What the kernels of the linear model work on, in NumPy and in compiled code."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "Adam",
    "Evaluation",
    "SparseRows",
    "Task",
    "Workspace",
    "new_adam",
    "new_workspace",
    "no_sparse_rows",
    "sparse_rows",
]

STRANDS = 4  # in which compiled code adds up a row, see :func:`~fairsieve.training.compiled_linear.scores`
SPARSE = 0.3  # of the columns, up to which rows are stored without their zeros


class SparseRows(NamedTuple):
    """Features without most of their zeros; no rows, where they are used as they are.

    Every row has as many entries as the fullest one, the last of some rows zeros of some column: loops of one length
    are faster than fewer entries. Entries are in the order of their columns.
    """

    entries: NDArray[Any]  # (n, width)
    columns: NDArray[np.int32]  # (n, width)


class Task(NamedTuple):
    """What is learned."""

    features: NDArray[Any]  # (n, d)
    sparse: SparseRows  # the same without zeros, for compiled code
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


def no_sparse_rows(features: NDArray[Any]) -> SparseRows:
    """Say that features are used as they are."""
    return SparseRows(np.zeros((0, 0), features.dtype), np.zeros((0, 0), np.int32))


def sparse_rows(features: NDArray[Any]) -> SparseRows:
    """Store features without their zeros; no rows, where they have too few zeros for that to pay.

    Examples
    --------
    >>> rows = sparse_rows(np.array([[0.0] * 4 + [7.0] + [0.0] * 4, [0.0] * 7 + [5.0, 6.0]]))
    >>> rows.entries.tolist(), rows.columns.tolist()
    ([[7.0, 0.0], [5.0, 6.0]], [[4, 1], [7, 8]])
    """
    present = features != 0
    counts = present.sum(axis=1)
    width = int(counts.max(initial=0))
    if width > SPARSE * features.shape[1]:
        return no_sparse_rows(features)
    entries = np.zeros((len(features), width), features.dtype)
    columns = np.tile(np.arange(width, dtype=np.int32), (len(features), 1))
    rows, own = np.nonzero(present)
    places = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
    entries[rows, places], columns[rows, places] = features[rows, own], own
    return SparseRows(entries, columns)
