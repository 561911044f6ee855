"""Fit the models of some rows of a table: the plain one, the fair one, and those on the way between them."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import Pipeline

from fairsieve.errors import FairnessWarning, FairsieveWarning, require, spell
from fairsieve.estimators._parts import PartTable
from fairsieve.estimators.classifier import FairRobustClassifier
from fairsieve.estimators.sieve import SieveClassifier
from fairsieve.label_noise.estimate import CleanRatioEstimate, estimate_clean_ratio, warn_if_inconclusive
from fairsieve.label_noise.verified import UncheckedGroupWarning
from fairsieve.selection.cells import Floats, Integers
from fairsieve.tabular.evaluation import ModelOutput
from fairsieve.tabular.model_files import BoosterClassifier, decide, make_model, probabilities, with_threshold
from fairsieve.tabular.policy import POLICY
from fairsieve.tabular.preparation import TablePart, TableProblem
from fairsieve.tabular.reading.encoding import Preparation
from fairsieve.training.compromises import choose_point

FEW_ROWS = 20_000  # for which several threads of LightGBM cost more than they save
ROUNDS = 12


@dataclass(frozen=True, eq=False)
class PathPoint:
    """A model on the way from the one with natural weights to the fairest.

    Attributes
    ----------
    model : Pipeline
        A preparation and a classifier of scikit-learn's interface, with labels by their names.
    threshold : float or None
        From which probability on the positive label is predicted; None for the likeliest label.
    accuracy, gap : float
        As training judged it, by which one is chosen.
    """

    model: Pipeline
    threshold: float | None
    accuracy: float
    gap: float


@dataclass(frozen=True, eq=False, kw_only=True)
class TrainedModels:
    """What training on some rows gives.

    Attributes
    ----------
    kind : str
        "logistic", "lightgbm" or "hist-gradient-boosting".
    losses : dict of floats
        The log loss of the kinds of model that were compared; empty where somebody chose.
    estimator : FairRobustClassifier or SieveClassifier
    plain : PathPoint
    points : list of PathPoint
        The way to the fairest; the plain model is none of them.
    chosen : int
        Which of the points is the fair model.
    selected : integer array
        The rows that were trained on.
    notes : list of str
        What training warned of.
    rows : PartTable, optional
        All rows, of a table in parts.
    """

    kind: str
    losses: dict[str, float]
    estimator: Any
    plain: PathPoint
    points: list[PathPoint]
    chosen: int
    selected: Integers
    notes: list[str]
    rows: PartTable | None = None

    @property
    def fair(self) -> PathPoint:
        """The fair model."""
        return self.points[self.chosen]

    def within(self, tolerance: float) -> PathPoint:
        """Return the point that this tolerance would have chosen."""
        return self.points[choose_point(self.points, tolerance)]


def predict(points: Sequence[PathPoint], part: TablePart) -> list[ModelOutput]:
    """Predict the rows of a part by models that share a preparation."""
    pipelines = [point.model for point in points]
    predicted = probabilities(pipelines, part.values)
    return list(map(ModelOutput, predicted, map(decide, pipelines, predicted)))


@contextlib.contextmanager
def record_warnings(part: TablePart) -> Iterator[list[str]]:
    """Collect what learning from ``part`` warns of, in place of printing it."""
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


def fit_models(problem: TableProblem, part: TablePart) -> TrainedModels:
    """Fit the models of some rows of a table. Nothing is learnt from other rows."""
    kind, losses, notes = choose_kind(problem, part)
    fitted = _fit_linear(problem, part) if kind == "logistic" else _fit_trees(problem, part, kind)
    return TrainedModels(kind=kind, losses=losses, **fitted | {"notes": notes + fitted["notes"]})


def choose_kind(problem: TableProblem, part: TablePart) -> tuple[str, dict[str, float], list[str]]:
    """Take the kind of model asked for; where that is "auto", trees if a model that is not linear is clearly better.

    The models that the estimate of wrong labels compares tell. Returns the kind, the mean log loss of each on rows that
    it did not see, and the choice in words; the latter two are empty where somebody chose.
    """
    asked = problem.asked
    if asked.model != "auto":
        return asked.model, {}, []
    with record_warnings(part):
        numbers = Preparation().fit(part.values).encode(part.values)
        estimate = estimate_clean_ratio(numbers, part.label_codes, random_state=asked.seed, **part.facts)
    losses = {"linear": 0.0} if estimate.predictor is None else estimate.predictor.losses
    best = min(losses, key=lambda kind: losses[kind])
    name, absent = "logistic", ""
    if losses["linear"] - losses[best] >= POLICY.better_model:
        name = "lightgbm"
        if find_spec("lightgbm") is None:
            name = "hist-gradient-boosting"
            absent = " LightGBM is not installed: pip install 'fairsieve[lightgbm]'."
    note = (
        f"{spell('--model', 'auto')} chose {name}: on rows that they did not see, the log loss of a linear model is "
        f"{losses['linear']:.4f}, and that of the best kind ({best}) {losses[best]:.4f}.{absent}"
    )
    return name, losses, [note]


def boosted_trees(model: str, trees: int, seed: int, categories: int, rows: int) -> Any:
    """Make boosted trees that take categories, as codes in the first columns, and missing values, as NaN."""
    codes = list(range(categories))
    if model == "lightgbm":
        return require("lightgbm", purpose=spell("--model", "lightgbm")).LGBMClassifier(
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


def _parameters(problem: TableProblem) -> dict[str, Any]:
    """Return the parameters that both estimators take from the settings."""
    parameters = {name: getattr(problem.asked, name) for name in ("fairness", "clean_ratio", "tolerance")}
    return parameters | {"random_state": problem.asked.seed, "pos_label": problem.pos_label}


def _fit_linear(problem: TableProblem, part: TablePart) -> dict[str, Any]:
    """Fit a plain model and the way to the fair one, by :class:`~fairsieve.FairRobustClassifier`."""
    asked, parts = problem.asked, problem.parts
    if parts is None:
        prepared = Preparation(missing=asked.reading.missing, dates=asked.dates).fit(part.values)
    else:
        prepared = parts.prepared
    more: dict[str, Any] = {"max_iter": asked.max_iter or 200, "threshold": asked.threshold}
    if asked.max_accuracy_loss is not None:
        more["max_accuracy_loss"] = asked.max_accuracy_loss
    model = FairRobustClassifier(**more, **_parameters(problem))
    with record_warnings(part) as notes:
        if parts is None:
            model.fit(prepared.encode(part.values), part.label_codes, **part.facts)
        else:
            rows = parts.table(model, part)
            model.fit(rows, part.label_codes, **part.facts)
    if model.stopped_ == "interrupted":
        raise KeyboardInterrupt
    make = partial(_point, problem, prepared)
    # The thresholds are those under which the rates were compared.
    path = model.path_[["threshold", "accuracy", "gap"]].itertuples(index=False)
    points = [
        make(prepared.settle(one), *measured) for one, measured in zip(model.path_models_, path, strict=True)
    ]
    given = model.plain_model_  # with a threshold, inside a classifier that knows it
    settled = prepared.settle(getattr(given, "estimator", given))
    plain = make(settled, getattr(given, "threshold", 0.5), np.nan, np.nan)
    chosen = model.path_index_
    if asked.max_accuracy_loss is not None:
        chosen = _choose(points, model.tolerance_, asked.max_accuracy_loss)
    drops_nobody = model.estimate_ is not None and model.estimate_.acts
    selected, doubted = model.sample_indices_, (model._suspects, model._selected)
    selected = np.setdiff1d(np.arange(len(part)) if drops_nobody else selected, model.left_out_)
    model._choose(chosen)  # what it weighed is told
    model._suspects, model._selected = doubted  # which another point may not know
    fitted = {"estimator": model, "plain": plain, "points": points, "chosen": chosen}
    fitted |= {"rows": None if parts is None else rows}
    return fitted | {"selected": selected, "notes": notes}


def _fit_trees(problem: TableProblem, part: TablePart, kind: str) -> dict[str, Any]:
    """Fit trees in rounds of :class:`~fairsieve.SieveClassifier`, which are the models on the way."""
    asked = problem.asked
    prepared = Preparation(one_hot=False, missing=asked.reading.missing, dates=asked.dates).fit(part.values)
    trees = boosted_trees(kind, asked.trees, asked.seed, len(prepared.categories_), len(part))
    more = {"max_iter": asked.max_iter or ROUNDS, "threshold": asked.threshold, "keep_path": True}
    sieve = SieveClassifier(trees, **more, **_parameters(problem))
    with record_warnings(part) as notes:
        sieve.fit(prepared.encode(part.values), part.label_codes, **part.facts)
        if sieve.estimate_ is not None:
            warn_if_inconclusive(sieve.estimate_)
    place_of = partial(_choose_threshold, problem, part, sieve.estimate_)
    make = partial(_point, problem, prepared)
    points, places = [], []
    for place, (one, fitted) in enumerate(zip(sieve._points, sieve.path_models_, strict=True)):
        if len(fitted.classes_) == len(problem.labels.classes):  # else it trained on no row of a label
            places.append(place)
            points.append(make(fitted, place_of(one.probabilities), one.accuracy, one.gap))
    plain, points, places = points[0], points[1:] or points, places[1:] or places
    chosen = _choose(points, sieve.tolerance_, asked.max_accuracy_loss)
    sieve._choose(places[chosen])
    found = {"estimator": sieve, "plain": plain, "points": points, "chosen": chosen}
    return found | {"selected": np.flatnonzero(sieve.weights_ > 0), "notes": notes}


def _choose(points: Sequence[PathPoint], tolerance: float, price: float | None) -> int:
    """Choose the most accurate point within the tolerance or, for a named price, the fairest that costs no more."""
    if price is None:
        return choose_point(points, tolerance)
    enough = max(point.accuracy for point in points) - price - 1e-12
    able = [place for place, point in enumerate(points) if point.accuracy >= enough]
    return min(able, key=lambda place: (points[place].gap, -points[place].accuracy))


def _choose_threshold(
    problem: TableProblem, part: TablePart, estimate: CleanRatioEstimate | None, scores: Floats
) -> float:
    """Choose the threshold that the settings ask for on probabilities of the rows, out of fold."""
    rule, place = problem.asked.threshold, problem.labels.positive_code
    if rule.is_default or problem.labels.positive is None:
        return 0.5
    # Without a conclusive estimate, labels are taken as they are.
    chances = (part.label_codes == place).astype(np.float64)
    if estimate is not None and estimate.credible:
        chances = np.asarray(estimate.true_class[:, place], dtype=np.float64)
    return float(rule.choose(scores[:, place], chances))


def _point(
    problem: TableProblem, prepared: Preparation, fitted: Any, threshold: float, accuracy: float, gap: float
) -> PathPoint:
    """Make the pipeline of a classifier that was fitted to codes, with its threshold where one was asked for."""
    positive = problem.labels.positive
    classifier = _with_names(fitted, problem.labels.classes)
    if problem.asked.threshold.is_default or positive is None:
        return PathPoint(make_model(prepared, classifier, problem.read), None, accuracy, gap)
    classifier = with_threshold(classifier, threshold, positive)
    return PathPoint(make_model(prepared, classifier, problem.read), threshold, accuracy, gap)


def _with_names(model: Any, classes: Sequence[str]) -> Any:
    """Let a model that was fitted to codes predict the labels themselves; take LightGBM's trees out of their shell."""
    if hasattr(model, "booster_"):
        return BoosterClassifier(model.booster_.model_to_string(), list(classes))
    named = copy(model)
    named.classes_ = np.asarray(classes, dtype=np.str_)
    return named
