"""What training returns."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fairsieve.errors import InvalidInputError
from fairsieve.metrics import decode_classes
from fairsieve.optional import require
from fairsieve.selection.cells import as_array
from fairsieve.training.history import History
from fairsieve.training.linear_model import LinearModel

if TYPE_CHECKING:
    import torch
    from torch import nn

__all__ = ["Fitted"]


@dataclass(frozen=True, eq=False, kw_only=True)
class Fitted:
    """A trained model and how it came to be.

    Attributes
    ----------
    predictor : LinearModel or nn.Module
        What predicts: the linear model in NumPy, or the trained module.
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
        The time this training took, or all those trained together with it.
    interrupted : bool
        Whether training was stopped early; the model is then the best state so far.

    Examples
    --------
    >>> from fairsieve import fit
    >>> from fairsieve.data import make_synthetic
    >>> fitted = fit(None, make_synthetic(500, seed=0), clean_ratio=0.9, epochs=5, warmup_epochs=2)
    >>> fitted.predict([[1.0, 1.0, 0.0]]).tolist(), fitted.ratios.shape, fitted.interrupted
    ([1], (2, 2), False)
    """

    predictor: LinearModel | nn.Module
    history: History
    indices: NDArray[np.int64]
    ratios: NDArray[np.float64]
    classes: list[Any]
    method: str
    seed: int
    seconds: float
    interrupted: bool = False

    @cached_property
    def model(self) -> nn.Module:
        """The trained model as a module; a linear model becomes a ``LogisticRegression`` (needs torch)."""
        if not isinstance(self.predictor, LinearModel):
            return self.predictor
        require("torch", extra="torch", purpose="a linear model as a torch module")
        from fairsieve.training.models import LogisticRegression

        return LogisticRegression.from_linear(self.predictor)

    def predict(
        self, features: ArrayLike | torch.Tensor, *, sensitive_features: ArrayLike | None = None
    ) -> NDArray[Any]:
        """Predict labels. The groups are accepted for methods that look at them to predict."""
        numbers = _check_numbers(features)
        if isinstance(self.predictor, LinearModel):
            return decode_classes(self.predictor.predict_codes(numbers), self.classes)
        from fairsieve.sampling.losses import predicted_classes

        return decode_classes(predicted_classes(self._outputs(numbers)).numpy(), self.classes)

    def predict_proba(self, features: ArrayLike | torch.Tensor) -> NDArray[np.float64]:
        """Compute the probabilities of the classes, (n, classes)."""
        numbers = _check_numbers(features)
        if isinstance(self.predictor, LinearModel):
            return self.predictor.probabilities(numbers)
        import torch

        from fairsieve.sampling.losses import is_single

        outputs = self._outputs(numbers).double()
        if is_single(outputs):
            positive = torch.sigmoid(outputs.reshape(-1))
            return torch.stack([1 - positive, positive], dim=1).numpy()
        return torch.softmax(outputs, dim=1).numpy()

    def over(self, rows: NDArray[np.int64], samples: int) -> Fitted:
        """Describe the same result over all ``samples``, of which it was trained on ``rows``, ascending."""
        if len(rows) == samples:
            return self
        times_selected = np.zeros(samples, np.int32)
        times_selected[rows] = self.history.times_selected
        history = replace(self.history, times_selected=times_selected)
        return replace(self, indices=rows[self.indices], history=history)

    def _outputs(self, numbers: NDArray[Any]) -> torch.Tensor:
        """Compute the outputs of a module, on the CPU."""
        import torch

        from fairsieve.sampling.losses import compute_outputs

        dtype = next(self.model.parameters()).dtype
        try:
            return compute_outputs(self.model, torch.as_tensor(numbers).to(dtype)).cpu()
        except RuntimeError as error:
            raise InvalidInputError(
                f"features must have the columns that the model was trained on; got the shape {numbers.shape}: {error}"
            ) from error


def _check_numbers(features: ArrayLike | torch.Tensor) -> NDArray[Any]:
    """Return features as an array of finite numbers, or raise."""
    numbers = as_array("features", features)
    if numbers.dtype.kind not in "fiub":
        raise InvalidInputError(f"features must be numbers; got {numbers.dtype}: encode them as in training")
    if not np.isfinite(numbers).all():
        raise InvalidInputError(
            f"features must be finite; {(~np.isfinite(numbers)).sum()} are not: impute them first"
        )
    return numbers
