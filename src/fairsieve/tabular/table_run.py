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
from fairsieve.selection.cells import Cells
from fairsieve.tabular.answers import describe_answers
from fairsieve.tabular.dropping import DroppedCell, dropped_cells
from fairsieve.tabular.evaluation import (
    Calibration,
    ModelOutput,
    Quality,
    Rate,
    Score,
    count_predicted,
    measure_calibration,
    measure_groups,
    measure_quality,
    score_models,
)
from fairsieve.tabular.model_files import (
    BoosterClassifier,
    decide,
    import_lightgbm,
    probabilities,
    with_threshold,
)
from fairsieve.tabular.preparation import TablePart, TableProblem, named_estimate, read_problem
from fairsieve.tabular.reading.encoding import Feature, Preparation, notes_on_new
from fairsieve.tabular.settings import TableSettings
from fairsieve.training.ratio_search import choose_point as choose_on_path

STAGES = ("reading the table", "training both models", "measuring")
VERSIONS = ("fairsieve", "numpy", "pandas", "scikit-learn", "skops", "torch", "lightgbm")
FEW_ROWS = 20_000  # for which several threads of LightGBM cost more than they save


def boosted_trees(model: str, trees: int, seed: int, categories: int, rows: int) -> Any:
    """Make boosted trees that take categories, as codes in the first columns, and missing values, as NaN."""
    codes = list(range(categories))
    if model == "lightgbm":
        return import_lightgbm("--model lightgbm").LGBMClassifier(
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


@dataclass(frozen=True, eq=False, kw_only=True)
class TradeOffPoint:
    """A model on the way from the plain one to the fairest.

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


@dataclass(frozen=True, eq=False, kw_only=True)
class TableModels:
    """The models of a table, and what training says of its rows.

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
        What training warned of.
    """

    trade_off: list[TradeOffPoint]
    suspects: pd.DataFrame
    dropped: list[DroppedCell]
    clean_ratio: float
    estimate: CleanRatioEstimate | None
    comparison: PlainComparison | None
    notes: list[str]


def _point(
    problem: TableProblem,
    prepared: Preparation,
    classifier: Any,
    scores: Callable[[], NDArray[np.float64]],
    estimate: CleanRatioEstimate | None,
    **more: Any,
) -> TradeOffPoint:
    """Make the pipeline of a fitted classifier, with the threshold that the settings ask for.

    ``scores`` gives probabilities for the training rows, on which a threshold is chosen; out of fold for trees.
    """
    rule, positive, threshold = problem.asked.threshold, problem.labels.positive, None
    if not rule.is_default and positive is not None:
        place, cells = classifier.classes_.tolist().index(positive), problem.train.cells
        # Without a conclusive estimate, labels are taken as they are.
        chances = (cells.label_codes == place).astype(np.float64)
        if estimate is not None and estimate.credible:
            chances = np.asarray(estimate.true_class[:, place], dtype=np.float64)
        threshold = rule.choose(scores()[:, place], chances)
        classifier = with_threshold(classifier, threshold, positive)
    pipeline = Pipeline([("prepare", prepared), ("model", classifier)])
    return TradeOffPoint(model=pipeline, threshold=threshold, **more)


@contextlib.contextmanager
def record_warnings(part: TablePart) -> Iterator[list[str]]:
    """Collect what learning from ``part`` warns of, in place of printing it; a collapse is told elsewhere."""
    notes: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", FairsieveWarning)
        warnings.simplefilter("always", ConvergenceWarning)
        yield notes
    for one in caught:
        message = one.message
        if isinstance(message, UncheckedGroupWarning):  # it knows the group by its code
            message = UncheckedGroupWarning(part.group_names([message.group])[0])
        if isinstance(message, FairsieveWarning | ConvergenceWarning) and not isinstance(
            message, FairnessWarning
        ):
            notes.append(str(message))


def train_linear(problem: TableProblem) -> TableModels:
    """Train the plain model and the way to the fair one, of which each point is a model between the two."""
    asked, part = problem.asked, problem.train
    prepared = Preparation(missing=asked.reading.missing).fit(part.values)
    features = prepared.encode(part.values)
    model = FairRobustClassifier(
        asked.fairness,
        clean_ratio=asked.clean_ratio,
        tolerance=asked.tolerance,
        max_iter=asked.max_iter or 200,
        random_state=asked.seed,
        pos_label=problem.pos_label,
    )
    with record_warnings(part) as notes:
        model.fit(features, part.label_codes, **part.facts)
    if model.interrupted_:
        raise KeyboardInterrupt
    path = list(model.path_.itertuples())
    scores = [HeldOutScores(one.accuracy, one.gap) for one in path]
    kept = 0 if model.is_plain_ else 1 + choose_on_path(path, model.tolerance_)
    if asked.max_accuracy_loss is not None:
        kept = 1 + choose_point(scores, asked.max_accuracy_loss)
    drops_nobody = kept == 0 or (model.estimate_ is not None and model.estimate_.acts)
    models = [
        _point(
            problem,
            prepared,
            _with_names(one, problem.labels.classes),
            partial(one.predict_proba, features),
            model.estimate_,
            title="plain model" if number == 0 else "fair model" if number == kept else f"point {number}",
            held_out=None if number == 0 else scores[number - 1],
        )
        for number, one in enumerate([model.plain_model_, *model.path_models_])
    ]
    selected = np.arange(len(part)) if drops_nobody else model.sample_indices_
    return _collect(model, models, kept, selected, notes, part)


def _collect(
    model: FairRobustClassifier | SieveClassifier,
    models: list[TradeOffPoint],
    kept: int,
    selected: NDArray[np.int64],
    notes: list[str],
    part: TablePart,
) -> TableModels:
    """Collect what an estimator that was fitted to codes says of a table, with labels and groups by their names."""
    cells, estimate, noise = part.cells, model.estimate_, np.full(part.cells.shape, np.nan)
    if estimate is not None:
        noise = _by_cell(cells, estimate.noise, estimate.cells.classes, estimate.cells.groups)
    weights = _by_cell(cells, model.effective_weights_, model.classes_, model.sensitive_values_)
    suspects = part.named_suspects(model.suspects())
    wrong = np.isin(part.rows, suspects["row"])
    return TableModels(
        trade_off=[replace(one, kept=place == kept) for place, one in enumerate(models)],
        suspects=suspects,
        dropped=dropped_cells(cells, selected, wrong, noise, weights),
        clean_ratio=model.clean_ratio_,
        estimate=None if estimate is None else named_estimate(estimate, part),
        comparison=model.comparison_,
        notes=notes,
    )


def _by_cell(
    cells: Cells, values: NDArray[np.float64], classes: Iterable[Any], groups: Iterable[Any]
) -> NDArray[np.float64]:
    """Put values of the classes and groups that an estimator met, by their codes, into an array of all cells."""
    found = np.full(cells.shape, np.nan)
    columns = [-1 if group is None else int(group) for group in groups]  # no group is last
    found[np.ix_([int(code) for code in classes], columns)] = values
    return found


def _with_names(model: Any, classes: Sequence[str]) -> Any:
    """Let a model that was fitted to codes predict the labels themselves; take LightGBM's trees out of their shell."""
    if hasattr(model, "booster_"):
        return BoosterClassifier(model.booster_.model_to_string(), list(classes))
    found = copy(model)
    found.classes_ = np.asarray(classes, dtype=np.str_)
    return found


def train_trees(problem: TableProblem, model: str) -> TableModels:
    """Train trees in rounds of :class:`~fairsieve.SieveClassifier`, which are the models of the trade-off."""
    asked, part = problem.asked, problem.train
    prepared = Preparation(one_hot=False, missing=asked.reading.missing).fit(part.values)
    sieve = SieveClassifier(
        boosted_trees(model, asked.trees, asked.seed, len(prepared.categories_), len(part)),
        asked.fairness,
        clean_ratio=asked.clean_ratio,
        tolerance=asked.tolerance,
        max_iter=asked.max_iter or ROUNDS,
        threshold=asked.threshold,
        keep_path=True,
        pos_label=problem.pos_label,
        random_state=asked.seed,
    )
    with record_warnings(part) as notes:
        sieve.fit(prepared.encode(part.values), part.label_codes, **part.facts)
        if sieve.estimate_ is not None:
            warn_if_inconclusive(sieve.estimate_)
    models: list[TradeOffPoint] = []
    kept = 0
    for number, (one, fitted) in enumerate(zip(sieve.rounds_, sieve.path_models_, strict=True)):
        if len(fitted.classes_) < len(problem.labels.classes):
            continue  # a round that trained on no row of a label
        kept = len(models) if fitted is sieve.estimator_ else kept
        models.append(
            _point(
                problem,
                prepared,
                _with_names(fitted, problem.labels.classes),
                partial(getattr, one, "probabilities"),
                sieve.estimate_,
                title="plain model" if number == 0 else f"round {number}",
                held_out=HeldOutScores(one.accuracy, one.gap),
            )
        )
    if asked.max_accuracy_loss is not None:
        kept = choose_point([one.held_out for one in models if one.held_out], asked.max_accuracy_loss)
    return _collect(sieve, models, kept, np.flatnonzero(sieve.weights_ > 0), notes, part)


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
class TableRun(TableModels):
    """The result of training on a table.

    Attributes
    ----------
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

    def treatment(self, feature: Feature) -> str:
        """Say what was made of a column."""
        return feature.treatment if self.model_name == "logistic" else feature.tree_treatment


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
    run = _measured_run(problem, replace(fitted, notes=[*notes, *fitted.notes]), name, losses)
    if asked.verified:
        told, sentences = describe_answers(run)
        run = replace(run, verified=told, notes=[*sentences, *run.notes])
    return replace(run, seconds=time.perf_counter() - started)


def _measured_run(
    problem: TableProblem, fitted: TableModels, name: str, losses: dict[str, float]
) -> TableRun:
    """Rate the models on the test part, and collect everything that is reported of a run."""
    asked, test, labels = problem.asked, problem.test, problem.labels
    pipelines = [one.model for one in fitted.trade_off]
    place = next(place for place, one in enumerate(fitted.trade_off) if one.kept)
    predicted = probabilities(pipelines, test.values)
    outputs = [ModelOutput(*pair) for pair in zip(predicted, map(decide, pipelines, predicted), strict=True)]
    codes = [one.codes for one in outputs]
    scores, change = score_models(test.cells, codes, asked.fairness, labels.positive_code, asked.seed, place)
    plain, kept = outputs[0], outputs[place]
    prepared = pipelines[place]["prepare"]  # the page of a run names nobody
    new = notes_on_new(test.values, prepared, quoted=False) if asked.test_file is not None else []
    measured = replace(
        fitted,
        trade_off=[replace(one, scores=its) for one, its in zip(fitted.trade_off, scores, strict=True)],
        notes=[*problem.notes, *new, *fitted.notes],
    )
    return TableRun(
        **vars(measured),
        problem=problem,
        model=pipelines[place],
        model_name=name,
        losses=losses,
        scores=[scores[0], scores[place]],
        change=change,
        predicted=[count_predicted(one.codes, labels) for one in (plain, kept)],
        measures=measure_groups(test.cells, plain.codes, kept.codes, labels),
        quality=measure_quality(test.cells, plain, kept, labels),
        calibration=measure_calibration(test.cells, plain, kept, labels),
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
