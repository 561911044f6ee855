"""Count who was left out of training, by label and group, and compare groups."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import permutations

import numpy as np
from numpy.typing import NDArray

from fairsieve.intervals import newcombe
from fairsieve.selection.cells import Cells
from fairsieve.tabular.evaluation import FEW, Share

__all__ = ["DroppedCell", "Uneven", "dropped_cells", "drops_by_label", "most_uneven"]

NOTICEABLE = 0.02  # a smaller difference is none worth telling
IGNORED = 0.25  # of the weight that its rows would have


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
    weight : float or None
        Effective weight: the cell's share of the training weight, divided by its share of the rows.
    """

    label: str
    group: str | None
    dropped: Share
    suspects: int
    noise: float | None
    weight: float | None = None

    @property
    def is_ignored(self) -> bool:
        """Whether the cell has less than a quarter of the weight that its rows would have."""
        return self.weight is not None and self.weight < IGNORED


@dataclass(frozen=True)
class Uneven:
    """Two groups of one label, one of which was dropped more.

    Attributes
    ----------
    most, least : DroppedCell
    difference : float
        Between their shares dropped.
    interval : (float, float)
        Of the difference; 95 %, by Newcombe.
    expected : float
        The difference that their estimated wrong labels explain; 0 where none were estimated, and where the group
        that was dropped more has fewer of them.
    """

    most: DroppedCell
    least: DroppedCell
    difference: float
    interval: tuple[float, float]
    expected: float

    @property
    def even_handed(self) -> bool:
        """Whether the difference is small, no more than chance, or what wrong labels explain."""
        return self.difference - self.expected < NOTICEABLE or self.interval[0] <= self.expected


def dropped_cells(
    cells: Cells,
    kept: NDArray[np.int64],
    suspects: NDArray[np.int64],
    noise: NDArray[np.float64] | None,
    weights: NDArray[np.float64] | None = None,
) -> list[DroppedCell]:
    """Describe every cell that is not empty; ``kept`` and ``suspects`` are positions of samples.

    ``weights`` are effective weights, by class and group.
    """
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
            None if weights is None or np.isnan(weights[i, j]) else float(weights[i, j]),
        )
        for i, label in enumerate(cells.classes)
        for j, group in enumerate(cells.groups)
        if cells.counts[i, j]
    ]


def drops_by_label(cells: list[DroppedCell]) -> dict[str, Share]:
    """Count who was dropped, label by label."""
    found: dict[str, Share] = {}
    for cell in cells:
        hits, total = found.get(cell.label, Share(0, 0))
        found[cell.label] = Share(hits + cell.dropped.hits, total + cell.dropped.total)
    return found


def most_uneven(cells: list[DroppedCell]) -> Uneven | None:
    """Find the difference between two groups of one label that is explained least; of those that are, the largest.

    None where groups are too small to tell.
    """
    compared = [cell for cell in cells if cell.group is not None and cell.dropped.total >= FEW]
    found = [_uneven(most, least) for most, least in permutations(compared, 2) if most.label == least.label]

    def weight(one: Uneven) -> tuple[bool, float]:
        explained = 0.0 if one.even_handed else one.expected
        return not one.even_handed, one.difference - explained

    return max(found, key=weight, default=None)


def _uneven(most: DroppedCell, least: DroppedCell) -> Uneven:
    """Compute how much more of one cell was dropped than of another, and how much of that is explained."""
    known = most.noise is not None and least.noise is not None
    return Uneven(
        most,
        least,
        most.dropped.value - least.dropped.value,
        newcombe(*most.dropped, *least.dropped),
        max(most.noise - least.noise, 0.0) if known else 0.0,  # type: ignore[operator]
    )
