"""Choose the samples that the estimate looks at, so that equal data are looked at equally.

Neither a seed nor the order of the rows decides anything here: which samples are looked at, and in which fold each of
them stands, follows from a checksum of their features and group. Equal rows are counted together, so a row that is
there twice is the same as one of weight 2; and since equal features stand in the same fold, no model is tested on
what it has learnt by heart.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from fairsieve.inputs import dense
from fairsieve.label_noise.flip_model import Observed
from fairsieve.samples import Samples

__all__ = ["FOLDS", "Survey", "chunks", "with_groups"]

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]
Keys = NDArray[np.uint64]

MOST = 8_000  # samples that are looked at
FOLDS = 6
LEVELS = (
    2.0**16
)  # that the values of a column are told apart by; scaling a column moves nobody to another fold
MOST_COLUMNS = 120  # of the features; those that say most about the labels
RARE = 0.01  # columns that are almost constant are left out where there are many
MANY = 40
CHUNK = 65_536


@dataclass(frozen=True, eq=False)
class Survey:
    """The samples that the estimate looks at, each different one once, with their groups as columns.

    Attributes
    ----------
    rows : integer array of shape (n,)
        Where they stand in the data.
    members, places : integer arrays
        All samples of the data that equal one of them, and which one.
    features : array of shape (n, columns)
        The most telling features, then a column for each group but one.
    columns : integer array
        Which features those are.
    labels, groups : integer arrays of shape (n,)
        Codes.
    weights : array of shape (n,)
        How often each counts.
    folds : integer array of shape (n,)
        The fold of each.
    """

    rows: Codes
    members: Codes
    places: Codes
    features: Floats
    columns: Codes
    labels: Codes
    groups: Codes
    classes: int
    group_count: int
    weights: Floats
    folds: Codes

    def __len__(self) -> int:
        return len(self.rows)

    @classmethod
    def draw(cls, data: Samples, weights: Floats | None, most: int = MOST) -> Survey:
        """Draw at most ``most`` different samples, and deal them to folds evenly by class and group."""
        codes, (classes, group_count) = data.cells.host_codes.astype(np.int64), data.cells.shape
        content, exact = _checksums(data, codes % group_count)
        order = np.lexsort((codes, exact, content))
        differs = np.ones(len(order), bool)
        differs[1:] = (np.diff(exact[order]) != 0) | (np.diff(codes[order]) != 0)
        places = np.cumsum(differs) - 1
        looked_at = places < most
        members, places = order[looked_at], places[looked_at]
        rows = members[differs[looked_at]]
        own = np.ones(len(data)) if weights is None else weights
        counts = np.bincount(places, own[members]).astype(np.float64)
        labels, groups = codes[rows] // group_count, codes[rows] % group_count
        features = np.asarray(dense(data.features[rows]), np.float64).reshape(len(rows), -1)
        columns = _telling_columns(features, labels, classes, counts)
        return cls(
            rows,
            members,
            places,
            with_groups(features[:, columns], groups, group_count),
            columns,
            labels,
            groups,
            classes,
            group_count,
            counts,
            _deal(content[rows], codes[rows], counts),
        )

    @cached_property
    def size(self) -> float:
        """How many samples these stand for."""
        return float(self.weights.sum())

    @cached_property
    def numeric_columns(self) -> list[int]:
        """The features that have more than two values."""
        own = self.features[:, : len(self.columns)]
        if not own.size:
            return []
        between = (own != own.min(axis=0)) & (own != own.max(axis=0))
        return np.flatnonzero(between.any(axis=0)).tolist()

    def telling(self, most: int) -> Codes:
        """Return the columns of ``features`` that say most about the labels."""
        return _strongest(self.features, self.labels, self.classes, self.weights, most)

    def mean(self, values: Floats) -> tuple[float, float]:
        """Compute the mean of values of the samples, and its standard error."""
        mean = float(np.average(values, weights=self.weights))
        return mean, float(np.sqrt(self.weights @ (values - mean) ** 2)) / self.size

    def observe(self, design: Floats) -> Observed:
        """Return the samples in the form the model of flips takes."""
        return Observed(design, self.labels, self.groups, self.classes, self.group_count, self.weights)

    def features_of(self, data: Samples, rows: slice) -> Floats:
        """Return the same columns for any samples of the data."""
        groups = data.cells.host_codes[rows].astype(np.int64) % data.cells.shape[1]
        features = data.features[rows]
        features = features if features.ndim == 2 else features.reshape(len(groups), -1)
        return with_groups(dense(features[:, self.columns]), groups, self.group_count)


def chunks(samples: int) -> Iterator[slice]:
    """Split the samples into parts that fit into memory as design matrices."""
    return (slice(first, first + CHUNK) for first in range(0, samples, CHUNK))


def with_groups(features: Floats, groups: Codes, group_count: int) -> Floats:
    """Append a column for each group but the first."""
    return np.column_stack([features, np.equal.outer(groups, np.arange(1, group_count))])


def content_folds(data: Samples) -> Codes:
    """Deal samples to folds by what they hold: the order of the rows and their number of copies do not matter."""
    content, _ = _checksums(data, data.cells.host_codes % data.cells.shape[1])
    return _deal(content, data.cells.host_codes.astype(np.int64), np.ones(len(data)))


def _checksums(data: Samples, groups: Codes) -> tuple[Keys, Keys]:
    """Compute two checksums of each sample's features and group: one that scaling a column leaves, and an exact one."""
    parts = [dense(data.features[part]).reshape(len(groups[part]), -1) for part in chunks(len(data))]
    low = np.min([part.min(axis=0) for part in parts], axis=0).astype(np.float64)
    high = np.max([part.max(axis=0) for part in parts], axis=0).astype(np.float64)
    scale = np.divide(LEVELS, high - low, out=np.zeros_like(low), where=high > low)
    factors = np.random.default_rng(0).integers(0, 2**63, len(low) + 1).astype(np.uint64) * np.uint64(
        2
    ) + np.uint64(1)
    found = []
    for part in parts:
        part = part.astype(np.float64) + 0.0  # a negative zero is a zero
        levels = np.rint((part - low) * scale).astype(np.int64).view(np.uint64)
        found.append([levels @ factors[:-1], part.view(np.uint64) @ factors[:-1]])
    content, exact = np.concatenate(found, axis=1) + groups.astype(np.uint64) * factors[-1]
    return _mixed(content), _mixed(exact)


def _mixed(keys: Keys) -> Keys:
    """Spread the bits of checksums, so that their order says nothing about the samples."""
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        keys = (keys ^ (keys >> np.uint64(shift))) * np.uint64(factor)
    return np.asarray(keys ^ (keys >> np.uint64(31)))


def _deal(content: Keys, codes: Codes, weights: Floats) -> Codes:
    """Deal samples, in the order of their checksums, to folds; equal features to the same one."""
    _, first, kinds = np.unique(content, return_index=True, return_inverse=True)
    heaviest = np.lexsort((codes, -weights, kinds))  # the cell that most samples of these features are in
    cell = codes[heaviest[np.searchsorted(kinds[heaviest], np.arange(len(first)))]]
    folds = np.empty(len(first), np.int64)
    folds[np.argsort(cell, kind="stable")] = np.arange(len(first)) % FOLDS
    return np.asarray(folds[kinds])


def _strongest(features: Floats, labels: Codes, classes: int, weights: Floats, most: int) -> Codes:
    """Return the columns that correlate most with a class."""
    own = np.equal.outer(labels, np.arange(classes)) - np.bincount(labels, weights, classes) / weights.sum()
    part = features - np.average(features, axis=0, weights=weights)
    spread = np.sqrt(np.average(part**2, axis=0, weights=weights))
    strength = np.abs((own * weights[:, None]).T @ part / np.maximum(spread, 1e-12)).max(axis=0)
    return np.sort(np.argsort(-strength, kind="stable")[:most])


def _telling_columns(features: Floats, labels: Codes, classes: int, weights: Floats) -> Codes:
    """Choose the features to look at: all, where there are few; else the most telling, not the rare ones."""
    columns = np.arange(features.shape[1])
    if len(columns) > MANY:
        usual = features != np.median(features, axis=0)
        columns = columns[weights @ usual >= RARE * weights.sum()]
    most = max(MOST_COLUMNS // max(classes - 1, 1), 10)
    if len(columns) > most:
        columns = columns[_strongest(features[:, columns], labels, classes, weights, most)]
    return columns
