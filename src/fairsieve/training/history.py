"""What happened in a training, epoch by epoch.

A trainer writes into the arrays of a :class:`Recording`; users read the :class:`History` made from it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from fairsieve.metrics import accuracy_from_table, disparity_from_table, grouped_part
from fairsieve.selection.cells import Cells
from fairsieve.selection.fairness import FairnessName

__all__ = [
    "History",
    "Recording",
    "Scores",
    "cell_names",
    "count_predictions",
    "new_recording",
    "record_model",
    "record_plan",
]


class Recording(NamedTuple):
    """What is recorded of every epoch, as it begins."""

    cell_losses: NDArray[np.float64]  # (epochs, cells): means over the selection before
    ratios: NDArray[np.float64]  # (epochs, cells)
    counts: NDArray[np.int64]  # (epochs, cells)
    tables: NDArray[np.float64]  # (epochs, cells, classes): predictions by cell
    selected_tables: NDArray[np.float64]  # the same over the selection before
    evaluation_tables: NDArray[np.float64]  # the same over the evaluation samples
    times_selected: NDArray[np.int32]  # (samples,): epochs after the warm-up that selected each sample


def new_recording(epochs: int, cells: Cells) -> Recording:
    """Make an empty recording of so many epochs."""
    by_cell = (epochs, cells.counts.size)
    by_class = (*by_cell, cells.shape[0])
    return Recording(
        np.zeros(by_cell),
        np.zeros(by_cell),
        np.zeros(by_cell, np.int64),
        np.zeros(by_class),
        np.zeros(by_class),
        np.zeros(by_class),
        np.zeros(len(cells), np.int32),
    )


def count_predictions(predicted: NDArray[np.int64], codes: NDArray[Any], table: NDArray[np.float64]) -> None:
    """Add the predictions of each cell to a table (cells, classes)."""
    cells, classes = table.shape
    pairs = codes.astype(np.int64) * classes + predicted
    table += np.bincount(pairs, minlength=cells * classes).reshape(table.shape)


def record_model(
    recording: Recording,
    epoch: int,
    losses: NDArray[Any],
    predicted: NDArray[np.int64],
    codes: NDArray[Any],
    selected: NDArray[np.int64],
    counts: NDArray[np.int64],
) -> None:
    """Record how the model does as an epoch begins, by cell."""
    count_predictions(predicted, codes, recording.tables[epoch])
    count_predictions(predicted[selected], codes[selected], recording.selected_tables[epoch])
    sums = np.bincount(codes[selected], losses[selected], minlength=counts.size)
    recording.cell_losses[epoch] = sums / np.maximum(counts.reshape(-1), 1)


def record_plan(
    recording: Recording,
    epoch: int,
    ratios: NDArray[np.float64],
    selected: NDArray[np.int64],
    counts: NDArray[np.int64],
    selective: bool,
) -> None:
    """Record what the epoch trains on; ``selective`` when it is after the warm-up."""
    recording.ratios[epoch] = ratios.reshape(-1)
    recording.counts[epoch] = counts.reshape(-1)
    if selective:
        recording.times_selected[selected] += 1


@dataclass(frozen=True, eq=False)
class Scores:
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
    def from_tables(cls, tables: NDArray[np.float64], groups: Sequence[Any], positive: int = -1) -> Scores:
        """Compute the scores of confusion tables, (epochs, classes, groups, predicted classes)."""
        grouped = grouped_part(tables, groups)
        notions = get_args(FairnessName)
        return cls(
            accuracy_from_table(tables),
            {name: disparity_from_table(grouped, name, positive=positive) for name in notions},
        )


@dataclass(frozen=True, eq=False, kw_only=True)
class History:
    """One row per epoch (or per update of a solver), each as the epoch begins.

    The model of that moment gives the losses and the scores; ratios and counts are what was then
    selected from them and trained with.

    Attributes
    ----------
    epochs : integer array of shape (rows,)
        The epoch, or the update, that each row describes.
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
    times_selected : integer array of shape (n,)
        In how many epochs after the warm-up each sample was selected.
    warmup_epochs : int
    sizes : integer array of shape (classes, groups)
        All the training samples of each cell.

    Examples
    --------
    >>> from fairsieve import fit
    >>> from fairsieve.data import make_synthetic
    >>> fitted = fit(None, make_synthetic(500, seed=0), clean_ratio=0.9, epochs=5, warmup_epochs=2)
    >>> len(fitted.history), fitted.history.counts[-1].sum() <= 450
    (5, np.True_)
    >>> sorted(fitted.history.as_rows()[0])[:3]
    ['count[0, 0]', 'count[0, 1]', 'count[1, 0]']
    """

    epochs: NDArray[np.int64]
    classes: list[Any]
    groups: list[Any]
    cell_losses: NDArray[np.float64]
    ratios: NDArray[np.float64]
    counts: NDArray[np.int64]
    train: Scores
    evaluation: Scores | None
    times_selected: NDArray[np.int32]
    warmup_epochs: int
    sizes: NDArray[np.int64]

    @classmethod
    def from_recording(
        cls,
        recording: Recording,
        cells: Cells,
        epochs: NDArray[np.int64],
        *,
        warmup_epochs: int = 0,
        evaluated: bool = False,
        positive: int = -1,
    ) -> History:
        """Make the history of the first rows of a recording, which describe ``epochs``."""
        rows = len(epochs)
        shape = (rows, *cells.shape)

        def scores(tables: NDArray[np.float64]) -> Scores:
            return Scores.from_tables(tables[:rows].reshape(*shape, cells.shape[0]), cells.groups, positive)

        return cls(
            epochs=epochs,
            classes=cells.classes,
            groups=cells.groups,
            cell_losses=recording.cell_losses[:rows].reshape(shape),
            ratios=recording.ratios[:rows].reshape(shape),
            counts=recording.counts[:rows].reshape(shape),
            train=scores(recording.tables),
            evaluation=scores(recording.evaluation_tables) if evaluated else None,
            times_selected=recording.times_selected,
            warmup_epochs=warmup_epochs,
            sizes=cells.counts,
        )

    def __len__(self) -> int:
        return len(self.epochs)

    def as_rows(self) -> list[dict[str, float]]:
        """Return the history as flat rows, for a table or a data frame."""
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
    """Pair the position and the name of every class with those of every group."""
    return [(row, column) for row in enumerate(classes) for column in enumerate(groups)]
