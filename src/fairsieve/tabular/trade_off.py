"""The trade-off between accuracy and fairness: the models on it, and the choice of one of them.

The choice is made on training rows that the models did not see, never on the test part, which is reported.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fairsieve.metrics import accuracy_from_table, disparity_from_table, grouped_part
from fairsieve.selection.cells import Cells

__all__ = ["HeldOutScores", "choose_point", "score_held_out", "true_chances"]


class HeldOutScores(NamedTuple):
    """Accuracy and disparity of a model on training rows that it did not see."""

    accuracy: float
    disparity: float

    @property
    def gap(self) -> float:
        """The widest gap."""
        return self.disparity


def choose_point(scores: Sequence[HeldOutScores], tolerance: float) -> int:
    """Choose the fairest of the models whose accuracy is within ``tolerance`` of the best; return its place.

    >>> choose_point([HeldOutScores(0.9, 0.2), HeldOutScores(0.89, 0.1), HeldOutScores(0.8, 0.0)], 0.02)
    1
    """
    enough = max(each.accuracy for each in scores) - tolerance - 1e-12
    able = [place for place, each in enumerate(scores) if each.accuracy >= enough]
    return min(able, key=lambda place: (scores[place].disparity, -scores[place].accuracy))


def true_chances(cells: Cells, estimate: Any | None) -> NDArray[np.float64]:
    """Return how likely each class is the true one of each row, (n, classes).

    Without an estimate, or with one that is not conclusive, labels are taken as they are.
    """
    if estimate is not None and estimate.credible:
        return np.asarray(estimate.true_class, dtype=np.float64)
    found = np.zeros((len(cells), cells.shape[0]))
    found[np.arange(len(cells)), cells.label_codes] = 1.0
    return found


def score_held_out(
    codes: NDArray[np.int64], cells: Cells, chances: NDArray[np.float64], fairness: str, positive: int
) -> HeldOutScores:
    """Score predictions; each row counts for every class as far as that is likely its true one.

    Parameters
    ----------
    codes : integer array
        The predicted classes.
    cells : Cells
    chances : array of shape (n, classes)
        See :func:`true_chances`.
    positive : int
        Code of the positive class; −1 where there is none.
    """
    table = np.zeros((*cells.shape, cells.shape[0]))
    for label in range(cells.shape[0]):
        np.add.at(table[label], (cells.group_codes, codes), chances[:, label])
    disparity = disparity_from_table(grouped_part(table, cells.groups), fairness, positive=positive)
    return HeldOutScores(float(accuracy_from_table(table)), float(disparity))
