"""Columns as CSV that is safe to open in a spreadsheet."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Mapping
from typing import Any

from fairsieve.report.run.words import group_name
from fairsieve.report.table_files import FORMULA_STARTS, NUMBER, for_spreadsheet

__all__ = ["columns_csv", "suspects_csv"]

# Also after spaces, and in the middle, where a spreadsheet splits at another character than a comma.
STARTS = re.compile(rf"(^\s*|[;\t\n]\s*)(?=[{re.escape(''.join(FORMULA_STARTS).strip())}])")
TITLES = {"suggested": "suggested_label"}


def columns_csv(columns: Mapping[str, Iterable[Any]]) -> str:
    r"""CSV of columns; an apostrophe goes before what a spreadsheet could take for a formula.

    Examples
    --------
    >>> print(columns_csv({"a": ["=1+1", "x;=2", "-3"]}), end="")
    a
    '=1+1
    x;'=2
    -3
    """
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow([safe(name) for name in columns])
    writer.writerows([safe(value) for value in row] for row in zip(*columns.values(), strict=True))
    return stream.getvalue()


def safe(value: Any) -> str:
    """A value as text that is no formula."""
    text = "" if value is None else value if isinstance(value, str) else str(value)
    if NUMBER.fullmatch(text):
        return text
    one_kind = text.replace("\r\n", "\n").replace("\r", "\n")  # a bare \r would end the row
    return for_spreadsheet(STARTS.sub(r"\1'", one_kind))


def suspects_csv(suspects: Mapping[str, Iterable[Any]]) -> str:
    """The labels to check, the surest first."""
    columns: dict[str, Iterable[Any]] = {}
    for name, values in suspects.items():
        if name in ("loss", "probability"):
            values = [f"{value:.4f}" for value in values]
        elif name == "group":
            values = [group_name(value) for value in values]
        columns[TITLES.get(name, name)] = values
    return columns_csv(columns)
