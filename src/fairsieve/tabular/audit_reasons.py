"""Reasons for and against using the labels of a table, or predictions that it has already.

Each function takes an audit and yields reasons, worded in ``templates/decision.j2``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from fairsieve.tabular.decision import Decision, Reason, Status, Step, TableVerdict, decide
from fairsieve.tabular.evaluation import FEW
from fairsieve.tabular.label_review import Audit
from fairsieve.tabular.prediction_audit import PredictionAudit
from fairsieve.tabular.reading.read import is_frame
from fairsieve.tabular.report.review_files import review_step
from fairsieve.tabular.words import estimate_facts, group_name

__all__ = ["decide_audit", "decide_predictions"]

MUCH_WRONG = 0.01  # of the labels
RARE = 0.02  # a label of fewer of the rows
TOLERATED = 0.05  # a difference between groups that few would act on


def decide_audit(audit: Audit) -> Decision:
    """Decide whether the labels of a table can be used as they are."""
    return decide("labels", [], [*_labels(audit), *_rare_label(audit)], in_python=is_frame(audit.asked.data))


def _labels(audit: Audit) -> Iterator[Reason]:
    """Say whether labels look wrong."""
    told, steps = {"it": estimate_facts(audit.estimate)}, (review_step(audit.asked),)
    if not audit.estimate.credible:
        yield Reason("unknown_labels", "inconclusive", {"why": told["it"]["why"]}, steps)
    elif 1 - audit.estimate.clean_ratio >= MUCH_WRONG:
        yield Reason("wrong_labels", "do-not-use", told, steps)
        yield Reason("audit_suspects", "use", {"count": len(audit.suspects["row"])}, (Step("train"),))
    else:
        yield Reason("wrong_labels", "use", told)


def _rare_label(audit: Audit) -> Iterator[Reason]:
    """Doubt that no label is wrong where one label is so rare that wrong ones would hardly show."""
    cells = audit.estimate.cells
    counts = cells.counts.sum(axis=1)
    share = float(counts.min() / counts.sum())
    if audit.estimate.credible and share < RARE:
        facts = {"share": share, "label": str(cells.classes[counts.argmin()])}
        yield Reason("rare_label", "inconclusive", facts, (review_step(audit.asked),))


def decide_predictions(found: PredictionAudit) -> Decision:
    """Decide whether to use predictions that a table has already."""
    verdicts = [_accuracy_verdict(found), _gap_verdict(found)]
    verdicts += [_calibration_verdict(found)] if found.calibration else []
    reasons = [
        *_one_label(found),
        *(reason for verdict in verdicts for reason in _verdict_reason(found, verdict)),
        *_too_few(found),
        *_labels_in_doubt(found),
    ]
    return decide("predictions", verdicts, reasons, in_python=is_frame(found.asked.data))


def _judge(low: float, high: float, limit: float) -> Status:
    """Judge whether something stays below a limit, from its interval."""
    return "holds" if high < limit else "fails" if low > limit else "inconclusive"


def _worst(judged: list[Status]) -> Status:
    """Judge several things at once: one that fails decides, then one that is inconclusive."""
    return "fails" if "fails" in judged else "inconclusive" if "inconclusive" in judged else "holds"


def _verdict(
    name: str, status: Status, value: Any = None, interval: Any = None, **facts: Any
) -> TableVerdict:
    source = "rows with a label and a prediction"
    return TableVerdict(name, status, value, interval, facts, f"predictions_{name}", source)


def _accuracy_verdict(found: PredictionAudit) -> TableVerdict:
    """Judge whether the predictions are right more often than the commonest label for everyone."""
    counts = found.cells.counts.sum(axis=1)
    share, score = float(counts.max() / counts.sum()), found.scores["accuracy"]
    low, high = score.interval
    status: Status = "holds" if low > share else "fails" if high < share else "inconclusive"
    label = str(found.cells.classes[counts.argmax()])
    return _verdict("accuracy", status, score.value, score.interval, share=share, label=label)


def _gap_verdict(found: PredictionAudit) -> TableVerdict:
    """Judge whether all gaps between groups are below five points."""
    gaps = found.gaps()
    if not gaps:
        return _verdict("fairness", "inconclusive", gap=None, low="", high="", count=0)
    status = _worst([_judge(*gap.plain_interval, TOLERATED) for gap in gaps])
    worst = max(gaps, key=lambda gap: gap.plain_interval[0]) if status == "fails" else gaps[0]
    low, high = (group_name(found.cells.groups[place]) for place in (worst.low, worst.high))
    facts = {"gap": worst, "low": low, "high": high, "count": len(gaps)}
    return _verdict("fairness", status, worst.plain, worst.plain_interval, **facts)


def _calibration_verdict(found: PredictionAudit) -> TableVerdict:
    """Judge whether scores mean what they say, in every group."""
    bounds = [one.error.interval for one in found.calibration]
    status = _worst(
        [_judge(max(low, -high, 0.0), max(abs(low), abs(high)), TOLERATED) for low, high in bounds]
    )
    worst = max(found.calibration, key=lambda one: abs(one.error.value))
    facts = {"worst": worst, "label": found.labels.positive}
    return _verdict("calibration", status, worst.error.value, worst.error.interval, **facts)


def _verdict_reason(found: PredictionAudit, verdict: TableVerdict) -> Iterator[Reason]:
    """Turn a verdict that fails, or that nobody can give, into a reason."""
    if verdict.status == "fails":
        yield Reason(f"{verdict.kind}_fails", "do-not-use", {}, (Step(verdict.kind),))
    elif verdict.status == "inconclusive":
        step = Step("more_rows", {"needed": None})
        yield Reason(f"{verdict.kind}_unknown", "inconclusive", {"rows": len(found.cells)}, (step,))


def _one_label(found: PredictionAudit) -> Iterator[Reason]:
    """Refuse predictions that are the same for everyone."""
    if len(found.predicted) == 1:
        facts = {"label": found.predicted[0]}
        yield Reason("predictions_one_label", "do-not-use", facts, (Step("look_at_threshold"),))


def _too_few(found: PredictionAudit) -> Iterator[Reason]:
    """Name the groups of which too few have a label to say anything."""
    cells = found.cells
    for place, group in enumerate(cells.groups[: cells.named_groups]):
        counts = {str(label): int(cells.counts[row, place]) for row, label in enumerate(cells.classes)}
        few = {label: count for label, count in counts.items() if count < FEW}
        if few:
            facts = {"group": group_name(group), "few": few}
            yield Reason("predictions_few", "inconclusive", facts, (Step("small_groups"),))


def _labels_in_doubt(found: PredictionAudit) -> Iterator[Reason]:
    """Remark that everything is measured on labels that may be wrong themselves."""
    audit = found.label_audit
    if not audit.estimate.credible or len(audit.suspects["row"]):
        yield Reason(
            "labels_in_doubt", "use", {"it": estimate_facts(audit.estimate)}, (Step("check_labels"),)
        )
