"""What a trained predictor answers: logits, likeliest classes, and the predictor as a module of torch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fairsieve.inputs import dense_chunks
from fairsieve.optional import require
from fairsieve.training.linear_model import LinearModel

if TYPE_CHECKING:
    from torch import nn

__all__ = ["as_module", "decide", "likeliest_codes"]


def as_module(predictor: Any) -> nn.Module:
    """Return a predictor as a module of torch."""
    if not isinstance(predictor, LinearModel):
        return predictor  # type: ignore[no-any-return]
    require("torch", extra="torch", purpose="a linear model as a torch module")
    from fairsieve.training.models import LogisticRegression as LinearModule

    return LinearModule.from_linear(predictor)


def decide(predictor: Any, features: Any) -> NDArray[np.float64]:
    """Compute the logits of dense or sparse features: one per sample for two classes, else one per class."""
    if isinstance(predictor, LinearModel):
        return predictor.decision(features)
    import torch

    from fairsieve.sampling.losses import compute_outputs, is_single

    dtype = next(predictor.parameters()).dtype
    chunks = (torch.tensor(chunk, dtype=dtype) for chunk in dense_chunks(features))
    outputs = torch.cat([compute_outputs(predictor, chunk).cpu() for chunk in chunks]).double()
    if is_single(outputs):
        return outputs.reshape(-1).numpy()
    return (outputs[:, 1] - outputs[:, 0] if outputs.shape[1] == 2 else outputs).numpy()


def likeliest_codes(decision: NDArray[np.float64]) -> NDArray[np.integer[Any]]:
    """Return the position of the likeliest class of each sample; in a byte each, of two classes."""
    return (decision > 0).view(np.int8) if decision.ndim == 1 else decision.argmax(axis=1)
