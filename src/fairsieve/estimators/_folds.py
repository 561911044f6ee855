"""Fit copies of any classifier that takes weights, and predict samples that a copy did not see."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn import config_context
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import has_fit_parameter

from fairsieve.errors import InvalidInputError
from fairsieve.selection.cells import Cells
from fairsieve.validation import check_at_least, shown

__all__ = ["FittedCopy", "Folds", "TrainingTask", "find_weight_argument", "make_folds", "select_rows"]

Rows = NDArray[np.int64]
Folds = list[tuple[Rows, Rows]]  # the rows that each fold trains on and the rows that it predicts


def find_weight_argument(estimator: Any) -> str:
    """Return what ``fit`` calls the samples' weights; in a pipeline they go to the last step.

    >>> from sklearn.linear_model import LogisticRegression
    >>> find_weight_argument(Pipeline([("scale", "passthrough"), ("model", LogisticRegression())]))
    'model__sample_weight'
    """
    if isinstance(estimator, Pipeline):
        name, last = estimator.steps[-1]
        return f"{name}__{find_weight_argument(last)}"
    if not (hasattr(estimator, "fit") and has_fit_parameter(estimator, "sample_weight")):
        raise InvalidInputError(
            "estimator must take sample_weight in fit, since samples are selected by their weights; "
            f"got {type(estimator).__name__}, whose fit does not. Use FairRobustResampler, which returns data to "
            "train such a model on"
        )
    return "sample_weight"


class FittedCopy(NamedTuple):
    """A fitted copy of a classifier, and the classes that the columns of its probabilities stand for."""

    estimator: Any
    classes: NDArray[Any]

    def predict_proba(self, X: Any, classes: NDArray[Any]) -> NDArray[np.float64]:
        """Predict the probabilities of ``classes``, (n, classes); 0 for a class that the copy did not see."""
        found = np.asarray(self.estimator.predict_proba(X), dtype=np.float64)
        if len(self.classes) == len(classes) and (self.classes == classes).all():
            return found
        columns = np.zeros((len(found), len(classes)))
        places = {value: place for place, value in enumerate(classes.tolist())}
        columns[:, [places[value] for value in self.classes.tolist()]] = found
        return columns


@dataclass(frozen=True, eq=False, kw_only=True)
class TrainingTask:
    """A classifier, and the samples that copies of it are fitted to.

    Attributes
    ----------
    estimator : classifier
    X : any container whose rows can be selected
    labels : array of shape (n,)
    classes : array
        All labels, sorted.
    fit_params : mapping
        Further arguments of the classifier's ``fit``. Arrays and columns of n values are divided as the
        samples are; anything else is passed on as it is.
    n_jobs : int, optional
        How many folds are fitted at a time.
    """

    estimator: Any
    X: Any
    labels: NDArray[Any]
    classes: NDArray[Any]
    fit_params: Mapping[str, Any] = field(default_factory=dict)
    n_jobs: int | None = None

    def fit(self, weights: NDArray[np.float64] | None, rows: Rows | None = None) -> FittedCopy:
        """Fit a copy to ``rows``, as far as their weight is above 0; None stands for all rows, or for equal weights."""
        rows = np.arange(len(self.labels)) if rows is None else rows
        if weights is not None:
            rows = rows[weights[rows] > 0]
        complete = len(rows) == len(self.labels) and bool((rows == np.arange(len(rows))).all())
        X = self.X if complete else _safe_indexing(self.X, rows)
        labels = self.labels[rows]
        present = np.unique(labels)
        options = {name: self._select(name, value, rows, present) for name, value in self.fit_params.items()}
        if weights is not None:
            options[find_weight_argument(self.estimator)] = weights[rows]
        coded = _takes_codes_only(self.estimator)
        with config_context(
            enable_metadata_routing=False
        ):  # the pipeline gets the weights by their full name
            fitted = _copy_estimator(self.estimator).fit(
                X, np.searchsorted(present, labels) if coded else labels, **options
            )
        return FittedCopy(fitted, present if coded else _sort_out_classes(fitted.classes_, present))

    def out_of_fold(self, weights: NDArray[np.float64] | None, folds: Folds) -> NDArray[np.float64]:
        """Predict the classes of every sample, (n, classes), by copies that were not fitted to it.

        A sample that several folds predict gets the mean of their probabilities.
        """

        def predict(seen: Rows, tested: Rows) -> NDArray[np.float64]:
            labels = self.labels[seen if weights is None else seen[weights[seen] > 0]]
            present = np.unique(labels)
            if len(present) == 1:  # most classifiers refuse to be fitted to one class
                return np.asarray(np.tile(self.classes == present[0], (len(tested), 1)), dtype=np.float64)
            copy = self.fit(weights, seen)
            return copy.predict_proba(_safe_indexing(self.X, tested), self.classes)

        found = Parallel(n_jobs=self.n_jobs)(delayed(predict)(*fold) for fold in folds)
        sums, times = np.zeros((len(self.labels), len(self.classes))), np.zeros(len(self.labels))
        for (_, tested), probabilities in zip(folds, found, strict=True):
            sums[tested] += probabilities
            times[tested] += 1
        return sums if (times == 1).all() else sums / times[:, None]

    def _select(self, name: str, value: Any, rows: Rows, present: NDArray[Any]) -> Any:
        """Return what a fit to ``rows`` gets of one of the further arguments."""
        short = name.rpartition("__")[2]
        if short == "eval_set" and value is not None:
            pairs = [value] if isinstance(value, tuple) else value
            return [self._select_evaluation(pair, present) for pair in pairs]
        if short.startswith("eval_"):  # LightGBM's eval_X and eval_y: samples of their own
            return value
        return select_rows(value, rows, len(self.labels))

    def _select_evaluation(self, pair: Any, present: NDArray[Any]) -> Any:
        """Return the part of an evaluation set whose classes are ``present``, labelled as the classifier expects."""
        if not (isinstance(pair, tuple) and len(pair) == 2):
            return pair  # such as CatBoost's Pool
        X, labels = pair[0], np.asarray(pair[1]).reshape(-1)
        unknown = labels[~np.isin(labels, self.classes)]
        if len(unknown):
            known = shown(self.classes.tolist())
            raise InvalidInputError(f"eval_set must have labels among {known}; got {shown(unknown[0])}")
        inside = np.isin(labels, present)
        if not inside.all():  # a fold without a class cannot be evaluated on it
            X, labels = _safe_indexing(X, np.flatnonzero(inside)), labels[inside]
        return X, np.searchsorted(present, labels) if _takes_codes_only(self.estimator) else labels


def select_rows(value: Any, rows: Rows, samples: int) -> Any:
    """Return the rows of an array or a column that has one entry per sample; anything else as it is.

    >>> select_rows(np.array([5, 6, 7]), np.array([2]), 3).tolist(), select_rows([5, 6, 7], np.array([2]), 3)
    ([7], [5, 6, 7])
    """
    per_sample = bool(getattr(value, "shape", ())) and len(value) == samples
    return _safe_indexing(value, rows) if per_sample else value


def _copy_estimator(estimator: Any) -> Any:
    """Copy a classifier; scikit-learn's clone refuses CatBoost with ``cat_features``, which it copies itself."""
    try:
        return clone(estimator)
    except RuntimeError:
        return deepcopy(estimator)


def _takes_codes_only(estimator: Any) -> bool:
    """Return whether a classifier takes no labels but 0, 1, …, as XGBoost's does."""
    last = estimator.steps[-1][1] if isinstance(estimator, Pipeline) else estimator
    return any(kind.__module__.partition(".")[0] == "xgboost" for kind in type(last).__mro__)


def _sort_out_classes(found: Any, present: NDArray[Any]) -> NDArray[Any]:
    """Return the classes in the order of the columns, as labels of our own type.

    CatBoost turns True into the text "True", and may order texts in its own way.
    """
    own = {str(value): value for value in present.tolist()}
    names = [str(value) for value in np.asarray(found).reshape(-1).tolist()]
    if len(own) == len(present) and set(names) == set(own):
        return np.array([own[name] for name in names], dtype=present.dtype)
    return present if len(names) == len(present) else np.asarray(found)


def make_folds(cv: Any, X: Any, cells: Cells, rows: Rows, given: int, seed: int) -> Folds:
    """Return the folds that ``cv`` asks for.

    Parameters
    ----------
    cv : None, int, splitter or iterable
        None trains on all samples and predicts the same ones. A number deals every cell evenly. A splitter
        splits ``X``. An iterable holds pairs of rows, (train, test), of the samples as they were given.
    X : features, for a splitter
    cells : Cells
        Classes and groups of the samples that have a weight.
    rows : integer array
        Where these samples stand among those that were given.
    given : int
        How many samples were given.
    seed : int
    """
    everyone = np.arange(len(cells))
    if cv is None:
        return [(everyone, everyone)]
    if isinstance(cv, Integral):
        return _deal_folds(check_at_least("cv", cv, 2), cells, seed)
    if hasattr(cv, "split") and not isinstance(cv, str):
        return _check_folds(_split(cv, X, np.asarray(cells.classes)[cells.label_codes]), everyone, len(cells))
    if isinstance(cv, str) or not isinstance(cv, Iterable):
        raise InvalidInputError(
            "cv must be None, a whole number of at least 2, a splitter or an iterable of pairs of rows, "
            f"(train, test); got {shown(cv)}"
        )
    return _check_folds(cv, rows, given)


def _deal_folds(cv: int, cells: Cells, seed: int) -> Folds:
    """Deal the samples of every cell evenly over ``cv`` folds."""
    if cv > len(cells):
        raise InvalidInputError(f"cv must not exceed the samples, {len(cells)}; got {cv}")
    dealt = np.lexsort((np.random.default_rng(seed).random(len(cells)), cells.codes))
    fold = np.empty(len(cells), np.int64)
    fold[dealt] = np.arange(len(cells)) % cv
    return [(np.flatnonzero(fold != number), np.flatnonzero(fold == number)) for number in range(cv)]


def _split(splitter: Any, X: Any, labels: NDArray[Any]) -> list[Any]:
    """Return the folds of a scikit-learn splitter, which must not need groups."""
    try:
        return list(splitter.split(X, labels))
    except ValueError as error:
        if "groups" not in str(error):
            raise
        name = type(splitter).__name__
        raise InvalidInputError(
            f"cv must split without groups; {name} does not: pass the rows, cv=list({name}().split(X, y, groups))"
        ) from None


def _check_folds(pairs: Iterable[Any], rows: Rows, given: int) -> Folds:
    """Check folds of rows; leave out the rows that have no weight, and number the others anew."""
    place = np.full(given, -1)
    place[rows] = np.arange(len(rows))
    folds: Folds = []
    for number, pair in enumerate(pairs):
        if not (isinstance(pair, tuple | list) and len(pair) == 2):
            raise InvalidInputError(
                f"cv must be pairs of rows, (train, test); fold {number} is {shown(pair)}"
            )
        seen, tested = (place[_check_rows(part, number, given)] for part in pair)
        folds.append((seen[seen >= 0], tested[tested >= 0]))
        if not len(folds[-1][0]):
            raise InvalidInputError(
                f"cv must leave samples to train on in every fold; fold {number} has none"
            )
    if not folds:
        raise InvalidInputError(
            "cv must have at least one fold; got none: an iterator can be used once, so pass a list"
        )
    missing = len(rows) - len(np.unique(np.concatenate([part for _, part in folds])))
    if missing:
        raise InvalidInputError(
            f"cv must put every sample into a test fold; {missing} samples are in none: use for example "
            "sklearn.model_selection.KFold"
        )
    return folds


def _check_rows(part: Any, number: int, given: int) -> Rows:
    """Check the rows of one part of a fold; a mask becomes rows."""
    found = np.asarray(part)
    if found.dtype == bool and found.shape == (given,):
        found = np.flatnonzero(found)
    if found.size and found.dtype.kind not in "iu":
        raise InvalidInputError(f"cv must hold whole numbers of rows; fold {number} holds {found.dtype}")
    found = found.reshape(-1).astype(np.int64)
    outside = found[(found < 0) | (found >= given)]
    if len(outside):
        raise InvalidInputError(f"cv must hold rows from 0 to {given - 1}; fold {number} holds {outside[0]}")
    return found
