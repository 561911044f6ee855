"""The linear model, Newton's method for it under weights, and what held-out rows choose before.

Columns are centred and scaled inside, by changing the parameters and not the data: a shift or another unit of a
column changes nothing, and a sparse matrix stays sparse. The ridge acts on the standardised coefficients. A column of
two values, such as a category, is scaled by their distance, any other by two standard deviations [1]_.

.. [1] Gelman, Scaling regression inputs by dividing by two standard deviations, Statistics in Medicine 27, 2008.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, cast

import numpy as np
from scipy.linalg import LinAlgError, cholesky
from scipy.linalg.lapack import dpotrs
from scipy.sparse.linalg import LinearOperator, cg
from scipy.special import log_expit, log_softmax

from fairsieve.errors import InvalidInputError
from fairsieve.selection.cells import Codes, Flags, Floats, Integers, slices
from fairsieve.training.rows import LinearRows, Rows, one_thread

CHUNK = 8192  # rows that are converted to doubles at once
RIDGE = 1.0  # scikit-learn's C=1.0
PRECISION = 1e-8  # decrease of the mean loss that a step still promises when it is the last
STALE = 0.3  # of the last step's promise: while steps shrink as fast, they share one curvature
HALVINGS = 30
MATRIX_SIZE = 700  # parameters of a class up to which its curvature is a matrix
CG_STEPS, CG_ACCURACY = 50, 0.01  # of conjugate gradients, where it is none, or where there are many classes
NEARLY_TWO = 0.01  # excess of a column's kurtosis, from which on it has more than two values
JITTERS = (1e-12, 1e-8, 1e-4, 1e-2)  # tried in turn where columns are collinear


@dataclass(frozen=True, eq=False)
class LinearModel:
    """A logistic regression for two classes, or a softmax regression for more.

    Attributes
    ----------
    coef : array of shape (1, d) or (classes, d)
        Weights on the scale of the logits. The paper writes the probability as σ(2·f); the logit is 2·f.
    intercept : array of shape (1,) or (classes,)

    Examples
    --------
    >>> model = LinearModel(np.array([[2.0, 0.0]]), np.array([-1.0]))
    >>> model.decision(np.array([[1.0, 5.0], [0.5, 5.0]]))
    array([1., 0.])
    >>> model.predict_codes(np.array([[1.0, 5.0], [0.5, 5.0]]))
    array([1, 0])
    """

    coef: Floats
    intercept: Floats

    @classmethod
    def from_parameters(cls, parameters: Floats, outputs: int) -> LinearModel:
        """Read the flat parameters of the paper's model: the weights of f, output by output, then its biases."""
        scale = 2.0 if outputs == 1 else 1.0
        return cls(scale * parameters[:-outputs].reshape(outputs, -1), scale * parameters[-outputs:])

    def decision(self, features: Any) -> Floats:
        """Compute the logits of dense or scipy-sparse features: (n,) for two classes, else (n, classes)."""
        if np.ndim(features) != 2 or features.shape[1] != self.coef.shape[1]:
            raise InvalidInputError(
                f"features must have the {self.coef.shape[1]} columns that the model was trained on; got the shape "
                f"{np.shape(features)}"
            )
        logits = np.empty((features.shape[0], len(self.intercept)))
        for rows in slices(len(logits), CHUNK):
            logits[rows] = features[rows] @ self.coef.T + self.intercept
        return logits[:, 0] if len(self.intercept) == 1 else logits

    def predict_codes(self, features: Any) -> Integers:
        """Predict the position of each sample's class."""
        return likeliest(self.decision(features))

    def probabilities(self, features: Any) -> Floats:
        """Compute the probabilities of the classes, (n, classes)."""
        return np.exp(log_probabilities(self.decision(features)))


def likeliest(decision: Floats) -> Integers:
    """Return the position of the likeliest class; one logit of exactly 0 is the first class."""
    return (decision > 0).astype(np.int64) if decision.ndim == 1 else decision.argmax(axis=1)


def log_probabilities(decision: Floats) -> Floats:
    """Compute the logarithms of the classes' probabilities, of one logit per sample or of one per class.

    >>> np.exp(log_probabilities(np.zeros(1))).round(6).tolist()
    [[0.5, 0.5]]
    """
    if decision.ndim == 1:
        return np.stack([log_expit(-decision), log_expit(decision)], axis=1)
    return np.asarray(log_softmax(decision, axis=1))


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
    >>> from fairsieve.training.rows import LinearRows
    >>> rows = LinearRows(np.array([[-1.0], [1.0], [2.0]]), np.array([0, 1, 1]), np.zeros(3, int), (2, 1))
    >>> Newton(rows).minimise(np.ones((2, 1))).parameters.round(2).tolist()
    [[0.23, 0.55]]
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
        and only if its kurtosis exceeds its squared skewness by 1 (Pearson); up to NEARLY_TWO above that, the farther
        the less counts its skewness. A number with one value far from all others is about as skewed, but no category:
        what the others say would be held back.
        """
        skewness, kurtosis = rows.standard_moments(mean, spread) / self.total
        excess = np.maximum(kurtosis - skewness**2 - 1.0, 0.0)
        return np.asarray(np.sqrt(4.0 + skewness**2 * np.maximum(1.0 - excess / NEARLY_TWO, 0.0)))

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
           leaves of two sums of losses counts as one. The last step is not measured.
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
            before, length = known.value + self.penalty(at), 1.0
            # Below this, a difference between two sums of losses is rounding.
            noise = 1e-10 * abs(before) if rows.is_single else 1e-14 * abs(before)
            # 3. Stop after a step that promises too little to count: it is taken, and nobody asks what it gained.
            if promised <= precision + noise / total:
                at = at + direction
                break
            # 1. Halve the step until the loss falls by enough. The next step needs the derivatives there.
            for _ in range(HALVINGS):
                there = at + length * direction
                known = rows.derivatives(self.raw(there), table)
                enough = before - 1e-4 * length * promised * total + 100 * noise
                if known.value + self.penalty(there) <= enough:
                    break
                length /= 2
            at = there
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
            # LAPACK itself: SciPy's function takes longer than the work.
            solved = [dpotrs(lower, piece, lower=1)[0] for lower, piece in pieces]
            return np.concatenate(solved) * metric[1]

        if outputs == 1 and metric is not None:
            return lambda gradient: -precondition(gradient.ravel()).reshape(at.shape)
        raw = self.raw(at)

        def times(flat: Floats) -> Floats:
            direction = flat.reshape(at.shape)
            return self.gradient(rows.hessian_times(raw, table, self.raw(direction)), direction).ravel()

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


# ---- What is chosen by held-out rows before the solver starts: the ridge, and how many labels to leave out
#
# Both choices compare models of the rows without a fold on the rows of that fold, labelled as given. Models
# start from the one before them, which is close, so that a choice among several costs little more than one
# training for each fold.


RIDGES = (0.25, 1.0, 4.0, 16.0, 64.0, 256.0)
SHARES = (0.025, 0.05, 0.1, 0.15, 0.2, 0.3)  # of the labels, the least believable first
FEW_STEPS, ROUGHLY = 6, 1e-4  # a choice needs no more


@dataclass(frozen=True, eq=False)
class Cleaning:
    """Which rows are trained on, since their labels are believable enough.

    Attributes
    ----------
    share : float
        Of the labels, at most so many are left out.
    kept : boolean array of shape (n,)
    by_fold : list of boolean arrays of shape (n,)
        The same as it is found without each fold, whose rows are to say what the choice is worth.
    """

    share: float
    kept: Flags
    by_fold: list[Flags]


class _Fold:
    """Models of the rows without a fold, each starting from the one before it, with its curvature."""

    def __init__(self, whole: Newton, folds: Codes, fold: int, near: Step | None = None) -> None:
        rows = cast("LinearRows", whole.rows)
        self.inside, self.outside = np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)
        self.train, self.shown = rows.take(self.inside), rows.take(self.outside)
        self.newton = Newton(self.train, whole.ridge, whole)
        if near is not None:
            self.begin(whole, near)

    def begin(self, whole: Newton, near: Step) -> None:
        """Begin from a model of all rows."""
        self.newton.ridge = whole.ridge
        self.near = self.newton.adapt(whole, near)

    def train_with(self, kept: Flags | None = None) -> Floats:
        """Return the chances of each class for the rows that are left out, (n, classes)."""
        rows = self.train if kept is None else self.train.with_weights(np.asarray(self.train.weights) * kept)
        start, curvature, _ = self.near
        self.near = self.newton.minimise(np.ones(rows.shape), rows, start, curvature, FEW_STEPS, ROUGHLY)
        return self.shown.probabilities(self.near.parameters)

    def own_chances(self) -> Floats:
        """Return the chance of each label that is left out."""
        chances = self.train_with()
        return np.asarray(chances[np.arange(len(self.outside)), np.asarray(self.shown.labels)])


@one_thread("blas")
def choose_ridge(rows: LinearRows, folds: Codes) -> float:
    """Choose the strongest ridge up to which the held-out log loss surely falls, by two standard errors."""
    weights = np.asarray(rows.weights)
    whole, near, before = Newton(rows), None, np.full(rows.samples, np.inf)
    groups = [_Fold(whole, folds, fold) for fold in np.unique(folds)]
    chosen = RIDGES[0]
    for ridge in RIDGES:
        whole.ridge = ridge
        near = _train(whole, near)
        loss = np.empty(rows.samples)
        for each in groups:
            each.begin(whole, near)
            loss[each.outside] = -np.log(np.maximum(each.own_chances(), 1e-12))
        if np.isfinite(before).all():
            mean, error = _weigh(before - loss, weights)
            if mean <= 2 * error:
                break
        before, chosen = loss, ridge
    return chosen


@one_thread("blas")
def choose_cleaning(
    rows: LinearRows, believed: LinearRows, folds: Codes, inner: Codes, ridge: float
) -> Cleaning | None:
    """Leave out the least believable labels as long as that predicts given labels better, by a standard error.

    The rows that tell what is better must not have had a say in which of the other rows are left out: such a say
    alone makes leaving out look better by up to two points on a few hundred rows. So what is left out in training for
    a fold is found without it, by other folds inside.

    Parameters
    ----------
    rows, believed : LinearRows
        The rows as they are labelled, and as they are trained on.
    folds, inner : integer arrays of shape (n,)
        Two deals of the rows.
    ridge : float

    Returns
    -------
    Cleaning or None
        None where nobody is left out.
    """
    weights, labels = np.asarray(rows.weights), np.asarray(rows.labels)
    whole = Newton(believed, ridge)
    near = _train(whole)
    outer = [_Fold(whole, folds, fold, near) for fold in np.unique(folds)]
    chances = []
    for each in outer:
        given = Newton(rows.take(each.inside), ridge, whole)
        chances.append(_own_chances(given, inner[each.inside], given.adapt(whole, near)))
    before = np.zeros(rows.samples)
    for each in outer:
        before[each.outside] = each.train_with().argmax(axis=1) == labels[each.outside]
    best, chosen, masks = 0.0, 0.0, []
    cuts = [_cuts(own, weights[each.inside]) for each, own in zip(outer, chances, strict=True)]
    for place, share in enumerate(SHARES):
        right, found = np.zeros(rows.samples), []
        for each, own, cut in zip(outer, chances, cuts, strict=True):
            kept = own >= cut[place]
            right[each.outside] = each.train_with(kept).argmax(axis=1) == labels[each.outside]
            found.append(kept)
        mean, error = _weigh(right - before, weights)
        if mean <= best:
            break
        best = mean
        if mean > error:
            chosen, masks = share, found
    if not chosen:
        return None
    own = _own_chances(Newton(rows, ridge, whole), inner, near)
    by_fold = []
    for each, kept in zip(outer, masks, strict=True):
        by_fold.append(np.ones(rows.samples, bool))
        by_fold[-1][each.inside] = kept
    return Cleaning(chosen, own >= _cuts(own, weights, (chosen,))[0], by_fold)


def keep_believable(rows: LinearRows, share: float, ridge: float) -> Flags:
    """Say which of many rows to train on, by a model of all of them."""
    own = rows.own_chances(_train(Newton(rows, ridge)).parameters)
    return np.asarray(own >= _cuts(own, rows.host_weights, (share,))[0])


def _weigh(values: Floats, weights: Floats) -> tuple[float, float]:
    """Return the mean of values, and its standard error."""
    mean = float(weights @ values) / weights.sum()
    return mean, float(np.sqrt(weights @ (values - mean) ** 2)) / weights.sum()


def _train(newton: Newton, near: Step | None = None) -> Step:
    """Train on all rows."""
    start = None if near is None else near.parameters
    return newton.minimise(np.ones(newton.masses.shape), start=start, precision=ROUGHLY)


def _own_chances(newton: Newton, folds: Codes, near: Step) -> Floats:
    """Return the held-out chance of each row's label, by models that start near one of all rows."""
    own, ones = np.empty(len(folds)), np.ones(newton.masses.shape)
    near = newton.minimise(ones, None, near.parameters, near.curvature, FEW_STEPS, ROUGHLY)
    for fold in np.unique(folds):
        each = _Fold(newton, folds, fold, near)
        own[each.outside] = each.own_chances()
    return own


def _cuts(own: Floats, weights: Floats, shares: Sequence[float] = SHARES) -> Floats:
    """Return the chances below which such shares of the labels lie; at most a half."""
    order = np.argsort(own, kind="stable")
    passed = np.cumsum(weights[order]) / weights.sum()
    places = np.minimum(np.searchsorted(passed, shares), len(own) - 1)
    return np.minimum(own[order[places]], 0.5)
