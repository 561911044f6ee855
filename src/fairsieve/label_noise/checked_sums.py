"""Count by true class where few rows were checked: chances for all rows, and what the checks add to them.

Every row counts for each class by the chance that it is the true one. On the checked rows it is seen how far those
chances are off, for rows that the chances were not learnt from; that difference is added, group by group, so
that the counts do not depend on the model of the chances being right (a difference estimator).
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["IMAGINED", "CheckedSums", "bound_draws"]

Floats = NDArray[np.float64]
Codes = NDArray[np.integer[Any]]

LEVELS = (2.5, 97.5)
IMAGINED = (
    2.0  # checks that each group is given in half of the draws, of any class: few checks may agree by chance
)
WIDENED = 30.0  # the variance of few checks in a group is raised, × (1 + WIDENED / checks); see docs/verified-labels.md


class CheckedSums:
    """Sums by true class, group and another column, such as a prediction.

    Parameters
    ----------
    chances : array of shape (n, classes)
        Of the true classes, by models that did not see the check of the row.
    checked : integer array
        The checked class of each row, −1 where nobody checked.
    groups, column : integer arrays
        Codes; those of the column are classes.
    shape : (int, int)
        Classes and groups.
    weights : array of shape (n,), optional
    inverse : array of shape (n,), optional
        The inverse of the chance to be checked.
    """

    def __init__(
        self,
        chances: Floats,
        checked: Codes,
        groups: Codes,
        column: Codes,
        shape: tuple[int, int],
        weights: Floats | None = None,
        inverse: Floats | None = None,
    ) -> None:
        self.shape, self.chances, self.groups = shape, chances, groups
        self.weights = np.ones(len(chances)) if weights is None else weights
        self.place = groups * shape[0] + column
        self.rows = np.flatnonzero((checked >= 0) & (self.weights > 0))
        self.off = np.eye(shape[0])[checked[self.rows]] - chances[self.rows]
        self.checks = self.weights[self.rows] * (1.0 if inverse is None else inverse[self.rows])

    def table(self) -> Floats:
        """Compute the sums, (classes, groups, classes)."""
        return self._corrected(self.uncorrected(), self.checks, np.zeros(self.shape[::-1]))

    def uncorrected(self) -> Floats:
        """Compute the sums of the chances alone."""
        return self._by_place(self.place, self.weights[:, None] * self.chances)

    def draw(self, rng: np.random.Generator, times: int, *, rows: bool = True, checks: bool = True) -> Floats:
        """Draw rows and checks again, by the weights of a Bayesian bootstrap; (times, classes, groups, classes).

        In the first half of the draws each group is given imagined checks. Where rows are not drawn again, the sums
        are those of these rows, and a group without an unchecked row is certain.
        """
        classes, groups = self.shape
        typical = self.checks.mean() if len(self.checks) else 1.0
        counts = np.bincount(self.groups[self.rows], minlength=groups)
        all_ = np.maximum(np.bincount(self.groups, self.weights > 0, minlength=groups), 1)
        open_ = np.ones(groups) if rows else 1 - counts / all_
        spread = ((1 + WIDENED / np.maximum(counts, 1)) * open_)[self.groups[self.rows]]
        shapes = 1 / np.maximum(spread, 1e-9)
        found, sums = np.empty((times, classes, groups, classes)), self.uncorrected()
        for number in range(times):
            if rows:
                whole = self.weights * rng.exponential(size=len(self.weights))
                sums = self._by_place(self.place, whole[:, None] * self.chances)
            some = self.checks * rng.gamma(shapes) / shapes if checks else self.checks
            imagined = np.zeros((groups, classes))
            if checks and number < times / 2:
                imagined = rng.gamma(IMAGINED / classes, size=(groups, classes)) * typical * open_[:, None]
            found[number] = self._corrected(sums, some, imagined)
        return found

    def _corrected(self, sums: Floats, checks: Floats, imagined: Floats) -> Floats:
        """Correct sums of chances under weights of the checks, and of imagined checks (groups, classes)."""
        off = self._by_place(self.place[self.rows], checks[:, None] * self.off)
        totals = sums.sum(axis=(0, 2))
        seen = np.bincount(self.groups[self.rows], weights=checks, minlength=len(totals)) + imagined.sum(
            axis=1
        )
        scale = np.divide(totals, seen, out=np.zeros(len(totals)), where=seen > 0)
        shares = sums / np.maximum(totals[:, None], 1e-300)
        off += imagined.T[:, :, None] * shares.sum(axis=0) - imagined.sum(axis=1)[:, None] * shares
        return np.asarray(np.maximum(sums + scale[:, None] * off, 0.0))

    def _by_place(self, place: Codes, values: Floats) -> Floats:
        """Sum columns of values by group and column."""
        classes, groups = self.shape
        sums = [np.bincount(place, weights=each, minlength=groups * classes) for each in values.T]
        return np.stack(sums).reshape(classes, groups, classes).astype(np.float64)


def bound_draws(drawn: Floats, levels: tuple[float, float] = LEVELS) -> tuple[Floats, Floats]:
    """Return percentiles of draws, the wider of those with imagined checks (the first half) and those without.

    Imagined checks find wrong labels where none were, so without them the upper end of what is right would be too low;
    with none, few checks that agree by chance would leave no doubt.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # cells without samples
        ends = [np.nanpercentile(half, levels, axis=0) for half in np.array_split(drawn, 2)]
    return np.fmin(ends[0][0], ends[1][0]), np.fmax(ends[0][1], ends[1][1])
