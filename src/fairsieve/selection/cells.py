"""Labels × groups → cells."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fairsieve.errors import InvalidInputError
from fairsieve.optional import is_tensor
from fairsieve.selection.coding import (
    Missing,
    as_array,
    encode,
    encode_groups,
    encode_labels,
    is_ungrouped,
    merged,
)
from fairsieve.validation import shown

__all__ = [
    "Cells",
    "Missing",
    "as_array",
    "cells_checksum",
    "check_lengths",
    "encode",
    "merged",
    "tensor_device",
]

CHUNK = 2**22  # samples whose checksum is computed together


@dataclass(frozen=True, eq=False)
class Cells:
    """The cell of every sample: its class (row) and its group (column).

    A cell that no sample is in is empty, not an error.

    Parameters
    ----------
    codes : integer array of shape (n,)
        ``class_index * len(groups) + group_index`` of each sample. A tensor on a device where labels
        or groups were one.
    classes, groups : lists
        The labels of the rows and the groups of the columns, sorted. Groups made of several
        crossed columns are tuples. A last group None is that of the samples without a group.

    Examples
    --------
    >>> cells = Cells.of(["no", "yes", "yes"], ["b", "a", "b"])
    >>> cells.classes, cells.groups, cells.codes.tolist()
    (['no', 'yes'], ['a', 'b'], [1, 2, 3])
    >>> cells.counts.tolist()
    [[0, 1], [1, 1]]
    """

    codes: Any
    classes: list[Any]
    groups: list[Any]

    @classmethod
    def of(
        cls,
        labels: ArrayLike,
        groups: ArrayLike,
        *,
        classes: Sequence[Any] | None = None,
        group_values: Sequence[Any] | None = None,
        missing: Missing = "refuse",
    ) -> Cells:
        """Return the cells of any labels and groups (strings, bools, numbers; arrays, lists, tensors, frames).

        ``groups`` may have several columns: they are crossed. ``classes`` and ``group_values``
        fix the rows and columns, for values that may be absent from the data.

        A group is missing where any of its columns is None, NaN, NA or NaT. ``missing="refuse"``
        makes that an error; with ``"own"`` those samples have a last column of their own, which
        trains but does not count for fairness.
        """
        device = tensor_device(labels, groups)
        if device is not None:
            from fairsieve.selection.backends.torch import cells_on

            return cells_on(device, labels, groups, classes, group_values, missing)
        label_codes, class_list = encode_labels(labels, classes)
        group_codes, group_list = encode_groups("groups", groups, group_values, missing)
        check_lengths(len(label_codes), len(group_codes))
        size = len(class_list) * len(group_list)
        codes = np.empty(len(label_codes), np.min_scalar_type(max(size - 1, 0)))
        np.multiply(label_codes, np.int64(len(group_list)), out=codes, casting="unsafe")
        np.add(codes, group_codes, out=codes, casting="unsafe")
        return cls(codes, class_list, group_list)

    def __len__(self) -> int:
        return len(self.codes)

    @property
    def shape(self) -> tuple[int, int]:
        """(number of classes, number of groups)."""
        return len(self.classes), len(self.groups)

    @property
    def has_ungrouped(self) -> bool:
        """Whether the last column is that of the samples without a group."""
        return is_ungrouped(self.groups)

    @property
    def named_groups(self) -> int:
        """Groups that fairness looks at: the columns, less that of the samples without a group."""
        return len(self.groups) - self.has_ungrouped

    @cached_property
    def counts(self) -> NDArray[np.int64]:
        """Samples in each cell, classes × groups."""
        size = len(self.classes) * len(self.groups)
        if is_tensor(self.codes):
            from fairsieve.selection.backends.torch import count_codes

            return count_codes(self.codes, size).reshape(self.shape)
        return np.bincount(self.codes, minlength=size).reshape(self.shape)

    @cached_property
    def host_codes(self) -> NDArray[Any]:
        """The codes as a NumPy array; brought to the host once."""
        return self.codes.cpu().numpy() if is_tensor(self.codes) else np.asarray(self.codes)

    def codes_on(self, device: Any) -> Any:
        """Return the codes as a tensor on a device of torch; they are moved there once."""
        import torch

        if is_tensor(self.codes) and self.codes.device == torch.device(device):
            return self.codes
        if device not in self._moved:
            codes = self.host_codes.astype(self.narrow_type, copy=False)
            self._moved[device] = torch.from_numpy(codes).to(device)
        return self._moved[device]

    @property
    def narrow_type(self) -> str:
        """The narrowest type of torch's that holds the codes, and one more."""
        size = len(self.classes) * len(self.groups)
        return "uint8" if size < 256 else "int16" if size < 2**15 else "int32"

    @cached_property
    def _moved(self) -> dict[Any, Any]:
        return {}

    @property
    def label_codes(self) -> NDArray[np.int64]:
        """Row of each sample."""
        return self.host_codes.astype(np.int64) // self.shape[1]

    @property
    def group_codes(self) -> NDArray[np.int64]:
        """Column of each sample."""
        return self.host_codes.astype(np.int64) % self.shape[1]

    def class_index(self, label: Any | None) -> int:
        """Return the row of ``label``; of the last class, the positive one of two, when None."""
        if label is None:
            if len(self.classes) > 2:
                raise InvalidInputError(
                    f"pos_label must be given when there are more than two classes; they are {self.classes}"
                )
            return len(self.classes) - 1
        if label not in self.classes:
            raise InvalidInputError(f"pos_label must be one of {self.classes}; got {shown(label)}")
        return self.classes.index(label)


def cells_checksum(cells: Cells, first: int = 0) -> int:
    """Return a number that changes with the cell of any sample; those of shards add up to that of the whole.

    ``first`` is the number of the first sample.
    """
    names = zlib.crc32(repr((cells.classes, cells.groups)).encode())
    total = 0
    for start in range(0, len(cells), CHUNK):
        codes = cells.host_codes[start : start + CHUNK].astype(np.uint64)
        number = np.arange(first + start + 1, first + start + 1 + len(codes), dtype=np.uint64)
        mixed = (number * np.uint64(0x9E3779B97F4A7C15)) ^ (
            (codes + np.uint64(names)) * np.uint64(0xBF58476D1CE4E5B9)
        )
        total += int(((mixed ^ (mixed >> np.uint64(31))) & np.uint64(0xFFFFFFFF)).sum())
    return total % 2**62


def tensor_device(*values: Any) -> Any | None:
    """Return the device of the first tensor that is not in the host's memory; None if there is none."""
    for value in values:
        if is_tensor(value) and value.device.type != "cpu":
            return value.device
    return None


def check_lengths(labels: int, groups: int) -> None:
    """Refuse labels and groups of different lengths."""
    if labels != groups:
        raise InvalidInputError(
            f"labels and groups must have one value per sample; got {labels} labels and {groups} groups: take both "
            "from the same rows"
        )
