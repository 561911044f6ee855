"""A run in plain words."""

from __future__ import annotations

import math
from typing import Literal

from fairsieve.label_noise.estimate import CleanRatioEstimate
from fairsieve.report.number_format import number, percent, points
from fairsieve.tabular.evaluation import Gap, Measure, Share, widest_gap
from fairsieve.tabular.table_run import TableRun

__all__ = [
    "NOTIONS",
    "UNSEEN",
    "estimate_sentence",
    "gaps_sentence",
    "group_name",
    "headline",
    "interval",
    "is_inconclusive",
    "kept_sentence",
    "main_gaps",
    "points_interval",
    "suspects_sentence",
]

NOTIONS = {
    "equalized_odds": "equalized odds: people of one label get the same predictions, whatever their group",
    "equal_opportunity": "equal opportunity: people of the positive label are recognised equally often in every group",
    "demographic_parity": "demographic parity: every group is predicted the positive label equally often",
}
NO_GROUP = "(no group)"
AT_RANDOM = "at random within a label and group"  # shares may differ between them
SYSTEMATICALLY = "by a column or for one group"
UNSEEN = f"Labels wrong systematically, {SYSTEMATICALLY}, do not show."
WORTH_TELLING = 0.0005  # less is the same in three digits


def group_name(group: str | None) -> str:
    """Name a group."""
    return NO_GROUP if group is None else group


def interval(bounds: tuple[float, float]) -> str:
    """Write an interval.

    >>> interval((0.1, 0.25))
    '.100 to .250'
    """
    return f"{number(bounds[0])} to {number(bounds[1])}"


def points_interval(bounds: tuple[float, float]) -> str:
    """Write the 95 % interval of a difference, in points.

    >>> points_interval((-0.021, 0.13))
    '95 % interval −2 to 13'
    """
    low, high = (f"{100 * bound:.0f}".replace("-0", "0").replace("-", "−") for bound in bounds)
    return f"95 % interval {low} to {high}"


def _share_text(share: Share) -> str:
    """Write a share and its interval; return a dash if the group is empty."""
    return f"{number(share.value)} [{interval(share.interval)}]" if share.total else "–"


def main_gaps(run: TableRun) -> tuple[Gap, Gap] | None:
    """Find the widest gap of the plain model, and that of the fair one; of the label asked for, where one was."""
    labels, measures = run.problem.labels, run.measures
    if run.asked.positive is not None and len(labels.classes) > 2:
        measures = [one for one in measures if one.name.endswith(f" of {labels.positive}")]
    plain, fair = _widest(run, measures, "plain"), _widest(run, measures, "fair")
    return None if plain is None or fair is None else (plain, fair)


def _widest(run: TableRun, measures: list[Measure], model: Literal["plain", "fair"]) -> Gap | None:
    """Find a model's widest gap among some measures."""
    groups = sum(group is not None for group in run.test_groups)
    return widest_gap(measures, run.asked.fairness, groups, model)


def gaps_sentence(run: TableRun) -> str:
    """Describe the widest gap of each model, with its interval; empty where all groups are too small."""
    gaps = main_gaps(run)
    if gaps is None:
        return ""
    (plain, fair), many = gaps, "" if gaps[0].compared <= 2 else f", of {gaps[0].compared} compared"
    same = (plain.measure, plain.low, plain.high) == (fair.measure, fair.low, fair.high)
    first = f"{_gap_title(plain, run)}, {_gap_text(plain, plain.plain, plain.plain_interval, run)}"
    second = f"{_gap_title(fair, run)}, {_gap_text(fair, fair.fair, fair.fair_interval, run)}"
    if same:
        second = f"the same rate, {_gap_text(fair, fair.fair, fair.fair_interval, run)}"
    return f"widest gap{many}: plain model, {first}; fair model, {second}{_wider_gap(run, plain)}"


def _wider_gap(run: TableRun, shown: Gap) -> str:
    """Name the plain model's widest gap over all labels, where that of the label asked for is narrower."""
    widest = _widest(run, run.measures, "plain")
    if widest is None or widest.plain <= shown.plain:
        return ""
    text = _gap_text(widest, widest.plain, widest.plain_interval, run)
    return f"; over all labels, {_gap_title(widest, run)}, {text}"


def _gap_title(gap: Gap, run: TableRun) -> str:
    """Name the rate of a gap, with the label it is about."""
    labels, title = run.problem.labels, gap.measure.title
    return f"{title} of {labels.positive}" if title.endswith("rate") and len(labels.classes) == 2 else title


def _gap_text(gap: Gap, value: float, bounds: tuple[float, float], run: TableRun) -> str:
    """Describe one gap."""
    low, high = (group_name(run.test_groups[place]) for place in (gap.low, gap.high))
    chance = ", which may be chance" if bounds[0] <= 0 else ""
    apart = "no difference" if value < WORTH_TELLING else f"{low} {points(value)} below {high}"
    return f"{apart} ({points_interval(bounds)}{chance})"


def is_inconclusive(run: TableRun) -> bool:
    """Return whether the data could not tell which labels are wrong."""
    return run.estimate is not None and not run.estimate.credible


def suspects_sentence(run: TableRun) -> str:
    """Say how many labels to look at; none is counted where the estimate is inconclusive."""
    count = len(run.suspects["row"])
    if is_inconclusive(run):
        return "which labels are wrong cannot be known"
    if not count:
        return "no label looks wrong"
    given = " to the model, at the clean ratio that you gave" if run.estimate is None else ""
    return f"{count:,} {'label looks' if count == 1 else 'labels look'} wrong{given}"


def kept_sentence(run: TableRun) -> str:
    """Say why some labels that look wrong were trained on in all epochs; empty where none was."""
    kept = int((run.suspects["epochs_kept"] == len(run.history)).sum())
    if not kept or run.estimate is None or run.model_name != "logistic":
        return ""
    rows = "1 of these rows was" if kept == 1 else f"{kept:,} of these rows were"
    return (
        f"{rows} trained on all the same: a row is left out with the chance that its label is wrong, not for certain, "
        "so that the rows that stay are labelled as if no label were wrong."
    )


def estimate_sentence(estimate: CleanRatioEstimate) -> str:
    """Say how many labels were found to be wrong, how they came about, and what cannot be known."""
    if not estimate.credible:
        return f"inconclusive: {estimate.credible} Training {estimate.training}."
    low, high = estimate.interval
    if estimate.verified is not None:
        return (
            f"about {number(estimate.clean_ratio)} of the labels are right (95 % interval {interval((low, high))}), by "
            "those that somebody checked."
        )
    if not estimate.flip_rates.any():
        most = max(math.ceil(100 * (1 - low) - 1e-9), 1)
        return (
            f"no wrong labels were found; up to {most} % of them could be wrong at random without showing, and labels "
            f"wrong systematically, {SYSTEMATICALLY}, do not show at all."
        )
    found = f"about {percent(1 - estimate.clean_ratio)} look wrong"
    if estimate.aimed:
        found += ", aimed at the clearest rows (how many is then told roughly)"
    else:
        found += f" {AT_RANDOM} (95 % interval {percent(1 - high)} to {percent(1 - low)})"
    return (
        f"at most {number(high)} of the labels are right: {found}. Labels wrong systematically, {SYSTEMATICALLY}, do "
        "not show and would come on top."
    )


def headline(run: TableRun) -> str:
    """Say what was measured, in one sentence."""
    plain, fair = (score["accuracy"].value for score in (run.scores[0], run.scores[-1]))
    parts = [f"accuracy {number(plain)} → {number(fair)}", gaps_sentence(run), suspects_sentence(run)]
    return "; ".join(filter(None, parts))
