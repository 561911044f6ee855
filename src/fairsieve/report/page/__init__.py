"""A document as one HTML file that opens anywhere, offline: a template, a style sheet, a script and Plotly."""

from __future__ import annotations

import base64
import functools
import gzip
import hashlib
import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from importlib import resources
from itertools import groupby
from pathlib import Path
from typing import Any

from fairsieve.files import write_output
from fairsieve.report.document import Block, Cell, Document, Facts, Figure, Items, Table, Text, Verdict
from fairsieve.report.looks import SYMBOLS, THEMES, Theme
from fairsieve.report.page.charts import chart_data, data_tables
from fairsieve.report.text import environment

KINDS = {Text: "text", Items: "items", Table: "table", Figure: "figure", Facts: "facts"}


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
    >>> from fairsieve.report.document import Section
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
    script = resource("page.js")
    has_charts = any(isinstance(block, Figure) for block in blocks)
    packed, packed_hash = plotly_packed() if has_charts else ("", "")
    return str(
        templates()
        .get_template("page.html")
        .render(
            document=document,
            counts={holds: outcomes.count(holds) for holds in (True, False, None)},
            sections=[(section, list(_drawn_blocks(section.blocks))) for section in document.sections],
            themes=THEMES,
            theme_data={name: asdict(theme) for name, theme in THEMES.items()},
            style=resource("page.css"),
            script=script,
            policy=content_policy(script_hash(script), packed_hash),
            plotly=packed,
        )
    )


def _drawn_blocks(blocks: Sequence[Block]) -> Iterator[tuple[str, Any]]:
    """Group blocks by kind; verdicts that follow one another are one list."""
    for kind, run in groupby(blocks, key=type):
        if kind is Verdict:
            yield "verdicts", list(run)
        else:
            yield from ((KINDS[kind], _view(block)) for block in run)


def _view(block: Block) -> Any:
    """Collect what the template needs of a figure beside it."""
    if not isinstance(block, Figure):
        return block
    keys = [(name, look.hue, SYMBOLS[look.symbol].path) for name, look in block.looks().items()]
    return {"figure": block, "chart": chart_data(block), "keys": keys, "tables": data_tables(block)}


def _apart_level(cell: Cell) -> int | None:
    """Choose how strongly a cell is shaded: 0 within one standard deviation, 3 beyond three."""
    if cell.apart is None or math.isnan(cell.apart):
        return None
    return min(3, max(0, math.ceil(min(abs(cell.apart), 4)) - 1))


def resource(name: str) -> str:
    """Read a file of this folder."""
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")


@functools.cache
def plotly_packed() -> tuple[str, str]:
    """Compress Plotly's script (it is five times its size otherwise), and compute its hash."""
    from plotly.offline import get_plotlyjs  # late: it is large

    source: str = get_plotlyjs()
    return base64.b64encode(gzip.compress(source.encode(), mtime=0)).decode(), script_hash(source)


@functools.cache
def templates() -> Any:
    """Load the templates, in which every value is escaped."""
    found = environment("fairsieve.report.page")
    found.filters |= {"apart_level": _apart_level, "variables": colour_variables}
    return found


def colour_variables(theme: Theme) -> dict[str, str]:
    """Write a theme as CSS variables."""
    found: dict[str, str] = {}
    for name, value in asdict(theme).items():
        if isinstance(value, dict):
            found |= {f"{name}-{key}": entry for key, entry in value.items()}
        elif isinstance(value, tuple):
            found |= {f"{name}-{i}": entry for i, entry in enumerate(value)}
        else:
            found[name] = value
    return found


def content_policy(*hashes: str) -> str:
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
