"""Newton's method for a weighted linear model, on standardised columns.

Columns are centred and scaled inside, by changing the parameters and not the data: a shift or another unit of a
column changes nothing, and a sparse matrix stays sparse. The ridge acts on the standardised coefficients. A column of
two values, such as a category, is scaled by their distance, any other by two standard deviations [1]_.

.. [1] Gelman, Scaling regression inputs by dividing by two standard deviations, Statistics in Medicine 27, 2008.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_solve, cholesky
from scipy.sparse.linalg import LinearOperator, cg

from fairsieve.training.rows import Rows

Floats = NDArray[np.float64]

RIDGE = 1.0  # scikit-learn's C=1.0
PRECISION = 1e-8  # decrease of the mean loss that a step still promises when it is the last
STALE = 0.3  # of the last step's promise: while steps shrink as fast, they share one curvature
HALVINGS = 30
MATRIX_SIZE = 700  # parameters of a class up to which its curvature is a matrix
CG_STEPS, CG_ACCURACY = 50, 0.01  # of conjugate gradients, where it is none, or where there are many classes
JITTERS = (1e-12, 1e-8, 1e-4, 1e-2)  # tried in turn where columns are collinear


class Step(NamedTuple):
    """A model after some steps."""

    parameters: Floats  # in the units of the features
    curvature: Any
    decrement: float  # decrease of the mean loss that the first step promised


class Newton:
    """Minimises ``Σ wᵢ ℓᵢ(θ) + ridge/2 · ‖standardised coefficients‖²`` over some rows.

    Parameters
    ----------
    rows : Rows
    ridge : float
    like : Newton, optional
        Whose columns are centred and scaled in the same way.

    Examples
    --------
    >>> from fairsieve.training.linear_rows import LinearRows
    >>> rows = LinearRows(np.array([[-1.0], [1.0], [2.0]]), np.array([0, 1, 1]), np.zeros(3, int), (2, 1))
    >>> Newton(rows).minimise(np.ones((2, 1))).parameters.round(2).tolist()
    [[0.22, 0.56]]
    """

    def __init__(self, rows: Rows, ridge: float = RIDGE, like: Newton | None = None) -> None:
        self.ridge, self.mean, self.scale = ridge, np.zeros(rows.columns), np.ones(rows.columns)
        self.rows, self.masses = rows, rows.confusion()  # the weights of the rows by class and group
        self.total = max(float(self.masses.sum()), 1e-300)
        if like is not None:  # some of its rows: how columns are measured says nothing of labels
            self.mean, self.scale = like.mean, like.scale
            return
        reference = rows.reference()
        mean, squares = rows.moments(reference) / self.total
        spread = np.sqrt(np.maximum(squares - mean**2, 0.0))
        # What is left of a constant column is rounding.
        spread = np.where(spread <= 1e-7 * np.abs(mean), 1.0, spread)
        self.mean, self.scale = reference + mean, spread * self._widths(rows, reference + mean, spread)

    def _widths(self, rows: Rows, mean: Floats, spread: Floats) -> Floats:
        """Return by how many spreads a column is measured: two or, of two values, their distance [1]_.

        So the coefficient of a rare category is held back as much as that of a common one. A column has two values if
        and only if its kurtosis exceeds its squared skewness by 1 (Pearson); the farther from that, the less counts
        its skewness.
        """
        skewness, kurtosis = rows.standard_moments(mean, spread) / self.total
        excess = np.maximum(kurtosis - skewness**2 - 1.0, 0.0)
        return np.asarray(np.sqrt(4.0 + skewness**2 / (1.0 + excess)))

    def minimise(
        self,
        table: Floats,
        rows: Rows | None = None,
        start: Floats | None = None,
        curvature: Any = None,
        most: int = 100,
        precision: float = PRECISION,
    ) -> Step:
        """Take steps until the next one would gain almost nothing, or ``most`` have been taken.

        Each step is Newton's: with g the gradient and H the curvature, in standardised parameters, it goes along
        d = −H⁻¹ g (Nocedal and Wright, Numerical Optimization, 2006, sections 3.1, 3.3 and 7.1). What ends a step, the
        curvature's use and the search:

        1. *Sufficient decrease.* A step is halved, at most HALVINGS times, until the objective falls by 10⁻⁴ of what
           its slope −g·d promises (Armijo's condition, Nocedal and Wright 3.4); a fall that is less than what rounding
           leaves of two sums of losses counts as one.
        2. *A curvature is used again* while each step promises at most STALE of the one before, and none was halved.
           Then the next step computes it anew, which costs more than another pass over the rows.
        3. *The search ends* when a step promised a mean loss lower by at most ``precision``, or by less than rounding.

        Parameters
        ----------
        table : array of shape (classes, groups)
            What multiplies the weights of a cell's rows.
        rows : Rows, optional
            A selection of the rows; all of them when None.
        start : array of shape (outputs, d + 1), optional
            Parameters in the units of the features.
        curvature : optional
            Of an earlier step, used again while it serves.
        precision : float
            Decrease of the mean loss that the last step promises.
        """
        rows = self.rows if rows is None else rows
        at = np.zeros((rows.outputs, rows.columns + 1)) if start is None else self.standardise(start)
        total, last, first = self.total, np.inf, None
        known = rows.derivatives(self.raw(at), table)
        for _ in range(most):
            if curvature is None:
                curvature = self._curvature(rows, at, table)
                last = np.inf
            gradient = self.gradient(known.gradient, at)
            direction = curvature(gradient)
            # Half of it is the decrease that the quadratic model expects of a whole step.
            promised = -float((gradient * direction).sum()) / total
            first = promised if first is None else first
            # 1. Halve the step until the loss falls by enough. The next step needs the derivatives there.
            before, length = known.value + self.penalty(at), 1.0
            # Below this, a difference between two sums of losses is rounding.
            noise = 1e-10 * abs(before) if rows.is_single else 1e-14 * abs(before)
            for _ in range(HALVINGS):
                there = at + length * direction
                known = rows.derivatives(self.raw(there), table)
                enough = before - 1e-4 * length * promised * total + 100 * noise
                if known.value + self.penalty(there) <= enough:
                    break
                length /= 2
            at = there
            # 3. Stop after the step that promised too little to count: it is taken, since it costs nothing more.
            if promised <= precision + noise / total:
                break
            # 2. Forget a curvature that no longer leads down fast.
            if promised > STALE * last or length < 1:
                curvature = None
            last = promised
        return Step(self.raw(at), curvature, float(first or 0.0))

    def adapt(self, whole: Newton, near: Step) -> Step:
        """Return a model of all rows as a start for these of them: their curvature is a share of it."""
        curvature, share = near.curvature, whole.total / self.total
        return near._replace(curvature=curvature and (lambda gradient: curvature(gradient) * share))

    def raw(self, at: Floats) -> Floats:
        """Return standardised parameters in the units of the features."""
        parameters = at.copy()
        parameters[:, :-1] /= self.scale
        parameters[:, -1] -= parameters[:, :-1] @ self.mean
        return parameters

    def standardise(self, raw: Floats) -> Floats:
        standardised = raw.copy()
        standardised[:, -1] += raw[:, :-1] @ self.mean
        standardised[:, :-1] *= self.scale
        return standardised

    def penalty(self, at: Floats) -> float:
        return 0.5 * self.ridge * float((at[:, :-1] ** 2).sum())

    def gradient(self, raw: Floats, at: Floats) -> Floats:
        """Return the derivative by the standardised parameters, with that of the ridge."""
        slope = raw.copy()
        slope[:, :-1] = (raw[:, :-1] - raw[:, -1:] * self.mean) / self.scale + self.ridge * at[:, :-1]
        return slope

    def _curvature(self, rows: Rows, at: Floats, table: Floats) -> Any:
        """Return a function that solves for the direction of a step, downwards.

        Of two classes the curvature is a matrix. Of more it would have the square of as many rows, so that steps are
        solved for by conjugate gradients, and the matrix of each class by itself makes these few.
        """
        outputs, size = at.shape
        metric = None if size > MATRIX_SIZE else self.factor(rows, at, table)

        def precondition(flat: Floats) -> Floats:
            assert metric is not None
            pieces = zip(metric[0], (flat * metric[1]).reshape(at.shape), strict=True)
            solved = [cho_solve((lower, True), piece, check_finite=False) for lower, piece in pieces]
            return np.concatenate(solved) * metric[1]

        if outputs == 1 and metric is not None:
            return lambda gradient: -precondition(gradient.ravel()).reshape(at.shape)
        raw = self.raw(at)

        def times(flat: Floats) -> Floats:
            direction = flat.reshape(at.shape)
            moved = rows.hessian_times(raw, table, self.raw(direction))
            return self.gradient(moved, direction).ravel()

        square = at.size, at.size
        bend = LinearOperator(square, matvec=times, dtype=np.float64)
        inverse = None if metric is None else LinearOperator(square, matvec=precondition, dtype=np.float64)

        def solve_roughly(gradient: Floats) -> Floats:
            direction, _ = cg(bend, -gradient.ravel(), rtol=CG_ACCURACY, maxiter=CG_STEPS, M=inverse)
            return np.asarray(direction).reshape(at.shape)

        return solve_roughly

    def factor(self, rows: Rows, at: Floats, table: Floats) -> tuple[Floats, Floats]:
        """Factor the second derivatives of the loss and the ridge, of each output by itself: ``S⁻¹ L Lᵀ S⁻¹``.

        Return L, (outputs, d + 1, d + 1), and the diagonals S, one after the other.
        """
        change = self.raw(np.eye(at.shape[1]))
        hessian = change @ rows.derivatives(self.raw(at), table, hessian=True).hessian @ change.T
        penalties = np.full(at.shape, self.ridge)
        penalties[:, -1] = 1e-300
        places = np.arange(at.shape[1])
        hessian[:, places, places] += penalties
        scale = 1.0 / np.sqrt(np.maximum(hessian[:, places, places], penalties))  # less is rounding
        scaled = hessian * scale[:, :, None] * scale[:, None, :]
        return np.stack([_cholesky(each) for each in scaled]), scale.ravel()


def _cholesky(matrix: Floats) -> Floats:
    """Return the factor of a matrix with the diagonal 1, which rounding may have left without one."""
    for jitter in JITTERS:
        matrix[np.diag_indices(len(matrix))] = 1.0 + jitter
        try:
            return np.asarray(cholesky(matrix, lower=True, check_finite=False))
        except LinAlgError:  # collinear columns, or a curvature of almost nothing
            continue
    return np.eye(len(matrix))  # rounding is all that is left of it but the diagonal
