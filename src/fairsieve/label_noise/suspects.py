"""Who was left out of the last selection, and what the model thinks of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from fairsieve.samples import Samples
from fairsieve.sampling.losses import cross_entropy

__all__ = ["probabilities_of", "suspects_of"]


def suspects_of(
    decision: NDArray[np.float64],
    data: Samples,
    chosen: NDArray[np.int64],
    epochs_kept: NDArray[np.int32],
    rows: NDArray[np.int64],
) -> dict[str, NDArray[Any]]:
    """The samples that were not chosen, the highest loss first, as a table of columns.

    Parameters
    ----------
    decision : array
        Logits of all samples of ``data``, as ``decision_function`` gives them.
    chosen : integer array
        The last selection.
    epochs_kept : integer array
        In how many epochs each sample was selected.
    rows : integer array
        What to call the samples.

    Examples
    --------
    >>> data = Samples(np.zeros((3, 1)), ["no", "no", "yes"], ["a", "b", "b"])
    >>> found = suspects_of(np.array([3.0, 1.0, 2.0]), data, np.array([2]), np.zeros(3, int), np.arange(3))
    >>> {name: column.tolist() for name, column in found.items() if name in ("row", "label", "suggested")}
    {'row': [0, 1], 'label': ['no', 'no'], 'suggested': ['yes', 'yes']}
    """
    codes = data.cells.label_codes
    losses = cross_entropy(torch.from_numpy(decision), torch.from_numpy(codes)).numpy()
    left = np.setdiff1d(np.arange(len(data)), chosen)
    left = left[np.argsort(-losses[left], kind="stable")]
    chances = probabilities_of(decision[left])
    groups = np.empty(len(data.cells.groups), dtype=object)
    groups[:] = data.cells.groups  # element by element: crossed groups are tuples
    return {
        "row": rows[left],
        "label": data.labels[left],
        "suggested": np.asarray(data.cells.classes, data.labels.dtype)[chances.argmax(axis=1)],
        "loss": losses[left],
        "probability": chances.max(axis=1),
        "group": groups[data.cells.group_codes[left]],
        "epochs_kept": epochs_kept[left],
    }


def probabilities_of(decision: NDArray[np.float64]) -> NDArray[np.float64]:
    """Probabilities of the classes, from what ``decision_function`` gives.

    >>> probabilities_of(np.zeros(1)).tolist()
    [[0.5, 0.5]]
    """
    logits = torch.from_numpy(decision)
    if logits.ndim == 1:
        return torch.stack([torch.sigmoid(-logits), torch.sigmoid(logits)], dim=1).numpy()
    return torch.softmax(logits, dim=1).numpy()
