"""Train the models of a table (a plain one, the fair one, and those on the way to it), and measure them."""

from __future__ import annotations

import contextlib
import platform
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from functools import partial
from importlib import metadata
from importlib.util import find_spec
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import Pipeline

from fairsieve.errors import FairnessWarning, FairsieveWarning
from fairsieve.estimators.base import PlainComparison
from fairsieve.estimators.classifier import FairRobustClassifier
from fairsieve.estimators.sieve import SieveClassifier
from fairsieve.label_noise.estimate import CleanRatioEstimate, estimate_clean_ratio, warn_if_inconclusive
from fairsieve.label_noise.verified import UncheckedGroupWarning
from fairsieve.optional import require
from fairsieve.tabular import evaluation
from fairsieve.tabular.answers import describe_answers
from fairsieve.tabular.evaluation import Calibration, Quality, Rate, Score, Share
from fairsieve.tabular.model_files import (
    BoosterClassifier,
    decide,
    make_model,
    probabilities,
    with_threshold,
)
from fairsieve.tabular.preparation import TablePart, TableProblem, named_estimate, read_problem
from fairsieve.tabular.reading.encoding import Preparation, notes_on_new
from fairsieve.tabular.settings import TableSettings
from fairsieve.training.ratio_search import choose_point as choose_on_path

STAGES = ("reading the table", "training both models", "measuring")
VERSIONS = ("fairsieve", "numpy", "pandas", "scikit-learn", "skops", "torch", "lightgbm")
IGNORED = 0.25  # of the weight that its rows would have
FEW_ROWS = 20_000  # for which several threads of LightGBM cost more than they save


def boosted_trees(model: str, trees: int, seed: int, categories: int, rows: int) -> Any:
    """Make boosted trees that take categories, as codes in the first columns, and missing values, as NaN."""
    codes = list(range(categories))
    if model == "lightgbm":
        return require("lightgbm", extra="lightgbm", purpose="--model lightgbm").LGBMClassifier(
            n_estimators=trees,
            random_state=seed,
            n_jobs=1 if rows < FEW_ROWS else 0,
            deterministic=True,
            force_col_wise=True,
            verbose=-1,
            categorical_column=codes,
        )
    return HistGradientBoostingClassifier(
        max_iter=trees, categorical_features=codes or None, early_stopping=False, random_state=seed
    )


ROUNDS = 12


class HeldOutScores(NamedTuple):
    """Accuracy and disparity of a model on training rows that it did not see."""

    accuracy: float
    disparity: float


def choose_point(scores: Sequence[HeldOutScores], tolerance: float) -> int:
    """Choose the fairest of the models whose accuracy is within ``tolerance`` of the best; return its place.

    >>> choose_point([HeldOutScores(0.9, 0.2), HeldOutScores(0.89, 0.1), HeldOutScores(0.8, 0.0)], 0.02)
    1
    """
    enough = max(each.accuracy for each in scores) - tolerance - 1e-12
    able = [place for place, each in enumerate(scores) if each.accuracy >= enough]
    return min(able, key=lambda place: (scores[place].disparity, -scores[place].accuracy))


@dataclass(frozen=True, eq=False)
class TradeOffPoint:
    """The plain model, or one on the way to the fairest.

    Attributes
    ----------
    title : str
        Such as "plain model" or "round 3".
    model : Pipeline
        A preparation and a classifier of scikit-learn's interface, with labels by their names.
    threshold : float or None
        From which probability on the positive label is predicted; None for the likeliest label.
    held_out : HeldOutScores or None
        On training rows that the model did not see, by which one is chosen; None where none was to be.
    scores : dict of Score
        Accuracy and disparity on the test part, once they are measured.
    kept : bool
        Whether this is the model that is kept.
    """

    title: str
    model: Pipeline
    threshold: float | None
    held_out: HeldOutScores | None
    scores: dict[str, Score] = field(default_factory=dict)
    kept: bool = False


@dataclass(frozen=True)
class DroppedCell:
    """The people of one label in one group (None: without a group).

    Attributes
    ----------
    label, group : str
    dropped : Share
        Those left out in the last epoch, of all.
    suspects : int
        Those whose label looks wrong.
    estimated_noise : float or None
        Estimated share of wrong labels, where it was estimated.
    effective_weight : float or None
        Effective weight: the cell's share of the training weight, divided by its share of the rows.
    """

    label: str
    group: str | None
    dropped: Share
    suspects: int
    estimated_noise: float | None
    effective_weight: float | None = None

    @property
    def is_ignored(self) -> bool:
        """Whether the cell has less than a quarter of the weight that its rows would have."""
        return self.effective_weight is not None and self.effective_weight < IGNORED


class TrainedModels(NamedTuple):
    """What training gives: the estimator, the models on the way, which of them is kept, the rows it used, warnings."""

    estimator: FairRobustClassifier | SieveClassifier
    points: list[TradeOffPoint]
    kept: int
    selected: NDArray[np.int64]
    notes: list[str]


def _point(
    problem: TableProblem,
    prepared: Preparation,
    estimate: CleanRatioEstimate | None,
    fitted: Any,
    scores: Callable[[], NDArray[np.float64]],
    title: str,
    held_out: HeldOutScores | None,
) -> TradeOffPoint:
    """Make the pipeline of a classifier that was fitted to codes, with the threshold that the settings ask for.

    ``scores`` gives probabilities for the training rows, on which a threshold is chosen; out of fold for trees.
    """
    rule, positive, threshold = problem.asked.threshold, problem.labels.positive, None
    classifier = _with_names(fitted, problem.labels.classes)
    if not rule.is_default and positive is not None:
        place = problem.labels.positive_code
        # Without a conclusive estimate, labels are taken as they are.
        chances = (problem.train.label_codes == place).astype(np.float64)
        if estimate is not None and estimate.credible:
            chances = np.asarray(estimate.true_class[:, place], dtype=np.float64)
        threshold = rule.choose(scores()[:, place], chances)
        classifier = with_threshold(classifier, threshold, positive)
    return TradeOffPoint(title, make_model(prepared, classifier, problem.read), threshold, held_out)


@contextlib.contextmanager
def record_warnings(part: TablePart) -> Iterator[list[str]]:
    """Collect what learning from ``part`` warns of, in place of printing it; a collapse is told elsewhere."""
    notes: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", FairsieveWarning)
        warnings.simplefilter("ignore", FairnessWarning)
        warnings.simplefilter("always", ConvergenceWarning)
        yield notes
    for one in caught:
        message = one.message
        if isinstance(message, UncheckedGroupWarning):  # it knows the group by its code
            message = UncheckedGroupWarning(part.group_names([message.group])[0])
        if isinstance(message, FairsieveWarning | ConvergenceWarning):
            notes.append(str(message))


def _parameters(problem: TableProblem) -> dict[str, Any]:
    """Return the parameters that both estimators take from the settings."""
    found = {name: getattr(problem.asked, name) for name in ("fairness", "clean_ratio", "tolerance")}
    return found | {"random_state": problem.asked.seed, "pos_label": problem.pos_label}


def train_linear(problem: TableProblem) -> TrainedModels:
    """Train the plain model and the way to the fair one, of which each point is a model between the two."""
    asked, part = problem.asked, problem.train
    prepared = Preparation(missing=asked.reading.missing, dates=asked.dates).fit(part.values)
    features = prepared.encode(part.values)
    model = FairRobustClassifier(max_iter=asked.max_iter or 200, **_parameters(problem))
    with record_warnings(part) as notes:
        model.fit(features, part.label_codes, **part.facts)
    if model.stopped_ == "interrupted":
        raise KeyboardInterrupt
    path = list(model.path_.itertuples())
    scores = [HeldOutScores(one.accuracy, one.gap) for one in path]
    kept = 0 if model.is_plain_ else 1 + choose_on_path(path, model.tolerance_)
    if asked.max_accuracy_loss is not None:
        kept = 1 + choose_point(scores, asked.max_accuracy_loss)
        model._choose(kept - 1)  # what it weighed is told
    make = partial(_point, problem, prepared, model.estimate_)
    points = []
    fitted = [model.plain_model_, *model.path_models_]
    for number, (one, held_out) in enumerate(zip(fitted, [None, *scores], strict=True)):
        title = "plain model" if number == 0 else "fair model" if number == kept else f"point {number}"
        points.append(make(one, partial(one.predict_proba, features), title, held_out))
    drops_nobody = kept == 0 or (model.estimate_ is not None and model.estimate_.acts)
    selected = np.arange(len(part)) if drops_nobody else model.sample_indices_
    return TrainedModels(model, points, kept, selected, notes)


def _dropped_cells(
    part: TablePart, model: Any, selected: NDArray[np.int64], suspects: pd.DataFrame
) -> list[DroppedCell]:
    """Describe every cell that is not empty, by what an estimator that was fitted to codes says of it."""
    cells, estimate = part.cells, model.estimate_
    left, wrong = np.ones(len(part), bool), np.isin(part.rows, suspects["row"])
    left[selected] = False
    dropped, doubted = (np.bincount(cells.codes[rows], minlength=cells.counts.size) for rows in (left, wrong))

    def known(values: NDArray[np.float64], classes: Iterable[Any], groups: Iterable[Any]) -> list[Any]:
        found = np.full(cells.shape, None)
        columns = [-1 if group is None else int(group) for group in groups]  # no group is last
        found[np.ix_([int(code) for code in classes], columns)] = values
        return [None if value is None or np.isnan(value) else float(value) for value in found.flat]

    weights = known(model.effective_weights_, model.classes_, model.sensitive_values_)
    noise = [None] * len(weights)
    if estimate is not None:
        noise = known(estimate.noise, estimate.cells.classes, estimate.cells.groups)
    names = product(map(str, cells.classes), cells.groups)
    return [
        DroppedCell(
            *name, Share(int(dropped[place]), count), int(doubted[place]), noise[place], weights[place]
        )
        for place, (name, count) in enumerate(zip(names, cells.counts.ravel().tolist(), strict=True))
        if count
    ]


def _with_names(model: Any, classes: Sequence[str]) -> Any:
    """Let a model that was fitted to codes predict the labels themselves; take LightGBM's trees out of their shell."""
    if hasattr(model, "booster_"):
        return BoosterClassifier(model.booster_.model_to_string(), list(classes))
    found = copy(model)
    found.classes_ = np.asarray(classes, dtype=np.str_)
    return found


def train_trees(problem: TableProblem, model: str) -> TrainedModels:
    """Train trees in rounds of :class:`~fairsieve.SieveClassifier`, which are the models of the trade-off."""
    asked, part = problem.asked, problem.train
    prepared = Preparation(one_hot=False, missing=asked.reading.missing, dates=asked.dates).fit(part.values)
    trees = boosted_trees(model, asked.trees, asked.seed, len(prepared.categories_), len(part))
    more = {"max_iter": asked.max_iter or ROUNDS, "threshold": asked.threshold, "keep_path": True}
    sieve = SieveClassifier(trees, **more, **_parameters(problem))
    with record_warnings(part) as notes:
        sieve.fit(prepared.encode(part.values), part.label_codes, **part.facts)
        if sieve.estimate_ is not None:
            warn_if_inconclusive(sieve.estimate_)
    make = partial(_point, problem, prepared, sieve.estimate_)
    points: list[TradeOffPoint] = []
    numbers, kept = [], 0
    for number, (one, fitted) in enumerate(zip(sieve.rounds_, sieve.path_models_, strict=True)):
        if len(fitted.classes_) < len(problem.labels.classes):
            continue  # a round that trained on no row of a label
        kept = len(points) if fitted is sieve.estimator_ else kept
        numbers.append(number)
        title, held_out = f"round {number}" if number else "plain model", HeldOutScores(one.accuracy, one.gap)
        points.append(make(fitted, partial(getattr, one, "probabilities"), title, held_out))
    if asked.max_accuracy_loss is not None:
        kept = choose_point([one.held_out for one in points if one.held_out], asked.max_accuracy_loss)
        sieve._choose(numbers[kept])
    return TrainedModels(sieve, points, kept, np.flatnonzero(sieve.weights_ > 0), notes)


BETTER = 0.02  # of log loss, by which another kind of model must predict the labels better


def choose_model(problem: TableProblem) -> tuple[str, dict[str, float], list[str]]:
    """Take the kind of model asked for; where that is "auto", trees if a model that is not linear is clearly better.

    The models that the estimate of wrong labels compares tell. Returns the kind, the mean log loss of each on rows that
    it did not see, and the choice in words; the latter two are empty where somebody chose.
    """
    asked, part = problem.asked, problem.train
    if asked.model != "auto":
        return asked.model, {}, []
    with record_warnings(part):
        numbers = Preparation().fit(part.values).encode(part.values)
        found = estimate_clean_ratio(numbers, part.label_codes, random_state=asked.seed, **part.facts)
    losses = {"linear": 0.0} if found.predictor is None else found.predictor.losses
    best = min(losses, key=lambda kind: losses[kind])
    name, absent = "logistic", ""
    if losses["linear"] - losses[best] >= BETTER:
        name = "lightgbm"
        if find_spec("lightgbm") is None:
            name = "hist-gradient-boosting"
            absent = " LightGBM is not installed: pip install 'fairsieve[lightgbm]'."
    note = (
        f"--model auto chose {name}: on rows that they did not see, the log loss of a linear model is "
        f"{losses['linear']:.4f}, and that of the best kind ({best}) {losses[best]:.4f}.{absent}"
    )
    return name, losses, [note]


# ---- A run


@dataclass(frozen=True, eq=False, kw_only=True)
class TableRun:
    """The result of training on a table.

    Attributes
    ----------
    trade_off : list of TradeOffPoint
        The plain model, those on the way to the fairest, and the fairest.
    suspects : DataFrame
        The training rows whose labels look wrong, the highest loss first.
    dropped : list of DroppedCell
        Who was left out at the end; nobody where labels are corrected by their chances.
    clean_ratio : float
    estimate : CleanRatioEstimate or None
    comparison : PlainComparison or None
        The fair model beside the plain one, on the rows that training judges by.
    notes : list of str
        What was done to the table, and what training warned of.
    problem : TableProblem
        The table, in its roles.
    model : Pipeline
        The fair model, a pipeline of scikit-learn's; the plain one where that is kept.
    model_name : str
        Its kind: "logistic", "lightgbm" or "hist-gradient-boosting".
    losses : dict of floats
        The log loss of the kinds of model that were compared; empty where somebody chose.
    scores : list of dicts
        Accuracy and disparity on the test part, of the plain model and of the one that is kept.
    change : dict
        Fair less plain.
    predicted : list of dicts
        How often the plain model and the kept one predict each label on the test part.
    measures : list of Rate
        Group by group, on the test part.
    quality : list of Quality
        How well the models tell labels apart, group by group, on the test part.
    calibration : list of Calibration
        Whether probabilities mean what they say, group by group, on the test part.
    test_groups : list
        The groups that the measures are of; a last None, people without a group.
    seconds : float
    versions : dict
    verified : dict or None
        What answers of people who checked labels say.
    """

    trade_off: list[TradeOffPoint]
    suspects: pd.DataFrame
    dropped: list[DroppedCell]
    clean_ratio: float
    estimate: CleanRatioEstimate | None
    comparison: PlainComparison | None
    notes: list[str]
    problem: TableProblem
    model: Pipeline
    model_name: str
    losses: dict[str, float]
    scores: list[dict[str, Score]]
    change: dict[str, Score]
    predicted: list[dict[str, int]]
    measures: list[Rate]
    quality: list[Quality]
    calibration: list[Calibration]
    test_groups: list[Any]
    versions: dict[str, str]
    seconds: float = 0.0
    verified: dict[str, Any] | None = None

    @property
    def asked(self) -> TableSettings:
        """What was asked for."""
        return self.problem.asked

    @property
    def kept(self) -> TradeOffPoint:
        """The model that is kept."""
        return next(point for point in self.trade_off if point.kept)

    @property
    def keeps_plain(self) -> bool:
        """Whether the kept model is the plain one."""
        return self.trade_off[0].kept

    @property
    def is_inconclusive(self) -> bool:
        """Whether the data could not tell which labels are wrong."""
        return self.estimate is not None and not self.estimate.credible


def train_table(asked: TableSettings, report: Callable[[str], None]) -> TableRun:
    """Train a plain and a fair model on a table, and measure both on rows set aside.

    Nothing is written; :func:`fairsieve.tabular.report.files.write_run` does that.

    Parameters
    ----------
    asked : TableSettings
    report : callable
        Called with what begins, one of :data:`STAGES`.
    """
    started = time.perf_counter()
    report(STAGES[0])
    problem = read_problem(asked)
    report(STAGES[1])
    name, losses, notes = choose_model(problem)
    fitted = train_linear(problem) if name == "logistic" else train_trees(problem, name)
    report(STAGES[2])
    run = _measured_run(problem, fitted, name, losses, notes)
    if asked.verified:
        told, sentences = describe_answers(run)
        run = replace(run, verified=told, notes=[*sentences, *run.notes])
    return replace(run, seconds=time.perf_counter() - started)


def _measured_run(
    problem: TableProblem, fitted: TrainedModels, name: str, losses: dict[str, float], notes: list[str]
) -> TableRun:
    """Rate the models on the test part, and collect everything that is reported of a run, by names instead of codes."""
    asked, part, test, labels = problem.asked, problem.train, problem.test, problem.labels
    pipelines, place, model = [one.model for one in fitted.points], fitted.kept, fitted.estimator
    predicted = probabilities(pipelines, test.values)
    outputs = list(map(evaluation.ModelOutput, predicted, map(decide, pipelines, predicted)))
    codes = [one.codes for one in outputs]
    scores, change = evaluation.score_models(
        test.cells, codes, asked.fairness, labels.positive_code, asked.seed, place
    )
    if place == 0:  # nothing changes between a model and itself
        change = dict.fromkeys(change, Score(0.0, (0.0, 0.0)))
    plain, kept = outputs[0], outputs[place]
    prepared = pipelines[place]["prepare"]  # the page of a run names nobody
    new = notes_on_new(test.values, prepared, quoted=False) if asked.test_file is not None else []
    suspects, estimate = part.named_suspects(model.suspects()), model.estimate_
    points = enumerate(zip(fitted.points, scores, strict=True))
    return TableRun(
        trade_off=[replace(one, scores=its, kept=number == place) for number, (one, its) in points],
        suspects=suspects,
        dropped=_dropped_cells(part, model, fitted.selected, suspects),
        clean_ratio=model.clean_ratio_,
        estimate=None if estimate is None else named_estimate(estimate, part),
        comparison=model.comparison_,
        notes=[*problem.notes, *new, *notes, *fitted.notes],
        problem=problem,
        model=pipelines[place],
        model_name=name,
        losses=losses,
        scores=[scores[0], scores[place]],
        change=change,
        predicted=[evaluation.count_predicted(one.codes, labels) for one in (plain, kept)],
        measures=evaluation.measure_groups(test.cells, plain.codes, kept.codes, labels),
        quality=evaluation.measure_quality(test.cells, plain, kept, labels),
        calibration=evaluation.measure_calibration(test.cells, plain, kept, labels),
        test_groups=test.cells.groups,
        versions=_versions(),
    )


def _versions() -> dict[str, str]:
    """Name the versions of what a result depends on, where it is installed."""
    found = {"python": platform.python_version()}
    for name in VERSIONS:
        with contextlib.suppress(metadata.PackageNotFoundError):
            found[name] = metadata.version(name)
    return found
