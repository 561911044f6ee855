"""What can be claimed of a run, and whether its numbers bear it out."""

from __future__ import annotations

from fairsieve.report.number_format import number, percent, points
from fairsieve.selection.fairness import ABBREVIATIONS
from fairsieve.tabular.decision import Status, TableVerdict
from fairsieve.tabular.dropped import NOTICEABLE, DroppedCell, Uneven, most_uneven
from fairsieve.tabular.evaluation import Share
from fairsieve.tabular.report.phrases import gaps_sentence, group_name, interval, points_interval
from fairsieve.tabular.table_run import TableRun

__all__ = ["dropping_verdict", "label_warning", "price_words", "run_verdicts", "upper"]

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
    told, claim = gaps_sentence(run), "Groups are treated more alike than by the plain model."
    if not told:
        return TableVerdict(
            "fairness", claim, "inconclusive", "No two groups have enough people to be compared."
        )
    return TableVerdict(
        "fairness",
        claim,
        status,
        f"{ABBREVIATIONS[run.asked.fairness]} disparity {number(plain.value)} → {number(fair.value)}, a change of "
        f"{number(change.value)} (95 % interval {interval(change.interval)}). {upper(told)}.",
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
    if not chance and most.noise is not None and least.noise is not None and found.difference >= NOTICEABLE:
        shares = f"{percent(most.noise)} and {percent(least.noise)}"
        verb = "explain it" if found.even_handed else f"explain {points(found.expected)} of it"
        noise = f"; estimated wrong labels among them, {shares}, {verb}"
    return (
        f"Of those labelled {most.label}, {percent(most.dropped.value)} of {group_name(most.group)} and "
        f"{percent(least.dropped.value)} of {group_name(least.group)} were dropped, {points(found.difference)} apart "
        f"({points_interval(found.interval)}{chance}){noise}."
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


def upper(sentence: str) -> str:
    """Begin a sentence with a capital letter."""
    return sentence[:1].upper() + sentence[1:]
