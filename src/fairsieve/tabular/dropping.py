"""Count who was left out of training, and judge whether that was right."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import permutations
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fairsieve.selection.cells import Cells
from fairsieve.tabular.decision import Status, TableVerdict
from fairsieve.tabular.evaluation import FEW, Score, Share

if TYPE_CHECKING:
    from fairsieve.tabular.table_run import TableRun

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
    estimated_noise : float or None
        Estimated share of wrong labels, where it was estimated.
    effective_weight : float or None
        Effective weight: the cell's share of the training weight, divided by its share of the rows.
    """

    label: str
    group: str | None
    dropped: Share
    suspects: int
    estimated_noise: float | None
    effective_weight: float | None = None

    @property
    def is_ignored(self) -> bool:
        """Whether the cell has less than a quarter of the weight that its rows would have."""
        return self.effective_weight is not None and self.effective_weight < IGNORED


class Uneven(NamedTuple):
    """Two groups of one label, of which ``most`` was dropped more.

    ``expected`` is the difference that their estimated wrong labels explain; 0 where none were estimated, and where
    the group that was dropped more has fewer of them.
    """

    most: DroppedCell
    least: DroppedCell
    difference: Score
    expected: float

    @property
    def even_handed(self) -> bool:
        """Whether the difference is small, no more than chance, or what wrong labels explain."""
        value, (low, _) = self.difference
        return value - self.expected < NOTICEABLE or low <= self.expected


def dropped_cells(
    cells: Cells,
    kept: NDArray[np.int64],
    suspects: NDArray[Any],
    noise: NDArray[np.float64],
    weights: NDArray[np.float64],
) -> list[DroppedCell]:
    """Describe every cell that is not empty; ``kept`` and ``suspects`` are positions of samples.

    ``noise`` and effective ``weights`` are by class and group, NaN where they are not known.
    """
    left = np.ones(len(cells), bool)
    left[kept] = False
    dropped, wrong = (
        np.bincount(cells.codes[rows], minlength=cells.counts.size).reshape(cells.shape)
        for rows in (left, suspects)
    )

    def known(values: NDArray[np.float64], place: tuple[int, int]) -> float | None:
        return None if np.isnan(values[place]) else float(values[place])

    return [
        DroppedCell(
            str(cells.classes[place[0]]),
            cells.groups[place[1]],
            Share(int(dropped[place]), int(count)),
            int(wrong[place]),
            known(noise, place),
            known(weights, place),
        )
        for place, count in np.ndenumerate(cells.counts)
        if count
    ]


def most_uneven(cells: list[DroppedCell]) -> Uneven | None:
    """Find the difference between two groups of one label that is explained least; of those that are, the largest.

    None where groups are too small to tell.
    """
    compared = [cell for cell in cells if cell.group is not None and cell.dropped.total >= FEW]
    found = [
        Uneven(
            one,
            other,
            one.dropped.less(other.dropped),
            max((one.estimated_noise or 0.0) - (other.estimated_noise or 0.0), 0.0),
        )
        for one, other in permutations(compared, 2)
        if one.label == other.label
    ]

    def weight(one: Uneven) -> tuple[bool, float]:
        explained = 0.0 if one.even_handed else one.expected
        return not one.even_handed, one.difference.value - explained

    return max(found, key=weight, default=None)


def dropping_verdict(run: TableRun) -> TableVerdict:
    """Judge whether a group of one label lost more rows than others, and than wrong labels explain.

    It is told, and decides nothing; what decides is how much of a cell is gone. Where labels are corrected by chances,
    each cell loses what the estimate says, and nobody is dropped.
    """
    if not any(cell.dropped.hits for cell in run.dropped):
        acts = run.asked.clean_ratio == "auto" and run.estimate is not None and run.estimate.acts
        doubted = [cell for cell in run.dropped if cell.estimated_noise and cell.group is not None]
        corrected = doubted if acts and not run.keeps_plain else []
        facts: dict[str, Any] = {
            "most": max(corrected, key=lambda cell: cell.estimated_noise or 0.0, default=None)
        }
        return TableVerdict("dropping", "holds", facts=facts, kind="dropping_nobody", source="training part")
    found = most_uneven(run.dropped)
    if found is None:
        return TableVerdict("dropping", "inconclusive", kind="dropping_of_few", source="training part")
    facts = {"uneven": found, "allowed": 1 - run.clean_ratio}
    status: Status = "holds" if found.even_handed else "fails"
    return TableVerdict("dropping", status, *found.difference, facts, source="training part")


def judge_dropping(run: TableRun) -> Iterator[TableVerdict]:
    """Judge whether a group lost more rows than wrong labels explain, and whether all still count, as far as known."""
    yield dropping_verdict(run)
    cells = [cell for cell in run.dropped if cell.effective_weight is not None and cell.group is not None]
    if cells:
        least = min(cells, key=lambda cell: cell.effective_weight or 0.0)
        status: Status = "fails" if least.is_ignored else "holds"
        yield TableVerdict(
            "weight", status, least.effective_weight, facts={"least": least}, source="training part"
        )
