"""Clean and fair data for people who train elsewhere, in imbalanced-learn's convention."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import has_fit_parameter

from fairsieve.errors import InvalidInputError
from fairsieve.estimators.classifier import FairRobustClassifier
from fairsieve.inputs import check_groups, seed_of
from fairsieve.selection.batches import batch_shares, draw_batches
from fairsieve.selection.cells import Cells
from fairsieve.validation import shown

__all__ = ["FairRobustResampler"]


class FairRobustResampler(BaseEstimator):  # type: ignore[misc]
    """Resamples data to what a fair and robust classifier trained on at last.

    Samples that look wrongly labelled are left out, and the rest are drawn so that every group has
    the share of each class that the classifier arrived at. What comes back has as many rows as the
    classifier kept; rows of cells whose share grew appear more than once.

    Parameters
    ----------
    estimator : estimator, optional
        What selects: fitted with ``sensitive_features``, it has ``sample_indices_`` and ``ratios_``.
        :class:`~fairsieve.estimators.classifier.FairRobustClassifier` when None.
    random_state : int, RandomState or None
        Decides which rows are drawn (and the classifier, when ``estimator`` is None).

    Attributes
    ----------
    sample_indices_ : integer array
        Rows of the data that came back, ascending, some more than once.
    sensitive_features_ : as given
        The groups of those rows; None, where none were given.
    estimator_ : estimator
        The fitted one.

    Examples
    --------
    >>> from fairsieve.data import make_synthetic
    >>> data = make_synthetic(500, seed=0)
    >>> selector = FairRobustClassifier(clean_ratio=0.9, epochs=20, warmup_epochs=5, random_state=0)
    >>> resampler = FairRobustResampler(selector, random_state=0)
    >>> X, y = resampler.fit_resample(data.features, data.labels, sensitive_features=data.groups)
    >>> len(X) == len(y) == len(resampler.sensitive_features_) <= 450
    True
    """

    def __init__(self, estimator: Any | None = None, random_state: Any = None) -> None:
        self.estimator = estimator
        self.random_state = random_state

    def fit_resample(self, X: Any, y: ArrayLike, sensitive_features: Any = None) -> tuple[Any, Any]:
        """Select, draw, and return the rows of X and y in the containers that they came in.

        Two values, so that it fits into imbalanced-learn's pipelines; the aligned groups are in
        ``sensitive_features_``, and any other column follows from ``sample_indices_``. In such a
        pipeline ``set_fit_resample_request(sensitive_features=True)`` asks for the groups, where
        imblearn, which adds that method, was imported first.
        """
        seed = seed_of(self.random_state)
        if self.estimator is not None and not has_fit_parameter(self.estimator, "sensitive_features"):
            raise InvalidInputError(
                "estimator must take sensitive_features in fit, as FairRobustClassifier does; got "
                f"{shown(self.estimator)}: pass None for that one"
            )
        selector = (
            FairRobustClassifier(random_state=seed) if self.estimator is None else clone(self.estimator)
        )
        self.estimator_ = selector.fit(X, y, sensitive_features=sensitive_features)
        rows = _resampled_rows(self.estimator_, y, sensitive_features, seed)
        self.sample_indices_ = rows
        self.sensitive_features_ = None if sensitive_features is None else rows_of(sensitive_features, rows)
        return rows_of(X, rows), rows_of(y, rows)


def _resampled_rows(selector: Any, y: ArrayLike, sensitive_features: Any, seed: int) -> NDArray[np.int64]:
    """The selection drawn anew, each cell by its ratio, whole rounds of it first."""
    samples = np.shape(y)[0]
    cells = Cells.of(
        y,
        check_groups(sensitive_features, samples),
        classes=list(selector.classes_),
        group_values=selector.sensitive_values_,
        missing="own",
    )
    chosen = np.asarray(selector.sample_indices_, dtype=np.int64)
    counts = np.bincount(cells.codes[chosen], minlength=cells.counts.size)
    if len(chosen) == 0:
        return chosen
    shares = batch_shares(selector.ratios_, counts, len(chosen))
    return np.sort(draw_batches(chosen, cells.codes, counts, shares, 1, seed, 0)[0])


def rows_of(values: Any, rows: NDArray[np.int64]) -> Any:
    """Rows of an array, sparse matrix, data frame or list, in the same container."""
    return _safe_indexing(values, rows)
