"""Labels × groups → cells: values of any kind become codes 0, 1, …, and what they stand for."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fairsieve.errors import InvalidInputError
from fairsieve.notions import find_notion
from fairsieve.validation import check_choice, is_tensor, shown

Codes = NDArray[np.int64]  # of classes, groups and cells
Integers = NDArray[np.int64]  # counts, and places of rows
Flags = NDArray[np.bool_]
Floats = NDArray[np.float64]
Values = NDArray[Any]  # of any type
Keys = NDArray[np.uint64]  # numbers that tell rows apart by what they hold
Missing = Literal["refuse", "own"]
WIDEST = 2**16  # values between the least and the greatest that a table may have
CHUNK = 2**18  # values looked at together, so that little is held besides the answer
SHOWN = 5  # rows in a message


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
        shape: tuple[int, int] = (0, 0),
        device: Any = None,
    ) -> Cells:
        """Return the cells of any labels and groups (strings, bools, numbers; arrays, lists, tensors, frames).

        ``groups`` may have several columns: they are crossed. ``classes`` and ``group_values``
        fix the rows and columns, for values that may be absent from the data.

        A group is missing where any of its columns is None, NaN, NA or NaT. ``missing="refuse"``
        makes that an error; with ``"own"`` those samples have a last column of their own, which
        trains but does not count for fairness.

        ``shape`` is how many rows and columns there should be, where nothing fixes them: whole numbers 0, 1, … that
        fit are taken as they are, though some may be absent. The codes are on ``device``, of torch; when None on that
        of labels or groups, or on the host.
        """
        device = tensor_device(labels, groups) if device is None else device
        sizes = [
            size if known is None else 0 for size, known in zip(shape, (classes, group_values), strict=True)
        ]
        as_rows: Any = partial(encode_labels, known=classes, size=sizes[0])
        as_columns: Any = partial(encode_groups, "groups", known=group_values, missing=missing, size=sizes[1])
        if device is not None:
            import torch

            from fairsieve.selection.backends.torch import encode_on

            as_rows = partial(encode_on, device, as_rows, sizes[0])
            as_columns = partial(encode_on, device, as_columns, sizes[1])
        rows, class_list = as_rows(labels)
        columns, group_list = as_columns(groups)
        check_lengths(len(rows), len(columns))
        kind = narrow_type(len(class_list) * len(group_list))
        if device is None:
            codes = rows.astype(kind)
            codes *= len(group_list)
            codes += columns.astype(kind)
        else:
            codes = torch.add(columns, rows, alpha=len(group_list)).to(getattr(torch, kind))
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
    def counts(self) -> Codes:
        """Samples in each cell, classes × groups."""
        size = len(self.classes) * len(self.groups)
        if is_tensor(self.codes):
            from fairsieve.selection.backends.torch import count_codes

            return count_codes(self.codes, size).reshape(self.shape)
        return np.bincount(self.codes, minlength=size).reshape(self.shape)

    @cached_property
    def host_codes(self) -> Values:
        """The codes as a NumPy array; brought to the host once."""
        return self.codes.cpu().numpy() if is_tensor(self.codes) else np.asarray(self.codes)

    def codes_on(self, device: Any) -> Any:
        """Return the codes as a tensor on a device of torch; they are moved there once."""
        import torch

        device = torch.device(device)
        if device not in self._moved:
            codes = self.host_codes.astype(narrow_type(len(self.classes) * len(self.groups)), copy=False)
            self._moved[device] = torch.from_numpy(codes).to(device)
        return self._moved[device]

    @cached_property
    def _moved(self) -> dict[Any, Any]:
        return {self.codes.device: self.codes} if is_tensor(self.codes) else {}

    @property
    def label_codes(self) -> Codes:
        """Row of each sample."""
        return self.host_codes.astype(np.int64) // self.shape[1]

    @property
    def group_codes(self) -> Codes:
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


def positive_code(fairness: str, cells: Cells, pos_label: Any = None) -> int:
    """Return the code of the positive class; −1 where there are more than two, and none is named or needed.

    >>> positive_code("equal_opportunity", Cells.of(["no", "yes"], ["a", "b"]))
    1
    """
    needed = find_notion(fairness).needs_positive or len(cells.classes) <= 2 or pos_label is not None
    return cells.class_index(pos_label) if needed else -1


def cells_checksum(cells: Cells, first: int) -> int:
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


def divide(hits: Any, totals: Values, otherwise: float = 0.0) -> Floats:
    """Divide, where there is something to divide by.

    >>> divide(np.array([3, 0]), np.array([4, 0])).tolist()
    [0.75, 0.0]
    """
    shape = np.broadcast_shapes(np.shape(hits), totals.shape)
    return np.asarray(np.divide(hits, totals, out=np.full(shape, otherwise), where=totals > 0))


def slices(total: int, size: int) -> list[slice]:
    """Cut so many rows into slices of ``size``; the last may be shorter.

    >>> slices(5, 2)
    [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    """
    return [slice(first, min(first + size, total)) for first in range(0, total, size)]


def narrow_type(size: int) -> str:
    """Return the narrowest of torch's types that holds the codes of so many cells, and one more."""
    return "uint8" if size < 256 else "int16" if size < 2**15 else "int32"


def tensor_device(*values: Any) -> Any | None:
    """Return the device of the first tensor that is not in the host's memory; None if there is none."""
    return next((each.device for each in values if is_tensor(each) and each.device.type != "cpu"), None)


def check_lengths(labels: int, groups: int) -> None:
    """Refuse labels and groups of different lengths."""
    if labels != groups:
        raise InvalidInputError(
            f"labels and groups must have one value per sample; got {labels} labels and {groups} groups: take both "
            "from the same rows"
        )


def as_array(name: str, values: Any) -> Values:
    """Return a NumPy view of a list, array, tensor, Series or DataFrame."""
    if hasattr(values, "detach"):  # a tensor, maybe on a device
        values = values.detach().cpu()
        values = values.float() if str(values.dtype) == "torch.bfloat16" else values
        values = values.numpy()
    elif hasattr(values, "to_numpy"):  # pandas and polars
        values = values.to_numpy()
    values = unmasked(values)
    try:
        array = np.asarray(values)
    except ValueError:
        if not isinstance(values, (list, tuple)):  # such as a dataset
            raise InvalidInputError(
                f"{name} must be an array of one value per sample; got {type(values).__name__}: pass the values "
                "themselves, such as dataset.tensors[1]"
            ) from None
        raise InvalidInputError(
            f"{name} must have rows of one length; got {shown(values)}: fill up the short ones"
        ) from None
    if array.dtype.kind in "US" and isinstance(values, (list, tuple)):  # NaN would become the string "nan"
        objects = np.asarray(values, dtype=object)
        array = objects if missing_in(objects.reshape(-1)).any() else array
    if array.ndim == 0:
        raise InvalidInputError(
            f"{name} must have one value per sample; got the single value {shown(values)}: pass a list or an array"
        )
    return array


def unmasked(values: Any, *, numbers: bool = False) -> Any:
    """Return a masked array with gaps in place of what is masked, NaN or None; anything else as it is.

    With ``numbers`` gaps in whole numbers are NaN too.

    >>> unmasked(np.ma.array([1, 9], mask=[False, True])).tolist()
    [1, None]
    """
    if not isinstance(values, np.ma.MaskedArray):
        return values
    mask, data = np.ma.getmaskarray(values), np.asarray(values.data)
    if mask.any():
        number = data.dtype.kind in ("fiub" if numbers else "f")
        data = data.astype(np.result_type(data, np.float32) if number else object)
        data[mask] = np.nan if number else None
    return data


def encode(
    name: str, values: Any, known: Sequence[Any] | None = None, *, crossed: bool = False, size: int = 0
) -> tuple[Values, list[Any]]:
    """Return codes 0, 1, … of ``values``, of any integer type, and what they stand for, in sorted order.

    Where nothing is ``known``, whole numbers from 0 on and below ``size`` are codes already.
    """
    array = as_array(name, values)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim == 2 and crossed:
        codes, found = _cross(name, array)
        known = None if known is None else [tuple(value) for value in known]
    elif array.ndim != 1:
        rule = "one or two dimensions" if crossed else "one dimension"
        raise InvalidInputError(f"{name} must have {rule}; got the shape {array.shape}")
    else:
        refuse_missing(name, array)
        codes, found = _rank_integers(array, size) or _rank(name, array)
        known = [False, True] if known is None and array.dtype == bool else known
    if known is None and all(type(value) is int and 0 <= value < size for value in found):
        known = range(size)
    return (codes, found) if known is None else (_place(name, codes, found, list(known)), list(known))


def encode_labels(values: Any, known: Sequence[Any] | None, size: int) -> tuple[Values, list[Any]]:
    """Encode labels; refuse numbers that are no classes, floats that are not whole."""
    array = as_array("labels", values)
    fractions = fractions_in(array)
    if known is None and array.ndim == 1 and len(fractions):
        raise InvalidInputError(
            f"labels must be classes; got continuous numbers such as {shown(fractions[0])}: cut them into "
            "classes, for example with values > threshold"
        )
    return encode("labels", array, known, size=size)


def fractions_in(array: Values) -> Values:
    """Select the numbers that are not whole."""
    if array.dtype.kind != "f":
        return array[:0]
    return np.asarray(array[np.isfinite(array) & (array != np.floor(array))])


def encode_groups(
    name: str, values: Any, known: Sequence[Any] | None = None, missing: Missing = "refuse", size: int = 0
) -> tuple[Values, list[Any]]:
    """Encode groups, which may be missing: their code is then the last, that of None."""
    array = as_array(name, values)
    if check_choice("missing", missing, ("refuse", "own")) == "refuse":
        return encode(name, array, known, crossed=True, size=size)
    absent = missing_in(array).any(axis=tuple(range(1, array.ndim)))
    if not absent.any() and not is_ungrouped(known):
        return encode(name, array, known, crossed=True)
    places = None if known is None else [value for value in known if value is not None]
    codes, found = encode(name, array[~absent], places, crossed=True)
    every = np.full(len(array), len(found))
    every[~absent] = codes
    return every, [*found, None]


def merged(lists: Sequence[list[Any]]) -> list[Any]:
    """Return the values in any of several sorted lists, sorted; None last.

    >>> merged([["a", None], ["b"], ["a", "c"]])
    ['a', 'b', 'c', None]
    """
    values = {value for each in lists for value in each}
    return sorted(values - {None}) + [None] * (None in values)


def is_ungrouped(groups: Sequence[Any] | None) -> bool:
    """Return whether the last of ``groups`` stands for samples without one."""
    return groups is not None and len(groups) > 0 and groups[-1] is None


def _cross(name: str, array: Values) -> tuple[Values, list[Any]]:
    """Rank the rows of ``array``, as tuples: only the combinations that occur."""
    if len(array) == 0:
        return np.zeros(0, np.int64), []
    columns = [encode(f"{name}[:, {j}]", array[:, j]) for j in range(array.shape[1])]
    sizes = [len(values) for _, values in columns]
    crossed, codes = np.unique(
        np.ravel_multi_index([codes for codes, _ in columns], sizes), return_inverse=True
    )
    parts = [
        [values[place] for place in places]
        for (_, values), places in zip(columns, np.unravel_index(crossed, sizes), strict=True)
    ]
    return codes, list(zip(*parts, strict=True))


def _rank(name: str, array: Values) -> tuple[Values, list[Any]]:
    """Return each value's place among those that occur, and these in order; by a sort."""
    try:
        values, codes = np.unique(array, return_inverse=True)
    except TypeError:
        kinds = sorted({type(value).__name__ for value in array})
        raise InvalidInputError(
            f"{name} must be of one type so that they can be ordered; got a mixture of "
            f"{', '.join(kinds)}: convert them, for example with astype(str)"
        ) from None
    return codes, values.tolist()


def _rank_integers(array: Values, size: int) -> tuple[Values, list[Any]] | None:
    """Do what :func:`_rank` does by a table; None for what is no integer or spreads too far for one.

    Numbers from 0 on and below ``size`` need no table: they are codes already.
    """
    if array.dtype.kind not in "iub" or array.size == 0:
        return None
    least, greatest = array.min(), array.max()
    if array.dtype != bool and least >= 0 and greatest < size:
        return array, list(range(size))
    span = int(greatest) - int(least) + 1  # in Python's integers: uint64 may be beyond int64
    if span > WIDEST:
        return None

    def offsets() -> Iterator[Codes]:
        for part in slices(len(array), CHUNK):
            yield np.subtract(array[part], least, dtype=np.int64, casting="unsafe")

    is_found = np.zeros(span, bool)
    for some in offsets():
        is_found[some] = True
    places = (np.cumsum(is_found) - 1).astype(np.min_scalar_type(int(is_found.sum())))
    codes = np.concatenate([places[some] for some in offsets()])
    return codes, [int(least) + place for place in np.flatnonzero(is_found).tolist()]


def _place(name: str, codes: Values, found: list[Any], known: list[Any]) -> Values:
    """Re-number codes of the values found to their places among the known ones."""
    if found == known:
        return codes
    position = {value: index for index, value in enumerate(known)}
    if len(position) < len(known):
        raise InvalidInputError(f"known {name} must be different; got {shown(known)}: leave one out")
    unknown = [value for value in found if value not in position]
    if unknown:
        raise InvalidInputError(f"{name} must be among {shown(known)}; got also {shown(unknown)}")
    places = np.array([position[value] for value in found], np.min_scalar_type(max(len(known) - 1, 0)))
    return places[codes] if len(places) else codes


def missing_in(array: Values) -> Flags:
    """Return which values are None, NaN, NA or NaT.

    >>> missing_in(np.array(["a", None, np.nan], dtype=object)).tolist()
    [False, True, True]
    """
    if array.dtype.kind in "biuUS":  # none can be
        return np.zeros(array.shape, bool)
    import pandas as pd  # which takes long to import

    return np.asarray(pd.isna(array))


def refuse_missing(name: str, array: Values) -> None:
    """Refuse missing values, which have no cell."""
    rows = np.flatnonzero(missing_in(array))
    if len(rows):
        listed = ", ".join(map(str, rows[:SHOWN])) + (", …" if len(rows) > SHOWN else "")
        raise InvalidInputError(
            f"{name} must not have missing values; got {len(rows)}, in {'row' if len(rows) == 1 else 'rows'} "
            f"{listed}: drop those samples or give them a value of their own"
        )
