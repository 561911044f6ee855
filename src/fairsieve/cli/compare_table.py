"""``fairsieve compare --table``: what is asked of somebody's own table, and what is printed."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from fairsieve.cli.terminal import printable, say
from fairsieve.errors import InvalidInputError
from fairsieve.paper.compare import Comparison, Row
from fairsieve.paper.paired_differences import Difference, compare_pairs, compare_verified
from fairsieve.paper.records import Record
from fairsieve.paper.table_problems import TableSource, table_source, verified_test
from fairsieve.report.number_format import number
from fairsieve.selection.fairness import ABBREVIATIONS
from fairsieve.tabular.request import ask

__all__ = ["ask_table", "say_table"]


def ask_table(
    table: Path | None, label: str | None, sensitive: Sequence[str] | None, settings: Mapping[str, Any]
) -> TableSource | None:
    """Read the table that is asked about, and print what was done to it; None without one."""
    if table is None:
        given = {"--label": label, "--sensitive": sensitive, "--verified": settings["verified"]}
        for option, value in given.items():
            if value:
                raise InvalidInputError(f"{option} must go with --table; got no table: add --table FILE")
        return None
    for option, column in (("--label", label), ("--sensitive", sensitive)):
        if not column:
            raise InvalidInputError(f"{option} must name a column with --table; got none: add it")
    source, whole = table_source(ask(table, str(label), tuple(sensitive or ()), settings))  # type: ignore[arg-type]
    say(*whole.notes)
    return source


def say_table(asked: Comparison, records: Sequence[Record], rows: Sequence[Row]) -> None:
    """Print every method beside the first, and what the numbers mean."""
    done = [row for row in rows if row.seeds]
    if not done:
        return
    baseline = done[0].method
    short = ABBREVIATIONS[asked.fairness]
    table = Table(
        title=_title(asked, done),
        caption=f"In brackets: 95 % interval of the difference from {baseline.title}",
    )
    table.add_column("method")
    for head in (
        "accuracy ↑",
        f"less {baseline.title}",
        f"{short} disparity ↓",
        f"less {baseline.title}",
        "seconds",
    ):
        table.add_column(head, justify="right")
    compared = _comparisons(asked, records)
    for row in rows:
        if not row.seeds:
            table.add_row(Text(row.method.title), *["–"] * 5)
            continue
        own = row.method.name == baseline.name
        apart = [
            "" if own else _told(compared(row.method.name, baseline.name, measure))
            for measure in ("accuracy", asked.fairness)
        ]
        seconds = "–" if math.isnan(row.seconds) else f"{row.seconds:.2f}"
        table.add_row(
            Text(row.method.title),
            number(row.accuracy[0]),
            apart[0],
            number(row.disparity[0]),
            apart[1],
            seconds,
        )
    Console().print(table)
    say(*_meaning(asked, records))


def _title(asked: Comparison, rows: Sequence[Row]) -> str:
    """Say what was compared on what."""
    assert asked.table is not None
    count = max(row.seeds for row in rows)
    flips = "no flips" if asked.noise == "none" else f"{asked.rate:.0%} flips ({asked.noise})"
    name = printable(asked.table.asked.data.name)
    return f"{name}, {flips}, {'1 split' if count == 1 else f'{count} splits'}"


def _comparisons(asked: Comparison, records: Sequence[Record]) -> Any:
    """Return the function that compares two methods: split by split, or on the same verified rows."""
    assert asked.table is not None
    if not asked.table.asked.verified:
        return lambda method, baseline, measure: compare_pairs(records, method, baseline, measure)
    test, weights = verified_test(asked.table)
    return lambda method, baseline, measure: compare_verified(
        records, method, baseline, measure, test=test, weights=weights
    )


def _told(found: Difference | None) -> str:
    """Write a difference and its interval."""
    if found is None:
        return "–"
    sign = "+" if found.value > 0 else ""
    bounds = (
        "" if found.interval is None else f" ({number(found.interval[0])} to {number(found.interval[1])})"
    )
    return f"{sign}{number(found.value)}{bounds}"


def _meaning(asked: Comparison, records: Sequence[Record]) -> list[str]:
    """Say what the labels are that everything was measured on, and what the methods were told."""
    assert asked.table is not None
    sizes = next(record["rows"] for record in records if "rows" in record)
    ratios = [record["clean_ratio"] for record in records if "clean_ratio" in record]
    if asked.table.asked.verified:
        lines = [
            f"Measured on {sizes['test']:,} verified labels, which no method trained on, weighted by the rows' chances "
            "to be chosen; intervals are the bootstrap's over these rows."
        ]
    else:
        lines = [
            "Measured on the table's own labels of rows set aside. Where these are wrong, a method that learnt the "
            "truth is marked down and one that learnt the errors is not: differences say who predicts the labels as "
            "they are. To measure on right ones, check some by fairsieve review and add --verified.",
            "Splits share training rows; the intervals allow for that (Nadeau and Bengio 2003).",
        ]
    if asked.noise != "none":
        lines.append(
            f"{asked.rate:.0%} of the training labels were flipped ({asked.noise}), beside those that are wrong "
            "already; labels that are measured on were not."
        )
    told = (
        f"{number(min(ratios))} to {number(max(ratios))}" if max(ratios) > min(ratios) else number(ratios[0])
    )
    how = "estimated from each training part" if asked.table.asked.clean_ratio == "auto" else "given"
    lines.append(f"Methods that need the share of right labels were told {told} ({how}).")
    return lines
