"""A run's figures."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from fairsieve.report.document import Figure, Panel, Series
from fairsieve.report.looks import Look, looks_of
from fairsieve.selection.fairness import ABBREVIATIONS
from fairsieve.tabular.evaluation import Measure
from fairsieve.tabular.report.phrases import group_name, main_gaps
from fairsieve.tabular.table_run import TableRun

__all__ = ["calibration_figure", "dropped_figure", "epochs_figure", "groups_figure", "trade_off_figure"]

MODELS = ("plain model", "fair model")
MOST_POINTS = 120  # along a line
MOST_GROUPS = 12
MOST_LABELS = 3
MOST_MEASURES = 6


def _group_looks(run: TableRun) -> dict[str, Look]:
    """Choose a colour and a symbol for each group: the same in every figure."""
    names = [group_name(group) for group in run.test_groups]
    return looks_of([*names, *map(group_name, run.history.groups)])


def groups_figure(run: TableRun) -> Figure:
    """Draw a panel for each rate: where each group stands under the plain model and under the fair one."""
    looks = _group_looks(run)
    measures = _select_measures(run)
    ends = _shared_range(measures)
    panels = []
    for measure in measures:
        places = [
            place
            for place, group in enumerate(run.test_groups)
            if group is not None and measure.plain[place].total
        ]
        series = []
        for height, place in enumerate(places):
            shares = [measure.plain[place], measure.fair[place]]
            name = group_name(run.test_groups[place])
            series.append(
                Series(
                    name,
                    [share.value for share in shares],
                    [height, height],
                    "dumbbell",
                    labels=MODELS,
                    x_interval=[share.interval for share in shares],
                    look=looks[name],
                )
            )
        names = [group_name(run.test_groups[place]) for place in places]
        panels.append(Panel(measure.title, measure.meaning, "group", series, x_range=ends, y_names=names))
    return Figure(
        "groups",
        f"Rates by {run.problem.groups.title} on the test part, from the plain model (open) to the fair one (filled). "
        "Thin lines are 95 % intervals.",
        panels,
    )


def _shared_range(measures: list[Measure]) -> tuple[float, float]:
    """Find one axis for all rates: tenths around every interval, and a little more, so that no marker is cut."""
    shares = [share for measure in measures for share in (*measure.plain, *measure.fair) if share.total]
    low = min((share.interval[0] for share in shares), default=0.0)
    high = max((share.interval[1] for share in shares), default=1.0)
    return math.floor(10 * low) / 10 - 0.02, math.ceil(10 * high) / 10 + 0.02


def _select_measures(run: TableRun) -> list[Measure]:
    """Select the rates to draw: first those that the headline is about, then those that fairness compares."""
    gaps = main_gaps(run)

    named = [] if gaps is None else [gap.measure.name for gap in gaps]

    def order(measure: Measure) -> tuple[bool, bool]:
        return measure.name not in named, run.asked.fairness not in measure.notions

    return sorted(run.measures, key=order)[:MOST_MEASURES]


def trade_off_figure(run: TableRun) -> Figure:
    """Draw accuracy against disparity: the plain model, the one that is kept, and the others on the way."""
    short = ABBREVIATIONS[run.asked.fairness]
    plain, kept = run.trade_off[0], next(point for point in run.trade_off if point.kept)
    ends = {"plain model": plain} if kept is plain else {"plain model": plain, f"kept: {kept.title}": kept}
    drawn = []
    for name, point in ends.items():
        accuracy, disparity = point.scores["accuracy"], point.scores["disparity"]
        drawn.append(
            Series(
                f"{name} (kept)" if kept is plain else name,
                [disparity.value],
                [accuracy.value],
                "points",
                interval=[accuracy.interval],
                x_interval=[disparity.interval],
            )
        )
    others = [point for point in run.trade_off[1:] if not point.kept]
    if others:
        drawn.append(
            Series(
                "others on the way",
                [point.scores["disparity"].value for point in others],
                [point.scores["accuracy"].value for point in others],
                "points",
                labels=[point.title for point in others],
                dashed=True,
            )
        )
    return Figure(
        "trade-off",
        "Accuracy against disparity on the test part; better is up and to the left. Lines, 95 % intervals "
        "(bootstrap).",
        [Panel("Trade-off", f"{short} disparity", "accuracy", drawn)],
    )


def calibration_figure(run: TableRun) -> Figure | None:
    """Draw the share that has the label against its probability, by group: a panel for each model."""
    looks = _group_looks(run)
    drawn = [one for one in run.calibration if one.group is not None and one.bins]
    if not drawn:
        return None
    what = drawn[0].label or "the predicted label"
    names = list(dict.fromkeys(group_name(one.group) for one in drawn))[:MOST_GROUPS]
    panels = []
    for model, title in zip(("plain", "fair"), MODELS, strict=True):
        series = [Series("as predicted", [0.0, 1.0], [0.0, 1.0], dashed=True)]
        for one in drawn:
            name = group_name(one.group)
            if one.model == model and name in names:
                series.append(
                    Series(
                        name,
                        [part.predicted for part in one.bins],
                        [part.observed.value for part in one.bins],
                        "points",
                        interval=[part.observed.interval for part in one.bins],
                        labels=[f"{part.observed.total:,} people" for part in one.bins],
                        look=looks[name],
                    )
                )
        panels.append(
            Panel(title, f"probability of {what}", f"share with {what}", series, x_range=(-0.02, 1.02))
        )
    few = "" if len(names) == len({one.group for one in drawn}) else f" Only {MOST_GROUPS} groups are drawn."
    return Figure(
        "calibration",
        f"Shares by probability and {run.problem.groups.title}, on the test part; lines, 95 % intervals.{few}",
        panels,
    )


def dropped_figure(run: TableRun) -> Figure:
    """Draw the shares dropped: a group of bars for each label, a bar for each group."""
    looks = _group_looks(run)
    series = []
    for group in dict.fromkeys(cell.group for cell in run.dropped):
        cells = [cell for cell in run.dropped if cell.group == group]
        name = group_name(group)
        series.append(
            Series(
                name,
                [f"labelled {cell.label}" for cell in cells],
                [cell.dropped.value for cell in cells],
                "bars",
                interval=[cell.dropped.interval for cell in cells],
                look=looks.get(name),
            )
        )
    return Figure(
        "dropped",
        "Share of each cell that was left out of the last epoch; lines, 95 % intervals.",
        [Panel("Dropped", "label", "share dropped", series)],
    )


def epochs_figure(run: TableRun) -> Figure:
    """Draw ratios and losses, epoch by epoch: a panel for each label, a line for each group."""
    history = run.history
    rows = np.unique(np.linspace(0, len(history) - 1, min(len(history), MOST_POINTS)).round().astype(int))
    sizes = np.asarray(history.sizes)
    labels = np.argsort(-sizes.sum(axis=1), kind="stable")[:MOST_LABELS]
    groups = np.sort(np.argsort(-sizes.sum(axis=0), kind="stable")[:MOST_GROUPS])
    panels = []
    for title, y_title, table in (
        ("Ratios", "share of the label that the group has", history.ratios),
        ("Losses", "mean loss over those trained on", history.cell_losses),
    ):
        y_range = (0.0, 1.05 * float(np.nanmax(table[rows], initial=0.0)) or 1.0)
        for label in np.sort(labels):
            lines = _epoch_lines(run, rows, label, groups, table)
            name = f"{title}, labelled {history.classes[label]}"
            panels.append(Panel(name, "epoch", y_title, lines, y_range=y_range))
    few = ""
    if len(labels) < sizes.shape[0] or len(groups) < sizes.shape[1]:
        few = f" Only the {len(labels)} largest labels and the {len(groups)} largest groups are drawn."
    return Figure("epochs", f"Ratios and losses of each label and group by epoch.{few}", panels)


def _epoch_lines(
    run: TableRun, rows: NDArray[np.int64], label: int, groups: NDArray[np.int64], table: NDArray[np.float64]
) -> list[Series]:
    """Draw a line for each group that has people of a label."""
    history, looks = run.history, _group_looks(run)
    lines = []
    for group in groups:
        if np.asarray(history.sizes)[label, group]:
            name = group_name(history.groups[group])
            values = table[rows, label, group].round(5).tolist()
            lines.append(Series(name, history.epochs[rows].tolist(), values, look=looks[name]))
    return lines
