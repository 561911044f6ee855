"""Write columns as CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping
from itertools import chain
from typing import Any

import numpy as np

from fairsieve.report.table_files import csv_text
from fairsieve.tabular.preparation import TableProblem
from fairsieve.tabular.reading.read import free_name
from fairsieve.tabular.reading.table import InputTable
from fairsieve.tabular.report.phrases import group_name

__all__ = ["columns_csv", "rows_csv", "suspects_csv"]

TITLES = {"suggested": "suggested_label"}


def columns_csv(
    columns: Mapping[str, Iterable[Any]], *, escape_formulas: bool = True, separator: str = ","
) -> str:
    r"""Write columns as CSV; put an apostrophe before what a spreadsheet could take for a formula, if asked to.

    Examples
    --------
    >>> print(columns_csv({"a": ["=1+1", "x;=2", "-3"]}), end="")
    a
    '=1+1
    x;'=2
    -3
    """
    rows = chain([columns], zip(*columns.values(), strict=True))
    if escape_formulas:
        return csv_text(rows, separator)
    stream = io.StringIO()
    csv.writer(stream, delimiter=separator, lineterminator="\n").writerows(rows)
    return stream.getvalue()


def suspects_csv(suspects: Mapping[str, Iterable[Any]], table: InputTable) -> str:
    """Write the labels to check with the other columns of their rows, the surest first, safe for a spreadsheet.

    The first thing that the file says is that it holds personal data: a column, since a line above the names would
    keep other programs from reading it.
    """
    columns: dict[str, Iterable[Any]] = {"holds_personal_data": ["yes"] * len(list(suspects["row"]))}
    for name, values in suspects.items():
        if name in ("loss", "probability"):
            values = [f"{value:.4f}" for value in values]
        elif name == "group":
            values = [group_name(value) for value in values]
        columns[TITLES.get(name, name)] = values
    rows = table.take(np.searchsorted(table.rows, np.asarray(suspects["row"], dtype=np.int64)))
    for name in rows.columns:
        columns[free_name(name, list(columns))] = [
            "" if value is None else value for value in rows.cells(name)
        ]
    return columns_csv(columns)


def rows_csv(problem: TableProblem) -> str:
    """Write what became of every row of a table: trained on, measured on or left out."""
    table = problem.table
    use = np.full(len(table), "left out: no label", dtype=object)
    use[np.isin(table.rows, problem.train.rows)] = "trained on"
    if problem.asked.test_file is None:
        use[np.isin(table.rows, problem.test.rows)] = "measured on"
    return columns_csv({"row": table.rows.tolist(), "use": use.tolist()})
