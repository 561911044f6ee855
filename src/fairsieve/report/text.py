"""Tables as plain text: Markdown, and CSV that is safe to open in a spreadsheet."""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from fairsieve.report.document import Cell, Table

__all__ = ["csv_text", "markdown", "table_markdown"]

NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
# What a spreadsheet takes for the beginning of a formula, full-width forms included.
FORMULA_STARTS = tuple("=+-@\t\r\n＝＋－＠")
# Also after spaces, and in the middle, where a spreadsheet splits at another character than a comma.
STARTS = re.compile(rf"(^\s*|[;\t\n]\s*)(?=[{re.escape(''.join(FORMULA_STARTS).strip())}])")
MARKDOWN_SPECIAL = re.compile(r"([\\`*_\[\]{}<>|~#$])")


def markdown(text: str) -> str:
    """Escape text for Markdown, on one line."""
    return MARKDOWN_SPECIAL.sub(r"\\\1", " ".join(text.split()).replace("&", "&amp;"))


def table_markdown(table: Table) -> str:
    """Write a Markdown table under its caption; references follow in brackets.

    Examples
    --------
    >>> from fairsieve.report.document import Column
    >>> print(table_markdown(Table("one", "One", [Column("accuracy", True)], [[Cell("0.7", mark="best")]])))
    **One**
    <BLANKLINE>
    | accuracy |
    | ---: |
    | **0.7** |
    <BLANKLINE>
    """
    lines = [f"**{markdown(table.caption)}**", ""]
    lines.append(_row(markdown(column.full_title) for column in table.columns))
    lines.append(_row("---:" if column.numeric else "---" for column in table.columns))
    lines += [_row(map(_entry, row)) for row in table.rows]
    return "\n".join([*lines, ""])


def _row(entries: Iterable[str]) -> str:
    return f"| {' | '.join(entries)} |"


def _entry(cell: Cell) -> str:
    """Mark a cell's text by its rank, and put its reference behind it."""
    text = markdown(cell.text)
    text = {"best": f"**{text}**", "second": f"*{text}*"}.get(cell.mark, text) if text else text
    return f"{text} ({markdown(cell.reference)})" if cell.reference else text


def csv_text(rows: Iterable[Iterable[Any]], separator: str = ",") -> str:
    """Write rows as CSV in which no field is a formula, and none ends its row."""
    stream = io.StringIO()
    writer = csv.writer(stream, delimiter=separator, lineterminator="\n")
    writer.writerows([_safe_field(value) for value in row] for row in rows)
    return stream.getvalue()


def _safe_field(value: Any) -> str:
    r"""Write a value as text that is no formula, wherever a spreadsheet splits it.

    Examples
    --------
    >>> _safe_field("a;=1"), _safe_field("a\r=1"), _safe_field(-3), _safe_field("-0.5+cmd()")
    ("a;'=1", "a\n'=1", '-3', "'-0.5+cmd()")
    """
    if type(value) is int or (type(value) is float and math.isfinite(value)):
        return str(value)
    return _safe_text("" if value is None else value if isinstance(value, str) else str(value))


@lru_cache(maxsize=4096)  # the same categories come again and again
def _safe_text(text: str) -> str:
    """Write a text that is no formula: an apostrophe stands before what a spreadsheet could take for one."""
    if NUMBER.fullmatch(text):
        return text
    one_kind = text.replace("\r\n", "\n").replace("\r", "\n")  # a bare \r would end the row
    marked = STARTS.sub(r"\1'", one_kind)
    return "'" + marked if marked.startswith(FORMULA_STARTS) and not NUMBER.fullmatch(marked) else marked
