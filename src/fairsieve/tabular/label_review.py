"""Estimate which labels of a table are wrong, choose rows that a person should check, and explain each."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import softmax
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import NearestNeighbors

from fairsieve.errors import InvalidInputError
from fairsieve.label_noise.estimate import CleanRatioEstimate, estimate_clean_ratio
from fairsieve.report.text import load_sentences
from fairsieve.tabular.answers import row_checksums
from fairsieve.tabular.model_files import ARCHIVE, read_model
from fairsieve.tabular.models import choose_model, record_warnings, weigh_by_trees
from fairsieve.tabular.predictions import predict_table
from fairsieve.tabular.preparation import TablePart, TableProblem, named_estimate, read_whole
from fairsieve.tabular.reading.columns import as_objects, find_column, is_text
from fairsieve.tabular.reading.encoding import Preparation
from fairsieve.tabular.settings import TableSettings
from fairsieve.tabular.verified_change import tell_rates
from fairsieve.validation import check_at_least


@dataclass(frozen=True, eq=False, kw_only=True)
class Audit(TableProblem):
    """What the data say of themselves: a table in its roles, and what is estimated of its labels.

    Attributes
    ----------
    estimate : CleanRatioEstimate
        Its ``cells`` have the counts, its ``noise`` the share of wrong labels in each.
    suspects : dict of arrays
        The rows whose labels are more likely wrong than right, the surest first.
    model_name : str
        The kind of model that says which labels are wrong.
    """

    estimate: CleanRatioEstimate
    suspects: dict[str, NDArray[Any]]
    model_name: str = "logistic"


def audit_table(asked: TableSettings, report: Callable[[str], None] | None = None) -> Audit:
    """Count the cells of a table, estimate how many of its labels are wrong, and list those."""
    tell = report or (lambda stage: None)
    tell("reading the table")
    problem = read_whole(asked)
    part, notes = problem.train, problem.notes
    tell("estimating how many labels are wrong")
    choice = choose_model(problem) if asked.model == "auto" else None
    name = asked.model if choice is None else choice.name
    notes = notes if choice is None else [*notes, choice.note]
    if name == "logistic":
        # The models that the estimate itself compares say which labels are wrong.
        estimate, more = estimate_part(
            part, Preparation().fit(part.values).transform(part.values), asked.seed
        )
        notes = [*notes, *more]
        wrong = np.flatnonzero(estimate.wrong > 0.5) if estimate.credible else np.zeros(0, np.int64)
        rows = wrong[np.argsort(-estimate.wrong[wrong], kind="stable")]
        suggested = estimate.true_class[rows].argmax(axis=1)
        chances = estimate.true_class[rows, suggested]
    else:
        # Boosted trees say it out of fold.
        sieve = weigh_by_trees(problem, name)
        assert sieve.estimate_ is not None  # the flips are always estimated
        estimate, found = named_estimate(sieve.estimate_, part), sieve.suspects()
        found = found[(found["label"] != found["suggested"]) & bool(estimate.credible)]
        rows, suggested, chances = (found[name].to_numpy() for name in ("row", "suggested", "probability"))
    suspects = {
        "row": part.rows[rows],
        "label": as_objects(part.class_names(part.labels.codes[rows])),
        "suggested": as_objects(part.class_names(suggested)),
        "probability": chances,
        "group": as_objects(part.group_names(part.groups.codes[rows])),
    }
    problem = replace(problem, notes=[*tell_rates(estimate), *notes])
    return Audit(**vars(problem), estimate=estimate, suspects=suspects, model_name=name)


def estimate_part(
    part: TablePart, numbers: NDArray[np.float32], seed: int
) -> tuple[CleanRatioEstimate, list[str]]:
    """Estimate how many labels of some rows are wrong; return it with classes and groups by name, and warnings."""
    with record_warnings(part) as notes:
        found = estimate_clean_ratio(numbers, part.label_codes, random_state=seed, **part.facts)
    return named_estimate(found, part), notes


REVIEW_STAGES = ("reading the table", "estimating how many labels are wrong", "choosing rows to check")


@dataclass(frozen=True, kw_only=True)
class RowToCheck:
    """A row whose label a person should check.

    Attributes
    ----------
    row : int
        Numbered as in a spreadsheet.
    identifier : str or None
    given, suggested : str
        Labels.
    group : str or None
    reasons : list of str
    values : dict of str
        What stands in each column, those that matter first.
    weight : float
        The inverse of its chance to be chosen, up to a factor.
    checksum : str
    """

    row: int
    identifier: str | None
    given: str
    suggested: str
    group: str | None
    reasons: list[str]
    values: dict[str, str]
    weight: float
    checksum: str


@dataclass(frozen=True, eq=False, kw_only=True)
class LabelReview(TableProblem):
    """Rows of a table to check, and what is known of its labels.

    Attributes
    ----------
    id_column : str or None
    rows : list of RowToCheck
    columns : list of str
        Those that matter most over all rows first.
    estimate : CleanRatioEstimate
    """

    id_column: str | None
    rows: list[RowToCheck]
    columns: list[str]
    estimate: CleanRatioEstimate

    @property
    def frame(self) -> pd.DataFrame:
        """The rows as a data frame: what identifies them, the labels, and the original columns."""
        found = [
            {
                "row": one.row,
                "given_label": one.given,
                "suggested_label": one.suggested,
                "group": one.group,
                "sampling_weight": one.weight,
                "reasons": " ".join(one.reasons),
            }
            | {column: one.values[column] for column in self.columns}
            for one in self.rows
        ]
        return pd.DataFrame(found)


def review_labels(
    asked: TableSettings,
    count: int = 50,
    *,
    id_column: str | None = None,
    run: Path | None = None,
    report: Callable[[str], None] | None = None,
) -> LabelReview:
    """Choose rows by :meth:`~fairsieve.FairRobustClassifier.next_to_verify`, and explain them.

    Most of the choice is at random, spread over the cells; the rest is where it is least certain whether the label is
    right or, with answers, where a further one would tell most about the other rows. Weights make up for it: answers
    to these rows can be used without bias, answers to the likeliest suspects alone cannot.

    Parameters
    ----------
    asked : TableSettings
        Rows that its ``verified`` files answer are not asked about again.
    count : int
        How many rows.
    id_column : str, optional
        A column that identifies the rows to whoever checks them.
    run : Path, optional
        A run's folder; what its model predicts is told too.
    report : callable, optional
        Called with what begins, one of :data:`REVIEW_STAGES`.
    """
    tell = report or (lambda stage: None)
    check_at_least("--rows", count, 1)
    tell(REVIEW_STAGES[0])
    whole = read_whole(asked)
    if id_column is not None:
        find_column(whole.table, id_column, "--id")
    part = whole.train
    prepared = Preparation().fit(part.values)
    numbers = prepared.transform(part.values)
    tell(REVIEW_STAGES[1])
    estimate, warned = estimate_part(part, numbers, asked.seed)
    tell(REVIEW_STAGES[2])
    checked = estimate.verified_codes
    left = len(part) if checked is None else int((checked < 0).sum())
    if not left:
        raise InvalidInputError("--verified must leave rows to check; every row of the table has an answer")
    places, weights = estimate.next_to_verify(min(count, left), asked.seed)
    true_class = estimate.true_class[places] if estimate.credible else None
    explained = explain_labels(part, numbers, prepared.sources, places, true_class, asked.seed)
    rows = _describe_rows(whole, places, weights, explained, id_column, _predicted(run, asked, whole))
    # Columns that no model sees come last.
    matters = {name: sum(one.weight.get(name, -1.0) for one in explained) for name in rows[0].values}
    return LabelReview(
        **vars(replace(whole, notes=[*whole.notes, *warned])),
        id_column=id_column,
        rows=rows,
        columns=sorted(matters, key=lambda name: -matters[name]),
        estimate=estimate,
    )


def _predicted(run: Path | None, asked: TableSettings, whole: TableProblem) -> dict[int, str]:
    """Say what the model of a run predicts for each row, by its number; nothing without a run."""
    if run is None:
        return {}
    model = read_model(run)
    _, codes, chances, _ = predict_table(model, asked.data, asked.reading, run / ARCHIVE)
    say = load_sentences("fairsieve.tabular", "templates/review.j2").predicted
    told = [say(run.name, model.classes_[code], row[code]) for code, row in zip(codes, chances, strict=True)]
    return dict(zip(whole.table.rows.tolist(), told, strict=True))


def _describe_rows(
    whole: TableProblem,
    places: NDArray[np.int64],
    weights: NDArray[np.float64],
    explained: Sequence[Explained],
    id_column: str | None,
    predicted: dict[int, str],
) -> list[RowToCheck]:
    """Collect everything that is shown of the chosen rows."""
    part, classes = whole.train, whole.labels.classes
    numbers = part.rows[places]
    inside = np.searchsorted(whole.table.rows, numbers)
    chosen = whole.table.take(inside)
    texts = {
        name: ["" if value is None else str(value) for value in chosen.cells(name)] for name in chosen.columns
    }
    identifiers = texts.pop(id_column, None) if id_column is not None else None
    texts.pop(whole.labels.column, None)
    sums, groups = row_checksums(whole.table, inside), part.group_names(part.groups.codes[places])
    given = [classes[code] for code in part.labels.codes[places]]
    found = []
    for i, (row, one) in enumerate(zip(numbers.tolist(), explained, strict=True)):
        order = [name for name in dict.fromkeys((*one.weight, *texts)) if name in texts]
        found.append(
            RowToCheck(
                row=row,
                identifier=None if identifiers is None else identifiers[i],
                given=given[i],
                suggested=classes[one.suggested],
                group=groups[i],
                reasons=[*one.reasons, *([predicted[row]] if row in predicted else [])],
                values={name: texts[name][i] for name in order},
                weight=float(weights[i]),
                checksum=sums[i],
            )
        )
    return found


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
