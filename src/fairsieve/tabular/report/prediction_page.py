"""An audit of predictions as a page, and as numbers for programs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fairsieve.files import write_output
from fairsieve.report.document import (
    Block,
    Cell,
    Column,
    Document,
    Facts,
    Figure,
    Panel,
    Section,
    Series,
    Table,
    Text,
)
from fairsieve.report.number_format import number, percent
from fairsieve.report.page import write_page
from fairsieve.selection.fairness import ABBREVIATIONS
from fairsieve.tabular.decision import Decision
from fairsieve.tabular.evaluation import Measure, gap_between
from fairsieve.tabular.prediction_audit import PredictionAudit
from fairsieve.tabular.report.csv_files import suspects_csv
from fairsieve.tabular.report.metrics_file import audit_record, record_json
from fairsieve.tabular.report.phrases import NOTIONS, estimate_sentence, group_name, interval
from fairsieve.tabular.report.verdicts import upper
from fairsieve.tabular.request import data_name

__all__ = ["prediction_record", "write_prediction_audit"]

MOST_PANELS = 6
MOST_SUSPECTS = 500
INTERVAL = "95 % interval"


def write_prediction_audit(found: PredictionAudit, decision: Decision, folder: Path) -> None:
    """Write the page, the numbers and the labels to check into a folder that is there."""
    audit = found.label_audit
    write_output(folder / "suspects.csv", suspects_csv(audit.suspects, audit.table).encode())
    write_page(_document(found, decision), folder / "report.html")
    write_output(folder / "metrics.json", record_json(prediction_record(found, decision)).encode())


def prediction_record(found: PredictionAudit, decision: Decision) -> dict[str, Any]:
    """Collect everything that is reported of an audit of predictions, as values that JSON can express."""
    groups = found.cells.groups
    return audit_record(found.label_audit, decision) | {
        "settings": {
            "data": data_name(found.asked.data),
            "label": found.asked.label,
            "sensitive": list(found.asked.sensitive),
            "prediction": found.prediction,
            "score": found.score,
            "fairness": found.asked.fairness,
        },
        "rows_measured": len(found.cells),
        "rows_without_prediction": found.left_out,
        "scores": {
            name: {"value": one.value, "interval": list(one.interval)} for name, one in found.scores.items()
        },
        "true_labels": None if found.true_labels is None else found.true_labels.record,
        "rates": [
            {
                "measure": measure.name,
                "group": group_name(group),
                "hits": share.hits,
                "total": share.total,
                "value": share.value if share.total else None,
                "interval": list(share.interval),
            }
            for measure in found.measures
            for group, share in zip(groups, measure.plain, strict=True)
        ],
        "gaps": [
            {
                "measure": gap.measure.name,
                "lower_group": groups[gap.low],
                "higher_group": groups[gap.high],
                "value": gap.plain,
                "interval": list(gap.plain_interval),
            }
            for gap in found.gaps()
        ],
        "calibration": [
            {
                "group": group_name(one.group),
                "mean_score": one.predicted,
                "observed": one.observed.value,
                "error": one.error.value,
                "interval": list(one.error.interval),
                "bins": [
                    {"mean_score": part.predicted, "hits": part.observed.hits, "total": part.observed.total}
                    for part in one.bins
                ],
            }
            for one in found.calibration
        ],
    }


def _document(found: PredictionAudit, decision: Decision) -> Document:
    """Lay out the page."""
    notion = f"Fairness here is {NOTIONS[found.asked.fairness]}."
    short = ABBREVIATIONS[found.asked.fairness]
    overall = (
        f"Accuracy {number(found.scores['accuracy'].value)} (95 % interval "
        f"{interval(found.scores['accuracy'].interval)}); {short} disparity "
        f"{number(found.scores['disparity'].value)} ({interval(found.scores['disparity'].interval)}), the largest "
        "distance between a group's rate and everyone's."
    )
    labels = (
        "Everything is measured on the table's own labels. Where these are wrong, rates are off; labels that are "
        "wrong more often in one group can make or hide a gap."
    )
    if found.true_labels is not None:
        labels = f"{labels} {found.true_labels.sentence}"
    steps = "".join(f"\n• {step}" for step in decision.next_steps)
    sections = [
        Section(
            "decision",
            "Decision",
            [
                *(verdict.as_block() for verdict in decision.verdicts),
                *(Text(reason) for reason in decision.reasons),
                *([Text(f"What to do next:{steps}")] if steps else []),
                Text(f"{notion} {overall} {labels}"),
            ],
        ),
        Section("groups", "Group by group", [_groups_figure(found), _groups_table(found)]),
        Section("gaps", "Between groups", [_gaps_table(found)]),
    ]
    if found.calibration:
        sections.append(Section("calibration", "What scores mean", _calibration_blocks(found)))
    sections += [
        Section("suspects", "Labels to check", _suspects_blocks(found)),
        Section("settings", "How this was made", [Facts("Settings", _facts(found))]),
    ]
    lead = (
        f"{decision.sentence}\nPredictions of {found.asked.label} in the column {found.prediction} of "
        f"{data_name(found.asked.data)}, compared by {found.label_audit.groups.title} on {len(found.cells):,} rows. "
        "No model was trained to predict."
    )
    return Document(f"Predictions of {found.asked.label}", lead, sections)


def _groups_figure(found: PredictionAudit) -> Figure:
    """Draw a panel for each rate, and a bar for each group; all on the same axis."""
    chosen = sorted(found.measures, key=lambda one: found.asked.fairness not in one.notions)[:MOST_PANELS]
    return Figure(
        "groups",
        f"Rates by {found.label_audit.groups.title}; lines, 95 % intervals (Wilson).",
        [Panel(one.title, "", one.meaning, _bars(found, one), y_range=(0.0, 1.0)) for one in chosen],
    )


def _bars(found: PredictionAudit, measure: Measure) -> list[Series]:
    """Draw a bar for each group that has people."""
    named = zip(found.cells.groups, measure.plain, strict=True)
    return [
        Series(group_name(group), [group_name(group)], [share.value], "bars", interval=[share.interval])
        for group, share in named
        if share.total and group is not None
    ]


def _groups_table(found: PredictionAudit) -> Table:
    """Lay out every rate of every group."""
    rows = [
        [
            Cell(group_name(group)),
            Cell(measure.title, note=measure.meaning),
            Cell(f"{share.total:,}", value=share.total),
            Cell(number(share.value), value=share.value, reference=interval(share.interval)),
        ]
        for measure in found.measures
        for group, share in zip(found.cells.groups, measure.plain, strict=True)
        if share.total
    ]
    heads = [Column("group"), Column("rate"), Column("people", True), Column("value", True)]
    return Table(
        "groups",
        f"Rates by {found.label_audit.groups.title}, with 95 % intervals (Wilson)",
        heads,
        rows,
        filterable=len(rows) > 12,
        reference_title=INTERVAL,
        rows_at_once=20,
    )


def _gaps_table(found: PredictionAudit) -> Table:
    """Lay out how far groups lie apart in every rate, the widest first."""
    groups = found.cells.groups
    gaps = [
        gap_between(measure, low, high)
        for measure in found.measures
        for low in range(found.cells.named_groups)
        for high in range(found.cells.named_groups)
        if low != high
        and measure.plain[low].total
        and measure.plain[high].total
        and (measure.plain[high].value, high) > (measure.plain[low].value, low)
    ]
    rows = [
        [
            Cell(f"{group_name(groups[gap.high])} less {group_name(groups[gap.low])}"),
            Cell(gap.measure.title, note=gap.measure.meaning),
            Cell(number(gap.plain), value=gap.plain, reference=interval(gap.plain_interval)),
        ]
        for gap in sorted(gaps, key=lambda gap: -gap.plain)
    ]
    return Table(
        "gaps",
        "Differences between groups, with 95 % intervals (Newcombe); one that spans 0 may be chance",
        [Column("groups"), Column("rate"), Column("difference", True)],
        rows,
        filterable=len(rows) > 12,
        reference_title=INTERVAL,
        rows_at_once=20,
    )


def _calibration_blocks(found: PredictionAudit) -> list[Block]:
    """Show scores beside what is found, group by group."""
    words = (
        f"Where {found.score} says 30 %, about 30 % should have the label {found.labels.positive}, in every group. "
        "Points above the dashed line: more have it than the score says. Tenths of fewer than ten people are left out."
    )
    lines = [
        Series(
            group_name(one.group),
            [part.predicted for part in one.bins],
            [part.observed.value for part in one.bins],
            "line",
            interval=[part.observed.interval for part in one.bins],
        )
        for one in found.calibration
        if one.bins
    ]
    lines.append(Series("as it should be", [0.0, 1.0], [0.0, 1.0], dashed=True))
    panel = Panel(
        "Calibration", "mean score", "share with the label", lines, x_range=(0.0, 1.0), y_range=(0.0, 1.0)
    )
    rows = [
        [
            Cell(group_name(one.group)),
            Cell(f"{one.observed.total:,}", value=one.observed.total),
            Cell(percent(one.predicted), value=one.predicted),
            Cell(percent(one.observed.value), value=one.observed.value),
            Cell(number(one.error.value), value=one.error.value, reference=interval(one.error.interval)),
        ]
        for one in found.calibration
    ]
    heads = [
        Column("group"),
        *(Column(name, True) for name in ("people", "mean score", "have the label", "difference")),
    ]
    table = Table("calibration", "Scores and what is found, by group", heads, rows, reference_title=INTERVAL)
    return [
        Text(words),
        Figure("calibration", "Scores beside what is found; lines, 95 % intervals.", [panel]),
        table,
    ]


def _suspects_blocks(found: PredictionAudit) -> list[Block]:
    """Show the labels that are more likely wrong than right."""
    suspects = found.label_audit.suspects
    words = Text(upper(estimate_sentence(found.label_audit.estimate)))
    count = len(suspects["row"])
    if not count:
        return [words]
    rows = [
        [
            Cell(str(suspects["row"][i])),
            Cell(str(suspects["label"][i])),
            Cell(str(suspects["suggested"][i])),
            Cell(f"{suspects['probability'][i]:.3f}"),
            Cell(group_name(suspects["group"][i])),
        ]
        for i in range(min(count, MOST_SUSPECTS))
    ]
    heads = [
        Column("row", True),
        Column("label"),
        Column("suggested label"),
        Column("probability", True),
        Column("group"),
    ]
    shown = f"the first {MOST_SUSPECTS} of {count:,}" if count > MOST_SUSPECTS else f"all {count:,}"
    caption = f"Labels to check, {shown}; suspects.csv has all, with their columns"
    return [words, Table("suspects", caption, heads, rows, filterable=True, rows_at_once=20)]


def _facts(found: PredictionAudit) -> dict[str, str]:
    """List what was asked."""
    return {
        "table": data_name(found.asked.data),
        "label": found.asked.label,
        "positive label": found.labels.positive or "none named",
        "sensitive": found.label_audit.groups.title,
        "predictions": found.prediction,
        "scores": found.score or "none",
        "fairness": found.asked.fairness.replace("_", " "),
        "rows measured on": f"{len(found.cells):,}",
        "rows without a prediction": f"{found.left_out:,}",
    }
