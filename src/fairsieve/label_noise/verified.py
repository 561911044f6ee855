"""Check what users pass as labels that somebody checked."""

from __future__ import annotations

import warnings
from collections.abc import Hashable
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from fairsieve.errors import FairsieveWarning, InvalidInputError
from fairsieve.inputs import Checked, dense
from fairsieve.samples import Samples
from fairsieve.selection.cells import Cells, missing_in, unmasked
from fairsieve.validation import shown

Floats = NDArray[np.float64]

FEW = 10


class VerifiedRates(NamedTuple):
    """What checked labels say about the flip rates.

    Attributes
    ----------
    checked : array of shape (classes, groups)
        Checked rows by given label and group.
    flip_rates : array of shape (classes, groups)
        Chance of a label of that true class and group to be wrong.
    low, high : arrays of shape (classes, groups)
        95 % intervals of the same.
    """

    checked: NDArray[np.int64]
    flip_rates: Floats
    low: Floats
    high: Floats

    def narrowing(self, more: int = 10) -> Floats:
        """Estimate by how much the intervals would narrow if ``more`` rows of each group were checked.

        >>> rates = VerifiedRates(np.full((2, 1), 15), np.zeros((2, 1)), np.zeros((2, 1)), np.full((2, 1), 0.2))
        >>> rates.narrowing(10).round(3).tolist()
        [[0.026], [0.026]]
        """
        now = self.checked.sum(axis=0) + 1.0
        return np.asarray((self.high - self.low) * (1 - np.sqrt(now / (now + more))))


class Verification(NamedTuple):
    """Checked labels of the samples: their codes, −1 where nobody checked, and their weights."""

    codes: NDArray[np.int64]
    weight: NDArray[np.float64] | None

    @property
    def enough(self) -> bool:
        """Whether there are enough to learn from."""
        return int((self.codes >= 0).sum()) >= FEW

    def correct(self, data: Samples) -> NDArray[Any]:
        """Return the labels with the checked ones set right."""
        classes = np.asarray(data.cells.classes, dtype=data.labels.dtype)
        return np.where(self.codes >= 0, classes[self.codes], data.labels)


def check_verification(
    checked: Checked, verified_labels: Any, verified_weight: ArrayLike | None = None
) -> Verification | None:
    """Check what users pass as ``verified_labels`` and ``verified_weight``; None where there are none."""
    if verified_labels is None:
        if verified_weight is not None:
            raise InvalidInputError("verified_weight belongs to verified_labels, which is None: pass both")
        return None
    data, given = checked.data, checked.given
    codes = _encode(verified_labels, data.cells, given)[checked.rows]
    known = codes >= 0
    if not known.any():
        raise InvalidInputError(
            "verified_labels must be known for a row that has a weight; sample_weight is 0 for all checked rows: give "
            "one of them a weight, or leave verified_labels out"
        )
    _warn_of_verified(codes, data.features, data.cells)
    if verified_weight is None:
        return Verification(codes, None)
    weight = np.asarray(unmasked(verified_weight, numbers=True), np.float64)
    if weight.shape != (given,):
        raise InvalidInputError(
            f"verified_weight must have one number per sample, the shape ({given},); got {weight.shape}"
        )
    weight = np.where(known, weight[checked.rows], 1.0)
    if not (np.isfinite(weight) & (weight > 0)).all():
        raise InvalidInputError("verified_weight must be finite and above 0 where somebody checked")
    return Verification(codes, weight)


def refuse_known_ratio(clean_ratio: Any) -> None:
    """Refuse a share of right labels beside checked labels, which say it."""
    if clean_ratio != "auto":
        raise InvalidInputError(
            f"verified_labels say how many labels are right; got clean_ratio={clean_ratio} too: pass clean_ratio='auto'"
        )


def _encode(verified_labels: Any, cells: Cells, given: int) -> NDArray[np.int64]:
    """Return the code of each given row's checked class, −1 where it is None, NaN, NA or masked."""
    if isinstance(verified_labels, np.ma.MaskedArray):
        values = verified_labels.data.astype(object)
        values[np.ma.getmaskarray(verified_labels)] = None
    else:
        values = np.asarray(verified_labels, dtype=object)
    if values.shape != (given,):
        raise InvalidInputError(
            f"verified_labels must have one value per sample, the shape ({given},); got {values.shape}: use None or "
            "NaN where nobody checked"
        )
    unknown = missing_in(values)
    if unknown.all():
        raise InvalidInputError(
            f"verified_labels must have a value where somebody checked; all {given} are missing: leave it out"
        )
    places = {value: code for code, value in enumerate(cells.classes)}
    codes = np.full(given, -1, np.int64)
    for row in np.flatnonzero(~unknown):
        code = places.get(values[row]) if isinstance(values[row], Hashable) else None
        if code is None:
            raise InvalidInputError(
                f"verified_labels must be among the classes of y, {shown(cells.classes)}; got {shown(values[row])} in "
                f"row {int(row)}"
            )
        codes[row] = code
    return codes


class UncheckedGroupWarning(FairsieveWarning):
    """Nobody checked a row of a group; ``group`` tells which."""

    def __init__(self, group: Any) -> None:
        self.group = group
        super().__init__(
            f"verified_labels has no checked row of the group {shown(group)}: its rates are taken from the other groups"
        )


def _warn_of_verified(codes: NDArray[np.int64], features: Any, cells: Cells) -> None:
    """Warn of too few checked rows, groups without any, and equal rows that were checked differently."""
    checked = np.flatnonzero(codes >= 0)
    if len(checked) < FEW:
        warnings.warn(
            f"verified_labels has {len(checked)} checked {'row' if len(checked) == 1 else 'rows'}, which is too few to "
            f"learn from: those labels are corrected, and nothing else follows; check {FEW} or more",
            FairsieveWarning,
            stacklevel=4,
        )
        return  # no rates are learnt from them, of no group
    counts = np.bincount(cells.group_codes[checked], minlength=cells.shape[1])[: cells.named_groups]
    for group in np.flatnonzero(counts == 0):
        warnings.warn(UncheckedGroupWarning(cells.groups[group]), stacklevel=4)
    table = dense(features[checked]).reshape(len(checked), -1)
    table = np.column_stack([table, cells.group_codes[checked]])
    different, kinds = np.unique(table, axis=0, return_inverse=True)
    classes = pd.Series(codes[checked]).groupby(kinds.reshape(-1)).transform("nunique")
    rows = int((classes > 1).sum())
    if rows and 2 * len(different) > len(checked):  # in a table of few different rows that is no surprise
        warnings.warn(
            f"verified_labels contradict each other: {rows} of {len(checked)} checked rows equal another one that was "
            "checked to be of another class. Both are used; look at them again",
            FairsieveWarning,
            stacklevel=4,
        )
