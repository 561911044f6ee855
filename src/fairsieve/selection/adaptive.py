"""Steps of the ratios that follow the gaps and their own success.

The paper moves one class by one fixed step. A network trains for twenty epochs, so here every class may move, each
with a step of its own: it grows while the gap keeps its sign and is halved when the sign changes. A class rests
while its gap is within the tolerance, or within what its few samples let us know of it; a class whose ratios are
used up is skipped.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fairsieve.selection.cells import as_array
from fairsieve.selection.ratios import rounded

__all__ = ["AdaptiveSteps", "Gap", "find_gaps"]

GROW, SHRINK = 1.2, 0.5
LARGEST = 0.2  # of a class, in one step
CHANCE = 1.0  # standard errors up to which a gap may be chance


class Gap(NamedTuple):
    """What one comparison found between the groups of a class."""

    label: int
    size: float  # between the two groups, rounded
    rising: int  # the group that should be seen more,
    falling: int  # and the one that should be seen less
    error: float  # one standard error of the size


def find_gaps(
    sums: NDArray[np.float64],
    squares: NDArray[np.float64],
    sizes: NDArray[Any],
    rows: NDArray[np.int64],
    by_group: bool,
    has_ungrouped: bool,
    shape: tuple[int, int],
) -> list[Gap | None]:
    """Return the widest gap of each comparison; None where fewer than two cells have samples.

    ``sums`` and ``squares`` are those of signals, (targets, cells), and ``sizes`` the samples of each cell.
    """
    table = sizes.reshape(shape)
    over = np.broadcast_to(table.sum(axis=0), shape) if by_group else table
    found: list[Gap | None] = []
    for target, label, sign in rows.tolist():
        groups = np.flatnonzero(table[label, : shape[1] - has_ungrouped] > 0)
        if len(groups) < 2:
            found.append(None)
            continue
        means = sums[target].reshape(shape)[label, groups] / over[label, groups]
        values = np.array([rounded(sign * mean) for mean in means])
        top, bottom = int(values.argmax()), int(values.argmin())
        spread = squares[target].reshape(shape)[label, groups] / over[label, groups] - means**2
        error = float(np.sqrt((np.maximum(spread, 0) / over[label, groups])[[top, bottom]].sum()))
        size = rounded(float(sign * (means[top] - means[bottom])))
        found.append(Gap(label, size, int(groups[top]), int(groups[bottom]), error))
    return found


class AdaptiveSteps:
    """The step of each comparison.

    Parameters
    ----------
    comparisons : int
    first : float
        The first step of every comparison.
    tolerance : float
        Gaps up to this are left alone.
    """

    def __init__(self, comparisons: int, first: float, tolerance: float) -> None:
        self.tolerance = tolerance
        self.steps = np.full(comparisons, min(first, LARGEST))
        self.last = np.full((comparisons, 2), -1)  # the groups that rose and fell the last time

    def amount(self, number: int, gap: Gap | None, ratios: NDArray[np.float64]) -> float:
        """Return how much of its class a comparison would move now; 0 for none."""
        if gap is None or not gap.size > max(self.tolerance, CHANCE * gap.error):
            return 0.0
        room = min(ratios[gap.label, gap.falling], 1 - ratios[gap.label, gap.rising])
        return float(min(self._next(number, gap), room))

    def _next(self, number: int, gap: Gap) -> float:
        """Return a comparison's next step: larger where the last went the same way, smaller where the opposite."""
        last = tuple(self.last[number].tolist())
        factor = GROW if last == (gap.rising, gap.falling) else 1.0
        factor = SHRINK if last == (gap.falling, gap.rising) else factor
        return min(LARGEST, float(self.steps[number]) * factor)

    def move(self, ratios: NDArray[np.float64], gaps: list[Gap | None]) -> float:
        """Move the ratios of every class that can, in place; return how much moved in all."""
        moved = 0.0
        for number, gap in enumerate(gaps):
            amount = self.amount(number, gap, ratios)
            if gap is None or amount <= 0:
                continue
            self.steps[number] = self._next(number, gap)
            self.last[number] = gap.rising, gap.falling
            ratios[gap.label, gap.rising] = min(1.0, ratios[gap.label, gap.rising] + amount)
            ratios[gap.label, gap.falling] = max(0.0, ratios[gap.label, gap.falling] - amount)
            moved += amount
        return moved

    def state_dict(self) -> dict[str, Any]:
        """Return what the next steps depend on."""
        return {"steps": self.steps.copy(), "last": self.last.copy()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from a state."""
        self.steps = as_array("steps", state["steps"]).astype(np.float64)
        self.last = as_array("last", state["last"]).astype(np.int64).reshape(-1, 2)
