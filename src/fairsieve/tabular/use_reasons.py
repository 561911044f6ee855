"""Reasons to doubt that a model of a table tells its labels apart.

Each function takes a run and yields reasons; to add one, write a function and name it in :data:`USE_REASONS`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from fairsieve.report.number_format import number, percent
from fairsieve.tabular.decision import Reason
from fairsieve.tabular.guesses import better_than_chance, predicted_labels
from fairsieve.tabular.report.phrases import interval, points_interval
from fairsieve.tabular.table_run import TableRun

__all__ = ["USE_REASONS"]

USELESS = 0.1  # a model whose rates for two labels differ by less tells little
RARE = 0.05  # a label of fewer of the rows
BETTER = 0.02  # of log loss, by which another kind of model must predict the labels better


def _one_label(run: TableRun) -> Iterator[Reason]:
    """Refuse a model that predicts one label for everyone: it is fair and of no use."""
    plain, fair = (predicted_labels(run, model) for model in ("plain", "fair"))
    if len(fair) > 1:
        return
    (label,), total = fair, len(run.problem.test)
    who = "The fair model predicts"
    others = ""
    if run.collapse is not None:
        who = "The kept model predicts"
    elif len(plain) == 1:
        who = "Both models predict"
    else:
        rest = [f"{name} for {count:,}" for name, count in plain.items() if name != label]
        others = f" Of {total:,}, the plain model predicts {', '.join(rest)}."
    text = f"{who} {label} for everyone on the test part: nobody is told apart, and a disparity of 0 means nothing."
    yield Reason("do-not-use", text + others, (*_threshold_steps(run, label), *_rare_steps(run)))


def _threshold_steps(run: TableRun, label: str) -> tuple[str, ...]:
    """Say how to find people of a label that is predicted for nobody."""
    labels = run.problem.labels
    if len(labels.classes) != 2 or label == labels.positive or not run.asked.threshold.is_default:
        return ()
    counts = run.problem.train.cells.counts.sum(axis=1)
    share = float(counts[labels.classes.index(str(labels.positive))] / counts.sum())
    auc = next((one.fair[-1] for one in run.quality if one.name == "auc"), None)
    ranked = "" if auc is None else f" (the AUC is {number(auc.value)}, where a guess has .500)"
    return (
        f"Predict {labels.positive} from a lower probability on: --threshold balanced, or --threshold "
        f"rate:{share:.2g}, the share that has it{ranked}.",
    )


def _plain_kept(run: TableRun) -> Iterator[Reason]:
    """Remark that no other model of the trade-off was chosen."""
    if len(run.trade_off) > 1 and run.trade_off[0].kept:
        text = "The plain model is kept: no other was fairer within the accuracy that fairness may cost."
        yield Reason("use", text, ("Raise --tolerance, if fairness may cost more accuracy.",))


def _rare_steps(run: TableRun) -> tuple[str, ...]:
    """Say what to do about a label that is hardly ever predicted."""
    cells = run.problem.train.cells
    counts = cells.counts.sum(axis=1)
    rarest, share = str(cells.classes[counts.argmin()]), float(counts.min() / counts.sum())
    if share >= RARE:
        other = next(_other_model(run), None)
        steps = ("Give the models columns that tell the labels apart.", *_try_models(run))
        return steps if other is None else other.next_steps
    return (
        f"Collect more of the rare label: only {percent(share)} of the rows ({counts.min():,}) have {rarest}.",
    )


def _try_models(run: TableRun) -> tuple[str, ...]:
    """Offer other kinds of model, where none were compared."""
    if run.asked.model == "auto":
        return ()
    return ("Try --model auto, which compares kinds of model on the training part.",)


def _chance(run: TableRun) -> Iterator[Reason]:
    """Refuse a model that tells labels apart no better than chance, as far as the test part can say."""
    found = better_than_chance(run)
    if found is None or found.interval[0] > 0 or len(predicted_labels(run, "fair")) == 1:
        return
    useless = found.interval[1] < USELESS
    what = "The model hardly tells" if useless else "It cannot be told whether the model tells"
    yield Reason(
        "do-not-use" if useless else "inconclusive",
        f"{what} the labels apart better than chance: {found.sentence} ({points_interval(found.interval)} points).",
        _rare_steps(run),
    )


def _commonest_label(run: TableRun) -> Iterator[Reason]:
    """Compare the accuracy of the kept model with that of predicting the commonest label for everyone."""
    counts = run.problem.test.cells.counts.sum(axis=1)
    share, kept = float(counts.max() / counts.sum()), run.scores[-1]["accuracy"]
    if kept.value > share or len(predicted_labels(run, "fair")) == 1 or not run.asked.threshold.is_default:
        return
    worse = kept.interval[1] < share
    often = "more often than the model" if worse else "at least as often as the model"
    yield Reason(
        "do-not-use" if worse else "inconclusive",
        f"Predicting {run.problem.test.cells.classes[counts.argmax()]} for everyone is right {often}: {number(share)}, "
        f"against {number(kept.value)} (95 % interval {interval(kept.interval)}).",
        _rare_steps(run),
    )


def _other_model(run: TableRun) -> Iterator[Reason]:
    """Remark that another kind of model predicts these labels better than a linear one."""
    choice = None if run.estimate is None else run.estimate.predictor
    if (
        run.model_name != "logistic"
        or choice is None
        or "linear" not in choice.losses
        or choice.name.startswith("linear")
    ):
        return
    linear, best = choice.losses["linear"], choice.losses[choice.name]
    if linear - best >= BETTER and not choice.name.startswith("linear"):
        yield Reason(
            "use",
            f"A {choice.name} model predicts these labels better than a linear one: log loss {number(best)} against "
            f"{number(linear)}.",
            _try_models(run),
        )


USE_REASONS: list[Callable[[TableRun], Iterator[Reason]]] = [
    _one_label,
    _plain_kept,
    _chance,
    _commonest_label,
    _other_model,
]
