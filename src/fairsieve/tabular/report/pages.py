"""The page of a run, and that of an audit of predictions: the decision first, details folded."""

from __future__ import annotations

from typing import Any

from fairsieve.report.document import Block, Cell, Document, Facts, Items, Notice, Section, Text, Verdict
from fairsieve.report.text import number, percent
from fairsieve.tabular.decision import Decision, advise, estimate_sentence, say, tell
from fairsieve.tabular.evaluation import list_gaps, order_gaps
from fairsieve.tabular.prediction_audit import PredictionAudit
from fairsieve.tabular.quality import EVERYONE
from fairsieve.tabular.reading.columns import note_kind
from fairsieve.tabular.reasons import dropping_verdict, main_gaps
from fairsieve.tabular.report.blocks import (
    MODELS,
    calibration_figure,
    columns_table,
    dropped_table,
    gaps_table,
    measures_table,
    order_rates,
    overall_table,
    plain_table,
    rates_figure,
    shown_values,
    suspects_table,
    trade_off_figure,
)
from fairsieve.tabular.settings import data_name
from fairsieve.tabular.table_run import TableRun

NOTICES = {"use": ("Use", True), "inconclusive": ("Inconclusive", None), "do-not-use": ("Do not use", False)}
HOLDS = {"fails": False, "inconclusive": None, "holds": True}


def paragraphs(name: str, in_python: bool = False, **facts: Any) -> list[Block]:
    """Word something of the page."""
    return [Text(text) for text in tell("page.j2", name, facts, in_python=in_python)]


def notice(decision: Decision, *lines: str) -> Notice:
    """Put the decision on top of a page, with the next step."""
    steps = [f"Next: {step}" for step in decision.next_steps[:1]]
    title, holds = NOTICES[decision.outcome]
    return Notice(title, decision.sentence, holds, [*lines, *steps])


def _why(decision: Decision) -> list[Block]:
    """List the verdicts, failed ones first, the reasons, and what else to do."""
    lists = [Items("Reasons", decision.reasons), Items("What else to do", decision.next_steps[1:])]
    return [
        *(Verdict(one.claim, one.source, HOLDS[one.status], one.sentence) for one in decision.verdicts),
        *(one for one in lists if one.texts),
    ]


def run_document(run: TableRun, decision: Decision) -> Document:
    """Lay out the page of a run."""
    groups, told_apart = run.test_groups, "How well labels are told apart on the test part"
    quality = measures_table("quality", told_apart, run.quality, [*groups, EVERYONE])
    measures = order_rates(run.measures, run.asked.fairness, main_gaps(run) or ())
    first = rates_figure("rates", measures[:1], groups)
    gaps = list_gaps(run.measures, run.asked.fairness, run.problem.test.cells.named_groups)
    models = dict(zip(("plain", "fair"), MODELS, strict=True))
    calibration = calibration_figure(run.calibration, models, groups)
    rates: list[Block] = [
        *paragraphs("guide_groups"),
        rates_figure("groups", measures, groups),
        measures_table("groups", f"Rates by {run.problem.groups.title}", run.measures, groups),
        gaps_table(order_gaps(gaps), groups),
    ]
    basis = paragraphs("basis", decision.in_python, run=run)
    notes = [note for note in run.notes if note_kind(note) in ("warning", "remark")]
    listed = [Items("Notes", [advise(note, in_python=decision.in_python) for note in notes])] if notes else []
    folded: list[tuple[str, str, list[Block]]] = [
        ("groups", "Every rate", rates),
        ("quality", "Telling labels apart", [*paragraphs("guide_quality"), quality]),
        ("columns", "The table", [*paragraphs("guide_columns", run=run), *listed, columns_table(run)]),
        ("settings", "How this was made", [Facts("Settings and versions", _list_settings(run))]),
    ]
    if calibration:
        folded.insert(2, ("calibration", "Probabilities", [*paragraphs("guide_calibration"), calibration]))
    if len(run.trade_off) > 1:
        folded.insert(
            0,
            ("trade-off", "The trade-off", [*paragraphs("guide_trade_off", run=run), trade_off_figure(run)]),
        )
    dropped = paragraphs("dropped", run=run, verdict=dropping_verdict(run))
    suspects = paragraphs("suspects", decision.in_python, run=run)
    if len(run.suspects["row"]) and not run.is_inconclusive:
        shown = shown_values(run) if run.asked.show_columns else {}
        suspects.append(suspects_table(run.suspects, shown))
    sections = [
        Section("rates", "What changes, for whom", [first, *paragraphs("guide_rates")]),
        Section("numbers", "The numbers", [*_why(decision), overall_table(run), *basis]),
        Section("dropped", "Who was dropped, and who counts", [*dropped, dropped_table(run.dropped)]),
        Section("suspects", "Labels to check", suspects),
        *(Section(*one, folded=True) for one in folded),
    ]
    lead, top = say("page.j2", "lead", {"run": run}), notice(decision, say("page.j2", "stored", {"run": run}))
    return Document(f"A model of {run.problem.labels.column}", lead, sections, top)


def _list_settings(run: TableRun) -> dict[str, str]:
    """List how to make this run again, and what came of it."""
    given = {
        name.replace("_", " "): value
        for name, value in run.asked.record().items()
        if value not in (None, [], {})
    }
    found = {
        "labels": run.problem.labels.classes,
        "groups": run.problem.groups.names,
        "clean ratio": number(run.clean_ratio),
        "rows trained on": f"{len(run.problem.train):,}",
        "rows measured on": f"{len(run.problem.test):,}",
        "model": say("page.j2", "model_title", {"run": run}),
        "kept": run.kept.title,
        "models on the way": len(run.trade_off) - 1,
        "seconds": f"{run.seconds:.0f}",
    }
    versions = {f"version of {name}": version for name, version in run.versions.items()}
    return {
        name: ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
        for name, value in {**given, **found, **versions}.items()
    }


def prediction_document(found: PredictionAudit, decision: Decision) -> Document:
    """Lay out the page of an audit of predictions."""
    audit, groups, asked = found.label_audit, found.cells.groups, found.asked
    title = audit.groups.title
    measures = order_rates(found.measures, asked.fairness)
    suspects: list[Block] = [Text(estimate_sentence(audit.estimate))]
    if len(audit.suspects["row"]):
        suspects.append(suspects_table(audit.suspects, {}))
    rates: list[Block] = [
        measures_table("groups", f"Rates by {title}", found.measures, groups, ["value"]),
        gaps_table(found.gaps(), groups, ["difference"]),
    ]
    settings = {
        "table": data_name(asked.data),
        "label": asked.label,
        "positive label": found.labels.positive or "none named",
        "predictions": found.prediction,
        "scores": found.score or "none",
        "rows without a prediction": f"{found.left_out:,}",
    }
    sections = [
        Section("rates", "Group by group", [rates_figure("groups", measures, groups, both=False)]),
        Section("numbers", "The numbers", [*_why(decision), *paragraphs("predictions_basis", found=found)]),
        *_scores_section(found),
        Section("suspects", "Labels to check", suspects),
        Section("groups", "Every rate", rates, folded=True),
        Section("settings", "How this was made", [Facts("Settings", settings)], folded=True),
    ]
    lead = say("page.j2", "predictions_lead", {"found": found})
    return Document(f"Predictions of {asked.label}", lead, sections, notice(decision))


def _scores_section(found: PredictionAudit) -> list[Section]:
    """Show scores beside what is found, group by group, where there are any."""
    if not found.calibration:
        return []
    rows = [
        [
            str(one.group),
            one.observed.total,
            *(Cell(percent(value), value=value) for value in (one.predicted, one.observed.value)),
            one.error,
        ]
        for one in found.calibration
    ]
    titles = ["group", "people", "mean score", "have the label", "difference"]
    table = plain_table("calibration", "Scores and what is found, by group", titles, rows)
    figure = calibration_figure(found.calibration, {"given": "Scores"}, found.cells.groups)
    return [
        Section(
            "calibration",
            "What scores mean",
            [*paragraphs("guide_scores", found=found), *([figure] if figure else []), table],
        )
    ]
