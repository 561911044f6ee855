"""The covariance penalty of Zafar et al. (2017): μ · |Cov(z, g)|, added to the loss.

For demographic parity g is the decision value d(x), and the covariance is over all samples in play. For equalized
odds it is Zafar's form for disparate mistreatment: the mean of (z − z̄) · min(0, y·d(x)), with y = ±1, so that only
wrong decisions count. There is one term for the samples of each class (wrong negatives and wrong positives), and for
equal opportunity the positive class's alone. With more than two groups each group's indicator has a covariance of its
own; half their sum is taken, which for two groups is the one covariance.

The samples in play are those that the method selected. Samples without a group are left out. The decision is the
model's output less the mean over classes (for one output, the output), so that every class's score is treated alike.
For the linear model a term is a linear function of the parameters as long as the same decisions are wrong and the same
samples are selected: that function is renewed as every epoch begins, from the selection before.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairsieve.selection.cells import Cells
from fairsieve.selection.fairness import fairness_name

__all__ = ["EVERYONE", "penalised_classes", "penalty_directions"]

EVERYONE = -1


def penalised_classes(cells: Cells, fairness: str, pos_label: Any | None) -> list[int]:
    """List the classes whose wrong decisions are penalised; −1 stands for the decisions of all samples."""
    name = fairness_name(fairness)
    if name == "demographic_parity":
        return [EVERYONE]
    return list(range(cells.shape[0])) if name == "equalized_odds" else [cells.class_index(pos_label)]


def penalty_directions(
    features: NDArray[Any],
    cells: Cells,
    parameters: NDArray[np.float64],
    classes: list[int],
    selected: NDArray[np.int64] | None = None,
) -> NDArray[np.float64]:
    """Compute vectors c such that Σ |c · parameters| is the penalty of a linear model with these parameters.

    Parameters
    ----------
    parameters : array
        The weights, one row for each output, and then the biases.
    classes : list of int
        See :func:`penalised_classes`.
    selected : array of int, optional
        The samples in play; all when None.

    Returns
    -------
    array of shape (terms, parameters)
    """
    d = features.shape[1]
    outputs = parameters.size // (d + 1)
    inside = cells.group_codes < cells.named_groups
    if selected is not None:
        chosen = np.zeros(len(cells), dtype=bool)
        chosen[selected] = True
        inside &= chosen
    members = np.eye(cells.named_groups + 1, cells.named_groups)[
        np.minimum(cells.group_codes, cells.named_groups)
    ]
    many = max(int(inside.sum()), 1)
    centred = np.where(inside[:, None], members - members[inside].sum(axis=0) / many, 0.0) / (2 * many)
    decisions = _decisions(features, parameters, outputs) if classes != [EVERYONE] else np.zeros((0, outputs))
    rows = []
    for label in classes:
        for output in range(outputs):
            counted = centred
            if label != EVERYONE:
                sign = 1.0 if label == (output if outputs > 1 else 1) else -1.0
                wrong = (cells.label_codes == label) & (sign * decisions[:, output] < 0)
                counted = sign * centred * wrong[:, None]
            slopes = counted.T.astype(features.dtype, copy=False) @ features
            for slope, constant in zip(slopes, counted.sum(axis=0), strict=True):
                row = np.zeros(parameters.size)
                for k in range(outputs):  # less the mean over outputs, where there are several
                    share = float(k == output) - (1 / outputs if outputs > 1 else 0.0)
                    row[k * d : (k + 1) * d] = share * slope
                    row[outputs * d + k] = share * constant
                rows.append(row)
    return np.array(rows).reshape(-1, parameters.size)


def _decisions(features: NDArray[Any], parameters: NDArray[np.float64], outputs: int) -> NDArray[Any]:
    """Compute the decision values (n, outputs) of a linear model."""
    d = features.shape[1]
    weights = parameters[: outputs * d].reshape(outputs, d).astype(features.dtype, copy=False)
    found: NDArray[Any] = features @ weights.T + parameters[outputs * d :]
    return found - found.mean(axis=1, keepdims=True) if outputs > 1 else found
