"""Say in plain words why a label may be wrong, and which columns matter for it."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import NearestNeighbors

from fairsieve.report.number_format import percent
from fairsieve.tabular.reading.features import Values
from fairsieve.tabular.reading.table import TextColumn

__all__ = ["Explained", "explain_labels"]

MOST_ROWS = 20_000  # that the model and the neighbours are taken from
NEIGHBOURS = 20
TELLING = 3  # columns that are named
UNUSUAL = 0.01  # share of the rows with such a value, or one farther out
AT_RANDOM = (
    "Nothing speaks clearly against this label. Some rows are chosen at random, so that the answers tell how many "
    "labels are wrong in the whole table."
)


@dataclass(frozen=True)
class Explained:
    """What is said about the label of one row.

    Attributes
    ----------
    suggested : int
        Code of the likeliest label.
    columns : list of str
        The columns that a model sees, those that matter most for this row first.
    weight : dict of float
        How much each of them matters.
    reasons : list of str
    """

    suggested: int
    columns: list[str]
    weight: dict[str, float]
    reasons: list[str]


def explain_labels(
    numbers: NDArray[np.float32],
    columns: Sequence[str],
    values: Values,
    codes: NDArray[np.int64],
    classes: Sequence[str],
    places: NDArray[np.int64],
    *,
    true_class: NDArray[np.float64] | None = None,
    seed: int = 0,
) -> list[Explained]:
    """Explain the labels of the rows at ``places`` by a model and by neighbours that were not among them.

    Parameters
    ----------
    numbers : array of shape (n, d)
        What a model sees.
    columns : d names
        The column of the table that each of them was made of.
    values : dict
        The columns themselves.
    codes : n integers
        The given labels.
    classes : sequence of str
    places : integers
        The rows to explain.
    true_class : array of shape (len(places), classes), optional
        Estimated chances of their true labels, where the estimate is conclusive.
    """
    learnt = _reference_rows(codes, places, seed)
    model = _fit_model(numbers[learnt], codes[learnt], len(classes))
    chances = model.chances(numbers[places])
    near = NearestNeighbors(n_neighbors=min(NEIGHBOURS, len(learnt)), algorithm="brute").fit(numbers[learnt])
    neighbours = codes[learnt][near.kneighbors(numbers[places], return_distance=False)]
    centre = numbers[learnt].mean(axis=0)
    names = list(dict.fromkeys(columns))
    found = []
    for i, place in enumerate(places):
        given = int(codes[place])
        likely = chances[i] if true_class is None else true_class[i]
        suggested = int(likely.argmax())
        rival = suggested if suggested != given else _best_other(chances[i], given)
        pull = model.pull(numbers[place] - centre, given, rival)
        by_column = dict.fromkeys(names, 0.0)
        for name, amount in zip(columns, pull, strict=True):
            by_column[name] += float(amount)
        order = sorted(names, key=lambda name: -abs(by_column[name]))
        doubt = None if true_class is None else 1 - float(true_class[i, given])
        reasons = [] if suggested != given else [AT_RANDOM]
        reasons.append(_model_reason(chances[i], given, rival, classes))
        reasons.append(_neighbours_reason(neighbours[i], given, rival, classes))
        reasons += _columns_reason(by_column, order, values, int(place), classes[rival])
        if doubt is not None:
            reasons.append(f"The estimated chance that the label is wrong is {percent(doubt)}.")
        reasons += _unusual_reason(values, order, int(place))
        weight = {name: abs(amount) for name, amount in by_column.items()}
        found.append(Explained(suggested, order, weight, reasons))
    return found


def _reference_rows(codes: NDArray[np.int64], places: NDArray[np.int64], seed: int) -> NDArray[np.int64]:
    """Choose the rows that are learnt from: others than those to explain, unless these are nearly all."""
    other = np.setdiff1d(np.arange(len(codes)), places)
    if len(other) < len(codes) / 2 or len(np.unique(codes[other])) < len(np.unique(codes)):
        other = np.arange(len(codes))
    return np.sort(np.random.default_rng(seed).permutation(other)[:MOST_ROWS])


@dataclass(frozen=True, eq=False)
class _Linear:
    """A linear model of the labels: coefficients of each class, and intercepts."""

    coef: NDArray[np.float64]
    intercept: NDArray[np.float64]

    def chances(self, numbers: NDArray[Any]) -> NDArray[np.float64]:
        """Compute the probabilities of the classes."""
        scores = numbers @ self.coef.T + self.intercept
        scores = np.exp(scores - scores.max(axis=1, keepdims=True))
        return np.asarray(scores / scores.sum(axis=1, keepdims=True))

    def pull(self, away: NDArray[Any], given: int, rival: int) -> NDArray[np.float64]:
        """Compute how much each number speaks for ``rival`` and against ``given``."""
        return np.asarray((self.coef[rival] - self.coef[given]) * away)


def _fit_model(numbers: NDArray[Any], codes: NDArray[np.int64], classes: int) -> _Linear:
    """Fit a logistic regression to given labels."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        fitted = LogisticRegression(max_iter=200).fit(numbers, codes)
    coef, intercept = np.zeros((classes, numbers.shape[1])), np.full(classes, -1e3)
    if len(fitted.classes_) == 2:
        low, high = fitted.classes_
        coef[high], intercept[[low, high]] = fitted.coef_[0], [0.0, fitted.intercept_[0]]
    else:
        coef[fitted.classes_], intercept[fitted.classes_] = fitted.coef_, fitted.intercept_
    return _Linear(coef, intercept)


def _best_other(chances: NDArray[np.float64], given: int) -> int:
    """Find the likeliest class but one."""
    return int(np.where(np.arange(len(chances)) == given, -1.0, chances).argmax())


def _model_reason(chances: NDArray[np.float64], given: int, rival: int, classes: Sequence[str]) -> str:
    """Say what a model thinks that did not see the row."""
    return (
        f"A linear model that did not see this row gives {classes[given]} a chance of {percent(chances[given])} and "
        f"{classes[rival]} {percent(chances[rival])}."
    )


def _neighbours_reason(codes: NDArray[np.int64], given: int, rival: int, classes: Sequence[str]) -> str:
    """Say how the most similar rows are labelled."""
    same, other = int((codes == given).sum()), int((codes == rival).sum())
    return f"Of the {len(codes)} most similar rows, {same} are labelled {classes[given]} and {other} {classes[rival]}."


def _columns_reason(
    amounts: dict[str, float], order: Sequence[str], values: Values, place: int, rival: str
) -> list[str]:
    """Name the columns that speak most for another label."""
    most = max(map(abs, amounts.values()), default=0.0)
    telling = [name for name in order if amounts[name] > max(0.1 * most, 1e-9)][:TELLING]
    if not telling:
        return []
    listed = ", ".join(f"{name} ({_shown_value(values[name], place)})" for name in telling)
    return [f"What speaks most for {rival}: {listed}."]


def _shown_value(column: NDArray[np.float64] | TextColumn, place: int) -> str:
    """Write the value of a row as people do."""
    if isinstance(column, TextColumn):
        code = column.codes[place]
        return "missing" if code < 0 else str(column.values[code])
    return "missing" if np.isnan(column[place]) else f"{column[place]:.6g}"


def _unusual_reason(values: Values, order: Sequence[str], place: int) -> list[str]:
    """Name the values that hardly any other row has."""
    told = []
    for name in order:
        column = values[name]
        if isinstance(column, TextColumn):
            code = column.codes[place]
            if code >= 0 and column.counts[code] <= UNUSUAL / 2 * len(column):
                told.append(
                    f"{name} ({column.values[code]}: in {column.counts[code]:,} of {len(column):,} rows)"
                )
            continue
        value, known = column[place], column[~np.isnan(column)]
        if np.isnan(value):
            continue
        above, below = float((known >= value).mean()), float((known <= value).mean())
        if above <= UNUSUAL:
            told.append(f"{name} ({value:.6g}: as high in {percent(above)} of the rows)")
        elif below <= UNUSUAL:
            told.append(f"{name} ({value:.6g}: as low in {percent(below)} of the rows)")
    return [f"Unusual: {', '.join(told[:TELLING])}."] if told else []
