"""What a page says, apart from how it looks: sections of text, verdicts, tables, figures and facts.

Whoever has results writes a :class:`Document`; the page (``report/page``) draws it. Every string is plain text and is
escaped where it is drawn.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Literal, NamedTuple

from fairsieve.report.looks import Look, looks_of


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
