"""Values of any kind → codes 0, 1, …, and what they stand for; and which values are missing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from fairsieve.errors import InvalidInputError
from fairsieve.validation import check_choice, shown

__all__ = [
    "WIDEST",
    "Missing",
    "as_array",
    "encode",
    "encode_groups",
    "encode_labels",
    "fractions_in",
    "is_ungrouped",
    "merged",
    "missing_in",
    "refuse_missing",
]

Missing = Literal["refuse", "own"]
WIDEST = 2**16  # values between the least and the greatest that a table may have
CHUNK = 2**18  # values looked up together, so that little is held besides the answer
SHOWN = 5  # rows in a message


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
    name: str, values: Any, known: Sequence[Any] | None = None, *, crossed: bool = False
) -> tuple[NDArray[Any], list[Any]]:
    """Return codes 0, 1, … of ``values``, of any integer type, and what they stand for, in sorted order."""
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
        codes, found = _rank_integers(array) or _rank(name, array)
        known = [False, True] if known is None and array.dtype == bool else known
    return (codes, found) if known is None else (_place(name, codes, found, list(known)), list(known))


def encode_labels(values: Any, known: Sequence[Any] | None = None) -> tuple[NDArray[Any], list[Any]]:
    """Encode labels; refuse numbers that are no classes, floats that are not whole."""
    array = as_array("labels", values)
    fractions = fractions_in(array)
    if known is None and array.ndim == 1 and len(fractions):
        raise InvalidInputError(
            f"labels must be classes; got continuous numbers such as {shown(fractions[0])}: cut them into "
            "classes, for example with values > threshold"
        )
    return encode("labels", array, known)


def fractions_in(array: NDArray[Any]) -> NDArray[Any]:
    """Select the numbers that are not whole."""
    if array.dtype.kind != "f":
        return array[:0]
    return np.asarray(array[np.isfinite(array) & (array != np.floor(array))])


def encode_groups(
    name: str, values: Any, known: Sequence[Any] | None = None, missing: Missing = "refuse"
) -> tuple[NDArray[Any], list[Any]]:
    """Encode groups, which may be missing: their code is then the last, that of None."""
    array = as_array(name, values)
    if check_choice("missing", missing, ("refuse", "own")) == "refuse":
        return encode(name, array, known, crossed=True)
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


def _cross(name: str, array: NDArray[Any]) -> tuple[NDArray[Any], list[Any]]:
    """Rank the rows of ``array``, as tuples: only the combinations that occur."""
    if len(array) == 0:
        return np.zeros(0, np.int64), []
    columns = [encode(f"{name}[:, {j}]", array[:, j]) for j in range(array.shape[1])]
    sizes = [len(values) for _, values in columns]
    found, codes = np.unique(
        np.ravel_multi_index([codes for codes, _ in columns], sizes), return_inverse=True
    )
    parts = [
        [values[place] for place in places]
        for (_, values), places in zip(columns, np.unravel_index(found, sizes), strict=True)
    ]
    return codes, list(zip(*parts, strict=True))


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
    return codes, found.tolist()


def _rank_integers(array: NDArray[Any]) -> tuple[NDArray[Any], list[Any]] | None:
    """Do what :func:`_rank` does by a table; None for what is no integer or spreads too far for one."""
    if array.dtype.kind not in "iub" or array.size == 0:
        return None
    least = array.min()
    span = int(array.max()) - int(least) + 1  # in Python's integers: uint64 may be beyond int64
    if span > WIDEST:
        return None

    def offsets() -> Iterator[NDArray[np.int64]]:
        for first in range(0, len(array), CHUNK):
            yield np.subtract(array[first : first + CHUNK], least, dtype=np.int64, casting="unsafe")

    is_found = np.zeros(span, bool)
    for some in offsets():
        is_found[some] = True
    places = (np.cumsum(is_found) - 1).astype(np.min_scalar_type(int(is_found.sum())))
    codes = np.concatenate([places[some] for some in offsets()])
    return codes, [int(least) + place for place in np.flatnonzero(is_found).tolist()]


def _place(name: str, codes: NDArray[Any], found: list[Any], known: list[Any]) -> NDArray[Any]:
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


def missing_in(array: NDArray[Any]) -> NDArray[np.bool_]:
    """Return which values are None, NaN, NA or NaT.

    >>> missing_in(np.array(["a", None, np.nan], dtype=object)).tolist()
    [False, True, True]
    """
    if array.dtype.kind in "biuUS":  # none can be
        return np.zeros(array.shape, bool)
    import pandas as pd  # which takes long to import

    return np.asarray(pd.isna(array))


def refuse_missing(name: str, array: NDArray[Any]) -> None:
    """Refuse missing values, which have no cell."""
    rows = np.flatnonzero(missing_in(array))
    if len(rows):
        listed = ", ".join(map(str, rows[:SHOWN])) + (", …" if len(rows) > SHOWN else "")
        raise InvalidInputError(
            f"{name} must not have missing values; got {len(rows)}, in {'row' if len(rows) == 1 else 'rows'} "
            f"{listed}: drop those samples or give them a value of their own"
        )
