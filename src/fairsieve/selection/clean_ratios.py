"""Clean ratios by cell: given as a table, or estimated from the losses of each cell.

Samples with wrong labels keep high losses for many epochs, since the network learns the others first. So the
losses of a cell, averaged over epochs, are a mixture of two: low ones of right labels and high ones of wrong
labels. The share of the higher part is an estimate of the wrong ones, but pictures that are only hard to learn
belong to it too; so it is bounded by the share of samples whose label the network gives less chance than a blind
guess would. All is taken from a histogram, which any number of workers can add up.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairsieve.errors import InvalidInputError
from fairsieve.selection.cells import Cells, as_array
from fairsieve.validation import check_clean_ratio, shown

__all__ = ["LEVELS", "cell_caps", "check_ratio_table", "estimate_ratios", "loss_levels"]

LEVELS = 128  # of the histogram, over loss / (1 + loss)
LOWEST = 0.05  # a cell keeps at least this share
POOLED = 50  # samples that the estimate over all cells counts for in each cell
APART = 2.0  # standard deviations between the two parts, or they are one
ROUNDS = 60


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


def loss_levels(losses: Any) -> Any:
    """Return the level of each loss in the histogram, for an array or a tensor of losses.

    >>> loss_levels(np.array([0.0, 1.0, np.inf])).tolist()
    [0, 64, 127]
    """
    levels = (1 - 1 / (1 + losses.clip(0))) * LEVELS
    return (levels.astype(np.int64) if isinstance(losses, np.ndarray) else levels.long()).clip(0, LEVELS - 1)


def estimate_ratios(counts: NDArray[np.int64], shape: tuple[int, int]) -> NDArray[np.float64]:
    """Estimate the clean ratio of each cell from its histogram of losses, (cells, levels).

    The ratio lies between 0.05 and 1. It is 1 where the losses do not fall into two parts. Few samples are
    pooled with the estimate over all cells.

    >>> counts = np.zeros((2, LEVELS), np.int64)
    >>> counts[0, 5:25], counts[0, 100:110] = 40, 20  # 800 low losses, 200 high ones
    >>> estimate_ratios(counts, (2, 1)).round(2).tolist()
    [[0.8], [0.8]]
    """
    guess = math.log(shape[0]) if shape[0] > 1 else math.inf  # the loss of a blind guess
    whole = _clean_share(counts.sum(axis=0), guess)
    sizes = counts.sum(axis=1)
    own = np.array([_clean_share(row, guess) if row.sum() else whole for row in counts])
    pooled = (sizes * own + POOLED * whole) / (sizes + POOLED)
    return np.asarray(np.clip(pooled, LOWEST, 1.0).reshape(shape))


def _clean_share(counts: NDArray[np.int64], guess: float) -> float:
    """Return one less the share of the higher component, at most that of losses above a blind guess."""
    doubted = (
        counts[int(loss_levels(np.array([guess]))[0]) + 1 :].sum() / counts.sum() if counts.sum() else 0.0
    )
    return 1 - min(1 - _share_of_low(counts), float(doubted))


def _share_of_low(counts: NDArray[np.int64]) -> float:
    """Return the share of the lower of two normal components, fitted by expectation-maximisation; 1 if it is one."""
    levels = (np.arange(LEVELS) + 0.5) / LEVELS
    total = counts.sum()
    if total == 0:
        return 1.0
    weights = counts / total
    # Start at what lies below and above the level that splits best (Otsu's threshold).
    below = np.cumsum(weights)[:-1]
    mean_below = np.cumsum(weights * levels)[:-1]
    whole = float((weights * levels).sum())
    between = (whole * below - mean_below) ** 2 / np.maximum(below * (1 - below), 1e-12)
    split = int(between.argmax()) + 1
    low = (np.arange(LEVELS) < split).astype(np.float64)
    for _ in range(ROUNDS):
        parts = np.stack([weights * low, weights * (1 - low)])
        shares = parts.sum(axis=1)
        if shares.min() < 1e-6:
            return 1.0
        means = (parts * levels).sum(axis=1) / shares
        spreads = np.sqrt((parts * (levels - means[:, None]) ** 2).sum(axis=1) / shares + LEVELS**-2.0)
        logs = np.log(shares)[:, None] - np.log(spreads)[:, None]
        logs = logs - 0.5 * ((levels - means[:, None]) / spreads[:, None]) ** 2
        low = 1 / (1 + np.exp(np.clip(logs[1] - logs[0], -700, 700)))
    apart = (means[1] - means[0]) / np.sqrt((spreads**2).mean())
    return float(shares[0]) if apart > APART else 1.0
