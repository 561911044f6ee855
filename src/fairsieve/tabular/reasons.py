"""Reasons for and against using a model that was trained on a table.

Each function takes a run and yields reasons; to add one, write a function and name it in :data:`RUN_REASONS` (or in
:mod:`fairsieve.tabular.use_reasons`, where it doubts that the model tells labels apart).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from fairsieve.report.number_format import number, points
from fairsieve.selection.fairness import ABBREVIATIONS
from fairsieve.tabular.decision import Decision, Outcome, Reason, TableVerdict, decide
from fairsieve.tabular.evaluation import Gap
from fairsieve.tabular.notes import note_kind
from fairsieve.tabular.preparation import few_notes
from fairsieve.tabular.report.phrases import (
    UNSEEN,
    group_name,
    interval,
    is_inconclusive,
    main_gaps,
    points_interval,
    suspects_sentence,
)
from fairsieve.tabular.report.review_files import review_step
from fairsieve.tabular.report.verdicts import label_warning, price_words, run_verdicts, upper
from fairsieve.tabular.table_run import TableRun
from fairsieve.tabular.use_reasons import USE_REASONS

__all__ = ["decide_run"]

SMALL = 0.05  # a disparity that few would act on
SAME = 0.02  # a change of the disparity that few would act on
LARGE = 0.1  # a gap between two groups that nobody would overlook


def decide_run(run: TableRun) -> Decision:
    """Decide whether to use the model that a run made."""
    reasons = [reason for find in RUN_REASONS for reason in find(run)]
    return decide(_sentences(run), run_verdicts(run), reasons)


def _sentences(run: TableRun) -> dict[Outcome, str]:
    """Word each outcome; what speaks for the model has its numbers in the sentence."""
    (plain, fair), change = (run.scores[place]["disparity"] for place in (0, -1)), run.change["disparity"]
    return {
        "use": f"Use the fair model rather than the plain one: {ABBREVIATIONS[run.asked.fairness]} disparity falls "
        f"from {number(plain.value)} to {number(fair.value)} (95 % interval of the change {interval(change.interval)}) "
        "and accuracy is kept.",
        "inconclusive": "Inconclusive: {reason}",
        "do-not-use": "Do not use this model: {reason}",
    }


def _collapse(run: TableRun) -> Iterator[Reason]:
    """Refuse a plain model that took the place of a fair one."""
    if run.collapse is not None:
        yield Reason(
            "do-not-use",
            f"{upper(str(run.collapse))}; the plain model was kept.",
            ("Try a lower --clean-ratio, or more rows.",),
        )


def _leak(run: TableRun) -> Iterator[Reason]:
    """Refuse models that read the answer from a column."""
    for note in run.notes:
        if note_kind(note) == "leak":
            yield Reason("do-not-use", note)


FAILED = {
    "accuracy": "The fair model is less accurate than the plain one by more than {price} ({points}, {interval}).",
    "fairness": "The fair model treats groups less alike than the plain one (disparity {value} higher, 95 % interval "
    "{bounds}).",
    "dropping": "One group lost more of its rows than its wrong labels explain.",
}
UNKNOWN = {
    "accuracy": "Whether accuracy is kept within {price} cannot be told from {rows} test rows.",
    "fairness": "Whether groups are treated more alike than by the plain model cannot be told from {rows} test rows.",
    "dropping": "Whether rows were dropped evenly cannot be told, since groups are small.",
}


def _verdicts(run: TableRun) -> Iterator[Reason]:
    """Turn verdicts that fail, or that nobody can give, into reasons."""
    for verdict in run_verdicts(run):
        if verdict.name not in FAILED or verdict.status == "holds":
            continue
        value, bounds = verdict.value or 0.0, verdict.interval or (0.0, 0.0)
        if verdict.status == "fails":
            lost = (-bounds[1], -bounds[0])
            text = FAILED[verdict.name].format(
                price=price_words(run),
                points=points(value),
                interval=points_interval(lost),
                value=number(value),
                bounds=interval(bounds),
            )
            yield Reason("do-not-use", text, _failed_steps(run, verdict))
        elif _hardly_changes(run, verdict):
            disparities = " → ".join(number(run.scores[place]["disparity"].value) for place in (0, -1))
            yield Reason(
                "inconclusive",
                f"The fair model hardly changes how groups are treated: disparity {disparities} (95 % interval of the "
                f"change {interval(bounds)}).",
                ("The plain model is as good; use the simpler one.",),
            )
        else:
            text = UNKNOWN[verdict.name].format(rows=f"{len(run.problem.test):,}", price=price_words(run))
            yield Reason("inconclusive", text, _unknown_steps(run, verdict))


def _hardly_changes(run: TableRun, verdict: TableVerdict) -> bool:
    """Return whether the disparity changes by so little that measuring on more rows would not matter."""
    if verdict.name != "fairness" or verdict.interval is None:
        return False
    return max(-verdict.interval[0], verdict.interval[1]) <= max(SAME, run.scores[0]["disparity"].value / 5)


def _failed_steps(run: TableRun, verdict: TableVerdict) -> tuple[str, ...]:
    """Say what to do about a verdict that fails."""
    if verdict.name == "dropping":
        return ("Have labels of that group checked before you believe that they are worse.",)
    other = run.scores[0]["disparity" if verdict.name == "accuracy" else "accuracy"]
    return (f"The plain model is better in this; its {_other(verdict.name)} is {number(other.value)}.",)


def _other(name: str) -> str:
    return "disparity" if name == "accuracy" else "accuracy"


def _unknown_steps(run: TableRun, verdict: TableVerdict) -> tuple[str, ...]:
    """Say what to do about a verdict that nobody can give."""
    if verdict.name == "dropping" or verdict.value is None or verdict.interval is None:
        return ()
    disparity = run.scores[0]["disparity"]
    if verdict.name == "fairness" and 0 < disparity.interval[1] < SMALL:
        return (f"The plain model is as good: its disparity is {number(disparity.value)} already.",)
    low, high = verdict.interval
    rows, half, size = len(run.problem.test), (high - low) / 2, abs(verdict.value)
    enough = ""
    if 0.01 <= size < half:
        needed = rows * (half / size) ** 2
        enough = f" (about {float(f'{needed:.2g}'):,.0f} if the difference is as large as it looks)"
    return (f"Measure on more rows{enough}: a larger --test, a --test-file, or more data.",)


def _gap_remains(run: TableRun) -> Iterator[Reason]:
    """Remark that the fair model still treats two groups differently."""
    gaps = main_gaps(run)
    if gaps is None or gaps[1].fair_interval[0] <= 0 or run.collapse is not None:
        return
    gap, names, large = gaps[1], run.test_groups, _is_as_unfair(run, gaps[1])
    steps: tuple[str, ...] = ()
    if not run.asked.keep_sensitive:
        sensitive = run.problem.groups.title
        steps = (
            f"Try --keep-sensitive, where you may use {sensitive}: a model that knows it can even out more.",
        )
    begin = "The fair model treats groups as differently as the plain one" if large else "A gap remains"
    text = (
        f"{begin}: under it {group_name(names[gap.low])} is {points(gap.fair)} below {group_name(names[gap.high])} "
        f"({points_interval(gap.fair_interval)}) in the share {gap.measure.meaning}."
    )
    yield Reason("do-not-use" if large else "use", text, steps)


def _is_as_unfair(run: TableRun, gap: Gap) -> bool:
    """Return whether a large gap remains that was not shown to shrink, and that wrong labels do not explain."""
    if run.change["disparity"].interval[1] < 0 or gap.fair_interval[0] <= LARGE:
        return False
    return run.estimate is not None and bool(run.estimate.credible) and not len(run.suspects["row"])


def _few_people(run: TableRun) -> Iterator[Reason]:
    """Name the groups of which too few are in the test part to say anything."""
    for note in few_notes(run.problem.test):
        step = "Collect more of these groups, merge small ones (--small-groups merge), or set more rows aside (--test)."
        yield Reason("inconclusive", note, (step,))


def _suspects(run: TableRun) -> Iterator[Reason]:
    """Remark that labels look wrong, or that nobody knows which are."""
    if is_inconclusive(run):
        assert run.estimate is not None
        why = str(run.estimate.credible).rstrip(".")
        text = f"Which labels are wrong cannot be known from this table: {why}. All is measured on labels as they are."
        yield Reason("use", text, (review_step(run.asked),))
    elif len(run.suspects["row"]):
        unseen = "" if run.estimate is None or run.estimate.verified else f" {UNSEEN}"
        yield Reason("use", f"{upper(suspects_sentence(run))}.{unseen}", (review_step(run.asked),))


def _label_dropped(run: TableRun) -> Iterator[Reason]:
    """Remark that much of one label was dropped."""
    warning = label_warning(run.dropped)
    if warning:
        yield Reason("use", upper(warning.removeprefix("Careful: ")))


RUN_REASONS: list[Callable[[TableRun], Iterator[Reason]]] = [
    _collapse,
    *USE_REASONS,
    _leak,
    _verdicts,
    _few_people,
    _gap_remains,
    _suspects,
    _label_dropped,
]
