"""Choose between the plain model and the fair one, by what is known of both on right labels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from fairsieve.intervals import Score
from fairsieve.label_noise.judgement import rows_needed
from fairsieve.tabular.evaluation import Evaluation, is_useless
from fairsieve.tabular.policy import POLICY
from fairsieve.tabular.settings import TableSettings

Chosen = Literal["use-fair", "keep-plain", "your-call", "cannot-tell"]
Why = Literal[
    "fairer",  # and as accurate, within the price
    "more accurate",  # and no less fair
    "no harm",  # it may be much fairer, is surely not noticeably less fair, and is as accurate
    "trade",  # fairer, and it may cost more than the price
    "other trade",  # more accurate, and perhaps less fair
    "useless",  # it tells nobody apart
    "neither",  # does the plain one
    "worse",  # less accurate or less fair, and better in nothing
    "alike",  # no difference that matters
    "fair enough",  # the plain model has hardly a gap to narrow
    "unknown",
]


@dataclass(frozen=True, kw_only=True)
class Choice:
    """Which of two models to use, and why.

    Attributes
    ----------
    outcome : {"use-fair", "keep-plain", "your-call", "cannot-tell"}
    why : str
    stored : {"plain", "fair"}
        The model that is stored: the plain one, unless the fair one is to be used, or a named tolerance made the call.
    change : dict of Score
        Accuracy and disparity of the fair model less those of the plain one.
    price : float
        The accuracy that fairness may cost.
    rows, checks : int or None
        How many rows, or checked labels, in all would tell; None where they would not, or where it is told.
    """

    outcome: Chosen
    why: Why
    stored: Literal["plain", "fair"]
    change: dict[str, Score]
    price: float
    rows: int | None = None
    checks: int | None = None


def choose_model(found: Evaluation, asked: TableSettings) -> Choice:
    """Choose between the models of a run; the stored model follows from it."""
    change = found.judged.change(0, 1)
    price = max(POLICY.accuracy_price, asked.max_accuracy_loss or 0.0)
    outcome, why = _decide(found, change, price)
    named = asked.tolerance is not None or asked.max_accuracy_loss is not None
    if named and why in ("alike", "fair enough"):  # either will do, and the user has said which
        outcome = "your-call"
    stored: Literal["plain", "fair"] = "plain"
    follows = outcome == "your-call" or (outcome == "cannot-tell" and not _loses(change))
    if outcome == "use-fair" or (named and follows):
        stored = "fair"
    open_ = outcome == "cannot-tell" and found.gaps
    rows, checks = _needed(found, change) if open_ else (None, None)
    return Choice(
        outcome=outcome, why=why, stored=stored, change=change, price=price, rows=rows, checks=checks
    )


def _decide(found: Evaluation, change: dict[str, Score], price: float) -> tuple[Chosen, Why]:
    """Say which model is better, where the intervals do."""
    accuracy, disparity = change["accuracy"].interval, change["disparity"].interval
    fairer = found.judged.more_alike(0, 1).verdict
    small = _small(found)
    if is_useless(found, 1):
        return "keep-plain", "neither" if is_useless(found, 0) else "useless"
    if not found.gaps:  # no two groups have enough people to be compared
        return "cannot-tell", "unknown"
    if fairer == "holds":
        kept = found.judged.keeps_accuracy(price, 0, 1).verdict
        return ("use-fair", "fairer") if kept == "holds" else ("your-call", "trade")
    if accuracy[0] > 0:
        if disparity[1] <= small:
            return "use-fair", "more accurate"
        # surely more accurate by what fairness may cost, and perhaps less fair
        return (
            ("your-call", "other trade")
            if disparity[0] > 0 or accuracy[0] > price
            else ("cannot-tell", "unknown")
        )
    if fairer == "fails" or (accuracy[1] < 0 and disparity[0] > -small):
        return "keep-plain", "worse"
    if -small <= disparity[0] and disparity[1] <= small:
        return "keep-plain", "alike"
    if found.judged.models[0].disparity.interval[1] < POLICY.acceptable_gap:
        return "keep-plain", "fair enough"
    if change["disparity"].value < 0 and disparity[1] <= POLICY.harmless and accuracy[0] >= -price:
        return "use-fair", "no harm"
    return "cannot-tell", "unknown"


def _small(found: Evaluation) -> float:
    """Return the change of the disparity that few would act on."""
    return max(POLICY.small_change, found.judged.models[0].disparity.value / 5)


def _loses(change: dict[str, Score]) -> bool:
    """Return whether a fair model is measured to gain nothing and to lose something: never kept, whatever is named."""
    accuracy, disparity = change["accuracy"].value, change["disparity"].value
    return accuracy <= 0 <= disparity and accuracy != disparity


def _needed(found: Evaluation, change: dict[str, Score]) -> tuple[int | None, int | None]:
    """Compute how many rows, or checked labels, would tell that the fair model is fairer, or that nothing changes."""
    judged, score, small, count = found.judged, change["disparity"], _small(found), len(found.cells)
    rows = [judged.more_alike(0, 1).rows]
    if abs(score.value) < small:  # then the interval has to fit between two changes that do not matter
        given = judged.on_given_labels.change(0, 1)["disparity"]
        ends = [rows_needed(score, end, given, count, judged.basis) for end in (-small, small)]
        rows.append(None if None in ends else max(each for each in ends if each is not None))
    able = [each for each in rows if each is not None and count < each <= POLICY.most_rows]
    return min(able, default=None), judged.checks_to_tell(0, 1)
