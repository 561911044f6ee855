"""Explain why the labels of some rows may be wrong, and which columns matter for each."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import softmax
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import NearestNeighbors

from fairsieve.report.text import load_sentences
from fairsieve.tabular.preparation import TablePart
from fairsieve.tabular.reading.columns import is_text

MOST_ROWS = 20_000  # that the model and the neighbours are taken from
MOST_WORK = 2e10  # multiplications spent on neighbours, so that many rows to explain get fewer candidates
CHUNK = 2**22  # numbers in memory together
NEIGHBOURS = 20
TELLING = 3  # columns that are named
UNUSUAL = 0.01  # share of the rows with such a value, or one farther out


@dataclass(frozen=True)
class Explained:
    """What is said about the label of one row.

    Attributes
    ----------
    suggested : int
        Code of the likeliest label.
    weight : dict of float
        How much each column that a model sees matters for this row, the most first.
    reasons : list of str
    """

    suggested: int
    weight: dict[str, float]
    reasons: list[str]


def explain_labels(
    part: TablePart,
    numbers: NDArray[np.float32],
    columns: Sequence[str],
    places: NDArray[np.int64],
    true_class: NDArray[np.float64] | None = None,
    seed: int = 0,
) -> list[Explained]:
    """Explain the labels of the rows at ``places`` by a model and by similar rows.

    Parameters
    ----------
    part : TablePart
        All rows with a label.
    numbers : array of shape (n, d)
        What a model sees of them.
    columns : d names
        The column of the table that each of these was made of.
    places : integers
        The rows to explain.
    true_class : array of shape (len(places), classes), optional
        Estimated chances of their true labels, where the estimate is conclusive.
    """
    codes, classes = part.label_codes, part.labels.categories.tolist()
    learnt, unseen = _reference_rows(codes, places, seed)
    model = _fit_model(numbers[learnt], codes[learnt], len(classes))
    near = _find_neighbours(numbers, codes, learnt, places)
    shown = {str(name): _describe_values(column, places) for name, column in part.values.items()}
    say = load_sentences("fairsieve.tabular", "templates/review.j2")
    found = []
    for i, one in enumerate(_judge_rows(*model, numbers, columns, codes, places, learnt, true_class)):
        given, suggested, rival, chances, pull = one
        names = classes[given], classes[rival]
        reasons = [say.at_random()] if suggested == given else []
        reasons.append(say.model(unseen, names[0], chances[given], names[1], chances[rival]))
        same, other = int((near[i] == given).sum()), int((near[i] == rival).sum())
        reasons.append(say.similar(near.shape[1], names[0], same, names[1], other))
        least = max(0.1 * max(map(abs, pull.values()), default=0.0), 1e-9)
        telling = [name for name, amount in pull.items() if amount > least][:TELLING]
        if telling:
            reasons.append(say.telling(names[1], [(name, shown[name][i][0]) for name in telling]))
        if true_class is not None:
            reasons.append(say.doubt(1 - true_class[i, given]))
        unusual = [(name, *shown[name][i]) for name in pull if shown[name][i][1] <= UNUSUAL]
        if unusual:
            reasons.append(say.unusual(unusual[:TELLING]))
        found.append(Explained(suggested, {name: abs(x) for name, x in pull.items()}, reasons))
    return found


def _reference_rows(
    codes: NDArray[np.int64], places: NDArray[np.int64], seed: int
) -> tuple[NDArray[np.int64], bool]:
    """Choose the rows to learn from; return whether they are others than those to explain, as far as there are."""
    other = np.setdiff1d(np.arange(len(codes)), places)
    unseen = len(other) >= len(codes) / 2 and len(np.unique(codes[other])) == len(np.unique(codes))
    chosen = np.random.default_rng(seed).permutation(other if unseen else len(codes))[:MOST_ROWS]
    return np.sort(chosen), unseen


def _fit_model(
    numbers: NDArray[Any], codes: NDArray[np.int64], classes: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Fit a logistic regression to given labels; return the coefficients of each class, and intercepts."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        fitted = LogisticRegression(max_iter=200).fit(numbers, codes)
    coef, intercept = np.zeros((classes, numbers.shape[1])), np.full(classes, -1e3)
    if len(fitted.classes_) == 2:
        low, high = fitted.classes_
        coef[high], intercept[[low, high]] = fitted.coef_[0], [0.0, fitted.intercept_[0]]
    else:
        coef[fitted.classes_], intercept[fitted.classes_] = fitted.coef_, fitted.intercept_
    return coef, intercept


def _find_neighbours(
    numbers: NDArray[np.float32],
    codes: NDArray[np.int64],
    learnt: NDArray[np.int64],
    places: NDArray[np.int64],
) -> NDArray[np.int64]:
    """Find the labels of the rows most similar to each, among as many as there is time for."""
    # Beside the distance, finding the smallest costs about as much as 50 columns.
    most = int(MOST_WORK / (len(places) * (numbers.shape[1] + 50)))
    step = -(-len(learnt) // max(most, NEIGHBOURS))
    learnt = learnt[::step]
    near = NearestNeighbors(n_neighbors=min(NEIGHBOURS, len(learnt)), algorithm="brute").fit(numbers[learnt])
    return np.asarray(codes[learnt][near.kneighbors(numbers[places], return_distance=False)])


def _judge_rows(
    coef: NDArray[np.float64],
    intercept: NDArray[np.float64],
    numbers: NDArray[np.float32],
    columns: Sequence[str],
    codes: NDArray[np.int64],
    places: NDArray[np.int64],
    learnt: NDArray[np.int64],
    true_class: NDArray[np.float64] | None,
) -> Iterator[tuple[int, int, int, NDArray[np.float64], dict[str, float]]]:
    """Compare the given label of each row with the likeliest other one.

    Yields the codes of the given label, of the suggested one and of the rival that the given one is compared with, the
    chances of all, and how columns speak for the rival, the most first.
    """
    names = list(dict.fromkeys(columns))
    made_of = np.equal.outer(columns, names).astype(np.float64)
    centre = numbers[learnt].mean(axis=0)
    size = max(CHUNK // max(numbers.shape[1], 1), 1)
    for start in range(0, len(places), size):
        here, given = numbers[places[start : start + size]], codes[places[start : start + size]]
        chances = softmax(here @ coef.T + intercept, axis=1)
        likely = chances if true_class is None else true_class[start : start + size]
        suggested = likely.argmax(axis=1)
        other = np.where(np.arange(chances.shape[1]) == given[:, None], -1.0, chances).argmax(axis=1)
        rival = np.where(suggested == given, other, suggested)
        pull = ((coef[rival] - coef[given]) * (here - centre)) @ made_of
        order = np.argsort(-np.abs(pull), axis=1, kind="stable")
        for i in range(len(here)):
            by_column = {names[place]: float(pull[i, place]) for place in order[i]}
            yield int(given[i]), int(suggested[i]), int(rival[i]), chances[i], by_column


def _describe_values(column: pd.Series, places: NDArray[np.int64]) -> list[tuple[str, float, str]]:
    """Describe the values of some rows: as people write them, and what share of all is as far out on which side.

    A missing one is not unusual.
    """
    if is_text(column):
        every, names = column.array.codes, column.array.categories
        shares = np.append(np.bincount(every[every >= 0], minlength=len(names)), len(column)) / len(column)
        return [("missing" if code < 0 else str(names[code]), shares[code], "") for code in every[places]]
    values, known = column.to_numpy()[places], np.sort(column.dropna().to_numpy())
    gap, most = np.isnan(values), max(len(known), 1)
    below = np.where(gap, 1.0, np.searchsorted(known, values, "right") / most)
    above = np.where(gap, 1.0, 1 - np.searchsorted(known, values, "left") / most)
    return [
        ("missing" if np.isnan(value) else f"{value:.6g}", min(low, high), "high" if high <= low else "low")
        for value, low, high in zip(values, below, above, strict=True)
    ]
