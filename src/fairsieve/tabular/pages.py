"""The page of a run, and that of an audit of predictions: the decision first, details folded."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import pandas as pd

from fairsieve.metrics import Score
from fairsieve.notions import find_notion
from fairsieve.report.page import (
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
    looks_of,
)
from fairsieve.report.text import interval, number, percent, upper
from fairsieve.tabular.audits import PredictionAudit
from fairsieve.tabular.decision import Decision, estimate_sentence, group_name, say, tell
from fairsieve.tabular.evaluation import EVERYONE, Calibration, Evaluation, Rate
from fairsieve.tabular.reading.columns import note_kind
from fairsieve.tabular.reading.encoding import used
from fairsieve.tabular.settings import data_name
from fairsieve.tabular.table_run import DroppedCell, TableRun

NOTICES: dict[str, tuple[str, bool | None]] = {
    "use": ("Use", True),
    "use-fair": ("Use the fair model", True),
    "keep-plain": ("Keep the plain model", True),
    "your-call": ("Your call", None),
    "cannot-tell": ("Cannot tell yet", None),
    "do-not-use": ("Do not use", False),
}
HOLDS = {"fails": False, "cannot tell": None, "holds": True}
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


def paragraphs(name: str, **facts: Any) -> list[Block]:
    """Word something of the page."""
    return list(map(Text, tell(name, facts)))


def models_of(evaluation: Evaluation) -> list[str]:
    """Name the models that tables have columns of."""
    return ["value"] if len(evaluation.names) == 1 else [f"{name} model" for name in evaluation.names]


def notice(decision: Decision, *lines: str) -> Notice:
    """Put the decision on top of a page, with the next step."""
    steps = [f"Next: {step}" for step in decision.next_steps[:1]]
    title, holds = NOTICES[decision.outcome]
    if decision.usable == "do-not-use":
        holds = False
        if decision.subject == "model":
            title = f"{title}; do not use it as it is"
    return Notice(title, decision.sentence, holds, [*lines, *steps])


def _why(decision: Decision) -> list[Block]:
    """List the verdicts, failed ones first, the reasons, and what else to do."""
    lists = [Items("Reasons", decision.reasons), Items("What else to do", decision.next_steps[1:])]
    return [
        *(Verdict(one.claim, one.source, HOLDS[one.status], one.sentence) for one in decision.verdicts),
        *(each for each in lists if each.texts),
    ]


def run_document(run: TableRun, decision: Decision) -> Document:
    """Lay out the page of a run."""
    evaluation = run.evaluation
    rates = order_rates(evaluation)
    calibration = calibration_figures(evaluation)
    every: list[Block] = [
        *paragraphs("guide_groups"),
        rates_figure("groups", rates, evaluation),
        rates_table("groups", f"Rates by {run.problem.groups.title}", evaluation.rates, evaluation),
        gaps_table(evaluation),
    ]
    notes = [note for note in run.notes if note_kind(note) in ("warning", "remark")]
    listed = [Items("Notes", notes)] if notes else []
    folded: list[tuple[str, str, list[Block]]] = [
        ("trade-off", "The trade-off", [*paragraphs("guide_trade_off", run=run), trade_off_figure(run)]),
        ("groups", "Every rate", every),
        ("quality", "Telling labels apart", [*paragraphs("guide_quality"), quality_table(evaluation)]),
        ("calibration", "Probabilities", [*paragraphs("guide_calibration"), *calibration]),
        ("columns", "The table", [*paragraphs("guide_columns", run=run), *listed, columns_table(run)]),
        ("settings", "How this was made", [Facts("Settings and versions", _list_settings(run))]),
    ]
    basis = paragraphs("basis", run=run)
    suspects = paragraphs("suspects", run=run)
    if not run.is_inconclusive:
        suspects += suspects_table(run.suspects, shown_values(run) if run.asked.show_columns else {})
    first = rates_figure("rates", rates[:1], evaluation)
    dropped = paragraphs("dropped", run=run)
    sections = [
        Section("rates", "What changes, for whom", [first, *paragraphs("guide_rates", found=evaluation)]),
        Section("numbers", "The numbers", [*_why(decision), overall_table(run), *basis]),
        Section("dropped", "Who counts in training", [*dropped, dropped_table(run.dropped)]),
        Section("suspects", "Labels to check", suspects),
        *(Section(*one, folded=True) for one in folded if one[0] != "calibration" or calibration),
    ]
    lead, top = say("lead", {"run": run}), notice(decision, say("stored", {"run": run}))
    return Document(f"A model that predicts {run.problem.labels.column}", lead, sections, top)


def _list_settings(run: TableRun) -> dict[str, str]:
    """List how to make this run again, and what came of it."""
    given = {name.replace("_", " "): value for name, value in run.asked.record().items()}
    title = say("model_title", {"run": run})
    settings = {"model": title, "stored": f"{run.choice.stored} model", "seconds": f"{run.seconds:.0f}"}
    versions = {f"version of {name}": version for name, version in run.versions.items()}
    return {
        name: ", ".join(map(str, value)) if isinstance(value, list) else str(value)
        for name, value in {**given, **settings, **versions}.items()
        if value not in (None, [])
    }


def prediction_document(audit: PredictionAudit, decision: Decision) -> Document:
    """Lay out the page of an audit of predictions."""
    evaluation, asked = audit.evaluation, audit.asked
    scores = [
        *paragraphs("guide_scores", audit=audit),
        *calibration_figures(replace(evaluation, calibration=audit.calibration)),
        scores_table(audit.calibration),
    ]
    rates = rates_table("groups", f"Rates by {audit.groups.title}", evaluation.rates, evaluation)
    suspects = [Text(estimate_sentence(audit.estimate)), *suspects_table(audit.suspects, {})]
    settings = {
        "table": data_name(asked.data),
        "label": asked.label,
        "positive label": audit.labels.positive or "none named",
        "predictions": audit.prediction,
        "scores": audit.score or "none",
        "rows without a prediction": f"{audit.left_out:,}",
    }
    sections = [
        Section("rates", "Group by group", [rates_figure("groups", order_rates(evaluation), evaluation)]),
        Section("numbers", "The numbers", [*_why(decision), *paragraphs("predictions_basis", audit=audit)]),
        *([] if audit.impact is None else [impact_section(audit.impact)]),
        *([Section("calibration", "What scores mean", scores)] if audit.calibration else []),
        Section("suspects", "Labels to check", suspects),
        Section("groups", "Every rate", [rates, gaps_table(evaluation)], folded=True),
        Section("settings", "How this was made", [Facts("Settings", settings)], folded=True),
    ]
    lead = say("predictions_lead", {"audit": audit})
    return Document(f"Predictions of {asked.label}", lead, sections, notice(decision))


# ---- Tables


def plain_table(name: str, caption: str, titles: Sequence[str], rows: Sequence[Sequence[Any]]) -> Table:
    """Lay out values: texts, counts, proportions, scores with their intervals, measures with what they mean."""
    cells = [[_cell(value) for value in row] for row in rows]
    numeric = [any(row[place].value is not None for row in cells) for place in range(len(titles))]
    columns = list(map(Column, titles, numeric))
    return Table(name, caption, columns, cells, len(rows) > 12, "95 % interval", ROWS_AT_ONCE)


def _cell(value: Any) -> Cell:
    """Write one value."""
    if isinstance(value, Cell):
        return value
    if hasattr(value, "interval"):
        people = f"; {value.total:,} people" if hasattr(value, "total") else ""
        bounds = "" if math.isnan(value.interval[0]) else interval(value.interval)
        return Cell(number(value.value), value=value.value, reference=bounds + people)
    if isinstance(value, int | np.integer):
        return Cell(f"{value:,}", value=int(value))
    if isinstance(value, float):
        return Cell(percent(value), value=value)
    if hasattr(value, "meaning"):
        return Cell(value.title, note=value.meaning)
    return Cell("–" if value is None else str(value))


def overall_table(run: TableRun) -> Table:
    """Lay out accuracy and disparity of both models and what changes: for right labels, and on those given."""
    judged, rows = run.evaluation.judged, []
    titles = {"accuracy": "accuracy", "disparity": f"{find_notion(run.asked.fairness).title} disparity"}
    sources = {"for right labels": judged, "on the labels as given": judged.on_given_labels}
    for words, source in sources.items():
        if source.basis == "given labels" and words == "for right labels":
            continue
        for name, change in source.change().items():
            models = [getattr(model, name) for model in source.models]
            rows.append([f"{titles[name]}, {words}", *models, change])
    caption = "Accuracy and disparity, with 95 % intervals, on rows that the models did not see"
    return plain_table("overall", caption, ["measure", *models_of(run.evaluation), "change"], rows)


def rates_table(name: str, caption: str, rates: Sequence[Rate], evaluation: Evaluation) -> Table:
    """Lay out rates of every group, under one model or two: for right labels, and on those given where they differ."""
    both = evaluation.judged.basis != "given labels"
    rows = [
        [group_name(group), rate, round(rate.people[place])]
        + [model[place] for model in rate.models]
        + ([model[place] for model in rate.given] if both else [])
        for rate in rates
        for place, group in enumerate(evaluation.groups)
        if rate.models[0][place] is not None
    ]
    models = models_of(evaluation)
    heads = [*models, *(f"{one}, labels as given" for one in models if both)]
    return plain_table(name, f"{caption}, with 95 % intervals", ["group", "rate", "people", *heads], rows)


def gaps_table(evaluation: Evaluation) -> Table:
    """Lay out how far groups lie apart, under one model or two."""
    names = evaluation.groups
    rows = [[f"{names[gap.high]} less {names[gap.low]}", gap.rate, *gap.models] for gap in evaluation.gaps]
    caption = "Differences between groups, with 95 % intervals; one that spans 0 may be none"
    return plain_table("gaps", caption, ["groups", "rate", *models_of(evaluation)], rows)


def quality_table(evaluation: Evaluation) -> Table:
    """Lay out how well labels are told apart."""
    rows = [
        [group_name(group), one, *(model[place] for model in one.models)]
        for one in evaluation.quality
        for place, group in enumerate([*evaluation.groups, EVERYONE])
        if one.models[0][place] is not None
    ]
    caption = "How well labels are told apart, on the labels as given, with 95 % intervals"
    return plain_table("quality", caption, ["group", "measure", *models_of(evaluation)], rows)


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
    titles = ["label", "group", "people", "dropped", "labels that look wrong", "counted as another"]
    caption = "Who was left out at the end of training, and what each cell weighs for its number of rows"
    return plain_table("dropped", caption, [*titles, "effective weight"], rows)


def scores_table(calibration: Sequence[Calibration]) -> Table:
    """Lay out scores beside what is found, group by group."""
    rows = [
        [one.group, one.observed.total, one.predicted, one.observed.value, one.error] for one in calibration
    ]
    titles = ["group", "people", "mean score", "have the label", "difference"]
    caption = "Scores and what is found, by group, on the labels as given"
    return plain_table("calibration", caption, titles, rows)


def impact_section(impact: pd.DataFrame) -> Section:
    """Lay out selection rates and impact ratios, under the words that say what they are and what they are not."""
    blocks = paragraphs("guide_impact")
    for (measure, by), part in impact.groupby(["measure", "by"], sort=False):
        titles = ["category", "people", "share", "selected", f"{measure} rate", "impact ratio", "note"]
        rows = []
        for row in part.itertuples():
            rate = Score(row.rate, (row.rate_low, row.rate_high))
            ratio = Score(row.impact_ratio, (row.ratio_low, row.ratio_high))
            told = None if math.isnan(row.impact_ratio) else ratio
            rows.append([row.category, row.people, row.share, row.selected, rate, told, row.note])
        name, caption = f"impact-{measure}-{by}", f"{measure.capitalize()} rates by {by}, with 95 % intervals"
        blocks.append(plain_table(name.replace(" ", "-"), caption, titles, rows)._replace(rows_at_once=100))
    return Section("impact", "Selection rates and impact ratios", blocks)


def shown_values(run: TableRun) -> dict[str, Sequence[Any]]:
    """Return labels, groups and the first columns of the labels to check, but none that may name somebody."""
    table, suspects = run.problem.table, run.suspects.head(MOST_SUSPECTS)
    rows = table.take(np.searchsorted(table.rows, suspects["row"]))
    names = [
        one.column
        for one in used(run.problem.features)
        if not PERSONAL.search(one.column) and (one.kind == "numbers" or 2 * one.distinct <= len(table))
    ]
    known = ("label", "suggested_label", "group")
    values: dict[str, Sequence[Any]] = {name.replace("_", " "): suspects[name] for name in known}
    return values | {name: rows.cells(name) for name in names[:MOST_FEATURES]}


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
        treatment = one.treatment(run.trained.kind)
        rows.append([one.column, sensitive + one.kind, one.missing, one.distinct, treatment])
    titles = ["column", "holds", "missing", "different values", "what is made of it"]
    return plain_table("columns", "The columns, and what was made of each", titles, rows)


# ---- Figures


def rates_figure(name: str, rates: Sequence[Rate], evaluation: Evaluation) -> Figure:
    """Draw where each group stands under the plain model and under the fair one, or under one: a panel for each rate.

    All panels have one axis: tenths around every interval, and a little more, so that no marker is cut.
    """
    looks = looks_of(map(group_name, evaluation.groups))  # the same in every figure
    both = len(evaluation.names) > 1
    scores = [score for rate in rates for model in rate.models for score in model if score is not None]
    reached = [score.interval for score in scores] or [(0.0, 1.0)]
    ends = math.floor(10 * np.min(reached)) / 10 - 0.02, math.ceil(10 * np.max(reached)) / 10 + 0.02
    kind: Literal["dumbbell", "points"] = "dumbbell" if both else "points"
    names = models_of(evaluation) if both else None
    panels = []
    for rate in rates:
        rows = zip(evaluation.groups, zip(*rate.models, strict=True), strict=True)
        named = {str(group): row for group, row in rows if group and None not in row}
        series = []
        for height, (group, row) in enumerate(named.items()):
            values, bounds = [score.value for score in row], [score.interval for score in row]
            heights, look = [height] * len(row), looks[group]
            series.append(Series(group, values, heights, kind, labels=names, x_interval=bounds, look=look))
        titles = (rate.title, rate.meaning) if len(rates) > 1 else (upper(rate.meaning), "share")
        panels.append(Panel(*titles, "group", series, x_range=ends, y_names=list(named)))
    models = "From the plain model (open) to the fair one (filled); t" if both else "T"
    return Figure(name, f"{models}hin lines are 95 % intervals.", panels)


def order_rates(evaluation: Evaluation) -> list[Rate]:
    """Order rates: those that a decision is about, then those that fairness compares; of many, the first ones."""
    first = {id(gap.rate): gap.rate for gap in evaluation.widest}
    ordered = sorted(evaluation.rates, key=lambda rate: not rate.compared)
    return [*first.values(), *(rate for rate in ordered if id(rate) not in first)][:MOST_MEASURES]


def trade_off_figure(run: TableRun) -> Figure:
    """Draw accuracy against disparity: the plain model, the fair one, and others on the way."""
    drawn = []
    for title, _, y, x in run.trade_off[:2]:
        bounds: dict[str, Any] = {"interval": [y.interval], "x_interval": [x.interval]}
        drawn.append(Series(title, [x.value], [y.value], "points", **bounds))
    others = sorted(run.trade_off[2:], key=lambda point: point.disparity.value)
    if others:
        titles, _, ys, xs = zip(*others, strict=True)
        places = [x.value for x in xs], [y.value for y in ys]
        drawn.append(Series("others on the way", *places, "points", labels=titles, dashed=True))
    title = f"{find_notion(run.asked.fairness).title} disparity"
    caption = "Accuracy against disparity, for rows that the models did not see; up and left is better."
    return Figure("trade-off", caption, [Panel("Trade-off", title, "accuracy", drawn)])


def calibration_figures(evaluation: Evaluation) -> list[Figure]:
    """Draw the share that has the label against its probability, by group: a panel for each model, if anything."""
    groups, calibration = evaluation.groups, evaluation.calibration
    looks = looks_of(map(group_name, groups))
    told = [group for group in groups[:MOST_GROUPS] if group is not None]
    drawn = [one for one in calibration if one.group in told and one.bins]
    what = drawn[0].label or "the predicted label" if drawn else ""
    panels = []
    for model in dict.fromkeys(one.model for one in drawn):
        series = [Series("as predicted", [0.0, 1.0], [0.0, 1.0], dashed=True)]
        for one in (one for one in drawn if one.model == model):
            shares, look = [part.observed for part in one.bins], looks[str(one.group)]
            x, y = [part.predicted for part in one.bins], [share.value for share in shares]
            people = [f"{share.total:,} people" for share in shares]
            spans = [share.interval for share in shares]
            series.append(Series(str(one.group), x, y, "points", labels=people, interval=spans, look=look))
        axes = (f"probability of {what}", f"share with {what}")
        title = "Scores" if model == "given" else f"{model} model"
        panels.append(Panel(title, *axes, series, x_range=(-0.02, 1.02)))
    caption = "Shares by probability and group, on the labels as given; lines, 95 % intervals."
    return [Figure("calibration", caption, panels)] if drawn else []
