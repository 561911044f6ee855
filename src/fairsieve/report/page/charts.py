"""A figure as the data its chart is drawn from (``page.js`` draws), and as tables to read."""

from __future__ import annotations

import html
import math
import re
from collections.abc import Sequence
from typing import Any

from fairsieve.report.document import Cell, Column, Figure, Panel, Series, Table
from fairsieve.report.looks import SYMBOLS, Look

SIGNIFICANT_DIGITS = 6


def _plotly_text(text: str) -> str:
    """Escape text, in which Plotly would take tags, entities and line breaks for its own.

    Examples
    --------
    >>> _plotly_text("<b>A & B</b>")
    '&lt;b&gt;A &amp; B&lt;/b&gt;'
    """
    return html.escape(re.sub(r"\s+", " ", text), quote=False)


def chart_data(figure: Figure) -> dict[str, Any]:
    """Collect what the page's script needs to draw a figure: panels of series, with names by number."""
    looks = figure.looks()
    names = list(looks)
    return {"names": [_plotly_text(name) for name in names], "panels": [
        {
            "x_title": _plotly_text(panel.x_title),
            "y_title": _plotly_text(panel.y_title),
            "categories": _has_categories(panel),
            "x_range": panel.x_range,
            "y_names": [_plotly_text(name) for name in panel.y_names],
            "series": [_series_data(series, names.index(series.name), looks) for series in panel.series],
        }
        for panel in figure.panels
    ]}  # fmt: skip


def _has_categories(panel: Panel) -> bool:
    """Return whether the horizontal axis has names in place of numbers."""
    return any(isinstance(x, str) for series in panel.series for x in series.x)


def _series_data(series: Series, place: int, looks: dict[str, Look]) -> dict[str, Any]:
    """Describe one series; leave out what it does not have."""
    look = looks[series.name]
    data: dict[str, Any] = {
        "name": place,
        "kind": series.kind,
        "hue": look.hue,
        "symbol": SYMBOLS[look.symbol].plotly,
        "x": [_plotly_text(x) if isinstance(x, str) else _plain_number(x) for x in series.x],
        "y": [_plain_number(y) for y in series.y],
    }
    for name in ("deviation", "x_deviation", "interval", "x_interval"):
        values = getattr(series, name)
        if values is not None:
            data[name] = [
                [*map(_plain_number, v)] if isinstance(v, tuple) else _plain_number(v) for v in values
            ]
    if series.labels is not None:
        data["labels"] = [_plotly_text(label) for label in series.labels]
    if series.dashed:
        data["dashed"] = True
    return data


def _plain_number(value: float) -> float | int | None:
    """Shorten a number for JSON; None where there is none."""
    number = float(value)
    if not math.isfinite(number):
        return None
    number = float(f"{number:.{SIGNIFICANT_DIGITS}g}")
    return int(number) if number.is_integer() else number


def data_tables(figure: Figure) -> list[Table]:
    """Write the figure's numbers as a table for each panel."""
    return [_panel_table(f"{figure.name}-data-{i}", panel) for i, panel in enumerate(figure.panels)]


def _panel_table(name: str, panel: Panel) -> Table:
    """Make a table with a row for each point; the height of a named row says nothing."""
    labelled = any(series.labels for series in panel.series)
    columns = [Column("series"), *([Column("point")] if labelled else [])]
    columns.append(Column(panel.x_title, not _has_categories(panel)))
    columns += [] if panel.y_names else [Column(panel.y_title, True)]
    rows = []
    for series in panel.series:
        title = series.name + (" (dashed)" if series.dashed and series.kind == "line" else "")
        for i, (x, y) in enumerate(zip(series.x, series.y, strict=True)):
            row = [Cell(title), *([Cell(series.labels[i] if series.labels else "")] if labelled else [])]
            row.append(_cell(x, series.x_deviation, series.x_interval, i))
            row += [] if panel.y_names else [_cell(y, series.deviation, series.interval, i)]
            rows.append(row)
    return Table(name, panel.title, columns, rows)


def _cell(
    number: float | str,
    deviations: Sequence[float] | None,
    intervals: Sequence[tuple[float, float]] | None,
    i: int,
) -> Cell:
    """Write a value, with the interval it may lie in or its deviation behind it."""
    value = number if isinstance(number, str) else _plain_number(number)
    if value is None or isinstance(value, str):
        return Cell(value or "–")
    spread = "" if deviations is None else f" ± {deviations[i]:.3g}"
    if intervals is not None:
        spread = f" [{intervals[i][0]:.3g}, {intervals[i][1]:.3g}]"
    return Cell(f"{value:.4g}{spread}", value=value)
