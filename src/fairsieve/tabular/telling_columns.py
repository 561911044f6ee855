"""Find single columns that tell the label almost perfectly, or stand in for the group."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fairsieve.tabular.reading.features import Values
from fairsieve.tabular.reading.table import TextColumn

__all__ = ["rank_columns"]

MOST_ROWS = 20_000
PARTS = 100  # that numbers are cut into
LEAST = 10  # rows of a class, on either side


def rank_columns(values: Values, targets: NDArray[np.integer], seed: int = 0) -> dict[str, float]:
    """Compute how well each column alone tells the targets on rows held out: the area under the ROC curve.

    Half of the rows (of at most 20,000) say how likely each target is for each value of a column, the other half how
    well that ranks them. Numbers are cut into a hundred parts; missing is a value. Of more than two targets, each is
    told from the others, and the areas are averaged by their shares.

    Parameters
    ----------
    values : dict
        The columns.
    targets : integers
        −1 where there is none.

    Examples
    --------
    >>> targets = np.arange(200) % 2
    >>> found = rank_columns({"copy": targets.astype(float), "count": np.arange(200) // 2 * 1.0}, targets)
    >>> found["copy"], found["count"] < 0.8
    (1.0, True)
    """
    rng = np.random.default_rng(seed)
    rows = rng.permutation(np.flatnonzero(targets >= 0))[:MOST_ROWS]
    half = len(rows) // 2
    learnt, held = rows[:half], rows[half:]
    shares = np.bincount(targets[held]) / max(len(held), 1)
    classes = [code for code, share in enumerate(shares) if share * len(held) >= LEAST]
    found: dict[str, float] = {}
    if len(classes) < 2:
        return found
    for name, column in values.items():
        codes = _codes_for(column, learnt)
        areas = [_area(codes, targets == code, learnt, held) for code in classes]
        found[name] = float(np.average(areas, weights=shares[classes]))
    return found


def _codes_for(column: NDArray[np.float64] | TextColumn, learnt: NDArray[np.int64]) -> NDArray[np.int64]:
    """Code the values of a column; missing is the last code."""
    if isinstance(column, TextColumn):
        return np.where(column.codes >= 0, column.codes, len(column.values)).astype(np.int64)
    known = column[learnt][~np.isnan(column[learnt])]
    edges = np.unique(np.quantile(known, np.linspace(0, 1, PARTS + 1)[1:-1])) if len(known) else np.zeros(0)
    return np.where(np.isnan(column), len(edges) + 1, np.searchsorted(edges, column, side="left")).astype(
        np.int64
    )


def _area(
    codes: NDArray[np.int64], hits: NDArray[np.bool_], learnt: NDArray[np.int64], held: NDArray[np.int64]
) -> float:
    """Compute the area under the ROC curve of the rates that one half of the rows shows, on the other half."""
    width = int(codes.max()) + 1
    total = np.bincount(codes[learnt], minlength=width)
    right = np.bincount(codes[learnt], weights=hits[learnt], minlength=width)
    rates = (right + hits[learnt].mean()) / (total + 1)
    ranks = np.unique(rates.round(12), return_inverse=True)[1]
    positive = np.bincount(ranks[codes[held]], weights=hits[held])
    negative = np.bincount(ranks[codes[held]], weights=~hits[held])
    below = np.cumsum(negative) - negative / 2
    return float((positive @ below) / max(positive.sum() * negative.sum(), 1.0))
