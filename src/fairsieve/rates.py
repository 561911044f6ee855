"""Rates of groups, computed from tables of how many samples of each class are predicted as each class."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from fairsieve.notions import Rate, find_notion

Floats = NDArray[np.float64]


class Rates:
    """Some rates, computed together from tables of counts, (…, classes, groups, predicted classes).

    Examples
    --------
    >>> from fairsieve.notions import ANY, WRONG
    >>> rates = Rates([Rate(1, 1, of_true=1), Rate(ANY, WRONG)])
    >>> table = np.array([[[3.0, 1.0]], [[2.0, 4.0]]])  # of one group
    >>> rates.of(table)[0].round(2).tolist()
    [[0.67], [0.3]]
    """

    def __init__(self, rates: Sequence[Rate]) -> None:
        self.rates = rates
        self._hits, self._counted = np.array(rates, np.int64).reshape(-1, 2, 2).transpose(1, 2, 0)

    def count(self, table: Floats) -> tuple[Floats, Floats]:
        """Count the hits and those who are counted, each (…, rates, groups)."""
        true = np.eye(table.shape[-1], dtype=bool)[:, None]
        sums = [np.where(keep, table, 0.0).sum(axis=-1, keepdims=True) for keep in (~true, true, True)]
        wide = np.concatenate([table, *sums], axis=-1)  # by predicted class, WRONG, RIGHT, ANY
        tall = np.concatenate([wide, wide.sum(axis=-3, keepdims=True)], axis=-3)  # by true class, ANY
        by_group = np.moveaxis(tall, -2, 0)
        hits, counted = (by_group[..., true, said] for true, said in (self._hits, self._counted))
        return np.moveaxis(hits, 0, -1), np.moveaxis(counted, 0, -1)

    def of(self, table: Floats) -> tuple[Floats, Floats]:
        """Compute the rates, 0 where nobody is counted, and how many are counted, each (…, rates, groups)."""
        hits, counted = self.count(table)
        return hits / np.where(counted > 0, counted, 1.0), counted

    def derivative(self, table: Floats, weights: Floats) -> Floats:
        """Differentiate the sum of weights · rates by every entry of one table, (classes, groups, predicted classes).

        An entry changes a rate by (hit − rate · counted) / those who are counted: what one more sample would change,
        or a sample's part in the chance error of the rate.

        Parameters
        ----------
        table : array of shape (classes, groups, predicted classes)
            Of whole samples, or of probabilities that were added up.
        weights : array of shape (rates, groups)
        """
        rates, counted = self.of(table)
        pull = np.divide(weights, counted, out=np.zeros(counted.shape), where=counted > 0)
        classes, groups, _ = table.shape
        by_group = np.zeros((classes + 1, classes + 3, groups))  # as in ``count``
        np.add.at(by_group, tuple(self._hits), pull)
        np.add.at(by_group, tuple(self._counted), -pull * rates)
        tall = by_group[:classes] + by_group[classes]
        wrong, right, every = (tall[:, classes + place, None] for place in range(3))
        true = np.eye(classes, dtype=bool)[..., None]
        return np.asarray((tall[:, :classes] + np.where(true, right, wrong) + every).swapaxes(1, 2))


@lru_cache(maxsize=64)
def compared_rates(fairness: str, classes: int, positive: int = -1) -> Rates:
    """Return the rates that a notion compares between groups; of the last class where no positive one is given.

    >>> len(compared_rates("equalized-odds", classes=3).rates)
    9
    """
    return Rates(find_notion(fairness).list_rates(classes, positive % classes))
