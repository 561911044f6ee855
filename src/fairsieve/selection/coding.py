"""Values of any kind → codes 0, 1, …, and what they stand for; and which values are missing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from fairsieve.errors import InvalidInputError
from fairsieve.validation import check_choice, shown

__all__ = [
    "WIDEST",
    "Missing",
    "as_array",
    "cross",
    "encode",
    "encode_groups",
    "is_ungrouped",
    "merged",
    "missing_in",
    "rank_integers",
    "refuse_continuous",
    "refuse_missing",
]

Missing = Literal["refuse", "own"]
WIDEST = 2**16  # values between the least and the greatest that a table may have
CHUNK = 2**18  # values looked up together, so that little is held besides the answer
SHOWN = 5  # rows in a message


def refuse_continuous(name: str, values: Any) -> None:
    """Refuse numbers that are no classes: floats that are not whole."""
    if values.dtype.kind == "f" and values.ndim == 1 and np.any(values != np.floor(values)):
        fraction = values[np.flatnonzero((values != np.floor(values)) & ~np.isnan(values))[:1]]
        if len(fraction):
            raise InvalidInputError(
                f"{name} must be classes; got continuous numbers such as {shown(fraction[0])}: cut them into "
                "classes, for example with values > threshold"
            )


def as_array(name: str, values: Any) -> NDArray[Any]:
    """Return a NumPy view of a list, array, tensor, Series or DataFrame."""
    if hasattr(values, "detach"):  # a tensor, maybe on a device
        values = values.detach().cpu()
        values = values.float() if str(values.dtype) == "torch.bfloat16" else values
        values = values.numpy()
    elif hasattr(values, "to_numpy"):  # pandas and polars
        values = values.to_numpy()
    try:
        array = np.asarray(values)
    except ValueError:
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


def encode(
    name: str, values: Any, known: Sequence[Any] | None = None, *, crossed: bool = False, small: bool = False
) -> tuple[NDArray[Any], list[Any]]:
    """Return codes 0, 1, … of ``values`` and what they stand for, in sorted order.

    Codes are int64, or of any integer type when ``small``.
    """
    array = as_array(name, values)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim == 2 and crossed:
        return _encode_crossed(name, array, known)
    if array.ndim != 1:
        rule = "one or two dimensions" if crossed else "one dimension"
        raise InvalidInputError(f"{name} must have {rule}; got the shape {array.shape}")
    refuse_missing(name, array)
    if known is None and array.dtype == bool:
        known = [False, True]
    codes, values_found = rank_integers(array) or _rank(name, array)
    if known is not None and list(known) != values_found:
        codes, values_found = _place(name, codes, values_found, list(known))
    return codes if small else codes.astype(np.int64), values_found


def _rank(name: str, array: NDArray[Any]) -> tuple[NDArray[Any], list[Any]]:
    """Return each value's place among those that occur, and these in order; by a sort."""
    try:
        found, codes = np.unique(array, return_inverse=True)
    except TypeError:
        kinds = sorted({type(value).__name__ for value in array})
        raise InvalidInputError(
            f"{name} must be of one type so that they can be ordered; got a mixture of "
            f"{', '.join(kinds)}: convert them, for example with astype(str)"
        ) from None
    return codes.reshape(-1), found.tolist()


def encode_groups(
    name: str,
    values: Any,
    known: Sequence[Any] | None = None,
    missing: Missing = "refuse",
    *,
    small: bool = False,
) -> tuple[NDArray[Any], list[Any]]:
    """Encode groups, which may be missing: their code is then the last, that of None."""
    array = as_array(name, values)
    if check_choice("missing", missing, ("refuse", "own")) == "refuse":
        return encode(name, array, known, crossed=True, small=small)
    absent = missing_in(array).any(axis=tuple(range(1, array.ndim)))
    if not absent.any() and not is_ungrouped(known):
        return encode(name, array, known, crossed=True, small=small)
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


def _encode_crossed(
    name: str, array: NDArray[Any], known: Sequence[Any] | None
) -> tuple[NDArray[np.int64], list[Any]]:
    """Cross the columns of ``array`` into one; only the combinations that occur, unless known."""
    if len(array) == 0:
        return np.zeros(0, np.int64), [] if known is None else [tuple(value) for value in known]
    columns = [encode(f"{name}[:, {j}]", array[:, j]) for j in range(array.shape[1])]
    sizes = [len(values) for _, values in columns]
    joint = np.ravel_multi_index([codes for codes, _ in columns], sizes)
    found, codes = np.unique(joint, return_inverse=True)
    parts = np.unravel_index(found, sizes)
    values_found = [
        tuple(values[part] for (_, values), part in zip(columns, row, strict=True))
        for row in zip(*parts, strict=True)
    ]
    if known is None:
        return codes.reshape(-1).astype(np.int64), values_found
    return _place(name, codes.reshape(-1), values_found, [tuple(value) for value in known])


def _place(
    name: str, codes: NDArray[Any], found: list[Any], known: list[Any]
) -> tuple[NDArray[Any], list[Any]]:
    """Re-number codes of the values found to their places among the known ones."""
    position = {value: index for index, value in enumerate(known)}
    if len(position) < len(known):
        raise InvalidInputError(f"known {name} must be different; got {shown(known)}: leave one out")
    unknown = [value for value in found if value not in position]
    if unknown:
        raise InvalidInputError(f"{name} must be among {shown(known)}; got also {shown(unknown)}")
    places = np.array([position[value] for value in found], np.min_scalar_type(max(len(known) - 1, 0)))
    return places[codes] if len(places) else codes, known


def rank_integers(array: NDArray[Any]) -> tuple[NDArray[Any], list[Any]] | None:
    """Return each value's place among those that occur, and these in order.

    None for what is no integer or spreads too far for a table.

    >>> codes, found = rank_integers(np.array([7, -1, 7]))
    >>> codes.tolist(), found
    ([1, 0, 1], [-1, 7])
    """
    if array.dtype.kind not in "iub" or array.size == 0:
        return None
    numbers = array.view(np.uint8) if array.dtype.kind == "b" else array
    least, greatest = int(numbers.min()), int(numbers.max())
    if greatest - least >= WIDEST:
        return None
    is_found = np.zeros(greatest - least + 1, bool)
    for first in range(0, len(array), CHUNK):
        is_found[_offsets(numbers[first : first + CHUNK], least)] = True
    found = np.flatnonzero(is_found)
    places = np.zeros(len(is_found), np.min_scalar_type(len(found) - 1))
    places[found] = np.arange(len(found))
    codes = np.empty(len(array), places.dtype)
    for first in range(0, len(array), CHUNK):
        codes[first : first + CHUNK] = places[_offsets(numbers[first : first + CHUNK], least)]
    values = [least + place for place in found.tolist()]  # in Python's integers: uint64 may be beyond int64
    return codes, [bool(value) for value in values] if array.dtype.kind == "b" else values


def _offsets(numbers: NDArray[Any], least: int) -> NDArray[np.int64]:
    """Return the distances of integers from the least of them."""
    if numbers.dtype.kind == "u":
        return np.asarray((numbers - numbers.dtype.type(least)).astype(np.int64))
    return np.asarray(numbers.astype(np.int64) - least)


def cross(rows: NDArray[Any], columns: NDArray[Any], width: int, codes: NDArray[Any]) -> None:
    """Write the cells of rows and columns into ``codes``."""
    for first in range(0, len(codes), CHUNK):
        part = slice(first, first + CHUNK)
        codes[part] = rows[part].astype(np.int64) * width + columns[part]


def missing_in(array: NDArray[Any]) -> NDArray[np.bool_]:
    """Return which values are None, NaN, NA or NaT.

    >>> missing_in(np.array(["a", None, np.nan], dtype=object)).tolist()
    [False, True, True]
    """
    if array.dtype.kind in "fc":
        return np.asarray(np.isnan(array))
    if array.dtype.kind in "mM":
        return np.asarray(np.isnat(array))
    if array.dtype.kind != "O":
        return np.zeros(array.shape, bool)
    return np.array([_is_missing(value) for value in array.reshape(-1)], bool).reshape(array.shape)


def _is_missing(value: Any) -> bool:
    """Return whether a value is None, or differs from itself as NaN and NaT do, or may (NA)."""
    differs = value is None or value != value
    return not isinstance(differs, (bool, np.bool_)) or bool(differs)


def refuse_missing(name: str, array: NDArray[Any]) -> None:
    """Refuse missing values, which have no cell."""
    if array.dtype.kind in "biuUS":  # none can be
        return
    rows = np.flatnonzero(missing_in(array))
    if len(rows):
        listed = ", ".join(map(str, rows[:SHOWN])) + (", …" if len(rows) > SHOWN else "")
        raise InvalidInputError(
            f"{name} must not have missing values; got {len(rows)}, in {'row' if len(rows) == 1 else 'rows'} "
            f"{listed}: drop those samples or give them a value of their own"
        )
