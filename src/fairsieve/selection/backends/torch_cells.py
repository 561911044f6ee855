"""Cells of labels and groups that are tensors on a device, without taking them off it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from fairsieve.errors import InvalidInputError
from fairsieve.selection.cells import Cells, Missing, check_lengths, encode, encode_groups, refuse_continuous
from fairsieve.selection.coding import WIDEST
from fairsieve.validation import shown

__all__ = ["FEW_CELLS", "cells_on", "count_codes"]

FEW_CELLS = 32  # cells that are counted one after the other


def cells_on(
    device: torch.device,
    labels: Any,
    groups: Any,
    classes: Sequence[Any] | None,
    group_values: Sequence[Any] | None,
    missing: Missing,
) -> Cells:
    """Return the cells of labels and groups with their codes on a device.

    A column of integers on a device stays there. Anything else is encoded on the host first.
    """
    if isinstance(labels, torch.Tensor) and labels.is_floating_point():  # whole numbers, or refused
        labels = labels.detach().cpu().float().numpy()
        if classes is None:
            refuse_continuous("labels", labels)
    rows, class_list = _codes_on(device, "labels", labels, classes, lambda: encode("labels", labels, classes))
    columns, group_list = _codes_on(
        device, "groups", groups, group_values, lambda: encode_groups("groups", groups, group_values, missing)
    )
    check_lengths(len(rows), len(columns))
    size = len(class_list) * len(group_list)
    kind = torch.uint8 if size < 256 else torch.int16 if size < 2**15 else torch.int32
    codes = (rows * len(group_list)).add_(columns).to(kind)
    return Cells(codes, class_list, group_list)


def _codes_on(
    device: torch.device, name: str, values: Any, known: Sequence[Any] | None, on_host: Any
) -> tuple[torch.Tensor, list[Any]]:
    """Return the place of each value among the known ones, or those that occur, and these in order."""
    if isinstance(values, torch.Tensor) and values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if _is_column(values):
        values = values.to(device)
        found = _rank(values, [False, True] if known is None and values.dtype == torch.bool else known, name)
        if found is not None:
            return found
    codes, listed = on_host()
    return torch.from_numpy(np.asarray(codes, np.int32)).to(device), listed


def _is_column(values: Any) -> bool:
    """Return whether values are a tensor with one column of integers."""
    return (
        isinstance(values, torch.Tensor)
        and values.ndim == 1
        and len(values) > 0
        and not values.is_floating_point()
        and not values.is_complex()
    )


def _rank(
    values: torch.Tensor, known: Sequence[Any] | None, name: str
) -> tuple[torch.Tensor, list[Any]] | None:
    """Look up integers in a table on their device; None if they are too far apart for one."""
    low, high = (int(end) for end in torch.aminmax(values))
    if high - low >= WIDEST or (
        known is not None and not all(isinstance(v, (int, np.integer)) for v in known)
    ):
        return None
    is_wide = max(abs(low), abs(high)) >= 2**30
    offsets = (values.long() - low).int() if is_wide else values.int() - low if low else values.int()
    present = torch.zeros(high - low + 1, dtype=torch.bool, device=values.device)
    _mark(present, offsets)
    occurring = [low + place for place in present.nonzero().squeeze(1).tolist()]
    listed = occurring if known is None else list(known)
    places = {value: place for place, value in enumerate(listed)}
    if len(places) < len(listed):
        raise InvalidInputError(f"known {name} must be different; got {shown(listed)}: leave one out")
    unknown = [value for value in occurring if value not in places]
    if unknown:
        raise InvalidInputError(f"{name} must be among {shown(listed)}; got also {shown(unknown)}")
    if occurring == listed[: len(occurring)] == list(range(low, high + 1)):
        return offsets, listed  # codes already, but for where they begin
    table = torch.zeros(high - low + 1, dtype=torch.int32)
    for value in occurring:
        table[value - low] = places[value]
    return table.to(values.device).index_select(0, offsets), listed


def count_codes(codes: torch.Tensor, cells: int) -> NDArray[np.int64]:
    """Count the codes below ``cells``, on the host; ``bincount`` is slow where many count for few."""
    if cells <= FEW_CELLS:
        return torch.stack([(codes == cell).sum() for cell in range(cells)]).cpu().numpy()
    return codes.int().bincount(minlength=cells).cpu().numpy()[:cells]


def _mark(present: torch.Tensor, offsets: torch.Tensor) -> None:
    """Mark which of a few values occur among many: writes of all to one place would wait for each other."""
    if len(present) <= 64:
        for place in range(len(present)):
            present[place] = (offsets == place).any()
    else:
        present.copy_(torch.bincount(offsets, minlength=len(present)) > 0)
