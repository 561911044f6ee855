"""Tables with bars for notebooks: plain HTML that reads well on a light and on a dark background."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any, NamedTuple

STYLE = """<style>
.fairsieve table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
.fairsieve th, .fairsieve td { padding: .2em .7em; text-align: left; border-bottom: 1px solid #8885; }
.fairsieve .bar { display: inline-block; width: 8em; margin-right: .6em; background: rgba(128, 128, 128, .2); }
.fairsieve .bar > span { display: block; height: .7em; background: #1A96E0; }
.fairsieve p { margin: .4em 0; }
</style>"""


class Bar(NamedTuple):
    """A share, drawn as a bar beside its text."""

    share: float
    text: str


def table_html(
    title: str, heads: Sequence[str], rows: Iterable[Sequence[Any]], lines: Iterable[str] = ()
) -> str:
    """Write a sentence, a table and further sentences; every text is escaped.

    Examples
    --------
    >>> "&lt;b&gt;" in table_html("Labels", ["label", "share"], [["<b>", Bar(0.5, "50 %")]])
    True
    """
    head = "".join(f"<th>{escape(str(name))}</th>" for name in heads)
    body = "".join(f"<tr>{''.join(f'<td>{_cell(value)}</td>' for value in row)}</tr>" for row in rows)
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>" if body else ""
    below = "".join(f"<p>{escape(line)}</p>" for line in lines)
    return f'{STYLE}<div class="fairsieve"><p><strong>{escape(title)}</strong></p>{table}{below}</div>'


def _cell(value: Any) -> str:
    """Write one cell."""
    if not isinstance(value, Bar):
        return escape(f"{value:.4g}" if isinstance(value, float) else str(value))
    width = round(100 * min(max(value.share, 0.0), 1.0))
    return f'<span class="bar"><span style="width: {width}%"></span></span>{escape(value.text)}'


def cells_html(title: str, cells: Any, shares: Any, heads: tuple[str, str], lines: Iterable[str] = ()) -> str:
    """Write a row for each cell of labels and groups that has samples: how many, and a share of them."""
    rows = []
    for i, j in zip(*cells.counts.nonzero(), strict=True):
        group, share = cells.groups[j], float(shares[i, j])
        told = Bar(share, f"{share:.1%}") if share == share else "unknown"
        group = "no group" if group is None else group
        rows.append([cells.classes[i], group, f"{cells.counts[i, j]:,}", told])
    return table_html(title, ["class", "group", *heads], rows, lines)
