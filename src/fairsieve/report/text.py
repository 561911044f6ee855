"""Write numbers, sentences, Markdown, and CSV that is safe to open in a spreadsheet.

Sentences are macros of Jinja templates; code fills in names and numbers.
"""

from __future__ import annotations

import csv
import functools
import io
import json
import math
import re
import shlex
from collections.abc import Iterable, Mapping
from itertools import chain
from typing import Any

from fairsieve.errors import in_python, spell
from fairsieve.notions import find_notion

NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
# What a spreadsheet takes for the beginning of a formula, full-width forms included.
FORMULA_STARTS = tuple("=+-@\t\r\n＝＋－＠")
# Also after spaces, and in the middle, where a spreadsheet splits at another character than a comma.
STARTS = re.compile(rf"(^\s*|[;\t\n]\s*)(?=[{re.escape(''.join(FORMULA_STARTS).strip())}])")
MARKDOWN_SPECIAL = re.compile(r"([\\`*_\[\]{}<>|~#$])")


def number(value: float) -> str:
    """Write three digits, as the paper prints them.

    Examples
    --------
    >>> number(0.7171), number(-0.02), number(-0.0001), number(10.276)
    ('.717', '−.020', '.000', '10.276')
    """
    if math.isnan(value):
        return "–"
    sign = "−" if value < 0 and round(value, 3) != 0 else ""
    return sign + f"{abs(value):.3f}".removeprefix("0")


def percent(value: float) -> str:
    """Write a share in per cent, with a decimal where it is small.

    Examples
    --------
    >>> percent(0.123), percent(0.012), percent(0.0)
    ('12 %', '1.2 %', '0 %')
    """
    if math.isnan(value):
        return "–"
    shown = f"{100 * value:.1f}" if 0 < abs(value) < 0.095 else f"{100 * value:.0f}"
    return f"{shown} %".replace("-", "−")


def points(value: float) -> str:
    """Write a difference between shares in points.

    Examples
    --------
    >>> points(0.094), points(0.01), points(0.003)
    ('9 points', '1 point', '0.3 points')
    """
    size = abs(100 * value)
    shown = f"{size:.1f}" if 0.05 <= size < 0.95 else f"{size:.0f}"
    return f"{shown} {'point' if shown == '1' else 'points'}"


def interval(bounds: tuple[float, float]) -> str:
    """Write an interval.

    >>> interval((0.1, 0.25))
    '.100 to .250'
    """
    return f"{number(bounds[0])} to {number(bounds[1])}"


def points_interval(bounds: tuple[float, float]) -> str:
    """Write the 95 % interval of a difference, in points.

    >>> points_interval((-0.021, 0.13))
    '95 % interval −2 to 13'
    """
    low, high = (f"{100 * bound:.0f}".replace("-0", "0").replace("-", "−") for bound in bounds)
    return f"95 % interval {low} to {high}"


def writable(text: str) -> str:
    r"""Replace what UTF-8 has no bytes for: the bytes of a file's name that is not UTF-8, and halves of a character.

    >>> writable("caf\udce9.csv")
    'caf?.csv'
    """
    return text.encode("utf-8", errors="replace").decode("utf-8")


def quantity(count: int, noun: str) -> str:
    """Write how many there are of something.

    >>> quantity(1, "row"), quantity(1200, "row")
    ('1 row', '1,200 rows')
    """
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def upper(sentence: str) -> str:
    """Begin a sentence with a capital letter."""
    return sentence[:1].upper() + sentence[1:]


@functools.cache
def environment(package: str) -> Any:
    """Load the templates of a package; what ends in ``.html`` escapes every value."""
    import jinja2  # late: most commands and estimators write no sentence

    templates = jinja2.Environment(
        loader=jinja2.PackageLoader(package, ""),
        autoescape=lambda name: name is not None and name.endswith(".html"),
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        undefined=jinja2.StrictUndefined,
    )
    ours = (number, percent, points, interval, points_interval, upper)
    templates.filters |= {write.__name__: write for write in ours}
    templates.globals |= {"option": _option, "in_python": in_python}
    templates.filters |= {
        "counted": "{:,}".format,
        "json": json_text,
        "md": markdown,
        "notion": find_notion,
        "shell": shlex.join,
    }
    return templates


@functools.cache
def load_sentences(package: str, name: str) -> Any:
    """Load the macros of a template in a package as functions that return text.

    Values are put in as they are: whoever shows the text escapes it. In the template, ``option("name")`` is an option
    of the command line or a parameter of a function, whichever was called.

    Examples
    --------
    >>> load_sentences("fairsieve.tabular", "sentences.j2").similar(20, "high", 3, "low", 17)
    'Of the 20 most similar rows, 3 are labelled high and 17 low.'
    """
    return environment(package).get_template(name).module


def _option(name: str, value: Any = None) -> str:
    """Name a setting in the words of whoever called; as a parameter of a function with the sign that it is one."""
    told = spell(f"--{name.replace('_', '-')}", value)
    return f"{told}=" if in_python() and value is None else told


def json_text(value: Any) -> str:
    r"""Write a text or a number as JSON and YAML do; what cannot be shown is replaced, and no element of a page begins.

    >>> print(json_text("<b>"), json_text(0.8))
    "\u003cb>" 0.8
    """
    text = json.dumps(value, ensure_ascii=False)
    shown = (sign if sign.isprintable() else "\N{REPLACEMENT CHARACTER}" for sign in text)
    return "".join(shown).replace("<", "\\u003c")


def markdown(text: str) -> str:
    """Escape text for Markdown, on one line."""
    return MARKDOWN_SPECIAL.sub(r"\\\1", " ".join(text.split()).replace("&", "&amp;"))


def csv_text(
    rows: Iterable[Iterable[Any]], separator: str = ",", *, escape_formulas: bool = True, line_end: str = "\n"
) -> str:
    """Write rows as CSV; put an apostrophe before what a spreadsheet could take for a formula, if asked to."""
    stream = io.StringIO()
    if escape_formulas:
        rows = ([safe_text("" if value is None else str(value)) for value in row] for row in rows)
    csv.writer(stream, delimiter=separator, lineterminator=line_end).writerows(rows)
    return stream.getvalue()


def columns_csv(columns: Mapping[str, Iterable[Any]]) -> str:
    r"""Write columns under their names as CSV.

    Examples
    --------
    >>> print(columns_csv({"a": ["=1+1", "x;=2", "-3"]}), end="")
    a
    '=1+1
    x;'=2
    -3
    """
    return writable(csv_text(chain([columns], zip(*columns.values(), strict=True))))


@functools.lru_cache(maxsize=4096)  # the same categories come again and again
def safe_text(text: str) -> str:
    r"""Write a text that is no formula, wherever a spreadsheet splits it, and that does not end its row.

    >>> safe_text("a;=1"), safe_text("a\r=1"), safe_text("-3"), safe_text("-0.5+cmd()")
    ("a;'=1", "a\n'=1", '-3', "'-0.5+cmd()")
    """
    if NUMBER.fullmatch(text):
        return text
    one_kind = text.replace("\r\n", "\n").replace("\r", "\n")  # a bare \r would end the row
    marked = STARTS.sub(r"\1'", one_kind)
    return "'" + marked if marked.startswith(FORMULA_STARTS) and not NUMBER.fullmatch(marked) else marked
