"""What no other choice beats."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["pareto_front"]


def pareto_front(scores: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Select the (disparity, accuracy) pairs that no other pair beats in both, from the fairest on.

    Examples
    --------
    >>> pareto_front([(0.1, 0.7), (0.2, 0.6), (0.3, 0.8)])
    [(0.1, 0.7), (0.3, 0.8)]
    """
    front: list[tuple[float, float]] = []
    for disparity, right in sorted(scores, key=lambda score: (score[0], -score[1])):
        if not front or right > front[-1][1]:
            front.append((disparity, right))
    return front
