"""The tables and figures of a run and of an audit of predictions."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from fairsieve.report.document import Cell, Column, Figure, Panel, Series, Table
from fairsieve.report.looks import looks_of
from fairsieve.report.text import interval, number, percent, upper
from fairsieve.tabular.decision import group_name
from fairsieve.tabular.evaluation import DroppedCell, Gap, Measure, Score, Share
from fairsieve.tabular.quality import Calibration, Quality
from fairsieve.tabular.reading.encoding import Feature
from fairsieve.tabular.table_run import TableRun

MODELS = ("plain model", "fair model")
MOST_GROUPS = 12
MOST_MEASURES = 6
ROWS_AT_ONCE = 20
MOST_FEATURES = 8  # of a label to check
MOST_SUSPECTS = 500  # on the page; the file has all
# Columns that may name somebody are never shown; nor are those with a value of its own in most rows.
PERSONAL = re.compile(
    r"(^|[^a-z])(id|uuid|guid|e-?mail|mail|phone|telephone|tel|mobile|fax|address|street|postcode|zip|ssn|iban|"
    r"passport|licen[cs]e|birth|dob|surname|forename|lastname|firstname|username|user|login|ip)([^a-z]|$)|name",
    re.IGNORECASE,
)
MOSTLY_DIFFERENT = 0.5  # of the rows


def plain_table(name: str, caption: str, titles: Sequence[str], rows: Sequence[Sequence[Any]]) -> Table:
    """Lay out values: texts, counts, scores and shares with their intervals, measures with what they mean."""
    cells = [[_cell(value) for value in row] for row in rows]
    numeric = [
        any(not isinstance(row[place], str | Measure | Quality) for row in rows)
        for place in range(len(titles))
    ]
    return Table(
        name,
        caption,
        [Column(title, bool(is_number)) for title, is_number in zip(titles, numeric, strict=True)],
        cells,
        filterable=len(rows) > 12,
        rows_at_once=ROWS_AT_ONCE,
        reference_title="95 % interval",
    )


def _cell(value: Any) -> Cell:
    """Write one value."""
    if isinstance(value, Cell):
        return value
    if isinstance(value, Score | Share):
        people = f"; {value.total:,} people" if isinstance(value, Share) else ""
        return Cell(number(value.value), value=value.value, reference=interval(value.interval) + people)
    if isinstance(value, int | np.integer):
        return Cell(f"{value:,}", value=int(value))
    if hasattr(value, "meaning"):
        return Cell(value.title, note=value.meaning)
    return Cell("–" if value is None else str(value))


def overall_table(run: TableRun) -> Table:
    """Lay out accuracy and disparity of both models."""
    titles = {"accuracy": "accuracy", "disparity": f"{run.asked.fairness.replace('_', ' ')} disparity"}
    rows = [
        [titles[name], *(one[name] for one in (run.scores[0], run.scores[-1], run.change))] for name in titles
    ]
    caption = "Both models on the test part, with 95 % intervals (bootstrap)"
    return plain_table("overall", caption, ["measure", "plain model", "fair model", "change"], rows)


def measures_table(
    name: str,
    caption: str,
    measures: Sequence[Measure | Quality],
    groups: Sequence[str | None],
    models: Sequence[str] = MODELS,
) -> Table:
    """Lay out every measure of every group, under one model or two, where there is anybody to measure."""
    rows = [
        [group_name(group), one, *(plain, fair)[: len(models)]]
        for one in measures
        for group, plain, fair in zip(groups, one.plain, one.fair, strict=True)
        if plain is not None and not math.isnan(plain.value)
    ]
    return plain_table(name, f"{caption}, with 95 % intervals", ["group", "measure", *models], rows)


def gaps_table(gaps: Sequence[Gap], groups: Sequence[str | None], models: Sequence[str] = MODELS) -> Table:
    """Lay out how far groups lie apart, under one model or two."""
    rows = [
        [f"{groups[gap.high]} less {groups[gap.low]}", gap.measure, *(gap.plain, gap.fair)[: len(models)]]
        for gap in gaps
    ]
    caption = "Differences between groups, with 95 % intervals (Newcombe); one that spans 0 may be chance"
    return plain_table("gaps", caption, ["groups", "rate", *models], rows)


def dropped_table(cells: Sequence[DroppedCell]) -> Table:
    """Lay out who was left out and who counts how much, cell by cell."""

    def share(value: float | None) -> Cell:
        return Cell("–") if value is None else Cell(percent(value), value=value)

    rows = [
        [
            cell.label,
            group_name(cell.group),
            cell.dropped.total,
            Cell(f"{cell.dropped.hits:,} ({percent(cell.dropped.value)})", value=cell.dropped.value),
            cell.suspects,
            share(cell.estimated_noise),
            share(cell.effective_weight),
        ]
        for cell in cells
    ]
    titles = ["label", "group", "people", "dropped", "labels that look wrong", "estimated wrong"]
    caption = "Who was left out at the end of training, and what each cell weighs for its number of rows"
    return plain_table("dropped", caption, [*titles, "effective weight"], rows)


def suspects_table(suspects: dict[str, Any], values: dict[str, list[str]]) -> Table:
    """List the labels to look at first: by their rows alone, or with the ``values`` of columns."""
    count = len(suspects["row"])
    shown = f"the first {MOST_SUSPECTS} of {count:,}" if count > MOST_SUSPECTS else f"all {count:,}"
    rows = [
        [
            Cell(str(suspects["row"][i]), value=int(suspects["row"][i])),
            Cell(f"{suspects['probability'][i]:.3f}", value=float(suspects["probability"][i])),
            *(texts[i] for texts in values.values()),
        ]
        for i in range(min(count, MOST_SUSPECTS))
    ]
    caption = f"Labels to check, {shown}; suspects.csv has every row and column"
    return replace(
        plain_table("suspects", caption, ["row", "chance of another label", *values], rows), folded=True
    )


def shown_values(run: TableRun) -> dict[str, list[str]]:
    """Write labels, groups and the first columns of the labels to check, but none that may name somebody."""
    table, found = run.problem.table, run.suspects
    first = found["row"][:MOST_SUSPECTS].astype(np.int64)
    rows = table.take(np.searchsorted(table.rows, first))
    names = [one.column for one in run.problem.features if not may_name_people(one, len(table))][
        :MOST_FEATURES
    ]
    own = {
        "label": [str(value) for value in found["label"]],
        "suggested label": [str(value) for value in found["suggested"]],
        "group": [group_name(value) for value in found["group"]],
    }
    return own | {
        name: [_value_text(value) for value in rows.cells(name)] for name in names if name in rows.columns
    }


def may_name_people(feature: Feature, rows: int) -> bool:
    """Return whether a column looks like names or identifiers, by its own name or by its values."""
    different = feature.kind == "categories" and feature.distinct > MOSTLY_DIFFERENT * rows
    return different or PERSONAL.search(feature.column) is not None


def _value_text(value: Any) -> str:
    """Write a value of the table, a number without what nobody reads."""
    return "–" if value is None else f"{value:.6g}" if isinstance(value, float) else str(value)


def columns_table(run: TableRun) -> Table:
    """List every column, and what was made of it."""
    problem, dash = run.problem, Cell("–")
    learnt = {feature.column for feature in problem.features}
    rows: list[list[Any]] = [[problem.labels.column, "label", dash, dash, "what is predicted"]]
    rows += [
        [column, "sensitive", dash, dash, "groups only; not learnt from"]
        for column in problem.groups.columns
        if column not in learnt
    ]
    for one in problem.features:
        sensitive = "sensitive, " if one.column in problem.groups.columns else ""
        rows.append([one.column, sensitive + one.kind, one.missing, one.distinct, run.treatment(one)])
    titles = ["column", "holds", "missing", "different values", "what is made of it"]
    return plain_table("columns", "The columns, and what was made of each", titles, rows)


# ---- Figures


def rates_figure(
    name: str, measures: Sequence[Measure], groups: Sequence[str | None], *, both: bool = True
) -> Figure:
    """Draw where each group stands under the plain model and under the fair one, or under one: a panel for each rate.

    All panels have one axis: tenths around every interval, and a little more, so that no marker is cut.
    """
    looks = looks_of(map(group_name, groups))  # the same in every figure
    shares = [share for one in measures for share in (*one.plain, *one.fair) if share.total]
    low = min((share.interval[0] for share in shares), default=0.0)
    high = max((share.interval[1] for share in shares), default=1.0)
    ends = math.floor(10 * low) / 10 - 0.02, math.ceil(10 * high) / 10 + 0.02
    panels = []
    for measure in measures:
        rows = zip(groups, measure.plain, measure.fair, strict=True)
        named = {
            str(group): (plain, fair)[: 1 + both] for group, plain, fair in rows if group and plain.total
        }
        series = [
            Series(
                group,
                [share.value for share in row],
                [height] * len(row),
                "dumbbell" if both else "points",
                labels=MODELS if both else None,
                x_interval=[share.interval for share in row],
                look=looks[group],
            )
            for height, (group, row) in enumerate(named.items())
        ]
        titles = (measure.title, measure.meaning) if len(measures) > 1 else (upper(measure.meaning), "share")
        panels.append(Panel(*titles, "group", series, x_range=ends, y_names=list(named)))
    models = "From the plain model (open) to the fair one (filled); t" if both else "T"
    return Figure(name, f"{models}hin lines are 95 % intervals.", panels)


def order_rates(measures: Sequence[Measure], fairness: str, gaps: Sequence[Gap] = ()) -> list[Measure]:
    """Order rates: those that a decision is about, then those that fairness compares; of many, the first ones."""
    named = [gap.measure.name for gap in gaps]
    place = {name: -len(named) + i for i, name in reversed(list(enumerate(named)))}
    return sorted(measures, key=lambda one: (place.get(one.name, 0), fairness not in one.notions))[
        :MOST_MEASURES
    ]


def trade_off_figure(run: TableRun) -> Figure:
    """Draw accuracy against disparity: the plain model, the one that is kept, and the others on the way."""
    ends = {"plain model": run.trade_off[0], f"kept: {run.kept.title}": run.kept}
    if run.keeps_plain:
        ends = {"plain model (kept)": run.kept}
    drawn = []
    for name, point in ends.items():
        accuracy, disparity = point.scores["accuracy"], point.scores["disparity"]
        drawn.append(
            Series(
                name,
                [disparity.value],
                [accuracy.value],
                "points",
                interval=[accuracy.interval],
                x_interval=[disparity.interval],
            )
        )
    others = [point for point in run.trade_off[1:] if not point.kept]
    if others:
        x, y = ([point.scores[name].value for point in others] for name in ("disparity", "accuracy"))
        titles = [point.title for point in others]
        drawn.append(Series("others on the way", x, y, "points", labels=titles, dashed=True))
    title = f"{run.asked.fairness.replace('_', ' ')} disparity"
    caption = (
        "Accuracy against disparity on the test part; better is up and to the left. Lines are 95 % intervals."
    )
    return Figure("trade-off", caption, [Panel("Trade-off", title, "accuracy", drawn)])


def calibration_figure(
    found: Sequence[Calibration], models: dict[str, str], groups: Sequence[str | None]
) -> Figure | None:
    """Draw the share that has the label against its probability, by group: a panel for each model."""
    looks = looks_of(map(group_name, groups))
    drawn = [one for one in found if one.group in groups[:MOST_GROUPS] and one.group is not None and one.bins]
    if not drawn:
        return None
    what = drawn[0].label or "the predicted label"
    panels = []
    for model, title in models.items():
        series = [Series("as predicted", [0.0, 1.0], [0.0, 1.0], dashed=True)]
        series += [
            Series(
                group_name(one.group),
                [part.predicted for part in one.bins],
                [part.observed.value for part in one.bins],
                "points",
                interval=[part.observed.interval for part in one.bins],
                labels=[f"{part.observed.total:,} people" for part in one.bins],
                look=looks[group_name(one.group)],
            )
            for one in drawn
            if one.model == model
        ]
        axes = (f"probability of {what}", f"share with {what}")
        panels.append(Panel(title, *axes, series, x_range=(-0.02, 1.02)))
    return Figure("calibration", "Shares by probability and group; lines, 95 % intervals.", panels)
