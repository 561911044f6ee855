"""The page of a run, and that of an audit of predictions: the decision first, details folded."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fairsieve.report.document import Block, Cell, Document, Facts, Items, Notice, Section, Text, Verdict
from fairsieve.report.text import number, percent
from fairsieve.tabular import decision as words
from fairsieve.tabular.decision import Decision, advise, estimate_sentence
from fairsieve.tabular.model_files import ARCHIVE
from fairsieve.tabular.models import TITLES
from fairsieve.tabular.prediction_audit import PredictionAudit
from fairsieve.tabular.reading.columns import note_kind
from fairsieve.tabular.reasons import dropping_verdict, main_gaps
from fairsieve.tabular.report.blocks import (
    MODELS,
    calibration_figure,
    columns_table,
    dropped_table,
    gaps_table,
    groups_table,
    order_rates,
    overall_table,
    plain_table,
    quality_table,
    rates_figure,
    shown_values,
    suspects_table,
    trade_off_figure,
)
from fairsieve.tabular.settings import data_name
from fairsieve.tabular.table_run import TableRun

__all__ = ["model_title", "prediction_document", "run_document", "run_lines", "run_words", "stored_sentence"]

NOTICES = {"use": ("Use", True), "inconclusive": ("Inconclusive", None), "do-not-use": ("Do not use", False)}
HOLDS = {"fails": False, "inconclusive": None, "holds": True}


def say(name: str, *, in_python: bool = False, **facts: Any) -> str:
    """Word something of the page."""
    return words.say("page.j2", name, facts, in_python=in_python)


def model_title(run: TableRun) -> str:
    """Name the kind of model and how it was trained."""
    if run.model_name == "logistic":
        return "logistic regression, trained by sample selection"
    return f"{TITLES[run.model_name]}, {run.asked.trees} trees, weighted in rounds by SieveClassifier"


def stored_sentence(run: TableRun, folder: Path = Path()) -> str:
    """Say which model is stored, and where."""
    return f"{folder / ARCHIVE} holds: the {'plain' if run.keeps_plain else 'fair'} model."


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
    title, groups = run.problem.groups.title, run.test_groups
    measures = order_rates(run.measures, run.asked.fairness, main_gaps(run) or ())
    first = rates_figure("rates", measures[:1], groups)
    models = dict(zip(("plain", "fair"), MODELS, strict=True))
    calibration = calibration_figure(run.calibration, models, groups)
    guide = {name: Text(say(f"guide_{name}")) for name in ("rates", "groups", "quality", "calibration")} | {
        "trade_off": Text(say("guide_trade_off", linear=run.model_name == "logistic"))
    }
    rates: list[Block] = [
        guide["groups"],
        rates_figure("groups", measures, groups),
        groups_table(title, run.measures, groups, MODELS),
        gaps_table(run.measures, groups, MODELS),
    ]
    numbers = [*_why(decision), overall_table(run), *map(Text, run_words(run, decision).values())]
    folded: list[tuple[str, str, list[Block]]] = [
        ("groups", "Every rate", rates),
        ("quality", "Telling labels apart", [guide["quality"], quality_table(run)]),
        ("columns", "The table", _columns(run, decision)),
        ("settings", "How this was made", [Facts("Settings and versions", _list_settings(run))]),
    ]
    if calibration:
        folded.insert(2, ("calibration", "Probabilities", [guide["calibration"], calibration]))
    if len(run.trade_off) > 1:
        folded.insert(0, ("trade-off", "The trade-off", [guide["trade_off"], trade_off_figure(run)]))
    sections = [
        Section("rates", "What changes, for whom", [first, guide["rates"]]),
        Section("numbers", "The numbers", numbers),
        Section("dropped", "Who was dropped, and who counts", _dropped(run)),
        Section("suspects", "Labels to check", _suspects(run)),
        *(Section(*one, folded=True) for one in folded),
    ]
    lead = say("lead", run=run, table=data_name(run.asked.data))
    top = notice(decision, stored_sentence(run))
    return Document(f"A model of {run.problem.labels.column}", lead, sections, top)


def run_lines(run: TableRun, decision: Decision, out: Path) -> list[str]:
    """Say in at most eight lines, one idea each, what the terminal says of a run."""
    lines = [decision.sentence]
    for verdict in decision.verdicts:
        if verdict.name == "fairness" and verdict.facts:
            facts = {name: verdict.facts[name] for name in ("notion", "plain", "fair")}
            told = say("line_fairness", rows=len(run.problem.test), bounds=verdict.interval, **facts)
            lines.insert(1, told)
        elif verdict.name in ("dropping", "weight"):
            lines.append(verdict.sentence)
    lines += decision.word(*(one for one in decision.findings if one.kind in ("suspects", "unknown_labels")))
    lines += [stored_sentence(run, out), *(f"Next: {step}" for step in decision.next_steps[:1])]
    listed = len(run.suspects["row"]) and not run.is_inconclusive
    files: dict[str, Any] = {
        "report": out / "report.html",
        "suspects": out / "suspects.csv" if listed else "",
    }
    return [*lines, say("line_files", **files)]


def run_words(run: TableRun, decision: Decision) -> dict[str, str]:
    """Say what the numbers stand on: the notion of fairness, the test part, the labels, the columns, the choices."""
    asked, plain, kept = run.asked, run.trade_off[0], run.kept
    how = {"in_python": decision.in_python}
    file = None if asked.test_file is None else data_name(asked.test_file)
    given: dict[str, Any] = {"ratio": run.clean_ratio, "weighted": run.model_name != "logistic"}
    found = {
        "notion": say("notion", fairness=asked.fairness),
        "test": say("test", **how, file=file, share=asked.test),
        "labels": say("given_ratio", **how, **given)
        if run.estimate is None
        else estimate_sentence(run.estimate),
        "sensitive": say("sensitive", **how, kept=asked.keep_sensitive, title=run.problem.groups.title),
    }
    if kept.threshold is not None and plain.threshold is not None:
        found["threshold"] = say(
            "threshold",
            label=run.problem.labels.positive,
            rule=str(asked.threshold),
            fixed=asked.threshold.kind == "fixed",
            plain=plain.threshold,
            kept=kept.threshold,
            out_of_fold=run.model_name != "logistic",
        )
    if kept.held_out is not None and asked.max_accuracy_loss is not None:
        facts: dict[str, Any] = {
            "title": kept.title,
            "allowed": asked.max_accuracy_loss,
            "kept": kept.held_out,
        }
        found["trade_off"] = say("trade_off", **facts)
    return found


def _dropped(run: TableRun) -> list[Block]:
    """Show who was left out, and who counts how much."""
    known = [cell for cell in run.dropped if cell.weight is not None and cell.group is not None]
    least = min(known, key=lambda cell: cell.weight or 0.0, default=None)
    told = [dropping_verdict(run).sentence, say("ignored", least=least), say("guide_dropped")]
    return [*map(Text, told), dropped_table(run.dropped)]


def _suspects(run: TableRun) -> list[Block]:
    """Show the labels to check by their row numbers, or say that there are none."""
    count, shown = len(run.suspects["row"]), run.asked.show_columns
    facts: dict[str, Any] = {
        "given": run.estimate is None,
        "inconclusive": run.is_inconclusive,
        "shown": shown,
    }
    blocks: list[Block] = [Text(say("suspects", count=count, **facts))]
    if count and not run.is_inconclusive:
        blocks += [Text(say("shown_columns"))] if shown else []
        blocks.append(suspects_table(run.suspects, shown_values(run) if shown else {}))
    return blocks


def _columns(run: TableRun, decision: Decision) -> list[Block]:
    """Show the columns, and what was done to them."""
    missing = [value or "an empty field" for value in sorted(run.asked.reading.all_missing)]
    notes = [
        advise(note, in_python=decision.in_python)
        for note in run.notes
        if note_kind(note) in ("warning", "remark")
    ]
    listed = [Items("Notes", notes)] if notes else []
    return [Text(say("guide_columns", missing=missing)), *listed, columns_table(run)]


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
        "model": model_title(run),
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
    told = [say("notion", fairness=asked.fairness)]
    told.append(say("predictions_overall", scores=found.scores, fairness=asked.fairness))
    told += [] if found.true_labels is None else [found.true_labels.sentence]
    measures = order_rates(found.measures, asked.fairness)
    suspects: list[Block] = [Text(estimate_sentence(audit.estimate))]
    if len(audit.suspects["row"]):
        suspects.append(suspects_table(audit.suspects, {}))
    rates: list[Block] = [
        groups_table(title, found.measures, groups, ["value"]),
        gaps_table(found.measures, groups, ["difference"]),
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
        Section("numbers", "The numbers", [*_why(decision), *map(Text, told)]),
        *_scores_section(found),
        Section("suspects", "Labels to check", suspects),
        Section("groups", "Every rate", rates, folded=True),
        Section("settings", "How this was made", [Facts("Settings", settings)], folded=True),
    ]
    facts: dict[str, Any] = {
        "label": asked.label,
        "column": found.prediction,
        "by": title,
        "rows": len(found.cells),
    }
    lead = say("predictions_lead", table=data_name(asked.data), **facts)
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
    guide = Text(say("guide_scores", column=found.score, label=found.labels.positive))
    figure = calibration_figure(found.calibration, {"given": "Scores"}, found.cells.groups)
    return [Section("calibration", "What scores mean", [guide, *([figure] if figure else []), table])]
