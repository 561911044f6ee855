"""Print what ``fairsieve train`` and ``audit`` found."""

from __future__ import annotations

import os
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from fairsieve.cli.terminal import printable, say
from fairsieve.report.text import number, percent
from fairsieve.tabular.answers import tell_true_labels
from fairsieve.tabular.decision import Decision, group_name, tell
from fairsieve.tabular.entry import AuditResult, TrainResult
from fairsieve.tabular.prediction_audit import PredictionAudit
from fairsieve.tabular.reading.columns import note_kind


def _decision_lines(decision: Decision) -> list[str]:
    """Say a decision: the sentence, the verdicts (failed ones first), the other reasons, and what to do next."""
    told = decision.sentence.lower()
    return [
        decision.sentence,
        *(
            f"  {one.status.replace('fails', 'does not hold')}: {one.claim} {one.sentence}"
            for one in decision.verdicts
        ),
        *(f"  {reason}" for reason in decision.reasons if reason.lower() not in told),
        *(f"Next: {step}" for step in decision.next_steps),
    ]


def say_run(result: TrainResult, out: Path) -> None:
    """Print warnings, and in at most eight lines what to do and why."""
    run, decision = result.run, result.decision
    warnings = [note for note in run.notes if note_kind(note) == "warning"]
    say(*(f"Careful: {one}" for one in (*warnings, *decision.warnings)))
    say(*tell("page.j2", "terminal", {"run": run, "decision": decision, "folder": f"{out}{os.sep}"}))


def say_audit(result: AuditResult) -> None:
    """Print the cells, the estimated noise, the decision, and the first suspects."""
    if result.predictions is not None:
        _say_predictions(result.predictions, result.decision)
        return
    found, lines = result.audit, _decision_lines(result.decision)  # all is worded before anything is printed
    estimate, cells = found.estimate, found.estimate.cells
    say(*found.notes)
    say("People, and the estimated share of wrong labels among them:")
    table = Table()
    table.add_column(Text(printable(f"{found.labels.column} \\ {found.groups.title}")))
    for group in cells.groups:
        table.add_column(Text(printable(group_name(group))), justify="right")
    for i, label in enumerate(cells.classes):
        entries = [
            f"{cells.counts[i, j]:,}  {percent(float(estimate.noise[i, j]))}"
            for j in range(len(cells.groups))
        ]
        table.add_row(Text(printable(str(label))), *entries)
    Console().print(table)
    say(*lines)
    for i in range(min(len(found.suspects["row"]), 10)):
        row, label, suggested, probability, group = (column[i] for column in found.suspects.values())
        say(f"  row {row}: {label}, rather {suggested} ({probability:.2f}), {group_name(group)}")


def _say_predictions(found: PredictionAudit, decision: Decision) -> None:
    """Print the decision on predictions, and their rates by group."""
    say(*_decision_lines(decision), *found.notes)
    table = Table(title="Rates by group; the report has their 95 % intervals")
    heads = ["group", *(one.title for one in found.measures), *(["mean score"] if found.calibration else [])]
    for place, title in enumerate(heads):
        table.add_column(Text(printable(title)), justify="right" if place else "left", no_wrap=not place)
    scores = {one.group: percent(one.predicted) for one in found.calibration}
    for place, group in enumerate(found.cells.groups):
        told = [number(one.plain[place].value) for one in found.measures]
        told += [scores.get(group, "–")] if scores else []
        table.add_row(Text(printable(group_name(group))), *told)
    Console().print(table)
    count = len(found.suspects["row"])
    left = f"; {found.left_out:,} rows have no prediction" if found.left_out else ""
    looks = "1 label looks" if count == 1 else f"{count:,} labels look"
    say(f"Measured on {len(found.cells):,} rows with a label and a prediction{left}. {looks} wrong.")
    say(*tell_true_labels(found.true_labels, found.asked.fairness))
