"""What training gives back."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import nn

from fairsieve.errors import InvalidInputError
from fairsieve.metrics import classes_of
from fairsieve.sampling.losses import is_single, outputs_of, predicted_classes
from fairsieve.selection.cells import as_array
from fairsieve.training.history import History

__all__ = ["Fitted"]


@dataclass(frozen=True, eq=False)
class Fitted:
    """A trained model and how it came to be.

    Attributes
    ----------
    model : nn.Module
    history : History
    indices : integer array
        The last selection, ascending.
    ratios : array of shape (classes, groups)
        The last ratios.
    classes : list
        What the model's outputs stand for.
    method : str
    seed : int
    seconds : float
        Of this run, or of all the runs trained together with it.
    interrupted : bool
        Whether training was stopped early; the model is then the best state so far.
    """

    model: nn.Module
    history: History
    indices: NDArray[np.int64]
    ratios: NDArray[np.float64]
    classes: list[Any]
    method: str
    seed: int
    seconds: float
    interrupted: bool

    def predict(
        self, features: ArrayLike | torch.Tensor, *, sensitive_features: ArrayLike | None = None
    ) -> NDArray[Any]:
        """Labels of new samples. The groups are accepted for methods that look at them to predict."""
        return classes_of(predicted_classes(self._outputs(features)).numpy(), self.classes)

    def predict_proba(self, features: ArrayLike | torch.Tensor) -> NDArray[np.float64]:
        """Probabilities of the classes, (n, classes)."""
        outputs = self._outputs(features).double()
        if is_single(outputs):
            positive = torch.sigmoid(outputs.reshape(-1))
            return torch.stack([1 - positive, positive], dim=1)[:, : len(self.classes)].numpy()
        return torch.softmax(outputs, dim=1).numpy()

    def over(self, rows: NDArray[np.int64], samples: int) -> Fitted:
        """The same result, told of all ``samples``, of which it was trained on ``rows``."""
        kept = np.zeros(samples, np.int32)
        kept[rows] = self.history.kept
        return replace(self, indices=rows[self.indices], history=replace(self.history, kept=kept))

    def _outputs(self, features: ArrayLike | torch.Tensor) -> torch.Tensor:
        numbers = as_array("features", features)
        if numbers.dtype.kind not in "fiub":
            raise InvalidInputError(
                f"features must be numbers; got {numbers.dtype}: encode them as in training"
            )
        if not np.isfinite(numbers).all():
            raise InvalidInputError(
                f"features must be finite; {(~np.isfinite(numbers)).sum()} are not: impute them first"
            )
        dtype = next(self.model.parameters()).dtype
        try:
            return outputs_of(self.model, torch.as_tensor(numbers).to(dtype)).cpu()
        except RuntimeError as error:
            raise InvalidInputError(
                f"features must have the columns that the model was trained on; got the shape {numbers.shape}: {error}"
            ) from error
