"""Reasons for and against using a model, or the labels of a table.

Each function takes the result and yields reasons; to add one, write a function and name it in the list.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from fairsieve.report.number_format import number, percent
from fairsieve.tabular.decision import Decision, Outcome, Reason, TableVerdict, decide
from fairsieve.tabular.evaluation import FEW
from fairsieve.tabular.label_audit import Audit
from fairsieve.tabular.report.phrases import estimate_sentence, group_name, is_inconclusive
from fairsieve.tabular.report.verdicts import label_warning, price_words, run_verdicts, upper
from fairsieve.tabular.table_run import TableRun

__all__ = ["decide_audit", "decide_run"]

SMALL = 0.05  # a disparity that few would act on
MUCH_WRONG = 0.01  # of the labels

RUN_SENTENCES: dict[Outcome, str] = {
    "use": "Use the fair model: it treats groups more alike than the plain model, and accuracy is kept.",
    "inconclusive": "Inconclusive: {reason}",
    "do-not-use": "Do not use this model: {reason}",
}
AUDIT_SENTENCES: dict[Outcome, str] = {
    "use": "Use the labels: {reason}",
    "inconclusive": "Inconclusive: {reason}",
    "do-not-use": "Do not use the labels as they are: {reason}",
}


def decide_run(run: TableRun) -> Decision:
    """Decide whether to use the model that a run made."""
    reasons = [reason for find in RUN_REASONS for reason in find(run)]
    return decide(RUN_SENTENCES, run_verdicts(run), reasons)


def decide_audit(audit: Audit) -> Decision:
    """Decide whether the labels of a table can be used as they are."""
    reasons = [reason for find in AUDIT_REASONS for reason in find(audit)]
    return decide(AUDIT_SENTENCES, [], reasons)


def _one_class(run: TableRun) -> Iterator[Reason]:
    """Refuse a model that predicts one label for everyone: it is fair and of no use."""
    classes = {model: _predicted_classes(run, model) for model in ("plain", "fair")}
    single = [model for model, found in classes.items() if len(found) == 1]
    if not single:
        return
    label = classes[single[-1]][0]
    who = {1: f"the {single[0]} model predicts", 2: "both models predict"}[len(single)]
    text = f"{upper(who)} {label} for everyone, so nobody is told apart; a disparity of 0 then means nothing."
    if single == ["plain"]:
        yield Reason("use", f"{text} The fair model does tell people apart.")
        return
    steps = [_one_class_step(run, label)]
    if run.scores[0]["disparity"].value > 0 and "plain" not in single:
        steps = ["The plain model does tell people apart; compare both before you choose."]
    yield Reason("do-not-use", text, tuple(steps))


def _one_class_step(run: TableRun, label: str) -> str:
    """Say how to find people of a label that is predicted for nobody."""
    labels = run.problem.labels
    if len(labels.classes) != 2 or label == labels.positive or not run.asked.threshold.is_default:
        return "Give the models columns that tell the labels apart, or more rows of the rare label."
    counts = run.problem.train.cells.counts.sum(axis=1)
    share = float(counts[labels.classes.index(str(labels.positive))] / counts.sum())
    auc = next((one.fair[-1] for one in run.quality if one.name == "auc"), None)
    ranked = "" if auc is None else f" (the AUC is {number(auc.value)}, where a guess has .500)"
    return (
        f"Predict {labels.positive} from a lower probability on: --threshold balanced, or --threshold "
        f"rate:{share:.2g}, the share that has it{ranked}."
    )


def _plain_kept(run: TableRun) -> Iterator[Reason]:
    """Remark that no other model of the trade-off was chosen."""
    if len(run.trade_off) > 1 and run.trade_off[0].kept:
        text = "The plain model is kept: no other was fairer within the accuracy that fairness may cost."
        yield Reason("use", text, ("Raise --tolerance, if fairness may cost more accuracy.",))


def _predicted_classes(run: TableRun, model: str) -> list[str]:
    """List the classes that a model predicts for anybody on the test part."""
    labels = run.problem.labels
    shares = {
        one.name.partition(" of ")[2] or labels.positive: getattr(one, model)
        for one in run.measures
        if one.name.startswith("selection_rate")
    }
    predicted = [str(name) for name, found in shares.items() if sum(share.hits for share in found)]
    everyone = any(sum(s.hits for s in found) == sum(s.total for s in found) for found in shares.values())
    if len(labels.classes) == 2 and not everyone:
        predicted += [name for name in labels.classes if name != labels.positive]
    return predicted


def _collapse(run: TableRun) -> Iterator[Reason]:
    if run.collapse is not None:
        yield Reason(
            "do-not-use",
            f"Fair and robust training collapsed ({run.collapse}), so the plain model is kept.",
            ("Try a lower --clean-ratio, or more rows.",),
        )


def _leak(run: TableRun) -> Iterator[Reason]:
    for note in run.notes:
        if note.startswith("Careful: column") and "(a leak)" in note:
            yield Reason("do-not-use", upper(note.removeprefix("Careful: ")))


def _no_better_than_a_guess(run: TableRun) -> Iterator[Reason]:
    """Compare the kept model with predicting the commonest label for everyone.

    Who asks for a threshold does not want the most right predictions; then labels count the same.
    """
    if not run.asked.threshold.is_default:
        yield from _no_better_when_balanced(run)
        return
    cells = run.problem.test.cells
    counts = cells.counts.sum(axis=1)
    share, kept = float(counts.max() / counts.sum()), run.scores[-1]["accuracy"]
    if kept.value > share or len(_predicted_classes(run, "fair")) == 1:
        return
    worse = kept.interval[1] < share
    yield Reason(
        "do-not-use" if worse else "inconclusive",
        f"Predicting {cells.classes[counts.argmax()]} for everyone would be right {'more' if worse else 'as'} often: "
        f"{number(share)}, against {number(kept.value)} (95 % interval {number(kept.interval[0])} to "
        f"{number(kept.interval[1])}).",
        ("Give the models columns that tell the labels apart, or more rows.", *_try_model(run)),
    )


def _no_better_when_balanced(run: TableRun) -> Iterator[Reason]:
    """Compare the balanced accuracy of the kept model with that of a guess."""
    found = next((one.fair[-1] for one in run.quality if one.name == "balanced_accuracy"), None)
    if found is None or found.interval[0] > 0.5 or len(_predicted_classes(run, "fair")) == 1:
        return
    yield Reason(
        "do-not-use" if found.interval[1] < 0.5 else "inconclusive",
        f"The model may tell labels apart no better than a guess: its balanced accuracy is {number(found.value)} (95 % "
        f"interval {number(found.interval[0])} to {number(found.interval[1])}), that of a guess .500.",
        ("Give the models columns that tell the labels apart, or more rows.", *_try_model(run)),
    )


def _try_model(run: TableRun) -> tuple[str, ...]:
    """Offer other kinds of model, where none were compared."""
    if run.asked.model == "auto":
        return ()
    return ("Try --model auto, which compares kinds of model on the training part.",)


FAILED = {
    "accuracy": "The fair model is less accurate than the plain one by more than {price}.",
    "fairness": "The fair model treats groups less alike than the plain one.",
    "dropping": "One group lost more of its rows than its wrong labels explain.",
}
UNKNOWN = {
    "accuracy": "Whether accuracy is kept within {price} cannot be told from {rows} test rows.",
    "fairness": "Whether groups are treated more alike than by the plain model cannot be told from {rows} test rows.",
    "dropping": "Whether rows were dropped evenly cannot be told, since groups are small.",
}


def _verdict_reasons(run: TableRun) -> Iterator[Reason]:
    """Turn verdicts that fail, or that nobody can give, into reasons."""
    for verdict in run_verdicts(run):
        if verdict.name not in FAILED or verdict.status == "holds":
            continue
        if verdict.status == "fails":
            yield Reason(
                "do-not-use", FAILED[verdict.name].format(price=price_words(run)), _steps(run, verdict)
            )
        else:
            text = UNKNOWN[verdict.name].format(rows=f"{len(run.problem.test):,}", price=price_words(run))
            yield Reason("inconclusive", text, _steps(run, verdict))


def _steps(run: TableRun, verdict: TableVerdict) -> tuple[str, ...]:
    """Say what to do about a verdict that does not hold."""
    if verdict.status == "inconclusive":
        more = "Measure on more rows: a larger --test, a --test-file, or more data."
        disparity = run.scores[0]["disparity"]
        if verdict.name == "fairness" and disparity.interval[1] < SMALL:
            return (f"The plain model is as good: its disparity is {number(disparity.value)} already.",)
        return (more,)
    if verdict.name == "dropping":
        return ("Look at the rows in suspects.csv before you believe that a group's labels are worse.",)
    return ("The plain model is as good or better.",)


def _few_people(run: TableRun) -> Iterator[Reason]:
    """Name the groups of which too few are in the test part to say anything."""
    cells = run.problem.test.cells
    for place, group in enumerate(cells.groups[: cells.named_groups]):
        few = [
            f"{cells.counts[row, place]} labelled {label}"
            for row, label in enumerate(cells.classes)
            if cells.counts[row, place] < FEW
        ]
        if few:
            yield Reason(
                "inconclusive",
                f"Of {group_name(group)}, the test part has only {' and '.join(few)}, too few to measure.",
                (f"Collect more of {group_name(group)}, or merge small groups.",),
            )


def _labels_unknown(run: TableRun) -> Iterator[Reason]:
    """Remark that nobody knows which labels are wrong; or how many look wrong."""
    if is_inconclusive(run):
        text = "Which labels are wrong cannot be known from this table; everything is measured on labels as they are."
        yield Reason("use", text, ("Have some labels checked by somebody who knows.",))
    elif len(run.suspects["row"]):
        count = len(run.suspects["row"])
        labels = "the label" if count == 1 else f"the first {min(count, 50)} of {count:,} labels"
        yield Reason("use", "Some labels look wrong.", (f"Check {labels} in suspects.csv.",))


def _label_dropped(run: TableRun) -> Iterator[Reason]:
    warning = label_warning(run.dropped)
    if warning:
        yield Reason("use", upper(warning.removeprefix("Careful: ")))


RUN_REASONS: list[Callable[[TableRun], Iterator[Reason]]] = [
    _collapse,
    _one_class,
    _plain_kept,
    _leak,
    _no_better_than_a_guess,
    _verdict_reasons,
    _few_people,
    _labels_unknown,
    _label_dropped,
]


def _audit_labels(audit: Audit) -> Iterator[Reason]:
    """Say whether labels look wrong."""
    estimate = audit.estimate
    text = upper(estimate_sentence(estimate))
    if not estimate.credible:
        yield Reason(
            "inconclusive",
            text.removeprefix("Inconclusive: "),
            ("Have some labels checked by somebody who knows.",),
        )
    elif 1 - estimate.clean_ratio >= MUCH_WRONG:
        count = len(audit.suspects["row"])
        yield Reason(
            "do-not-use",
            text,
            (
                f"Check the labels that are likeliest wrong ({count:,} are more likely wrong than right).",
                f"Train by fairsieve train, which expects about {percent(1 - estimate.clean_ratio)} of them wrong.",
            ),
        )
    else:
        yield Reason("use", text)


AUDIT_REASONS: list[Callable[[Audit], Iterator[Reason]]] = [_audit_labels]
