"""Reasons for and against using the labels of a table as they are.

Each function takes an audit and yields reasons; to add one, write a function and name it in :data:`AUDIT_REASONS`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from fairsieve.report.number_format import percent
from fairsieve.tabular.decision import Decision, Outcome, Reason, decide
from fairsieve.tabular.label_audit import Audit
from fairsieve.tabular.report.phrases import estimate_sentence
from fairsieve.tabular.report.review_files import review_step
from fairsieve.tabular.report.verdicts import upper

__all__ = ["decide_audit"]

MUCH_WRONG = 0.01  # of the labels
RARE = 0.02  # a label of fewer of the rows

SENTENCES: dict[Outcome, str] = {
    "use": "Nothing speaks against using the labels as they are: {reason}",
    "inconclusive": "Inconclusive: {reason}",
    "do-not-use": "Do not use the labels as they are: {reason}",
}


def decide_audit(audit: Audit) -> Decision:
    """Decide whether the labels of a table can be used as they are."""
    reasons = [reason for find in AUDIT_REASONS for reason in find(audit)]
    return decide(SENTENCES, [], reasons)


def _estimate(audit: Audit) -> Iterator[Reason]:
    """Say whether labels look wrong."""
    estimate = audit.estimate
    text = upper(estimate_sentence(estimate))
    if not estimate.credible:
        why = str(estimate.credible).rstrip(".")
        text = f"Which labels are wrong cannot be known from this table: {why}."
        yield Reason("inconclusive", text, (review_step(audit.asked),))
    elif 1 - estimate.clean_ratio >= MUCH_WRONG:
        count = len(audit.suspects["row"])
        many = "1 label is" if count == 1 else f"{count:,} labels are"
        yield Reason("do-not-use", text, (review_step(audit.asked),))
        yield Reason(
            "use",
            f"{many.capitalize()} more likely wrong than right. fairsieve train may list others: it looks at the rows "
            "that it trains on, and names a label only where its own model would change it.",
            ("Train by fairsieve train, which leaves out or weighs down what is likely wrong.",),
        )
    else:
        yield Reason("use", text)


def _rare_label(audit: Audit) -> Iterator[Reason]:
    """Doubt that no label is wrong where one label is so rare that wrong ones would hardly show."""
    cells = audit.estimate.cells
    counts = cells.counts.sum(axis=1)
    share = float(counts.min() / counts.sum())
    if audit.estimate.credible and share < RARE:
        label = cells.classes[counts.argmin()]
        yield Reason(
            "inconclusive",
            f"Only {percent(share)} of the rows are labelled {label}: wrong labels among them, or rows that should be "
            "among them, hardly show.",
            (review_step(audit.asked),),
        )


AUDIT_REASONS: list[Callable[[Audit], Iterator[Reason]]] = [_estimate, _rare_label]
