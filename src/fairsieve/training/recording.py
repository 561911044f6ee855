"""What is kept of every epoch while it runs; compiled code and the autograd loop write the same."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fairsieve.selection.backends.jit import compiled

__all__ = ["Recording", "new_recording", "note_epoch", "note_plan", "tabulate"]


class Recording(NamedTuple):
    """What is kept of every epoch, as it begins."""

    cell_losses: NDArray[np.float64]  # (epochs, cells): means over the selection before
    ratios: NDArray[np.float64]  # (epochs, cells)
    counts: NDArray[np.int64]  # (epochs, cells)
    tables: NDArray[np.float64]  # (epochs, cells, classes): predictions by cell
    kept_tables: NDArray[np.float64]  # the same over the selection before
    evaluation_tables: NDArray[np.float64]  # the same over the evaluation samples
    kept: NDArray[np.int32]  # (samples,): epochs each sample was selected in, after the warm-up


def new_recording(epochs: int, samples: int, cells: int, classes: int) -> Recording:
    return Recording(
        np.zeros((epochs, cells)),
        np.zeros((epochs, cells)),
        np.zeros((epochs, cells), np.int64),
        np.zeros((epochs, cells, classes)),
        np.zeros((epochs, cells, classes)),
        np.zeros((epochs, cells, classes)),
        np.zeros(samples, np.int32),
    )


@compiled
def tabulate(predicted: NDArray[np.int64], codes: NDArray[Any], table: NDArray[np.float64]) -> None:
    """Count predictions by cell."""
    for i in range(predicted.size):
        table[codes[i], predicted[i]] += 1


@compiled
def note_epoch(
    recording: Recording,
    epoch: int,
    losses: NDArray[np.float64],
    predicted: NDArray[np.int64],
    codes: NDArray[Any],
    chosen: NDArray[np.int64],
    counts: NDArray[np.int64],
) -> None:
    """Record how the model does as an epoch begins, by cell."""
    tabulate(predicted, codes, recording.tables[epoch])
    kept_table, cell_losses = recording.kept_tables[epoch], recording.cell_losses[epoch]
    for i in chosen:
        kept_table[codes[i], predicted[i]] += 1
        cell_losses[codes[i]] += losses[i]
    for cell in range(counts.size):
        cell_losses[cell] /= max(counts[cell], 1)


@compiled
def note_plan(
    recording: Recording,
    epoch: int,
    ratios: NDArray[np.float64],
    chosen: NDArray[np.int64],
    counts: NDArray[np.int64],
    selective: bool,
) -> None:
    """Record what the epoch trains on."""
    recording.ratios[epoch] = ratios.ravel()
    recording.counts[epoch] = counts
    kept = recording.kept
    if selective:
        for i in chosen:
            kept[i] += 1
