"""Second derivatives of the linear model's objective, from which a Newton step is solved."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor
from scipy.linalg.lapack import dpotrs

__all__ = ["Curvature"]

CG_STEPS = 30
CG_ACCURACY = 0.05  # of the direction, relative to the gradient


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
    def of(cls, hessian: NDArray[np.float64], penalties: NDArray[np.float64], damping: float) -> Curvature:
        """Factorise a matrix after adding the ridge and the damping."""
        hessian[np.diag_indices(len(hessian))] += penalties.reshape(-1)
        diagonal = np.maximum(hessian.diagonal(), 1e-300)
        scale = 1.0 / np.sqrt(diagonal)
        scaled = hessian * scale[:, None] * scale
        for jitter in (1e-12, 1e-8, 1e-4, 1e-2):
            scaled[np.diag_indices(len(scaled))] = 1.0 + damping + jitter
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
        solved = dpotrs(self.factor[0], gradient.reshape(-1) * scale, lower=self.factor[1])[0]
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
