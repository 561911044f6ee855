"""Outputs of a model → losses, predictions, and what the ratios' step compares."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset, IterableDataset

from fairsieve.errors import InvalidInputError
from fairsieve.notions import OWN_LABEL
from fairsieve.selection.cells import Cells, as_array
from fairsieve.validation import shown

LOOKED_AT = 1024  # rows of outputs that are looked at for probabilities
ROUNDING = 1e-3  # what the chances of a sample may miss 1 by
FEW_LOGITS = 100  # single logits that may all lie between 0 and 1 by chance

LossFunction = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
Forward = Callable[[nn.Module, Any], torch.Tensor]


def cross_entropy(outputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """Return the loss per sample of logits against class indices: one logit (two classes) or one per class.

    >>> cross_entropy(torch.zeros(2), torch.tensor([0, 1]))
    tensor([0.6931, 0.6931])
    """
    if is_single(outputs):
        logits = outputs.reshape(len(outputs))
        return F.binary_cross_entropy_with_logits(logits, targets.to(logits.dtype), reduction="none")
    return F.cross_entropy(outputs, targets, reduction="none")


def is_single(outputs: torch.Tensor) -> bool:
    """Return whether a model gives one logit per sample rather than one per class."""
    return outputs.ndim == 1 or (outputs.ndim == 2 and outputs.shape[1] == 1)


def as_outputs(outputs: Any) -> torch.Tensor:
    """Return a model's outputs as a tensor without its graph; half precision becomes float32."""
    try:
        found = torch.as_tensor(outputs).detach()
    except (TypeError, ValueError, RuntimeError):
        raise InvalidInputError(
            f"outputs must be a tensor of logits; got {shown(outputs)}: pass model(features)"
        ) from None
    if not found.is_floating_point():
        raise InvalidInputError(
            f"outputs must be logits, real numbers; got {found.dtype}: pass model(features), not predicted classes"
        )
    return found.float() if found.dtype in (torch.float16, torch.bfloat16) else found


def check_outputs(outputs: Any, samples: int, classes: int) -> torch.Tensor:
    """Return outputs as a tensor; refuse what is not one logit per class or, for two classes, one per sample."""
    found = as_outputs(outputs)
    shapes = [(samples, classes), *([(samples,), (samples, 1)] if classes == 2 else [])]
    if tuple(found.shape) not in shapes:
        raise InvalidInputError(
            f"outputs must be the logits of all {samples} samples, one per class ({classes}) or, for two classes, "
            f"one per sample; got the shape {tuple(found.shape)}"
        )
    return found


def look_like_probabilities(outputs: torch.Tensor) -> bool:
    """Return whether outputs that should be logits look like what a softmax or a sigmoid gives.

    >>> look_like_probabilities(torch.tensor([[0.2, 0.8], [0.5, 0.5]]))
    True
    """
    some = outputs[:LOOKED_AT]
    if len(some) == 0 or not bool(((some >= 0) & (some <= 1)).all()):
        return False
    if is_single(some):
        return len(some) >= FEW_LOGITS and bool(((some > 0) & (some < 1)).any())
    return bool(((some.sum(dim=1) - 1).abs() < 1e-3).all())


def predicted_classes(outputs: torch.Tensor) -> torch.Tensor:
    """Return class indices; a logit of exactly 0 is the first class."""
    if is_single(outputs):
        return (outputs.reshape(len(outputs)) > 0).long()
    return outputs.argmax(dim=1)


def class_losses(outputs: torch.Tensor, target: int, loss: LossFunction) -> torch.Tensor:
    """Return losses as if every sample had the label ``target``."""
    return loss(outputs, torch.full((len(outputs),), target, dtype=torch.long, device=outputs.device))


def compute_signals(
    outputs: torch.Tensor,
    labels: torch.Tensor,
    losses: torch.Tensor,
    targets: Sequence[int],
    signal: str,
    loss: LossFunction,
) -> torch.Tensor:
    """Return what the groups are compared by, one row per target: losses, or 0–1 errors, against it.

    ``labels`` are class indices, or the chances of each class: then errors are expectations. ``losses`` are those
    against the samples' own labels, which need not be computed twice.
    """

    def against(target: int) -> torch.Tensor:
        if signal == "loss":
            return losses if target == OWN_LABEL else class_losses(outputs, target, loss)
        predicted = predicted_classes(outputs)
        if target == OWN_LABEL and labels.ndim == 2:
            return (1 - labels.gather(1, predicted[:, None])[:, 0]).to(losses.dtype)
        return (predicted != (labels if target == OWN_LABEL else target)).to(losses.dtype)

    return torch.stack([against(target) for target in targets])


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

    >>> expected_losses(torch.zeros(1), torch.tensor([[0.25, 0.75]]), cross_entropy)
    tensor([0.6931])
    """
    if targets.ndim == 1:
        return loss(outputs, targets)
    losses = torch.stack([class_losses(outputs, code, loss) for code in range(targets.shape[1])], dim=1)
    chances = targets.to(losses.dtype)
    return torch.where(chances > 0, chances * losses, torch.zeros_like(losses)).sum(dim=1)


def forward_features(model: nn.Module, batch: Any) -> torch.Tensor:
    """Return a model's outputs for a batch that is the features, or starts with them.

    Features that are floats are taken in the precision of the model.

    >>> forward_features(torch.nn.Linear(2, 1).bfloat16(), torch.ones(3, 2)).shape
    torch.Size([3, 1])
    """
    if isinstance(batch, Mapping):
        raise InvalidInputError(
            f"batches must be the features, or start with them; got a dictionary of {', '.join(map(str, batch))}: say "
            "how the model takes them, with forward=lambda model, batch: model(…)"
        )
    features = batch[0] if isinstance(batch, (list, tuple)) else batch
    own = next((each.dtype for each in model.parameters() if each.is_floating_point()), None)
    if own is not None and isinstance(features, torch.Tensor) and features.is_floating_point():
        features = features.to(own)
    return model(features)  # type: ignore[no-any-return]


@contextmanager
def _evaluation_mode(model: nn.Module) -> Any:
    """Use evaluation mode and no gradients; restore the mode of every part of the model after."""
    modes = [(module, module.training) for module in model.modules()]
    model.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        for module, mode in modes:
            module.training = mode


def run_in_chunks(
    model: nn.Module,
    batches: Iterable[Any],
    device: torch.device | str | None = None,
    forward: Forward | None = None,
) -> Iterator[tuple[Any, torch.Tensor]]:
    """Yield batches, on the device of the model, and its outputs, in evaluation mode and without gradients."""
    if not isinstance(model, nn.Module):
        raise InvalidInputError(
            f"model must be an nn.Module; got {type(model).__name__}: pass the model first, and then the dataset"
        )
    if device is None:
        device = next((parameter.device for parameter in model.parameters()), torch.device("cpu"))
    for batch in batches:
        there = _moved(batch, device)
        with _evaluation_mode(model):
            outputs = (forward or forward_features)(model, there)
        yield there, as_outputs(outputs)


def _moved(batch: Any, device: torch.device | str) -> Any:
    """Move a batch's tensors to a device, in whatever they are wrapped."""
    if isinstance(batch, torch.Tensor):
        return batch.to(device, non_blocking=True)
    if isinstance(batch, Mapping):
        return {name: _moved(value, device) for name, value in batch.items()}
    if isinstance(batch, (list, tuple)):
        return [_moved(value, device) for value in batch]
    return batch


def quiet_loader(dataset: Dataset[Any], **options: Any) -> DataLoader[Any]:
    """Return a loader that does not disturb the random numbers that training draws."""
    return DataLoader(dataset, **({"generator": torch.Generator()} | options))


def compute_outputs(
    model: nn.Module,
    data: torch.Tensor | Dataset[Any] | DataLoader[Any],
    *,
    chunk_size: int = 8192,
    forward: Forward | None = None,
    device: torch.device | str | None = None,
    **loading: Any,
) -> torch.Tensor:
    """Return the outputs of a model over all samples, in order, without gradients, so many at a time.

    Of a ``DataLoader`` the dataset is gone through in its order, with the loader's collation and workers.
    """
    if isinstance(data, DataLoader):
        loading = {"collate_fn": data.collate_fn, "num_workers": data.num_workers} | loading
        data = data.dataset
    refuse_stream(data)
    if isinstance(data, torch.Tensor):
        batches: Any = data.split(chunk_size)
    else:
        batches = quiet_loader(data, batch_size=chunk_size, **loading)
    return torch.cat([outputs for _, outputs in run_in_chunks(model, batches, device, forward)])


def refuse_stream(dataset: Any) -> None:
    """Refuse a dataset that is a stream."""
    if isinstance(dataset, IterableDataset):
        raise InvalidInputError(
            f"dataset must be map-style, with dataset[i] for every sample; got the stream {type(dataset).__name__}: a "
            "selection asks for samples by their number, which a stream does not have. Store it, or keep its items in "
            "a list"
        )


def sample_losses(
    model: nn.Module,
    dataset: Dataset[Any] | tuple[torch.Tensor, torch.Tensor],
    *,
    loss: LossFunction = cross_entropy,
    chunk_size: int = 8192,
    device: torch.device | str | None = None,
    **loading: Any,
) -> torch.Tensor:
    """Return the loss of every sample under a model, in chunks, without gradients, restoring train/eval mode.

    Parameters
    ----------
    dataset : map-style dataset of (features, class index), or a pair of tensors
        Items may go on after the class index; those of another form become pairs by ``collate_fn=``.
    loss : callable, default=cross_entropy
        ``loss(outputs, targets)`` → one loss per sample.
    chunk_size : int, default=8192
        Samples in memory at a time.
    device : optional
        Where the model lives; that of its first parameter when None.
    **loading
        For the ``DataLoader`` of a dataset: ``num_workers``, ``collate_fn``, …

    Examples
    --------
    >>> from fairsieve.training.models import LogisticRegression
    >>> model = LogisticRegression(2)
    >>> sample_losses(model, (torch.zeros(3, 2), torch.tensor([0, 1, 1])))
    tensor([0.6931, 0.6931, 0.6931])
    """
    if isinstance(dataset, tuple):
        batches: Any = zip(*(part.split(chunk_size) for part in dataset), strict=True)
    else:
        batches = quiet_loader(dataset, batch_size=chunk_size, **loading)
    parts = []
    for batch, outputs in run_in_chunks(model, map(_check_pair, batches), device):
        values = loss(outputs, batch[1])
        if values.shape != (len(outputs),):
            raise InvalidInputError(
                f"loss must give one value per sample, the shape ({len(outputs)},); got "
                f"{tuple(values.shape)}: use reduction='none'"
            )
        parts.append(values)
    if not parts:
        raise InvalidInputError("dataset must have at least one sample; got none")
    return torch.cat(parts).detach()


def _check_pair(batch: Any) -> Any:
    """Return a batch whose first two parts are features and class indices."""
    if not isinstance(batch, (list, tuple)) or len(batch) < 2:
        raise InvalidInputError(
            "dataset must have items (features, class index), with more behind them or not; its batches are "
            f"{type(batch).__name__}: make pairs of them with collate_fn=, or use "
            "FairRobustBatchSampler.refresh(model, dataset, forward=…)"
        )
    return batch
