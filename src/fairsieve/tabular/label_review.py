"""Choose rows of a table whose labels a person should check, and explain each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairsieve.errors import InvalidInputError
from fairsieve.label_noise.estimate import CleanRatioEstimate
from fairsieve.optional import package
from fairsieve.report.text import load_sentences
from fairsieve.tabular.answers import row_checksums, table_checksum
from fairsieve.tabular.label_audit import estimate_part
from fairsieve.tabular.label_reasons import Explained, explain_labels
from fairsieve.tabular.preparation import WholeTable, read_whole
from fairsieve.tabular.reading.encoding import Preparation
from fairsieve.tabular.reading.table import find_column
from fairsieve.tabular.request import Asked
from fairsieve.tabular.table_prediction import predict_table
from fairsieve.validation import check_at_least

__all__ = ["REVIEW_STAGES", "LabelReview", "RowToCheck", "review_labels"]

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
class LabelReview:
    """Rows of a table to check, and what is known of its labels.

    Attributes
    ----------
    asked : Asked
    id_column : str or None
    classes : tuple of str
    rows : list of RowToCheck
    columns : list of str
        Those that matter most over all rows first.
    estimate : CleanRatioEstimate
    checksum : str
        Of the table.
    notes : list of str
    """

    asked: Asked
    id_column: str | None
    classes: tuple[str, ...]
    rows: list[RowToCheck]
    columns: list[str]
    estimate: CleanRatioEstimate
    checksum: str
    notes: list[str]

    @property
    def frame(self) -> Any:
        """The rows as a data frame: what identifies them, the labels, and the original columns."""
        pandas = package("pandas", "a data frame of the rows to check")
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
        return pandas.DataFrame(found)


def review_labels(
    asked: Asked,
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
    asked : Asked
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
    part = whole.part
    prepared = Preparation().fit(part.values)
    numbers = prepared.transform(part.values)
    tell(REVIEW_STAGES[1])
    estimate, warned = estimate_part(part, numbers, asked.seed)
    tell(REVIEW_STAGES[2])
    places, weights = _choose_rows(estimate, count, asked.seed, len(part))
    explained = explain_labels(
        numbers,
        prepared.sources,
        part.values,
        part.label_codes,
        whole.labels.classes,
        places,
        true_class=estimate.true_class[places] if estimate.credible else None,
        seed=asked.seed,
    )
    rows = _describe_rows(whole, places, weights, explained, id_column, _predicted(run, asked, whole))
    columns = _order_columns(explained, list(rows[0].values))
    return LabelReview(
        asked=asked,
        id_column=id_column,
        classes=whole.labels.classes,
        rows=rows,
        columns=columns,
        estimate=estimate,
        checksum=table_checksum(whole.table),
        notes=[*whole.notes, *warned],
    )


def _choose_rows(
    estimate: CleanRatioEstimate, count: int, seed: int, rows: int
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Choose rows to check: as many as are asked for, or all that nobody checked."""
    codes = estimate.verified_codes
    left = rows if codes is None else int((codes < 0).sum())
    if not left:
        raise InvalidInputError("--verified must leave rows to check; every row of the table has an answer")
    return estimate.next_to_verify(min(count, left), seed)


def _predicted(run: Path | None, asked: Asked, whole: WholeTable) -> dict[int, str]:
    """Say what the model of a run predicts for each row, by its number; nothing without a run."""
    if run is None:
        return {}
    _, labels, probability, _ = predict_table(run, asked.data, asked.reading)
    say = load_sentences("fairsieve.tabular", "templates/review.j2").predicted
    told = [say(run.name, label, chance) for label, chance in zip(labels, probability, strict=True)]
    return dict(zip(whole.table.rows.tolist(), told, strict=True))


def _describe_rows(
    whole: WholeTable,
    places: NDArray[np.int64],
    weights: NDArray[np.float64],
    explained: Sequence[Explained],
    id_column: str | None,
    predicted: dict[int, str],
) -> list[RowToCheck]:
    """Collect everything that is shown of the chosen rows."""
    part, classes = whole.part, whole.labels.classes
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


def _order_columns(explained: Sequence[Explained], columns: list[str]) -> list[str]:
    """Order columns by how much they matter over all rows; those that no model sees come last."""
    matters = {name: sum(one.weight.get(name, -1.0) for one in explained) for name in columns}
    return sorted(columns, key=lambda name: -matters[name])
