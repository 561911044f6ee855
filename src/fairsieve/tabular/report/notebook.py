"""Show a decision and a few rows in a notebook."""

from __future__ import annotations

from html import escape
from typing import Any

from fairsieve.tabular.decision import Decision

__all__ = ["decision_html", "frame_html"]

MOST_ROWS = 10
MARKS = {"fails": "✗", "inconclusive": "?", "holds": "✓"}


def decision_html(decision: Decision) -> str:
    """Write a decision as HTML: the sentence, the verdicts, the reasons, and what to do next."""
    verdicts = [
        f"{MARKS[one.status]} <b>{escape(one.claim)}</b> ({escape(one.words)}) {escape(one.sentence)}"
        for one in decision.verdicts
    ]
    parts = [f"<p><strong>{escape(decision.sentence)}</strong></p>", _items("", verdicts)]
    reasons = [escape(text) for text in decision.reasons]
    steps = [escape(text) for text in decision.next_steps]
    return f"<div>{''.join([*parts, _items('Reasons', reasons), _items('Next', steps)])}</div>"


def _items(title: str, entries: list[str]) -> str:
    """Write a list under a title; nothing for an empty one. The entries are HTML."""
    if not entries:
        return ""
    head = f"<p>{title}:</p>" if title else ""
    return f"{head}<ul>{''.join(f'<li>{entry}</li>' for entry in entries)}</ul>"


def frame_html(title: str, frame: Any) -> str:
    """Write the first rows of a data frame as a table of HTML; nothing for an empty one."""
    if not len(frame):
        return ""
    first = frame.head(MOST_ROWS)
    heads = "".join(f"<th>{escape(str(name))}</th>" for name in first.columns)
    columns = [first[name].to_list() for name in first.columns]
    rows = "".join(
        f"<tr>{''.join(f'<td>{escape(_text(value))}</td>' for value in row)}</tr>"
        for row in zip(*columns, strict=True)
    )
    shown = f", the first {MOST_ROWS} of {len(frame):,}" if len(frame) > MOST_ROWS else ""
    return (
        f"<p>{escape(title)}{shown}:</p><table><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table>"
    )


def _text(value: Any) -> str:
    """Write a value of a cell."""
    return f"{value:.4g}" if isinstance(value, float) else str(value)
