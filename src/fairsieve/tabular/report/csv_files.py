"""Columns as CSV that is safe to open in a spreadsheet."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import chain
from typing import Any

from fairsieve.report.table_files import csv_text
from fairsieve.tabular.report.phrases import group_name

__all__ = ["columns_csv", "suspects_csv"]

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
    return csv_text(chain([columns], zip(*columns.values(), strict=True)))


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
