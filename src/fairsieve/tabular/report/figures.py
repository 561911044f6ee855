"""The figures of a run and of an audit of predictions."""

from __future__ import annotations

import math
from collections.abc import Sequence

from fairsieve.report.document import Figure, Panel, Series
from fairsieve.report.looks import Look, looks_of
from fairsieve.tabular.calibration import Calibration
from fairsieve.tabular.evaluation import Measure
from fairsieve.tabular.reasons import main_gaps
from fairsieve.tabular.table_run import TableRun
from fairsieve.tabular.words import group_name, upper

__all__ = ["calibration_figure", "path_figure", "rates_figure", "trade_off_figure"]

MODELS = ("plain model", "fair model")
MOST_GROUPS = 12
MOST_MEASURES = 6


def _group_looks(run: TableRun) -> dict[str, Look]:
    """Choose a colour and a symbol for each group: the same in every figure."""
    return looks_of(map(group_name, run.test_groups))


def rates_figure(run: TableRun, *, main: bool = False) -> Figure:
    """Draw where each group stands under the plain model and under the fair one: a panel for each rate.

    With ``main``, only the rate in which groups lie farthest apart under the plain model.
    """
    looks, gaps = _group_looks(run), main_gaps(run)
    named = [] if gaps is None else [gap.measure.name for gap in gaps]
    # First the rates that the decision is about, then those that fairness compares.
    order = sorted(
        run.measures, key=lambda one: (one.name not in named, run.asked.fairness not in one.notions)
    )
    measures = [order[0] if gaps is None else gaps[0].measure] if main else order[:MOST_MEASURES]
    ends = _shared_range(measures)
    panels = []
    for measure in measures:
        places = [
            i for i, group in enumerate(run.test_groups) if group is not None and measure.plain[i].total
        ]
        names = [group_name(run.test_groups[place]) for place in places]
        series = []
        for height, (name, place) in enumerate(zip(names, places, strict=True)):
            shares = [measure.plain[place], measure.fair[place]]
            bounds = [share.interval for share in shares]
            values, both = [share.value for share in shares], [height, height]
            series.append(
                Series(name, values, both, "dumbbell", labels=MODELS, x_interval=bounds, look=looks[name])
            )
        titles = (upper(measure.meaning), "share") if main else (measure.title, measure.meaning)
        panels.append(Panel(*titles, "group", series, x_range=ends, y_names=names))
    caption = "From the plain model (open) to the fair one (filled); thin lines are 95 % intervals."
    return Figure("rates" if main else "groups", caption, panels)


def _shared_range(measures: Sequence[Measure]) -> tuple[float, float]:
    """Find one axis for all rates: tenths around every interval, and a little more, so that no marker is cut."""
    shares = [share for measure in measures for share in (*measure.plain, *measure.fair) if share.total]
    low = min((share.interval[0] for share in shares), default=0.0)
    high = max((share.interval[1] for share in shares), default=1.0)
    return math.floor(10 * low) / 10 - 0.02, math.ceil(10 * high) / 10 + 0.02


def trade_off_figure(run: TableRun) -> Figure:
    """Draw accuracy against disparity: the plain model, the one that is kept, and the others on the way."""
    plain = run.trade_off[0]
    kept = next(point for point in run.trade_off if point.kept)
    ends = {"plain model (kept)" if kept is plain else "plain model": plain, f"kept: {kept.title}": kept}
    drawn = []
    for name, point in list(ends.items())[: 1 if kept is plain else 2]:
        accuracy, disparity = point.scores["accuracy"], point.scores["disparity"]
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
    others = [point for point in run.trade_off[1:] if not point.kept]
    if others:
        x, y = ([point.scores[name].value for point in others] for name in ("disparity", "accuracy"))
        titles = [point.title for point in others]
        drawn.append(Series("others on the way", x, y, "points", labels=titles, dashed=True))
    title = f"{run.asked.fairness.replace('_', ' ')} disparity"
    caption = (
        "Accuracy against disparity on the test part; better is up and to the left. Lines are 95 % intervals."
    )
    return Figure("trade-off", caption, [Panel("Trade-off", title, "accuracy", drawn)])


def calibration_figure(
    found: Sequence[Calibration], models: dict[str, str], looks: dict[str, Look] | None = None
) -> Figure | None:
    """Draw the share that has the label against its probability, by group: a panel for each model."""
    drawn = [one for one in found if one.group is not None and one.bins]
    if not drawn:
        return None
    what = drawn[0].label or "the predicted label"
    names = list(dict.fromkeys(group_name(one.group) for one in drawn))[:MOST_GROUPS]
    looks = looks or looks_of(names)
    panels = []
    for model, title in models.items():
        series = [Series("as predicted", [0.0, 1.0], [0.0, 1.0], dashed=True)]
        for one in drawn:
            name = group_name(one.group)
            if one.model == model and name in names:
                x, y = [part.predicted for part in one.bins], [part.observed.value for part in one.bins]
                bounds = [part.observed.interval for part in one.bins]
                people = [f"{part.observed.total:,} people" for part in one.bins]
                series.append(Series(name, x, y, "points", interval=bounds, labels=people, look=looks[name]))
        panels.append(
            Panel(title, f"probability of {what}", f"share with {what}", series, x_range=(-0.02, 1.02))
        )
    caption = "Shares by probability and group; lines, 95 % intervals."
    return Figure("calibration", caption, panels)


def run_calibration(run: TableRun) -> Figure | None:
    """Draw what the probabilities of both models mean, group by group."""
    return calibration_figure(
        run.calibration, dict(zip(("plain", "fair"), MODELS, strict=True)), _group_looks(run)
    )


def path_figure(run: TableRun) -> Figure | None:
    """Draw the widest gap and the accuracy of the models on the way, on the rows that training judges by."""
    path = [point.held_out for point in run.trade_off if point.held_out is not None]
    if len(path) < 2:
        return None
    steps = list(range(len(path)))
    lines = {
        "Widest gap": [point.disparity for point in path],
        "Accuracy": [point.accuracy for point in path],
    }
    panels = [Panel(title, "update", title.lower(), [Series("path", steps, y)]) for title, y in lines.items()]
    return Figure("path", "The models on the way, from every group as it comes to the fairest.", panels)


def bars_figure(title: str, measures: Sequence[Measure], groups: Sequence[str | None]) -> Figure:
    """Draw the rates of one model: a panel for each rate and a bar for each group, on the same axis."""
    panels = []
    for one in measures[:MOST_MEASURES]:
        named = [
            (group_name(group), share)
            for group, share in zip(groups, one.plain, strict=True)
            if share.total and group is not None
        ]
        bars = [
            Series(name, [name], [share.value], "bars", interval=[share.interval]) for name, share in named
        ]
        panels.append(Panel(one.title, "", one.meaning, bars, y_range=(0.0, 1.0)))
    return Figure("groups", f"Rates by {title}; lines, 95 % intervals (Wilson).", panels)
