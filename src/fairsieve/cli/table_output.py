"""Print what ``fairsieve train`` and ``audit`` found."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from fairsieve.cli.terminal import printable, say
from fairsieve.report.number_format import percent
from fairsieve.tabular.decision import Decision
from fairsieve.tabular.reading.features import Feature, used
from fairsieve.tabular.report.model_phrases import model_sentences
from fairsieve.tabular.report.phrases import group_name
from fairsieve.tabular.table_results import AuditResult, TrainResult

__all__ = ["say_audit", "say_run"]


def _say_decision(decision: Decision) -> None:
    """Print a decision: the sentence, the verdicts (failed ones first), the other reasons, and what to do next."""
    say(decision.sentence)
    say(*(f"  {one.words}: {one.claim} {one.sentence}" for one in decision.verdicts))
    told = decision.sentence.lower()
    say(*(f"  {reason}" for reason in decision.reasons if reason.lower() not in told))
    say(*(f"Next: {step}" for step in decision.next_steps))


def say_run(result: TrainResult, out: Path) -> None:
    """Print the decision, what was done to the table, and where everything is."""
    run = result.run
    _say_decision(result.decision)
    say(*model_sentences(run), *_columns_lines(run.problem.features, run.model_name), *run.notes)
    positive = run.problem.labels.positive
    named = "" if positive is None else f", {positive!r} being the positive label"
    say(
        f"Measured on {len(run.problem.test):,} rows{named}; open {out / 'report.html'}, then {out / 'suspects.csv'}"
    )


def _columns_lines(features: Sequence[Feature], model: str) -> list[str]:
    """Describe how types and missing values were handled."""
    learnt = used(features)
    numbers = sum(feature.kind == "numbers" for feature in learnt)
    count = f"{len(learnt)} column{'' if len(learnt) == 1 else 's'}"
    lines = [f"Learnt from {count}: {numbers} of numbers, {len(learnt) - numbers} of categories."]
    gaps = [f"{feature.column} {feature.missing:,}" for feature in learnt if feature.missing]
    if gaps:
        how = "numbers take the median, categories have one for it" if model == "logistic" else "as they are"
        lines.append(f"Missing values ({how}): {', '.join(gaps)}.")
    left_out = [f"{feature.column} ({feature.left_out})" for feature in features if feature.left_out]
    return [*lines, f"Left out: {', '.join(left_out)}."] if left_out else lines


def say_audit(result: AuditResult) -> None:
    """Print the cells, the estimated noise, the decision, and the first suspects."""
    found = result.audit
    estimate, cells = found.estimate, found.estimate.cells
    say(*_columns_lines(found.features, found.model_name), *found.notes)
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
    _say_decision(result.decision)
    for i in range(min(len(found.suspects["row"]), 10)):
        row, label, suggested, probability, group = (column[i] for column in found.suspects.values())
        say(f"  row {row}: {label}, rather {suggested} ({probability:.2f}), {group_name(group)}")
