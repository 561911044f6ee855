"""The page of a run, and that of an audit of predictions: the decision first, details folded."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import pandas as pd

from fairsieve.notions import find_notion
from fairsieve.report.document import (
    Block,
    Cell,
    Column,
    Document,
    Facts,
    Figure,
    Items,
    Notice,
    Panel,
    Section,
    Series,
    Table,
    Text,
    Verdict,
)
from fairsieve.report.looks import looks_of
from fairsieve.report.text import interval, number, percent, upper
from fairsieve.tabular.answers import tell_true_labels
from fairsieve.tabular.decision import Decision, advise, estimate_sentence, group_name, say, tell
from fairsieve.tabular.evaluation import EVERYONE, Calibration, Gap, Quality, Rate, list_gaps, order_gaps
from fairsieve.tabular.impact_ratios import impact_section
from fairsieve.tabular.prediction_audit import PredictionAudit
from fairsieve.tabular.reading.columns import note_kind
from fairsieve.tabular.reading.encoding import used
from fairsieve.tabular.reasons import dropping_verdict, main_gaps
from fairsieve.tabular.settings import data_name
from fairsieve.tabular.table_run import DroppedCell, TableRun

NOTICES = {"use": ("Use", True), "inconclusive": ("Inconclusive", None), "do-not-use": ("Do not use", False)}
HOLDS = {"fails": False, "inconclusive": None, "holds": True}
MODELS = ("plain model", "fair model")
MOST_GROUPS = 12
MOST_MEASURES = 6
ROWS_AT_ONCE = 20
MOST_SUSPECTS = 500  # on the page; the file has all
MOST_FEATURES = 8  # of a label to check, where columns are shown
PERSONAL = re.compile(
    r"(^|[^a-z])(id|uuid|guid|e-?mail|mail|phone|telephone|tel|mobile|fax|address|street|postcode|zip|ssn|iban|"
    r"passport|licen[cs]e|birth|dob|surname|forename|lastname|firstname|username|user|login|ip)([^a-z]|$)|name",
    re.IGNORECASE,
)


def paragraphs(name: str, in_python: bool = False, **facts: Any) -> list[Block]:
    """Word something of the page."""
    return [Text(text) for text in tell("page.j2", name, facts, in_python=in_python)]


def models_of(run: TableRun) -> Sequence[str]:
    """Name the models that a page has columns of: one where the plain model is kept, which nothing is compared with."""
    return MODELS[:1] if run.keeps_plain else MODELS


def notice(decision: Decision, *lines: str) -> Notice:
    """Put the decision on top of a page, with the next step."""
    steps = [f"Next: {step}" for step in decision.next_steps[:1]]
    title, holds = NOTICES[decision.outcome]
    return Notice(title, decision.sentence, holds, [*lines, *steps])


def _items(caption: str, texts: Sequence[str]) -> list[Block]:
    """List texts, where there are any."""
    return [Items(caption, texts)] if texts else []


def _why(decision: Decision) -> list[Block]:
    """List the verdicts, failed ones first, the reasons, and what else to do."""
    return [
        *(Verdict(one.claim, one.source, HOLDS[one.status], one.sentence) for one in decision.verdicts),
        *_items("Reasons", decision.reasons),
        *_items("What else to do", decision.next_steps[1:]),
    ]


def run_document(run: TableRun, decision: Decision) -> Document:
    """Lay out the page of a run."""
    groups, fairness, models = run.test_groups, run.asked.fairness, models_of(run)
    both = len(models) > 1
    measures = order_rates(run.measures, fairness, main_gaps(run) or ())
    gaps = order_gaps(list_gaps(run.measures, fairness, run.problem.test.cells.named_groups))
    told_apart = "How well labels are told apart on the test part"
    quality = measures_table("quality", told_apart, run.quality, [*groups, EVERYONE], models)
    calibration = calibration_figures(
        run.calibration, dict(zip(("plain", "fair"), models, strict=False)), groups
    )
    rates: list[Block] = [
        *paragraphs("guide_groups"),
        rates_figure("groups", measures, groups, both=both),
        measures_table("groups", f"Rates by {run.problem.groups.title}", run.measures, groups, models),
        gaps_table(gaps, groups, models),
    ]
    notes = [note for note in run.notes if note_kind(note) in ("warning", "remark")]
    listed = _items("Notes", [advise(note, in_python=decision.in_python) for note in notes])
    folded: list[tuple[str, str, list[Block]]] = [
        ("trade-off", "The trade-off", [*paragraphs("guide_trade_off", run=run), trade_off_figure(run)]),
        ("groups", "Every rate", rates),
        ("quality", "Telling labels apart", [*paragraphs("guide_quality"), quality]),
        ("calibration", "Probabilities", [*paragraphs("guide_calibration"), *calibration]),
        ("columns", "The table", [*paragraphs("guide_columns", run=run), *listed, columns_table(run)]),
        ("settings", "How this was made", [Facts("Settings and versions", _list_settings(run))]),
    ]
    basis = paragraphs("basis", decision.in_python, run=run)
    dropped = paragraphs("dropped", run=run, verdict=dropping_verdict(run))
    suspects = paragraphs("suspects", decision.in_python, run=run)
    if not run.is_inconclusive:
        suspects += suspects_table(run.suspects, shown_values(run) if run.asked.show_columns else {})
    first = rates_figure("rates", measures[:1], groups, both=both)
    title = "What changes, for whom" if both else "Group by group"
    sections = [
        Section("rates", title, [first, *paragraphs("guide_rates")]),
        Section("numbers", "The numbers", [*_why(decision), overall_table(run), *basis]),
        Section("dropped", "Who was dropped, and who counts", [*dropped, dropped_table(run.dropped)]),
        Section("suspects", "Labels to check", suspects),
        *(Section(*one, folded=True) for one in folded if one[0] != "calibration" or calibration),
    ]
    lead, top = say("page.j2", "lead", {"run": run}), notice(decision, say("page.j2", "stored", {"run": run}))
    return Document(f"A model of {run.problem.labels.column}", lead, sections, top)


def _list_settings(run: TableRun) -> dict[str, str]:
    """List how to make this run again, and what came of it."""
    given = {name.replace("_", " "): value for name, value in run.asked.record().items()}
    title = say("page.j2", "model_title", {"run": run})
    found = {"model": title, "kept": run.kept.title, "seconds": f"{run.seconds:.0f}"}
    versions = {f"version of {name}": version for name, version in run.versions.items()}
    return {
        name: ", ".join(map(str, value)) if isinstance(value, list) else str(value)
        for name, value in {**given, **found, **versions}.items()
        if value not in (None, [])
    }


def prediction_document(found: PredictionAudit, decision: Decision) -> Document:
    """Lay out the page of an audit of predictions."""
    groups, asked = found.cells.groups, found.asked
    measures = order_rates(found.measures, asked.fairness)
    true_labels = "".join(tell_true_labels(found.true_labels, asked.fairness))
    basis = paragraphs("predictions_basis", found=found, true_labels=true_labels)
    scores = [
        *paragraphs("guide_scores", found=found),
        *calibration_figures(found.calibration, {"given": "Scores"}, groups),
        scores_table(found.calibration),
    ]
    rates: list[Block] = [
        measures_table("groups", f"Rates by {found.groups.title}", found.measures, groups, ["value"]),
        gaps_table(found.gaps(), groups, ["difference"]),
    ]
    suspects = [Text(estimate_sentence(found.estimate)), *suspects_table(found.suspects, {})]
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
        Section("numbers", "The numbers", [*_why(decision), *basis]),
        *([] if found.impact is None else [impact_section(found.impact)]),
        *([Section("calibration", "What scores mean", scores)] if found.calibration else []),
        Section("suspects", "Labels to check", suspects),
        Section("groups", "Every rate", rates, folded=True),
        Section("settings", "How this was made", [Facts("Settings", settings)], folded=True),
    ]
    lead = say("page.j2", "predictions_lead", {"found": found})
    return Document(f"Predictions of {asked.label}", lead, sections, notice(decision))


# ---- Tables


def plain_table(name: str, caption: str, titles: Sequence[str], rows: Sequence[Sequence[Any]]) -> Table:
    """Lay out values: texts, counts, proportions, scores with their intervals, measures with what they mean."""
    cells = [[_cell(value) for value in row] for row in rows]
    numeric = [any(row[place].value is not None for row in cells) for place in range(len(titles))]
    columns = list(map(Column, titles, numeric))
    filterable = len(rows) > 12
    return Table(name, caption, columns, cells, filterable, "95 % interval", ROWS_AT_ONCE)


def _cell(value: Any) -> Cell:
    """Write one value."""
    if isinstance(value, Cell):
        return value
    if hasattr(value, "interval"):
        people = f"; {value.total:,} people" if hasattr(value, "total") else ""
        return Cell(number(value.value), value=value.value, reference=interval(value.interval) + people)
    if isinstance(value, int | np.integer):
        return Cell(f"{value:,}", value=int(value))
    if isinstance(value, float):
        return Cell(percent(value), value=value)
    if hasattr(value, "meaning"):
        return Cell(value.title, note=value.meaning)
    return Cell("–" if value is None else str(value))


def overall_table(run: TableRun) -> Table:
    """Lay out accuracy and disparity of both models, and what changes; of one where the plain model is kept."""
    titles = {"accuracy": "accuracy", "disparity": f"{find_notion(run.asked.fairness).title} disparity"}
    names = models_of(run) if run.keeps_plain else [*MODELS, "change"]
    columns = (run.scores[0], run.scores[-1], run.change)[: len(names)]
    rows = [[title, *(one[name] for one in columns)] for name, title in titles.items()]
    caption = "Accuracy and disparity on the test part, with 95 % intervals (bootstrap)"
    return plain_table("overall", caption, ["measure", *names], rows)


def measures_table(
    name: str,
    caption: str,
    measures: Sequence[Rate | Quality],
    groups: Sequence[str | None],
    models: Sequence[str] = MODELS,
) -> Table:
    """Lay out every measure of every group, under one model or two, where there is anybody to measure."""
    rows = [
        [group_name(group), one, *(plain, fair)[: len(models)]]
        for one in measures
        for group, plain, fair in zip(groups, one.plain, one.fair, strict=True)
        if plain is not None and not math.isnan(plain.value)
    ]
    return plain_table(name, f"{caption}, with 95 % intervals", ["group", "measure", *models], rows)


def gaps_table(gaps: Sequence[Gap], groups: Sequence[str | None], models: Sequence[str] = MODELS) -> Table:
    """Lay out how far groups lie apart, under one model or two."""
    rows = [
        [f"{groups[gap.high]} less {groups[gap.low]}", gap.measure, *(gap.plain, gap.fair)[: len(models)]]
        for gap in gaps
    ]
    caption = "Differences between groups, with 95 % intervals (Newcombe); one that spans 0 may be chance"
    return plain_table("gaps", caption, ["groups", "rate", *models], rows)


def dropped_table(cells: Sequence[DroppedCell]) -> Table:
    """Lay out who was left out and who counts how much, cell by cell."""
    rows = [
        [
            cell.label,
            group_name(cell.group),
            cell.dropped.total,
            Cell(f"{cell.dropped.hits:,} ({percent(cell.dropped.value)})", value=cell.dropped.value),
            cell.suspects,
            cell.estimated_noise,
            cell.effective_weight,
        ]
        for cell in cells
    ]
    titles = ["label", "group", "people", "dropped", "labels that look wrong", "estimated wrong"]
    caption = "Who was left out at the end of training, and what each cell weighs for its number of rows"
    return plain_table("dropped", caption, [*titles, "effective weight"], rows)


def scores_table(found: Sequence[Calibration]) -> Table:
    """Lay out scores beside what is found, group by group."""
    rows = [[one.group, one.observed.total, one.predicted, one.observed.value, one.error] for one in found]
    titles = ["group", "people", "mean score", "have the label", "difference"]
    return plain_table("calibration", "Scores and what is found, by group", titles, rows)


def shown_values(run: TableRun) -> dict[str, Sequence[Any]]:
    """Return labels, groups and the first columns of the labels to check, but none that may name somebody."""
    table, found = run.problem.table, run.suspects.head(MOST_SUSPECTS)
    rows = table.take(np.searchsorted(table.rows, found["row"]))
    names = [
        one.column
        for one in used(run.problem.features)
        if not PERSONAL.search(one.column) and (one.kind == "numbers" or 2 * one.distinct <= len(table))
    ]
    own = {"label": found["label"], "suggested label": found["suggested_label"], "group": found["group"]}
    return {**own, **{one: rows.cells(one) for one in names[:MOST_FEATURES]}}


def suspects_table(suspects: pd.DataFrame, values: dict[str, Sequence[Any]]) -> list[Block]:
    """List the rows of the labels to look at first, where there are any: by number, or with ``values`` of columns."""
    if not len(suspects):
        return []
    first, count = suspects.head(MOST_SUSPECTS), len(suspects)
    shown = f"the first {MOST_SUSPECTS} of {count:,}" if count > MOST_SUSPECTS else f"all {count:,}"
    rows = [
        [Cell(str(row), value=int(row)), Cell(f"{chance:.3f}", value=float(chance))]
        + [None if one is None else str(one) for one in more]
        for row, chance, *more in zip(first["row"], first["probability"], *values.values(), strict=True)
    ]
    caption = f"Labels to check, {shown}; suspects.csv has every row and column"
    titles = ["row", "chance of another label", *values]
    return [plain_table("suspects", caption, titles, rows)._replace(folded=True)]


def columns_table(run: TableRun) -> Table:
    """List every column, and what was made of it."""
    problem, dash = run.problem, Cell("–")
    learnt = {feature.column for feature in problem.features}
    rows: list[list[Any]] = [[problem.labels.column, "label", dash, dash, "what is predicted"]]
    rows += [
        [column, "sensitive", dash, dash, "groups only; not learnt from"]
        for column in problem.groups.columns
        if column not in learnt
    ]
    for one in problem.features:
        sensitive = "sensitive, " if one.column in problem.groups.columns else ""
        treatment = one.treatment(run.model_name)
        rows.append([one.column, sensitive + one.kind, one.missing, one.distinct, treatment])
    titles = ["column", "holds", "missing", "different values", "what is made of it"]
    return plain_table("columns", "The columns, and what was made of each", titles, rows)


# ---- Figures


def rates_figure(
    name: str, measures: Sequence[Rate], groups: Sequence[str | None], *, both: bool = True
) -> Figure:
    """Draw where each group stands under the plain model and under the fair one, or under one: a panel for each rate.

    All panels have one axis: tenths around every interval, and a little more, so that no marker is cut.
    """
    looks = looks_of(map(group_name, groups))  # the same in every figure
    shares = [share for one in measures for share in (*one.plain, *one.fair) if share.total]
    low = min((share.interval[0] for share in shares), default=0.0)
    high = max((share.interval[1] for share in shares), default=1.0)
    ends = math.floor(10 * low) / 10 - 0.02, math.ceil(10 * high) / 10 + 0.02
    kind: Literal["dumbbell", "points"] = "dumbbell" if both else "points"
    names = MODELS if both else None
    panels = []
    for measure in measures:
        rows = zip(groups, measure.plain, measure.fair, strict=True)
        named = {str(group): pair[: 1 + both] for group, *pair in rows if group and pair[0].total}
        series = []
        for height, (group, row) in enumerate(named.items()):
            values, bounds = [share.value for share in row], [share.interval for share in row]
            heights, look = [height] * len(row), looks[group]
            series.append(Series(group, values, heights, kind, labels=names, x_interval=bounds, look=look))
        titles = (measure.title, measure.meaning) if len(measures) > 1 else (upper(measure.meaning), "share")
        panels.append(Panel(*titles, "group", series, x_range=ends, y_names=list(named)))
    models = "From the plain model (open) to the fair one (filled); t" if both else "T"
    return Figure(name, f"{models}hin lines are 95 % intervals.", panels)


def order_rates(measures: Sequence[Rate], fairness: str, gaps: Sequence[Gap] = ()) -> list[Rate]:
    """Order rates: those that a decision is about, then those that fairness compares; of many, the first ones."""
    first = {gap.measure.name: gap.measure for gap in gaps}
    ordered = sorted(measures, key=lambda one: fairness not in one.notions)
    return [*first.values(), *(one for one in ordered if one.name not in first)][:MOST_MEASURES]


def trade_off_figure(run: TableRun) -> Figure:
    """Draw accuracy against disparity: the plain model, the one that is kept, and the others on the way."""
    ends = {"plain model": run.trade_off[0], f"kept: {run.kept.title}": run.kept}
    if run.keeps_plain:
        ends = {"plain model (kept)": run.kept}
    drawn = []
    for name, point in ends.items():
        x, y = point.scores["disparity"], point.scores["accuracy"]
        across, up = [x.interval], [y.interval]
        drawn.append(Series(name, [x.value], [y.value], "points", interval=up, x_interval=across))
    others = [point for point in run.trade_off[1:] if not point.kept]
    if others:
        xs, ys = ([point.scores[name].value for point in others] for name in ("disparity", "accuracy"))
        titles = [point.title for point in others]
        drawn.append(Series("others on the way", xs, ys, "points", labels=titles, dashed=True))
    title = f"{find_notion(run.asked.fairness).title} disparity"
    caption = "Accuracy against disparity on the test part; up and left is better. Lines are 95 % intervals."
    return Figure("trade-off", caption, [Panel("Trade-off", title, "accuracy", drawn)])


def calibration_figures(
    found: Sequence[Calibration], models: dict[str, str], groups: Sequence[str | None]
) -> list[Figure]:
    """Draw the share that has the label against its probability, by group: a panel for each model, if anything."""
    looks = looks_of(map(group_name, groups))
    drawn = [one for one in found if one.group in groups[:MOST_GROUPS] and one.group is not None and one.bins]
    what = drawn[0].label or "the predicted label" if drawn else ""
    panels = []
    for model, title in models.items():
        series = [Series("as predicted", [0.0, 1.0], [0.0, 1.0], dashed=True)]
        for one in (one for one in drawn if one.model == model):
            shares, look = [part.observed for part in one.bins], looks[str(one.group)]
            x, y = [part.predicted for part in one.bins], [share.value for share in shares]
            people = [f"{share.total:,} people" for share in shares]
            spans = [share.interval for share in shares]
            series.append(Series(str(one.group), x, y, "points", labels=people, interval=spans, look=look))
        axes = (f"probability of {what}", f"share with {what}")
        panels.append(Panel(title, *axes, series, x_range=(-0.02, 1.02)))
    caption = "Shares by probability and group; lines, 95 % intervals."
    return [Figure("calibration", caption, panels)] if drawn else []
