"""A run's tables."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np

from fairsieve.report.document import Cell, Column, Table
from fairsieve.report.number_format import number, percent
from fairsieve.selection.fairness import ABBREVIATIONS
from fairsieve.tabular.bootstrap import Score
from fairsieve.tabular.evaluation import Gap, Share, gap_between
from fairsieve.tabular.quality import EVERYONE
from fairsieve.tabular.report.model_phrases import column_treatment
from fairsieve.tabular.report.phrases import group_name, interval
from fairsieve.tabular.table_run import TableRun

__all__ = [
    "columns_table",
    "dropped_table",
    "gaps_table",
    "groups_table",
    "overall_table",
    "quality_table",
    "suspects_table",
]

ROWS_AT_ONCE = 20
MOST_FEATURES = 8  # of a label to check
MOST_SUSPECTS = 500  # on the page; the file has all
MOST_PAIRS = 6  # of groups; with more of them, each beside the largest


def overall_table(run: TableRun) -> Table:
    """Lay out accuracy and disparity of both models."""
    short = ABBREVIATIONS[run.asked.fairness]
    rows = []
    for name, title in (("accuracy", "accuracy"), ("disparity", f"{short} disparity")):
        ends = [_score_cell(run.scores[place][name]) for place in (0, -1)]
        rows.append([Cell(title), *ends, _score_cell(run.change[name])])
    heads = [
        Column("measure"),
        Column("plain model", True),
        Column("fair model", True),
        Column("change", True),
    ]
    return Table(
        "overall",
        "Both models on the test part, with 95 % intervals (bootstrap)",
        heads,
        rows,
        reference_title="95 % interval",
    )


def _score_cell(score: Score) -> Cell:
    return Cell(number(score.value), value=score.value, reference=interval(score.interval))


def groups_table(run: TableRun) -> Table:
    """Lay out every rate of every group, under both models."""
    rows = []
    for measure in run.measures:
        for group, plain, fair in zip(run.test_groups, measure.plain, measure.fair, strict=True):
            if plain.total:
                meant = Cell(measure.title, note=measure.meaning)
                people = Cell(f"{plain.total:,}", value=plain.total)
                rows.append([Cell(group_name(group)), meant, people, _share_cell(plain), _share_cell(fair)])
    heads = [
        Column("group"),
        Column("rate"),
        Column("people", True),
        Column("plain model", True),
        Column("fair model", True),
    ]
    return Table(
        "groups",
        f"Rates by {run.problem.groups.title} on the test part, with 95 % intervals (Wilson)",
        heads,
        rows,
        filterable=len(rows) > 12,
        rows_at_once=ROWS_AT_ONCE,
        reference_title="95 % interval",
    )


def _share_cell(share: Share) -> Cell:
    return Cell(number(share.value), value=share.value, reference=interval(share.interval))


def quality_table(run: TableRun) -> Table:
    """Lay out how well the models tell labels apart, in each group and over everyone."""
    rows = []
    groups = [*map(group_name, run.test_groups), EVERYONE]
    for one in run.quality:
        for group, plain, fair in zip(groups, one.plain, one.fair, strict=True):
            if plain is not None or fair is not None:
                cells = [Cell("–") if score is None else _score_cell(score) for score in (plain, fair)]
                rows.append([Cell(group), Cell(one.title, note=one.meaning), *cells])
    heads = [Column("group"), Column("measure"), Column("plain model", True), Column("fair model", True)]
    return Table(
        "quality",
        "How well labels are told apart on the test part, with 95 % intervals (Wilson; bootstrap for AUC and average "
        "precision)",
        heads,
        rows,
        filterable=len(rows) > 12,
        rows_at_once=ROWS_AT_ONCE,
        reference_title="95 % interval",
    )


def gaps_table(run: TableRun) -> Table:
    """Lay out how far groups lie apart, under both models."""
    rows = []
    for measure in run.measures:
        for low, high in _select_pairs(run):
            if measure.plain[low].total and measure.plain[high].total:
                gap = gap_between(measure, low, high)
                compared = f"{group_name(run.test_groups[high])} less {group_name(run.test_groups[low])}"
                rows.append([Cell(compared), Cell(measure.title, note=measure.meaning), *_gap_cells(gap)])
    heads = [Column("groups"), Column("rate"), Column("plain model", True), Column("fair model", True)]
    return Table(
        "gaps",
        "Differences between groups on the test part, with 95 % intervals (Newcombe); one that spans 0 may be chance",
        heads,
        rows,
        filterable=len(rows) > 12,
        rows_at_once=ROWS_AT_ONCE,
        reference_title="95 % interval",
    )


def _gap_cells(gap: Gap) -> list[Cell]:
    return [
        Cell(number(value), value=value, reference=interval(bounds))
        for value, bounds in ((gap.plain, gap.plain_interval), (gap.fair, gap.fair_interval))
    ]


def _select_pairs(run: TableRun) -> list[tuple[int, int]]:
    """Select the pairs of groups to compare: all, or each with the largest where they are many."""
    places = [place for place, group in enumerate(run.test_groups) if group is not None]
    pairs = list(combinations(places, 2))
    if len(pairs) <= MOST_PAIRS:
        return pairs
    largest = max(places, key=lambda place: run.measures[0].plain[place].total)
    return [(place, largest) for place in places if place != largest]


def dropped_table(run: TableRun) -> Table:
    """Lay out who was left out, cell by cell."""
    estimated = any(cell.noise is not None for cell in run.dropped)
    rows = []
    for cell in run.dropped:
        share = cell.dropped
        row = [
            Cell(cell.label),
            Cell(group_name(cell.group)),
            Cell(f"{share.total:,}", value=share.total),
            Cell(f"{share.hits:,}", value=share.hits),
            Cell(
                percent(share.value), value=share.value, reference=" to ".join(map(percent, share.interval))
            ),
            Cell(f"{cell.suspects:,}", value=cell.suspects),
        ]
        if estimated:
            row.append(Cell("–") if cell.noise is None else Cell(percent(cell.noise), value=cell.noise))
        rows.append(row)
    heads = [
        Column("label"),
        Column("group"),
        Column("people", True),
        Column("dropped", True),
        Column("share dropped", True),
        Column("labels that look wrong", True),
        *([Column("estimated wrong labels", True)] if estimated else []),
    ]
    return Table(
        "dropped",
        "Who was left out of the last epoch, in the training part, with 95 % intervals (Wilson)",
        heads,
        rows,
        reference_title="95 % interval",
        rows_at_once=ROWS_AT_ONCE,
    )


def suspects_table(run: TableRun) -> Table:
    """List the labels to look at first."""
    found = run.suspects
    count = len(found["row"])
    shown = f"the first {MOST_SUSPECTS} of {count:,}" if count > MOST_SUSPECTS else f"all {count:,}"
    features = _suspect_features(run)
    rows = [
        [
            Cell(str(found["row"][i])),
            Cell(str(found["label"][i])),
            Cell(str(found["suggested"][i])),
            Cell(f"{found['probability'][i]:.3f}"),
            Cell(f"{found['loss'][i]:.2f}"),
            Cell(group_name(found["group"][i])),
            Cell(str(found["epochs_kept"][i])),
            *(Cell(texts[i]) for texts in features.values()),
        ]
        for i in range(min(count, MOST_SUSPECTS))
    ]
    heads = [
        Column("row", True),
        Column("label"),
        Column("suggested label"),
        Column("probability", True),
        Column("loss", True),
        Column("group"),
        Column("epochs kept", True),
        *(Column(name) for name in features),
    ]
    return Table(
        "suspects",
        f"Labels to check, {shown}; suspects.csv has every row and column",
        heads,
        rows,
        True,
        rows_at_once=ROWS_AT_ONCE,
    )


def _suspect_features(run: TableRun) -> dict[str, list[str]]:
    """Write what stands in the first columns that the model learns from, for the labels to check."""
    table = run.problem.table
    first = run.suspects["row"][:MOST_SUSPECTS].astype(np.int64)
    rows = table.take(np.searchsorted(table.rows, first))
    names = [feature.column for feature in run.problem.features][:MOST_FEATURES]
    return {
        name: ["–" if value is None else _value_text(value) for value in rows.cells(name)]
        for name in names
        if name in rows.columns
    }


def _value_text(value: Any) -> str:
    """Write a value of the table, a number without what nobody reads."""
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def columns_table(run: TableRun) -> Table:
    """List every column, and what was made of it."""
    problem = run.problem
    rows = [[Cell(problem.labels.column), Cell("label"), Cell("–"), Cell("–"), Cell("what is predicted")]]
    learnt = {feature.column for feature in problem.features}
    rows += [
        [Cell(column), Cell("sensitive"), Cell("–"), Cell("–"), Cell("groups only; not learnt from")]
        for column in problem.groups.columns
        if column not in learnt
    ]
    for feature in problem.features:
        sensitive = "sensitive, " if feature.column in problem.groups.columns else ""
        rows.append(
            [
                Cell(feature.column),
                Cell(sensitive + feature.kind),
                Cell(f"{feature.missing:,}", value=feature.missing),
                Cell(f"{feature.distinct:,}", value=feature.distinct),
                Cell(column_treatment(run, feature)),
            ]
        )
    heads = [
        Column("column"),
        Column("holds"),
        Column("missing", True),
        Column("different values", True),
        Column("what is made of it"),
    ]
    return Table(
        "columns",
        "The columns, and what was made of each",
        heads,
        rows,
        len(rows) > 12,
        rows_at_once=ROWS_AT_ONCE,
    )
