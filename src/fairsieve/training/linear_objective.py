"""The loss of a linear model over all samples: values, gradients, curvature and Newton's direction.

Everything is computed some rows at a time, so that the memory beside the features stays small, and sums are
kept in double precision whatever the type of the features. The same code works on NumPy arrays, on SciPy's
sparse matrices, and on torch tensors of any device: it uses only the functions that NumPy and torch spell in
the same way.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from fairsieve.optional import is_tensor

__all__ = ["Curvature", "LinearObjective"]

Array = Any  # a NumPy array or a torch tensor

CHUNK_BYTES = 4 * 2**20  # of features in one product: they stay in a processor's cache
DEVICE_CHUNK_BYTES = 256 * 2**20
HESSIAN_SAMPLES = 10_000  # rows that the curvature is computed from, if there are more
HESSIAN_SAMPLES_PER_COLUMN = 30
HESSIAN_COLUMNS = 700  # parameters up to which the curvature is a matrix; beyond, conjugate gradients
CG_STEPS = 30
CG_ACCURACY = 0.05  # of the direction, relative to the gradient


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
        self.chunks = [
            slice(first, min(first + rows, self.samples)) for first in range(0, self.samples, rows)
        ]
        if self.is_sparse and features.dtype == np.float64:
            self.chunks = [slice(0, self.samples)]
        self.has_matrix = self.outputs * (self.columns + 1) <= HESSIAN_COLUMNS
        self.hessian_rows = self._draw_rows(seed)
        self._hessian_features: Array | None = None

    def take(self, rows: NDArray[np.int64]) -> LinearObjective:
        """Return the objective over some of the samples; the ridge shrinks with their number."""
        ridge = self.ridge * len(rows) / self.samples
        return LinearObjective(self.features[rows], self.labels[rows], self.classes, ridge)

    def as_values(self, values: NDArray[np.float64]) -> Array:
        """Return one number per sample where the features are."""
        return values if self.xp is np else self.xp.as_tensor(values, device=self.features.device)

    def zeros(self) -> NDArray[np.float64]:
        """Return the parameters of a model that knows nothing, (outputs, d + 1); intercepts come last."""
        return np.zeros((self.outputs, self.columns + 1))

    def scores(self, parameters: NDArray[np.float64]) -> Array:
        """Return one score per sample (two classes) or one per sample and class, in double precision."""
        parts = [self._times(self.features[part], parameters) for part in self.chunks]
        scores = parts[0] if len(parts) == 1 else self.xp.concatenate(parts)
        return scores[:, 0] if self.outputs == 1 else scores

    def losses(self, scores: Array) -> Array:
        """Return the cross-entropy of each sample."""
        if self.outputs == 1:
            return self._softplus(self.xp.where(self.labels == 1, -scores, scores))
        return self._log_sums(scores) - self._own(scores, self.labels)

    def losses_against(self, scores: Array, target: int) -> Array:
        """Return the cross-entropy of each sample as if its label were ``target``."""
        if self.outputs == 1:
            return self._softplus(-scores if target == 1 else scores)
        return self._log_sums(scores) - scores[:, target]

    def predictions(self, scores: Array) -> Array:
        """Return the likeliest class of each sample."""
        return (scores > 0) * 1 if self.outputs == 1 else scores.argmax(1)

    def value(self, parameters: NDArray[np.float64], losses: Array, weights: Array) -> float:
        """Return the objective."""
        penalty = 0.5 * self.ridge * float((parameters[:, :-1] ** 2).sum())
        return float((losses * weights).sum()) + penalty

    def gradient(self, parameters: NDArray[np.float64], scores: Array, weights: Array) -> NDArray[np.float64]:
        """Return the derivative of the objective by the parameters."""
        residuals = self._probabilities(scores)
        if self.outputs == 1:
            residuals = ((residuals - (self.labels == 1)) * weights)[:, None]
        else:
            if self.xp is np:
                residuals[np.arange(self.samples), self.labels] -= 1.0
            else:
                residuals.scatter_add_(1, self.labels[:, None], -self.xp.ones_like(residuals[:, :1]))
            residuals = residuals * weights[:, None]
        found = self.transposed_times(residuals)
        found[:, :-1] += self.ridge * parameters[:, :-1]
        return found

    def transposed_times(self, residuals: Array) -> NDArray[np.float64]:
        """Return the product of the residuals, (n, outputs), and the features with a column of ones."""
        found = np.zeros((self.outputs, self.columns + 1))
        for part in self.chunks:
            own = residuals[part]
            product = (
                self.features[part].T @ self._cast(own)
                if self.is_sparse or self.xp is not np
                else (self._cast(own).T @ self.features[part]).T
            )
            found[:, :-1] += self._on_host(product).T
        found[:, -1] = self._on_host(residuals.sum(0))
        return found

    def curvature(self, scores: Array, weights: Array) -> Curvature:
        """Return the second derivatives at a model, as something that solves for Newton's direction."""
        if not self.has_matrix:
            return self._implicit_curvature(scores, weights)
        if self._hessian_features is None:
            self._hessian_features = self._dense_rows(self.hessian_rows)
        rows, features = self.hessian_rows, self._hessian_features
        some = scores if rows is None else scores[rows]
        own = weights if rows is None else weights[rows]
        chances = self._probabilities(some)
        size = self.columns + 1
        hessian = np.zeros((self.outputs * size, self.outputs * size))
        for a in range(self.outputs):
            for b in range(a + 1):
                if self.outputs == 1:
                    bend = own * chances * (1 - chances)
                else:
                    bend = own * chances[:, a] * ((a == b) * 1.0 - chances[:, b])
                block = self._gram(features, bend, convex=a == b)
                hessian[a * size : (a + 1) * size, b * size : (b + 1) * size] = block
                hessian[b * size : (b + 1) * size, a * size : (a + 1) * size] = block.T
        if rows is not None:
            self._correct_diagonal(hessian, scores, weights)
        return Curvature.of(hessian, self._penalties())

    def _correct_diagonal(self, hessian: NDArray[np.float64], scores: Array, weights: Array) -> None:
        """Rescale a curvature computed from some rows so that its diagonal is that of all rows.

        A rare category may be absent from the rows; without its own curvature, a step along its column
        would go far too long a way.
        """
        exact, seen = self._diagonal(scores, weights).reshape(-1), hessian.diagonal().copy()
        known = seen > 0
        scale = np.sqrt(np.divide(exact, seen, out=np.zeros_like(exact), where=known))
        hessian *= scale[:, None] * scale
        np.fill_diagonal(hessian, exact)

    def _diagonal(self, scores: Array, weights: Array) -> NDArray[np.float64]:
        """Return the diagonal of the second derivatives, (outputs, d + 1)."""
        chances = self._probabilities(scores)
        bend = chances * (1 - chances)
        bend = (bend if self.outputs > 1 else bend[:, None]) * weights[:, None]
        found = np.zeros((self.outputs, self.columns + 1))
        for part in self.chunks:
            features = self.features[part]
            squares = features.power(2) if self.is_sparse else features * features
            found[:, :-1] += self._on_host(squares.T @ self._cast(bend[part])).T
        found[:, -1] = self._on_host(bend.sum(0))
        return found

    def _implicit_curvature(self, scores: Array, weights: Array) -> Curvature:
        """Return the curvature as a product, for models of many parameters."""
        chances = self._probabilities(scores)
        bend = chances * (1 - chances) * weights if self.outputs == 1 else None

        def times(direction: NDArray[np.float64]) -> NDArray[np.float64]:
            moved = self.scores(direction)
            if self.outputs == 1:
                pulled = (bend * moved)[:, None]
            else:
                mean = (chances * moved).sum(1)[:, None]
                pulled = chances * (moved - mean) * weights[:, None]
            return self.transposed_times(pulled) + self._penalties() * direction

        return Curvature(times=times, diagonal=self._diagonal(scores, weights) + self._penalties())

    def _penalties(self) -> NDArray[np.float64]:
        """Return what the ridge adds to the diagonal, (outputs, d + 1)."""
        found = np.full((self.outputs, self.columns + 1), float(self.ridge))
        found[:, -1] = 0.0
        return found

    def _draw_rows(self, seed: int) -> NDArray[np.int64] | None:
        """Return the rows from which the curvature is computed, ascending; None for all."""
        most = max(HESSIAN_SAMPLES, HESSIAN_SAMPLES_PER_COLUMN * self.columns)
        if self.samples <= most:
            return None
        return np.sort(np.random.default_rng(seed).choice(self.samples, most, replace=False, shuffle=False))

    def _dense_rows(self, rows: NDArray[np.int64] | None) -> Array:
        """Return rows of the features, dense, in double precision, with a column of ones."""
        part = self.features if rows is None else self.features[rows]
        part = part.toarray() if self.is_sparse else part
        if self.xp is np:
            return np.hstack([part.astype(np.float64), np.ones((len(part), 1))])
        ones = self.xp.ones((len(part), 1), dtype=self.xp.float64, device=part.device)
        return self.xp.hstack([part.double(), ones])

    def _gram(self, features: Array, bend: Array, *, convex: bool) -> NDArray[np.float64]:
        """Return ``featuresᵀ · diag(bend) · features``."""
        total = np.zeros((features.shape[1], features.shape[1]))
        rows = max(1, CHUNK_BYTES // (8 * features.shape[1])) if self.xp is np else len(features)
        for first in range(0, len(features), rows):
            part, own = features[first : first + rows], bend[first : first + rows, None]
            if convex:  # a product with itself takes half the operations
                part = part * self.xp.sqrt(own)
                total += self._on_host(part.T @ part)
            else:
                total += self._on_host(part.T @ (part * own))
        return total

    def _times(self, features: Any, parameters: NDArray[np.float64]) -> Array:
        """Return features · coefficients + intercepts, in double precision."""
        if self.xp is np:
            product = features @ parameters[:, :-1].T.astype(features.dtype)
            return product.astype(np.float64, copy=False) + parameters[:, -1]
        moved = self.xp.as_tensor(parameters, device=features.device)
        return (features @ moved[:, :-1].T.to(features.dtype)).double() + moved[:, -1]

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


@dataclass(frozen=True, kw_only=True, eq=False)
class Curvature:
    """Second derivatives of an objective, from which Newton's direction is solved.

    Attributes
    ----------
    factor : tuple or None
        A Cholesky factorisation of the scaled matrix, where there is a matrix.
    diagonal : array of shape (outputs, d + 1)
        The diagonal; it scales the matrix and preconditions conjugate gradients.
    times : callable or None
        The product with a direction, where there is no matrix.
    """

    diagonal: NDArray[np.float64]
    factor: Any = None
    times: Callable[[NDArray[np.float64]], NDArray[np.float64]] | None = None

    @classmethod
    def of(cls, hessian: NDArray[np.float64], penalties: NDArray[np.float64]) -> Curvature:
        """Factorise a matrix after adding the ridge."""
        hessian[np.diag_indices(len(hessian))] += penalties.reshape(-1)
        diagonal = np.maximum(hessian.diagonal(), 1e-300)
        scale = 1.0 / np.sqrt(diagonal)
        scaled = hessian * scale[:, None] * scale
        for jitter in (1e-12, 1e-8, 1e-4, 1e-2):
            scaled[np.diag_indices(len(scaled))] = 1.0 + jitter
            try:
                factor = cho_factor(scaled, check_finite=False)
                break
            except LinAlgError:  # collinear columns, or a curvature of almost nothing
                continue
        return cls(diagonal=diagonal.reshape(penalties.shape), factor=factor)

    def solve(self, gradient: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the direction of a Newton step, downwards."""
        if self.factor is None:
            return self._conjugate_gradients(gradient)
        scale = 1.0 / np.sqrt(self.diagonal.reshape(-1))
        solved = cho_solve(self.factor, gradient.reshape(-1) * scale, check_finite=False)
        return np.asarray(-(solved * scale).reshape(gradient.shape))

    def _conjugate_gradients(self, gradient: NDArray[np.float64]) -> NDArray[np.float64]:
        """Solve approximately, with the diagonal as preconditioner."""
        assert self.times is not None
        inverse = 1.0 / np.maximum(self.diagonal, 1e-12)
        direction = np.zeros_like(gradient)
        residual = -gradient
        pull = inverse * residual
        search, size = pull.copy(), float((residual * pull).sum())
        goal = CG_ACCURACY**2 * size
        for _ in range(CG_STEPS):
            if size <= goal or size == 0.0:
                break
            bent = self.times(search)
            length = size / max(float((search * bent).sum()), 1e-300)
            direction += length * search
            residual -= length * bent
            pull = inverse * residual
            size, before = float((residual * pull).sum()), size
            search = pull + (size / before) * search
        return direction
