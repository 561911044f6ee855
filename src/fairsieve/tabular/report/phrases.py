"""A run in plain words."""

from __future__ import annotations

from fairsieve.label_noise.estimate import CleanRatioEstimate
from fairsieve.report.number_format import number, points
from fairsieve.selection.fairness import ABBREVIATIONS
from fairsieve.tabular.evaluation import Gap, Measure, Share, widest_gap
from fairsieve.tabular.table_run import TableRun

__all__ = [
    "NOTIONS",
    "estimate_sentence",
    "gaps_sentence",
    "group_name",
    "headline",
    "interval",
    "is_inconclusive",
    "is_worse",
    "main_gaps",
    "suspects_sentence",
]

NOTIONS = {
    "equalized_odds": "equalized odds: people of one label get the same predictions, whatever their group",
    "equal_opportunity": "equal opportunity: people of the positive label are recognised equally often in every group",
    "demographic_parity": "demographic parity: every group is predicted the positive label equally often",
}
NO_GROUP = "(no group)"
AT_RANDOM = "at random within a label and group"  # shares may differ between them
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


def _points_interval(bounds: tuple[float, float]) -> str:
    """Write the 95 % interval of a difference, in points.

    >>> _points_interval((-0.021, 0.13))
    '95 % interval −2 to 13'
    """
    low, high = (f"{100 * bound:.0f}".replace("-0", "0").replace("-", "−") for bound in bounds)
    return f"95 % interval {low} to {high}"


def _share_text(share: Share) -> str:
    """Write a share and its interval; return a dash if the group is empty."""
    return f"{number(share.value)} [{interval(share.interval)}]" if share.total else "–"


def main_gaps(run: TableRun) -> tuple[Gap, Gap] | None:
    """Find the widest gap of the plain model, and that of the fair one; of the label asked for, where one was."""
    groups = sum(group is not None for group in run.test_groups)
    labels, measures = run.problem.labels, run.measures
    if run.asked.positive is not None and len(labels.classes) > 2:
        measures = [one for one in measures if one.name.endswith(f" of {labels.positive}")]
    plain = widest_gap(measures, run.asked.fairness, groups, "plain")
    fair = widest_gap(measures, run.asked.fairness, groups, "fair")
    return None if plain is None or fair is None else (plain, fair)


def gaps_sentence(run: TableRun) -> str:
    """Describe the widest gap of each model, with its interval; empty where all groups are too small."""
    gaps = main_gaps(run)
    if gaps is None:
        return ""
    plain, fair = gaps
    first = _gap_text(
        plain.measure, plain.low, plain.high, plain.plain, plain.plain_interval, run.test_groups
    )
    second = _gap_text(fair.measure, fair.low, fair.high, fair.fair, fair.fair_interval, run.test_groups)
    return f"widest gap of the plain model: {first}; of the fair model: {second}"


def _gap_text(
    measure: Measure,
    low: int,
    high: int,
    value: float,
    bounds: tuple[float, float],
    groups: list[str | None],
) -> str:
    """Describe one gap."""
    names = [group_name(groups[place]) for place in (low, high)]
    chance = ", which may be chance" if bounds[0] <= 0 else ""
    share = f"in the share {measure.meaning}, {names[0]} below {names[1]}"
    return f"{points(value)} ({_points_interval(bounds)}{chance}) {share}"


def is_inconclusive(run: TableRun) -> bool:
    """Return whether the data could not tell which labels are wrong."""
    return run.estimate is not None and not run.estimate.credible


def suspects_sentence(run: TableRun) -> str:
    """Say how many labels to look at."""
    count = len(run.suspects["row"])
    if is_inconclusive(run):
        return "which labels are wrong cannot be known"
    if not count:
        return "no label looks wrong"
    return f"{count:,} {'label looks' if count == 1 else 'labels look'} wrong"


def estimate_sentence(estimate: CleanRatioEstimate) -> str:
    """Say how many labels were found to be right, and how the others came about."""
    if not estimate.credible:
        return f"inconclusive: {estimate.credible} Training {estimate.training}."
    low, high = estimate.interval
    if low == high == 1 or (estimate.clean_ratio == 1 and not estimate.aimed):
        most = f"up to {100 * (1 - low):.2g} %" if low < 1 else "none that could be told"
        return f"no wrong labels were found; with 95 % confidence there are {most}."
    kind = "aimed at the clearest rows (how many is then told roughly)" if estimate.aimed else AT_RANDOM
    return (
        f"about {number(estimate.clean_ratio)} of the labels are right (95 % interval {interval((low, high))}), wrong "
        f"ones {kind}."
    )


def is_worse(run: TableRun) -> bool:
    """Return whether the fair model is less accurate and less fair than the plain one, on the test part."""
    return (
        run.collapse is None
        and run.change["accuracy"].value <= -WORTH_TELLING
        and run.change["disparity"].value >= WORTH_TELLING
    )


def headline(run: TableRun) -> str:
    """Say what was measured, in one sentence."""
    plain, fair = run.scores[0], run.scores[-1]
    parts = [f"accuracy {number(plain['accuracy'].value)} → {number(fair['accuracy'].value)}"]
    if is_worse(run):
        disparities = " → ".join(number(score["disparity"].value) for score in (plain, fair))
        parts = [
            f"the fair model is worse in both: {parts[0]}, {ABBREVIATIONS[run.asked.fairness]} disparity {disparities}"
        ]
    return "; ".join(filter(None, [*parts, gaps_sentence(run), suspects_sentence(run)]))
