"""Decode the text of a CSV file, and say in words why it is not a table."""

from __future__ import annotations

import codecs
import csv
import io
from collections.abc import Sequence

from fairsieve.errors import InvalidInputError
from fairsieve.tabular.reading.dialect import SEPARATORS

__all__ = ["check_separator", "decoded", "find_encoding", "first_row", "uneven_rows"]

# UTF-32 comes first: its mark begins with that of UTF-16.
BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
    (codecs.BOM_UTF8, "utf-8-sig"),
)


def find_encoding(name: str, content: bytes) -> str:
    """Find the encoding of a text: by its byte order mark, else UTF-8 if it is that, else Windows-1252."""
    if content.startswith(b"PK\x03\x04"):
        raise InvalidInputError(
            f"{name} looks like a workbook of a spreadsheet: save the sheet as CSV and give that file"
        )
    for mark, encoding in BYTE_ORDER_MARKS:
        if content.startswith(mark):
            return encoding
    if b"\0" in content or content.startswith(b"\x1f\x8b"):
        raise InvalidInputError(f"{name} is neither text nor Parquet: unpack it, or save the table as CSV")
    try:
        content.decode("utf-8")
    except UnicodeDecodeError:
        return "cp1252"
    return "utf-8"


def decoded(name: str, content: bytes) -> tuple[str, list[str]]:
    """Decode a file to text, with a note where its encoding is not UTF-8."""
    encoding = find_encoding(name, content)
    note = {
        "cp1252": "The file is not in UTF-8; it was read as Windows-1252 (Western European).",
        "utf-16": "The file is in UTF-16.",
        "utf-32": "The file is in UTF-32.",
    }.get(encoding)
    return content.decode(encoding, errors="replace"), [] if note is None else [note]


def first_row(name: str, text: str, separator: str) -> list[str]:
    """Split the first row into its fields."""
    try:
        return next(csv.reader(io.StringIO(text, newline=""), delimiter=separator))
    except csv.Error as error:
        raise InvalidInputError(f"the first row of {name} must hold the columns' names; {error}") from None


def uneven_rows(text: str, separator: str) -> str:
    """Say why text is not a table: a row is too long, or a quote is not closed."""
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
    """Refuse a separator that makes one column only, where another would make several."""
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
