"""Cells of labels and groups that are tensors on a device, without taking them off it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch

from fairsieve.selection.backends.triton import Columns

__all__ = ["codes_on_device"]

WIDEST = 2**16  # values between the least and the most label that a table may have


def codes_on_device(
    labels: Any, groups: Any, shape: tuple[int, int], losses: Any
) -> Iterator[tuple[torch.Tensor | Columns, Callable[[], bool]]]:
    """Cells beside the losses, and a question whether they are right, to be asked after their use.

    Integers 0, 1, … that fit the shape are codes as they are; other integers are ranked. Nothing
    where labels or groups must be looked at on the host.
    """
    if not all(_is_column(values, losses) for values in (labels, groups)) or len(labels) != len(groups):
        return
    labels, groups = (values.byte() if values.dtype == torch.bool else values for values in (labels, groups))
    as_they_are = Columns(labels, groups, shape)
    yield as_they_are, as_they_are.fit
    rows, columns = _ranks(labels, shape[0]), _ranks(groups, shape[1])
    if rows is not None and columns is not None:
        yield (rows * shape[1] + columns).to(as_they_are.codes.dtype), lambda: True


def _is_column(values: Any, losses: Any) -> bool:
    """Whether values are one column of integers on the losses' device, which is not the host."""
    return (
        isinstance(values, torch.Tensor)
        and isinstance(losses, torch.Tensor)
        and values.device == losses.device
        and values.device.type != "cpu"
        and values.ndim == 1
        and len(values) > 0
        and not values.is_floating_point()
        and not values.is_complex()
    )


def _ranks(values: torch.Tensor, size: int) -> torch.Tensor | None:
    """Places of integers among the ``size`` values that occur; None if so many do not, or far apart."""
    low, high = (int(end) for end in torch.aminmax(values))
    if high - low >= WIDEST:
        return None
    offsets = values.long() - low
    present = torch.zeros(high - low + 1, dtype=torch.int64, device=values.device)
    present[offsets] = 1
    places = torch.cumsum(present, 0) - 1
    return places[offsets] if int(places[-1]) + 1 == size else None
