"""Read the answers of people who checked labels, and check that they belong to a table."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairsieve.errors import InvalidInputError
from fairsieve.tabular.frames import is_frame, read_frame
from fairsieve.tabular.reading.columns import exact_value, parse_numbers
from fairsieve.tabular.reading.labels import Labels
from fairsieve.tabular.reading.read import read_table
from fairsieve.tabular.reading.table import InputTable, closest
from fairsieve.tabular.row_checksums import row_checksums

__all__ = ["ANSWER_COLUMNS", "Answers", "read_answers", "unsure_word"]

ANSWER_COLUMNS = ("row", "id", "given_label", "verified_label", "sampling_weight", "row_checksum")
NEEDED = ("row", "verified_label", "sampling_weight", "row_checksum")


@dataclass(frozen=True, eq=False)
class Answers:
    """What people said about labels of a table.

    Attributes
    ----------
    rows : integer array
        The rows with an answer, numbered as in a spreadsheet, ascending.
    codes : integer array
        The verified label of each, by its place among the classes.
    given : integer array
        The label that the table has.
    weights : array
        The inverse of each row's chance to be chosen, up to a factor.
    unsure, unanswered : int
        Rows of the files without a verified label.
    """

    rows: NDArray[np.int64]
    codes: NDArray[np.int64]
    given: NDArray[np.int64]
    weights: NDArray[np.float64]
    unsure: int
    unanswered: int

    def over(self, rows: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Return codes (−1 where nobody answered) and weights (1 there) of rows in ascending order."""
        codes, weights = np.full(len(rows), -1, np.int64), np.ones(len(rows))
        places = np.searchsorted(rows, self.rows)
        known = places < len(rows)
        known[known] = rows[places[known]] == self.rows[known]
        codes[places[known]], weights[places[known]] = self.codes[known], self.weights[known]
        return codes, weights


def unsure_word(classes: Sequence[str]) -> str:
    """Return the word that stands for an unsure answer; no label is called so.

    >>> unsure_word(["high", "low"]), unsure_word(["sure", "unsure"])
    ('unsure', '(unsure)')
    """
    word = "unsure"
    while word in {name.lower() for name in classes}:
        word = f"({word})"
    return word


def read_answers(sources: Sequence[Any], table: InputTable, labels: Labels) -> Answers:
    """Read answers to rows of a table; refuse answers to other rows, unknown labels and contradictions.

    Parameters
    ----------
    sources : sequence of path or data frame
        With the columns :data:`ANSWER_COLUMNS`.
    table : InputTable
    labels : Labels
    """
    found: dict[int, tuple[int, float, str]] = {}
    unsure = unanswered = 0
    files = [read_frame(source) if is_frame(source) else read_table(source) for source in sources]
    for file in files:
        for row, text, weight in _read_lines(file, table, labels):
            if text is None or text.lower() == unsure_word(labels.classes):
                unsure, unanswered = unsure + (text is not None), unanswered + (text is None)
                continue
            code = _find_code(text, labels, row, file.name)
            if row in found and found[row][0] != code:
                raise InvalidInputError(
                    f"--verified must answer each row in one way; row {row} of {table.name} is "
                    f"{labels.classes[found[row][0]]!r} in {found[row][2]} and {labels.classes[code]!r} in "
                    f"{file.name}: keep one of the two"
                )
            found[row] = code, weight, file.name
    if not found:
        names = ", ".join(file.name for file in files)
        raise InvalidInputError(
            f"--verified must have an answer in verified_label; {names} has {unanswered:,} empty and {unsure:,} unsure "
            "ones and no other: answer some rows first"
        )
    rows = sorted(found)
    return Answers(
        np.array(rows, np.int64),
        np.array([found[row][0] for row in rows], np.int64),
        labels.read(table).codes[np.searchsorted(table.rows, rows)].astype(np.int64),
        np.array([found[row][1] for row in rows]),
        unsure,
        unanswered,
    )


def _read_lines(file: InputTable, table: InputTable, labels: Labels) -> list[tuple[int, str | None, float]]:
    """Read the lines of answers: row, answer and weight; check them against the rows of the table."""
    absent = [name for name in NEEDED if name not in file.columns]
    if absent:
        raise InvalidInputError(
            f"--verified must be a file that fairsieve review wrote, with the columns {', '.join(NEEDED)}; {file.name} "
            f"has no {absent[0]}: give that file with its column verified_label filled in"
        )
    decimal = file.reading.decimal
    rows = parse_numbers(file.columns["row"], decimal).numbers
    weights = parse_numbers(file.columns["sampling_weight"], decimal).numbers
    sums = file.columns["row_checksum"].tolist()
    _check_rows(file.name, rows, sums, table)
    places = np.searchsorted(table.rows, rows)
    if "given_label" in file.columns:
        _check_given(file.name, file.columns["given_label"].tolist(), places, table, labels)
    found = []
    for row, text, weight in zip(rows, file.columns["verified_label"].tolist(), weights, strict=True):
        if not (math.isfinite(weight) and weight > 0):
            raise InvalidInputError(
                f"sampling_weight in {file.name} must be a number above 0; it is not for row {int(row)}: leave that "
                "column as it was"
            )
        found.append((int(row), None if text is None else str(text), float(weight)))
    return found


def _check_rows(name: str, rows: NDArray[np.float64], sums: Sequence[str | None], table: InputTable) -> None:
    """Check that the rows are in the table, and are the same there."""
    known = np.isin(rows, table.rows)
    places = np.searchsorted(table.rows, rows[known])
    here = iter(row_checksums(table, places))
    wrong = [row for row, there, own in zip(rows, known, sums, strict=True) if not there or next(here) != own]
    if wrong:
        first = "without a number" if math.isnan(wrong[0]) else f"{int(wrong[0])}"
        raise InvalidInputError(
            f"--verified must hold answers to rows of {table.name}; {len(wrong):,} of the {len(rows):,} rows of {name} "
            f"are not in it or say something else there (the first: row {first}). Give the table that fairsieve review "
            "read, with its rows unchanged and in their order, and the same --missing"
        )


def _check_given(
    name: str, given: Sequence[object], places: NDArray[np.int64], table: InputTable, labels: Labels
) -> None:
    """Check that nobody wrote corrections into the column of the given labels."""
    column = labels.read(table)
    for text, place in zip(given, places, strict=True):
        own = str(labels.classes[column.codes[place]])
        if text is None or not _same(str(text), own):
            raise InvalidInputError(
                f"given_label in {name} must stay as it was; row {table.rows[place]} is {own!r} in {table.name} and "
                f"{text!r} here: put corrections into verified_label"
            )


def _find_code(text: str, labels: Labels, row: int, name: str) -> int:
    """Find the label that an answer names; what a spreadsheet does to capitals and apostrophes is tolerated."""
    if text in labels.classes:
        return labels.classes.index(text)
    matching = [code for code, label in enumerate(labels.classes) if _same(text, label)]
    if len(matching) == 1:
        return matching[0]
    close = closest(text, labels.classes)
    hint = f"Did you mean {close!r}? " if close else ""
    raise InvalidInputError(
        f"verified_label in {name} must be one of {', '.join(labels.classes)}, empty, or "
        f"{unsure_word(labels.classes)}; got {text!r} for row {row}. {hint}Correct it"
    )


def _same(text: str, label: str) -> bool:
    """Return whether a spreadsheet may have made ``text`` of ``label``.

    >>> _same("TRUE", "true"), _same("'=x", "=x"), _same("1", "1.0"), _same("low", "high")
    (True, True, True, False)
    """
    return any(
        exact_value(one).lower() == exact_value(label).lower()
        for one in (text, text.removeprefix("'"), text.replace(",", "."))
    )
