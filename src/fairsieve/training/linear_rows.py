"""The rows of a linear model: everything that the solver asks of them, as sums.

Gradient, curvature, counts of each cell below a loss, confusion tables: each is a sum over rows, computed some rows
at a time. So the same questions can be answered by arrays in memory, by SciPy's sparse matrices, by tensors on a
device, and by the partitions of a cluster, whose sums are added up.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from copy import copy
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from fairsieve.optional import is_tensor, require
from fairsieve.training.threads import MOST_THREADS, map_in_threads

__all__ = ["EVERYTHING", "Derivatives", "LinearRows", "LossLimit", "to_host"]

Array = Any  # a NumPy array or a torch tensor
Floats = NDArray[np.float64]

CHUNK_BYTES = 4 * 2**20  # of features in one product: they stay in a processor's cache
DEVICE_CHUNK_BYTES = 256 * 2**20
CHUNK_ROWS = 2**15
THREADS_PAY = 2**20  # numbers in the features from which on threads share a product


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
    hessian: Floats | None


class LinearRows:
    """Rows with labels, or with chances of the true label, and groups.

    Parameters
    ----------
    features : array, sparse matrix or tensor of shape (n, d)
    labels, groups : integer arrays of shape (n,)
        Class and group codes.
    shape : tuple of int
        How many classes and groups there are. Two classes have one row of parameters, more have one for each.
    weights : array of shape (n,), optional
        A weight of 2 is the same as the row twice.
    chances : array of shape (n, classes), optional
        How likely each class is the true one; the labels are certain when None. A row trains, and is judged, as every
        class in proportion to its chance.
    """

    def __init__(
        self,
        features: Any,
        labels: Array,
        groups: Array,
        shape: tuple[int, int],
        weights: Array | None = None,
        chances: Array | None = None,
    ) -> None:
        self.features, self.labels, self.groups, self.shape = features, labels, groups, shape
        self.weights, self.chances = weights, chances
        self.samples, self.columns = features.shape
        self.outputs = 1 if shape[0] <= 2 else shape[0]
        self.is_sparse = sparse.issparse(features)
        self.xp: Any = sys.modules["torch"] if is_tensor(features) else np
        itemsize = 8 if self.is_sparse else features.itemsize
        size = CHUNK_BYTES if self.xp is np else DEVICE_CHUNK_BYTES
        step = max(1, size // max(1, itemsize * self.columns))
        step = min(step, CHUNK_ROWS) if self.xp is np else step
        self.chunks = [slice(first, first + step) for first in range(0, self.samples, step)]
        pays = self.xp is np and not self.is_sparse and self.samples * self.columns >= THREADS_PAY
        self.threads = min(os.cpu_count() or 1, MOST_THREADS) if pays else 1
        self._scores: list[tuple[Floats, Array]] = []

    @classmethod
    def on_device(cls, device: str | None, features: Any, *arrays: Any, **others: Any) -> LinearRows:
        """Make rows on a device of torch; in memory when None."""
        if device in (None, "cpu"):
            return cls(features, *arrays, **others)
        torch = require("torch", extra="torch", purpose=f"training on the device {device!r}")

        def move(values: Any) -> Any:
            if values is None or isinstance(values, tuple):
                return values
            dense = values.toarray() if hasattr(values, "toarray") else np.asarray(values)
            kind = dense if dense.dtype.kind == "f" else dense.astype(np.int64)
            return torch.from_numpy(np.require(kind, requirements="W")).to(device)

        moved = [move(values) for values in (features, *arrays)]
        return cls(*moved, **{name: move(values) for name, values in others.items()})

    def take(self, rows: NDArray[np.int64]) -> LinearRows:
        """Return some of the rows."""
        at = rows if self.xp is np else self.xp.as_tensor(rows, device=self.features.device)
        weights, chances = (None if part is None else part[at] for part in (self.weights, self.chances))
        return LinearRows(
            self.features[at], self.labels[at], self.groups[at], self.shape, weights=weights, chances=chances
        )

    def with_labels(self, labels: NDArray[Any], chances: Floats | None = None) -> LinearRows:
        """Return the rows under other labels, or with chances of each class."""
        found = copy(self)
        found.labels, found.chances = labels, chances
        if self.xp is not np:
            place = {"device": self.features.device}
            found.labels = self.xp.as_tensor(labels.astype(np.int64), **place)
            found.chances = None if chances is None else self.xp.as_tensor(chances, **place)
        return found

    def reference(self) -> Floats:
        """Return a row from which deviations are measured: squares of what is far from zero would cancel."""
        if self.is_sparse:
            return np.zeros(self.columns)
        return self._host(self.features[0])

    def moments(self, reference: Floats) -> tuple[Floats, Floats, Floats]:
        """Return sums of weights, (classes, groups), and of each column's deviations and their squares."""

        def add(part: slice) -> tuple[Floats, Floats, Floats]:
            features, own = self.features[part], self._weights(part)
            if self.is_sparse:
                return self._masses(part), features.T @ own, features.power(2).T @ own
            if self.xp is np:
                features = features - reference
            else:
                features = features.double() - self.xp.as_tensor(reference, device=features.device)
            return self._masses(part), self._host(own @ features), self._host(own @ features**2)

        return self._add(add)

    def _masses(self, part: slice) -> Floats:
        """Add up the weights by class and group."""
        groups, own = self.groups[part], self._weights(part)
        if self.chances is None:
            cell = self._wide(self.labels[part]) * self.shape[1] + groups
            return self._sums(cell, own, self.shape[0] * self.shape[1]).reshape(self.shape)
        chances = self.chances[part]
        return np.stack(
            [self._sums(groups, own * chances[:, label], self.shape[1]) for label in range(self.shape[0])]
        )

    def derivatives(self, parameters: Floats, table: Floats, *, hessian: bool = False) -> Derivatives:
        """Return the loss of a model, weighted by cell, its gradient and, if asked, its second derivatives.

        Parameters
        ----------
        parameters : array of shape (outputs, d + 1)
            In the units of the features.
        table : array of shape (classes, groups)
            What multiplies the weights of a cell's rows.
        """
        scores, size = self.scores(parameters), self.columns + 1

        def add(part: slice) -> tuple[float, Floats, Floats]:
            own, total, wanted = scores[part], *self._targets(part, table)
            if self.outputs == 1:
                value = total @ self._softplus(own) - wanted @ own
            else:
                value = total @ self._log_sums(own) - (wanted * own).sum()
            chances = self._probabilities(own)
            residuals = total * chances - wanted if self.outputs == 1 else total[:, None] * chances - wanted
            gradient = self._transposed(part, residuals)
            found = self._gram(part, total, chances) if hessian else np.zeros((0, 0))
            return float(value), gradient, found

        value, gradient, found = self._add(add)
        return Derivatives(
            value, gradient, found.reshape(self.outputs * size, self.outputs * size) if hessian else None
        )

    def hessian_times(self, parameters: Floats, table: Floats, direction: Floats) -> Floats:
        """Return the product of the second derivatives with a direction, where there are too many for a matrix."""
        scores = self.scores(parameters)

        def add(part: slice) -> tuple[Floats]:
            total, _ = self._targets(part, table)
            chances, moved = self._probabilities(scores[part]), self._times(self.features[part], direction)
            if self.outputs == 1:
                return (self._transposed(part, total * chances * (1 - chances) * moved),)
            pulled = chances * (moved - (chances * moved).sum(1)[:, None])
            return (self._transposed(part, total[:, None] * pulled),)

        return np.asarray(self._add(add)[0])

    def confusion(self, *models: Floats) -> Floats:
        """Count what models predict together, (classes, groups, predicted by the first, by the next, …)."""
        classes, groups = self.shape
        scores = [self.scores(parameters) for parameters in models]
        places = groups * classes ** len(models)

        def add(part: slice) -> tuple[Floats]:
            cell = self._wide(self.groups[part])
            for own in scores:
                cell = cell * classes + self.predict(own[part])
            taken = self._weights(part)
            if self.chances is None:
                cell = self._wide(self.labels[part]) * places + cell
                return (self._sums(cell, taken, classes * places),)
            chances = self.chances[part]
            return (
                np.concatenate([self._sums(cell, taken * chances[:, y], places) for y in range(classes)]),
            )

        return np.asarray(self._add(add)[0]).reshape(classes, groups, *[classes] * len(models))

    def loss_counts(self, parameters: Floats, low: float, high: float, bins: int) -> Floats:
        """Add up the weights of each cell by loss, (classes, groups, bins), between ``low`` and ``high``."""
        scores = self.scores(parameters)

        def add(part: slice) -> tuple[Floats]:
            place = (self._bounded_losses(part, scores) - low) * (bins / (high - low))
            inside = (place >= 0) & (place < bins)
            cell = self._wide(self.labels[part]) * self.shape[1] + self.groups[part]
            place = place[inside]
            place = place.astype(np.int64) if self.xp is np else place.long()
            return (
                self._sums(
                    cell[inside] * bins + place,
                    self._weights(part)[inside],
                    self.shape[0] * self.shape[1] * bins,
                ),
            )

        return np.asarray(self._add(add)[0]).reshape(*self.shape, bins)

    def select(self, parameters: Floats, limit: LossLimit) -> LinearRows:
        """Return the rows whose losses are selected: the same features, with weights of 0 for the others."""
        if limit is EVERYTHING:
            return self
        scores, found = self.scores(parameters), copy(self)
        parts = [self._weights(part) * self._taken(part, limit, scores) for part in self.chunks]
        found.weights = self.xp.concatenate(parts)
        return found

    def scores(self, parameters: Floats) -> Array:
        """Return one score per row (two classes) or one per row and class, in double precision.

        The last two are kept: a line search asks for the same ones again.
        """
        for known, scores in self._scores:
            if np.array_equal(known, parameters):
                return scores
        if self.xp is np:
            found = np.empty((self.samples, self.outputs))
        else:
            kind = {"dtype": self.xp.float64, "device": self.features.device}
            found = self.xp.empty((self.samples, self.outputs), **kind)

        def fill(part: slice) -> None:
            found[part] = self._times(self.features[part], parameters).reshape(-1, self.outputs)

        map_in_threads(fill, self.chunks, self.threads)
        scores = found[:, 0] if self.outputs == 1 else found
        self._scores[:] = [(parameters.copy(), scores), *self._scores[:1]]  # views share the list
        return scores

    def predict(self, scores: Array) -> Array:
        """Return the likeliest class of each row."""
        return (scores > 0) * 1 if self.outputs == 1 else scores.argmax(1)

    def _targets(self, part: slice, table: Floats) -> tuple[Array, Array]:
        """Return each row's weight, and how much of it is for class 1 (two classes) or for each class."""
        taken = self._weights(part)
        factors = table if self.xp is np else self.xp.as_tensor(table, device=self.features.device)
        groups = self.groups[part]
        if self.chances is None:
            labels = self.labels[part]
            total = taken * factors[labels, groups]
            if self.outputs == 1:
                return total, total * (labels == 1)
            return total, total[:, None] * (labels[:, None] == self._classes())
        by_class = taken[:, None] * self.chances[part] * factors[:, groups].T
        return by_class.sum(1), by_class[:, 1] if self.outputs == 1 else by_class

    def _taken(self, part: slice, limit: LossLimit, scores: Array) -> Array:
        """Return the share of each row that is selected."""
        losses = self._bounded_losses(part, scores)
        return 1.0 * (losses < limit.low) + limit.share * ((losses >= limit.low) & (losses < limit.high))

    def _bounded_losses(self, part: slice, scores: Array) -> Array:
        """Return ℓ / (1 + ℓ) of each row under its label."""
        own, labels = scores[part], self.labels[part]
        if self.outputs == 1:
            losses = self._softplus(self.xp.where(labels == 1, -own, own))
        else:
            losses = self._log_sums(own) - (own * (labels[:, None] == self._classes())).sum(1)
        return losses / (1 + losses)

    def _classes(self) -> Array:
        codes = np.arange(self.shape[0])
        return codes if self.xp is np else self.xp.as_tensor(codes, device=self.features.device)

    def _weights(self, part: slice) -> Array:
        """Return the weights of a chunk, as an array."""
        if self.weights is not None:
            return self.weights[part]
        rows = len(self.labels[part])
        if self.xp is np:
            return np.ones(rows)
        return self.xp.ones(rows, dtype=self.xp.float64, device=self.features.device)

    def _times(self, features: Any, parameters: Floats) -> Array:
        """Return features · coefficients + intercepts, in double precision; (n,) for one output."""
        rows = parameters[0] if self.outputs == 1 else parameters.T
        if self.xp is np:
            return features @ rows[:-1].astype(features.dtype, copy=False) + rows[-1]
        moved = self.xp.as_tensor(np.ascontiguousarray(rows), device=features.device)
        return (features @ moved[:-1].to(features.dtype)).double() + moved[-1]

    def _transposed(self, part: slice, residuals: Array) -> Floats:
        """Return residuals times the features of a chunk with a column of ones, (outputs, d + 1)."""
        features, found = self.features[part], np.empty((self.outputs, self.columns + 1))
        own = residuals.astype(features.dtype, copy=False) if self.xp is np else residuals.to(features.dtype)
        if self.is_sparse:
            found[:, :-1] = np.reshape((features.T @ own).T, (self.outputs, -1))
        else:
            found[:, :-1] = self._host(own.T @ features)
        found[:, -1] = self._host(residuals.sum(0))
        return found

    def _gram(self, part: slice, total: Array, chances: Array) -> Floats:
        """Return the second derivatives of a chunk's losses."""
        features, size, outputs = self.features[part], self.columns + 1, self.outputs
        features = features.toarray() if self.is_sparse else features
        if self.xp is np:
            dense = np.ones((len(features), size))
            dense[:, :-1] = features
        else:
            ones = self.xp.ones((len(features), 1), dtype=self.xp.float64, device=features.device)
            dense = self.xp.hstack([features.double(), ones])
        if outputs == 1:  # a product with itself takes half the operations
            dense = dense * self.xp.sqrt(total * chances * (1 - chances))[:, None]
            return self._host(dense.T @ dense)
        found = np.empty((outputs, size, outputs, size))
        for a in range(outputs):
            for b in range(a + 1):
                bend = total * chances[:, a] * ((a == b) * 1.0 - chances[:, b])
                found[a, :, b] = self._host(dense.T @ (dense * bend[:, None]))
                found[b, :, a] = found[a, :, b].T
        return found

    def _add(self, work: Callable[[slice], tuple[Any, ...]]) -> tuple[Any, ...]:
        """Do some work for each chunk of rows, on several threads if that pays; add up the results."""
        parts = map_in_threads(work, self.chunks, self.threads)
        return tuple(sum(values[1:], values[0]) for values in zip(*parts, strict=True))

    def _sums(self, places: Array, values: Array, size: int) -> Floats:
        """Add up values by place."""
        if self.xp is np:
            return np.asarray(np.bincount(places, weights=values, minlength=size), dtype=np.float64)
        return self._host(places.bincount(weights=values, minlength=size))

    def _wide(self, codes: Array) -> Array:
        return codes.astype(np.int64) if self.xp is np else codes.long()

    def _host(self, values: Array) -> Floats:
        return np.asarray(values if self.xp is np else values.double().cpu().numpy(), dtype=np.float64)

    def _softplus(self, values: Array) -> Array:
        return values.clip(0) + self.xp.log1p(self.xp.exp(-abs(values)))

    def _log_sums(self, scores: Array) -> Array:
        highest = self.xp.amax(scores, 1)
        return highest + self.xp.log(self.xp.exp(scores - highest[:, None]).sum(1))

    def _probabilities(self, scores: Array) -> Array:
        """Return the chance of the second class, (n,), or of each of many, (n, classes)."""
        if self.outputs == 1:
            small = self.xp.exp(-abs(scores))
            return self.xp.where(scores >= 0, 1.0, small) / (1.0 + small)
        powers = self.xp.exp(scores - self.xp.amax(scores, 1)[:, None])
        return powers / powers.sum(1)[:, None]


def to_host(values: Any) -> NDArray[Any]:
    """Return an array or a tensor as an array."""
    return np.asarray(values.cpu().numpy() if is_tensor(values) else values)
