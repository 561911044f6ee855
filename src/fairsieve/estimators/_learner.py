"""What a sieve wraps: check any classifier and what it is given, fit copies, predict what a copy did not see."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field, replace
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from sklearn import config_context
from sklearn.base import clone, is_regressor
from sklearn.dummy import DummyClassifier
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing, assert_all_finite, indexable
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import column_or_1d, has_fit_parameter

from fairsieve.errors import InvalidInputError
from fairsieve.samples import (
    Checked,
    Samples,
    as_copies,
    check_classes,
    check_columns,
    check_groups,
    check_labels_known,
    dense,
    find_copies,
    shuffled_places,
    warn_of_alike,
    weighted_rows,
)
from fairsieve.selection.cells import Cells, Floats, Integers, Values, as_array, missing_in, unmasked
from fairsieve.validation import check_at_least, shown

Rows = Integers
Folds = list[tuple[Rows, Rows]]  # the rows that each fold trains on and the rows that it predicts

MOST_VALUES = 20  # most indicator columns for one column of categories; rarer values get none


def check_estimator(estimator: Any) -> None:
    """Check that this is a classifier that takes weights and predicts probabilities."""
    if isinstance(estimator, type):
        name = estimator.__name__
        raise InvalidInputError(f"estimator must be a classifier, not its class; got {name}: pass {name}()")
    name = type(estimator).__name__
    if hasattr(estimator, "fit") and is_regressor(estimator):
        advice = name.replace("Regressor", "Classifier")
        advice = f"pass {advice}()" if advice != name else "pass a classifier"
        raise InvalidInputError(
            f"estimator must be a classifier, since classes are predicted; got the regressor {name}: {advice}"
        )
    _find_weight_argument(estimator)
    if not hasattr(estimator, "predict_proba"):
        raise InvalidInputError(
            "estimator must have predict_proba, which the losses come from; got "
            f"{name}: wrap it in sklearn.calibration.CalibratedClassifierCV"
        )


def _find_weight_argument(estimator: Any) -> str:
    """Return what ``fit`` calls the samples' weights; in a pipeline they go to the last step.

    >>> from sklearn.linear_model import LogisticRegression
    >>> _find_weight_argument(Pipeline([("scale", "passthrough"), ("model", LogisticRegression())]))
    'model__sample_weight'
    """
    if isinstance(estimator, Pipeline):
        name, last = estimator.steps[-1]
        return f"{name}__{_find_weight_argument(last)}"
    if not (hasattr(estimator, "fit") and has_fit_parameter(estimator, "sample_weight")):
        raise InvalidInputError(
            "estimator must take sample_weight in fit, since samples are selected by their weights; "
            f"got {type(estimator).__name__}, whose fit does not. Use FairRobustResampler, which returns data to "
            "train such a model on"
        )
    return "sample_weight"


def check_targets(name: str, X: Any, y: Any) -> tuple[Any, Values]:
    """Return the features in a container whose rows can be selected, and their labels.

    Parameters
    ----------
    name : str
        The estimator that asks, for the message about missing labels.
    X : any table
    y : n labels
    """
    if y is None:
        raise InvalidInputError(f"{name} requires y to be passed, but the target y is None: pass the labels")
    if X is None:
        raise InvalidInputError("X must be a table of features; got None: pass an array or a data frame")
    check_columns(X)
    check_labels_known(y)
    X, labels = indexable(unmasked(X, numbers=True), column_or_1d(y, warn=True))
    if len(labels) == 0:
        raise InvalidInputError("X and y must have at least one sample; got 0 samples")
    if labels.dtype.kind == "f":
        assert_all_finite(labels, input_name="y")
    kind = type_of_target(labels, input_name="y")
    if kind in ("binary", "multiclass"):
        return X, labels
    fractional = labels[labels != np.floor(labels)] if labels.dtype.kind == "f" else labels
    # the beginning of the message is scikit-learn's
    raise InvalidInputError(
        f"Unknown label type: {kind}. y must hold classes, and not measurements, for which one fits a regressor; "
        f"got {len(np.unique(labels.astype(str)))} different values such as {shown(fractional[0])}: put them into "
        "ranges, for example by numpy.digitize"
    )


def check_sieve_samples(
    X: Any, labels: Values, sensitive_features: Any, sample_weight: ArrayLike | None
) -> Checked:
    """Check labels, groups and weights; the features are left to the classifier, and encoded for the estimate."""
    groups = check_groups(sensitive_features, len(labels))
    rows, weights = weighted_rows(sample_weight, len(labels))
    check_classes(labels, rows)
    data = Samples(encode_table(_safe_indexing(X, rows)), labels[rows], groups[rows], missing="own")
    warn_of_alike(data.cells)
    return Checked(data, None if weights is None else as_copies(weights), rows, len(labels))


def encode_table(X: Any) -> Floats:
    """Keep numeric columns, with missing values replaced by the median; encode each category as a column.

    >>> encode_table([[1.0, "red"], [np.nan, "blue"], [3.0, None]]).tolist()
    [[1.0, 0.0, 0.0, 1.0], [2.0, 0.0, 1.0, 0.0], [3.0, 1.0, 0.0, 0.0]]
    """
    table = _as_table(X)
    if isinstance(table, np.ndarray) and table.dtype.kind in "fiub" and np.isfinite(table).all():
        return np.asarray(table, dtype=np.float64)
    return np.column_stack([_encode_column(as_array("X", column)) for column in _columns(table)])


def _as_table(X: Any) -> Any:
    """Return a table with columns, or an array of two dimensions."""
    if hasattr(X, "columns"):
        return X
    table = dense(X)
    if table.dtype.kind in "US":  # a list of mixed rows
        table = np.asarray(X, dtype=object)
    return table.reshape(len(table), -1)


def _columns(table: Any) -> list[Any]:
    return [_safe_indexing(table, index, axis=1) for index in range(table.shape[1])]


def _encode_column(column: Values) -> Floats:
    """Encode one column as one or more numeric columns."""
    missing, numbers = missing_in(column), np.full(len(column), np.nan)
    if column.dtype.kind in "mM":
        column = column.astype(np.int64)
    try:
        numbers[~missing] = column[~missing].astype(np.float64)
    except (TypeError, ValueError):  # an indicator for each of the most common values
        values = np.where(missing, "", column.astype(str))
        _, codes, counts = np.unique(values, return_inverse=True, return_counts=True)
        common = np.sort(np.argsort(-counts, kind="stable")[:MOST_VALUES])
        return np.asarray(codes.reshape(-1, 1) == common, dtype=np.float64)
    known = np.isfinite(numbers)
    return np.where(known, numbers, np.median(numbers[known]) if known.any() else 0.0)


class FittedCopy(NamedTuple):
    """A fitted copy of a classifier, and the classes that the columns of its probabilities stand for."""

    estimator: Any
    classes: Values

    def predict_proba(self, X: Any, classes: Values) -> Floats:
        """Predict the probabilities of ``classes``, (n, classes); 0 for a class that the copy did not see."""
        found = np.asarray(self.estimator.predict_proba(X), dtype=np.float64)
        columns, known = np.zeros((len(found), len(classes))), classes.tolist()
        columns[:, [known.index(value) for value in self.classes.tolist()]] = found
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
    own : array of shape (n,), optional
        The samples' own weights, which multiply all others.
    """

    estimator: Any
    X: Any
    labels: Values
    classes: Values
    fit_params: Mapping[str, Any] = field(default_factory=dict)
    own: Floats | None = None

    def under(self, labels: Values, rows: Rows) -> TrainingTask:
        """Return the task of fitting to some rows, ascending and some more than once, under other labels."""
        params = {name: select_rows(value, rows, len(self.labels)) for name, value in self.fit_params.items()}
        own = None if self.own is None else self.own[rows]
        return replace(self, X=_safe_indexing(self.X, rows), labels=labels, fit_params=params, own=own)

    def fit(self, weights: Floats | None, rows: Rows | None = None) -> FittedCopy:
        """Fit a copy to ``rows``; None stands for all rows, or for equal weights.

        Rows of weight 0 are left out. Below 0, a row of one of two classes is taken for one of the other.
        """
        rows = np.arange(len(self.labels)) if rows is None else rows
        weights = self._multiply(weights)
        if weights is not None:
            rows = rows[weights[rows] != 0]
        complete = len(rows) == len(self.labels) and bool((rows == np.arange(len(rows))).all())
        X = self.X if complete else _safe_indexing(self.X, rows)
        labels = self.labels[rows]
        if weights is not None and (weights[rows] < 0).any():
            other = np.where(labels == self.classes[0], self.classes[1], self.classes[0])
            labels = np.where(weights[rows] < 0, other, labels)
        present = np.unique(labels)
        if len(present) == 1:  # most classifiers refuse to be fitted to one class
            return FittedCopy(DummyClassifier().fit(X, labels), present)
        options = {name: self._select(name, value, rows, present) for name, value in self.fit_params.items()}
        if weights is not None:
            options[_find_weight_argument(self.estimator)] = np.abs(weights[rows])
        coded = _takes_codes_only(self.estimator)
        try:
            copy = clone(self.estimator)
        except RuntimeError:  # it refuses CatBoost with ``cat_features``, which copies itself
            copy = deepcopy(self.estimator)
        with config_context(enable_metadata_routing=False):  # a pipeline gets the weights by their full name
            fitted = copy.fit(X, np.searchsorted(present, labels) if coded else labels, **options)
        return FittedCopy(fitted, present if coded else _sort_out_classes(fitted.classes_, present))

    def out_of_fold(self, weights: Floats | None, folds: Folds, n_jobs: int | None = None) -> Floats:
        """Predict the classes of every sample, (n, classes), by copies that were not fitted to it.

        A sample that several folds predict gets the mean of their probabilities.
        """

        def predict(seen: Rows, tested: Rows) -> Floats:
            return self.fit(weights, seen).predict_proba(_safe_indexing(self.X, tested), self.classes)

        found = Parallel(n_jobs=n_jobs)(delayed(predict)(*fold) for fold in folds)
        sums, times = np.zeros((len(self.labels), len(self.classes))), np.zeros(len(self.labels))
        for (_, tested), probabilities in zip(folds, found, strict=True):
            sums[tested] += probabilities
            times[tested] += 1
        return sums if (times == 1).all() else sums / times[:, None]

    def _multiply(self, weights: Floats | None) -> Floats | None:
        """Multiply weights by the samples' own; either may be None for ones."""
        return self.own if weights is None else weights if self.own is None else weights * self.own

    def _select(self, name: str, value: Any, rows: Rows, present: Values) -> Any:
        """Return what a fit to ``rows`` gets of one of the further arguments."""
        short = name.rpartition("__")[2]
        if short == "eval_set" and value is not None:
            pairs = [value] if isinstance(value, tuple) else value
            return [self._select_evaluation(pair, present) for pair in pairs]
        if short.startswith("eval_"):  # LightGBM's eval_X and eval_y: samples of their own
            return value
        return select_rows(value, rows, len(self.labels))

    def _select_evaluation(self, pair: Any, present: Values) -> Any:
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


def _takes_codes_only(estimator: Any) -> bool:
    """Return whether a classifier takes no labels but 0, 1, …, as XGBoost's does."""
    last = estimator.steps[-1][1] if isinstance(estimator, Pipeline) else estimator
    return any(kind.__module__.partition(".")[0] == "xgboost" for kind in type(last).__mro__)


def _sort_out_classes(found: Any, present: Values) -> Values:
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
        None trains on all samples and predicts the same ones. A number deals every cell evenly, copies to one fold. A
        splitter splits ``X``. An iterable holds pairs of rows, (train, test), of the samples as they were given.
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
        if check_at_least("cv", cv, 2) > len(cells):
            raise InvalidInputError(f"cv must not exceed the samples, {len(cells)}; got {cv}")
        copies = _copies(X, cells)
        if copies is not None and copies.max() < cv:  # too few different ones
            copies = None
        fold = shuffled_places(cells, seed, copies) % cv
        return [(np.flatnonzero(fold != number), np.flatnonzero(fold == number)) for number in range(cv)]
    if hasattr(cv, "split") and not isinstance(cv, str):
        return _check_folds(_split(cv, X, np.asarray(cells.classes)[cells.label_codes]), everyone, len(cells))
    if isinstance(cv, str) or not isinstance(cv, Iterable):
        raise InvalidInputError(
            "cv must be None, a whole number of at least 2, a splitter or an iterable of pairs of rows, "
            f"(train, test); got {shown(cv)}"
        )
    return _check_folds(cv, rows, given)


def _copies(X: Any, cells: Cells) -> Integers | None:
    """Find copies of samples: a classifier that learnt one by heart is not to be asked about the other."""
    values = _as_table(X)
    if hasattr(values, "columns") or values.dtype.kind not in "fiub":
        values = {place: as_array("X", column).astype(str) for place, column in enumerate(_columns(values))}
    return find_copies(pd.DataFrame(values), cells.group_codes)


def _split(splitter: Any, X: Any, labels: Values) -> list[Any]:
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
