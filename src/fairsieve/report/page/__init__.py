"""Pages: what one says, what has which colour and shape, and how it becomes one HTML file.

Whoever has results writes a :class:`Document` of sections of text, verdicts, tables, figures and facts. Every string
is plain text and is escaped where it is drawn.
"""

from __future__ import annotations

import base64
import functools
import gzip
import hashlib
import html
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib import resources
from itertools import cycle, groupby
from pathlib import Path
from typing import Any, Literal, NamedTuple

from fairsieve.errors import require
from fairsieve.files import write_output
from fairsieve.report.text import environment, markdown, writable

# ---- Looks: one for each series name, two themes, and Matplotlib in that style

# The hues are the families of Okabe and Ito, darkened (or lightened) until each stands at least 3 : 1 from the
# background and no two are alike to an eye that sees two primaries; a symbol tells those of one hue apart. The tests
# measure both.


class _Symbol(NamedTuple):
    """A shape, for Matplotlib, for Plotly, and as an SVG path in a box of 10 by 10 around the origin."""

    matplotlib: str
    plotly: str
    path: str


SYMBOLS = {
    "circle": _Symbol("o", "circle", "M4 0A4 4 0 1 1-4 0A4 4 0 1 1 4 0Z"),
    "square": _Symbol("s", "square", "M-3.6-3.6H3.6V3.6H-3.6Z"),
    "triangle": _Symbol("^", "triangle-up", "M0-4.4L4.4 3.4H-4.4Z"),
    "diamond": _Symbol("D", "diamond", "M0-5L5 0L0 5L-5 0Z"),
    "cross": _Symbol("P", "cross", "M-1.6-4.6H1.6V-1.6H4.6V1.6H1.6V4.6H-1.6V1.6H-4.6V-1.6H-1.6Z"),
    "point": _Symbol("v", "triangle-down", "M0 4.4L4.4-3.4H-4.4Z"),
}


class Look(NamedTuple):
    """A hue by its name, and a symbol by its name."""

    hue: str
    symbol: str = "circle"


class Theme(NamedTuple):
    """Colours of a page: its surfaces and words, the hues of series, the shades of cells."""

    background: str
    panel: str
    line: str
    ink: str
    muted: str
    link: str
    hues: dict[str, str]
    # Words and ground of a claim that holds, that does not, and that is inconclusive.
    holds: tuple[str, str]
    fails: tuple[str, str]
    unknown: tuple[str, str]
    # Ground of a cell by how far it lies from its reference; words on it are ink.
    apart: tuple[str, str, str, str]


# Each on a light and on a dark background.
_HUES = {
    "blue": ("#0B57A4", "#3D8FD1"),
    "orange": ("#C0841A", "#F0B429"),
    "sky": ("#1A96E0", "#9AD7F5"),
    "green": ("#158058", "#43DDA6"),
    "red": ("#A8320C", "#DD6A35"),
    "pink": ("#A23E86", "#E08AC8"),
    "black": ("#1F2328", "#F0F3F6"),
    "grey": ("#767D86", "#8A9299"),
}
_COLOURS: dict[str, tuple[Any, Any]] = {
    "background": ("#FFFFFF", "#171B20"),
    "panel": ("#F6F8FA", "#1F252C"),
    "line": ("#D5DBE1", "#3A434D"),
    "ink": ("#1F2328", "#E8EDF2"),
    "muted": ("#57606A", "#A7B1BC"),
    "link": ("#0B57A4", "#86C5F7"),
    "holds": (("#0F5C2E", "#DDF4E4"), ("#86E3AE", "#143524")),
    "fails": (("#93290A", "#FDE7DF"), ("#FFAE92", "#44200F")),
    "unknown": (("#4A525B", "#E9EDF1"), ("#C6CED6", "#2E363F")),
    "apart": (("#EAF4EC", "#FFF3D1", "#FFE0A8", "#FFC57A"), ("#1D2E25", "#3A3014", "#574212", "#755408")),
}
THEMES = {
    title: Theme(
        hues={name: pair[place] for name, pair in _HUES.items()},
        **{name: pair[place] for name, pair in _COLOURS.items()},
    )
    for place, title in enumerate(("light", "dark"))
}

# Series that look the same in every figure. Other series bring their look (``Series.look``), or are given one.
NAMED_LOOKS = {
    "pareto front": Look("grey", "diamond"),
    "plain model": Look("grey"),
    "fair model": Look("blue"),
}
# Looks of series that have none of their own, in turn: a new hue each time, with another symbol in each round.
FREE_LOOKS = [
    Look(hue, (*SYMBOLS, *SYMBOLS)[place % len(SYMBOLS) + turn])
    for turn in range(len(SYMBOLS))
    for place, hue in enumerate(("blue", "orange", "sky", "green", "red", "pink", "black"))
]


def looks_of(names: Iterable[str], given: Mapping[str, Look] | None = None) -> dict[str, Look]:
    """Return a look for each name: the one that is given for it, or else a look that no other name has.

    Examples
    --------
    >>> looks_of(["ITLM", "LR"], {"ITLM": Look("orange", "square")})["ITLM"]
    Look(hue='orange', symbol='square')
    >>> len(set(looks_of(f"cell {i}" for i in range(7)).values()))
    7
    """
    distinct = list(dict.fromkeys(names))
    looks = {name: NAMED_LOOKS[name.lower()] for name in distinct if name.lower() in NAMED_LOOKS}
    looks |= {name: look for name, look in (given or {}).items() if name in distinct}
    taken = set(looks.values())
    free = (look for look in cycle(FREE_LOOKS) if look not in taken)
    return {name: looks[name] if name in looks else next(free) for name in distinct}


def colour(look: Look) -> str:
    """Return the colour of a look on a light background."""
    return THEMES["light"].hues[look.hue]


def pyplot() -> Any:
    """Return Matplotlib's pyplot in our style, drawing to files only."""
    plt = require("matplotlib.pyplot", purpose="drawing figures")
    plt.switch_backend("Agg")
    plt.style.use(f"{__package__}.figures")  # figures.mplstyle
    return plt


# ---- What a page says


class Text(NamedTuple):
    """A paragraph."""

    text: str


class Items(NamedTuple):
    """A short list under a caption."""

    caption: str
    texts: Sequence[str]


class Notice(NamedTuple):
    """What a reader must see first: a few words, a sentence, and short lines. ``holds`` colours it as a verdict's."""

    title: str
    text: str
    holds: bool | None
    lines: Sequence[str] = ()


class Verdict(NamedTuple):
    """A claim, and whether the numbers bear it out (None: they cannot tell).

    Where the evidence is long, a page folds it after its first sentence: let that say what was found.
    """

    claim: str
    source: str
    holds: bool | None
    evidence: str


class Column(NamedTuple):
    """A column's head; numbers sort by value and align right.

    Neighbours of one ``group`` stand under a common head.
    """

    title: str
    numeric: bool = False
    group: str = ""

    @property
    def full_title(self) -> str:
        """The title, for where there is one line of heads."""
        return f"{self.group}: {self.title}" if self.group else self.title


class Cell(NamedTuple):
    """One entry of a table.

    Attributes
    ----------
    text : str
        What is read first: our value.
    value : float or str, optional
        What sorts; the text when None.
    reference : str
        The value beside it, for example the paper's.
    apart : float, optional
        How many standard deviations lie between the two; shades the cell.
    mark : {"", "best", "second"}
        How it ranks in its column.
    note : str
        More, for those who ask (a tooltip, and a screen reader's description).
    """

    text: str
    value: float | str | None = None
    reference: str = ""
    apart: float | None = None
    mark: Literal["", "best", "second"] = ""
    note: str = ""

    @property
    def shade(self) -> int | None:
        """How strongly the cell is shaded: 0 within one standard deviation, 3 beyond three."""
        if self.apart is None or math.isnan(self.apart):
            return None
        return min(3, max(0, math.ceil(min(abs(self.apart), 4)) - 1))


class Table(NamedTuple):
    """Rows of cells under a caption.

    ``filterable`` adds a field that searches the rows; ``reference_title`` says what the cells' references
    are, for example "the paper's". With ``rows_at_once``, a page shows so many rows, and buttons for the others; one
    that is ``folded`` opens at a click.
    """

    name: str
    caption: str
    columns: Sequence[Column]
    rows: Sequence[Sequence[Cell]]
    filterable: bool = False
    reference_title: str = "reference"
    rows_at_once: int | None = None
    folded: bool = False

    def groups(self) -> list[tuple[str, int]]:
        """Return the groups of the columns and how many columns each spans; empty where no column is in one."""
        runs = [(group, len(list(run))) for group, run in groupby(column.group for column in self.columns)]
        return runs if any(group for group, _ in runs) else []


class Series(NamedTuple):
    """One method's (or cell's) values in a panel.

    ``deviation`` is shaded around lines and drawn as bars at points; ``interval`` is drawn as such bars from its
    lower to its upper end, which need not be equally far; ``labels`` name the points;
    a "curve" is points that are joined, in their order;
    a "dumbbell" joins two values of ``x`` (before and after) at one height ``y``;
    ``dashed`` sets a reference apart (the paper's values, a Pareto front). ``look`` is its colour and symbol; where it
    is None, the figure chooses a look that no other series has.
    """

    name: str
    x: Sequence[float | str]
    y: Sequence[float]
    kind: Literal["line", "points", "curve", "bars", "dumbbell"] = "line"
    deviation: Sequence[float] | None = None
    x_deviation: Sequence[float] | None = None
    labels: Sequence[str] | None = None
    dashed: bool = False
    interval: Sequence[tuple[float, float]] | None = None
    x_interval: Sequence[tuple[float, float]] | None = None
    look: Look | None = None


class Panel(NamedTuple):
    """One pair of axes.

    ``x_range`` fixes an axis, so that panels can be compared; ``y_names`` names the heights 0, 1, 2 …
    from the top down.
    """

    title: str
    x_title: str
    y_title: str
    series: Sequence[Series]
    x_range: tuple[float, float] | None = None
    y_names: Sequence[str] = ()


class Figure(NamedTuple):
    """Panels side by side. A series of one name has one colour in all, and hides in all at once."""

    name: str
    caption: str
    panels: Sequence[Panel]

    def looks(self) -> dict[str, Look]:
        """Return the colour and the symbol of each series, by its name, in the order of the series."""
        every = [series for panel in self.panels for series in panel.series]
        given = {series.name: series.look for series in every if series.look}
        return looks_of((series.name for series in every), given)


class Facts(NamedTuple):
    """Names and values: settings, versions, the machine, seconds."""

    caption: str
    values: Mapping[str, str]


Block = Text | Items | Verdict | Table | Figure | Facts


class Section(NamedTuple):
    """A titled part of the page; ``name`` is its anchor. One that is ``folded`` opens at a click."""

    name: str
    title: str
    blocks: Sequence[Block]
    folded: bool = False


class Document(NamedTuple):
    """A page: a title, a lead that says what it shows, sections, and a notice on top where there is one."""

    title: str
    lead: str
    sections: Sequence[Section] = ()
    notice: Notice | None = None


def table_markdown(table: Table) -> str:
    """Write a Markdown table under its caption; references follow in brackets.

    Examples
    --------
    >>> print(table_markdown(Table("one", "One", [Column("accuracy", True)], [[Cell("0.7", mark="best")]])))
    **One**
    <BLANKLINE>
    | accuracy |
    | ---: |
    | **0.7** |
    <BLANKLINE>
    """
    heads = [markdown(column.full_title) for column in table.columns]
    rule = ["---:" if column.numeric else "---" for column in table.columns]
    lines = [f"| {' | '.join(row)} |" for row in (heads, rule, *(map(_entry, row) for row in table.rows))]
    return "\n".join([f"**{markdown(table.caption)}**", "", *lines, ""])


def _entry(cell: Cell) -> str:
    """Mark a cell's text by its rank, and put its reference behind it."""
    text = markdown(cell.text)
    text = {"best": f"**{text}**", "second": f"*{text}*"}.get(cell.mark, text) if text else text
    return f"{text} ({markdown(cell.reference)})" if cell.reference else text


# ---- A document as one HTML file that opens anywhere, offline: a template, a style sheet, a script and Plotly


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
    >>> from fairsieve.report.page import Section, Text
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
            for block in run:
                yield kind.__name__.lower(), _view(block) if isinstance(block, Figure) else block


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
