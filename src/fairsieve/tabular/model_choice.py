"""Choose a kind of model for a table: the one whose predictions of unseen training rows fit their labels best."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold

from fairsieve.tabular.boosted_trees import NativeTrees, has_lightgbm
from fairsieve.tabular.preparation import TablePart, TableProblem
from fairsieve.tabular.reading.encoding import Preparation

__all__ = ["TITLES", "ModelChoice", "choose_model"]

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
    codes = used.label_codes
    folds = list(_split(codes, seed))
    losses = {"logistic": _losses(_logistic(used), codes, folds)}
    kinds = ["lightgbm", "hist-gradient-boosting"] if has_lightgbm() else ["hist-gradient-boosting"]
    prepared = Preparation(one_hot=False).fit(used.values)
    matrix, categories = prepared.transform(used.values), len(prepared.categories_)
    for kind in kinds:
        losses[kind] = _losses(_trees(matrix, NativeTrees(kind, trees, seed, categories)), codes, folds)
    ranked = sorted(losses, key=lambda kind: float(losses[kind].mean()))
    best, second = ranked[:2]
    apart = losses[second] - losses[best]
    half = NORMAL * float(apart.std(ddof=1)) / math.sqrt(len(apart))
    difference = float(apart.mean())
    bounds = (difference - half, difference + half)
    means = {kind: float(values.mean()) for kind, values in losses.items()}
    return ModelChoice(best, means, second, difference, bounds, _note(best, second, means, bounds, len(used)))


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


def _split(codes: NDArray[np.int64], seed: int) -> Any:
    """Yield the rows to fit to and the rows to predict."""
    fewest = int(np.bincount(codes)[np.unique(codes)].min())
    folds = max(2, min(FOLDS, fewest))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a class with one row
        yield from StratifiedKFold(folds, shuffle=True, random_state=seed).split(codes, codes)


Predict = Callable[[NDArray[Any], NDArray[Any], NDArray[np.int64]], tuple[Any, NDArray[np.float64]]]


def _losses(predict: Predict, codes: NDArray[np.int64], folds: list[Any]) -> NDArray[np.float64]:
    """Compute the log loss of each row by a model that did not see it."""
    found = np.empty(len(codes))
    for inside, outside in folds:
        classes, chances = predict(inside, outside, codes)
        places = {int(code): place for place, code in enumerate(classes)}
        column = np.array([places.get(int(code), -1) for code in codes[outside]])
        own = np.where(column >= 0, chances[np.arange(len(outside)), column], 0.0)
        found[outside] = -np.log(np.maximum(own, SUREST))
    return found


def _logistic(part: TablePart) -> Predict:
    """Return a function that fits logistic regression to some rows and predicts others."""

    def predict(inside: NDArray[Any], outside: NDArray[Any], codes: NDArray[np.int64]) -> tuple[Any, Any]:
        seen = part.take(inside)
        prepared = Preparation().fit(seen.values)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # near enough to compare
            model = LogisticRegression(C=100.0, max_iter=200).fit(
                prepared.transform(seen.values), codes[inside]
            )
        return model.classes_, model.predict_proba(prepared.transform(part.take(outside).values))

    return predict


def _trees(matrix: NDArray[np.float64], trees: NativeTrees) -> Predict:
    """Return a function that fits trees to some rows and predicts others."""

    def predict(inside: NDArray[Any], outside: NDArray[Any], codes: NDArray[np.int64]) -> tuple[Any, Any]:
        model = trees.fit(matrix[inside], codes[inside])
        return model.classes_, model.predict_proba(matrix[outside])

    return predict
