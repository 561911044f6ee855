"""Train, test and validation parts, cell by cell, and scaling learnt on the training part alone."""

from __future__ import annotations

from dataclasses import dataclass, replace
from numbers import Real

import numpy as np
from numpy.typing import NDArray

from fairsieve.errors import InvalidInputError
from fairsieve.samples import Samples, shuffled_places
from fairsieve.selection.cells import Cells, Floats, Integers, Values
from fairsieve.validation import percent_hint, shown


@dataclass(frozen=True, eq=False)
class Splits:
    """The three parts of a data set.

    Examples
    --------
    >>> from fairsieve.data import synthetic_splits
    >>> parts = synthetic_splits(seed=0)
    >>> len(parts.train), len(parts.test), len(parts.validation)
    (2000, 1000, 200)
    """

    train: Samples
    test: Samples
    validation: Samples


def split(
    samples: Samples,
    *,
    test: float = 0.2,
    validation: float = 1 / 11,
    seed: int | np.random.Generator = 0,
    scale: bool = True,
) -> Splits:
    """Split every cell (class × group) alike, 20 % test and the rest 10 : 1 train : validation.

    Parameters
    ----------
    samples : Samples
        What to split; the order within each part is theirs.
    test : float, default=0.2
        Share of the whole that is tested on, at least 0 and below 1.
    validation : float, default=1/11
        Share of the rest that is validated on, at least 0 and below 1.
    seed : int or Generator, default=0
        Decides who goes where.
    scale : bool, default=True
        Standardise the columns that are not 0/1, by the mean and deviation of the training part.

    Returns
    -------
    Splits
        In each part, a cell has its share of the cell, rounded up or down; a cell that has samples at all
        has at least one in training.

    Examples
    --------
    >>> import numpy as np
    >>> from fairsieve.samples import Samples
    >>> samples = Samples(np.arange(110.0)[:, None], [0, 1] * 55, ["a", "b"] * 55)
    >>> parts = split(samples)
    >>> len(parts.train), len(parts.test), len(parts.validation)
    (80, 22, 8)
    >>> bool(abs(parts.train.features.mean()) < 1e-6)
    True
    """
    rows = split_indices(samples.cells, test=test, validation=validation, seed=seed)
    parts = [samples.take(part) for part in rows]
    if scale and len(parts[0]):
        shift, factor = _scaling(parts[0].features)
        dtype = samples.features.dtype
        parts = [replace(part, features=((part.features - shift) / factor).astype(dtype)) for part in parts]
    return Splits(*parts)


def split_indices(
    cells: Cells, *, test: float = 0.2, validation: float = 1 / 11, seed: int | np.random.Generator = 0
) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.intp]]:
    """Return the rows of the train, test and validation parts, each in ascending order; see :func:`split`.

    Examples
    --------
    >>> train, test, validation = split_indices(Cells.of([0] * 11, ["a"] * 11), test=0.0)
    >>> len(train), len(test), len(validation)
    (10, 0, 1)
    """
    for name, share in (("test", test), ("validation", validation)):
        if not isinstance(share, Real) or not 0 <= float(share) < 1:
            raise InvalidInputError(
                f"{name} must be a share, at least 0 and below 1; got {shown(share)}{percent_hint(share)}"
            )
    sizes, codes = cells.counts.reshape(-1), cells.codes
    tested = _allot(sizes, test)
    validated = _allot(sizes - tested, validation)
    places = shuffled_places(cells, seed)
    first = np.full(len(sizes), len(codes))
    np.minimum.at(first, codes, places)
    rank = places - first[codes]  # within the cell
    is_test = rank < tested[codes]
    is_validation = ~is_test & (rank < (tested + validated)[codes])
    return np.flatnonzero(~is_test & ~is_validation), np.flatnonzero(is_test), np.flatnonzero(is_validation)


def _allot(sizes: Integers, share: float) -> Integers:
    """Take ``share`` of each size, rounded so that the sum is the share of the total (largest remainders go up).

    Nothing that has members is allotted whole.

    >>> _allot(np.array([10, 11, 1]), 0.25).tolist()
    [3, 3, 0]
    """
    quotas = np.round(sizes * share, 9)  # 9 digits: 0.2 · 15 is 3, not a little more
    counts = np.floor(quotas).astype(np.int64)
    remainders = quotas - counts
    may_grow = (remainders > 0) & (counts + 1 < sizes)
    spare = max(round(float(sizes.sum() * share)) - int(counts.sum()), 0)
    first = np.argsort(np.where(may_grow, -remainders, 1.0), kind="stable")[: min(spare, int(may_grow.sum()))]
    counts[first] += 1
    return counts


def _scaling(features: Values) -> tuple[Floats, Floats]:
    """Return the mean and deviation of each column; 0 and 1 for columns of 0/1, and a constant is only shifted.

    >>> shift, factor = _scaling(np.array([[0.0, 10.0, 7.0], [1.0, 30.0, 7.0]]))
    >>> shift.tolist(), factor.tolist()
    ([0.0, 20.0, 7.0], [1.0, 10.0, 1.0])
    """
    low, high = features.min(axis=0), features.max(axis=0)
    is_binary = ((features == 0) | (features == 1)).all(axis=0)
    mean = features.mean(axis=0, dtype=np.float64)
    deviation = features.std(axis=0, dtype=np.float64)
    # By its range: the computed deviation of a constant may be a rounding error instead of 0.
    is_constant = low == high
    shift = np.where(is_binary, 0.0, np.where(is_constant, low, mean))
    return shift, np.where(is_binary | is_constant | (deviation == 0), 1.0, deviation)
