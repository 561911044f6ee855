"""The page of a run, and that of an audit of predictions: the decision first, details folded."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fairsieve.report.document import Block, Document, Facts, Items, Notice, Section, Text
from fairsieve.report.text import number, percent
from fairsieve.tabular.decision import Decision
from fairsieve.tabular.models import TITLES
from fairsieve.tabular.prediction_audit import PredictionAudit
from fairsieve.tabular.reading.columns import note_kind
from fairsieve.tabular.reasons import dropping_verdict, is_inconclusive, keeps_plain
from fairsieve.tabular.report.figures import (
    bars_figure,
    calibration_figure,
    path_figure,
    rates_figure,
    run_calibration,
    trade_off_figure,
)
from fairsieve.tabular.report.tables import (
    columns_table,
    dropped_table,
    gaps_table,
    groups_table,
    overall_table,
    plain_table,
    quality_table,
    shown_values,
    suspects_table,
)
from fairsieve.tabular.settings import data_name
from fairsieve.tabular.table_run import TableRun, TradeOffPoint
from fairsieve.tabular.words import estimate_sentence
from fairsieve.tabular.words import say as word

__all__ = [
    "kept_point",
    "model_title",
    "prediction_document",
    "run_document",
    "run_lines",
    "run_words",
    "stored_sentence",
]

MODELS = ("plain model", "fair model")


def say(name: str, **facts: Any) -> str:
    """Word something of the page."""
    return word("page.j2", name, facts)


def kept_point(run: TableRun) -> TradeOffPoint:
    """Return the model that is kept."""
    return next(point for point in run.trade_off if point.kept)


def model_title(run: TableRun) -> str:
    """Name the kind of model and how it was trained."""
    if run.model_name == "logistic":
        return "logistic regression, trained by sample selection"
    return f"{TITLES[run.model_name]}, {run.asked.trees} trees, weighted in rounds by SieveClassifier"


def stored_sentence(run: TableRun) -> str:
    """Say which model is stored, and where."""
    return say("holds", file=model_file(run), model="plain model" if keeps_plain(run) else "fair model")


def model_file(run: TableRun) -> str:
    """Name the file of the model."""
    return "model.txt" if run.model_name == "lightgbm" else "model.skops"


def notice(decision: Decision, *lines: str) -> Notice:
    """Put the decision on top of a page, with the next step."""
    title, holds = {
        "use": ("Use", True),
        "inconclusive": ("Inconclusive", None),
        "do-not-use": ("Do not use", False),
    }[decision.outcome]
    steps = [f"Next: {step}" for step in decision.next_steps[:1]]
    return Notice(title, decision.sentence, holds, [*lines, *steps])


def run_document(run: TableRun, decision: Decision) -> Document:
    """Lay out the page of a run."""
    linear, groups = run.model_name == "logistic", run.problem.groups.title
    calibration, path = run_calibration(run), path_figure(run)
    folded: dict[tuple[str, str], list[Block | None]] = {
        ("trade-off", "The trade-off"): [Text(say("guide_trade_off", linear=linear)), trade_off_figure(run)]
        if len(run.trade_off) > 1
        else [],
        ("groups", "Every rate"): [
            Text(say("guide_groups")),
            rates_figure(run),
            groups_table(groups, run.measures, run.test_groups, MODELS),
            gaps_table(run.measures, run.test_groups, MODELS),
        ],
        ("quality", "Telling labels apart"): [Text(say("guide_quality")), quality_table(run)],
        ("calibration", "Probabilities"): [Text(say("guide_calibration")), calibration]
        if calibration
        else [],
        ("path", "How training went"): [Text(say("guide_path")), path] if path else [],
        ("columns", "The table"): _columns(run),
        ("settings", "How this was made"): [Facts("Settings and versions", list_settings(run))],
    }
    sections = [
        Section("rates", "What changes, for whom", [rates_figure(run, main=True), Text(say("guide_rates"))]),
        Section("numbers", "The numbers", _numbers(run, decision)),
        Section("dropped", "Who was dropped, and who counts", _dropped(run)),
        Section("suspects", "Labels to check", _suspects(run)),
        *(
            Section(*titles, [one for one in blocks if one], folded=True)
            for titles, blocks in folded.items()
            if blocks
        ),
    ]
    lead = say("lead", run=run, table=data_name(run.asked.data))
    top = notice(decision, stored_sentence(run))
    return Document(f"A model of {run.problem.labels.column}", lead, sections, top)


def run_lines(run: TableRun, decision: Decision, out: Path) -> list[str]:
    """Say in at most eight lines, one idea each, what the terminal says of a run."""
    found = {one.name: one.sentence for one in decision.verdicts if one.name in ("dropping", "weight")}
    gaps = {one.name: (one.facts, one.interval) for one in decision.verdicts if one.name == "fairness"}
    lines = [decision.sentence]
    if gaps and gaps["fairness"][0]:
        facts, bounds = gaps["fairness"]
        told = {name: facts[name] for name in ("notion", "plain", "fair")}
        lines.append(say("line_fairness", rows=len(run.problem.test), bounds=bounds, **told))
    lines += found.values()
    suspects = len(run.suspects["row"]) and not is_inconclusive(run)
    lines += [one.text for one in decision.findings if one.kind in ("suspects", "unknown_labels")]
    lines.append(f"{out / model_file(run)} holds: the {'plain' if keeps_plain(run) else 'fair'} model.")
    lines += [f"Next: {step}" for step in decision.next_steps[:1]]
    files = {"report": out / "report.html", "suspects": out / "suspects.csv" if suspects else ""}
    return [*lines, say("line_files", **files)]


def _numbers(run: TableRun, decision: Decision) -> list[Block]:
    """List the verdicts, failed ones first, the reasons, what else to do, and what the numbers stand on."""
    lists = [Items("Reasons", decision.reasons), Items("What else to do", decision.next_steps[1:])]
    return [
        *(verdict.as_block() for verdict in decision.verdicts),
        overall_table(run),
        *(one for one in lists if one.texts),
        *(Text(text) for text in run_words(run).values() if text),
    ]


def run_words(run: TableRun) -> dict[str, str]:
    """Say what the numbers stand on: the notion of fairness, the test part, the labels, the columns, the choices."""
    asked, plain, kept = run.asked, run.trade_off[0], kept_point(run)
    file = None if asked.test_file is None else data_name(asked.test_file)
    given = {"ratio": run.clean_ratio, "weighted": run.model_name != "logistic"}
    found = {
        "notion": say("notion", fairness=asked.fairness),
        "test": say("test", file=file, share=asked.test),
        "labels": say("given_ratio", **given) if run.estimate is None else estimate_sentence(run.estimate),
        "sensitive": say("sensitive", kept=asked.keep_sensitive, title=run.problem.groups.title),
        "threshold": "",
        "trade_off": "",
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
        facts = {"title": kept.title, "allowed": asked.max_accuracy_loss, "kept": kept.held_out}
        found["trade_off"] = say("trade_off", **facts)
    return found


def _dropped(run: TableRun) -> list[Block]:
    """Show who was left out, and who counts how much."""
    known = [cell for cell in run.dropped if cell.weight is not None and cell.group is not None]
    least = min(known, key=lambda cell: cell.weight or 0.0, default=None)
    words = [dropping_verdict(run).sentence, say("ignored", least=least), say("guide_dropped")]
    return [*map(Text, words), dropped_table(run.dropped)]


def _suspects(run: TableRun) -> list[Block]:
    """Show the labels to check by their row numbers, or say that there are none."""
    count, shown = len(run.suspects["row"]), run.asked.show_columns
    facts = {"given": run.estimate is None, "inconclusive": is_inconclusive(run), "shown": shown}
    words = [say("suspects", count=count, **facts), *([say("shown_columns")] if shown and count else [])]
    if not count or is_inconclusive(run):
        return [Text(words[0])]
    return [*map(Text, words), suspects_table(run.suspects, shown_values(run) if shown else {})]


def _columns(run: TableRun) -> list[Block | None]:
    """Show the columns, and what was done to them."""
    missing = [value or "an empty field" for value in sorted(run.asked.reading.all_missing)]
    notes = [note for note in run.notes if note_kind(note) in ("warning", "remark")]
    listed = Items("Notes", notes) if notes else None
    return [Text(say("guide_columns", missing=missing)), listed, columns_table(run)]


def list_settings(run: TableRun) -> dict[str, str]:
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
        "kept": kept_point(run).title,
        "models on the way": len(run.trade_off) - 1,
        "seconds": f"{run.seconds:.0f}",
    }
    versions = {f"version of {name}": version for name, version in run.versions.items()}
    return {name: _shown(value) for name, value in {**given, **found, **versions}.items()}


def _shown(value: Any) -> str:
    """Write the value of a setting."""
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def prediction_document(found: PredictionAudit, decision: Decision) -> Document:
    """Lay out the page of an audit of predictions."""
    title, groups, audit = found.label_audit.groups.title, found.cells.groups, found.label_audit
    settings = {
        "table": data_name(found.asked.data),
        "label": found.asked.label,
        "positive label": found.labels.positive or "none named",
        "predictions": found.prediction,
        "scores": found.score or "none",
        "rows without a prediction": f"{found.left_out:,}",
    }
    words = [say("notion", fairness=found.asked.fairness)]
    words.append(say("predictions_overall", scores=found.scores, fairness=found.asked.fairness))
    words += [] if found.true_labels is None else [found.true_labels.sentence]
    measures = sorted(found.measures, key=lambda one: found.asked.fairness not in one.notions)
    lists = [Items("Reasons", decision.reasons), Items("What else to do", decision.next_steps[1:])]
    suspects: list[Block] = [Text(estimate_sentence(audit.estimate))]
    if len(audit.suspects["row"]):
        suspects.append(suspects_table(audit.suspects, {}))
    sections = [
        Section("rates", "Group by group", [bars_figure(title, measures, groups)]),
        Section(
            "numbers",
            "The numbers",
            [
                *(one.as_block() for one in decision.verdicts),
                *(one for one in lists if one.texts),
                *map(Text, words),
            ],
        ),
        *_scores_section(found),
        Section("suspects", "Labels to check", suspects),
        Section(
            "groups",
            "Every rate",
            [
                groups_table(title, found.measures, groups, ["value"]),
                gaps_table(found.measures, groups, ["difference"]),
            ],
            folded=True,
        ),
        Section(
            "settings",
            "How this was made",
            [Facts("Settings", settings)],
            folded=True,
        ),
    ]
    lead = say(
        "predictions_lead",
        label=found.asked.label,
        column=found.prediction,
        table=data_name(found.asked.data),
        by=title,
        rows=len(found.cells),
    )
    return Document(f"Predictions of {found.asked.label}", lead, sections, notice(decision))


def _scores_section(found: PredictionAudit) -> list[Section]:
    """Show scores beside what is found, group by group, where there are any."""
    if not found.calibration:
        return []
    rows = [
        [str(one.group), one.observed.total, percent(one.predicted), percent(one.observed.value), one.error]
        for one in found.calibration
    ]
    titles = ["group", "people", "mean score", "have the label", "difference"]
    table = plain_table("calibration", "Scores and what is found, by group", titles, rows)
    words = Text(say("guide_scores", column=found.score, label=found.labels.positive))
    figure = calibration_figure(found.calibration, {"given": "Scores"})
    return [Section("calibration", "What scores mean", [words, *([figure] if figure else []), table])]
