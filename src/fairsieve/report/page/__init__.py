"""A document as one HTML file that opens anywhere, offline: a template, a style sheet, a script and Plotly."""

from __future__ import annotations

import base64
import functools
import gzip
import hashlib
import html
import math
import re
from collections.abc import Iterator, Sequence
from importlib import resources
from itertools import groupby
from pathlib import Path
from typing import Any

from fairsieve.files import write_output
from fairsieve.report.document import (
    SYMBOLS,
    THEMES,
    Block,
    Cell,
    Column,
    Document,
    Figure,
    Look,
    Panel,
    Series,
    Table,
    Theme,
    Verdict,
)
from fairsieve.report.text import environment, writable


def write_page(document: Document, path: Path | str) -> None:
    """Write a document as one HTML file: whole or not at all, and complete in itself.

    Parameters
    ----------
    document : Document
        What the page says. All its text is shown as text, whatever is in it.
    path : Path or str
        The file; its folder must exist.

    Raises
    ------
    InvalidInputError
        When the file cannot be written.

    Examples
    --------
    >>> import tempfile
    >>> from fairsieve.report.document import Section, Text
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     page = Path(folder) / "page.html"
    ...     write_page(Document("A title", "What it shows.", [Section("one", "One", [Text("Words.")])]), page)
    ...     ">One</h2>" in page.read_text(encoding="utf-8")
    True
    """
    write_output(Path(path), render_page(document).encode())


def render_page(document: Document) -> str:
    """Render a document as HTML."""
    blocks = [block for section in document.sections for block in section.blocks]
    outcomes = [block.holds for block in blocks if isinstance(block, Verdict)]
    has_charts = any(isinstance(block, Figure) for block in blocks)
    packed, packed_hash = plotly_packed() if has_charts else ("", "")
    return fill_template(
        "page",
        packed_hash,
        document=document,
        counts={holds: outcomes.count(holds) for holds in (True, False, None)},
        sections=[(section, list(_drawn_blocks(section.blocks))) for section in document.sections],
        theme_data={name: theme._asdict() for name, theme in THEMES.items()},
        plotly=packed,
    )


def fill_template(name: str, *hashes: str, **facts: Any) -> str:
    """Fill a template with its style sheet, its script and a policy that allows no script but that and those hashed."""
    script = _resource(f"{name}.js")
    facts["themes"] = {title: _colour_variables(theme) for title, theme in THEMES.items()}
    facts |= {"style": _resource(f"{name}.css"), "script": script}
    policy = _content_policy(script_hash(script), *hashes)
    page = environment(__package__).get_template(f"{name}.html").render(policy=policy, **facts)
    return writable(page.lstrip())


def _drawn_blocks(blocks: Sequence[Block]) -> Iterator[tuple[str, Any]]:
    """Name the macro of each block; verdicts that follow one another are one list."""
    for kind, run in groupby(blocks, key=type):
        if kind is Verdict:
            yield "verdicts", list(run)
        else:
            yield from (
                (kind.__name__.lower(), _view(block) if isinstance(block, Figure) else block) for block in run
            )


def _view(figure: Figure) -> dict[str, Any]:
    """Collect what the template needs beside a figure."""
    keys = [(name, look.hue, SYMBOLS[look.symbol].path) for name, look in figure.looks().items()]
    return {"figure": figure, "chart": chart_data(figure), "keys": keys, "tables": data_tables(figure)}


def _resource(name: str) -> str:
    """Read a file of this folder."""
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")


@functools.cache
def plotly_packed() -> tuple[str, str]:
    """Compress Plotly's script (it is five times its size otherwise), and compute its hash."""
    from plotly.offline import get_plotlyjs  # late: it is large

    source: str = get_plotlyjs()
    return base64.b64encode(gzip.compress(source.encode(), mtime=0)).decode(), script_hash(source)


def _colour_variables(theme: Theme) -> dict[str, str]:
    """Write a theme as CSS variables."""
    variables: dict[str, str] = {}
    for name, value in theme._asdict().items():
        if isinstance(value, str):
            variables[name] = value
        else:
            parts = value.items() if isinstance(value, dict) else enumerate(value)
            variables |= {f"{name}-{key}": entry for key, entry in parts}
    return variables


def _content_policy(*hashes: str) -> str:
    """Write the content security policy: nothing from anywhere, no script but ours."""
    scripts = " ".join(f"'{value}'" for value in hashes if value)
    # Plotly sets styles on what it draws.
    return (
        f"default-src 'none'; script-src {scripts}; style-src 'unsafe-inline'; img-src data: blob:; "
        "base-uri 'none'; form-action 'none'"
    )


def script_hash(text: str) -> str:
    """Compute the hash by which a policy allows an inline script."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


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
