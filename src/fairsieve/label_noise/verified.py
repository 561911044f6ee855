"""Labels to show to a person, and what users pass as labels that somebody checked."""

from __future__ import annotations

import warnings
from collections.abc import Hashable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from fairsieve.errors import FairsieveWarning, InvalidInputError
from fairsieve.inputs import Checked, dense
from fairsieve.samples import Samples
from fairsieve.selection.cells import Cells, missing_in, unmasked
from fairsieve.training.linear_model import log_probabilities
from fairsieve.validation import shown

if TYPE_CHECKING:
    from fairsieve.label_noise.estimate import CleanRatioEstimate

Floats = NDArray[np.float64]

FEW = 10
DOUBTED = 0.25  # share of the rows to check next that goes to labels in doubt


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


def gain_on_checked(
    estimate: CleanRatioEstimate, first: NDArray[np.int64], second: NDArray[np.int64], weights: Floats
) -> tuple[float, float]:
    """Estimate how much more often the first of two models predicts the true class, and the standard error of that.

    All rows count by their chances, and how far these are off is seen on the checked rows, for chances that were not
    learnt from the row itself. One more check, which says the opposite, is imagined: a few may agree by chance.
    """
    codes, unseen = estimate.verified_codes, estimate.unseen
    if codes is None or unseen is None:
        raise ValueError("nothing was learnt from checked labels")
    every, rows = np.arange(len(codes)), np.flatnonzero(codes >= 0)
    expected = unseen[every, first] - unseen[every, second]
    checks = np.ones(len(rows)) if estimate.verified_weight is None else estimate.verified_weight[rows]
    seen = (first == codes)[rows].astype(float) - (second == codes)[rows]
    off, size = seen - expected[rows], checks.sum() ** 2 / (checks**2).sum()
    mean = float(np.average(off, weights=checks))
    variance = float(np.average((off - mean) ** 2, weights=checks)) + 1 / size
    return float(np.average(expected, weights=weights)) + mean, float(np.sqrt(variance / size))


# ---- Which labels to check


def suspects_of(
    decision: NDArray[np.float64],
    data: Samples,
    believed: NDArray[np.int64],
    rows: NDArray[np.int64],
    *,
    wrong: NDArray[np.float64] | None = None,
    share: float = 1.0,
) -> pd.DataFrame:
    """List the samples that are not believed, the likeliest wrong label first.

    Without ``wrong`` only those to which the model would give another label: a selection leaves out others too, so
    that no group falls behind.

    Parameters
    ----------
    decision : array
        Logits of all samples of ``data``, as ``decision_function`` gives them.
    believed : integer array
        The samples whose labels are not in doubt.
    rows : integer array
        What to call the samples.
    wrong : array, optional
        How likely each label is wrong, which ranks them; the losses rank them when None.
    share : float
        The largest share of all samples to list.

    Examples
    --------
    >>> data = Samples(np.zeros((3, 1)), ["no", "no", "yes"], ["a", "b", "b"])
    >>> found = suspects_of(np.array([3.0, 1.0, 2.0]), data, np.array([2]), np.arange(3))
    >>> found[["row", "label", "suggested"]].to_numpy().tolist()
    [[0, 'no', 'yes'], [1, 'no', 'yes']]
    """
    in_doubt = np.ones(len(data), bool)
    in_doubt[believed] = False
    left = np.flatnonzero(in_doubt)
    logs, labels = log_probabilities(decision[left]), data.cells.label_codes[left]
    losses = -logs[np.arange(len(left)), labels]
    order = np.lexsort((-losses, np.zeros(len(left)) if wrong is None else -wrong[left]))
    if wrong is None:
        order = order[(logs.argmax(axis=1) != labels)[order]][: round(share * len(data))]
    left, losses, chances = left[order], losses[order], np.exp(logs[order])
    groups = np.empty(len(data.cells.groups), dtype=object)
    groups[:] = data.cells.groups  # element by element: crossed groups are tuples
    return pd.DataFrame(
        {
            "row": rows[left],
            "label": data.labels[left],
            "suggested": np.asarray(data.cells.classes, data.labels.dtype)[chances.argmax(axis=1)],
            "loss": losses,
            "probability": chances.max(axis=1),
            "group": groups[data.cells.group_codes[left]],
        }
    )


def choose_rows(
    n: int,
    open_: NDArray[np.bool_],
    wrong: NDArray[np.float64],
    cells: Cells,
    rng: np.random.Generator,
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Choose ``n`` of the rows that are open, each at a known chance; return the inverse of their chances, with mean 1.

    (Choosing half of the rows by how much their check would tell about the others trained no better models.)
    """
    share = open_ / open_.sum()
    doubt = open_ * wrong * (1 - wrong)
    if doubt.sum() > 0:
        share = (1 - DOUBTED) * share + DOUBTED * doubt / doubt.sum()
    chance = _inclusion(share, n)
    order = np.lexsort((rng.random(len(open_)), wrong, cells.codes))
    turns = np.cumsum(chance[order])
    ticks = (np.arange(n) + rng.random()) * turns[-1] / n
    rows = order[np.minimum(np.searchsorted(turns, ticks), len(order) - 1)]
    weights = 1.0 / chance[rows]
    return rows, weights / weights.mean()


def _inclusion(share: NDArray[np.float64], n: int) -> NDArray[np.float64]:
    """Return chances to be chosen that follow the shares, none above 1, with the sum ``n``.

    >>> _inclusion(np.array([0.5, 0.25, 0.25, 0.0]), 2).tolist()
    [1.0, 0.5, 0.5, 0.0]
    >>> _inclusion(np.array([0.8, 0.1, 0.1, 0.0]), 2).tolist()
    [1.0, 0.5, 0.5, 0.0]
    """
    chance, sure = n * share, np.zeros(len(share), bool)
    while (chance > 1 + 1e-12).any():
        sure |= chance >= 1
        rest = np.where(sure, 0.0, share)
        chance = np.where(sure, 1.0, rest * (n - sure.sum()) / max(rest.sum(), 1e-300))
    return np.asarray(chance)
