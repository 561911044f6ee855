"""The numbers the paper prints, read from ``paper_numbers.txt`` beside this file."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Literal, NamedTuple

from fairsieve.notions import BY_SHORT

MARKS: dict[str, Literal["", "best", "second"]] = {"": "", "¹": "best", "²": "second"}
NUMBER = re.compile(r"(\d*\.\d+)(?:±(\.\d+))?([¹²]?)")


class Number(NamedTuple):
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


@dataclass(frozen=True)
class PaperTable:
    """A table of the paper.

    Attributes
    ----------
    name, title : str
    columns : tuple of PaperColumn
    lines : dict
        For each method, for each column: accuracy and disparity (Table 4: seconds). Behind the name of a method may
        stand its validation set, as in "fr-train noisy".
    """

    name: str
    title: str
    columns: tuple[PaperColumn, ...]
    lines: dict[str, tuple[tuple[Number, ...], ...]]


@cache
def paper_tables() -> dict[str, PaperTable]:
    """Read Tables 1 to 7 of the paper.

    Examples
    --------
    >>> table = paper_tables()["table1"]
    >>> accuracy, disparity = table.lines["sample-selection"][0]
    >>> accuracy.value, disparity.deviation, disparity.mark
    (0.727, 0.005, 'best')
    """
    text = resources.files(__package__).joinpath("paper_numbers.txt").read_text(encoding="utf-8")
    tables: dict[str, PaperTable] = {}
    for line in text.splitlines():
        name, *cells = (part.strip() for part in line.partition("#")[0].split("|"))
        if name.startswith("table"):
            name, title = name.split(": ")
            table = tables[name] = PaperTable(name, title, tuple(map(_parse_column, cells)), {})
        elif name:
            table.lines[name] = tuple(tuple(map(_parse_number, cell.split())) for cell in cells)
    return tables


def _parse_column(text: str) -> PaperColumn:
    data, noise, short = text.split()
    return PaperColumn(data, noise, BY_SHORT[short])


def _parse_number(text: str) -> Number:
    match = NUMBER.fullmatch(text)
    assert match is not None, f"not a number as the paper prints them: {text!r}"
    value, deviation, mark = match.groups()
    return Number(float(value), float(deviation) if deviation else None, MARKS[mark])
