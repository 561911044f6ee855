"""The contract of rows: what the solver asks, and which rows it asks about.

Every answer is a sum over rows (or can be added up from those of parts), so that arrays in memory, tensors on a device
and the partitions of a cluster serve alike. :class:`~fairsieve.training.linear_rows.LinearRows` and
:class:`~fairsieve.training.parts.PartRows` implement it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


class LossLimit(NamedTuple):
    """Which losses are selected: all below ``low``, and ``share`` of each sample between ``low`` and ``high``.

    Losses are written as ℓ / (1 + ℓ), between 0 and 1. A sample is taken in part where its whole would break a
    budget; so a sample of weight 2 is the same as the sample twice.
    """

    low: float
    high: float
    share: float


EVERYTHING = LossLimit(2.0, 2.0, 1.0)


class Derivatives(NamedTuple):
    """The weighted loss of a model, and its derivatives by the parameters; the intercepts come last."""

    value: float
    gradient: Floats
    hessian: Floats  # of each output by itself, (outputs, d + 1, d + 1); empty where it was not asked for


class Rows(Protocol):
    """Rows with features, labels (or chances of them), groups and weights, wherever they are.

    Attributes
    ----------
    samples, columns, outputs : int
        How many rows and features there are, and how many scores a model has: one for two classes.
    shape : tuple of int
        How many classes and groups there are.
    shift : array of shape (d,), or 0
        What was taken off the features.
    is_single : bool
        Whether the features are in single precision.
    """

    samples: int
    columns: int
    outputs: int
    shape: tuple[int, int]
    shift: Any

    @property
    def is_single(self) -> bool: ...

    @property
    def in_memory(self) -> RowsInMemory:
        """The rows or, where they are too many, a sample of them."""

    def take(self, rows: NDArray[np.int64]) -> Rows:
        """Return some of the rows, in memory."""

    def select(self, parameters: Floats, limit: LossLimit) -> Rows:
        """Return the rows whose losses under a model are selected."""

    def reference(self) -> Floats:
        """Return a row from which deviations are measured."""

    def moments(self, reference: Floats) -> Floats:
        """Return weighted sums of each column's deviations, and of their squares, (2, columns)."""

    def standard_moments(self, mean: Floats, spread: Floats) -> Floats:
        """Return weighted sums of the third and fourth powers of standardised columns, (2, columns)."""

    def derivatives(self, parameters: Floats, table: Floats, *, hessian: bool = False) -> Derivatives:
        """Return the loss of a model, weighted by cell, its gradient and, if asked, its second derivatives."""

    def hessian_times(self, parameters: Floats, table: Floats, direction: Floats) -> Floats:
        """Return the product of the second derivatives with a direction."""

    def confusion(self, *models: Floats) -> Floats:
        """Count what models predict together, (classes, groups, predicted by the first, by the next, …)."""

    def soft_confusion(self, parameters: Floats, temperature: float) -> Floats:
        """Count predictions as far as they are made, (classes, groups, predicted)."""

    def soft_gradient(self, parameters: Floats, coefficients: Floats, temperature: float) -> Floats:
        """Return the gradient of ``(coefficients * soft_confusion).sum()`` by the parameters."""

    def score_moments(self, parameters: Floats) -> Floats:
        """Return the sum of the weights, and weighted sums of the scores and their squares, (3,)."""

    def loss_counts(self, parameters: Floats, low: float, high: float, bins: int) -> Floats:
        """Add up the weights of each cell by loss, (classes, groups, bins)."""


class RowsInMemory(Rows, Protocol):
    """Rows that can also be looked at one by one."""

    @property
    def host_labels(self) -> NDArray[np.int64]: ...

    @property
    def host_weights(self) -> Floats: ...

    def with_weights(self, weights: Floats) -> RowsInMemory:
        """Return the rows under other weights."""

    def probabilities(self, parameters: Floats) -> Floats:
        """Return the chances of the classes of each row, (n, classes)."""


@dataclass(frozen=True, eq=False)
class Table:
    """The same rows in four roles.

    Attributes
    ----------
    train : Rows
        Weighted and labelled as they are trained on.
    believed : Rows
        All rows, labelled as they are trained on.
    judged : Rows
        All rows, by which accuracies and gaps are measured.
    given : Rows
        All rows, labelled as they came, for the plain model.
    to_true : array of shape (groups, classes, classes), optional
        Turns counts by the labels of ``judged`` into counts by true class, where it is known how often labels are
        flipped: entry (group, label, class).
    """

    train: Rows
    believed: Rows
    judged: Rows
    given: Rows
    to_true: Floats | None = None

    def take(self, rows: NDArray[np.int64]) -> Table:
        """Return some of the rows."""
        roles = self.train, self.believed, self.judged, self.given
        taken = {key: each.take(rows) for key, each in {id(each): each for each in roles}.items()}
        train, believed, judged, given = (taken[id(each)] for each in roles)
        return Table(train, believed, judged, given, self.to_true)

    def correct(self, counts: Floats) -> Floats:
        """Turn counts of judged labels, (classes, groups, …), into counts by true class."""
        if self.to_true is None:
            return counts
        return np.asarray(np.maximum(np.einsum("zji,jz...->iz...", self.to_true, counts), 0.0))

    def uncorrect(self, slopes: Floats) -> Floats:
        """Turn a derivative by counts of true classes into one by counts of judged labels."""
        return slopes if self.to_true is None else np.einsum("zji,iz...->jz...", self.to_true, slopes)
