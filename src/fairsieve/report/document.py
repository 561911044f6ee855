"""What a page says: sections of text, verdicts, tables, figures and facts; and what has which colour and shape.

Whoever has results writes a :class:`Document`; the page (``report/page``) draws it. Every string is plain text and is
escaped where it is drawn.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import cycle, groupby
from typing import Any, Literal, NamedTuple

from fairsieve.errors import require

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
        return looks_of(
            (series.name for series in every), {series.name: series.look for series in every if series.look}
        )


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
