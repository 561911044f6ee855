"""Chances of each sample's true class: the cells that follow from them, and expected losses."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike

from fairsieve.errors import InvalidInputError
from fairsieve.sampling.losses import LossFunction, class_losses
from fairsieve.selection.cells import Cells, as_array
from fairsieve.validation import shown

__all__ = ["expected_losses", "follow_weights"]

ROUNDING = 1e-3  # what the chances of a sample may miss 1 by


def follow_weights(cells: Cells, label_weights: ArrayLike | torch.Tensor) -> tuple[Cells, torch.Tensor]:
    """Return the cells by the likeliest class of each sample, and the chances as a tensor.

    Of classes that are equally likely, the given label comes first.

    >>> cells, _ = follow_weights(Cells.of([0, 0, 1], list("aba")), [[1, 0], [0.2, 0.8], [0.5, 0.5]])
    >>> cells.label_codes.tolist(), cells.group_codes.tolist()
    ([0, 1, 1], [0, 1, 0])
    """
    weights = as_array("label_weights", label_weights)
    expected = (len(cells), cells.shape[0])
    if weights.shape != expected or weights.dtype.kind not in "fiub":
        raise InvalidInputError(
            f"label_weights must be numbers of the shape (samples, classes), {expected}; got {weights.dtype} of the "
            f"shape {weights.shape}"
        )
    weights = weights.astype(np.float64)
    bad = ~(np.isfinite(weights) & (weights >= 0)).all(axis=1) | (np.abs(weights.sum(axis=1) - 1) > ROUNDING)
    if bad.any():
        row = int(bad.argmax())
        raise InvalidInputError(
            "label_weights must be chances, at least 0 and with the sum 1 in every row; row "
            f"{row} is {shown(weights[row].tolist())}"
        )
    given = cells.label_codes
    likeliest = weights.argmax(axis=1)
    tied = weights[np.arange(len(weights)), given] == weights.max(axis=1)
    likeliest[tied] = given[tied]
    codes: Any = (likeliest * cells.shape[1] + cells.group_codes).astype(cells.host_codes.dtype)
    if isinstance(cells.codes, torch.Tensor):
        codes = torch.from_numpy(codes).to(cells.codes)
    chances = torch.from_numpy(weights / weights.sum(axis=1, keepdims=True)).to(torch.get_default_dtype())
    return Cells(codes, cells.classes, cells.groups), chances


def expected_losses(outputs: torch.Tensor, targets: torch.Tensor, loss: LossFunction) -> torch.Tensor:
    """Return the loss per sample against class indices, or its expectation over the chances of each class.

    >>> from fairsieve.sampling.losses import cross_entropy
    >>> expected_losses(torch.zeros(1), torch.tensor([[0.25, 0.75]]), cross_entropy)
    tensor([0.6931])
    """
    if targets.ndim == 1:
        return loss(outputs, targets)
    losses = torch.stack([class_losses(outputs, code, loss) for code in range(targets.shape[1])], dim=1)
    chances = targets.to(losses.dtype)
    return torch.where(chances > 0, chances * losses, torch.zeros_like(losses)).sum(dim=1)
