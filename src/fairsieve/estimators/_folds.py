"""Any classifier that takes weights, fitted, and asked about samples that it did not see."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn import config_context
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import has_fit_parameter

from fairsieve.errors import InvalidInputError
from fairsieve.estimators.resampler import rows_of
from fairsieve.selection.cells import Cells

__all__ = ["fit_weighted", "out_of_fold", "parts_of", "weight_argument"]

Parts = list[tuple[NDArray[np.int64], NDArray[np.int64]]]  # (seen, shown) of each fold


def weight_argument(estimator: Any) -> str:
    """What ``fit`` calls a sample's weight; in a pipeline it goes to the last step.

    >>> from sklearn.linear_model import LogisticRegression
    >>> weight_argument(Pipeline([("scale", "passthrough"), ("model", LogisticRegression())]))
    'model__sample_weight'
    """
    if isinstance(estimator, Pipeline):
        name, last = estimator.steps[-1]
        return f"{name}__{weight_argument(last)}"
    if not (hasattr(estimator, "fit") and has_fit_parameter(estimator, "sample_weight")):
        raise InvalidInputError(
            "estimator must take sample_weight in fit, since samples are chosen by their weights; "
            f"got {type(estimator).__name__}, whose fit does not. FairRobustResampler hands back data to train "
            "such a model on"
        )
    return "sample_weight"


def fit_weighted(estimator: Any, X: Any, labels: NDArray[Any], weights: NDArray[np.float64] | None) -> Any:
    """A copy of ``estimator``, fitted to the samples that have a weight."""
    argument = weight_argument(estimator)
    options = {}
    if weights is not None:
        rows = np.flatnonzero(weights > 0)
        if len(rows) < len(labels):
            X, labels, weights = rows_of(X, rows), labels[rows], weights[rows]
        options = {argument: weights}
    with config_context(enable_metadata_routing=False):  # the weights' way through a pipeline is ours
        return clone(estimator).fit(X, labels, **options)


def _class_probabilities(fitted: Any, X: Any, classes: NDArray[Any]) -> NDArray[np.float64]:
    """Probabilities of ``classes``, (n, classes); 0 for those that ``fitted`` has not seen."""
    found = np.asarray(fitted.predict_proba(X), dtype=np.float64)
    if len(fitted.classes_) == len(classes):
        return found
    every = np.zeros((len(found), len(classes)))
    every[:, np.searchsorted(classes, fitted.classes_)] = found
    return every


def parts_of(cells: Cells, cv: int | None, seed: int) -> Parts:
    """Folds over which every cell is spread; in-sample, where ``cv`` is None."""
    everyone = np.arange(len(cells))
    if cv is None:
        return [(everyone, everyone)]
    if cv > len(cells):
        raise InvalidInputError(f"cv must not exceed the samples, {len(cells)}; got {cv}")
    dealt = np.lexsort((np.random.default_rng(seed).random(len(cells)), cells.codes))
    fold = np.empty(len(cells), np.int64)
    fold[dealt] = everyone % cv
    return [(np.flatnonzero(fold != number), np.flatnonzero(fold == number)) for number in range(cv)]


def out_of_fold(
    estimator: Any,
    X: Any,
    labels: NDArray[Any],
    classes: NDArray[Any],
    weights: NDArray[np.float64] | None,
    parts: Parts,
    n_jobs: int | None,
) -> NDArray[np.float64]:
    """Probabilities of the classes for every sample, by a copy of ``estimator`` that did not see it."""

    def ask(seen: NDArray[np.int64], shown: NDArray[np.int64]) -> NDArray[np.float64]:
        known = labels[seen]
        own = None if weights is None else weights[seen]
        present = np.unique(known if own is None else known[own > 0])
        if len(present) == 1:  # nothing to tell apart
            return np.asarray(np.tile(classes == present[0], (len(shown), 1)), dtype=np.float64)
        fitted = fit_weighted(estimator, rows_of(X, seen), known, own)
        return _class_probabilities(fitted, rows_of(X, shown), classes)

    answers = Parallel(n_jobs=n_jobs)(delayed(ask)(*part) for part in parts)
    probabilities = np.empty((len(labels), len(classes)))
    for (_, shown), answer in zip(parts, answers, strict=True):
        probabilities[shown] = answer
    return probabilities
