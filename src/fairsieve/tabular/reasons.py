"""Reasons for and against using a model that was trained on a table, its labels, or predictions that it has already.

Each function takes a run or an audit and yields reasons; to add one, write a function, name it in the list that
decides, and word it in ``templates/decision.j2``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import permutations, starmap
from typing import Any

import pandas as pd

from fairsieve.selection.cells import Cells
from fairsieve.tabular.decision import Decision, Reason, Status, Step, TableVerdict, decide, group_name
from fairsieve.tabular.evaluation import FEW, Gap, GroupRate, Score, Share, list_gaps
from fairsieve.tabular.label_review import Audit
from fairsieve.tabular.prediction_audit import PredictionAudit
from fairsieve.tabular.preparation import few_notes
from fairsieve.tabular.reading.columns import note_kind
from fairsieve.tabular.report.review_files import review_step
from fairsieve.tabular.table_run import BETTER, DroppedCell, TableRun

PRICE = 0.01  # of accuracy, that fairness may cost
SMALL = 0.05  # a disparity, or a difference between groups, that few would act on
SAME = 0.02  # a change of the disparity that few would act on
MOST = 0.5  # of a cell, that is dropped
LARGE = 0.1  # a gap between two groups that nobody would overlook
USELESS = 0.05  # above a guess; a model that recognises labels no better tells little
RARE = 0.05  # a label of fewer of the rows
HARDLY_THERE = 0.02  # a label of fewer of the rows, among which wrong ones would hardly show
MUCH_WRONG = 0.01  # of the labels
NOTICEABLE = 0.02  # a smaller difference in what is dropped is none worth telling


def main_gaps(run: TableRun) -> tuple[Gap, Gap] | None:
    """Find the widest gap of the plain model, and that of the fair one; of the label asked for, where one was."""
    labels, measures = run.problem.labels, run.measures
    if run.asked.positive is not None and len(labels.classes) > 2:
        measures = [one for one in measures if one.label == labels.positive]
    groups = sum(group is not None for group in run.test_groups)
    gaps = list_gaps(measures, run.asked.fairness, groups, at_once=True)
    if not gaps:
        return None
    return max(gaps, key=lambda gap: gap.plain.value), max(gaps, key=lambda gap: gap.fair.value)


# ---- A model


def decide_run(run: TableRun) -> Decision:
    """Decide whether to use the model that a run made."""
    measure, rates = None, []
    if (gaps := main_gaps(run)) is not None:
        # The rate in which groups lie farthest apart under the plain model, group by group.
        measure = gaps[0].measure
        rows = starmap(GroupRate, zip(run.test_groups, measure.plain, measure.fair, strict=True))
        rates = [one for one in rows if one.group is not None and one.plain.total]
    found = [one for find in (PLAIN if run.keeps_plain else FAIR) for one in find(run)]
    return decide("model", found, {"run": run, "measure": measure, "rates": rates})


def _plain_kept(run: TableRun) -> Iterator[TableVerdict | Reason]:
    """Remark that the plain model is kept; refuse it where robust training came to something certainly worse."""
    status: Status = "inconclusive" if run.comparison is None or not run.comparison.believed else "fails"
    yield TableVerdict("comparison", status, facts={"run": run}, source="training part")
    if run.comparison is not None and run.comparison.has_collapsed:
        yield Reason("collapse", "do-not-use", {"run": run}, (Step("lower_ratio"),))
    else:
        yield Reason("plain_kept", "use", {"run": run}, (Step("name_tolerance"),))


def _accuracy(run: TableRun) -> Iterator[TableVerdict | Reason]:
    """Judge whether fairness cost more accuracy than one point, or than was granted beyond."""
    change, price = run.change["accuracy"], max(PRICE, run.asked.max_accuracy_loss or 0.0)
    low, high = change.interval
    status: Status = "holds" if low > -price else "fails" if high < -price else "inconclusive"
    facts = {"price": price, "run": run}
    yield TableVerdict("accuracy", status, *change, facts)
    if status == "fails":
        step = Step("plain_is_better", {"measure": "disparity", "run": run})
        yield Reason("accuracy_lost", "do-not-use", facts, (step,))
    elif status == "inconclusive":
        yield Reason("accuracy_unknown", "inconclusive", facts, _more_rows(run, "accuracy"))


def _fairness(run: TableRun) -> Iterator[TableVerdict | Reason]:
    """Judge whether the disparity fell by more than chance explains."""
    gaps, change, plain = main_gaps(run), run.change["disparity"], run.scores[0]["disparity"]
    facts, (low, high) = {"run": run}, change.interval
    if gaps is None:
        yield TableVerdict("fairness", "inconclusive", kind="fairness_of_few")
        yield Reason("fairness_unknown", "inconclusive", facts)
        return
    status: Status = "holds" if high < 0 else "fails" if low > 0 else "inconclusive"
    told = [_gap_facts(run, gaps[0], gaps[0].plain), _gap_facts(run, gaps[1], gaps[1].fair)]
    yield TableVerdict("fairness", status, *change, {"run": run, "gaps": told})
    if status == "fails":
        step = Step("plain_is_better", {"measure": "accuracy", "run": run})
        yield Reason("fairness_lost", "do-not-use", facts, (step,))
    elif status == "inconclusive" and max(-low, high) <= max(SAME, plain.value / 5):
        yield Reason("hardly_changes", "inconclusive", facts, (Step("plain_is_as_good", {"value": None}),))
    elif status == "inconclusive":
        as_good = Step("plain_is_as_good", {"value": plain.value})
        steps = (as_good,) if 0 < plain.interval[1] < SMALL else _more_rows(run, "disparity")
        yield Reason("fairness_unknown", "inconclusive", facts, steps)


def _gap_facts(run: TableRun, gap: Gap, score: Score) -> dict[str, Any]:
    """Collect what is said of a gap between two groups."""
    low, high = (group_name(run.test_groups[place]) for place in (gap.low, gap.high))
    return {"measure": gap.measure, "low": low, "high": high, "value": score.value, "bounds": score.interval}


def _more_rows(run: TableRun, name: str) -> tuple[Step, ...]:
    """Rate on more rows: on how many, if the difference is as large as it looks."""
    change, rows = run.change[name], len(run.problem.test)
    half, size = (change.interval[1] - change.interval[0]) / 2, abs(change.value)
    needed = float(f"{rows * (half / size) ** 2:.2g}") if 0.01 <= size < half else None
    return (Step("more_rows", {"needed": needed}),)


def _dropped(run: TableRun) -> Iterator[Reason]:
    """Doubt a model that lost most of a cell for no known reason; warn of a cell that hardly counts."""
    gone = [
        cell
        for cell in run.dropped
        if cell.dropped.total >= FEW
        and cell.dropped.value >= max(MOST, SMALL + (cell.estimated_noise or 0.0))
        and cell.group is not None
    ]
    if gone:
        ways = (Step("higher_ratio"), review_step(run.asked))
        yield Reason("cells_dropped", "inconclusive", {"cells": gone}, ways, warning=True)
    ignored = [cell for cell in run.dropped if cell.is_ignored and cell.group is not None]
    if ignored:
        yield Reason("ignored", "use", {"cells": ignored}, (Step("looser"),), warning=True)


def _most_uneven(cells: list[DroppedCell]) -> dict[str, Any] | None:
    """Find the two groups of one label whose dropping is explained least; of those that are, the farthest apart.

    ``expected`` is the difference that their estimated wrong labels explain; 0 where none were estimated, and where
    the group that was dropped more has fewer of them. None where groups are too small to tell.
    """
    compared = [cell for cell in cells if cell.group is not None and cell.dropped.total >= FEW]
    found = []
    for most, least in permutations(compared, 2):
        if most.label == least.label:
            difference = most.dropped.less(least.dropped)
            expected = max((most.estimated_noise or 0.0) - (least.estimated_noise or 0.0), 0.0)
            even = difference.value - expected < NOTICEABLE or difference.interval[0] <= expected
            unexplained = difference.value - (0.0 if even else expected)
            uneven = {"most": most, "least": least, "difference": difference, "expected": expected}
            found.append((not even, unexplained, uneven | {"even_handed": even}))
    return max(found, key=lambda one: one[:2])[2] if found else None


def dropping_verdict(run: TableRun) -> TableVerdict:
    """Judge whether a group of one label lost more rows than others, and than wrong labels explain.

    It is told, and decides nothing; what decides is how much of a cell is gone. Where labels are corrected by chances,
    each cell loses what the estimate says, and nobody is dropped.
    """
    source = "training part"
    if not any(cell.dropped.hits for cell in run.dropped):
        acts = run.asked.clean_ratio == "auto" and run.estimate is not None and run.estimate.acts
        doubted = [cell for cell in run.dropped if cell.estimated_noise and cell.group is not None]
        corrected = doubted if acts and not run.keeps_plain else []
        named = corrected if run.estimate is not None and run.estimate.names_cells else []
        most = max(named, key=lambda cell: cell.estimated_noise or 0.0, default=None)
        nobody = {"most": most, "corrected": bool(corrected)}
        return TableVerdict("dropping", "holds", None, None, nobody, "dropping_nobody", source)
    found = _most_uneven(run.dropped)
    if found is None:
        return TableVerdict("dropping", "inconclusive", kind="dropping_of_few", source=source)
    status: Status = "holds" if found["even_handed"] else "fails"
    facts, (value, bounds) = {"uneven": found, "allowed": 1 - run.clean_ratio}, found["difference"]
    return TableVerdict("dropping", status, value, bounds, facts, source=source)


def _judge_dropping(run: TableRun) -> Iterator[TableVerdict]:
    """Judge whether a group lost more rows than wrong labels explain, and whether all still count, as far as known."""
    yield dropping_verdict(run)
    cells = [cell for cell in run.dropped if cell.effective_weight is not None and cell.group is not None]
    if cells:
        least = min(cells, key=lambda cell: cell.effective_weight or 0.0)
        status: Status = "fails" if least.is_ignored else "holds"
        facts = {"least": least}
        yield TableVerdict("weight", status, least.effective_weight, facts=facts, source="training part")


def _one_label(run: TableRun) -> Iterator[Reason]:
    """Refuse a model that predicts one label for everyone: it is fair and of no use. Few rows tell nothing."""
    plain, fair = run.predicted
    if len(fair) > 1:
        return
    (label,) = fair
    facts = {"run": run, "label": label, "plain": plain}
    if Share(0, len(run.problem.test)).interval[1] > RARE:
        yield Reason("one_label_of_few", "inconclusive", facts, (Step("more_rows", {"needed": None}),))
        return
    yield Reason("one_label", "do-not-use", facts, (*_threshold_steps(run, label), *_rare_steps(run)))


def _threshold_steps(run: TableRun, label: str) -> Iterator[Step]:
    """Find people of a label that is predicted for nobody by another threshold."""
    labels = run.problem.labels
    if len(labels.classes) == 2 and label != labels.positive and run.asked.threshold.is_default:
        share = float(_label_shares(run.problem.train.cells)[labels.positive])
        auc = next((one.fair[-1] for one in run.quality if one.name == "auc"), None)
        facts = {"label": labels.positive, "share": share, "auc": None if auc is None else auc.value}
        yield Step("threshold", facts)


def _rare_steps(run: TableRun) -> tuple[Step, ...]:
    """Do something about a label that is hardly ever predicted."""
    cells = run.problem.train.cells
    shares, counts = _label_shares(cells), cells.counts.sum(axis=1)
    if shares.min() < RARE:
        facts = {"share": shares.min(), "count": int(counts.min()), "label": shares.idxmin()}
        return (Step("rare_label", facts),)
    other = next(_other_model(run), None)
    return (Step("columns"), *_try_models(run)) if other is None else other.steps


def _label_shares(cells: Cells) -> pd.Series:
    """Count what share of the rows has each label."""
    counts = cells.counts.sum(axis=1)
    return pd.Series(counts / counts.sum(), list(map(str, cells.classes)))


def _try_models(run: TableRun) -> tuple[Step, ...]:
    """Offer other kinds of model, where none were compared."""
    return () if run.asked.model == "auto" else (Step("models"),)


def _chance(run: TableRun) -> Iterator[Reason]:
    """Refuse a model that recognises labels no better than a guess, as far as the test part can say."""
    found, guess = run.quality[-1].fair[-1], 1 / len(run.problem.labels.classes)  # balanced accuracy
    if found is None or found.interval[0] > guess or len(run.predicted[1]) == 1:
        return
    useless = found.interval[1] < guess + USELESS
    facts = {"useless": useless, "found": found, "guess": guess}
    yield Reason("chance", "do-not-use" if useless else "inconclusive", facts, _rare_steps(run))


def _commonest_label(run: TableRun) -> Iterator[Reason]:
    """Compare the accuracy of the kept model with that of predicting the commonest label for everyone."""
    shares = _label_shares(run.problem.test.cells)
    label, share = shares.idxmax(), float(shares.max())
    kept = run.scores[-1]["accuracy"]
    if kept.value > share or len(run.predicted[1]) == 1 or not run.asked.threshold.is_default:
        return
    worse = kept.interval[1] < share and len(run.problem.test) >= FEW
    facts = {"label": label, "share": share, "accuracy": kept, "worse": worse}
    yield Reason("commonest_label", "do-not-use" if worse else "inconclusive", facts, _rare_steps(run))


def _other_model(run: TableRun) -> Iterator[Reason]:
    """Remark that another kind of model predicts these labels better than a linear one."""
    choice = None if run.estimate is None else run.estimate.predictor
    if run.model_name != "logistic" or choice is None or "linear" not in choice.losses:
        return
    linear, best = choice.losses["linear"], choice.losses[choice.name]
    if linear - best >= BETTER:
        facts = {"name": choice.name, "best": best, "linear": linear}
        yield Reason("other_model", "use", facts, _try_models(run))


def _notes(run: TableRun) -> Iterator[Reason]:
    """Refuse models that read the answer from a column; doubt rates of too few people."""
    for note in run.notes:
        if note_kind(note) == "leak":
            yield Reason("leak", "do-not-use", {"text": note}, (Step("leak"),))
        elif note_kind(note) == "few":
            yield Reason("few", "inconclusive", {"text": note}, (Step("small_groups"),))


def _gap_remains(run: TableRun) -> Iterator[Reason]:
    """Remark that the fair model still treats two groups differently."""
    gaps = main_gaps(run)
    if gaps is None or gaps[1].fair.interval[0] <= 0:
        return
    gap = gaps[1]
    # A large gap that was not shown to shrink, and that wrong labels do not explain.
    large = (
        not run.keeps_plain
        and run.change["disparity"].interval[1] >= 0
        and gap.fair.interval[0] > LARGE
        and run.estimate is not None
        and bool(run.estimate.credible)
        and not len(run.suspects)
    )
    steps = [] if run.asked.keep_sensitive else [Step("keep_sensitive", {"run": run})]
    facts = {"large": large, "run": run, **_gap_facts(run, gap, gap.fair)}
    yield Reason("gap_remains", "do-not-use" if large else "use", facts, tuple(steps))


def _suspects(run: TableRun) -> Iterator[Reason]:
    """Remark that labels look wrong, or that nobody knows which are."""
    steps = (review_step(run.asked),)
    if run.is_inconclusive and run.estimate is not None:
        yield Reason("unknown_labels", "use", {"it": run.estimate}, steps)
    elif len(run.suspects):
        yield Reason("suspects", "use", {"run": run}, steps)


PLAIN: list[Callable[[TableRun], Iterator[TableVerdict | Reason]]] = [
    _plain_kept,
    _one_label,
    _chance,
    _commonest_label,
    _other_model,
    _notes,
    _gap_remains,
    _suspects,
]
FAIR = [_dropped, _accuracy, _fairness, _judge_dropping, *PLAIN[1:]]


# ---- Labels


def decide_audit(audit: Audit) -> Decision:
    """Decide whether the labels of a table can be used as they are."""
    return decide("labels", _labels(audit))


def _labels(audit: Audit) -> Iterator[Reason]:
    """Say whether labels look wrong; doubt it where one label is so rare that wrong ones would hardly show."""
    estimate, steps = audit.estimate, (review_step(audit.asked),)
    told = {"it": estimate}
    if not estimate.credible:
        yield Reason("unknown_labels", "inconclusive", told, steps)
        return
    if round(estimate.wrong.mean(), 3) >= MUCH_WRONG:  # the share in the sentence, as it is written
        yield Reason("wrong_labels", "do-not-use", told, steps)
        yield Reason("audit_suspects", "use", {"count": len(audit.suspects)}, (Step("train"),))
    else:
        yield Reason("wrong_labels", "use", told)
    shares = _label_shares(estimate.cells)
    if shares.min() < HARDLY_THERE:
        facts = {"share": shares.min(), "label": shares.idxmin()}
        yield Reason("rare_label", "inconclusive", facts, steps)


# ---- Predictions


def decide_predictions(found: PredictionAudit) -> Decision:
    """Decide whether to use predictions that a table has already."""
    verdicts = [_beats_a_guess(found), _gaps_verdict(found), *_calibration_verdict(found)]
    return decide("predictions", [*verdicts, *_prediction_reasons(found, verdicts)])


def _judge(bounds: list[tuple[float, float]]) -> Status:
    """Judge whether everything stays below five points: what fails decides, then what is inconclusive."""
    if any(low > SMALL for low, _ in bounds):
        return "fails"
    return "inconclusive" if any(high >= SMALL for _, high in bounds) else "holds"


def _verdict(name: str, status: Status, score: Score | None, **facts: Any) -> TableVerdict:
    value, interval = (None, None) if score is None else score
    source = "rows with a label and a prediction"
    return TableVerdict(name, status, value, interval, facts, f"predictions_{name}", source)


def _beats_a_guess(found: PredictionAudit) -> TableVerdict:
    """Judge whether the predictions are right more often than the commonest label for everyone."""
    shares = _label_shares(found.cells)
    label, share = shares.idxmax(), float(shares.max())
    low, high = found.scores["accuracy"].interval
    status: Status = "holds" if low > share else "fails" if high < share else "inconclusive"
    return _verdict("accuracy", status, found.scores["accuracy"], share=share, label=label)


def _gaps_verdict(found: PredictionAudit) -> TableVerdict:
    """Judge whether all gaps between groups are below five points."""
    gaps = found.gaps()
    if not gaps:
        return _verdict("fairness", "inconclusive", None, gap=None, low="", high="", count=0)
    status = _judge([gap.plain.interval for gap in gaps])
    worst = max(gaps, key=lambda gap: gap.plain.interval[0]) if status == "fails" else gaps[0]
    low, high = (group_name(found.cells.groups[place]) for place in (worst.low, worst.high))
    return _verdict("fairness", status, worst.plain, gap=worst, low=low, high=high, count=len(gaps))


def _calibration_verdict(found: PredictionAudit) -> Iterator[TableVerdict]:
    """Judge whether scores mean what they say, in every group."""
    if found.calibration:
        bounds = [one.error.interval for one in found.calibration]
        status = _judge([(max(low, -high, 0.0), max(abs(low), abs(high))) for low, high in bounds])
        worst = max(found.calibration, key=lambda one: abs(one.error.value))
        yield _verdict("calibration", status, worst.error, worst=worst, label=found.labels.positive)


def _prediction_reasons(found: PredictionAudit, verdicts: list[TableVerdict]) -> Iterator[Reason]:
    """Turn verdicts into reasons, name groups of too few people, and doubt the labels themselves."""
    if len(found.predicted) == 1:
        facts: dict[str, Any] = {"label": next(iter(found.predicted))}
        yield Reason("predictions_one_label", "do-not-use", facts, (Step("look_at_threshold"),))
    for verdict in verdicts:
        if verdict.status == "fails":
            yield Reason(f"{verdict.kind}_fails", "do-not-use", {}, (Step(verdict.kind),))
        elif verdict.status == "inconclusive":
            step = Step("more_rows", {"needed": None})
            yield Reason(f"{verdict.kind}_unknown", "inconclusive", {"rows": len(found.cells)}, (step,))
    for note in few_notes(found.cells):
        yield Reason("few", "inconclusive", {"text": note}, (Step("small_groups"),))
    if not found.estimate.credible or len(found.suspects):
        yield Reason("labels_in_doubt", "use", {"it": found.estimate}, (Step("check_labels"),))
