"""A figure as SVG and PNG."""

from __future__ import annotations

import io
import math
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from fairsieve.files import write_output
from fairsieve.report.document import Figure, Panel, Series
from fairsieve.report.looks import SYMBOLS, THEMES, Look
from fairsieve.report.style import pyplot

__all__ = ["write_figure_files"]

PANELS_IN_A_ROW = 3
PANEL_SIZE = (3.6, 2.9)
MOST_MARKERS = 30  # on a line; more would hide it
MANY_POINTS = 50  # from here on points are small and let others shine through


def write_figure_files(figure: Figure, folder: Path | str) -> list[Path]:
    """Draw a figure into ``<name>.svg`` and ``<name>.png``; return where. The same figure has the same bytes.

    Examples
    --------
    >>> import tempfile
    >>> line = Series("LR", [1, 2, 3], [0.5, 0.6, 0.7], deviation=[0.1, 0.1, 0.1])
    >>> figure = Figure("one", "One", [Panel("Accuracy", "epoch", "accuracy", [line])])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     [path.name for path in write_figure_files(figure, folder)]
    ['one.svg', 'one.png']
    """
    plt = pyplot()
    columns = (
        2 if len(figure.panels) == 4 else min(len(figure.panels), PANELS_IN_A_ROW)
    )  # no place stays empty
    rows = math.ceil(len(figure.panels) / columns)
    looks = figure.looks()
    size = (PANEL_SIZE[0] * columns, PANEL_SIZE[1] * rows)
    paths = []
    drawn, axes = plt.subplots(rows, columns, figsize=size, layout="constrained", squeeze=False)
    try:
        for axis, panel in zip(axes.flat, figure.panels, strict=False):
            _draw_panel(axis, panel, looks)
        for axis in axes.flat[len(figure.panels) :]:
            axis.set_axis_off()
        _draw_legend(drawn, figure, looks)
        for ending, metadata in (("svg", {"Date": None}), ("png", {"Software": None})):
            stream = io.BytesIO()
            with warnings.catch_warnings():  # a script our font lacks is drawn as boxes
                warnings.filterwarnings("ignore", message="Glyph .* missing from", category=UserWarning)
                drawn.savefig(stream, format=ending, metadata=metadata, dpi=160)
            paths.append(Path(folder) / f"{figure.name}.{ending}")
            write_output(paths[-1], stream.getvalue())
    finally:
        plt.close(drawn)
    return paths


def _draw_panel(axis: Any, panel: Panel, looks: dict[str, Look]) -> None:
    """Draw axes, titles and series."""
    for put, text in (
        (axis.set_title, panel.title),
        (axis.set_xlabel, panel.x_title),
        (axis.set_ylabel, panel.y_title),
    ):
        put(text, parse_math=False)
    places = _positions(panel)
    bars = [series for series in panel.series if series.kind == "bars"]
    for series in panel.series:
        look = looks[series.name]
        x = np.array([places[value] for value in series.x]) if places else np.asarray(series.x, dtype=float)
        if series.kind == "bars":
            _draw_bars(axis, series, look, x, _index(bars, series), len(bars))
        elif series.kind in ("points", "curve"):
            _draw_points(axis, series, look, x)
        elif series.kind == "dumbbell":
            _draw_dumbbell(axis, series, look, x)
        else:
            _draw_line(axis, series, look, x)
    _fix_axes(axis, panel)
    if places:
        axis.set_xticks(list(places.values()))
        labels = axis.set_xticklabels([str(value) for value in places])
        for label in labels:
            label.set_parse_math(False)
        if max(len(str(value)) for value in places) * len(places) > 40:
            axis.tick_params(axis="x", rotation=30)
        axis.grid(visible=False, axis="x")


def _fix_axes(axis: Any, panel: Panel) -> None:
    """Set the ranges that a panel fixes, and name the heights that it names."""
    if panel.x_range is not None:
        axis.set_xlim(*panel.x_range)
    if panel.y_range is not None:
        axis.set_ylim(*panel.y_range)
    if panel.y_names:
        axis.set_ylim(len(panel.y_names) - 0.5, -0.5)
        axis.set_yticks(range(len(panel.y_names)))
        for label in axis.set_yticklabels(list(panel.y_names)):
            label.set_parse_math(False)
        axis.grid(visible=False, axis="y")


def _positions(panel: Panel) -> dict[float | str, int]:
    """Place categories in order of appearance; return nothing where the axis has numbers."""
    values = [x for series in panel.series for x in series.x]
    if not any(isinstance(x, str) for x in values):
        return {}
    return {value: i for i, value in enumerate(dict.fromkeys(values))}


def _index(bars: Sequence[Series], series: Series) -> int:
    """Find which of the bars it is; two may be equal."""
    return next(i for i, other in enumerate(bars) if other is series)


def _hue(look: Look) -> str:
    return THEMES["light"].hues[look.hue]


def _line_style(series: Series) -> str:
    return "--" if series.dashed else "-"


def _line_marker(series: Series, look: Look) -> str:
    """Choose a line's marker: none where it is a reference or would hide the line; points always have one."""
    bare = series.kind == "line" and (series.dashed or len(series.x) > MOST_MARKERS)
    return "" if bare else SYMBOLS[look.symbol].matplotlib


def _draw_line(axis: Any, series: Series, look: Look, x: Any) -> None:
    """Draw a line, and its deviation as a band."""
    y = np.asarray(series.y, dtype=float)
    style, marker = _line_style(series), _line_marker(series, look)
    axis.plot(x, y, color=_hue(look), linestyle=style, linewidth=1.5, marker=marker, markersize=4)
    if series.deviation is not None:
        deviation = np.asarray(series.deviation, dtype=float)
        axis.fill_between(x, y - deviation, y + deviation, color=_hue(look), alpha=0.18, linewidth=0)


def _draw_points(axis: Any, series: Series, look: Look, x: Any) -> None:
    """Draw points, with bars of deviation."""
    many = len(x) > MANY_POINTS
    face = "none" if series.dashed else _hue(look)
    axis.errorbar(
        x,
        np.asarray(series.y, dtype=float),
        yerr=_lengths(series.deviation, series.interval, series.y),
        xerr=_lengths(series.x_deviation, series.x_interval, x),
        linestyle="-" if series.kind == "curve" else "none",
        linewidth=1.0,
        marker=SYMBOLS[look.symbol].matplotlib,
        markersize=3 if many else 6,
        alpha=0.55 if many else None,
        rasterized=len(x) > MANY_POINTS * 10,  # thousands of shapes make a large file
        color=_hue(look),
        markerfacecolor=face,
        elinewidth=0.8,
        capsize=2,
    )


def _draw_dumbbell(axis: Any, series: Series, look: Look, x: Any) -> None:
    """Draw two values, before (open) and after (filled), and a line that joins them."""
    places = np.asarray(series.y, dtype=float) + np.array([-0.13, 0.13])
    axis.plot(x, places, color=_hue(look), linewidth=2.5, alpha=0.45)
    reach = _lengths(None, series.x_interval, x)
    for i, face in enumerate((THEMES["light"].background, _hue(look))):
        axis.errorbar(
            x[i],
            places[i],
            xerr=None if reach is None else reach[:, i : i + 1],
            marker=SYMBOLS[look.symbol].matplotlib,
            markersize=6,
            color=_hue(look),
            markerfacecolor=face,
            elinewidth=0.8,
            capsize=2,
        )


def _lengths(deviations: Any, intervals: Any, middle: Any) -> Any:
    """Compute how far error bars reach: to both sides alike, or to the ends of intervals."""
    if intervals is None:
        return deviations
    return np.abs(np.asarray(intervals, dtype=float).T - np.asarray(middle, dtype=float))


def _draw_bars(axis: Any, series: Series, look: Look, x: Any, i: int, count: int) -> None:
    """Draw bars beside those of the other series."""
    step = np.diff(np.unique(x)).min() if len(np.unique(x)) > 1 else 1
    width = 0.8 * step / count
    place = x + (i - (count - 1) / 2) * width
    face = "none" if series.dashed else _hue(look)
    hatch = "///" if series.dashed else None
    errors = {"elinewidth": 0.8, "capsize": 2, "ecolor": THEMES["light"].ink}
    axis.bar(
        place,
        series.y,
        width,
        yerr=_lengths(series.deviation, series.interval, series.y),
        facecolor=face,
        edgecolor=_hue(look),
        hatch=hatch,
        error_kw=errors,
    )


def _draw_legend(drawn: Any, figure: Figure, looks: dict[str, Look]) -> None:
    """Draw one legend for all panels, above them."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    handles: dict[str, Any] = {}
    for series in (series for panel in figure.panels for series in panel.series):
        look = looks[series.name]
        if series.kind == "bars":
            handle: Any = Patch(color=_hue(look))
        else:
            style: Any = "none" if series.kind == "points" else _line_style(series)
            handle = Line2D([], [], color=_hue(look), linestyle=style, marker=_line_marker(series, look))
        handles.setdefault(series.name, handle)
    if not handles:
        return
    # Texts are set afterwards: given at once, a name that begins with _ would be left out.
    columns = min(len(handles), 6)
    legend = drawn.legend(
        list(handles.values()), ["x"] * len(handles), loc="outside upper center", ncols=columns
    )
    for text, name in zip(legend.get_texts(), handles, strict=True):
        text.set_parse_math(False)
        text.set_text(name)
