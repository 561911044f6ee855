"""What happened, epoch by epoch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from fairsieve.metrics import accuracy_of, disparity_of, grouped_part
from fairsieve.selection.cells import Cells
from fairsieve.selection.fairness import FairnessName
from fairsieve.training.recording import Recording

__all__ = ["History", "history_of"]


@dataclass(frozen=True, eq=False)
class _Scores:
    """Accuracy and disparities on one set of samples, one value per epoch.

    Attributes
    ----------
    accuracy : array of shape (epochs,)
    disparity : dict of such arrays
        By notion of fairness; the paper's definition (``method="to_overall"``).
    """

    accuracy: NDArray[np.float64]
    disparity: dict[str, NDArray[np.float64]]

    @classmethod
    def of(cls, tables: NDArray[np.float64], groups: Sequence[Any], positive: int = -1) -> _Scores:
        """Scores of confusion tables, (epochs, classes, groups, predicted classes)."""
        grouped = grouped_part(tables, groups)
        notions = get_args(FairnessName)
        return cls(
            accuracy_of(tables), {name: disparity_of(grouped, name, positive=positive) for name in notions}
        )


@dataclass(frozen=True, eq=False)
class History:
    """One row per epoch (or per recorded epoch), each as the epoch begins.

    The model of that moment gives the losses and the scores; ratios and counts are what was then
    chosen from them and trained with.

    Attributes
    ----------
    epochs : integer array of shape (rows,)
        The epoch that each row describes.
    classes, groups : lists
        What the rows and columns of the tables stand for; a last group None, samples without one.
    cell_losses : array of shape (rows, classes, groups)
        Mean loss of each cell over the selection of the epoch before.
    ratios, counts : arrays of shape (rows, classes, groups)
        The ratios, and the samples selected.
    train : Scores
        On the training samples, with the labels as they were given.
    evaluation : Scores or None
        On the evaluation samples, when there were any.
    kept : integer array of shape (n,)
        In how many epochs after the warm-up each sample was selected.
    warmup_epochs : int
    sizes : integer array of shape (classes, groups)
        All the training samples of each cell.
    """

    epochs: NDArray[np.int64]
    classes: list[Any]
    groups: list[Any]
    cell_losses: NDArray[np.float64]
    ratios: NDArray[np.float64]
    counts: NDArray[np.int64]
    train: _Scores
    evaluation: _Scores | None
    kept: NDArray[np.int32]
    warmup_epochs: int
    sizes: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.epochs)

    def as_rows(self) -> list[dict[str, float]]:
        """The history as flat rows, for a table or a data frame."""
        rows = []
        for epoch in range(len(self)):
            row: dict[str, float] = {"epoch": int(self.epochs[epoch])}
            for name, scores in (("train", self.train), ("evaluation", self.evaluation)):
                if scores is not None:
                    row[f"{name}_accuracy"] = float(scores.accuracy[epoch])
                    row |= {f"{name}_{notion}": float(v[epoch]) for notion, v in scores.disparity.items()}
            for (i, label), (j, group) in cell_names(self.classes, self.groups):
                row[f"loss[{label}, {group}]"] = float(self.cell_losses[epoch, i, j])
                row[f"ratio[{label}, {group}]"] = float(self.ratios[epoch, i, j])
                row[f"count[{label}, {group}]"] = int(self.counts[epoch, i, j])
            rows.append(row)
        return rows


def cell_names(
    classes: Sequence[Any], groups: Sequence[Any]
) -> list[tuple[tuple[int, Any], tuple[int, Any]]]:
    """Every cell with its place and its names."""
    return [(row, column) for row in enumerate(classes) for column in enumerate(groups)]


def history_of(
    recording: Recording,
    cells: Cells,
    epochs: NDArray[np.int64],
    *,
    warmup_epochs: int = 0,
    evaluated: bool = False,
    positive: int = -1,
) -> History:
    """The history in the first rows of a recording, which describe ``epochs``."""
    rows = len(epochs)
    shape = (rows, *cells.shape)

    def scores(tables: NDArray[np.float64]) -> _Scores:
        return _Scores.of(tables[:rows].reshape(*shape, -1), cells.groups, positive)

    return History(
        epochs,
        cells.classes,
        cells.groups,
        recording.cell_losses[:rows].reshape(shape),
        recording.ratios[:rows].reshape(shape),
        recording.counts[:rows].reshape(shape),
        scores(recording.tables),
        scores(recording.evaluation_tables) if evaluated else None,
        recording.kept,
        warmup_epochs,
        cells.counts,
    )
