"""Who was left out of training, by label and group, and whether that was even-handed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fairsieve.core.cells import Cells
from fairsieve.intervals import newcombe
from fairsieve.runs.measures import FEW, Share

__all__ = ["DroppedCell", "Uneven", "dropped_cells", "most_uneven"]

NOTICEABLE = 0.02  # a smaller difference is none worth telling


@dataclass(frozen=True)
class DroppedCell:
    """The people of one label in one group (None: without a group).

    Attributes
    ----------
    label, group : str
    dropped : Share
        Those left out in the last epoch, of all.
    suspects : int
        Those whose label looks wrong.
    noise : float or None
        Estimated share of wrong labels, where it was estimated.
    """

    label: str
    group: str | None
    dropped: Share
    suspects: int
    noise: float | None


@dataclass(frozen=True)
class Uneven:
    """Of one label, the group that was dropped most and the one that was dropped least."""

    most: DroppedCell
    least: DroppedCell
    difference: float
    interval: tuple[float, float]

    @property
    def even_handed(self) -> bool:
        """Whether the difference is small, or no more than chance."""
        return self.difference < NOTICEABLE or self.interval[0] <= 0


def dropped_cells(
    cells: Cells,
    kept: NDArray[np.int64],
    suspects: NDArray[np.int64],
    noise: NDArray[np.float64] | None,
) -> list[DroppedCell]:
    """Every cell that somebody is in; ``kept`` and ``suspects`` are positions of samples."""
    left = np.ones(len(cells), bool)
    left[kept] = False
    dropped = np.bincount(cells.codes[left], minlength=cells.counts.size).reshape(cells.shape)
    wrong = np.bincount(cells.codes[suspects], minlength=cells.counts.size).reshape(cells.shape)
    return [
        DroppedCell(
            str(label),
            group,
            Share(int(dropped[i, j]), int(cells.counts[i, j])),
            int(wrong[i, j]),
            None if noise is None or np.isnan(noise[i, j]) else float(noise[i, j]),
        )
        for i, label in enumerate(cells.classes)
        for j, group in enumerate(cells.groups)
        if cells.counts[i, j]
    ]


def most_uneven(cells: list[DroppedCell]) -> Uneven | None:
    """The largest difference between two groups of one label; None where groups are too small to tell."""
    found = []
    for label in dict.fromkeys(cell.label for cell in cells):
        row = [c for c in cells if c.label == label and c.group is not None and c.dropped.total >= FEW]
        if len(row) < 2:
            continue
        least, *_, most = sorted(row, key=lambda cell: cell.dropped.value)
        difference = most.dropped.value - least.dropped.value
        found.append(Uneven(most, least, difference, newcombe(*most.dropped, *least.dropped)))
    return max(found, key=lambda one: (not one.even_handed, one.difference), default=None)
