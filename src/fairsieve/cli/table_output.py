"""Print what ``fairsieve train`` and ``audit`` found."""

from __future__ import annotations

import os
from pathlib import Path

import pandas as pd

from fairsieve.cli.terminal import say
from fairsieve.report.text import number, percent
from fairsieve.tabular.answers import tell_true_labels
from fairsieve.tabular.decision import group_name, tell
from fairsieve.tabular.entry import AuditResult, TrainResult
from fairsieve.tabular.prediction_audit import PredictionAudit
from fairsieve.tabular.reading.columns import note_kind


def say_run(result: TrainResult, out: Path) -> None:
    """Print warnings, and in at most eight lines what to do and why."""
    run, decision = result.run, result.decision
    warnings = [note for note in run.notes if note_kind(note) == "warning"]
    say(*(f"Careful: {one}" for one in (*warnings, *decision.warnings)))
    say(*tell("page.j2", "terminal", {"run": run, "decision": decision, "folder": f"{out}{os.sep}"}))


def say_audit(result: AuditResult) -> None:
    """Print the decision with the numbers behind it: cells and suspects, or rates of predictions."""
    found, decision = result.audit, result.decision
    # Worded before anything is printed.
    lines = [decision.sentence, *(f"  {line}" for line in decision.lines)]
    if found.impact is not None:
        _say_impact(found.impact)
    if isinstance(found, PredictionAudit):
        say(*lines, *found.notes)
        _say_rates(found)
        return
    estimate, cells = found.estimate, found.estimate.cells
    entries = [
        [f"{count:,}  {percent(share)}" for count, share in zip(*row, strict=True)]
        for row in zip(cells.counts.tolist(), estimate.noise.tolist(), strict=True)
    ]
    table = pd.DataFrame(entries, map(str, cells.classes), map(group_name, cells.groups))
    table = table.rename_axis(f"{found.labels.column} \\ {found.groups.title}", axis="columns")
    title = "People, and the estimated share of wrong labels among them:"
    say(*found.notes, title, table.to_string(), *lines)
    for one in found.suspects.head(10).itertuples():
        told = f"{one.label}, rather {one.suggested_label} ({one.probability:.2f}), {group_name(one.group)}"
        say(f"  row {one.row}: {told}")


def _say_impact(impact: pd.DataFrame) -> None:
    """Print selection rates and impact ratios."""
    shares = {name: impact[name].map(percent) for name in ("share", "rate")}
    ratios = impact["impact_ratio"].map(lambda ratio: "–" if ratio != ratio else number(ratio))
    shown = impact[["measure", "by", "category", "people", "selected"]].assign(**shares, impact_ratio=ratios)
    shown["note"] = impact["note"].str.partition(":")[0]
    say("Rates and impact ratios (Local Law 144 sets no threshold):", shown.to_string(index=False))


def _say_rates(found: PredictionAudit) -> None:
    """Print the rates of predictions by group."""
    groups = list(map(group_name, found.cells.groups))
    rates = {one.title: [number(share.value) for share in one.plain] for one in found.measures}
    scores = {group_name(one.group): percent(one.predicted) for one in found.calibration}
    if scores:
        rates["mean score"] = [scores.get(group, "–") for group in groups]
    say("Rates by group; the report has their 95 % intervals", pd.DataFrame(rates, groups).to_string())
    count = len(found.suspects)
    left = f"; {found.left_out:,} rows have no prediction" if found.left_out else ""
    looks = "1 label looks" if count == 1 else f"{count:,} labels look"
    say(f"Measured on {len(found.cells):,} rows with a label and a prediction{left}. {looks} wrong.")
    say(*tell_true_labels(found.true_labels, found.asked.fairness))
