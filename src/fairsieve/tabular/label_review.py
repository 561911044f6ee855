"""Estimate which labels of a table are wrong, and choose rows that a person should check."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fairsieve.errors import InvalidInputError
from fairsieve.label_noise.estimate import CleanRatioEstimate, estimate_clean_ratio
from fairsieve.report.text import load_sentences
from fairsieve.tabular.answers import row_checksums
from fairsieve.tabular.label_reasons import Explained, explain_labels
from fairsieve.tabular.model_files import ARCHIVE, read_model
from fairsieve.tabular.models import choose_model, record_warnings, weigh_by_trees
from fairsieve.tabular.predictions import predict_table
from fairsieve.tabular.preparation import TablePart, TableProblem, named_estimate, read_whole
from fairsieve.tabular.reading.columns import as_objects, find_column
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
