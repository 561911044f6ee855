"""Weights of samples that follow from their cells, looked up where they are needed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

__all__ = ["CellWeights"]


@dataclass(frozen=True, kw_only=True, eq=False)
class CellWeights:
    """One weight per sample, as an array of doubles would hold it, in a byte or two for each sample.

    Attributes
    ----------
    table : array or tensor of shape (cells + 1,)
        The weight of each cell's samples; the last is 0, for the samples that are not selected.
    places : integer array or tensor of shape (n,)
        Each sample's place in the table.
    given : array or tensor of shape (n,), or None
        What multiplies the weights; 1 everywhere when None.

    Examples
    --------
    >>> import numpy as np
    >>> weights = CellWeights(table=np.array([0.5, 2.0, 0.0]), places=np.array([1, 0, 2, 0]))
    >>> weights[:].tolist(), weights[1:3].tolist(), len(weights)
    ([2.0, 0.5, 0.0, 0.5], [0.5, 0.0], 4)
    """

    table: Any
    places: Any
    given: Any = None

    def __len__(self) -> int:
        return len(self.places)

    def __getitem__(self, rows: Any) -> Any:
        found = self.table[self.places[rows]]
        return found if self.given is None else found * self.given[rows]
