"""The contract of rows: what the solver asks, and which rows it asks about.

Every answer is a sum over rows (or can be added up from those of parts), so that arrays in memory, tensors on a device
and the partitions of a cluster serve alike. :class:`~fairsieve.training.rows.LinearRows` and
:class:`~fairsieve.training.parts.PartRows` implement it.
"""

from __future__ import annotations

import math
import os
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np
import threadpoolctl  # type: ignore[import-untyped]
from scipy import sparse

from fairsieve.samples import Samples, dense, draw_rows
from fairsieve.selection.cells import Floats, Integers, Values, slices
from fairsieve.validation import check_device, is_tensor


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

    def take(self, rows: Integers) -> Rows:
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
    def host_labels(self) -> Integers: ...

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

    def take(self, rows: Integers) -> Table:
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


# ---- The rows of a linear model: everything that the solver asks of them, as sums
#
# Gradient, curvature, counts of each cell below a loss, confusion tables: each is a sum over rows, computed
# some rows at a time. So the same questions can be answered by arrays in memory, by SciPy's sparse matrices,
# by tensors on a device, and by the partitions of a cluster, whose sums are added up.

Array = Any  # a NumPy array or a torch tensor

CHUNK_BYTES = 4 * 2**20  # of features in one product: they stay in a processor's cache
DEVICE_CHUNK_BYTES = 256 * 2**20
CHUNK_ROWS = 2**15
LOOKED_AT = 1000  # rows by which a column is judged to be far from zero
FAR = 1e4  # spreads: the squares of what is farther would leave half of a double's digits
THREADS_PAY = 2**20  # numbers in the features from which on threads share a product
MOST_THREADS = 8


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
    shift : array of shape (d,), or 0
        What was taken off the features, see :meth:`near_zero`.
    """

    def __init__(
        self,
        features: Any,
        labels: Array,
        groups: Array,
        shape: tuple[int, int],
        weights: Array | None = None,
        chances: Array | None = None,
        shift: Any = 0.0,
    ) -> None:
        self.features, self.shape, self.chances, self.shift = features, shape, chances, shift
        self.samples, self.columns = features.shape
        self.outputs = 1 if shape[0] <= 2 else shape[0]
        self.is_sparse = sparse.issparse(features)
        self.xp: Any = sys.modules["torch"] if is_tensor(features) else np
        self.labels, self.groups = (self.xp.asarray(codes, dtype=self.xp.int64) for codes in (labels, groups))
        self.weights = self._array(np.ones(self.samples)) if weights is None else weights
        itemsize = 8 if self.is_sparse else features.itemsize
        size = CHUNK_BYTES if self.xp is np else DEVICE_CHUNK_BYTES
        step = max(1, size // max(1, itemsize * self.columns))
        step = min(step, CHUNK_ROWS) if self.xp is np else step
        self.chunks = slices(self.samples, step) or [slice(0)]
        pays = self.xp is np and not self.is_sparse and self.samples * self.columns >= THREADS_PAY
        self.threads = min(os.cpu_count() or 1, MOST_THREADS) if pays else 1
        self._scores: list[tuple[Floats, Array]] = []
        self._table: Any = None  # by which the last targets were weighted
        self._targets: list[tuple[Array, Array]] = []
        self._bend: Any = None  # what products with the second derivatives have in common

    @classmethod
    def of(cls, data: Samples, weights: Floats | None) -> LinearRows:
        """Make rows of samples."""
        return cls(data.features, data.cells.label_codes, data.cells.group_codes, data.cells.shape, weights)

    @property
    def is_single(self) -> bool:
        """Whether the features are in single precision."""
        return bool(self.features.dtype.itemsize < 8)

    @property
    def in_memory(self) -> LinearRows:
        """The rows themselves."""
        return self

    def near_zero(self) -> LinearRows:
        """Shift the dense columns that are far from zero for their spread, as numbers of accounts are.

        A copy is made only where there are such columns.
        """
        if self.is_sparse:
            return self
        some = self.features[draw_rows(self.samples, LOOKED_AT)].astype(np.float64)
        mean, spread = some.mean(axis=0), some.std(axis=0)
        far = np.abs(mean) > FAR * np.where(spread > 0, spread, 1.0)
        if not far.any():
            return self
        shift = np.where(far, mean, 0.0).astype(self.features.dtype)
        arrays = self.features - shift, self.labels, self.groups
        return LinearRows(*arrays, self.shape, self.weights, self.chances, shift.astype(np.float64))

    def on_device(self, device: str | None) -> LinearRows:
        """Return the rows on a device of torch; in memory when None."""
        if device in (None, "cpu"):
            return self
        torch = check_device(device)
        arrays = dense(self.features), self.labels, self.groups, self.weights
        features, labels, groups, weights = (torch.tensor(values, device=device) for values in arrays)
        return LinearRows(features, labels, groups, self.shape, weights, shift=self.shift)

    def take(self, rows: Integers) -> LinearRows:
        """Return some of the rows."""
        at = self._array(rows)
        chances = None if self.chances is None else self.chances[at]
        arrays = self.features[at], self.labels[at], self.groups[at]
        return LinearRows(*arrays, self.shape, self.weights[at], chances, self.shift)

    def with_weights(self, weights: Floats) -> LinearRows:
        """Return the rows under other weights."""
        return self._change(weights=self._array(weights))

    def with_labels(self, labels: Values, chances: Floats | None = None) -> LinearRows:
        """Return the rows under other labels, or with chances of each class."""
        known = None if chances is None else self._array(chances)
        return self._change(labels=self._array(labels.astype(np.int64)), chances=known)

    def _change(self, **attributes: Any) -> LinearRows:
        """Return the rows with other attributes; they share the features, and the scores of the last models."""
        changed = copy(self)
        vars(changed).update(attributes, _table=None, _bend=None)
        return changed

    def reference(self) -> Floats:
        """Return a row from which deviations are measured: squares of what is far from zero would cancel."""
        return np.zeros(self.columns) if self.is_sparse else to_host(self.features[0])

    def moments(self, reference: Floats) -> Floats:
        """Return weighted sums of each column's deviations, and of their squares, (2, columns)."""

        def add(part: slice) -> Floats:
            features, own = self.features[part], self.weights[part]
            if self.is_sparse:
                return np.stack([own @ features, own @ features.power(2)])
            features = features - self._array(reference)
            return np.stack([to_host(own @ features), to_host(own @ features**2)])

        return self._add(add)

    def standard_moments(self, mean: Floats, spread: Floats) -> Floats:
        """Return weighted sums of the third and fourth powers of standardised columns, (2, columns)."""

        def add(part: slice) -> Floats:
            features, own = self.features[part], self.weights[part]
            if not self.is_sparse:
                # In single precision a fourth power may overflow.
                standard = (self._array(features, self.xp.float64) - self._array(mean)) / self._array(spread)
                cubes = standard * standard * standard
                return np.stack([to_host(own @ cubes), to_host(own @ (cubes * standard))])
            # The zeros of a sparse matrix are as far from the mean as it is from them.
            features = features.astype(np.float64).tocsc()
            columns = np.repeat(np.arange(self.columns), np.diff(features.indptr))
            values = (features.data - mean[columns]) / spread[columns]
            there = own[features.indices]
            zeros = own.sum() - np.bincount(columns, there, self.columns)
            return np.stack(
                [
                    np.bincount(columns, there * values**power, self.columns)
                    + zeros * (-mean / spread) ** power
                    for power in (3, 4)
                ]
            )

        return self._add(add)

    def derivatives(self, parameters: Floats, table: Floats, *, hessian: bool = False) -> Derivatives:
        """Return the loss of a model, weighted by cell, its gradient and, if asked, its second derivatives.

        Parameters
        ----------
        parameters : array of shape (outputs, d + 1)
            In the units of the features.
        table : array of shape (classes, groups)
            What multiplies the weights of a cell's rows.
        """
        scores, targets = self.scores(parameters), self._find_targets(table)

        def add(place: int) -> Derivatives:
            part, (total, wanted) = self.chunks[place], targets[place]
            own = scores[part]
            log_sums, chances = self._normalise(own)
            value = total @ log_sums - (wanted * own).sum()
            gradient = self._transposed(part, total[:, None] * chances - wanted)
            second = self._gram(part, total, chances) if hessian else np.empty((0, 0, 0))
            return Derivatives(float(value), gradient, second)

        found: Derivatives = add_up(map_in_threads(add, range(len(self.chunks)), self.threads))
        return found

    def hessian_times(self, parameters: Floats, table: Floats, direction: Floats) -> Floats:
        """Return the product of the second derivatives with a direction, where there are too many for a matrix."""
        scores, targets = self.scores(parameters), self._find_targets(table)
        if self._bend is None or self._bend[0] is not scores:
            self._bend = scores, [self._normalise(scores[part])[1] for part in self.chunks]
        chances = self._bend[1]

        def add(place: int) -> Floats:
            (total, _), own, part = targets[place], chances[place], self.chunks[place]
            moved = self._times(part, direction)
            pulled = own * (moved - self.xp.einsum("ij,ij->i", own, moved)[:, None])
            return self._transposed(part, total[:, None] * pulled)

        return np.asarray(add_up(map_in_threads(add, range(len(self.chunks)), self.threads)))

    def confusion(self, *models: Floats) -> Floats:
        """Count what models predict together, (classes, groups, predicted by the first, by the next, …)."""
        classes, groups = self.shape
        scores = [self.scores(parameters) for parameters in models]
        shape = classes, groups, *[classes] * len(models)

        def add(part: slice) -> Floats:
            place: Any = self.groups[part]
            for own in scores:
                likeliest = (own[part, 0] > 0) * 1 if self.outputs == 1 else own[part].argmax(1)
                place = place * classes + likeliest
            size = groups * classes ** len(models)
            counted = [self._count(label * size + place, own, shape) for label, own in self._labelled(part)]
            return np.asarray(sum(counted))

        return self._add(add)

    def soft_confusion(self, parameters: Floats, temperature: float) -> Floats:
        """Count predictions as far as they are made, (classes, groups, predicted).

        A row counts for every class by the chance that the model gives it with scores divided by ``temperature``: of
        low temperatures almost only for the likeliest one. Unlike :meth:`confusion` this has a derivative.
        """
        classes, groups = self.shape
        scores = self.scores(parameters)

        def add(part: slice) -> Floats:
            soft, table = self._soften(scores[part], temperature), np.zeros((classes, groups, classes))
            for labels, own in self._labelled(part):
                cells = labels * groups + self.groups[part]
                for predicted in range(classes):
                    table[:, :, predicted] += self._count(cells, own * soft[:, predicted], (classes, groups))
            return table

        return self._add(add)

    def score_moments(self, parameters: Floats) -> Floats:
        """Return the sum of the weights, and weighted sums of the scores and their squares, (3,)."""
        scores = self.scores(parameters)

        def add(part: slice) -> Floats:
            own = scores[part] if self.outputs == 1 else scores[part] - scores[part].mean(1)[:, None]
            weights = self.weights[part]
            sums = [weights.sum(), weights @ own.mean(1), weights @ (own**2).mean(1)]
            return np.array([float(each) for each in sums])

        return self._add(add)

    def soft_gradient(self, parameters: Floats, coefficients: Floats, temperature: float) -> Floats:
        """Return the gradient of ``(coefficients * soft_confusion).sum()`` by the parameters."""
        scores, table = self.scores(parameters), self._array(coefficients)

        def add(part: slice) -> Floats:
            soft, wanted = self._soften(scores[part], temperature), 0.0
            for labels, own in self._labelled(part):
                wanted = wanted + own[:, None] * table[labels, self.groups[part]]
            pulled = soft * (wanted - (soft * wanted).sum(1)[:, None]) / temperature
            return self._transposed(part, pulled[:, 1:] if self.outputs == 1 else pulled)

        return self._add(add)

    def loss_counts(self, parameters: Floats, low: float, high: float, bins: int) -> Floats:
        """Add up the weights of each cell by loss, (classes, groups, bins), between ``low`` and ``high``."""
        scores = self.scores(parameters)

        def add(part: slice) -> Floats:
            place = (self._bounded_losses(part, scores) - low) * (bins / (high - low))
            inside = (place >= 0) & (place < bins)
            cell = self.labels[part] * self.shape[1] + self.groups[part]
            place = cell[inside] * bins + self.xp.asarray(place[inside], dtype=self.xp.int64)
            return self._count(place, self.weights[part][inside], (*self.shape, bins))

        return self._add(add)

    def select(self, parameters: Floats, limit: LossLimit) -> LinearRows:
        """Return the rows whose losses are selected: the same features, with weights of 0 for the others."""
        if limit is EVERYTHING:
            return self
        scores, weights = self.scores(parameters), []
        for part in self.chunks:
            own, losses = self.weights[part], self._bounded_losses(part, scores)
            at_limit = (losses >= limit.low) & (losses < limit.high)
            weights.append(own * (losses < limit.low) + limit.share * own * at_limit)
        return self._change(weights=self.xp.concatenate(weights))

    def scores(self, parameters: Floats) -> Array:
        """Return the scores of the rows, (n, outputs), in double precision.

        The last two are kept: a line search asks for the same ones again.
        """
        for known, scores in self._scores:
            if np.array_equal(known, parameters):
                return scores
        parts = map_in_threads(lambda part: self._times(part, parameters), self.chunks, self.threads)
        scores = self.xp.concatenate(parts)
        self._scores[:] = [(parameters.copy(), scores), *self._scores[:1]]  # views share the list
        return scores

    def probabilities(self, parameters: Floats) -> Floats:
        """Return the chances of the classes of each row, (n, classes)."""
        scores = self.scores(parameters)
        return np.concatenate([to_host(self._soften(scores[part], 1.0)) for part in self.chunks])

    def own_chances(self, parameters: Floats) -> Floats:
        """Return the chance of each row's label, (n,)."""
        losses = to_host(self._bounded_losses(slice(None), self.scores(parameters)))
        return np.exp(-losses / np.maximum(1 - losses, 1e-300))

    @property
    def host_labels(self) -> Integers:
        """The labels, in memory."""
        return to_host(self.labels).astype(np.int64)

    @property
    def host_weights(self) -> Floats:
        """The weights, in memory."""
        return to_host(self.weights)

    def _labelled(self, part: slice) -> Iterator[tuple[Array, Array]]:
        """Yield the labels of a chunk and their weights; with chances, every class and how much each row is of it."""
        if self.chances is None:
            yield self.labels[part], self.weights[part]
            return
        for label in range(self.shape[0]):
            yield self._codes[label], self.weights[part] * self.chances[part, label]

    def _find_targets(self, table: Floats) -> list[tuple[Array, Array]]:
        """Return for each chunk every row's weight, and how much of it is for each class, (n, outputs).

        Of two classes the latter is for the second. Those of the last table are kept: most models have the same.
        """
        if self._table is None or (self._table != table).any():
            self._table, factors = table.copy(), self._array(table)
            codes = self._codes[1:2] if self.outputs == 1 else self._codes

            def weigh(part: slice) -> tuple[Array, Array]:
                total = wanted = 0.0
                for labels, weights in self._labelled(part):
                    own = weights * factors[labels, self.groups[part]]
                    total, wanted = total + own, wanted + own[:, None] * (labels[..., None] == codes)
                return total, wanted

            self._targets = map_in_threads(weigh, self.chunks, self.threads)
        return self._targets

    def _soften(self, scores: Array, temperature: float) -> Array:
        """Return how far each class is predicted, (n, classes)."""
        _, chances = self._normalise(scores / temperature)
        return self.xp.hstack([1 - chances, chances]) if self.outputs == 1 else chances

    def _bounded_losses(self, part: slice, scores: Array) -> Array:
        """Return ℓ / (1 + ℓ) of each row under its label."""
        own, labels = scores[part], self.labels[part]
        if self.outputs == 1:
            losses, _ = self._normalise(self.xp.where((labels == 1)[:, None], -own, own))
        else:
            losses = self._normalise(own)[0] - (own * (labels[:, None] == self._codes)).sum(1)
        return losses / (1 + losses)

    @property
    def _codes(self) -> Array:
        return self._array(np.arange(self.shape[0]))

    def _array(self, values: Any, dtype: Any = None) -> Array:
        """Return values where the rows are, of another type if asked."""
        if self.xp is np:
            return np.asarray(values, dtype=dtype)
        return self.xp.as_tensor(values, dtype=dtype, device=self.features.device)

    def _times(self, part: slice, parameters: Floats) -> Array:
        """Return features · coefficients + intercepts of a chunk, (n, outputs), in double precision."""
        features = self.features[part]
        return features @ self._array(parameters[:, :-1].T, features.dtype) + self._array(parameters[:, -1])

    def _transposed(self, part: slice, residuals: Array) -> Floats:
        """Return residuals times the features of a chunk with a column of ones, (outputs, d + 1)."""
        features = self.features[part]
        product = self._array(residuals, features.dtype).T @ features
        return np.column_stack([to_host(product), to_host(residuals.sum(0))])

    def _gram(self, part: slice, total: Array, chances: Array) -> Floats:
        """Return the second derivatives of a chunk's losses by each output's parameters, (outputs, d + 1, d + 1)."""
        features = self.features[part].toarray() if self.is_sparse else self.features[part]
        design = self.xp.hstack([features, self.xp.ones_like(total)[:, None]])
        bends = (total[:, None] * chances * (1 - chances)).T
        # A product with itself takes half the operations.
        halves = (design * self.xp.sqrt(bend)[:, None] for bend in bends)
        return np.stack([to_host(half.T @ half) for half in halves])

    def _add(self, work: Callable[[slice], Floats]) -> Floats:
        """Do some work for each chunk of rows, on several threads if that pays; add up the results."""
        return np.asarray(add_up(map_in_threads(work, self.chunks, self.threads)))

    def _count(self, places: Array, weights: Array, shape: tuple[int, ...]) -> Floats:
        """Add up weights by place."""
        return to_host(self.xp.bincount(places, weights=weights, minlength=math.prod(shape))).reshape(shape)

    def _normalise(self, scores: Array) -> tuple[Array, Array]:
        """Return log Σ exp of each row's scores, and the chance of each class.

        Of two classes, the first has the score 0, and the chances are those of the second, (n, 1).
        """
        if self.outputs == 1:
            small = self.xp.exp(-abs(scores))
            chances = self.xp.where(scores >= 0, 1.0, small) / (1.0 + small)
            return scores[:, 0].clip(0) + self.xp.log1p(small[:, 0]), chances
        highest = self.xp.amax(scores, 1)[:, None]
        powers = self.xp.exp(scores - highest)
        sums = powers.sum(1)
        return highest[:, 0] + self.xp.log(sums), powers / sums[:, None]


def add_up(answers: Sequence[Any]) -> Any:
    """Add up what parts of the rows answered, always in the same order."""
    if isinstance(answers[0], Derivatives):
        return Derivatives(*(sum(each) for each in zip(*answers, strict=True)))
    return sum(answers)


def to_host(values: Any) -> Floats:
    """Return an array or a tensor as an array of doubles."""
    return np.asarray(values.cpu().numpy() if is_tensor(values) else values, dtype=np.float64)


# The threads of a BLAS library wait for each other after every product, in a busy loop. Products of a few thousand rows
# take less time than that, and where other processes are at work the waiting takes several times as long as the
# product. So BLAS gets one thread, and long products are cut into chunks of rows for threads of ours.
_lock = threading.Lock()
_limits: dict[str, tuple[int, Any]] = {}  # how many are inside, and what takes the limit back

Item = TypeVar("Item")
Result = TypeVar("Result")


@contextmanager
def one_thread(kind: str) -> Iterator[None]:
    """Let libraries of a kind, "blas" or "openmp", use one thread, in a block or a function that this decorates.

    The limit is the whole process's for BLAS, and OpenMP's of this thread. Where several threads of Python are inside
    at once, the first one sets it, and the last one that leaves takes it back: each by itself would take the limit
    of another for what had been there before.
    """
    key = kind if kind == "blas" else f"{kind} {threading.get_ident()}"
    with _lock:
        inside, limiter = _limits.get(key, (0, None))
        limiter = limiter or _libraries(kind).limit(limits=1)
        _limits[key] = inside + 1, limiter
    try:
        yield
    finally:
        with _lock:
            inside, limiter = _limits.pop(key)
            if inside > 1:
                _limits[key] = inside - 1, limiter
            else:
                # threadpoolctl 3.8 lets no thread but the one that set OpenBLAS' limit change it: that may be another.
                _give_openblas_free()
                limiter.restore_original_limits()
                _give_openblas_free()


def _give_openblas_free() -> None:
    """Let any thread change how many threads OpenBLAS uses."""
    clear = getattr(getattr(threadpoolctl, "OpenBLASController", None), "clear_controlling_thread", None)
    if clear is not None:
        clear(force=True)


def map_in_threads(function: Callable[[Item], Result], items: Iterable[Item], threads: int) -> list[Result]:
    """Apply a function to each item on some threads; return the results in order.

    The function must not call this again: all calls share one pool. Where it multiplies matrices, call this inside
    of :func:`one_thread`.

    Examples
    --------
    >>> map_in_threads(abs, [-1, 2, -3], threads=2)
    [1, 2, 3]
    """
    if threads <= 1:
        return [function(item) for item in items]
    return list(_pool(threads).map(function, items))


@cache
def _pool(threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads, thread_name_prefix="fairsieve")


@cache
def _libraries(kind: str) -> Any:
    """Return the libraries of this process that have threads; looking for them takes some milliseconds."""
    return threadpoolctl.ThreadpoolController().select(user_api=kind)


if hasattr(os, "register_at_fork"):  # a forked process has none of the threads
    os.register_at_fork(after_in_child=_pool.cache_clear)
