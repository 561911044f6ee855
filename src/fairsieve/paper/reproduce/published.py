"""The numbers the paper prints, read from ``paper_numbers.txt`` beside this file."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import cache
from importlib import resources
from typing import Literal

from fairsieve.paper.run import ValidationKind
from fairsieve.selection.fairness import ABBREVIATIONS

__all__ = [
    "Line",
    "Number",
    "PaperColumn",
    "PaperTable",
    "paper_tables",
]

MARKS: dict[str, Literal["", "best", "second"]] = {"": "", "¹": "best", "²": "second"}
ADULT_GROUPS = ("Male", "Female")  # the paper's rule picks men; women are shown beside them
NUMBER = re.compile(r"(\d*\.\d+)(?:±(\.\d+))?([¹²]?)")


@dataclass(frozen=True)
class Number:
    """One printed number, its deviation over seeds if there is one, and how the paper highlights it."""

    value: float
    deviation: float | None = None
    mark: Literal["", "best", "second"] = ""


@dataclass(frozen=True)
class PaperColumn:
    """A data set, an attack, and the notion of fairness that is asked for and measured."""

    data: str
    noise: str
    fairness: str

    @property
    def short(self) -> str:
        """EO or DP."""
        return ABBREVIATIONS[self.fairness]


@dataclass(frozen=True)
class Line:
    """A method, with the validation set it is given (where it uses one)."""

    method: str
    validation: ValidationKind = "clean"


@dataclass(frozen=True)
class PaperTable:
    """A table of the paper.

    Attributes
    ----------
    number : int
    columns : tuple of PaperColumn
    lines : dict
        For each line, for each column: accuracy and disparity (Table 4: seconds).
    """

    number: int
    columns: tuple[PaperColumn, ...]
    lines: dict[Line, tuple[tuple[Number, ...], ...]]


@cache
def paper_tables() -> dict[int, PaperTable]:
    """Read Tables 1 to 7 of the paper.

    Examples
    --------
    >>> table = paper_tables()[1]
    >>> accuracy, disparity = table.lines[Line("sample-selection")][0]
    >>> table.columns[0].fairness, accuracy.value, disparity.deviation, disparity.mark
    ('equalized_odds', 0.727, 0.005, 'best')
    """
    text = resources.files(__package__).joinpath("paper_numbers.txt").read_text(encoding="utf-8")
    tables = _parse_tables(text)
    return tables | {7: _with_both_groups(tables[7])}


def _with_both_groups(table: PaperTable) -> PaperTable:
    """Show the group-targeted columns of Adult for either group: the paper names a rule, and not whom it picked."""
    columns, places = [], []
    for group in ("", *ADULT_GROUPS):
        for place, column in enumerate(table.columns):
            if (column.noise == "group-targeted") == bool(group):
                columns.append(replace(column, noise=f"group-targeted:{group}") if group else column)
                places.append(place)
    lines = {line: tuple(cells[place] for place in places) for line, cells in table.lines.items()}
    return PaperTable(table.number, tuple(columns), lines)


def _parse_tables(text: str) -> dict[int, PaperTable]:
    """Read tables in the format that ``paper_numbers.txt`` describes."""
    tables: dict[int, PaperTable] = {}
    for raw in text.splitlines():
        if not raw or raw.startswith("#"):
            continue
        name, *cells = (part.strip() for part in raw.split("|"))
        if name.startswith("table "):
            table = PaperTable(int(name.split()[1]), tuple(_parse_column(cell) for cell in cells), {})
            tables[table.number] = table
        else:
            method, *validation = name.split()
            line = Line(method, *validation)  # type: ignore[arg-type]
            numbers = tuple(_parse_numbers(cell) for cell in cells)
            table.lines[line] = numbers
    return tables


def _parse_column(text: str) -> PaperColumn:
    data, noise, short = text.split()
    return PaperColumn(
        data, noise, next(fairness for fairness, name in ABBREVIATIONS.items() if name == short)
    )


def _parse_numbers(text: str) -> tuple[Number, ...]:
    """Read the numbers of one cell."""
    found = []
    for word in text.split():
        match = NUMBER.fullmatch(word)
        if match is None:
            raise AssertionError(f"not a number as the paper prints them: {word!r}")
        value, deviation, mark = match.groups()
        found.append(Number(float(value), float(deviation) if deviation else None, MARKS[mark]))
    return tuple(found)
