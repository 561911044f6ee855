"""Train the models of a table: a plain one, the fair one, and those on the way to it; choose their kind."""

from __future__ import annotations

import contextlib
import math
import warnings
from collections.abc import Callable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass, field
from functools import partial
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.pipeline import Pipeline

from fairsieve.errors import FairnessWarning, FairsieveWarning
from fairsieve.estimators.classifier import FairRobustClassifier, PlainComparison
from fairsieve.estimators.sieve import SieveClassifier
from fairsieve.label_noise.estimate import CleanRatioEstimate, warn_if_inconclusive
from fairsieve.label_noise.verified import UncheckedGroupWarning
from fairsieve.selection.cells import Cells
from fairsieve.tabular.evaluation import Score
from fairsieve.tabular.model_files import BoosterClassifier, LikeliestClass, import_lightgbm, with_threshold
from fairsieve.tabular.preparation import TablePart, TableProblem
from fairsieve.tabular.reading.encoding import Preparation
from fairsieve.training.ratio_search import choose_point as choose_on_path

FEW_ROWS = 20_000  # for which several threads of LightGBM cost more than they save


def has_lightgbm() -> bool:
    """Return whether LightGBM is installed, without importing it."""
    return find_spec("lightgbm") is not None


class NativeTrees(LikeliestClass):
    """Boosted trees that take categories, as codes, and missing values, as NaN.

    Parameters
    ----------
    model : {"lightgbm", "hist-gradient-boosting"}
    trees : int
        How many, for each class where there are more than two.
    random_state : int
    categories : int
        How many of the first columns are codes of categories.

    Attributes
    ----------
    trees_ : LGBMClassifier or HistGradientBoostingClassifier
        Fitted to numbers, categories being codes.
    classes_ : array
    """

    def __init__(self, model: str, trees: int = 100, random_state: int = 0, categories: int = 0) -> None:
        self.model = model
        self.trees = trees
        self.random_state = random_state
        self.categories = categories

    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> NativeTrees:
        """Fit the trees to a matrix."""
        categories, matrix = list(range(self.categories)), np.asarray(X, dtype=np.float64)
        if self.model == "lightgbm":
            new = import_lightgbm("--model lightgbm").LGBMClassifier(
                n_estimators=self.trees,
                random_state=self.random_state,
                n_jobs=1 if len(matrix) < FEW_ROWS else 0,
                deterministic=True,
                force_col_wise=True,
                verbose=-1,
            )
            self.trees_ = new.fit(matrix, y, sample_weight=sample_weight, categorical_feature=categories)
        else:
            new = HistGradientBoostingClassifier(
                max_iter=self.trees,
                categorical_features=categories or None,
                early_stopping=False,
                random_state=self.random_state,
            )
            self.trees_ = new.fit(matrix, y, sample_weight=sample_weight)
        self.classes_ = self.trees_.classes_
        return self

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Predict the probabilities of ``classes_``, an array of shape (n, classes)."""
        return np.asarray(self.trees_.predict_proba(np.asarray(X, dtype=np.float64)), dtype=np.float64)


ROUNDS = 12


class HeldOutScores(NamedTuple):
    """Accuracy and disparity of a model on training rows that it did not see."""

    accuracy: float
    disparity: float

    @property
    def gap(self) -> float:
        """The widest gap."""
        return self.disparity


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
    models : list of TradeOffPoint
        The plain one first.
    kept : int
        The place of the one that is kept.
    suspects : dict of arrays
        As the estimators list them: rows, labels and groups by their codes.
    selected : integer array
        The rows that were trained on at the end; all of them where labels are corrected by their chances.
    clean_ratio : float
    estimate : CleanRatioEstimate or None
    comparison : PlainComparison or None
        The fair model beside the plain one, on the rows that training judges by.
    notes : list of str
        What training warned of.
    weights : array of shape (classes, groups)
        Effective weight of each cell: its share of the training weight, divided by its share of the rows.
    """

    models: list[TradeOffPoint]
    kept: int
    suspects: dict[str, NDArray[Any]]
    selected: NDArray[np.int64]
    clean_ratio: float
    estimate: CleanRatioEstimate | None
    comparison: PlainComparison | None
    notes: list[str]
    weights: NDArray[np.float64]


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
    features = prepared.transform(part.values)
    model = FairRobustClassifier(
        asked.fairness,
        clean_ratio=asked.clean_ratio,
        tolerance=asked.tolerance,
        max_iter=asked.max_iter or 200,
        random_state=asked.seed,
        pos_label=problem.positive_code,
    )
    with record_warnings(part) as notes:
        model.fit(features, part.label_codes, **part.facts)
    if model.interrupted_:
        raise KeyboardInterrupt
    scores = [HeldOutScores(*row) for row in model.path_[["accuracy", "gap"]].itertuples(index=False)]
    kept = 0 if model.is_plain_ else 1 + choose_on_path(scores, model.tolerance_)
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
    return _collect(model, models, kept, selected, notes, part.cells)


def _collect(
    model: FairRobustClassifier | SieveClassifier,
    models: list[TradeOffPoint],
    kept: int,
    selected: NDArray[np.int64],
    notes: list[str],
    cells: Cells,
) -> TableModels:
    """Collect what an estimator that was fitted to codes says of a table."""
    weights = np.full(cells.shape, np.nan)
    columns = [-1 if group is None else int(group) for group in model.sensitive_values_]  # no group is last
    weights[np.ix_([int(code) for code in model.classes_], columns)] = model.effective_weights_
    return TableModels(
        models=models,
        kept=kept,
        suspects={name: column.to_numpy() for name, column in model.suspects().items()},
        selected=selected,
        clean_ratio=model.clean_ratio_,
        estimate=model.estimate_,
        comparison=model.comparison_,
        notes=notes,
        weights=weights,
    )


def _with_names(model: Any, classes: Sequence[str]) -> Any:
    """Let a model that was fitted to codes predict the labels themselves; take trees out of their shell."""
    if isinstance(model, NativeTrees):
        if model.model == "lightgbm":
            return BoosterClassifier(model.trees_.booster_.model_to_string(), list(classes))
        model = model.trees_
    found = copy(model)
    found.classes_ = np.asarray(classes, dtype=np.str_)
    return found


def train_trees(problem: TableProblem, model: str) -> TableModels:
    """Train trees in rounds of :class:`~fairsieve.SieveClassifier`, which are the models of the trade-off."""
    asked, part = problem.asked, problem.train
    prepared = Preparation(one_hot=False, missing=asked.reading.missing).fit(part.values)
    matrix = prepared.transform(part.values)
    sieve = SieveClassifier(
        NativeTrees(model, asked.trees, asked.seed, len(prepared.categories_)),
        asked.fairness,
        clean_ratio=asked.clean_ratio,
        tolerance=asked.tolerance,
        max_iter=asked.max_iter or ROUNDS,
        threshold=asked.threshold,
        keep_path=True,
        pos_label=problem.positive_code,
        random_state=asked.seed,
    )
    with record_warnings(part) as notes:
        sieve.fit(matrix, part.label_codes, **part.facts)
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
    return _collect(sieve, models, kept, np.flatnonzero(sieve.weights_ > 0), notes, part.cells)


def weigh_by_trees(problem: TableProblem, model: str) -> SieveClassifier:
    """Fit trees once and once more under weights, to say which labels are wrong; nothing of them is kept."""
    asked, part = problem.asked, problem.train
    prepared = Preparation(one_hot=False).fit(part.values)
    sieve = SieveClassifier(
        NativeTrees(model, asked.trees, asked.seed, len(prepared.categories_)),
        max_iter=1,
        pos_label=problem.positive_code,
        random_state=asked.seed,
    )
    with record_warnings(part):
        return sieve.fit(
            prepared.transform(part.values), part.label_codes, sensitive_features=part.group_codes
        )


TITLES = {
    "logistic": "logistic regression",
    "lightgbm": "LightGBM",
    "hist-gradient-boosting": "histogram gradient boosting",
}
FOLDS, MOST = 3, 12_000  # rows that are looked at
SUREST = 1e-6  # a probability nearer to 0 counts as this
NORMAL = 1.96  # 97.5 % of a normal distribution lie below


@dataclass(frozen=True)
class ModelChoice:
    """The kind of model that was chosen, and by how much.

    Attributes
    ----------
    name : str
    losses : dict of floats
        The mean log loss of each kind on rows that it did not see.
    runner_up : str
        The second best.
    difference : float
        By how much its loss is higher.
    interval : (float, float)
        Of the difference; 95 %, from the differences of the rows.
    note : str
        The choice, in words.
    """

    name: str
    losses: dict[str, float]
    runner_up: str
    difference: float
    interval: tuple[float, float]
    note: str


def choose_model(problem: TableProblem) -> ModelChoice:
    """Compare the kinds of model that are installed by their log loss, in cross-validation on the training part."""
    part, trees, seed = problem.train, problem.asked.trees, problem.asked.seed
    rows = np.random.default_rng(seed).permutation(len(part))[:MOST]
    used = part.take(np.sort(rows))
    codes, prepared = used.label_codes, Preparation(one_hot=False).fit(used.values)
    matrix, categories = prepared.transform(used.values), len(prepared.categories_)
    linear = Pipeline([("prepare", Preparation()), ("model", LogisticRegression(C=100.0, max_iter=200))])
    losses = {"logistic": _losses(linear, used.values, codes, seed)}
    for kind in ("lightgbm", "hist-gradient-boosting"):
        if kind != "lightgbm" or has_lightgbm():
            losses[kind] = _losses(NativeTrees(kind, trees, seed, categories), matrix, codes, seed)
    ranked = sorted(losses, key=lambda kind: float(losses[kind].mean()))
    best, second = ranked[:2]
    apart = losses[second] - losses[best]
    half = NORMAL * float(apart.std(ddof=1)) / math.sqrt(len(apart))
    difference = float(apart.mean())
    bounds = (difference - half, difference + half)
    means = {kind: float(values.mean()) for kind, values in losses.items()}
    return ModelChoice(best, means, second, difference, bounds, _note(best, second, means, bounds, len(used)))


def _losses(model: Any, X: Any, codes: NDArray[np.int64], seed: int) -> NDArray[np.float64]:
    """Compute the log loss of each row by a model that did not see it."""
    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a class with one row; a fit near enough to compare
        chances = cross_val_predict(model, X, codes, cv=folds, method="predict_proba")
    own = chances[np.arange(len(codes)), np.searchsorted(np.unique(codes), codes)].astype(np.float64)
    return np.asarray(-np.log(np.maximum(own, SUREST)))


def _note(best: str, second: str, means: dict[str, float], bounds: tuple[float, float], rows: int) -> str:
    """Say which kind was chosen, and by how much."""
    others = ", ".join(f"{TITLES[kind]} {means[kind]:.4f}" for kind in means if kind != best)
    sure = "" if bounds[0] > 0 else f"; {TITLES[second]} may be as good"
    absent = "" if has_lightgbm() else " LightGBM is not installed: pip install 'fairsieve[lightgbm]'."
    return (
        f"--model auto chose {TITLES[best]}: its log loss on {rows:,} training rows, each predicted by a model that "
        f"did not see it, is {means[best]:.4f} ({others}), lower than that of {TITLES[second]} by "
        f"{means[second] - means[best]:.4f} (95 % interval {bounds[0]:.4f} to {bounds[1]:.4f}){sure}.{absent}"
    )
