"""Write rows to check: a page to answer on, and a CSV file to fill in."""

from __future__ import annotations

import shlex
import tempfile
from hashlib import sha256
from itertools import count
from pathlib import Path
from typing import Any

from fairsieve.errors import InvalidInputError, spell
from fairsieve.files import check_new, clear_stale, hold, move_together, output_errors, write_whole
from fairsieve.report.page import fill_template
from fairsieve.report.text import csv_text, writable
from fairsieve.tabular.answers import ANSWER_COLUMNS, count_answers, unsure_word
from fairsieve.tabular.config import table_options
from fairsieve.tabular.decision import estimate_sentence, group_name
from fairsieve.tabular.label_review import LabelReview
from fairsieve.tabular.reasons import new_page, verified_options
from fairsieve.tabular.settings import TableSettings, data_name

HEADER = ",".join(ANSWER_COLUMNS)


def check_place(page: Path, *, force: bool = False) -> Path:
    """Check that a page may be written and its file for answers beside it; return where that is.

    Answers that somebody gave are never replaced, not even with ``force``.
    """
    if page.suffix.lower() not in (".html", ".htm"):
        raise InvalidInputError(
            f"{spell('--out')} must be a page, whose name ends in .html; got {page}: the file for answers gets the "
            "same name with .csv"
        )
    table = page.with_suffix(".csv")
    answers = count_answers(table)
    if answers:
        raise InvalidInputError(
            f"{spell('--out')} must not replace answers; {table} holds {answers:,}: name another page, such as -o "
            f"{new_page(page)}, and add {spell('--verified', str(table))} to use them"
        )
    for path in (page, table):
        check_new("--out", path, force=force)
    return table


def training_step(asked: TableSettings, table: Path) -> str:
    """Write the command that trains with all answers: those used before, and those to be filled into ``table``."""
    folder = next(path for number in count(2) if not (path := Path(f"run-{number}")).exists())
    words = [
        "fairsieve",
        "train",
        str(asked.data),
        *table_options(asked),
        *verified_options(*asked.verified, table),
    ]
    return shlex.join([*words, "-o", str(folder)])


def write_review(review: LabelReview, page: Path, *, force: bool = False) -> Path:
    """Write the page and the CSV file beside it, both or neither; return where that is."""
    table = check_place(page, force=force)
    contents = {table: _review_csv(review).encode(), page: _review_page(review, table.name).encode()}
    with output_errors(page), hold(page.parent, wait=True):  # another review of the same name waits
        clear_stale(page.parent, "review")
        made = tempfile.TemporaryDirectory(dir=page.parent, prefix=".review.", suffix=".part")
        with made as parts, hold(Path(parts)):
            # Both are whole on the disk before either appears under its name.
            for path, content in contents.items():
                write_whole(Path(parts, path.name), content)
            check_place(page, force=force)
            move_together(Path(parts), list(contents))
    return table


def _review_csv(review: LabelReview) -> str:
    """Write the rows to check with an empty column for answers, safe to open in a spreadsheet."""
    return writable("\n".join([HEADER, *("".join(_line(row)) for row in review.rows.itertuples()), ""]))


def _line(row: Any) -> tuple[str, str]:
    """Write what stands before and after the answer in a row's line."""
    before = csv_text([[row.row, row.id, row.given_label, ""]])
    return before.rstrip("\n"), f",{row.sampling_weight:.6g},{row.row_checksum}"


def _review_page(review: LabelReview, file_name: str) -> str:
    """Write the page on which a person answers; all text in it is shown as text, whatever it says."""
    # Another choice of rows from the same table starts with no answers.
    choice = sha256("".join(review.rows["row_checksum"]).encode()).hexdigest()[:16]
    words = (*review.labels.classes, unsure_word(review.labels.classes))
    rows = zip(review.rows.itertuples(), review.values.to_dict("records"), strict=True)
    sheet = {
        "label": review.asked.label,
        "data": data_name(review.asked.data),
        "estimate": estimate_sentence(review.estimate) if review.estimate.credible else None,
        # What the answers are kept under in the browser.
        "key": f"fairsieve-review-{review.asked.label}-{choice}",
        "choices": list(review.labels.classes),
        "fields": [csv_text([[text, ""]]).removesuffix(",\n") for text in words],
        "columns": list(review.values),
        "header": HEADER,
        "file_name": file_name,
        "items": [_item(row, values, review) for row, values in rows],
    }
    return fill_template("review", sheet=sheet, rows=sheet["items"])


def _item(row: Any, values: dict[Any, str], review: LabelReview) -> dict[str, Any]:
    """Lay out one row, with what stands in its other columns."""
    (before, after), classes = _line(row), review.labels.classes
    details = [] if review.id_column is None else [f"{review.id_column} {row.id}"]
    return {
        "title": f"Row {row.row}",
        "details": [*details, group_name(row.group if isinstance(row.group, str) else None)],
        "given": classes.index(row.given_label),
        "suggested": classes.index(row.suggested_label),
        "reasons": row.reasons,
        "values": [(name, values[name]) for name in dict.fromkeys((*row.matters, *values)) if name in values],
        "before": before,
        "after": after,
    }
