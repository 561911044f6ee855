"""The paper's tables, recomputed: our value, the paper's beside it, and how far apart they are."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairsieve.paper.methods.registry import METHODS
from fairsieve.paper.reproduce.experiments import FR_TRAIN, Experiment, table_experiment
from fairsieve.paper.reproduce.published import Line, Number, PaperColumn, PaperTable, paper_tables
from fairsieve.paper.reproduce.results import Protocols, Results
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

__all__ = ["choices_table", "draws_experiments", "draws_table", "paper_blocks"]

RIVALS = (  # of Sec. 5.1 and B.3
    "lr",
    "itlm",
    "fairbatch",
    "itlm-fairbatch",
    "itlm-penalty",
    "itlm+penalty-fairbatch",
    "itlm+penalty-penalty",
    *FR_TRAIN,
)


def paper_blocks(protocols: Protocols, what: int) -> list[Table]:
    """Make Table 1 to 7 as a table or two: Adult has one for flips among men."""
    table = paper_tables()[what]
    if what == 4:
        return [_seconds_table(protocols.fresh, table)]
    if what != 7:
        return [_paper_table(protocols, table, f"table{what}")]
    men = [column.noise.endswith(":Male") for column in table.columns]
    parts = []
    for name, wanted in (("table7", False), ("table7-men", True)):
        places = [place for place, is_men in enumerate(men) if is_men == wanted]
        lines = {line: tuple(cells[place] for place in places) for line, cells in table.lines.items()}
        part = PaperTable(7, tuple(table.columns[place] for place in places), lines)
        parts.append(_paper_table(protocols, part, name))
    return parts


def _paper_table(protocols: Protocols, table: PaperTable, name: str) -> Table:
    """Make a table: the paper's numbers, those on the authors' draw, and those on fresh draws or splits."""
    several = len({column.data for column in table.columns}) > 1
    heads = [Column("method"), Column("whose")]
    for column in table.columns:
        group = column_title(column, with_data=several)
        heads += [Column(head, True, group=group) for head in ("acc. ↑", "disp. ↓")]
    whose = list(dict.fromkeys(name for column in table.columns for name, _ in protocols.each(column.data)))
    marks = _find_marks(protocols, table, whose)
    rows = []
    for line, printed in table.lines.items():
        title = _title_in(table, line)
        if line.method != "fr-train":  # the paper's numbers are the published one's
            rows.append(
                [
                    Cell(title),
                    Cell("paper"),
                    *(_printed_cell(number) for pair in printed for number in pair),
                ]
            )
        for protocol in whose:
            row = [Cell(title), Cell(protocol)]
            for i, column in enumerate(table.columns):
                results = dict(protocols.each(column.data)).get(protocol)
                for j, measure in enumerate(_measures(column)):
                    if results is None:
                        row.append(Cell(""))
                        continue
                    values = results.values(table_experiment(line, column), measure)
                    row.append(_number_cell(values, printed[i][j], marks[protocol][2 * i + j].get(line, "")))
            if any(cell.text not in ("", "–") for cell in row[2:]):
                rows.append(row)
    what = ITEMS[f"table{table.number}"].title
    if name.endswith("-men"):
        what += ", flips among men (the paper does not say whom it attacked)"
    return Table(name, f"Table {table.number}. {what}. {_runs_in_words(protocols, table)}", heads, rows)


def _find_marks(
    protocols: Protocols, table: PaperTable, whose: Sequence[str]
) -> dict[str, list[dict[Line, str]]]:
    """Mark the best and second best of the paper's fair and robust methods, for each protocol and column."""
    found: dict[str, list[dict[Line, str]]] = {}
    for name in whose:
        found[name] = []
        for column in table.columns:
            results = dict(protocols.each(column.data)).get(name)
            for measure in _measures(column):
                found[name].append({} if results is None else _rank(results, table, column, measure))
    return found


def _measures(column: PaperColumn) -> tuple[str, str]:
    return "accuracy", column.fairness


def _title_in(table: PaperTable, line: Line) -> str:
    """Return a line's title; in the ablation, ITLM is what is left without both parts."""
    return "w/o both (ITLM)" if (table.number, line.method) == (5, "itlm") else line_title(line)


def _runs_in_words(protocols: Protocols, table: PaperTable) -> str:
    """Describe how many runs a table's numbers are means of."""
    parts = []
    shown = [method for method in FR_TRAIN if any(line.method == method for line in table.lines)]
    for data in dict.fromkeys(column.data for column in table.columns):
        for name, results in protocols.each(data):
            ours, *theirs = (
                max(
                    len(results.runs(Experiment(method, data, column.noise, column.fairness)))
                    for column in table.columns
                    if column.data == data
                )
                for method in ("lr", *shown)
            )
            what = {"authors'": "trainings on the authors' draw", "fresh": "fresh draws"}.get(name, name)
            of_data = "" if data == "synthetic" else f" of {TITLES[data]}"
            parts.append(f"{ours} {what}{of_data}{_fewer(ours, theirs)}")
    return f"Means ± deviations over {', '.join(parts)}."


def _fewer(many: int, few: Sequence[int]) -> str:
    """Say how many runs the published FR-Train and ours have, where those are fewer.

    Examples
    --------
    >>> _fewer(30, [20, 20]), _fewer(20, [20, 10]), _fewer(5, [5, 5])
    (' (20 for FR-Train)', ' (20 for FR-Train as published, 10 for ours)', '')
    """
    if not few or min(few) in (0, many):
        return ""
    if len(set(few)) == 1:
        return f" ({few[0]} for FR-Train)"
    return f" ({few[0]} for FR-Train as published, {few[1]} for ours)"


def _printed_cell(printed: Number) -> Cell:
    """Make a cell of the paper's value."""
    text = number(printed.value)
    if printed.deviation is not None:
        text += f"±{number(printed.deviation)}"
    return Cell(text, value=printed.value, mark=printed.mark)


def _number_cell(values: NDArray[np.float64], printed: Number, mark: Any) -> Cell:
    """Make a cell of our value, shaded by how far it is from the paper's."""
    if np.isnan(values).all():
        return Cell("–")
    found = values[~np.isnan(values)]
    spread = float(np.hypot(found.std(), printed.deviation or 0))
    distance = abs(float(found.mean()) - printed.value)
    return Cell(
        plus_minus(found),
        value=round(float(found.mean()), 6),
        apart=round(distance / spread, 2) if spread > 0 else None,
        mark=mark,
        note=f"{len(found)} runs; {number(distance)} from the paper's",
    )


def _rank(results: Results, table: PaperTable, column: PaperColumn, measure: str) -> dict[Line, str]:
    """Mark the best and second best of the paper's fair and robust methods, in our numbers."""
    means = {}
    for line in table.lines:
        values = results.values(table_experiment(line, column), measure)
        is_one = METHODS[line.method].family == "fair and robust" and line.method != "fr-train"
        if is_one and not np.isnan(values).all():
            means[line] = float(np.nanmean(values))
    order = sorted(means, key=means.__getitem__, reverse=measure == "accuracy")
    return dict(zip(order, ("best", "second"), strict=False))


def _seconds_table(results: Results, table: PaperTable) -> Table:
    """Make Table 4: the median over runs, since the first run of a process also loads compiled code."""
    rows = []
    for line, printed in table.lines.items():
        row = [Cell(line_title(line))]
        for column, (seconds,) in zip(table.columns, printed, strict=True):
            values = results.values(table_experiment(line, column), "cpu_seconds")
            if np.isnan(values).all():
                row.append(Cell("–", reference=f"{seconds.value:.1f}"))
            else:
                median = float(np.nanmedian(values))
                row.append(Cell(f"{median:.2f}", value=median, reference=f"{seconds.value:.1f}"))
        rows.append(row)
    heads = [Column(f"{TITLES[column.data]}: seconds ↓", True) for column in table.columns]
    caption = (
        "Table 4. Seconds of one training, equalized odds: median over runs, of one core of this machine. Runs on a "
        "GPU are left out."
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
            paired = min(ours.shape[1], theirs.shape[1])
            fairer = ours[1, :paired] < theirs[1, :paired]
            accurate = ours[0, :paired] >= theirs[0, :paired]
            row += [_share_cell(fairer), _share_cell(fairer & accurate)]
        rows.append(row)
    draws = len(results.scope.seeds_for(Experiment("fairsieve", "synthetic")))
    return Table(
        "draws",
        f"Synthetic data: on how many of {draws} draws (fewer for FR-Train) fairsieve has the lower disparity, and on "
        "how many it has so at an accuracy that is not lower",
        heads,
        rows,
    )


def _share_cell(won: NDArray[np.bool_]) -> Cell:
    return Cell(f"{int(won.sum())} of {len(won)}", value=float(won.mean()))


def _flips(noise: str) -> str:
    """Return the title of an attack by its full name."""
    return FLIPS["group-targeted" if noise.startswith("group-targeted") else "label"]


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
                Cell(TITLES[asked["data"]] + (", the authors' draw" if record["settings"]["arrays"] else "")),
                Cell(f"{_flips(asked['noise'])}, {ABBREVIATIONS[asked['fairness']]}"),
                Cell(line_title(Line(asked["method"], asked["validation"]))),
                Cell(", ".join(f"{name} {value:g}" for name, value in chosen.items())),
                Cell("no" if chosen == default else "yes"),
            ]
        )
    heads = [Column(title) for title in ("data", "column", "method", "chosen", "other than the default")]
    caption = "Hyperparameters, chosen once for each method and column"
    return Table("choices", caption, heads, sorted(rows, key=lambda row: [cell.text for cell in row]), True)
