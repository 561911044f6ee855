"""Boosted trees for tables: LightGBM's, and scikit-learn's own."""

from __future__ import annotations

from copy import copy
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.ensemble import HistGradientBoostingClassifier

from fairsieve.optional import require

__all__ = ["BoosterClassifier", "NativeTrees", "has_lightgbm", "import_lightgbm", "named_trees"]

FEW_ROWS = 20_000  # for which several threads of LightGBM cost more than they save


def has_lightgbm() -> bool:
    """Return whether LightGBM is installed, without importing it."""
    return find_spec("lightgbm") is not None


def import_lightgbm(purpose: str) -> Any:
    """Import LightGBM, or raise an error that says how to install it."""
    return require("lightgbm", extra="lightgbm", purpose=purpose)


class NativeTrees(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
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

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict the likeliest class of each row."""
        return np.asarray(self.classes_[self.predict_proba(X).argmax(axis=1)])


class BoosterClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A booster of LightGBM that predicts labels by their names; it is made fitted.

    Parameters
    ----------
    booster : lightgbm.Booster
    classes : sequence of str
    """

    def __init__(self, booster: Any, classes: Any) -> None:
        self.booster = booster
        self.classes = classes

    @property
    def classes_(self) -> NDArray[np.str_]:
        """The labels."""
        return np.asarray(self.classes, dtype=np.str_)

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def fit(self, X: Any, y: Any) -> BoosterClassifier:
        """Return the classifier, which is fitted already."""
        return self

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Predict the probabilities of ``classes_``, an array of shape (n, classes)."""
        found = np.asarray(self.booster.predict(np.asarray(X, dtype=np.float64)), dtype=np.float64)
        return np.column_stack([1 - found, found]) if found.ndim == 1 else found

    def predict(self, X: Any) -> NDArray[np.str_]:
        """Predict the likeliest label of each row."""
        return np.asarray(self.classes_[self.predict_proba(X).argmax(axis=1)])


def named_trees(fitted: NativeTrees, classes: Any) -> Any:
    """Return the trees alone, with labels by their names."""
    names = np.asarray(classes, dtype=np.str_)
    if fitted.model == "lightgbm":
        return BoosterClassifier(fitted.trees_.booster_, names.tolist())
    named = copy(fitted.trees_)
    named.classes_ = names
    return named
