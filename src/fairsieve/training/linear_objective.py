"""The loss of a linear model over all samples: values, gradients, curvature and Newton's direction.

Everything is computed some rows at a time, so that the memory beside the features stays small, and sums are
kept in double precision whatever the type of the features. The same code works on NumPy arrays, on SciPy's
sparse matrices, and on torch tensors of any device: it uses only the functions that NumPy and torch spell in
the same way.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from fairsieve.optional import is_tensor
from fairsieve.training.curvature import Curvature
from fairsieve.training.threads import MOST_THREADS, map_in_threads

__all__ = ["LinearObjective"]

Array = Any  # a NumPy array or a torch tensor

CHUNK_BYTES = 4 * 2**20  # of features in one product: they stay in a processor's cache
CHUNK_ROWS = 2**15  # at most: what is computed for each sample of a chunk stays there too
DEVICE_CHUNK_BYTES = 256 * 2**20
HESSIAN_WORK = 2e8  # products of features that a curvature may take; it says from how many rows
HESSIAN_SAMPLES = 10_000, 50_000  # at least and at most so many rows
HESSIAN_SAMPLES_PER_COLUMN = 30
EXACT_WORK = 3e11  # products that an exact curvature may take: some ten seconds
HESSIAN_COLUMNS = 700  # parameters up to which the curvature is a matrix; beyond, conjugate gradients
THREADS_PAY = 2**20  # numbers in the features from which on threads share a product


class LinearObjective:
    """The weighted cross-entropy of a linear model with a ridge, ``Σ wᵢ ℓᵢ(θ) + ridge/2 · ‖coefficients‖²``.

    Parameters
    ----------
    features : array, sparse matrix or tensor of shape (n, d)
    labels : integer array or tensor of shape (n,)
        Class codes, on the device of the features.
    classes : int
        Two classes have one row of parameters, more have one for each class.
    ridge : float
        1.0 is scikit-learn's ``C=1.0``. Intercepts are not penalised.
    seed : int
        Decides from which rows the curvature is computed, where there are many.

    Examples
    --------
    >>> objective = LinearObjective(np.array([[-1.0], [1.0]]), np.array([0, 1]), 2)
    >>> scores = objective.scores(objective.zeros())
    >>> objective.losses(scores).round(3).tolist()
    [0.693, 0.693]
    """

    def __init__(self, features: Any, labels: Array, classes: int, ridge: float = 1.0, seed: int = 0) -> None:
        self.features, self.labels, self.classes, self.ridge = features, labels, classes, ridge
        self.samples, self.columns = features.shape
        self.outputs = 1 if classes <= 2 else classes
        self.is_sparse = sparse.issparse(features)
        self.xp: Any = np
        if is_tensor(features):
            self.xp = sys.modules["torch"]
        itemsize = 8 if self.is_sparse else features.itemsize
        size = CHUNK_BYTES if self.xp is np else DEVICE_CHUNK_BYTES
        rows = max(1, size // max(1, itemsize * self.columns))
        rows = min(rows, CHUNK_ROWS) if self.xp is np else rows
        self.chunks = [
            slice(first, min(first + rows, self.samples)) for first in range(0, self.samples, rows)
        ]
        if self.is_sparse and features.dtype == np.float64:
            self.chunks = [slice(0, self.samples)]
        self.threads = min(os.cpu_count() or 1, MOST_THREADS)
        if self.is_sparse or self.xp is not np or self.samples * self.columns < THREADS_PAY:
            self.threads = 1
        self.has_matrix = self.outputs * (self.columns + 1) <= HESSIAN_COLUMNS
        self.hessian_rows = self._draw_rows(seed)
        self._hessian_features: Array | None = None
        self._squares: tuple[NDArray[np.float64], NDArray[np.float64]] | None = None

    def take(self, rows: NDArray[np.int64]) -> LinearObjective:
        """Return the objective over some of the samples; the ridge shrinks with their number."""
        ridge = self.ridge * len(rows) / self.samples
        return LinearObjective(self.features[rows], self.labels[rows], self.classes, ridge)

    def as_values(self, values: NDArray[Any]) -> Array:
        """Return numbers where the features are."""
        return values if self.xp is np else self.xp.as_tensor(values, device=self.features.device)

    def zeros(self) -> NDArray[np.float64]:
        """Return the parameters of a model that knows nothing, (outputs, d + 1); intercepts come last."""
        return np.zeros((self.outputs, self.columns + 1))

    def scores(self, parameters: NDArray[np.float64]) -> Array:
        """Return one score per sample (two classes) or one per sample and class, in double precision."""
        scores = self._empty(self.samples, self.outputs)

        def fill(part: slice) -> None:
            scores[part] = self._times(self.features[part], parameters)

        self.over_chunks(fill)
        return scores[:, 0] if self.outputs == 1 else scores

    def losses(self, scores: Array) -> Array:
        """Return the cross-entropy of each sample."""
        return self._by_sample(self._losses, scores, self.labels)

    def _losses(self, scores: Array, labels: Array) -> Array:
        if self.outputs == 1:
            return self._softplus(self.xp.where(labels == 1, -scores, scores))
        return self._log_sums(scores) - self._own(scores, labels)

    def move_to(self, parameters: NDArray[np.float64], scores: Array, losses: Array, weights: Array) -> float:
        """Write the scores and the losses at some parameters over others; return the objective there."""

        def fill(part: slice) -> float:
            own = self._times(self.features[part], parameters)
            scores[part] = own = own[:, 0] if self.outputs == 1 else own
            losses[part] = own = self._losses(own, self.labels[part])
            return float(own @ weights[part])

        return float(sum(self.over_chunks(fill))) + self._penalty(parameters)

    def losses_against(self, scores: Array, target: int) -> Array:
        """Return the cross-entropy of each sample as if its label were ``target``."""

        def measure(scores: Array) -> Array:
            if self.outputs == 1:
                return self._softplus(-scores if target == 1 else scores)
            return self._log_sums(scores) - scores[:, target]

        return self._by_sample(measure, scores)

    def predictions(self, scores: Array) -> Array:
        """Return the likeliest class of each sample."""
        if self.outputs > 1:
            return scores.argmax(1)
        return (scores > 0).view(np.int8) if self.xp is np else (scores > 0) * 1

    def value(self, parameters: NDArray[np.float64], losses: Array, weights: Array) -> float:
        """Return the objective."""
        parts = self.over_chunks(lambda part: float(losses[part] @ weights[part]))
        return float(sum(parts)) + self._penalty(parameters)

    def total(self, weights: Array) -> float:
        """Return the sum of the weights."""
        return float(sum(self.over_chunks(lambda part: float(weights[part].sum()))))

    def _penalty(self, parameters: NDArray[np.float64]) -> float:
        return 0.5 * self.ridge * float((parameters[:, :-1] ** 2).sum())

    def gradient(self, parameters: NDArray[np.float64], scores: Array, weights: Array) -> NDArray[np.float64]:
        """Return the derivative of the objective by the parameters."""

        def residuals(part: slice) -> Array:
            found = self._residuals(scores[part], self.labels[part], weights[part])
            return found[:, None] if self.outputs == 1 else found

        found = self._transposed_times(residuals)
        found[:, :-1] += self.ridge * parameters[:, :-1]
        return found

    def _residuals(self, scores: Array, labels: Array, weights: Array) -> Array:
        """Return the derivative of each sample's weighted loss by its scores."""
        chances = self._probabilities(scores)
        if self.outputs == 1:
            return (chances - 1.0 * (labels == 1)) * weights
        if self.xp is np:
            chances[np.arange(len(labels)), labels] -= 1.0
        else:
            chances.scatter_add_(1, labels[:, None], -self.xp.ones_like(chances[:, :1]))
        return chances * weights[:, None]

    def _transposed_times(self, residuals: Callable[[slice], Array]) -> NDArray[np.float64]:
        """Return residuals, (rows, outputs) of each chunk, times the features with a column of ones."""

        def multiply(part: slice) -> NDArray[np.float64]:
            exact, product = residuals(part), np.empty((self.outputs, self.columns + 1))
            own, features = self._cast(exact), self.features[part]
            if self.is_sparse or self.xp is not np:
                product[:, :-1] = self._on_host(features.T @ own).T
            else:
                product[:, :-1] = own[:, 0] @ features if self.outputs == 1 else own.T @ features
            product[:, -1] = self._on_host(exact.sum(0))
            return product

        return np.asarray(sum(self.over_chunks(multiply), np.zeros((self.outputs, self.columns + 1))))

    def curvature(
        self, scores: Array, weights: Array, damping: float = 0.0, *, exact: bool = False
    ) -> Curvature:
        """Return the second derivatives at a model, as something that solves for Newton's direction.

        ``damping`` adds so many times the diagonal (Levenberg and Marquardt): where columns say almost the
        same, steps become short. ``exact`` asks for all rows, if that is no more than EXACT_WORK; steps converge in
        a few then, where otherwise columns that add up to each other take many.
        """
        if not self.has_matrix:
            return self._implicit_curvature(scores, weights, damping)
        exact = exact and self.samples * (self.outputs * (self.columns + 1)) ** 2 <= EXACT_WORK
        streams = exact and self.hessian_rows is not None
        rows = None if streams else self.hessian_rows
        if not streams and self._hessian_features is None:
            self._hessian_features = self._dense_rows(slice(None) if rows is None else rows)
        some = scores if rows is None else scores[rows]
        own = weights if rows is None else weights[rows]
        hessian = self._gram(some, own, streams=streams)
        if rows is not None:
            self._correct_scale(hessian, self.total(weights) / max(float(own.sum()), 1e-300))
        return Curvature.of(hessian, self._penalties(), damping)

    def _correct_scale(self, hessian: NDArray[np.float64], factor: float) -> None:
        """Rescale a curvature computed from some rows to that of all rows, column by column.

        A rare category may be absent from the rows, or seldom among them; without its own curvature, a step
        along its column would go far too long a way.
        """
        if self._squares is None:
            squares = self._sum_squares(self.ones())
            assert self._hessian_features is not None
            assert self.hessian_rows is not None
            seen = self._on_host((self._hessian_features**2).sum(0))
            share = len(self.hessian_rows) / self.samples
            known = np.divide(squares * share, seen, out=np.zeros_like(seen), where=seen > 0)
            self._squares = np.tile(np.sqrt(known), self.outputs), np.tile(squares, self.outputs)
        scale, squares = self._squares
        hessian *= factor * scale[:, None] * scale
        mean = float(np.median(hessian.diagonal()[scale > 0] / squares[scale > 0]))
        absent = np.flatnonzero(scale == 0)
        hessian[absent, absent] = mean * squares[absent]

    def _sum_squares(self, weights: Array) -> NDArray[np.float64]:
        """Return the weighted sum of squares of each column and of the column of ones."""

        def multiply(part: slice) -> NDArray[np.float64]:
            features, own = self.features[part], weights[part]
            if self.is_sparse:
                return np.asarray(features.power(2).T @ own, dtype=np.float64)
            if self.xp is np:
                return np.asarray(np.einsum("ij,ij,i->j", features, features, own, dtype=np.float64))
            return self._on_host((features * features).T @ self._cast(own))

        return np.append(sum(self.over_chunks(multiply)), self.total(weights))

    def _diagonal(self, scores: Array, weights: Array) -> NDArray[np.float64]:
        """Return the diagonal of the second derivatives, (outputs, d + 1)."""
        chances = self._probabilities(scores)
        bend = chances * (1 - chances)
        bend = (bend if self.outputs > 1 else bend[:, None]) * weights[:][:, None]
        return np.array([self._sum_squares(bend[:, output]) for output in range(self.outputs)])

    def _implicit_curvature(self, scores: Array, weights: Array, damping: float) -> Curvature:
        """Return the curvature as a product, for models of many parameters."""
        chances = self._by_sample(self._probabilities, scores)
        diagonal = self._diagonal(scores, weights) + self._penalties()
        added = self._penalties() + damping * diagonal

        def times(direction: NDArray[np.float64]) -> NDArray[np.float64]:
            def pulled(part: slice) -> Array:
                moved, own = self._times(self.features[part], direction), chances[part]
                if self.outputs == 1:
                    return (own * (1 - own) * weights[part])[:, None] * moved
                mean = (own * moved).sum(1)[:, None]
                return own * (moved - mean) * weights[part][:, None]

            return self._transposed_times(pulled) + added * direction

        return Curvature(times=times, diagonal=diagonal * (1 + damping))

    def _penalties(self) -> NDArray[np.float64]:
        """Return what the ridge adds to the diagonal, (outputs, d + 1)."""
        found = np.full((self.outputs, self.columns + 1), float(self.ridge))
        found[:, -1] = 0.0
        return found

    def _draw_rows(self, seed: int) -> NDArray[np.int64] | None:
        """Return the rows from which the curvature is computed, ascending; None for all."""
        least, most = HESSIAN_SAMPLES
        most = int(np.clip(HESSIAN_WORK / (self.columns + 1) ** 2, least, most))
        most = max(most, HESSIAN_SAMPLES_PER_COLUMN * self.columns)
        if self.samples <= most:
            return None
        return np.sort(np.random.default_rng(seed).choice(self.samples, most, replace=False, shuffle=False))

    def _dense_rows(self, rows: NDArray[np.int64] | slice) -> Array:
        """Return rows of the features, dense, in double precision, with a column of ones."""
        part = self.features[rows]
        part = part.toarray() if self.is_sparse else part
        if self.xp is np:
            found = np.empty((len(part), self.columns + 1))
            found[:, :-1], found[:, -1] = part, 1.0
            return found
        ones = self.xp.ones((len(part), 1), dtype=self.xp.float64, device=part.device)
        return self.xp.hstack([part.double(), ones])

    def _gram(self, scores: Array, weights: Array, *, streams: bool) -> NDArray[np.float64]:
        """Return the second derivatives of the losses, of all rows if it streams, else of those that are kept."""
        size, outputs = self.columns + 1, self.outputs
        bytes_at_once = CHUNK_BYTES if self.xp is np else DEVICE_CHUNK_BYTES
        rows = max(1, bytes_at_once // (8 * size))
        kept = self._hessian_features

        def multiply(first: int) -> NDArray[np.float64]:
            chunk = slice(first, first + rows)
            part = self._dense_rows(chunk) if streams or kept is None else kept[chunk]
            chances, own = self._probabilities(scores[chunk]), weights[chunk]
            if outputs == 1:  # a product with itself takes half the operations
                part = part * self.xp.sqrt(own * chances * (1 - chances))[:, None]
                return self._on_host(part.T @ part)
            found = np.empty((outputs, size, outputs, size))
            for a in range(outputs):
                for b in range(a + 1):
                    bend = own * chances[:, a] * ((a == b) * 1.0 - chances[:, b])
                    found[a, :, b] = self._on_host(part.T @ (part * bend[:, None]))
                    found[b, :, a] = found[a, :, b].T
            return found.reshape(outputs * size, outputs * size)

        starts = range(0, len(scores), rows)
        products = map_in_threads(multiply, starts, self.threads)
        return np.asarray(sum(products, np.zeros((outputs * size, outputs * size))))

    def _times(self, features: Any, parameters: NDArray[np.float64]) -> Array:
        """Return features · coefficients + intercepts, in double precision."""
        if self.xp is np:
            coefficients = parameters[:, :-1].astype(features.dtype, copy=False)
            if self.outputs == 1:
                return (features @ coefficients[0])[:, None] + parameters[:, -1]
            return features @ coefficients.T + parameters[:, -1]
        moved = self.xp.as_tensor(parameters, device=features.device)
        return (features @ moved[:, :-1].T.to(features.dtype)).double() + moved[:, -1]

    def over_chunks(self, work: Callable[[slice], Any]) -> list[Any]:
        """Do some work for each chunk of rows, on several threads if that pays; return the results in order."""
        return map_in_threads(work, self.chunks, self.threads)

    def _by_sample(self, function: Callable[..., Array], *arrays: Array) -> Array:
        """Apply a function to one value, or row, per sample; chunk by chunk, so that the cache holds them."""
        if self.threads == 1:
            return function(*arrays)
        found = np.empty(function(*(array[:1] for array in arrays)).shape[1:])
        found = np.empty((self.samples, *found.shape))

        def fill(part: slice) -> None:
            found[part] = function(*(array[part] for array in arrays))

        self.over_chunks(fill)
        return found

    def _empty(self, *shape: int) -> Array:
        """Return an array of doubles to be filled, where the features are."""
        if self.xp is np:
            return np.empty(shape)
        return self.xp.empty(shape, dtype=self.xp.float64, device=self.features.device)

    def ones(self) -> Array:
        """Return a 1 for each sample, where the features are; in memory it is one number."""
        if self.xp is np:
            return np.broadcast_to(np.ones(1), self.samples)
        return self.xp.ones_like(self._empty(1)).expand(self.samples)

    def _cast(self, values: Array) -> Array:
        """Return numbers in the type of the features."""
        return (
            values.astype(self.features.dtype, copy=False)
            if self.xp is np
            else values.to(self.features.dtype)
        )

    def _on_host(self, values: Array) -> NDArray[np.float64]:
        return np.asarray(values if self.xp is np else values.double().cpu().numpy(), dtype=np.float64)

    def _softplus(self, values: Array) -> Array:
        return values.clip(0) + self.xp.log1p(self.xp.exp(-abs(values)))

    def _log_sums(self, scores: Array) -> Array:
        highest = self.xp.amax(scores, 1)
        return highest + self.xp.log(self.xp.exp(scores - highest[:, None]).sum(1))

    def _own(self, scores: Array, labels: Array) -> Array:
        if self.xp is np:
            return scores[np.arange(len(labels)), labels]
        return scores.gather(1, labels[:, None])[:, 0]

    def _probabilities(self, scores: Array) -> Array:
        """Return the chance of the second class, (n,), or of each of many, (n, classes)."""
        if self.outputs == 1:
            small = self.xp.exp(-abs(scores))
            return self.xp.where(scores >= 0, 1.0, small) / (1.0 + small)
        powers = self.xp.exp(scores - self.xp.amax(scores, 1)[:, None])
        return powers / powers.sum(1)[:, None]
