"""Make groups of a column of numbers: under 25, 25 to 44, and so on."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from fairsieve.errors import InvalidInputError
from fairsieve.tabular.reading.table import TextColumn, as_objects

__all__ = ["bin_numbers", "find_edges", "parse_bins", "suggested_edges"]

SUGGESTED = 4


def parse_bins(options: Sequence[str]) -> dict[str, str]:
    """Split ``--bins age=25,45`` and ``--bins age=4`` by column.

    >>> parse_bins(["age=25,45"])
    {'age': '25,45'}
    """
    found = {}
    for option in options:
        column, sign, rule = option.rpartition("=")
        if not (sign and column and rule):
            raise InvalidInputError(
                f"--bins must be COLUMN=EDGES or COLUMN=HOW MANY, such as age=25,45,65 or age=4; got {option!r}"
            )
        found[column.strip()] = rule
    return found


def find_edges(rule: str, numbers: NDArray[np.float64], column: str) -> tuple[float, ...]:
    """Find the edges that a rule stands for: those given, or those of equally large groups.

    >>> find_edges("2", np.array([1.0, 2.0, 3.0, 4.0]), "age")
    (3.0,)
    """
    try:
        values = [float(part) for part in rule.split(",")]
    except ValueError:
        values = []
    if len(values) == 1 and values[0].is_integer() and 2 <= values[0] <= 10 and "." not in rule:
        edges = suggested_edges(numbers, int(values[0]))
        if edges:
            return edges
    elif values and np.isfinite(values).all() and (np.diff(values) > 0).all():
        return tuple(values)
    raise InvalidInputError(
        f"--bins of {column!r} must be edges in ascending order, such as 25,45,65, or a number of equally large groups "
        f"from 2 to 10; got {rule!r}"
    )


def suggested_edges(numbers: NDArray[np.float64], count: int = SUGGESTED) -> tuple[float, ...]:
    """Suggest edges between ``count`` groups of about equal size, at values that occur."""
    known = np.sort(numbers[~np.isnan(numbers)])
    if not len(known):
        return ()
    places = np.ceil(np.arange(1, count) / count * len(known)).astype(int)
    edges = np.unique(known[np.minimum(places, len(known) - 1)])
    return tuple(float(edge) for edge in edges if edge > known[0])


def _bin_names(edges: Sequence[float]) -> list[str]:
    """Name the groups, from the lowest.

    >>> _bin_names((25, 45))
    ['under 25', '25 to under 45', '45 and over']
    """
    shown = [f"{edge:g}" for edge in edges]
    between = [f"{low} to under {high}" for low, high in pairwise(shown)]
    return [f"under {shown[0]}", *between, f"{shown[-1]} and over"]


def bin_numbers(numbers: NDArray[np.float64], edges: Sequence[float]) -> TextColumn:
    """Name the group of each number; it is missing where the number is."""
    places = np.searchsorted(edges, numbers, side="right").astype(np.int32)
    return TextColumn(np.where(np.isnan(numbers), np.int32(-1), places), as_objects(_bin_names(edges)))
