"""The covariance penalty of Zafar et al. (2017): μ · |Cov(z, decision)|, added to the loss.

For demographic parity the covariance is over all samples; for equalized odds within each class (the
mistreatment form), for equal opportunity within the positive class. With more than two groups each
group's indicator has a covariance of its own; half their sum is taken, which for two groups is the
one covariance.

Samples without a group are left out. The decision is the model's output less the mean over classes
(for one output, the output), so that every class's score is treated alike. For the linear model a
covariance is a fixed linear function of the parameters, over all samples in play; for other models
(:func:`~fairsieve.training.autograd.covariance_penalty`) it is taken over each batch.
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
    """List the classes within which covariances are taken; −1 stands for all samples together."""
    name = fairness_name(fairness)
    if name == "demographic_parity":
        return [EVERYONE]
    return list(range(cells.shape[0])) if name == "equalized_odds" else [cells.class_index(pos_label)]


def penalty_directions(
    features: NDArray[Any], cells: Cells, outputs: int, classes: list[int]
) -> NDArray[np.float64]:
    """Compute vectors c such that |c · parameters| are a linear model's covariances, halved.

    The result has the shape (terms, parameters).
    """
    d = features.shape[1]
    rows = []
    for label in classes:
        inside = cells.group_codes < cells.named_groups
        if label != EVERYONE:
            inside &= cells.label_codes == label
        if not inside.any():
            continue
        members = np.eye(cells.named_groups)[cells.group_codes[inside]]
        covariance = (members - members.mean(axis=0)).T @ features[inside].astype(np.float64) / inside.sum()
        for of_group in covariance:
            for output in range(outputs):
                row = np.zeros(outputs * (d + 1))
                for k in range(outputs):  # less the mean over outputs, where there are several
                    share = float(k == output) - (1 / outputs if outputs > 1 else 0.0)
                    row[k * d : (k + 1) * d] = share * of_group
                rows.append(row / 2)
    return np.array(rows).reshape(-1, outputs * (d + 1))
