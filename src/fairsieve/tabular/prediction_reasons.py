"""Reasons for and against using predictions that a table has already."""

from __future__ import annotations

from collections.abc import Iterator

from fairsieve.report.number_format import number, percent, points
from fairsieve.tabular.decision import Decision, Outcome, Reason, Status, TableVerdict, decide
from fairsieve.tabular.evaluation import FEW
from fairsieve.tabular.prediction_audit import PredictionAudit
from fairsieve.tabular.report.phrases import estimate_sentence, group_name, interval
from fairsieve.tabular.report.verdicts import upper

__all__ = ["decide_predictions"]

TOLERATED = 0.05  # a difference between groups that few would act on
SOURCE = "rows with a label and a prediction"

SENTENCES: dict[Outcome, str] = {
    "use": "Use these predictions: groups lie within five points of each other, and they beat a guess.",
    "inconclusive": "Inconclusive: {reason}",
    "do-not-use": "Do not use these predictions as they are: {reason}",
}


def decide_predictions(found: PredictionAudit) -> Decision:
    """Decide whether to use predictions."""
    verdicts = [_accuracy_verdict(found), _gap_verdict(found)]
    verdicts += [_calibration_verdict(found)] if found.calibration else []
    reasons = [
        *_one_label(found),
        *(reason for verdict in verdicts for reason in _verdict_reason(found, verdict)),
        *_too_few(found),
        *_labels_in_doubt(found),
    ]
    return decide(SENTENCES, verdicts, reasons)


def _judge(low: float, high: float, limit: float) -> Status:
    """Judge whether something stays below a limit, from its interval."""
    return "holds" if high < limit else "fails" if low > limit else "inconclusive"


def _accuracy_verdict(found: PredictionAudit) -> TableVerdict:
    """Judge whether the predictions are right more often than the commonest label for everyone."""
    counts = found.cells.counts.sum(axis=1)
    share = float(counts.max() / counts.sum())
    score = found.scores["accuracy"]
    low, high = score.interval
    status: Status = "holds" if low > share else "fails" if high < share else "inconclusive"
    return TableVerdict(
        "accuracy",
        "The predictions are right more often than the commonest label for everyone.",
        status,
        f"Accuracy {number(score.value)} (95 % interval {interval(score.interval)}), against {number(share)} for "
        f"{found.cells.classes[counts.argmax()]}.",
        score.value,
        score.interval,
        SOURCE,
    )


def _gap_verdict(found: PredictionAudit) -> TableVerdict:
    """Judge whether all gaps between groups are below five points."""
    claim = "Groups get the same predictions, within five points."
    gaps = found.gaps()
    if not gaps:
        return TableVerdict(
            "fairness", claim, "inconclusive", "All groups are too small to measure.", source=SOURCE
        )
    judged = [_judge(*gap.plain_interval, TOLERATED) for gap in gaps]
    surest = max(gaps, key=lambda gap: gap.plain_interval[0])
    worst = surest if "fails" in judged else gaps[0]
    status: Status = "fails" if "fails" in judged else "holds" if set(judged) == {"holds"} else "inconclusive"
    low, high = (group_name(found.cells.groups[place]) for place in (worst.low, worst.high))
    return TableVerdict(
        "fairness",
        claim,
        status,
        f"The {worst.measure.title} of {low} is {points(worst.plain)} below that of {high} (95 % interval "
        f"{interval(worst.plain_interval)}), the {'surest' if worst is surest else 'widest'} gap of {len(gaps):,}.",
        worst.plain,
        worst.plain_interval,
        SOURCE,
    )


def _calibration_verdict(found: PredictionAudit) -> TableVerdict:
    """Judge whether scores mean what they say, in every group."""
    errors = {group_name(one.group): one.error for one in found.calibration}
    judged = {
        name: _judge(max(low, -high, 0.0), max(abs(low), abs(high)), TOLERATED)
        for name, (low, high) in ((name, error.interval) for name, error in errors.items())
    }
    status: Status = (
        "fails"
        if "fails" in judged.values()
        else "holds"
        if set(judged.values()) == {"holds"}
        else "inconclusive"
    )
    name = max(errors, key=lambda one: abs(errors[one].value))
    group = next(one for one in found.calibration if group_name(one.group) == name)
    return TableVerdict(
        "calibration",
        "Scores mean what they say in every group, within five points.",
        status,
        f"Of {name}, {percent(group.observed.value)} have the label {found.labels.positive} and the mean score says "
        f"{percent(group.predicted)}: {points(errors[name].value)} apart (95 % interval "
        f"{interval(errors[name].interval)}).",
        errors[name].value,
        errors[name].interval,
        SOURCE,
    )


FAILED = {
    "accuracy": (
        "The commonest label for everyone would be right more often.",
        "Find out what the system has learnt.",
    ),
    "fairness": (
        "Groups are predicted differently by more than five points.",
        "Train a model that treats groups more alike: fairsieve train.",
    ),
    "calibration": (
        "A score means different things in different groups.",
        "Calibrate the scores group by group before anybody reads them as probabilities.",
    ),
}
UNKNOWN = {
    "accuracy": "Whether the predictions beat a guess cannot be told from {rows} rows.",
    "fairness": "Whether groups are predicted alike, within five points, cannot be told from {rows} rows.",
    "calibration": "Whether scores mean what they say in every group cannot be told from {rows} rows.",
}


def _verdict_reason(found: PredictionAudit, verdict: TableVerdict) -> Iterator[Reason]:
    """Turn a verdict that fails, or that nobody can give, into a reason."""
    if verdict.status == "fails":
        text, step = FAILED[verdict.name]
        yield Reason("do-not-use", text, (step,))
    elif verdict.status == "inconclusive":
        text = UNKNOWN[verdict.name].format(rows=f"{len(found.cells):,}")
        yield Reason("inconclusive", text, ("Measure on more rows.",))


def _one_label(found: PredictionAudit) -> Iterator[Reason]:
    if len(found.predicted) == 1:
        yield Reason(
            "do-not-use",
            f"Everyone is predicted {found.predicted[0]}, so nobody is told apart; equal rates then mean nothing.",
            ("Look at the system's threshold, or at what it was given.",),
        )


def _too_few(found: PredictionAudit) -> Iterator[Reason]:
    """Name the groups of which too few have a label to say anything."""
    cells = found.cells
    for place, group in enumerate(cells.groups[: cells.named_groups]):
        few = [
            f"{cells.counts[row, place]} labelled {label}"
            for row, label in enumerate(cells.classes)
            if cells.counts[row, place] < FEW
        ]
        if few:
            name = group_name(group)
            yield Reason(
                "inconclusive",
                f"Of {name} there are only {' and '.join(few)}, too few to measure.",
                (f"Collect more of {name}, or merge small groups.",),
            )


def _labels_in_doubt(found: PredictionAudit) -> Iterator[Reason]:
    """Remark that everything is measured on labels that may be wrong themselves."""
    audit = found.label_audit
    steps = ("Have some labels checked (fairsieve review), and correct those that are wrong.",)
    text = upper(estimate_sentence(audit.estimate))
    if not audit.estimate.credible:
        yield Reason("use", f"Which labels are wrong cannot be known. {text}", steps)
    elif len(audit.suspects["row"]):
        yield Reason(
            "use", f"Everything is measured on labels as they are, some of which look wrong: {text}", steps
        )
