"""Tables as Markdown, CSV and LaTeX, and figures as SVG."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from fairsieve.files import write_output
from fairsieve.report.document import Figure, Series, Table
from fairsieve.report.looks import SYMBOLS, Look, colour, pyplot

__all__ = ["write_figure", "write_table"]

PANELS_IN_A_ROW, PANEL_SIZE = 3, (3.6, 2.9)
MANY_POINTS = 50  # from here on points are small
MARKS = {"best": "**{}**", "second": "*{}*", "": "{}"}


def write_table(table: Table, folder: Path, *, only_csv: bool = False) -> None:
    """Write a table as ``<name>.md``, ``<name>.csv`` and ``<name>.tex``."""
    texts = [
        [f"{cell.text} ({cell.reference})" if cell.reference else cell.text for cell in row]
        for row in table.rows
    ]
    frame = pd.DataFrame(texts, columns=[column.full_title for column in table.columns])
    write_output(folder / f"{table.name}.csv", frame.to_csv(index=False).encode())
    if only_csv:
        return
    latex = frame.to_latex(index=False, escape=True, caption=table.caption, label=f"tab:{table.name}")
    write_output(folder / f"{table.name}.tex", latex.encode())
    marked = [[MARKS[cell.mark].format(text.replace("|", "\\|")) for cell, text in zip(row, line, strict=True)]
              for row, line in zip(table.rows, texts, strict=True)]  # fmt: skip
    rule = ["---:" if column.numeric else "---" for column in table.columns]
    lines = [f"| {' | '.join(row)} |" for row in (list(frame.columns), rule, *marked)]
    write_output(folder / f"{table.name}.md", "\n".join([f"**{table.caption}**", "", *lines, ""]).encode())


def write_figure(figure: Figure, folder: Path) -> None:
    """Draw a figure into ``<name>.svg``. The same figure has the same bytes."""
    plt = pyplot()
    columns = 2 if len(figure.panels) in (2, 4, 8) else min(len(figure.panels), PANELS_IN_A_ROW)
    rows, looks = -(-len(figure.panels) // columns), figure.looks()
    size = (PANEL_SIZE[0] * columns, PANEL_SIZE[1] * rows)
    drawn, axes = plt.subplots(rows, columns, figsize=size, layout="constrained", squeeze=False)
    handles: dict[str, Any] = {}
    for axis, panel in zip(axes.flat, figure.panels, strict=False):
        axis.set(title=panel.title, xlabel=panel.x_title, ylabel=panel.y_title)
        for place, series in enumerate(panel.series):
            handles.setdefault(series.name, _draw(axis, series, looks[series.name], place))
    drawn.legend(
        list(handles.values()), list(handles), loc="outside upper center", ncols=min(len(handles), 6)
    )
    stream = io.BytesIO()
    try:
        drawn.savefig(stream, format="svg", metadata={"Date": None})
    finally:
        plt.close(drawn)
    write_output(folder / f"{figure.name}.svg", stream.getvalue())


def _draw(axis: Any, series: Series, look: Look, place: int) -> Any:
    """Draw a series; return what stands for it in the legend."""
    y, shade, marker = np.asarray(series.y, dtype=float), colour(look), SYMBOLS[look.symbol].matplotlib
    if series.kind == "bars":
        axis.set_xticks([])
        return axis.bar(place, y, color=shade)
    x = np.asarray(series.x, dtype=float)
    if series.kind == "line":
        band = np.asarray(series.deviation if series.deviation is not None else np.zeros_like(y))
        axis.fill_between(x, y - band, y + band, color=shade, alpha=0.18, linewidth=0)
        return axis.plot(x, y, color=shade, marker=marker if len(x) < MANY_POINTS else "", markersize=4)[0]
    few = len(x) < MANY_POINTS
    return axis.errorbar(
        x,
        y,
        yerr=series.deviation,
        xerr=series.x_deviation,
        color=shade,
        marker=marker,
        markersize=6 if few else 3,
        linestyle="-" if series.kind == "curve" else "none",
        linewidth=1.0,
        alpha=None if few else 0.5,
        rasterized=not few,
    )
