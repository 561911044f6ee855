"""Values that are missing: None, NaN, NA, NaT."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairsieve.errors import InvalidInputError

__all__ = ["missing_in", "refuse_missing"]

SHOWN = 5  # rows in a message


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
