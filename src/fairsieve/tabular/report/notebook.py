"""Show results in a notebook: the decision, a chart or a table, and what to do next in Python."""

from __future__ import annotations

from typing import Any

from fairsieve.notebook import Bar, table_html
from fairsieve.report.text import percent
from fairsieve.tabular.decision import Decision
from fairsieve.tabular.label_review import Audit
from fairsieve.tabular.reasons import main_rates
from fairsieve.tabular.report.pages import stored_sentence
from fairsieve.tabular.table_run import TableRun
from fairsieve.tabular.words import group_name

__all__ = ["audit_html", "frame_html", "run_html"]

MOST_ROWS = 10
MARKS = {"fails": "✗", "inconclusive": "?", "holds": "✓"}


def run_html(run: TableRun, decision: Decision) -> str:
    """Write the decision on a model, with the rates of every group under both models."""
    found = main_rates(run)
    heads, rows = ["group"], []
    if found is not None:
        measure, rates = found
        heads += [f"{measure.title}: plain model", "fair model"]
        rows = [[one.group, *(Bar(share.value, percent(share.value)) for share in one[1:])] for one in rates]
    return table_html(
        decision.sentence, heads, rows, [stored_sentence(run), *_lines(decision, len(run.suspects["row"]))]
    )


def audit_html(audit: Audit, decision: Decision) -> str:
    """Write the decision on labels, with the estimated share of wrong ones in every cell."""
    cells, noise = audit.estimate.cells, audit.estimate.noise
    rows = [
        [
            str(label),
            group_name(group),
            f"{cells.counts[i, j]:,}",
            Bar(float(noise[i, j]), percent(float(noise[i, j]))),
        ]
        for i, label in enumerate(cells.classes)
        for j, group in enumerate(cells.groups)
        if cells.counts[i, j] and noise[i, j] == noise[i, j]
    ]
    heads = ["label", "group", "people", "estimated wrong labels"]
    return table_html(decision.sentence, heads, rows, _lines(decision, len(audit.suspects["row"])))


def _lines(decision: Decision, suspects: int) -> list[str]:
    """Say what was found, and what to do next."""
    verdicts = [f"{MARKS[one.status]} {one.claim} {one.sentence}" for one in decision.verdicts]
    listed = f".suspects lists the {suspects:,} labels to check, with their rows: personal data."
    steps = [f"Next: {step}" for step in decision.for_python().next_steps]
    return [*verdicts, *([listed] if suspects else []), *steps]


def frame_html(title: str, frame: Any) -> str:
    """Write the first rows of a data frame."""
    first = frame.head(MOST_ROWS)
    shown = f", the first {MOST_ROWS} of {len(frame):,}" if len(frame) > MOST_ROWS else ""
    rows = zip(*(first[name].to_list() for name in first.columns), strict=True)
    return table_html(f"{title}{shown}", list(first.columns), list(rows))
