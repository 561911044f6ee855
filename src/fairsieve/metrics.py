"""Rates of groups, and accuracy and disparities of predictions, in fairlearn's calling convention.

Every metric here is a function of one table: how many samples of each label and group were
predicted as each class. The disparities follow the paper: the largest distance between a group's
rate and the overall rate (``method="to_overall"``). ``method="between_groups"`` is the largest
distance between two groups, which is fairlearn's own default.

A sample whose group is missing counts for accuracy and not for any disparity.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from statistics import NormalDist
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from fairsieve.errors import InvalidInputError
from fairsieve.notions import DP, EER, EO, EOPP, PP, Rate, find_notion
from fairsieve.samples import check_weights
from fairsieve.selection.cells import (
    Cells,
    Flags,
    Floats,
    Values,
    as_array,
    divide,
    encode,
    encode_groups,
    fractions_in,
    is_ungrouped,
)
from fairsieve.validation import check_choice, shown

Method = Literal["to_overall", "between_groups"]
Table = Floats  # (…, classes, groups, predicted classes)


def accuracy(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    sensitive_features: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Compute the share of right predictions. ``sensitive_features`` is accepted and makes no difference.

    >>> accuracy(["no", "yes"], ["no", "no"])
    0.5
    """
    samples = len(as_array("y_true", y_true))
    groups = np.zeros(samples, int) if sensitive_features is None else sensitive_features
    return float(accuracy_from_table(confusion_table(y_true, y_pred, groups, sample_weight)[0]))


def equalized_odds_disparity(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    sensitive_features: ArrayLike,
    sample_weight: ArrayLike | None = None,
    method: Method = "to_overall",
) -> float:
    """Compute max over z, y, ŷ of ``|Pr(ŷ | z, y) − Pr(ŷ | y)|``: how far groups of the same label differ.

    With two classes the maximum over ŷ changes nothing and this is the paper's EO disparity. A group
    with no sample of a label is left out for that label.

    >>> equalized_odds_disparity([0, 0, 1, 1], [0, 1, 1, 1], sensitive_features=["a", "b", "a", "b"])
    0.5
    """
    return _disparity(EO, y_true, y_pred, sensitive_features, sample_weight, method)


def demographic_parity_disparity(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    sensitive_features: ArrayLike,
    sample_weight: ArrayLike | None = None,
    method: Method = "to_overall",
) -> float:
    """Compute max over z, ŷ of ``|Pr(ŷ | z) − Pr(ŷ)|``: how far groups differ in what is predicted.

    >>> demographic_parity_disparity([0, 1], [0, 1], sensitive_features=["a", "b"], method="between_groups")
    1.0
    """
    return _disparity(DP, y_true, y_pred, sensitive_features, sample_weight, method)


def equal_opportunity_disparity(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    sensitive_features: ArrayLike,
    sample_weight: ArrayLike | None = None,
    method: Method = "to_overall",
    pos_label: Any = None,
) -> float:
    """Compute max over z of ``|Pr(ŷ = y | z, y) − Pr(ŷ = y | y)|`` for the positive label y alone.

    ``pos_label`` is the last label in sorted order when None, and must be given with three or more.

    >>> equal_opportunity_disparity([0, 0, 1, 1], [0, 1, 1, 0], sensitive_features=["a", "b", "a", "b"])
    0.5
    """
    return _disparity(EOPP, y_true, y_pred, sensitive_features, sample_weight, method, pos_label)


def equal_error_rate_disparity(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    sensitive_features: ArrayLike,
    sample_weight: ArrayLike | None = None,
    method: Method = "to_overall",
) -> float:
    """Compute max over z of ``|Pr(ŷ ≠ y | z) − Pr(ŷ ≠ y)|``: how far groups differ in how often they are mistaken.

    >>> equal_error_rate_disparity([0, 0, 1, 1], [0, 1, 1, 1], sensitive_features=["a", "b", "a", "b"])
    0.25
    """
    return _disparity(EER, y_true, y_pred, sensitive_features, sample_weight, method)


def predictive_parity_disparity(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    sensitive_features: ArrayLike,
    sample_weight: ArrayLike | None = None,
    method: Method = "to_overall",
    pos_label: Any = None,
) -> float:
    """Compute max over z of ``|Pr(y | z, ŷ = y) − Pr(y | ŷ = y)|`` for the positive label y alone.

    ``pos_label`` is the last label in sorted order when None, and must be given with three or more. A group that is
    never predicted positive is left out.

    >>> predictive_parity_disparity([0, 1, 1, 1], [1, 1, 1, 1], sensitive_features=["a", "a", "b", "b"])
    0.25
    """
    return _disparity(PP, y_true, y_pred, sensitive_features, sample_weight, method, pos_label)


def disparity(
    fairness: str,
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    sensitive_features: ArrayLike,
    sample_weight: ArrayLike | None = None,
    method: Method = "to_overall",
    pos_label: Any = None,
) -> float:
    """Compute the disparity of any notion of fairness, by its name: the largest distance in the rates it compares.

    ``pos_label`` matters where the notion is about the positive class alone, see :class:`fairsieve.notions.Notion`.

    >>> disparity("equal-opportunity", [0, 0, 1, 1], [0, 1, 1, 0], sensitive_features=["a", "b", "a", "b"])
    0.5
    """
    return _disparity(fairness, y_true, y_pred, sensitive_features, sample_weight, method, pos_label)


def _disparity(
    fairness: str,
    y_true: ArrayLike,
    y_pred: ArrayLike,
    groups: ArrayLike,
    sample_weight: ArrayLike | None,
    method: Method,
    pos_label: Any = None,
) -> float:
    """Compute the disparity of a notion from samples, of which some must have a group."""
    notion = find_notion(fairness)
    table, classes, values = confusion_table(y_true, y_pred, groups, sample_weight)
    if values == [None]:
        raise InvalidInputError(
            "sensitive_features must have a group for some sample; all are missing: pass another column"
        )
    positive = -1
    if notion.needs_positive:
        positive = Cells(np.zeros(0, np.uint8), classes, []).class_index(pos_label)
    grouped = grouped_part(table, values)
    return float(disparity_from_table(grouped, notion.name, positive=positive, method=method))


def confusion_table(
    y_true: ArrayLike, y_pred: ArrayLike, groups: ArrayLike, sample_weight: ArrayLike | None = None
) -> tuple[Table, list[Any], list[Any]]:
    """Add up the weights of the samples by (label, group, prediction); return the classes and the groups in order.

    Samples without a group are in a last column, whose group is None.
    """
    true, pred = as_array("y_true", y_true), as_array("y_pred", y_pred)
    if true.shape != pred.shape or true.ndim != 1:
        raise InvalidInputError(
            f"y_true and y_pred must be of one dimension and equally long; got {true.shape} and {pred.shape}"
        )
    if len(true) == 0:
        raise InvalidInputError("y_true must have at least one sample; got none")
    _check_same_kind(true, pred)
    both, classes = encode("y_true and y_pred", np.concatenate([true, pred]))
    group_codes, group_values = encode_groups("sensitive_features", groups, missing="own")
    if len(group_codes) != len(true):
        raise InvalidInputError(
            f"sensitive_features must have one value per sample, {len(true)}; got {len(group_codes)}"
        )
    labels, predictions = both[: len(true)], both[len(true) :]
    # All rates would be 0, and every group alike.
    if len(np.unique(labels)) > 1 and not np.isin(predictions, labels).any():
        raise InvalidInputError(
            f"y_pred must be labels as those in y_true; it has {shown(classes[predictions[0]])}, and none of "
            f"{shown(classes[labels[0]])} and the others: write both in one way"
        )
    codes, sizes = (labels, group_codes, predictions), (len(classes), len(group_values))
    return count_table(*codes, *sizes, sample_weight), classes, group_values


def _check_same_kind(true: Values, pred: Values) -> None:
    """Refuse labels and predictions that cannot be compared: numbers with texts, or probabilities."""
    kinds = [array.dtype.kind for array in (true, pred)]
    if len({kind in "US" for kind in kinds if kind != "O"}) > 1:
        raise InvalidInputError(
            f"y_true and y_pred must be of one kind; got {true.dtype} and {pred.dtype}: convert one, for example with "
            "astype(str)"
        )
    between = fractions_in(pred)
    if len(between) and not len(fractions_in(true)):
        raise InvalidInputError(
            f"y_pred must be labels as those in y_true; got {shown(between[0])}, which is none: pass predict(…), not "
            "predict_proba(…)"
        )


def grouped_part(table: Table, groups: Sequence[Any]) -> Table:
    """Empty the column of the samples without a group, in one or more tables."""
    if not is_ungrouped(groups):
        return table
    kept = table.copy()
    kept[..., -1, :] = 0
    return kept


def count_table(
    labels: Values,
    groups: Values,
    predictions: Values,
    classes: int,
    n_groups: int,
    sample_weight: ArrayLike | None = None,
) -> Table:
    """Count the confusion table of codes."""
    weight = None if sample_weight is None else check_weights(sample_weight, len(labels))
    shape = classes, n_groups, classes
    cell = np.ravel_multi_index((labels, groups, predictions), shape)
    return np.bincount(cell, weight, math.prod(shape)).astype(np.float64).reshape(shape)


def expected_counts(counts: Floats) -> Floats:
    """Return what cells, classes × groups, would count if label and group were independent."""
    expected = counts.sum(axis=1, keepdims=True) * counts.sum(axis=0)
    return np.asarray(expected / max(float(counts.sum()), 1e-300))


def accuracy_from_table(table: Table) -> Floats:
    """Compute the accuracy of one or more confusion tables."""
    right = np.trace(table.sum(axis=-2), axis1=-2, axis2=-1)
    return np.asarray(right / np.maximum(table.sum(axis=(-3, -2, -1)), 1e-300))


def disparity_from_table(
    table: Table,
    fairness: str,
    *,
    positive: int = -1,
    method: Method = "to_overall",
    counted: Flags | None = None,
) -> Floats:
    """Compute the disparity of one or more confusion tables, in [0, 1]; leave out groups with no samples.

    Parameters
    ----------
    table : array of shape (…, classes, groups, predicted classes)
    fairness : str
    positive : int
        Code of the positive class.
    counted : array of shape (rates, groups), optional
        Which groups count for which rate, as :func:`has_enough` says.
    """
    check_choice("method", method, ("to_overall", "between_groups"))
    rates, overall, defined = _rates(table, fairness, positive, counted)
    if method == "to_overall":
        gaps = np.where(defined, np.abs(rates - overall), 0.0)
    else:
        highest = np.where(defined, rates, -np.inf).max(axis=-1)
        gaps = np.maximum(highest - np.where(defined, rates, np.inf).min(axis=-1), 0.0)[..., None]
    return np.asarray(gaps.max(axis=(-2, -1)))


def gaps_from_table(
    table: Table, fairness: str, *, positive: int = -1, counted: Flags | None = None
) -> Floats:
    """Compute each group's rates less those of all, of one or more confusion tables: the disparity is the largest.

    The shape is (…, rates, groups). The parameters are those of :func:`disparity_from_table`.

    >>> gaps_from_table(np.array([[[1.0, 1.0], [1.0, 3.0]]] * 2), "equal_opportunity").round(2).tolist()
    [[-0.17, 0.08]]
    """
    rates, overall, defined = _rates(table, fairness, positive, counted)
    return np.where(defined, rates - overall, 0.0)


def has_enough(table: Table, fairness: str, fewest: float, *, positive: int = -1) -> Flags:
    """Return which groups have enough people for which rates that a notion compares, (…, rates, groups).

    The rate of a few people is chance, and would decide the disparity.
    """
    return compared_rates(fairness, table.shape[-1], positive).count(table)[1] >= fewest


def _rates(
    table: Table, fairness: str, positive: int, counted: Flags | None = None
) -> tuple[Table, Table, Flags]:
    """Compute the rates that a notion compares, by group and of all, and where they are defined."""
    hits, totals = compared_rates(fairness, table.shape[-1], positive).count(table)
    if counted is not None:
        hits, totals = hits * counted, totals * counted
    overall = divide(*(part.sum(axis=-1, keepdims=True) for part in (hits, totals)))
    return divide(hits, totals), overall, totals > 0


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
        pull = divide(weights, counted)
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


# ---- Intervals of shares, and of the difference between two: 95 % by default, from counts alone

Bounds = tuple[float, float]

TAIL = 0.025  # of draws, beyond either end
NORMAL = 1.959963984540054  # 97.5 % of a normal distribution lie below


class Score(NamedTuple):
    """A number, and its 95 % interval."""

    value: float
    interval: Bounds

    def less(self, known: float) -> Score:
        """Subtract a number that is certain.

        >>> Score(0.5, (0.25, 0.75)).less(0.25)
        Score(value=0.25, interval=(0.0, 0.5))
        """
        low, high = self.interval
        return Score(self.value - known, (low - known, high - known))

    def within(self, least: float, most: float) -> Score:
        """Cut off what lies beyond all that is possible.

        >>> Score(0.5, (-0.25, 1.25)).within(0.0, 1.0)
        Score(value=0.5, interval=(0.0, 1.0))
        """
        low, high = self.interval
        return Score(self.value, (max(low, least), min(high, most)))

    def turned(self) -> Score:
        """Return the number with its sign changed."""
        low, high = self.interval
        return Score(-self.value, (-high, -low))


def simultaneous(count: int) -> float:
    """Return the deviations to take so that ``count`` intervals all hold with 95 % (Bonferroni).

    >>> round(simultaneous(1), 3), round(simultaneous(10), 3)
    (1.96, 2.807)
    """
    return NormalDist().inv_cdf(1 - 0.025 / max(count, 1))


def needed_deviations(apart: float) -> float:
    """Return the deviations to take at each end of what lies between two values ``apart`` deviations from each other.

    So that 95 % of such intervals hold a truth that is anywhere between them (Imbens and Manski 2004).

    >>> [round(needed_deviations(apart), 3) for apart in (0.0, 1.0, 10.0)]
    [1.96, 1.681, 1.645]
    """
    normal = NormalDist()
    low, high = normal.inv_cdf(1 - 2 * TAIL), NORMAL
    for _ in range(40):
        middle = (low + high) / 2
        missed = normal.cdf(-middle) + 1 - normal.cdf(middle + apart)
        low, high = (middle, high) if missed > 2 * TAIL else (low, middle)
    return high


def wilson(hits: float, total: float, normal: float = NORMAL) -> Bounds:
    """Compute Wilson's score interval of a share; from 0 to 1 where there is nobody.

    It stays within [0, 1] and is honest for few people and for shares near 0 and 1. ``normal`` is how many standard
    deviations are taken.

    Examples
    --------
    >>> [round(bound, 3) for bound in wilson(81, 263)]
    [0.255, 0.366]
    >>> wilson(0, 0)
    (0.0, 1.0)
    """
    if total <= 0:
        return 0.0, 1.0
    share, square = hits / total, normal**2
    middle = (share + square / (2 * total)) / (1 + square / total)
    half = normal / (1 + square / total) * math.sqrt(share * (1 - share) / total + square / (4 * total**2))
    # At the ends the bound is exact, and rounding must not put the share outside.
    low = 0.0 if hits <= 0 else middle - half
    return low, 1.0 if hits >= total else middle + half


def newcombe(
    hits: float, total: float, other_hits: float, other_total: float, normal: float = NORMAL
) -> Bounds:
    """Compute Newcombe's interval of one share less another, of different people (his method 10).

    Examples
    --------
    >>> [round(bound, 4) for bound in newcombe(56, 70, 48, 80)]
    [0.0524, 0.3339]
    """
    if total <= 0 or other_total <= 0:
        return -1.0, 1.0
    share, other = hits / total, other_hits / other_total
    low, high = wilson(hits, total, normal)
    other_low, other_high = wilson(other_hits, other_total, normal)
    below, above = math.hypot(share - low, other_high - other), math.hypot(high - share, other - other_low)
    return share - other - below, share - other + above


def average_of_shares(shares: Sequence[Bounds]) -> Bounds:
    """Compute the interval of the mean of several shares, (hits, total) each, of different people.

    It combines Wilson's intervals as Newcombe does for a difference.

    Examples
    --------
    >>> [round(bound, 4) for bound in average_of_shares([(56, 70), (48, 80)])]
    [0.623, 0.7632]
    """
    mean = sum(hits / total for hits, total in shares) / len(shares)
    bounds = [(hits / total, *wilson(hits, total)) for hits, total in shares]
    below = math.hypot(*(share - low for share, low, _ in bounds)) / len(shares)
    return mean - below, mean + math.hypot(*(high - share for share, _, high in bounds)) / len(shares)


def bound_value(values: Floats, compared: int = 1) -> Score:
    """Give a value, the first of ``values``, the interval of its draws, the others.

    ``compared`` intervals all hold with 95 % (Bonferroni). Draws are too few to show such ends themselves: those of one
    interval are moved away as far as normal ones would be.
    """
    value, further = float(values[0]), simultaneous(compared) / NORMAL
    low, high = (np.quantile(values[1:], [TAIL, 1 - TAIL]) - value).tolist()
    return Score(value, (value + min(low, 0.0) * further, value + max(high, 0.0) * further))


def bound_largest(values: Floats) -> Score:
    """Give the largest of several absolute values an interval, by inverting tests of each of them.

    The largest of several draws is too large by chance, so that its percentiles cannot contain 0. Instead the upper end
    is the highest of the ends of all values' own intervals, since it holds that of the value that is truly the largest;
    and the lower end is the highest of the lower ends of intervals that hold all together (a band by ranks, Besag and
    others 1995).

    Parameters
    ----------
    values : array of shape (1 + draws, values)
        The values, and draws of them.

    Examples
    --------
    >>> drawn = np.random.default_rng(0).normal([0.0, 0.1], 0.1, size=(1000, 2))
    >>> bound_largest(np.vstack([[0.0, 0.1], drawn])).interval[0]
    0.0
    """
    if not values.size:
        return Score(0.0, (0.0, 0.0))
    largest, drawn = float(np.abs(values[0]).max()), values[1:]
    low, high = np.quantile(drawn, [TAIL, 1 - TAIL], axis=0)
    upper = float(np.maximum(np.abs(low), np.abs(high)).max())
    ordered = np.sort(drawn, axis=0)
    ranks = drawn.argsort(axis=0).argsort(axis=0)
    extreme = np.minimum(ranks, len(drawn) - 1 - ranks).min(axis=1)
    place = int(np.quantile(extreme, TAIL, method="lower"))
    surely = np.maximum(ordered[place], -ordered[len(drawn) - 1 - place]).max()
    return Score(largest, (float(np.clip(surely, 0.0, largest)), max(upper, largest)))


def bound_change_of_largest(before: Floats, after: Floats) -> Score:
    """Give the change of the largest of several absolute values an interval, by inverting tests of differences.

    Where i is truly the largest of the later ones, the change is at most the absolute value i of the later
    ones less j of the earlier ones, whatever j. So its
    upper end is the highest over i of the lowest over j of upper ends for that difference, which hold for all j
    together. The lower end is the same with the sides changed.

    Parameters
    ----------
    before, after : arrays of shape (1 + draws, values)
        The values, and the same draws of both.

    Examples
    --------
    >>> values = np.vstack([[0.1], np.random.default_rng(0).normal(0.1, 0.1, size=(1000, 1))])
    >>> bound_change_of_largest(values, values - 0.05).interval[1] < 0
    False
    """
    if not before.size:
        return Score(0.0, (0.0, 0.0))
    value = float(np.abs(after[0]).max() - np.abs(before[0]).max())
    # values that cannot be the largest do not count
    first, second = (side[:, _contenders(side)] for side in (before, after))
    high, low = _highest_change(first, second), -_highest_change(second, first)
    return Score(value, (min(low, value), max(high, value)))


def _contenders(values: Floats) -> Flags:
    """Find the values that may be the largest: that one, and those whose own interval reaches it."""
    low, high = np.quantile(values[1:], [TAIL, 1 - TAIL], axis=0)
    sizes = np.abs(values[0])
    # Draws from few checked labels may all lie below the value itself.
    return np.asarray(np.maximum(sizes, np.maximum(np.abs(low), np.abs(high))) >= sizes.max())


def _highest_change(before: Floats, after: Floats) -> float:
    """Compute the upper end for the largest of ``after`` less the largest of ``before``."""
    sides = [np.concatenate([side, -side], axis=1) for side in (before, after)]
    centred = [side[1:] - side[1:].mean(axis=0) for side in sides]
    variance = [(side**2).mean(axis=0) for side in centred]
    shared = centred[1].T @ centred[0] / len(centred[0])
    squares = variance[1][:, None] + variance[0] - 2 * shared
    spread = np.sqrt(np.where(squares > 1e-12, squares, 0.0))  # what is left of equal draws is rounding
    # how many deviations hold for all of the earlier values together
    standard = np.abs(centred[0]) / np.sqrt(np.maximum(variance[0], 1e-300))
    factor = max(float(np.quantile(standard[:, : before.shape[1]].max(axis=1), 1 - 2 * TAIL)), NORMAL)
    differences = sides[1][0][:, None] - sides[0][0]
    return float((differences + factor * spread).min(axis=1).max())
