"""List the samples whose labels to check, and what the model thinks of them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_expit, log_softmax

from fairsieve.errors import InvalidInputError
from fairsieve.label_noise.clean_ratio_estimate import CleanRatioEstimate
from fairsieve.samples import Samples

__all__ = ["choose_to_verify", "probabilities_of", "suspects_of"]


def choose_to_verify(
    estimate: CleanRatioEstimate | None, n: int, rows: NDArray[np.int64] | None, clean_ratio: Any
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Choose samples to check next by an estimate; name them by ``rows``, if given. Return weights too."""
    if estimate is None:
        raise InvalidInputError(
            "next_to_verify needs clean_ratio='auto', which estimates which labels are wrong; got "
            f"clean_ratio={clean_ratio!r}"
        )
    chosen, weights = estimate.next_to_verify(n)
    return chosen if rows is None else rows[chosen], weights


def suspects_of(
    decision: NDArray[np.float64],
    data: Samples,
    selected: NDArray[np.int64],
    epochs_kept: NDArray[np.int32],
    rows: NDArray[np.int64] | None,
    *,
    wrong: NDArray[np.float64] | None = None,
) -> dict[str, NDArray[Any]]:
    """List the samples that were not selected as a table of columns, the likeliest wrong label first.

    Parameters
    ----------
    decision : array
        Logits of all samples of ``data``, as ``decision_function`` gives them.
    selected : integer array
        The samples whose labels are not in doubt.
    epochs_kept : integer array
        In how many epochs each sample was selected.
    rows : integer array or None
        What to call the samples; by their numbers when None.
    wrong : array, optional
        How likely each label is wrong, which ranks them; the losses rank them when None.

    Examples
    --------
    >>> data = Samples(np.zeros((3, 1)), ["no", "no", "yes"], ["a", "b", "b"])
    >>> found = suspects_of(np.array([3.0, 1.0, 2.0]), data, np.array([2]), np.zeros(3, int), np.arange(3))
    >>> {name: column.tolist() for name, column in found.items() if name in ("row", "label", "suggested")}
    {'row': [0, 1], 'label': ['no', 'no'], 'suggested': ['yes', 'yes']}
    """
    left_out = np.ones(len(data), bool)
    left_out[selected] = False
    left = np.flatnonzero(left_out)
    logs = _log_probabilities(decision[left])
    losses = -logs[np.arange(len(left)), data.cells.host_codes[left] // data.cells.shape[1]]
    order = np.lexsort((-losses, np.zeros(len(left)) if wrong is None else -wrong[left]))
    left, losses, chances = left[order], losses[order], np.exp(logs[order])
    groups = np.empty(len(data.cells.groups), dtype=object)
    groups[:] = data.cells.groups  # element by element: crossed groups are tuples
    return {
        "row": left if rows is None else rows[left],
        "label": data.labels[left],
        "suggested": np.asarray(data.cells.classes, data.labels.dtype)[chances.argmax(axis=1)],
        "loss": losses,
        "probability": chances.max(axis=1),
        "group": groups[data.cells.host_codes[left] % data.cells.shape[1]],
        "epochs_kept": epochs_kept[left],
    }


def probabilities_of(decision: NDArray[np.float64]) -> NDArray[np.float64]:
    """Compute the probabilities of the classes, from what ``decision_function`` gives.

    >>> probabilities_of(np.zeros(1)).round(6).tolist()
    [[0.5, 0.5]]
    """
    return np.asarray(np.exp(_log_probabilities(decision)))


def _log_probabilities(decision: NDArray[np.float64]) -> NDArray[np.float64]:
    """Compute their logarithms, of one logit per sample or of one per class."""
    if decision.ndim == 1:
        return np.stack([log_expit(-decision), log_expit(decision)], axis=1)
    return np.asarray(log_softmax(decision, axis=1))
