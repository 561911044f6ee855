"""What is compared between groups, the ratios λ(y, z) that follow it or balance groups, and clean ratios by cell.

The paper moves one class by one fixed step (:func:`move_ratios`) towards the group with the higher training loss. A
training loss cannot tell "not learned yet" from "wrong", so a network's ratios follow no gap by themselves:
:class:`Balance` weights the groups of a class by (their share of what is kept)^α. Only gaps on held-out samples move α.

A notion of fairness is a list of *comparisons* here. Each looks at the cells of one class and at the losses of their
samples against one target label, and says which group's ratio should rise; :mod:`fairsieve.notions` lists them.

Clean ratios by cell are given as a table, or estimated from how many labels of each cell are doubted.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

import numpy as np

from fairsieve.errors import InvalidInputError
from fairsieve.notions import NOTIONS, OWN_LABEL, Comparisons, find_notion
from fairsieve.selection.cells import Cells, Flags, Floats, Integers, Values, as_array, positive_code
from fairsieve.validation import check_clean_ratio, shown

SignalName = Literal["loss", "error"]

CHANCE = 2.0  # standard errors up to which a gap may be chance
UNKNOWN = 0.75  # α where nothing is foretold: in none of 25 scenarios did it do harm
LEAST = 0.5  # of the share that its class keeps, for a cell, and of the share that all keep, for a class


def comparisons(fairness: str | None, cells: Cells, pos_label: Any = None) -> Comparisons:
    """Return what ``fairness`` compares between the groups of ``cells``; nothing when it is None.

    Examples
    --------
    >>> comparisons("equal_opportunity", Cells.of([0, 1], ["a", "b"])).rows
    [(0, 1, 1)]
    """
    if fairness is None:
        return Comparisons((OWN_LABEL,), [], by_group=False)
    notion = find_notion(fairness)
    if notion.list_comparisons is None:
        able = ", ".join(name for name, one in NOTIONS.items() if one.list_comparisons is not None)
        raise InvalidInputError(
            f"fairness must be one of {able} where the losses of cells are compared, as batch samplers, fit and the "
            f"paper's methods do; got {notion.name!r}: FairRobustClassifier and SieveClassifier take it"
        )
    return notion.list_comparisons(cells.shape[0], positive_code(fairness, cells, pos_label))


def class_shares(counts: Integers) -> Floats:
    """Return each cell's share of its class, from counts; equal shares for a class with no samples.

    Ratios start there.

    >>> class_shares(np.array([[1, 2], [1, 0]])).round(2).tolist()
    [[0.33, 0.67], [1.0, 0.0]]
    """
    totals = counts.sum(axis=1, keepdims=True)
    even = np.full(counts.shape, 1 / max(1, counts.shape[1]))
    return np.asarray(np.divide(counts, totals, out=even, where=totals > 0))


class LossGap(NamedTuple):
    """What one comparison found between the groups of a class."""

    label: int
    size: float  # between the two groups, rounded
    rising: int  # the group that should be seen more,
    falling: int  # and the one that should be seen less
    error: float  # one standard error of the size


def find_loss_gaps(
    sums: Floats,
    squares: Floats,
    sizes: Values,
    rows: Integers,
    *,
    by_group: bool,
    has_ungrouped: bool = False,
) -> list[LossGap | None]:
    """Return the widest gap of each comparison; None where there are no two groups with samples.

    Parameters
    ----------
    sums, squares : arrays of shape (targets, cells)
        Signals against each target, and their squares, summed over each cell's selected samples.
    sizes : array of shape (classes, groups)
        Selected samples of each cell, or what :func:`cell_sizes` makes of them.
    rows, by_group
        See :class:`fairsieve.notions.Comparisons`.
    has_ungrouped : bool
        Whether the last column holds the samples without a group, which are not compared.
    """
    over = np.broadcast_to(sizes.sum(axis=0), sizes.shape) if by_group else sizes
    found: list[LossGap | None] = []
    for target, label, sign in rows.tolist():
        groups = np.flatnonzero(sizes[label, :-1] if has_ungrouped else sizes[label])
        row = slice(label * sizes.shape[1], (label + 1) * sizes.shape[1])
        means, squared = (each[target, row][groups] / over[label, groups] for each in (sums, squares))
        places = rounded(sign * means)
        if not len(groups) or places.argmax() == places.argmin():
            found.append(None)
            continue
        pair = [int(places.argmax()), int(places.argmin())]
        with np.errstate(invalid="ignore"):  # losses may be infinite
            size = float(rounded(places[pair[0]] - places[pair[1]]))
            variances = np.maximum(squared[pair] - means[pair] ** 2, 0)
        rising, falling = groups[pair].tolist()
        error = float(np.sqrt((variances / over[label, groups[pair]]).sum()))
        found.append(LossGap(label, size, rising, falling, error))
    return found


def move_ratios(ratios: Floats, gaps: list[LossGap | None], step_size: float) -> None:
    """Move the ratios one step (Eq. 6), in place.

    Of all comparisons the one with the widest gap counts (the maximum in Eq. 5 and 8): ``step_size``
    of its class goes from the group that should fall to the group that should rise. Ratios stay in [0, 1]
    and every class keeps its sum.
    """
    open_gaps = [gap for gap in gaps if gap is not None and gap.size > 0]
    if open_gaps:
        widest = max(open_gaps, key=lambda gap: gap.size)
        label, rising, falling = widest.label, widest.rising, widest.falling
        amount = min(step_size, ratios[label, falling], 1 - ratios[label, rising])
        ratios[label, rising] = min(1.0, ratios[label, rising] + amount)
        ratios[label, falling] = max(0.0, ratios[label, falling] - amount)


class Balance:
    """The power α of each class, by which its groups are weighted.

    A number holds from the end of the warm-up on. ``"auto"`` is foretold by the network, see
    :class:`~fairsieve.sampling.forecast.Forecast`, and :data:`UNKNOWN` where it cannot be. Held-out samples move it by
    steps, between 1 and 0: down where the rarer group of a class does worse, up where the more frequent one does, and
    up where the weights cost accuracy.

    Parameters
    ----------
    compared : boolean array of shape (classes,)
        The classes that are balanced; the others have α = 1.
    power : float or "auto"
    tolerance : float
        Gaps of held-out rates up to this are left alone.
    epochs : int
        From the end of the warm-up to the end of the training, in which α can move by 1.
    """

    def __init__(self, compared: Flags, power: float | str, tolerance: float, epochs: int) -> None:
        self.compared, self.tolerance = compared, tolerance
        self.pace = 1 / max(1, epochs)
        self.is_foretold = isinstance(power, str) and bool(compared.any())
        self.powers = np.where(compared, UNKNOWN if isinstance(power, str) else power, 1.0)
        self.is_judged = False  # by held-out samples
        self.costs_accuracy = False

    def is_wide(self, gap: LossGap) -> bool:
        """Return whether a gap is wider than the tolerance, and than chance."""
        return gap.size > max(self.tolerance, CHANCE * gap.error)

    def follow(self, gaps: list[LossGap | None], kept: Integers, *, costs_accuracy: bool) -> None:
        """Move the powers by gaps of held-out rates; ``kept`` samples of each cell, classes × groups."""
        self.is_judged, self.costs_accuracy = True, costs_accuracy
        change = np.zeros(len(self.powers))
        for gap in gaps:
            if gap is not None and self.is_wide(gap):
                helps_rarer = kept[gap.label, gap.rising] < kept[gap.label, gap.falling]
                change[gap.label] += -1 if helps_rarer else 1
        change = np.ones(len(self.powers)) if costs_accuracy else np.sign(change)
        self.powers[self.compared] = np.clip(self.powers + self.pace * change, 0, 1)[self.compared]


def balanced_ratios(kept: Integers, powers: Floats, has_ungrouped: bool) -> Floats:
    """Return ratios that weight the groups of a class by (their share of what is kept)^power.

    Samples without a group keep their share.

    >>> balanced_ratios(np.array([[100, 900]]), np.array([0.5]), has_ungrouped=False).round(2).tolist()
    [[0.25, 0.75]]
    """
    ratios = class_shares(kept)
    shares = ratios[:, :-1] if has_ungrouped else ratios
    weights = np.where(shares > 0, np.maximum(shares, 1e-12) ** powers[:, None], 0.0)
    scale = shares.sum(axis=1, keepdims=True) / np.maximum(weights.sum(axis=1, keepdims=True), 1e-12)
    shares[:] = weights * scale  # writes into the ratios
    return ratios


def rounded(values: Any) -> Any:
    """Round means or gaps to multiples of 2⁻³², so that sums added up in another order compare alike."""
    return np.rint(values * 2.0**32) / 2.0**32


def cell_sizes(counts: Integers, by_group: bool, offset: float) -> Floats:
    """Return what the means of cells are taken over: their counts, and an offset where cells are compared.

    The paper's text has no offset; its authors' code has 1 for equalized odds. A cell without samples stays without.
    """
    sizes = counts.astype(np.float64)
    return sizes if by_group else np.where(counts > 0, sizes + offset, sizes)


def selection_bounds(ratios: Floats, has_ungrouped: bool) -> Floats:
    """Return the ratios that bound a selection; those of samples without a group bound nothing."""
    if not has_ungrouped:
        return ratios
    bounds = ratios.copy()
    bounds[:, -1] = 1.0  # Σk + k_c − K_y ≤ Σk
    return bounds


def check_ratio_table(value: Any, cells: Cells) -> Floats:
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


def cell_caps(ratios: Floats, counts: Integers) -> Integers:
    """Return the most samples of each cell under its clean ratio: ⌊ratio · n⌋, and one if there is any.

    >>> cell_caps(np.array([[0.29, 0.1]]), np.array([[100, 3]])).tolist()
    [29, 1]
    """
    caps = np.floor(ratios * counts + 1e-9).astype(np.int64)
    return np.minimum(np.maximum(caps, 1), counts).reshape(-1)


def estimate_ratios(below: Integers, counts: Integers) -> Floats:
    """Return clean ratios, from how many samples of each cell are not doubted, classes × groups.

    A cell that the network has not learned yet looks as if all its labels were wrong. Left out, it never would be
    learned: so it keeps at least half of the share that its class keeps, and a class half of that of all.

    >>> estimate_ratios(np.array([[90, 0], [80, 10]]), np.array([[100, 20], [100, 20]])).round(2).tolist()
    [[0.9, 0.38], [0.8, 0.5]]
    """
    of_class = below.sum(axis=1, keepdims=True) / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    of_class = np.maximum(of_class, LEAST * below.sum() / max(1, counts.sum()))
    return np.asarray(np.maximum(below / np.maximum(counts, 1), LEAST * of_class))
