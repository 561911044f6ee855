"""What can be claimed of a run, and whether its numbers bear it out."""

from __future__ import annotations

from fairsieve.report.number_format import number, percent, points
from fairsieve.selection.fairness import ABBREVIATIONS
from fairsieve.tabular.decision import Status, TableVerdict
from fairsieve.tabular.dropped import DroppedCell, Uneven, most_uneven
from fairsieve.tabular.evaluation import Share
from fairsieve.tabular.report.phrases import gaps_sentence, group_name, interval, is_worse
from fairsieve.tabular.table_run import TableRun

__all__ = [
    "dropping_verdict",
    "guess_warning",
    "label_warning",
    "price_words",
    "run_verdicts",
    "upper",
    "worse_warning",
]

PRICE = 0.01  # of accuracy
MUCH = 0.25  # of a label


def run_verdicts(run: TableRun) -> list[TableVerdict]:
    """Judge accuracy, fairness and dropping; a collapse alone, where there was one."""
    if run.collapse is not None:
        return [
            TableVerdict(
                "collapse",
                "Fair and robust training came to a usable model.",
                "fails",
                f"No: {run.collapse}. The plain model is kept instead, and every number is its own.",
                source="training part",
            )
        ]
    return [_accuracy_verdict(run), _fairness_verdict(run), dropping_verdict(run)]


def _price(run: TableRun) -> float:
    """Return the accuracy that fairness may cost: one point, or what --tolerance grants beyond."""
    return max(PRICE, run.asked.tolerance or 0.0)


def price_words(run: TableRun) -> str:
    """Say how much accuracy fairness may cost."""
    return "one point" if _price(run) == PRICE else points(_price(run))


def _accuracy_verdict(run: TableRun) -> TableVerdict:
    """Judge whether fairness cost more accuracy than it may."""
    plain, fair, change = run.scores[0]["accuracy"], run.scores[-1]["accuracy"], run.change["accuracy"]
    status: Status = "inconclusive"
    if change.interval[0] > -_price(run):
        status = "holds"
    elif change.interval[1] < -_price(run):
        status = "fails"
    return TableVerdict(
        "accuracy",
        f"Accuracy is kept, within {price_words(run)}.",
        status,
        f"{number(plain.value)} → {number(fair.value)}, a change of {number(change.value)} (95 % interval "
        f"{interval(change.interval)}).",
        change.value,
        change.interval,
    )


def _fairness_verdict(run: TableRun) -> TableVerdict:
    """Judge whether the disparity fell by more than chance explains."""
    plain, fair, change = run.scores[0]["disparity"], run.scores[-1]["disparity"], run.change["disparity"]
    status: Status = "inconclusive"
    if change.interval[1] < 0:
        status = "holds"
    elif change.interval[0] > 0:
        status = "fails"
    told = gaps_sentence(run)
    return TableVerdict(
        "fairness",
        "Groups are treated more alike than by the plain model.",
        status,
        f"{ABBREVIATIONS[run.asked.fairness]} disparity {number(plain.value)} → {number(fair.value)}, a change of "
        f"{number(change.value)} (95 % interval {interval(change.interval)}).{f' {upper(told)}.' if told else ''}",
        change.value,
        change.interval,
    )


def dropping_verdict(run: TableRun) -> TableVerdict:
    """Judge whether groups of one label were dropped equally often."""
    found = most_uneven(run.dropped)
    dropped = sum(cell.dropped.hits for cell in run.dropped)
    status: Status = "holds"
    if not dropped:
        evidence = "Nobody was dropped: every row was trained on."
    elif found is None:
        status, evidence = "inconclusive", "The groups are too small to compare."
    else:
        status, evidence = "holds" if found.even_handed else "fails", _dropping_sentence(found)
    return TableVerdict(
        "dropping",
        "Dropping was even-handed between groups.",
        status,
        evidence,
        None if found is None or not dropped else found.difference,
        None if found is None or not dropped else found.interval,
        source="training part",
    )


def _dropping_sentence(found: Uneven) -> str:
    """Describe the least explained difference in dropping."""
    most, least = found.most, found.least
    chance = ", which may be chance" if found.even_handed and found.interval[0] <= 0 else ""
    noise = ""
    if not chance and most.noise is not None and least.noise is not None:
        verb = "explain it" if found.even_handed else "do not explain it"
        noise = (
            f"; estimated wrong labels among them, {percent(most.noise)} and {percent(least.noise)}, {verb}"
        )
    return (
        f"Of those labelled {most.label}, {percent(most.dropped.value)} of {group_name(most.group)} and "
        f"{percent(least.dropped.value)} of {group_name(least.group)} were dropped, {points(found.difference)} apart "
        f"(95 % interval {interval(found.interval)}){chance}{noise}. No other difference stands out more."
    )


def label_warning(cells: list[DroppedCell]) -> str:
    """Warn where much of a label was dropped, and more than of the others; else return an empty text."""
    shares = {
        label: Share(*map(sum, zip(*(cell.dropped for cell in cells if cell.label == label), strict=True)))
        for label in dict.fromkeys(cell.label for cell in cells)
    }
    most = max(shares, key=lambda label: shares[label].value)
    if shares[most].value < MUCH:
        return ""
    others = ", ".join(
        f"{percent(share.value)} of {label}" for label, share in shares.items() if label != most
    )
    return (
        f"Careful: {percent(shares[most].value)} of those labelled {most} were dropped ({others}). If most of those "
        "labels are right, the model learns to give that label too rarely: try a --clean-ratio nearer to 1."
    )


def worse_warning(run: TableRun) -> str:
    """Warn where the fair model is worse in both; else return an empty text."""
    if not is_worse(run):
        return ""
    advice = "more rows" if run.estimate is not None else "--clean-ratio auto, or a higher one"
    return f"Careful: on the test part the plain model is both more accurate and fairer; try {advice}."


def guess_warning(run: TableRun) -> str:
    """Warn where one label for all would be right more often than the kept model; else return an empty text."""
    cells = run.problem.test.cells
    counts = cells.counts.sum(axis=1)
    share, kept = counts.max() / counts.sum(), run.scores[-1]["accuracy"].value
    if (
        kept >= share or not run.asked.threshold.is_default
    ):  # a threshold gives up right predictions on purpose
        return ""
    return (
        f"Careful: to predict {cells.classes[counts.argmax()]} for everyone would be right more often, {number(share)} "
        f"against {number(kept)}; try more --epochs, other columns, or more rows."
    )


def upper(sentence: str) -> str:
    """Begin a sentence with a capital letter."""
    return sentence[:1].upper() + sentence[1:]
