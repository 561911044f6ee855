"""The trade-off between accuracy and fairness: the models on it, and the choice of one of them.

The choice is made on training rows that the models did not see, never on the test part, which is reported.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fairsieve.selection.cells import Cells

__all__ = ["HeldOutScores", "choose_point", "true_chances"]


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
