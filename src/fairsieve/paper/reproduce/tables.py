"""The paper's tables, recomputed: our value, the paper's beside it, and how far apart they are."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairsieve.paper.methods.registry import METHODS
from fairsieve.paper.reproduce.experiments import Experiment, table_experiment
from fairsieve.paper.reproduce.published import Line, Number, PaperColumn, PaperTable, paper_tables
from fairsieve.paper.reproduce.results import Results
from fairsieve.paper.reproduce.targets import ITEMS
from fairsieve.paper.reproduce.titles import (
    FLIPS,
    TITLES,
    column_title,
    line_title,
    number,
    plus_minus,
)
from fairsieve.report.document import Cell, Column, Table
from fairsieve.selection.fairness import ABBREVIATIONS

__all__ = ["choices_table", "draws_experiments", "draws_table", "paper_table"]

RIVALS = (  # of Sec. 5.1 and 5.4
    "lr",
    "itlm",
    "fairbatch",
    "itlm-fairbatch",
    "itlm-penalty",
    "itlm+penalty-fairbatch",
    "itlm+penalty-penalty",
    "fr-train",
    "fairsieve-no-constraints",
    "fairsieve-no-weights",
)


def paper_table(results: Results, what: int, *, defaults: bool = False) -> Table:
    """Make Table 1 to 7, our values beside the paper's; on request with the default hyperparameters."""
    table = paper_tables()[what]
    if what == 4:
        return _seconds_table(results, table)
    name, title = f"table{what}", f"Table {what}. {ITEMS[f'table{what}'].title}."
    if defaults:
        results, name = results.with_defaults(), f"{name}-defaults"
        title += " The default hyperparameters in place of chosen ones."
    several = len({column.data for column in table.columns}) > 1
    heads = [Column("method")]
    for column in table.columns:
        group = column_title(column, with_data=several)
        heads += [Column(head, True, group=group) for head in ("accuracy ↑", "disparity ↓")]
    marks = [
        _rank(results, table, column, measure) for column in table.columns for measure in _measures(column)
    ]
    rows = []
    for line, printed in table.lines.items():
        row = [Cell(_title_in(table, line))]
        for i, column in enumerate(table.columns):
            for j, measure in enumerate(_measures(column)):
                values = results.values(table_experiment(line, column), measure)
                mark = marks[2 * i + j].get(line, "")
                row.append(_number_cell(values, printed[i][j], mark))
        rows.append(row)
    return Table(
        name,
        f"{title} {_runs_in_words(results, table)}",
        heads,
        rows,
        reference_title="the paper's",
    )


def _measures(column: PaperColumn) -> tuple[str, str]:
    return "accuracy", column.fairness


def _title_in(table: PaperTable, line: Line) -> str:
    """Return a line's title; in the ablation, ITLM is what is left without both parts."""
    return "w/o both (ITLM)" if (table.number, line.method) == (5, "itlm") else line_title(line)


def _runs_in_words(results: Results, table: PaperTable) -> str:
    """Describe how many runs a table's numbers are means of."""
    parts = []
    sets = list(dict.fromkeys(column.data for column in table.columns))
    for data in sets:
        count = len(results.scope.seeds_for(Experiment("fairsieve", data)))
        drawn = data == "synthetic" and results.scope.arrays is None
        what = "draws" if drawn else "trainings" if data == "synthetic" else "splits"
        whose = f"{TITLES[data]}: mean" if len(sets) > 1 else "Mean"
        parts.append(f"{whose} ± deviation over {count} {what if count > 1 else what[:-1]}")
    return "; ".join(parts) + "."


def _number_cell(values: NDArray[np.float64], printed: Number, mark: Any) -> Cell:
    """Make a cell of our value with the paper's."""
    reference = number(printed.value)
    if printed.deviation is not None:
        reference += f" ± {number(printed.deviation)}"
    if np.isnan(values).all():
        return Cell("–", reference=reference)
    found = values[~np.isnan(values)]
    spread = float(np.hypot(found.std(), printed.deviation or 0))
    distance = abs(float(found.mean()) - printed.value)
    note = f"{len(found)} runs; {number(distance)} from the paper's"
    if printed.mark:
        note += f", which is the {'second best' if printed.mark == 'second' else 'best'} of its column there"
    return Cell(
        plus_minus(found),
        value=round(float(found.mean()), 6),
        reference=reference,
        apart=round(distance / spread, 2) if spread > 0 else None,
        mark=mark,
        note=note,
    )


def _rank(results: Results, table: PaperTable, column: PaperColumn, measure: str) -> dict[Line, str]:
    """Mark the best and second best of the fair and robust methods, in our numbers."""
    means = {}
    for line in table.lines:
        values = results.values(table_experiment(line, column), measure)
        if METHODS[line.method].family == "fair and robust" and not np.isnan(values).any():
            means[line] = float(values.mean())
    order = sorted(means, key=means.__getitem__, reverse=measure == "accuracy")
    return dict(zip(order, ("best", "second"), strict=False))


def _seconds_table(results: Results, table: PaperTable) -> Table:
    """Make Table 4: the median over runs, since the first run of a process also loads compiled code."""
    rows = []
    for line, printed in table.lines.items():
        row = [Cell(line_title(line))]
        for column, (seconds,) in zip(table.columns, printed, strict=True):
            values = results.values(table_experiment(line, column), "seconds")
            if np.isnan(values).all():
                row.append(Cell("–", reference=f"{seconds.value:.1f}"))
            else:
                median = float(np.nanmedian(values))
                row.append(Cell(f"{median:.2f}", value=median, reference=f"{seconds.value:.1f}"))
        rows.append(row)
    heads = [Column(f"{TITLES[column.data]}: seconds ↓", True) for column in table.columns]
    caption = (
        "Table 4. Seconds of one training, equalized odds: median over runs, on one core of this machine."
    )
    return Table("table4", caption, [Column("method"), *heads], rows, reference_title="the paper's")


def draws_experiments() -> list[Experiment]:
    """List the experiments that :func:`draws_table` needs."""
    return [
        Experiment(method, column.data, column.noise, column.fairness)
        for column in paper_tables()[1].columns
        for method in ("fairsieve", *RIVALS)
    ]


def draws_table(results: Results) -> Table:
    """Count on how many draws of the synthetic data ours beats each other method."""
    columns = paper_tables()[1].columns
    heads = [Column("against")]
    for column in columns:
        group = column_title(column)
        heads += [Column(head, True, group=group) for head in ("fairer", "at equal or better accuracy")]
    rows = []
    for method in RIVALS:
        row = [Cell(METHODS[method].short)]
        for column in columns:
            ours, theirs = (
                np.stack(
                    [
                        results.values(Experiment(name, column.data, column.noise, column.fairness), measure)
                        for measure in _measures(column)
                    ]
                )
                for name in ("fairsieve", method)
            )
            fairer = ours[1] < theirs[1]
            accurate = ours[0] >= theirs[0]
            row += [_share_cell(fairer), _share_cell(fairer & accurate)]
        rows.append(row)
    draws = len(results.scope.seeds_for(Experiment("fairsieve", "synthetic")))
    return Table(
        "draws",
        f"Synthetic data: on how many of {draws} draws fairsieve has the lower disparity, and on how many it has so "
        "at an accuracy that is not lower",
        heads,
        rows,
    )


def _share_cell(won: NDArray[np.bool_]) -> Cell:
    return Cell(f"{int(won.sum())} of {len(won)}", value=float(won.mean()))


def choices_table(records: Iterable[dict[str, Any]]) -> Table:
    """Make a table of the hyperparameters that were chosen, and on what."""
    rows = []
    for record in records:
        asked = record["settings"].get("tuning")
        if asked is None:
            continue
        chosen, candidates = record["hyperparameters"], record["candidates"]
        default = {name: candidates[0][name] for name in chosen}
        rows.append(
            [
                Cell(TITLES[asked["data"]]),
                Cell(f"{FLIPS[asked['noise']]}, {ABBREVIATIONS[asked['fairness']]}"),
                Cell(line_title(Line(asked["method"], asked["validation"]))),
                Cell(", ".join(f"{name} {value:g}" for name, value in chosen.items())),
                Cell("no" if chosen == default else "yes"),
            ]
        )
    heads = [Column(title) for title in ("data", "column", "method", "chosen", "other than the default")]
    caption = "Hyperparameters, chosen once for each method and column"
    return Table("choices", caption, heads, sorted(rows, key=lambda row: [cell.text for cell in row]), True)
