"""List the samples whose labels to check, and what the model thinks of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
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
    believed: NDArray[np.int64],
    rows: NDArray[np.int64] | None,
    *,
    wrong: NDArray[np.float64] | None = None,
) -> pd.DataFrame:
    """List the samples that are not believed, the likeliest wrong label first.

    Parameters
    ----------
    decision : array
        Logits of all samples of ``data``, as ``decision_function`` gives them.
    believed : integer array
        The samples whose labels are not in doubt.
    rows : integer array or None
        What to call the samples; by their numbers when None.
    wrong : array, optional
        How likely each label is wrong, which ranks them; the losses rank them when None.

    Examples
    --------
    >>> data = Samples(np.zeros((3, 1)), ["no", "no", "yes"], ["a", "b", "b"])
    >>> found = suspects_of(np.array([3.0, 1.0, 2.0]), data, np.array([2]), np.arange(3))
    >>> found[["row", "label", "suggested"]].to_numpy().tolist()
    [[0, 'no', 'yes'], [1, 'no', 'yes']]
    """
    in_doubt = np.ones(len(data), bool)
    in_doubt[believed] = False
    left = np.flatnonzero(in_doubt)
    logs = _log_probabilities(decision[left])
    losses = -logs[np.arange(len(left)), data.cells.host_codes[left] // data.cells.shape[1]]
    order = np.lexsort((-losses, np.zeros(len(left)) if wrong is None else -wrong[left]))
    left, losses, chances = left[order], losses[order], np.exp(logs[order])
    groups = np.empty(len(data.cells.groups), dtype=object)
    groups[:] = data.cells.groups  # element by element: crossed groups are tuples
    return pd.DataFrame(
        {
            "row": left if rows is None else rows[left],
            "label": data.labels[left],
            "suggested": np.asarray(data.cells.classes, data.labels.dtype)[chances.argmax(axis=1)],
            "loss": losses,
            "probability": chances.max(axis=1),
            "group": groups[data.cells.host_codes[left] % data.cells.shape[1]],
        }
    )


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
