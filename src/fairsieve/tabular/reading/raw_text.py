"""The text of a CSV file, before it is a table; what is wrong with it is told in words."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence

from fairsieve.errors import InvalidInputError

__all__ = ["check_separator", "decoded", "first_row", "uneven_rows"]

SEPARATORS = {",": "a comma", ";": "a semicolon", "\t": "a tab", "|": "a bar"}


def decoded(name: str, content: bytes) -> tuple[str, list[str]]:
    """The file as text, and a note where its encoding is not UTF-8."""
    if content.startswith(b"PK\x03\x04"):
        raise InvalidInputError(
            f"{name} looks like a workbook of a spreadsheet: save the sheet as CSV and give that file"
        )
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        return content.decode("utf-16", errors="replace"), ["The file is in UTF-16."]
    if b"\0" in content or content.startswith(b"\x1f\x8b"):
        raise InvalidInputError(f"{name} is neither text nor Parquet: unpack it, or save the table as CSV")
    try:
        return content.decode("utf-8-sig"), []
    except UnicodeDecodeError:
        note = "The file is not in UTF-8; it was read as Windows-1252 (Western European)."
        return content.decode("cp1252", errors="replace"), [note]


def first_row(name: str, text: str, separator: str) -> list[str]:
    """The fields of the first row."""
    try:
        return next(csv.reader(io.StringIO(text, newline=""), delimiter=separator))
    except csv.Error as error:
        raise InvalidInputError(f"the first row of {name} must hold the columns' names; {error}") from None


def uneven_rows(text: str, separator: str) -> str:
    """Why text is no table: a row that is too long, or a quote that is not closed."""
    first = 0
    try:
        for row, fields in enumerate(csv.reader(io.StringIO(text, newline=""), delimiter=separator), start=1):
            first = first or len(fields)
            if len(fields) > first:
                between = SEPARATORS.get(separator, repr(separator))
                return (
                    f"must have as many fields in every row as in the first, {first}; row {row} has {len(fields)}: a "
                    f"text with {between} in it must stand in quotes"
                )
    except csv.Error:
        pass
    return 'must have a second " for every one that opens a text; one is not closed: add it, or take the first out'


def check_separator(name: str, header: Sequence[str], text: str, separator: str) -> None:
    """One column only, where another separator would make several, is a wrong separator."""
    if len(header) > 1:
        return
    line = text.splitlines()[0]
    counts = {other: line.count(other) for other in SEPARATORS if other != separator}
    best = max(counts, key=lambda other: counts[other])
    if counts[best]:
        option = "tab" if best == "\t" else f"'{best}'"
        raise InvalidInputError(
            f"{name} seems to have {SEPARATORS[best]} between its columns, not "
            f"{SEPARATORS.get(separator, repr(separator))}: add --separator {option}"
            + (" (and --decimal , if its numbers are written 3,5)" if best == ";" else "")
        )
