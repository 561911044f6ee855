"""Learn how likely each class is the true one from labels that somebody checked."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fairsieve.errors import FairsieveWarning, InvalidInputError
from fairsieve.inputs import Checked
from fairsieve.label_noise.checked_sums import CheckedSums
from fairsieve.label_noise.true_class_model import TrueClassModel
from fairsieve.metrics import accuracy_from_table
from fairsieve.samples import Samples, check_weights
from fairsieve.selection.cells import Cells
from fairsieve.selection.missing import missing_in
from fairsieve.validation import shown

__all__ = [
    "Verification",
    "VerifiedRates",
    "check_verification",
    "check_verified",
    "learn_true_class",
    "refuse_known_ratio",
]

Floats = NDArray[np.float64]

MOST_CHECKED = 20_000  # rows that are learnt from
MOST_INFORMATIVE = 10_000  # rows among which those are sought whose check would tell most
DRAWS = 200
FEW = 10


@dataclass(frozen=True, eq=False)
class VerifiedRates:
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


def refuse_known_ratio(name: str, value: Any) -> None:
    """Refuse a parameter that says how labels went wrong beside checked labels, which say it."""
    if value != "auto":
        raise InvalidInputError(
            f"verified_labels say how many labels are right; got {name}={value} too: pass {name}='auto'"
        )


def check_verification(
    checked: Checked, verified_labels: Any, verified_weight: ArrayLike | None = None
) -> Verification | None:
    """Check what users pass as ``verified_labels`` and ``verified_weight``; None where there are none."""
    if verified_labels is None:
        if verified_weight is not None:
            raise InvalidInputError("verified_weight belongs to verified_labels, which is None: pass both")
        return None
    data = checked.data
    codes = check_verified(verified_labels, data.cells, checked.rows, checked.given)
    _warn_of_verified(codes, data.features, data.cells)
    if verified_weight is None:
        return Verification(codes, None)
    weight = np.asarray(verified_weight, np.float64)
    if weight.shape != (checked.given,):
        raise InvalidInputError(
            f"verified_weight must have one number per sample, the shape ({checked.given},); got {weight.shape}"
        )
    known = codes >= 0
    weight = np.where(known, weight[checked.rows], 1.0)
    if not (np.isfinite(weight[known]) & (weight[known] > 0)).all():
        raise InvalidInputError("verified_weight must be finite and above 0 where somebody checked")
    return Verification(codes, weight)


def check_verified(
    verified_labels: Any, cells: Cells, rows: NDArray[np.int64], given: int
) -> NDArray[np.int64]:
    """Return the code of each sample's checked class, −1 where nobody checked.

    Parameters
    ----------
    verified_labels : array
        One value per sample given; None, NaN, NA or masked where nobody checked.
    cells : Cells
        Of the samples that have a weight.
    rows : integer array
        Where those stand in what was given.
    given : int
        How many samples were given.
    """
    if isinstance(verified_labels, np.ma.MaskedArray):
        masked = np.ma.getmaskarray(verified_labels)
        values = np.asarray(verified_labels.data).astype(object)
        values[masked] = None
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
        code = places.get(_plain(values[row]))
        if code is None:
            raise InvalidInputError(
                f"verified_labels must be among the classes of y, {shown(cells.classes)}; got {shown(values[row])} in "
                f"row {int(row)}"
            )
        codes[row] = code
    return codes[rows]


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
    counts = np.bincount(cells.group_codes[checked], minlength=cells.shape[1])
    for group in np.flatnonzero((counts == 0) & (cells.counts.sum(axis=0) > 0)):
        warnings.warn(UncheckedGroupWarning(cells.groups[group]), stacklevel=4)
    table = np.asarray(features[checked].toarray() if hasattr(features, "toarray") else features[checked])
    table = np.column_stack([table.reshape(len(checked), -1), cells.group_codes[checked]])
    _, kinds = np.unique(table, axis=0, return_inverse=True)
    kinds = kinds.reshape(-1)
    pairs = np.unique(np.column_stack([kinds, codes[checked]]), axis=0)
    contradicted = np.bincount(pairs[:, 0], minlength=kinds.max() + 1) > 1
    rows = int(contradicted[kinds].sum())
    if rows and 2 * (kinds.max() + 1) > len(checked):  # in a table of few different rows that is no surprise
        warnings.warn(
            f"verified_labels contradict each other: {rows} of {len(checked)} checked rows equal another one that was "
            "checked to be of another class. Both are used; look at them again",
            FairsieveWarning,
            stacklevel=4,
        )


class _LearntChances(NamedTuple):
    """What was learnt from checked labels.

    Attributes
    ----------
    true_class : array of shape (n, classes)
        Chance of each true class; certain where somebody checked.
    unseen : array of shape (n, classes)
        The same, by models that did not see the check of the sample.
    rates : VerifiedRates
    interval : (float, float)
        Share of right labels, 95 %.
    information : array of shape (n,)
        How much a check of each sample would tell about the others; 0 beyond the samples it was computed for.
    """

    true_class: Floats
    unseen: Floats
    rates: VerifiedRates
    interval: tuple[float, float]
    information: Floats


def learn_true_class(
    scores: Floats,
    features: Floats,
    cells: Cells,
    codes: NDArray[np.int64],
    *,
    verified_weight: ArrayLike | None = None,
    seed: int = 0,
) -> _LearntChances:
    """Learn the chance of each true class of every sample.

    Parameters
    ----------
    scores : array of shape (n, classes − 1)
        Logits of a plain model of the given labels, out of fold.
    features : array of shape (n, columns)
        What else may say which labels are wrong; standardised here.
    codes : integer array
        The checked class of each sample, −1 where nobody checked.
    verified_weight : n numbers, optional
        For rows that were not checked at random: the inverse of the chance to be checked.
    """
    model = TrueClassModel(scores, features, cells)
    weights = np.ones(len(cells)) if verified_weight is None else check_weights(verified_weight, len(cells))
    rng = np.random.default_rng(seed)
    checked = np.flatnonzero((codes >= 0) & (weights > 0))
    rows = np.sort(rng.permutation(checked)[:MOST_CHECKED])
    own = weights[rows] / weights[rows].mean()
    found = model.fit(rows, codes[rows], own)
    true_class = model.chances(np.arange(len(cells)), found)
    unseen = true_class.copy()
    unseen[rows] = model.held_out(rows, codes[rows], own)
    true_class[checked] = np.eye(cells.shape[0])[codes[checked]]
    information, some = np.zeros(len(cells)), np.flatnonzero(codes < 0)
    some = np.sort(np.random.default_rng(seed).permutation(some)[:MOST_INFORMATIVE])
    information[some] = model.information(some)
    sums = CheckedSums(unseen, codes, cells.group_codes, cells.label_codes, cells.shape, inverse=weights)
    drawn = sums.draw(rng, DRAWS, rows=False)
    there = drawn.sum(axis=3)
    stays = np.einsum("bczc->bcz", drawn)
    wrong = 1 - np.divide(stays, there, out=np.full(there.shape, np.nan), where=there > 0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # cells without samples
        low, high = np.nanpercentile(wrong, [2.5, 97.5], axis=0)
    shares = accuracy_from_table(drawn)
    seen_wrong = np.zeros(cells.shape, bool)
    mistaken = checked[codes[checked] != cells.label_codes[checked]]
    seen_wrong[codes[mistaken], cells.group_codes[mistaken]] = True
    low = np.where(seen_wrong, low, 0.0)  # where no check found a wrong label there may be none
    flip_rates = _flip_rates(true_class, cells.label_codes, cells.group_codes, cells.shape)
    by_cell = np.bincount(cells.codes[checked], minlength=cells.counts.size).reshape(cells.shape)
    interval = (
        float(np.percentile(shares, 2.5)),
        float(np.percentile(shares, 97.5)) if len(mistaken) else 1.0,
    )
    found_rates = VerifiedRates(by_cell, np.nan_to_num(flip_rates), low, high)
    return _LearntChances(true_class, unseen, found_rates, interval, information)


def _flip_rates(
    true_class: Floats, labels: NDArray[np.int64], groups: NDArray[np.int64], shape: tuple[int, int]
) -> Floats:
    """Compute the chance of a label of each true class and group to be wrong, (classes, groups)."""
    there, gone = np.zeros(shape), np.zeros(shape)
    for c in range(shape[0]):
        chance = true_class[:, c]
        there[c] = np.bincount(groups, weights=chance, minlength=shape[1])
        gone[c] = np.bincount(groups, weights=chance * (labels != c), minlength=shape[1])
    return np.asarray(np.divide(gone, there, out=np.full(shape, np.nan), where=there > 0))


def _plain(value: Any) -> Any:
    """Return a NumPy scalar as the Python value that it stands for."""
    return value.item() if isinstance(value, np.generic) else value
