"""The covariance penalty of Zafar et al. (2017): μ · |Cov(z, decision)|, added to the loss.

For demographic parity the covariance is over all samples; for equalized odds within each class (the
mistreatment form), for equal opportunity within the positive class. With more than two groups each
group's indicator has a covariance of its own; half their sum is taken, which for two groups is the
one covariance.

Samples without a group are left out. The decision is the model's output less the mean over classes
(for one output, the output), so that every class's score is treated alike. For the linear model a
covariance is a fixed linear function of the parameters, over all samples in play; for other models
it is taken over each batch.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from fairsieve.selection.cells import Cells
from fairsieve.selection.fairness import fairness_name

__all__ = ["covariance_penalty", "penalised_classes", "penalty_directions"]

EVERYONE = -1


def penalised_classes(cells: Cells, fairness: str, pos_label: Any | None) -> list[int]:
    """Classes within which covariances are taken; −1 stands for all samples together."""
    name = fairness_name(fairness)
    if name == "demographic_parity":
        return [EVERYONE]
    return list(range(cells.shape[0])) if name == "equalized_odds" else [cells.class_index(pos_label)]


def covariance_penalty(
    decision: torch.Tensor, labels: torch.Tensor, groups: torch.Tensor, n_groups: int, classes: list[int]
) -> torch.Tensor:
    """Σ |Cov(z, decision)| over a batch, halved over groups; ``decision`` is (n, outputs)."""
    total = decision.new_zeros(())
    indicators = torch.nn.functional.one_hot(groups, n_groups).to(decision.dtype)
    for label in classes:
        inside = slice(None) if label == EVERYONE else labels == label
        part, members = decision[inside], indicators[inside]
        if len(part):
            centred = members - members.mean(dim=0)
            total = total + (centred.T @ part / len(part)).abs().sum() / 2
    return total


def penalty_directions(
    features: NDArray[Any], cells: Cells, outputs: int, classes: list[int]
) -> NDArray[np.float64]:
    """Vectors c with |c · parameters| the covariances of a linear model, halved; (terms, parameters)."""
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
                for k in range(outputs):  # less the mean over outputs, of which one output has none
                    share = float(k == output) - (1 / outputs if outputs > 1 else 0.0)
                    row[k * d : (k + 1) * d] = share * of_group
                rows.append(row / 2)
    return np.array(rows).reshape(-1, outputs * (d + 1))
