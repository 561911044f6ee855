"""Reasons for and against using a model that was trained on a table.

Each function takes a run and yields reasons; to add one, write a function, name it in :data:`RUN_REASONS`, and word it
in ``templates/decision.j2``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, Literal

from fairsieve.intervals import NORMAL, newcombe
from fairsieve.tabular.decision import Decision, Reason, Status, Step, TableVerdict, decide
from fairsieve.tabular.dropped import drops_by_label, most_uneven
from fairsieve.tabular.evaluation import Gap, GroupRate, Measure, Share, widest_gap
from fairsieve.tabular.reading.columns import note_kind
from fairsieve.tabular.reading.read import is_frame
from fairsieve.tabular.report.review_files import review_step
from fairsieve.tabular.table_run import TableRun
from fairsieve.tabular.words import estimate_facts, group_name

__all__ = ["decide_run", "is_inconclusive", "keeps_plain", "main_gaps", "main_rates"]

PRICE = 0.01  # of accuracy, that fairness may cost
SMALL = 0.05  # a disparity that few would act on
SAME = 0.02  # a change of the disparity that few would act on
LARGE = 0.1  # a gap between two groups that nobody would overlook
MUCH = 0.25  # of a label, that is dropped
USELESS = 0.1  # a model whose rates for two labels differ by less tells little
RARE = 0.05  # a label of fewer of the rows
BETTER = 0.02  # of log loss, by which another kind of model must predict the labels better

Bounds = tuple[float, float]


def decide_run(run: TableRun) -> Decision:
    """Decide whether to use the model that a run made."""
    reasons = [reason for find in RUN_REASONS for reason in find(run)]
    return decide("model", run_verdicts(run), reasons, _facts(run), in_python=is_frame(run.asked.data))


def _facts(run: TableRun) -> dict[str, Any]:
    """Collect what the decision's sentence says: rates of every group, and how often the model is right."""
    found = main_rates(run)
    measure, rates = (None, []) if found is None else found
    return {
        "plain_kept": keeps_plain(run),
        "kind": "" if measure is None else measure.kind,
        "label": "" if measure is None else measure.label,
        "rates": rates,
        "right": (run.scores[0]["accuracy"].value, run.scores[-1]["accuracy"].value),
    }


def keeps_plain(run: TableRun) -> bool:
    """Return whether the kept model is the plain one."""
    return bool(run.trade_off[0].kept)


def is_inconclusive(run: TableRun) -> bool:
    """Return whether the data could not tell which labels are wrong."""
    return run.estimate is not None and not run.estimate.credible


def main_gaps(run: TableRun) -> tuple[Gap, Gap] | None:
    """Find the widest gap of the plain model, and that of the fair one; of the label asked for, where one was."""
    labels, measures = run.problem.labels, run.measures
    if run.asked.positive is not None and len(labels.classes) > 2:
        measures = [one for one in measures if one.label == labels.positive]
    groups = sum(group is not None for group in run.test_groups)
    plain, fair = (widest_gap(measures, run.asked.fairness, groups, model) for model in ("plain", "fair"))
    return None if plain is None or fair is None else (plain, fair)


def main_rates(run: TableRun) -> tuple[Measure, list[GroupRate]] | None:
    """Find the rate in which groups lie farthest apart under the plain model, group by group."""
    gaps = main_gaps(run)
    if gaps is None:
        return None
    measure = gaps[0].measure
    shares = zip(run.test_groups, measure.plain, measure.fair, strict=True)
    return measure, [GroupRate(*one) for one in shares if one[0] is not None and one[1].total]


# ---- Verdicts


def run_verdicts(run: TableRun) -> list[TableVerdict]:
    """Judge accuracy, fairness, dropping and weights; of a plain model, whether a fair one would be better."""
    if keeps_plain(run):
        status: Status = "inconclusive" if run.comparison is None or not run.comparison.believed else "fails"
        facts = {"why": "" if run.comparison is None else str(run.comparison)}
        return [TableVerdict("comparison", status, facts=facts, source="training part")]
    return [_accuracy_verdict(run), _fairness_verdict(run), dropping_verdict(run), *_weight_verdict(run)]


def _price(run: TableRun) -> float:
    """Return the accuracy that fairness may cost: one point, or what was granted beyond."""
    return max(PRICE, run.asked.max_accuracy_loss or 0.0)


def _scores(run: TableRun, name: str) -> dict[str, Any]:
    return {"plain": run.scores[0][name].value, "fair": run.scores[-1][name].value}


def _accuracy_verdict(run: TableRun) -> TableVerdict:
    """Judge whether fairness cost more accuracy than it may."""
    change, price = run.change["accuracy"], _price(run)
    low, high = change.interval
    status: Status = "holds" if low > -price else "fails" if high < -price else "inconclusive"
    facts = {"price": price, **_scores(run, "accuracy")}
    return TableVerdict("accuracy", status, change.value, change.interval, facts)


def _fairness_verdict(run: TableRun) -> TableVerdict:
    """Judge whether the disparity fell by more than chance explains."""
    gaps, change = main_gaps(run), run.change["disparity"]
    if gaps is None:
        return TableVerdict("fairness", "inconclusive", kind="fairness_of_few")
    low, high = change.interval
    status: Status = "holds" if high < 0 else "fails" if low > 0 else "inconclusive"
    told = [
        _gap_facts(run, gap, gap.plain, gap.plain_interval)
        if place == 0
        else _gap_facts(run, gap, gap.fair, gap.fair_interval)
        for place, gap in enumerate(gaps)
    ]
    facts = {"notion": run.asked.fairness.replace("_", " "), "gaps": told, **_scores(run, "disparity")}
    return TableVerdict("fairness", status, change.value, change.interval, facts)


def _gap_facts(run: TableRun, gap: Gap, value: float, bounds: Bounds) -> dict[str, Any]:
    """Collect what is said of a gap between two groups."""
    low, high = (group_name(run.test_groups[place]) for place in (gap.low, gap.high))
    return {"measure": gap.measure, "low": low, "high": high, "value": value, "bounds": bounds}


def dropping_verdict(run: TableRun) -> TableVerdict:
    """Judge whether a group of one label lost more rows than others, and than wrong labels explain.

    It is told, and decides nothing; a warning goes by the weight of a cell. Where labels are corrected by chances,
    each cell loses what the estimate says, and nobody is dropped.
    """
    if not any(cell.dropped.hits for cell in run.dropped):
        acts = run.asked.clean_ratio == "auto" and run.estimate is not None and run.estimate.acts
        doubted = [cell for cell in run.dropped if cell.noise and cell.group is not None]
        corrected = doubted if acts and not keeps_plain(run) else []
        most = max(corrected, key=lambda cell: cell.noise or 0.0, default=None)
        return TableVerdict(
            "dropping", "holds", facts={"most": most}, kind="dropping_nobody", source="training part"
        )
    found = most_uneven(run.dropped)
    if found is None:
        return TableVerdict("dropping", "inconclusive", kind="dropping_of_few", source="training part")
    status: Status = "holds" if found.even_handed else "fails"
    facts = {"uneven": found, "allowed": 1 - run.clean_ratio}
    return TableVerdict("dropping", status, found.difference, found.interval, facts, source="training part")


def _weight_verdict(run: TableRun) -> list[TableVerdict]:
    """Judge whether every label of every group still counts in training; nothing where weights are not known."""
    cells = [cell for cell in run.dropped if cell.weight is not None and cell.group is not None]
    if not cells:
        return []
    least = min(cells, key=lambda cell: cell.weight or 0.0)
    status: Status = "fails" if least.is_ignored else "holds"
    return [TableVerdict("weight", status, least.weight, facts={"least": least}, source="training part")]


# ---- Reasons to doubt that the model tells labels apart


def predicted_labels(run: TableRun, model: Literal["plain", "fair"]) -> dict[str, int]:
    """Count how often a model predicts each label on the test part; labels that it never predicts are left out."""
    labels = run.problem.labels
    shares = {one.label: _pooled(getattr(one, model)) for one in run.measures if one.kind == "selection"}
    found = {label: share.hits for label, share in shares.items()}
    for other in labels.classes:  # of two labels, the rates of one are reported
        found.setdefault(other, next(iter(shares.values())).total - sum(found.values()))
    return {label: count for label, count in found.items() if count}


def _pooled(shares: list[Share]) -> Share:
    """Add up the groups."""
    return Share(sum(share.hits for share in shares), sum(share.total for share in shares))


def _one_label(run: TableRun) -> Iterator[Reason]:
    """Refuse a model that predicts one label for everyone: it is fair and of no use."""
    plain, fair = (predicted_labels(run, model) for model in ("plain", "fair"))
    if len(fair) > 1:
        return
    (label,) = fair
    who = "kept" if keeps_plain(run) else "both" if len(plain) == 1 else "fair"
    others = {name: count for name, count in plain.items() if name != label}
    facts = {"who": who, "label": label, "others": others, "rows": len(run.problem.test)}
    yield Reason("one_label", "do-not-use", facts, (*_threshold_steps(run, label), *_rare_steps(run)))


def _threshold_steps(run: TableRun, label: str) -> tuple[Step, ...]:
    """Find people of a label that is predicted for nobody by another threshold."""
    labels = run.problem.labels
    if len(labels.classes) != 2 or label == labels.positive or not run.asked.threshold.is_default:
        return ()
    counts = run.problem.train.cells.counts.sum(axis=1)
    share = float(counts[labels.classes.index(str(labels.positive))] / counts.sum())
    auc = next((one.fair[-1] for one in run.quality if one.name == "auc"), None)
    facts = {"label": labels.positive, "share": share, "auc": None if auc is None else auc.value}
    return (Step("threshold", facts),)


def _rare_steps(run: TableRun) -> tuple[Step, ...]:
    """Do something about a label that is hardly ever predicted."""
    cells = run.problem.train.cells
    counts = cells.counts.sum(axis=1)
    share = float(counts.min() / counts.sum())
    if share < RARE:
        facts = {"share": share, "count": int(counts.min()), "label": str(cells.classes[counts.argmin()])}
        return (Step("rare_label", facts),)
    other = next(_other_model(run), None)
    return (Step("columns"), *_try_models(run)) if other is None else other.steps


def _try_models(run: TableRun) -> tuple[Step, ...]:
    """Offer other kinds of model, where none were compared."""
    return () if run.asked.model == "auto" else (Step("models"),)


def better_than_chance(run: TableRun) -> dict[str, Any] | None:
    """Compare how often the kept model predicts a label for those who have it, and for the others.

    Of two labels, the true-positive rate less the false-positive rate; of more, the mean true-positive rate less
    that of a guess. None where a label is missing on the test part.
    """
    labels = run.problem.labels
    rates = {
        kind: [_pooled(one.fair) for one in run.measures if one.kind == kind]
        for kind in ("true_positive", "false_positive")
    }
    right, wrong = rates["true_positive"], rates["false_positive"]
    if not all(share.total for share in (*right, *wrong)):
        return None
    if len(labels.classes) == 2:
        found = {"label": labels.positive, "right": right[0].value, "wrong": wrong[0].value}
        return {**found, "several": False, "interval": newcombe(*right[0], *wrong[0])}
    mean, guess = sum(share.value for share in right) / len(right), 1 / len(right)
    smoothed = [(share.hits + 1) / (share.total + 2) for share in right]
    spread = sum(value * (1 - value) / share.total for value, share in zip(smoothed, right, strict=True))
    half = NORMAL * math.sqrt(spread) / len(right)
    bounds = (mean - guess - half, mean - guess + half)
    return {"label": "", "right": mean, "wrong": guess, "several": True, "interval": bounds}


def _chance(run: TableRun) -> Iterator[Reason]:
    """Refuse a model that tells labels apart no better than chance, as far as the test part can say."""
    found = better_than_chance(run)
    if found is None or found["interval"][0] > 0 or len(predicted_labels(run, "fair")) == 1:
        return
    useless = found["interval"][1] < USELESS
    outcome: Any = "do-not-use" if useless else "inconclusive"
    yield Reason("chance", outcome, {"useless": useless, **found}, _rare_steps(run))


def _commonest_label(run: TableRun) -> Iterator[Reason]:
    """Compare the accuracy of the kept model with that of predicting the commonest label for everyone."""
    counts = run.problem.test.cells.counts.sum(axis=1)
    share, kept = float(counts.max() / counts.sum()), run.scores[-1]["accuracy"]
    if kept.value > share or len(predicted_labels(run, "fair")) == 1 or not run.asked.threshold.is_default:
        return
    worse = kept.interval[1] < share
    label = str(run.problem.test.cells.classes[counts.argmax()])
    facts = {
        "label": label,
        "share": share,
        "accuracy": kept.value,
        "interval": kept.interval,
        "worse": worse,
    }
    yield Reason("commonest_label", "do-not-use" if worse else "inconclusive", facts, _rare_steps(run))


def _other_model(run: TableRun) -> Iterator[Reason]:
    """Remark that another kind of model predicts these labels better than a linear one."""
    choice = None if run.estimate is None else run.estimate.predictor
    if run.model_name != "logistic" or choice is None or "linear" not in choice.losses:
        return
    linear, best = choice.losses["linear"], choice.losses[choice.name]
    if linear - best >= BETTER:
        yield Reason(
            "other_model", "use", {"name": choice.name, "best": best, "linear": linear}, _try_models(run)
        )


# ---- Reasons from the verdicts, the groups and the labels


def _plain_kept(run: TableRun) -> Iterator[Reason]:
    """Remark that the plain model is kept; refuse it where robust training came to something certainly worse."""
    if not keeps_plain(run):
        return
    found = run.comparison
    why = "" if found is None else str(found)
    if found is not None and found.has_collapsed:
        yield Reason("collapse", "do-not-use", {"why": why}, (Step("lower_ratio"),))
    else:
        yield Reason("plain_kept", "use", {"why": why}, (Step("name_tolerance"),))


def _notes(run: TableRun) -> Iterator[Reason]:
    """Refuse models that read the answer from a column; doubt rates of too few people."""
    for note in run.notes:
        if note_kind(note) == "leak":
            yield Reason("leak", "do-not-use", {"text": note})
        elif note_kind(note) == "few":
            yield Reason("few", "inconclusive", {"text": note}, (Step("small_groups"),))


def _accuracy(run: TableRun) -> Iterator[Reason]:
    """Doubt or refuse a model that is less accurate than it may be."""
    verdict, rows = _accuracy_verdict(run), len(run.problem.test)
    if verdict.status == "holds" or keeps_plain(run):
        return
    facts = {"price": _price(run), "change": verdict.value, "interval": verdict.interval, "rows": rows}
    if verdict.status == "fails":
        step = Step("plain_is_better", {"measure": "disparity", "value": run.scores[0]["disparity"].value})
        yield Reason("accuracy_lost", "do-not-use", facts, (step,))
    else:
        yield Reason("accuracy_unknown", "inconclusive", facts, _more_rows(verdict, rows))


def _fairness(run: TableRun) -> Iterator[Reason]:
    """Doubt or refuse a model that does not treat groups more alike than the plain one."""
    verdict, rows = _fairness_verdict(run), len(run.problem.test)
    if verdict.status == "holds" or keeps_plain(run):
        return
    plain, bounds = run.scores[0]["disparity"], verdict.interval or (0.0, 0.0)
    facts = {**_scores(run, "disparity"), "change": verdict.value, "interval": bounds, "rows": rows}
    if verdict.status == "fails":
        step = Step("plain_is_better", {"measure": "accuracy", "value": run.scores[0]["accuracy"].value})
        yield Reason("fairness_lost", "do-not-use", facts, (step,))
    elif verdict.value is not None and max(-bounds[0], bounds[1]) <= max(SAME, plain.value / 5):
        yield Reason("hardly_changes", "inconclusive", facts, (Step("plain_is_as_good", {"value": None}),))
    else:
        steps = _more_rows(verdict, rows)
        if 0 < plain.interval[1] < SMALL:
            steps = (Step("plain_is_as_good", {"value": plain.value}),)
        yield Reason("fairness_unknown", "inconclusive", facts, steps)


def _more_rows(verdict: TableVerdict, rows: int) -> tuple[Step, ...]:
    """Measure on more rows: on how many, if the difference is as large as it looks."""
    if verdict.value is None or verdict.interval is None:
        return ()
    half, size = (verdict.interval[1] - verdict.interval[0]) / 2, abs(verdict.value)
    needed = rows * (half / size) ** 2 if 0.01 <= size < half else None
    return (Step("more_rows", {"needed": None if needed is None else float(f"{needed:.2g}")}),)


def _ignored(run: TableRun) -> Iterator[Reason]:
    """Warn of cells that hardly count in training."""
    cells = [cell for cell in run.dropped if cell.is_ignored and cell.group is not None]
    if cells and not keeps_plain(run):
        yield Reason("ignored", "use", {"cells": cells}, (Step("looser"),), warning=True)


def _gap_remains(run: TableRun) -> Iterator[Reason]:
    """Remark that the fair model still treats two groups differently."""
    gaps = main_gaps(run)
    if gaps is None or gaps[1].fair_interval[0] <= 0:
        return
    gap = gaps[1]
    # A large gap that was not shown to shrink, and that wrong labels do not explain.
    large = not keeps_plain(run) and (
        run.change["disparity"].interval[1] >= 0
        and gap.fair_interval[0] > LARGE
        and run.estimate is not None
        and bool(run.estimate.credible)
        and not len(run.suspects["row"])
    )
    steps = (
        () if run.asked.keep_sensitive else (Step("keep_sensitive", {"column": run.problem.groups.title}),)
    )
    facts = {"large": large, "plain": keeps_plain(run), **_gap_facts(run, gap, gap.fair, gap.fair_interval)}
    yield Reason("gap_remains", "do-not-use" if large else "use", facts, steps)


def _suspects(run: TableRun) -> Iterator[Reason]:
    """Remark that labels look wrong, or that nobody knows which are."""
    count = len(run.suspects["row"])
    if is_inconclusive(run):
        assert run.estimate is not None
        yield Reason(
            "unknown_labels", "use", {"why": estimate_facts(run.estimate)["why"]}, (review_step(run.asked),)
        )
    elif count:
        unseen = run.estimate is None or run.estimate.verified is None
        facts = {"count": count, "given": run.estimate is None, "unseen": unseen}
        yield Reason("suspects", "use", facts, (review_step(run.asked),))


def _label_dropped(run: TableRun) -> Iterator[Reason]:
    """Warn that much of one label was dropped, and more than of the others."""
    shares = drops_by_label(run.dropped)
    most = max(shares, key=lambda label: shares[label].value)
    others = {label: share.value for label, share in shares.items() if label != most}
    if shares[most].value >= max(MUCH, SMALL + min(others.values(), default=0.0)):
        facts = {"label": most, "share": shares[most].value, "others": others}
        yield Reason("label_dropped", "use", facts, (Step("higher_ratio"),), warning=True)


RUN_REASONS: list[Callable[[TableRun], Iterator[Reason]]] = [
    _plain_kept,
    _one_label,
    _chance,
    _commonest_label,
    _other_model,
    _notes,
    _accuracy,
    _fairness,
    _gap_remains,
    _suspects,
    _label_dropped,
    _ignored,
]
