"""Train the models of a table, measure them on rows that they did not see, and choose one."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.pipeline import Pipeline

from fairsieve.errors import installed_versions
from fairsieve.label_noise.estimate import CleanRatioEstimate, estimate_clean_ratio
from fairsieve.label_noise.judgement import ModelJudgement, judge
from fairsieve.metrics import Score
from fairsieve.progress import Report
from fairsieve.selection.cells import Integers
from fairsieve.tabular.answers import describe_answers
from fairsieve.tabular.evaluation import Choice, Evaluation, ModelOutput, Share, choose_model, evaluate
from fairsieve.tabular.models import PathPoint, TrainedModels, fit_models, predict, record_warnings
from fairsieve.tabular.policy import POLICY
from fairsieve.tabular.preparation import TablePart, TableProblem, deal_folds, named_estimate, read_problem
from fairsieve.tabular.reading.columns import InputTable, Problems
from fairsieve.tabular.reading.encoding import (
    Preparation,
    describe_features,
    feature_values,
    find_formats,
    notes_on_new,
)
from fairsieve.tabular.settings import TableSettings

VERSIONS = ("fairsieve", "numpy", "pandas", "scikit-learn", "skops", "torch", "lightgbm")
MOST_POINTS = 6  # of the trade-off, beside the two models


class TradeOffPoint(NamedTuple):
    """A model of the trade-off, measured on rows that it did not see.

    Attributes
    ----------
    title : str
        Such as "plain model" or "tolerance .050".
    threshold : float or None
    accuracy, disparity : Score
    """

    title: str
    threshold: float | None
    accuracy: Score
    disparity: Score


@dataclass(frozen=True)
class DroppedCell:
    """The people of one label in one group (None: without a group), as the fair model was trained.

    Attributes
    ----------
    label, group : str
    dropped : Share
        Those left out, of all.
    suspects : int
        Those whose label looks wrong.
    estimated_noise : float or None
        Estimated share of wrong labels, where it was estimated.
    effective_weight : float or None
        The cell's share of the training weight, divided by its share of the rows.
    """

    label: str
    group: str | None
    dropped: Share
    suspects: int
    estimated_noise: float | None
    effective_weight: float | None = None

    @property
    def is_ignored(self) -> bool:
        """Whether the cell hardly counts in training."""
        return self.effective_weight is not None and self.effective_weight < POLICY.ignored


class Measured(NamedTuple):
    """Rows that were measured on, and what models that did not see them say.

    Attributes
    ----------
    part : TablePart
    folds : integer array
        The fold of each row of the training part, −1 where it was only learnt from; empty where rows were set aside.
    outputs : list of ModelOutput
        Of the plain model, of the fair one, and of those of the trade-off.
    """

    part: TablePart
    folds: Integers
    outputs: list[ModelOutput]


class WithSensitive(NamedTuple):
    """What learning from the sensitive columns too would give, on a part of the rows, beside the fair model there."""

    rows: int
    fair: tuple[Score, Score]  # accuracy and disparity
    both: tuple[Score, Score]


@dataclass(frozen=True, eq=False, kw_only=True)
class TableRun:
    """The result of training on a table.

    Attributes
    ----------
    problem : TableProblem
        The table, in its roles.
    trained : TrainedModels
        On all rows, or on those that were not set aside.
    measured : Measured
    evaluation : Evaluation
        Of the plain and of the fair model.
    choice : Choice
        Which of them to use, and which is stored.
    trade_off : list of TradeOffPoint
        The plain model, the fair one, and others on the way.
    with_sensitive : WithSensitive or None
        Where weights do not reach the tolerance, and the sensitive columns were not learnt from.
    estimate : CleanRatioEstimate or None
        What training knows of the labels; None where a clean ratio was given.
    suspects : DataFrame
        The training rows whose labels look wrong, the highest loss first.
    suspects_table : InputTable
        The table that these rows are in.
    dropped : list of DroppedCell
    notes : list of str
        What was done to the table, and what training warned of.
    verified : dict or None
        What answers of people who checked labels say.
    versions : dict
    seconds : float
    """

    problem: TableProblem
    trained: TrainedModels
    measured: Measured
    evaluation: Evaluation
    choice: Choice
    trade_off: list[TradeOffPoint]
    with_sensitive: WithSensitive | None
    estimate: CleanRatioEstimate | None
    suspects: pd.DataFrame
    suspects_table: InputTable
    dropped: list[DroppedCell]
    notes: list[str]
    versions: dict[str, str]
    verified: dict[str, Any] | None = None
    seconds: float = 0.0

    @property
    def asked(self) -> TableSettings:
        """What was asked for."""
        return self.problem.asked

    @property
    def stored(self) -> PathPoint:
        """The model that is stored."""
        return self.trained.fair if self.choice.stored == "fair" else self.trained.plain

    @property
    def model(self) -> Pipeline:
        """The stored model, a pipeline of scikit-learn's."""
        return self.stored.model

    @property
    def place(self) -> int:
        """The place of the stored model in everything that has two: 0 for the plain one, 1 for the fair one."""
        return int(self.choice.stored == "fair")

    @property
    def is_inconclusive(self) -> bool:
        """Whether the data could not tell which labels are wrong."""
        return self.estimate is not None and not self.estimate.credible


def train_table(asked: TableSettings, report: Report) -> TableRun:
    """Train a plain and a fair model on a table, measure both on rows that they did not see, and choose one.

    Nothing is written; :func:`fairsieve.tabular.run_folder.write_run` does that.

    Parameters
    ----------
    asked : TableSettings
    report : callable
        Called with what begins.
    """
    started = time.perf_counter()
    report("reading the table")
    problem = read_problem(asked)
    report("training both models")
    trained = fit_models(problem, problem.train)
    estimate, copies = trained.estimator.estimate_, problem.whole.find_copies()
    points = [trained.plain, trained.fair, *_trade_off_points(trained)]
    if len(problem.test):
        measured = Measured(problem.test, np.zeros(0, np.int64), predict(points, problem.test))
    else:
        measured = cross_fit(problem, copies, [point.gap for point in points[2:]], report)
    report("measuring")
    known = _known_labels(problem, estimate, measured.part)
    if copies is not None:
        inside = np.searchsorted(problem.whole.rows, measured.part.rows)
        copies = copies[inside] if asked.test_file is None else None
    labels, cells = problem.labels, measured.part.cells
    evaluation = evaluate(
        cells,
        dict(zip(("plain", "fair"), measured.outputs, strict=False)),
        labels,
        asked.fairness,
        estimate=known,
        copies=copies,
        seed=asked.seed,
        about=asked.positive if len(labels.classes) > 2 else None,
        likeliest=asked.threshold.is_default,
    )
    settings: dict[str, Any] = {"positive": labels.positive_code, "seed": asked.seed}
    models = [*evaluation.judged.models]
    if len(points) > 2:
        others = [output.codes for output in measured.outputs[2:]]
        models += judge(cells, others, asked.fairness, estimate=known, **settings).models
    doubted = suspects = problem.train.named_suspects(trained.estimator.suspects())
    listed, more = problem.table, list[str]()
    if problem.parts is not None and trained.rows is not None:
        report("listing the labels to check")
        suspects, listed, more = problem.parts.strongest(trained.rows)
    prepared = trained.plain.model["prepare"]  # the page of a run names nobody
    new = notes_on_new(measured.part.values, prepared, quoted=False) if asked.test_file is not None else []
    named, told = None if estimate is None else named_estimate(estimate, problem.train), None
    if asked.verified:
        assert named is not None  # verified labels need clean_ratio="auto"
        told, sentences = describe_answers(problem, named)
        more = [*sentences, *more]
    return TableRun(
        problem=problem,
        trained=trained,
        measured=measured,
        evaluation=evaluation,
        choice=choose_model(evaluation, asked),
        trade_off=_describe_trade_off(points, models),
        with_sensitive=_try_sensitive(problem, trained, measured, known, report),
        estimate=named,
        suspects=suspects,
        suspects_table=listed,
        dropped=_dropped_cells(problem.train, trained, doubted),
        notes=[*more, *problem.notes, *new, *trained.notes],
        versions=installed_versions(VERSIONS),
        verified=told,
        seconds=time.perf_counter() - started,  # the last that is computed
    )


def cross_fit(
    problem: TableProblem, copies: Integers | None, gaps: Sequence[float], report: Report
) -> Measured:
    """Predict every row by models that did not see it: encoding, cleaning and every choice are made in each fold anew.

    Of a table of very many rows, as many folds are fitted as give enough rows to measure on; of one in parts, the rows
    that are held out are the only fold.

    Parameters
    ----------
    copies : integer array or None
        Equal rows have one number, and go to one fold.
    gaps : sequence of float
        The models of the trade-off, by the tolerances that choose them.
    """
    part, parts = problem.train, problem.parts
    if parts is not None:
        folds, count = np.where(parts.held(part.rows), 0, -1), 1
        problem = replace(problem, parts=parts.held_out())
    else:
        folds = deal_folds(part.cells, POLICY.folds, copies, problem.asked.seed)
        count = int(np.clip(-(-POLICY.measured * POLICY.folds // max(len(part), 1)), 1, POLICY.folds))
        folds[folds >= count] = -1
    outputs: list[list[ModelOutput]] = []
    for fold in range(count):
        report(f"fold {fold + 1} of {count}: training both models without it")
        fitted = fit_models(problem, part.take(np.flatnonzero(folds != fold)))
        points = [fitted.plain, fitted.fair, *map(fitted.within, gaps)]
        outputs.append(predict(points, part.take(np.flatnonzero(folds == fold))))
    # By fold, and within one in their order; back into the order of the rows.
    order = np.argsort(np.argsort(folds, kind="stable")[np.count_nonzero(folds < 0) :], kind="stable")
    joined = [
        ModelOutput(*(np.concatenate(parts)[order] for parts in zip(*of_folds, strict=True)))
        for of_folds in zip(*outputs, strict=True)
    ]
    return Measured(part.take(np.flatnonzero(folds >= 0)), folds, joined)


def _trade_off_points(trained: TrainedModels) -> list[PathPoint]:
    """Select a few models between the most accurate and the fairest, at different gaps."""
    ordered = sorted(trained.points, key=lambda point: -point.gap)
    best: list[PathPoint] = []
    for point in ordered:  # each is the most accurate of those with no wider a gap
        chosen = trained.within(point.gap)
        if chosen is not trained.fair and chosen not in best:
            best.append(chosen)
    step = max(len(best) / MOST_POINTS, 1.0)
    return [best[int(step * place)] for place in range(min(len(best), MOST_POINTS))]


def _known_labels(
    problem: TableProblem, estimate: CleanRatioEstimate | None, part: TablePart
) -> CleanRatioEstimate | None:
    """Return what is known of the labels of the rows that are measured on; None where they are taken as right."""
    if problem.asked.test_file is not None:
        return None
    if estimate is None or len(problem.train) < len(problem.whole):
        whole = problem.whole
        with record_warnings(whole):  # training has given the same
            numbers = Preparation().fit(problem.train.values).transform(whole.values)
            estimate = estimate_clean_ratio(
                numbers, whole.label_codes, random_state=problem.asked.seed, **whole.facts
            )
    return estimate.take(np.searchsorted(problem.whole.rows, part.rows))


def _describe_trade_off(points: Sequence[PathPoint], models: Sequence[ModelJudgement]) -> list[TradeOffPoint]:
    """Put the models of the trade-off beside what they are worth."""
    titles = ["plain model", "fair model", *(f"gap {point.gap:.3f} in training" for point in points[2:])]
    rows = zip(titles, points, models, strict=True)
    return [TradeOffPoint(name, one.threshold, model.accuracy, model.disparity) for name, one, model in rows]


def _try_sensitive(
    problem: TableProblem,
    trained: TrainedModels,
    measured: Measured,
    known: CleanRatioEstimate | None,
    report: Report,
) -> WithSensitive | None:
    """Fit once more with the sensitive columns, where the tolerance is not reached without them.

    It is measured on the first fold, or on the rows set aside, where the fair model is measured beside it.
    """
    asked, estimator = problem.asked, trained.estimator
    if problem.parts is not None:  # it would read all rows once more
        return None
    if asked.keep_sensitive or trained.fair.gap <= estimator.tolerance_ or asked.test_file is not None:
        return None
    report("training with the sensitive columns too")
    problems = Problems()
    features = describe_features(problem.table, replace(asked, keep_sensitive=True), problems)
    if problems.found:  # a column that groups can be made of, but nothing be learnt from
        return None
    values = feature_values(problem.table, find_formats(features))
    wider = [replace(part, values=values.loc[part.rows]) for part in (problem.train, measured.part)]
    rows = np.arange(len(measured.part))
    learnt = wider[0]
    if len(measured.folds):
        rows = np.flatnonzero(measured.folds[measured.folds >= 0] == 0)
        learnt = wider[0].take(np.flatnonzero(measured.folds != 0))
    fitted = fit_models(replace(problem, features=features), learnt)
    (output,) = predict([fitted.fair], wider[1].take(rows))
    part = measured.part.take(rows)
    settings: dict[str, Any] = {"positive": problem.labels.positive_code, "seed": asked.seed}
    settings["estimate"] = None if known is None else known.take(rows)
    codes = [measured.outputs[1].codes[rows], output.codes]
    fair, both = judge(part.cells, codes, asked.fairness, **settings).models
    return WithSensitive(len(rows), (fair.accuracy, fair.disparity), (both.accuracy, both.disparity))


def _dropped_cells(part: TablePart, trained: TrainedModels, suspects: pd.DataFrame) -> list[DroppedCell]:
    """Describe every cell that is not empty, by what an estimator that was fitted to codes says of it."""
    cells, model, estimate = part.cells, trained.estimator, trained.estimator.estimate_
    left, wrong = np.ones(len(part), bool), np.isin(part.rows, suspects["row"])
    left[trained.selected] = False
    dropped, doubted = (np.bincount(cells.codes[rows], minlength=cells.counts.size) for rows in (left, wrong))

    def by_cell(values: Any, classes: Iterable[Any], groups: Iterable[Any]) -> list[float | None]:
        table = np.full(cells.shape, np.nan)
        columns = [-1 if group is None else int(group) for group in groups]  # no group is last
        table[np.ix_([int(code) for code in classes], columns)] = values
        return [None if math.isnan(value) else value for value in table.ravel().tolist()]

    weights = by_cell(model.effective_weights_, model.classes_, model.sensitive_values_)
    noise: list[float | None] = [None] * len(weights)
    if estimate is not None:
        noise = by_cell(estimate.noise, estimate.cells.classes, estimate.cells.groups)
    names = product(map(str, cells.classes), cells.groups)
    rest = zip(names, cells.counts.ravel().tolist(), dropped, doubted, noise, weights, strict=True)
    return [
        DroppedCell(label, group, Share(int(out), count), int(looks_wrong), share, weight)
        for (label, group), count, out, looks_wrong, share, weight in rest
        if count
    ]
