"""Clean ratios by cell: given as a table, or estimated from the losses of each cell.

Samples with wrong labels keep high losses for many epochs, since a network learns the others first. A label is
doubted when the network, on the average of the epochs, gives it less chance than a blind guess would, one of
somebody who knows the classes but not the sample.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairsieve.errors import InvalidInputError
from fairsieve.selection.cells import Cells, as_array
from fairsieve.validation import check_clean_ratio, shown

LEAST = 0.5  # of the share that its class keeps, for a cell, and of the share that all keep, for a class


def check_ratio_table(value: Any, cells: Cells) -> NDArray[np.float64]:
    """Return clean ratios as a table, classes × groups, from a table or a mapping from (class, group)."""
    if isinstance(value, Mapping):
        places = {(y, z): (i, j) for i, y in enumerate(cells.classes) for j, z in enumerate(cells.groups)}
        unknown = [key for key in value if key not in places]
        lacking = [key for key, place in places.items() if key not in value and cells.counts[place] > 0]
        if unknown or lacking:
            raise InvalidInputError(
                "clean_ratio must map every (class, group) to a share; "
                + (f"{shown(unknown[0])} does not occur" if unknown else f"{shown(lacking[0])} is missing")
            )
        table = np.ones(cells.shape)
        for key, share in value.items():
            table[places[key]] = check_clean_ratio(f"clean_ratio[{key}]", share)
        return table
    table = as_array("clean_ratio", value)
    if table.shape != cells.shape or table.dtype.kind not in "fiu":
        raise InvalidInputError(
            f"clean_ratio must be a number, 'auto', or a table of numbers with a row per class and a column per group, "
            f"{cells.shape}; got {table.dtype} of the shape {table.shape}"
        )
    if not ((table > 0) & (table <= 1)).all():
        raise InvalidInputError(f"clean_ratio must lie in (0, 1] everywhere; got {shown(table.tolist())}")
    return table.astype(np.float64)


def cell_caps(ratios: NDArray[np.float64], counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the most samples of each cell under its clean ratio: ⌊ratio · n⌋, and one if there is any.

    >>> cell_caps(np.array([[0.29, 0.1]]), np.array([[100, 3]])).tolist()
    [29, 1]
    """
    caps = np.floor(ratios * counts + 1e-9).astype(np.int64)
    return np.asarray(np.minimum(np.maximum(caps, 1), counts).reshape(-1))


def guess_losses(counts: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the loss of a blind guess for each cell of a table of counts, flat.

    The guess gives each class the same chance, or the share of the class where that is less: else a rare class
    would be doubted as a whole, as long as the network predicts the common ones alone.

    >>> guess_losses(np.array([[90], [10]])).round(2).tolist()
    [0.69, 2.3]
    """
    shares = np.maximum(counts.sum(axis=1), 1) / max(1, counts.sum())
    return np.repeat(-np.log(np.minimum(shares, 1 / len(counts))), counts.shape[1])


def estimate_ratios(below: NDArray[np.int64], counts: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return clean ratios, from how many samples of each cell are not doubted, classes × groups.

    A cell that the network has not learned yet looks as if all its labels were wrong. Left out, it never would be
    learned: so it keeps at least half of the share that its class keeps, and a class half of that of all.

    >>> estimate_ratios(np.array([[90, 0], [80, 10]]), np.array([[100, 20], [100, 20]])).round(2).tolist()
    [[0.9, 0.38], [0.8, 0.5]]
    """
    of_class = below.sum(axis=1, keepdims=True) / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    of_class = np.maximum(of_class, LEAST * below.sum() / max(1, counts.sum()))
    return np.asarray(np.maximum(below / np.maximum(counts, 1), LEAST * of_class))
