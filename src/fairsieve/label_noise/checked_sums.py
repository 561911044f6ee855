"""Count by true class where few rows were checked: chances for all rows, and what the checks add to them.

Every row counts for each class by the chance that it is the true one. On the checked rows it is seen how far those
chances are off, for rows that the chances were not learnt from; that difference is added, group by group, so
that the counts do not depend on the model of the chances being right (a difference estimator).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["IMAGINED", "CheckedSums"]

Floats = NDArray[np.float64]
Codes = NDArray[np.integer[Any]]

IMAGINED = 2.0  # checks that each group is given in the draws, of any class alike: few checks may all agree by chance
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
        classes = shape[0]
        self.shape, self.chances, self.groups = shape, chances, groups
        self.weights = np.ones(len(chances)) if weights is None else weights
        self.place = groups * classes + column
        self.rows = np.flatnonzero(checked >= 0)
        self.off = np.eye(classes)[checked[self.rows]] - chances[self.rows]
        self.checks = self.weights[self.rows] * (1.0 if inverse is None else inverse[self.rows])

    def table(self) -> Floats:
        """Compute the sums, (classes, groups, classes)."""
        return self._sum(self.weights, self.checks, np.zeros(self.shape[::-1]))

    def uncorrected(self) -> Floats:
        """Compute the sums of the chances alone."""
        return self._sum(self.weights, np.zeros(len(self.rows)), np.zeros(self.shape[::-1]))

    def draw(self, rng: np.random.Generator, times: int, *, rows: bool = True, checks: bool = True) -> Floats:
        """Draw rows and checks again, by the weights of a Bayesian bootstrap; (times, classes, groups, classes).

        Where rows are not drawn again, the sums are those of these rows, and a group without an unchecked row is
        certain.
        """
        groups, classes = self.shape[1], self.shape[0]
        typical = self.checks.mean() if len(self.checks) else 1.0
        counts = np.bincount(self.groups[self.rows], minlength=groups)
        all_ = np.maximum(np.bincount(self.groups, minlength=groups), 1)
        open_ = np.ones(groups) if rows else 1 - counts / all_
        spread = ((1 + WIDENED / np.maximum(counts, 1)) * open_)[self.groups[self.rows]]
        shapes = 1 / np.maximum(spread, 1e-9)
        found = np.empty((times, classes, groups, classes))
        for number in range(times):
            whole = self.weights * rng.exponential(size=len(self.weights)) if rows else self.weights
            some, imagined = self.checks, np.zeros((groups, classes))
            if checks:
                some = self.checks * rng.gamma(shapes) / shapes
                imagined = rng.gamma(IMAGINED / classes, size=(groups, classes)) * typical * open_[:, None]
            found[number] = self._sum(whole, some, imagined)
        return found

    def _sum(self, rows: Floats, checks: Floats, imagined: Floats) -> Floats:
        """Compute the sums under weights of the rows, of the checks, and of imagined checks (groups, classes)."""
        groups = self.shape[1]
        sums = self._by_place(self.place, rows[:, None] * self.chances)
        off = self._by_place(self.place[self.rows], checks[:, None] * self.off)
        totals = np.bincount(self.groups, weights=rows, minlength=groups)
        seen = np.bincount(self.groups[self.rows], weights=checks, minlength=groups) + imagined.sum(axis=1)
        scale = np.divide(totals, seen, out=np.zeros(groups), where=seen > 0)
        shares = sums / np.maximum(totals[None, :, None], 1e-300)
        off += imagined.T[:, :, None] * shares.sum(axis=0) - imagined.sum(axis=1)[:, None] * shares
        return np.asarray(np.maximum(sums + scale[:, None] * off, 0.0))

    def _by_place(self, place: Codes, values: Floats) -> Floats:
        """Sum columns of values by group and column."""
        classes, groups = self.shape
        size = groups * classes
        sums = [np.bincount(place, weights=each, minlength=size) for each in values.T]
        return np.stack(sums).reshape(classes, groups, classes).astype(np.float64)
