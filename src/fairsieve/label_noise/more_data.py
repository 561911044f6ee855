"""How many rows, or checked labels, would tell what an interval leaves open."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from fairsieve.intervals import NORMAL, Score
from fairsieve.label_noise.true_counts import Judged

Floats = NDArray[np.float64]
Measure = Callable[
    [Sequence[Floats]], Floats
]  # tables of the models, (…, classes, groups, classes) each → values

MOST_TIMES = 1000  # rows beyond so many times those there are, are no answer


def rows_needed(found: Score, boundary: float, by_chance: Score, rows: int) -> int | None:
    """Compute with how many rows an interval would end before a boundary; None where rows alone will not do it.

    Chance narrows with the root of the rows. What is left, by which the interval is wider than it is ``by_chance``,
    is not known of the labels and stays.
    """
    room, half = abs(found.value - boundary), _reach(found, boundary)
    chance = min(_reach(by_chance, by_chance.value + boundary - found.value), half)
    left = room - (half - chance)
    if left <= chance / math.sqrt(MOST_TIMES):
        return None
    return max(math.ceil(rows * (chance / left) ** 2), rows + 1)


def checks_needed(
    judged: Judged, measure: Measure, models: Sequence[int], room: float, chance: float, wrong: float
) -> int | None:
    """Compute how many labels, drawn at random, would have to be checked; None where even all of them would not do.

    A check moves the measure by what it is worth to find the label of such a row wrong. So the variance of a check is
    the sum over kinds of rows of their share · ν(1 − ν) · (that worth)², where ν is the share of labels that are
    ``wrong``; and chance among the rows stays.
    """
    if room <= chance or not 0 < wrong < 1:
        return None
    kinds = judged.kinds()
    total, every = kinds.masses.sum(), np.arange(len(kinds.masses))
    label, group = kinds.codes[:2]
    step = total * 1e-4
    moved = []
    for model in models:
        tables = np.tile(kinds.tables(kinds.masses, model), (len(every) + 1, 1, 1, 1))
        codes = kinds.codes[2 + model]
        tables[every, label, group, codes] -= step
        tables[every, (label + 1) % kinds.shape[0], group, codes] += step
        moved.append(np.maximum(tables, 0.0))
    values = measure(moved)
    worth = (values[:-1] - values[-1]) / step * total  # the last table is as it was
    variance = float(kinds.masses @ worth**2 / total * wrong * (1 - wrong))
    checks = math.ceil(NORMAL**2 * variance / (room**2 - chance**2))
    return checks if checks <= len(judged.weights) else None


def _reach(found: Score, boundary: float) -> float:
    """Return how far an interval reaches from its value towards a boundary."""
    low, high = found.interval
    return high - found.value if found.value < boundary else found.value - low
