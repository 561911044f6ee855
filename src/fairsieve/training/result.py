"""What training returns: the model, and what happened epoch by epoch."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fairsieve.errors import InvalidInputError
from fairsieve.optional import require
from fairsieve.selection.cells import as_array
from fairsieve.training.linear_model import LinearModel, likeliest, log_probabilities

if TYPE_CHECKING:
    import torch
    from torch import nn


@dataclass(frozen=True, eq=False)
class Scores:
    """Accuracy and disparities on one set of samples, one value per epoch.

    Attributes
    ----------
    accuracy : array of shape (epochs,)
    disparity : dict of such arrays
        By notion of fairness; the paper's definition (``method="to_overall"``).
    """

    accuracy: NDArray[np.float64]
    disparity: dict[str, NDArray[np.float64]]


@dataclass(frozen=True, eq=False, kw_only=True)
class History:
    """One row per epoch, each as the epoch begins.

    The model of that moment gives the losses and the scores; ratios and counts are what was then
    selected from them and trained with.

    Attributes
    ----------
    epochs : integer array of shape (rows,)
        The epoch that each row describes.
    classes, groups : lists
        What the rows and columns of the tables stand for; a last group None, samples without one.
    cell_losses : array of shape (rows, classes, groups)
        Mean loss of each cell over the selection of the epoch before.
    ratios, counts : arrays of shape (rows, classes, groups)
        The ratios, and the samples selected.
    train : Scores
        On the training samples, with the labels as they were given.
    evaluation : Scores or None
        On the evaluation samples, when there were any.
    warmup_epochs : int

    Examples
    --------
    >>> from fairsieve import fit
    >>> from fairsieve.data import make_synthetic
    >>> fitted = fit(None, make_synthetic(500, seed=0), clean_ratio=0.9, epochs=5, warmup_epochs=2)
    >>> len(fitted.history), fitted.history.counts[-1].sum() <= 450
    (5, np.True_)
    """

    epochs: NDArray[np.int64]
    classes: list[Any]
    groups: list[Any]
    cell_losses: NDArray[np.float64]
    ratios: NDArray[np.float64]
    counts: NDArray[np.int64]
    train: Scores
    evaluation: Scores | None
    warmup_epochs: int

    def __len__(self) -> int:
        return len(self.epochs)


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
    interrupted: bool = False

    @cached_property
    def model(self) -> nn.Module:
        """The trained model as a module; a linear model becomes a ``LogisticRegression`` (needs torch)."""
        if not isinstance(self.predictor, LinearModel):
            return self.predictor
        require("torch", purpose="a linear model as a torch module")
        from fairsieve.training.models import LogisticRegression

        return LogisticRegression.from_linear(self.predictor)

    def predict(self, features: ArrayLike | torch.Tensor) -> NDArray[Any]:
        """Predict labels."""
        return np.asarray(np.asarray(self.classes)[likeliest(self._decide(features))])

    def predict_proba(self, features: ArrayLike | torch.Tensor) -> NDArray[np.float64]:
        """Compute the probabilities of the classes, (n, classes)."""
        return np.asarray(np.exp(log_probabilities(self._decide(features))))

    def _decide(self, features: ArrayLike | torch.Tensor) -> NDArray[np.float64]:
        """Compute logits, on the CPU: (n,) of a single output, else (n, classes)."""
        numbers = as_array("features", features)
        if numbers.dtype.kind not in "fiub":
            raise InvalidInputError(
                f"features must be numbers; got {numbers.dtype}: encode them as in training"
            )
        if not np.isfinite(numbers).all():
            raise InvalidInputError(
                f"features must be finite; {(~np.isfinite(numbers)).sum()} are not: impute them first"
            )
        if isinstance(self.predictor, LinearModel):
            return self.predictor.decision(numbers)
        import torch

        from fairsieve.sampling.losses import compute_outputs, is_single

        dtype = next(self.model.parameters()).dtype
        try:
            outputs = compute_outputs(self.model, torch.as_tensor(numbers).to(dtype)).double().cpu()
        except RuntimeError as error:
            raise InvalidInputError(
                f"features must have the columns that the model was trained on; got the shape {numbers.shape}: {error}"
            ) from error
        return (outputs.reshape(-1) if is_single(outputs) else outputs).numpy()
