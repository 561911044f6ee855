"""An order of rows, columns and groups that follows from what they hold.

Sums in another order differ in their last digits, and a search that is not convex makes much of that. So the linear
solver gets the rows of a table in an order of their own: neither names, nor the order of rows, columns and groups, nor
a constant column decides anything, and a row that stands there twice is the row with a weight of 2, to the last digit.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from pandas.util import hash_array

from fairsieve.inputs import Checked, dense
from fairsieve.label_noise.survey import DRAWN_BY, row_keys, row_phases
from fairsieve.samples import Samples
from fairsieve.selection.cells import Codes, Floats
from fairsieve.training.linear_rows import LinearRows
from fairsieve.training.points import Point, Solution

MOST_ARRANGED = 5_000_000  # numbers in the table: a larger one would be copied at a cost that is felt
GRAIN = 2.0**30  # sums are rounded to this part of the largest: their last digits depend on the order


@dataclass(frozen=True, eq=False)
class Arrangement:
    """How a table was arranged.

    Attributes
    ----------
    first, place : integer arrays
        The first of each different row, in the new order; and the place there of every row.
    columns : integer array
        The columns that are not constant, in the new order.
    groups, rank : integer arrays
        The groups in the new order, and the place of each; samples without a group stay the last.
    """

    first: Codes
    place: Codes
    columns: Codes
    groups: Codes
    rank: Codes

    @classmethod
    def of(cls, checked: Checked, labels: Codes) -> Arrangement:
        """Arrange the rows; equal ones are one, unless their ``labels``, as they are believed, differ."""
        data, cells = checked.data, checked.data.cells
        weights = np.ones(len(data)) if checked.weights is None else checked.weights
        content = row_keys(row_phases(data, weights)[0], DRAWN_BY)
        spread = weights * (content / 2.0**64)  # a number for each row, which says nothing about it
        features = np.asarray(dense(data.features), np.float64) + 0.0  # a negative zero is a zero
        low, high = features.min(axis=0), features.max(axis=0)
        share = (features - low) / np.where(high > low, high - low, 1.0)
        # Columns are known by their moments and, as several may hold as many ones, by the rows that have these.
        columns = np.lexsort(
            [_rounded(each) for each in (spread @ share, weights @ share**2, weights @ share)]
        )
        columns = columns[(high > low)[columns]] if (high > low).any() else columns
        masses = [_rounded(_count(cells.group_codes, each, cells.shape[1])) for each in (spread, weights)]
        groups = np.lexsort([*masses, np.arange(cells.shape[1]) >= cells.named_groups])
        rank = np.argsort(groups)
        factors = hash_array(np.arange(len(columns)), categorize=False) | np.uint64(1)
        whole = hash_array(
            np.ascontiguousarray(features[:, columns]).view(np.uint64) @ factors, categorize=False
        )
        keys = labels, rank[cells.group_codes], cells.label_codes, whole, content
        order = np.lexsort(keys)
        differs = np.ones(len(order), bool)
        differs[1:] = np.any([np.diff(key[order].astype(np.uint64)) != 0 for key in keys[:-1]], axis=0)
        place = np.empty(len(order), np.int64)
        place[order] = np.cumsum(differs) - 1
        return cls(order[differs], place, columns, groups, rank)

    def arrange(self, checked: Checked) -> Checked:
        """Return different rows by the codes of their labels and groups."""
        data, cells = checked.data, checked.data.cells
        samples = Samples(
            data.features[self.first][:, self.columns],
            cells.label_codes[self.first],
            self.rank[cells.group_codes[self.first]],
            classes=list(range(cells.shape[0])),
            group_values=list(range(cells.shape[1])),
        )
        weights = np.ones(len(data)) if checked.weights is None else checked.weights
        counts = _count(self.place, weights, len(self.first))
        return Checked(samples, counts, np.arange(len(self.first)), len(self.first))

    def relabel(self, rows: LinearRows, like: LinearRows) -> LinearRows:
        """Return arranged rows under other labels; chances of equal rows are averaged."""
        chances = rows.chances
        if chances is not None:
            weighted = [_count(self.place, rows.weights * each, len(self.first)) for each in chances.T]
            chances = np.stack(weighted, axis=1) / like.host_weights[:, None]
        return like.with_labels(rows.host_labels[self.first], chances)

    def restore(self, solution: Solution, before: LinearRows, after: LinearRows) -> Solution:
        """Return what was found for the rows as they came, ``before`` they were arranged."""
        known: dict[int, Point] = {}
        width = before.columns
        shift = np.broadcast_to(before.shift, width)
        moved = shift[self.columns] - np.broadcast_to(after.shift, len(self.columns))

        def back(point: Point) -> Point:
            if id(point) not in known:
                model = point.models[0]
                parameters = np.zeros((len(model.parameters), width + 1))
                parameters[:, self.columns] = model.parameters[:, :-1]
                parameters[:, -1] = model.parameters[:, -1] + model.parameters[:, :-1] @ moved
                tables: Any = {
                    name: getattr(point, name)[:, self.rank] for name in ("ratios", "effective", "counts")
                }
                gaps = [
                    gap._replace(low=int(self.groups[gap.low]), high=int(self.groups[gap.high]))
                    for gap in point.gaps
                ]
                masses = model.masses[:, self.rank]
                models = [model._replace(parameters=parameters, masses=masses, curvature=None)]
                known[id(point)] = replace(point, models=models, gaps=gaps, shift=before.shift, **tables)
            return known[id(point)]

        return replace(
            solution,
            points=[back(point) for point in solution.points],
            natural=back(solution.natural),
            plain=back(solution.plain),
            chosen=back(solution.chosen),
            together=[table[:, self.rank] for table in solution.together],
        )


def _count(places: Codes, weights: Floats, size: int) -> Floats:
    """Add up weights by place."""
    return np.asarray(np.bincount(places, weights, size), np.float64)


def _rounded(sums: Floats) -> Floats:
    return np.asarray(np.rint(sums / np.abs(sums).max(initial=1e-300) * GRAIN))
