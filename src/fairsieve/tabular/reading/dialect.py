"""Find out how a CSV file is written: what stands between its fields, and which decimal mark its numbers have."""

from __future__ import annotations

import contextlib
import csv
import io
import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import islice

from fairsieve.tabular.reading.table import Reading

__all__ = ["SEPARATORS", "assume_dialect"]

SEPARATORS = {",": "a comma", ";": "a semicolon", "\t": "a tab", "|": "a bar"}
LOOKED_AT = 1000  # rows
MOSTLY = 0.5  # of the rows; the others are cut short
MOST_LETTERS = 1_000_000
COMMA = re.compile(r"[+-]?(\d+|\d{1,3}(\.\d{3})+),\d+")
POINT = re.compile(r"[+-]?\d*\.\d+")
THOUSANDS = re.compile(r"[+-]?\d{1,3}(,\d{3})+")
WHOLE = re.compile(r"[+-]?\d+")


def assume_dialect(text: str, reading: Reading) -> tuple[Reading, list[str]]:
    r"""Replace what is "auto" in ``reading`` by what the first rows of a text show; say so where it is unusual.

    A separator must split the first rows into equally many fields; of several that do, the one with most fields is
    taken. A decimal comma is assumed only where numbers have one, none has a decimal point, and not all could be
    whole numbers with a comma between the thousands.

    Examples
    --------
    >>> found, notes = assume_dialect("size;weight\n1,5;20,25\n", Reading())
    >>> found.separator, found.decimal, notes[0][:44]
    (';', ',', 'Assumed from the first rows: a semicolon bet')
    >>> assume_dialect("size;weight\n1,500;20,250\n", Reading())[0].decimal
    '.'
    """
    separator, decimal, assumed = reading.separator, reading.decimal, []
    if separator == "auto":
        separator = _find_separator(text, "," if decimal == "," else "")
        if separator != ",":
            assumed.append(f"{SEPARATORS[separator]} between fields")
    if decimal == "auto":
        decimal = "," if separator != "," and _has_decimal_commas(text, separator) else "."
        if decimal == ",":
            assumed.append("a decimal comma in numbers")
    notes = []
    if assumed:
        notes.append(
            f"Assumed from the first rows: {' and '.join(assumed)}; --separator and --decimal say otherwise."
        )
    return replace(reading, separator=separator, decimal=decimal), notes


def _first_records(text: str, separator: str) -> list[list[str]]:
    """Split the first rows into fields; leave out blank ones, and stop where a text is not closed."""
    found: list[list[str]] = []
    lines = io.StringIO(text[:MOST_LETTERS], newline="")
    with contextlib.suppress(csv.Error):
        for fields in islice(csv.reader(lines, delimiter=separator, skipinitialspace=True), LOOKED_AT):
            if any(field.strip() for field in fields):
                found.append(fields)
    whole = len(text) <= MOST_LETTERS or len(found) < 2
    return found if whole else found[:-1]  # the last may be cut off


def _find_separator(text: str, other: str) -> str:
    """Find the separator that makes equally many fields of every row, or of most and no more of any; else a comma."""
    best, most = ("," if other != "," else ";"), (False, 1)
    for separator in SEPARATORS:
        widths = [len(fields) for fields in _first_records(text, separator)]
        if separator == other or not widths:
            continue
        equal = sum(width == widths[0] for width in widths) / len(widths)
        found = (equal == 1, widths[0])
        if widths[0] > 1 and max(widths) == widths[0] and equal >= MOSTLY and found > most:
            best, most = separator, found
    return best


def _has_decimal_commas(text: str, separator: str) -> bool:
    """Return whether numbers have decimal commas, and none a decimal point."""
    rows = _first_records(text, separator)[1:]
    if not rows:
        return False
    columns = [[row[i].strip() for row in rows if i < len(row)] for i in range(len(rows[0]))]
    numbers = [column for column in columns if _is_numeric(column)]
    fields = [field for column in numbers for field in column]
    if any(POINT.fullmatch(field) and not COMMA.fullmatch(field) for field in fields):
        return False
    commas = [field for field in fields if COMMA.fullmatch(field)]
    return any(not THOUSANDS.fullmatch(field) for field in commas)


def _is_numeric(column: Sequence[str]) -> bool:
    """Return whether most fields of a column that have a value are numbers, with either mark."""
    known = [field for field in column if field and field not in ("?", "NA", "NaN", "NULL")]
    hits = sum(bool(COMMA.fullmatch(one) or POINT.fullmatch(one) or WHOLE.fullmatch(one)) for one in known)
    return bool(known) and hits >= 0.9 * len(known)
