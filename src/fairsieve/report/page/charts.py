"""A figure as the data its chart is drawn from (``page.js`` draws), and as tables to read."""

from __future__ import annotations

import html
import math
import re
from collections.abc import Sequence
from typing import Any

from fairsieve.report.document import Cell, Column, Figure, Panel, Series, Table
from fairsieve.report.looks import SYMBOLS, Look

__all__ = ["chart_data", "data_tables"]

SIGNIFICANT_DIGITS = 6


def _series_names(figure: Figure) -> list[str]:
    """List the names of a figure's series, each once, in order."""
    return list(dict.fromkeys(series.name for panel in figure.panels for series in panel.series))


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
    names = _series_names(figure)
    looks = figure.looks()
    return {"names": [_plotly_text(name) for name in names], "panels": [
        {
            "x_title": _plotly_text(panel.x_title),
            "y_title": _plotly_text(panel.y_title),
            "categories": _has_categories(panel),
            "x_range": panel.x_range,
            "y_range": panel.y_range,
            "y_names": [_plotly_text(name) for name in panel.y_names],
            "series": [_series_data(series, names.index(series.name), looks) for series in panel.series],
        }
        for panel in figure.panels
    ]}  # fmt: skip


def _has_categories(panel: Panel) -> bool:
    """Return whether the horizontal axis has names in place of numbers."""
    return any(isinstance(x, str) for series in panel.series for x in series.x)


def _series_data(series: Series, name: int, looks: dict[str, Look]) -> dict[str, Any]:
    """Describe one series; leave out what it does not have."""
    look = looks[series.name]
    data: dict[str, Any] = {
        "name": name,
        "kind": series.kind,
        "hue": look.hue,
        "symbol": SYMBOLS[look.symbol].plotly,
        "x": [_plotly_text(x) if isinstance(x, str) else _plain_number(x) for x in series.x],
        "y": [_plain_number(y) for y in series.y],
    }
    if series.deviation is not None:
        data["deviation"] = [_plain_number(value) for value in series.deviation]
    if series.x_deviation is not None:
        data["x_deviation"] = [_plain_number(value) for value in series.x_deviation]
    if series.interval is not None:
        data["interval"] = [[_plain_number(end) for end in ends] for ends in series.interval]
    if series.x_interval is not None:
        data["x_interval"] = [[_plain_number(end) for end in ends] for ends in series.x_interval]
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
    """Write the figure's numbers as a table for each panel: a column for each series where they share x, else long."""
    return [_panel_table(f"{figure.name}-data-{i}", panel) for i, panel in enumerate(figure.panels)]


def _panel_table(name: str, panel: Panel) -> Table:
    shared = len({tuple(map(str, series.x)) for series in panel.series}) == 1
    labelled = any(
        extra is not None
        for series in panel.series
        for extra in (series.labels, series.x_deviation, series.x_interval)
    )
    unique = len({(series.name, series.dashed) for series in panel.series}) == len(panel.series)
    layout = _wide_table if shared and unique and not labelled else _long_table
    if panel.series and all(series.kind == "dumbbell" for series in panel.series):
        layout = _dumbbell_table
    columns, rows = layout(panel)
    return Table(name, panel.title, columns, rows)


def _dumbbell_table(panel: Panel) -> tuple[list[Column], list[list[Cell]]]:
    """Make a table with a row for each series, and a column for each of its two ends."""
    ends = panel.series[0].labels or ("before", "after")
    columns = [Column("series"), *(Column(title, True) for title in ends)]
    rows = [
        [
            Cell(series.name),
            *(_x_cell(x, _spread(None, series.x_interval, i)) for i, x in enumerate(series.x)),
        ]
        for series in panel.series
    ]
    return columns, rows


def _wide_table(panel: Panel) -> tuple[list[Column], list[list[Cell]]]:
    """Make a table with a row for each x."""
    titles = [series.name + (" (dashed)" if series.dashed else "") for series in panel.series]
    columns = [Column(panel.x_title, not _has_categories(panel)), *(Column(title, True) for title in titles)]
    rows = [
        [
            _x_cell(x),
            *(
                _number_cell(series.y[i], _spread(series.deviation, series.interval, i))
                for series in panel.series
            ),
        ]
        for i, x in enumerate(panel.series[0].x)
    ]
    return columns, rows


def _long_table(panel: Panel) -> tuple[list[Column], list[list[Cell]]]:
    """Make a table with a row for each point."""
    columns = [
        Column("series"),
        Column("point"),
        Column(panel.x_title, not _has_categories(panel)),
        Column(panel.y_title, True),
    ]
    rows = [
        [
            Cell(series.name),
            Cell(series.labels[i] if series.labels else ""),
            _x_cell(x, _spread(series.x_deviation, series.x_interval, i)),
            _number_cell(series.y[i], _spread(series.deviation, series.interval, i)),
        ]
        for series in panel.series
        for i, x in enumerate(series.x)
    ]
    return columns, rows


def _x_cell(x: float | str, spread_text: str = "") -> Cell:
    return Cell(x) if isinstance(x, str) else _number_cell(x, spread_text)


def _spread(
    deviations: Sequence[float] | None, intervals: Sequence[tuple[float, float]] | None, i: int
) -> str:
    """Write a value's deviation, or the interval it may lie in, as it stands behind it."""
    if intervals is not None:
        return f" [{intervals[i][0]:.3g}, {intervals[i][1]:.3g}]"
    return "" if deviations is None else f" ± {deviations[i]:.3g}"


def _number_cell(number: float, spread_text: str) -> Cell:
    """Make a cell of a number, with its deviation or interval behind it."""
    value = _plain_number(number)
    return Cell("–") if value is None else Cell(f"{value:.4g}{spread_text}", value=value)
