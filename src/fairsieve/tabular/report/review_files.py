"""Write rows to check: a page to answer on, and a CSV file to fill in."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

from fairsieve.files import write_output
from fairsieve.report.review_page import ReviewItem, ReviewSheet, render_review
from fairsieve.report.table_files import csv_text
from fairsieve.tabular.answers import ANSWER_COLUMNS, unsure_word
from fairsieve.tabular.label_review import LabelReview, RowToCheck
from fairsieve.tabular.report.phrases import estimate_sentence, group_name
from fairsieve.tabular.report.verdicts import upper
from fairsieve.tabular.request import data_name

__all__ = ["write_review"]


def write_review(found: LabelReview, page: Path) -> Path:
    """Write the page, and the CSV file beside it; return where that is."""
    table = page.with_suffix(".csv")
    write_output(table, _review_csv(found).encode())
    write_output(page, render_review(_review_sheet(found, table.name)).encode())
    return table


def _review_csv(found: LabelReview) -> str:
    """Write the rows to check with an empty column for answers, safe to open in a spreadsheet."""
    lines = (_fields(row) for row in found.rows)
    return csv_text([ANSWER_COLUMNS, *((*before, "", *after) for before, after in lines)])


def _fields(row: RowToCheck) -> tuple[list[str], list[str]]:
    """Return what stands before and after the answer in a row's line."""
    return [str(row.row), row.identifier or "", row.given], [f"{row.weight:.6g}", row.checksum]


def _review_sheet(found: LabelReview, file_name: str) -> ReviewSheet:
    """Lay out the page on which a person answers."""
    label, data = found.asked.label, data_name(found.asked.data)
    return ReviewSheet(
        title=f"Check labels: {label} in {data}",
        lead=(
            f"{len(found.rows):,} rows were chosen, partly at random and partly where it is least certain whether the "
            f"label is right, so that the answers tell about the whole table. For each, say whether {label} is right; "
            "if you do not know, say so."
        ),
        notes=_notes(found),
        key=f"fairsieve-review-{found.checksum}-{label}-{_joined_checksums(found)}",
        choices=list(found.classes),
        fields=[_field(text) for text in (*found.classes, unsure_word(found.classes))],
        columns=found.columns,
        header=csv_text([ANSWER_COLUMNS]).rstrip("\n"),
        file_name=file_name,
        items=[_item(row, found) for row in found.rows],
    )


def _notes(found: LabelReview) -> list[str]:
    """Say what is known of the labels, without calling one wrong where that cannot be known."""
    if not found.estimate.credible:
        return [
            "Which labels are wrong cannot be known from this table alone: the suggestions are guesses of a model. "
            "Your answers are what can tell."
        ]
    return [upper(estimate_sentence(found.estimate))]


def _item(row: RowToCheck, found: LabelReview) -> ReviewItem:
    """Lay out one row."""
    before, after = _fields(row)
    details = [] if row.identifier is None else [f"{found.id_column} {row.identifier}"]
    return ReviewItem(
        title=f"Row {row.row}",
        details=[*details, group_name(row.group)],
        given=found.classes.index(row.given),
        suggested=found.classes.index(row.suggested),
        reasons=row.reasons,
        values=list(row.values.items()),
        before=",".join(map(_field, before)) + ",",
        after="," + ",".join(map(_field, after)),
    )


def _field(text: str) -> str:
    """Write one field as it stands in the file."""
    return csv_text([[text, ""]]).rstrip("\n").removesuffix(",")


def _joined_checksums(found: LabelReview) -> str:
    """Name the choice of rows, so that another choice from the same table starts with no answers."""
    return sha256("".join(row.checksum for row in found.rows).encode()).hexdigest()[:8]
