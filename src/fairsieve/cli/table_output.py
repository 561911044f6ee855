"""Print what ``fairsieve train`` and ``audit`` found."""

from __future__ import annotations

import os
from pathlib import Path

import pandas as pd

from fairsieve.cli.terminal import say
from fairsieve.report.text import number, percent
from fairsieve.tabular.decision import group_name, tell
from fairsieve.tabular.entry import AuditResult, TrainResult
from fairsieve.tabular.prediction_audit import PredictionAudit
from fairsieve.tabular.reading.columns import note_kind
from fairsieve.tabular.reading.roles import Labels
from fairsieve.tabular.settings import TableSettings


def say_run(result: TrainResult, out: Path) -> None:
    """Print what was made of the table and warnings, then in at most eight lines what to do and why."""
    run, decision = result.run, result.decision
    notes = [note for note in run.problem.notes if note_kind(note) == "remark"]
    warnings = [note for note in run.notes if note_kind(note) == "warning"]
    say(*notes, *_assumed(run.problem.labels, run.asked))
    say(*(f"Careful: {warning}" for warning in (*warnings, *decision.warnings)))
    say(*tell("page.j2", "terminal", {"run": run, "decision": decision, "folder": f"{out}{os.sep}"}))


def _assumed(labels: Labels, asked: TableSettings) -> list[str]:
    """Say which label counts as positive, where nobody has said it."""
    return tell("page.j2", "assumed", {"labels": labels, "asked": asked})


def say_audit(result: AuditResult) -> None:
    """Print the decision with the numbers behind it: cells and suspects, or rates of predictions."""
    audit, decision = result.audit, result.decision
    # Worded before anything is printed.
    lines = [decision.sentence, *(f"  {line}" for line in decision.lines)]
    notes = [*audit.notes, *_assumed(audit.labels, audit.asked)]
    if audit.impact is not None:
        _say_impact(audit.impact)
    if isinstance(audit, PredictionAudit):
        say(*lines, *notes)
        _say_rates(audit)
        return
    estimate, cells = audit.estimate, audit.estimate.cells
    table = pd.DataFrame(cells.counts, map(str, cells.classes), map(group_name, cells.groups)).map(
        "{:,}".format
    )
    title = "People:"
    if estimate.names_cells:
        title = "People, and the estimated share of wrong labels among them:"
        table += "  " + pd.DataFrame(estimate.noise, table.index, table.columns).map(percent)
    table = table.rename_axis(f"{audit.labels.column} \\ {audit.groups.title}", axis="columns")
    say(*notes, title, table.to_string(), *lines)
    listed = audit.suspects.head(10)
    if len(listed):
        say("Labels to check first, by the rows of a spreadsheet:")
    for suspect in listed.itertuples():
        suggested = f"rather {suspect.suggested_label} ({suspect.probability:.2f})"
        say(
            f"  {audit.suspects_table.row_name(suspect.row)}: {suspect.label}, {suggested}, {group_name(suspect.group)}"
        )


def _say_impact(impact: pd.DataFrame) -> None:
    """Print selection rates and impact ratios."""
    shares = {name: impact[name].map(percent) for name in ("share", "rate")}
    ratios = impact["impact_ratio"].map(lambda ratio: "–" if ratio != ratio else number(ratio))
    shown = impact[["measure", "by", "category", "people", "selected"]].assign(**shares, impact_ratio=ratios)
    shown["note"] = impact["note"].str.partition(":")[0]
    say("Rates and impact ratios (Local Law 144 sets no threshold):", shown.to_string(index=False))


def _say_rates(audit: PredictionAudit) -> None:
    """Print the rates of predictions by group."""
    evaluation = audit.evaluation
    groups = list(map(group_name, evaluation.groups))
    rates = {
        rate.title: ["–" if score is None else number(score.value) for score in rate.models[0]]
        for rate in evaluation.rates
    }
    scores = {group_name(group.group): percent(group.predicted) for group in audit.calibration}
    if scores:
        rates["mean score"] = [scores.get(group, "–") for group in groups]
    say("Rates by group; the report has their 95 % intervals", pd.DataFrame(rates, groups).to_string())
    count = len(audit.suspects)
    left = f"; {audit.left_out:,} rows have no prediction" if audit.left_out else ""
    looks = "1 label looks" if count == 1 else f"{count:,} labels look"
    say(f"Measured on {len(evaluation.cells):,} rows with a label and a prediction{left}. {looks} wrong.")
