"""A run's figures."""

from __future__ import annotations

import numpy as np

from fairsieve.report.document import Figure, Panel, Series
from fairsieve.selection.fairness import ABBREVIATIONS
from fairsieve.tabular.report.phrases import group_name
from fairsieve.tabular.table_run import TableRun

__all__ = ["dropped_figure", "epochs_figure", "groups_figure", "trade_off_figure"]

MODELS = ("plain model", "fair model")
MOST_POINTS = 120  # along a line
MOST_CELLS = 12
MOST_MEASURES = 6


def groups_figure(run: TableRun) -> Figure:
    """Draw a panel for each rate: the groups side by side, under the plain model and under the fair one."""
    places = [place for place, group in enumerate(run.test_groups) if group is not None]
    panels = []
    for measure in run.measures[:MOST_MEASURES]:
        series = []
        for place in places:
            shares = [measure.plain[place], measure.fair[place]]
            if shares[0].total:
                values, intervals = [share.value for share in shares], [share.interval for share in shares]
                name = group_name(run.test_groups[place])
                series.append(Series(name, MODELS, values, "bars", interval=intervals))
        panels.append(Panel(measure.title, "", measure.meaning, series))
    return Figure(
        "groups",
        f"Rates by {run.problem.groups.title} under both models, on the test part; lines, 95 % intervals.",
        panels,
    )


def trade_off_figure(run: TableRun) -> Figure:
    """Draw accuracy against disparity, from the plain model to the fair one."""
    short = ABBREVIATIONS[run.asked.fairness]
    drawn = []
    for name, place in zip(MODELS, (0, -1), strict=True):
        accuracy, disparity = run.scores[place]["accuracy"], run.scores[place]["disparity"]
        drawn.append(
            Series(
                name,
                [disparity.value],
                [accuracy.value],
                "points",
                interval=[accuracy.interval],
                x_interval=[disparity.interval],
            )
        )
    if len(run.along) > 2:
        drawn.append(
            Series(
                "between the two",
                [scores["disparity"].value for scores in run.scores[1:-1]],
                [scores["accuracy"].value for scores in run.scores[1:-1]],
                "points",
                labels=[f"{share:.0%} of the way to the fair model" for share in run.along[1:-1]],
                dashed=True,
            )
        )
    return Figure(
        "trade-off",
        "Accuracy against disparity on the test part; better is up and to the left. Lines, 95 % intervals "
        "(bootstrap).",
        [Panel("Trade-off", f"{short} disparity", "accuracy", drawn)],
    )


def dropped_figure(run: TableRun) -> Figure:
    """Draw the shares dropped: a group of bars for each label, a bar for each group."""
    series = []
    for group in dict.fromkeys(cell.group for cell in run.dropped):
        cells = [cell for cell in run.dropped if cell.group == group]
        series.append(
            Series(
                group_name(group),
                [f"labelled {cell.label}" for cell in cells],
                [cell.dropped.value for cell in cells],
                "bars",
                interval=[cell.dropped.interval for cell in cells],
            )
        )
    return Figure(
        "dropped",
        "Share of each cell that was left out of the last epoch; lines, 95 % intervals.",
        [Panel("Dropped", "label", "share dropped", series)],
    )


def epochs_figure(run: TableRun) -> Figure:
    """Draw ratios and losses of the cells, epoch by epoch."""
    history = run.history
    rows = np.unique(np.linspace(0, len(history) - 1, min(len(history), MOST_POINTS)).round().astype(int))
    epochs = history.epochs[rows].tolist()
    sizes = np.ravel(history.sizes)
    chosen = np.sort(np.argsort(-sizes, kind="stable")[:MOST_CELLS])
    chosen = chosen[sizes[chosen] > 0]
    groups = len(history.groups)
    panels = []
    for title, y_title, table in (
        ("Ratios", "share of the label that the group has", history.ratios),
        ("Losses", "mean loss over those kept", history.cell_losses),
    ):
        lines = []
        for cell in chosen:
            label, group = history.classes[cell // groups], history.groups[cell % groups]
            values = table[rows, cell // groups, cell % groups]
            lines.append(Series(f"{label}, {group_name(group)}", epochs, values.round(5).tolist()))
        panels.append(Panel(title, "epoch", y_title, lines))
    few = "" if len(chosen) == (sizes > 0).sum() else f" Only the {MOST_CELLS} largest cells are drawn."
    return Figure("epochs", f"Ratios and losses of the cells (label, group) by epoch.{few}", panels)
