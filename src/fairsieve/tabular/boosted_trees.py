"""Boosted trees for tables: LightGBM's, and scikit-learn's own."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.ensemble import HistGradientBoostingClassifier

from fairsieve.optional import require

__all__ = ["BoosterClassifier", "NativeTrees", "bare_trees", "has_lightgbm", "import_lightgbm"]

FEW_ROWS = 20_000  # for which several threads of LightGBM cost more than they save
KEPT = (  # what scikit-learn's trees need to predict, beside what is set anew
    "_baseline_prediction",
    "_bin_mapper",
    "_loss",
    "_predictors",
    "n_features_in_",
    "n_trees_per_iteration_",
)


def has_lightgbm() -> bool:
    """Return whether LightGBM is installed, without importing it."""
    return find_spec("lightgbm") is not None


def import_lightgbm(purpose: str) -> Any:
    """Import LightGBM, or raise an error that says how to install it."""
    return require("lightgbm", extra="lightgbm", purpose=purpose)


class NativeTrees(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Boosted trees that take categories and missing values of a data frame as they are.

    Parameters
    ----------
    model : {"lightgbm", "hist-gradient-boosting"}
    trees : int
        How many, for each class where there are more than two.
    random_state : int

    Attributes
    ----------
    trees_ : LGBMClassifier or HistGradientBoostingClassifier
        Fitted to numbers, categories being codes.
    classes_ : array
    """

    def __init__(self, model: str, trees: int = 100, random_state: int = 0) -> None:
        self.model = model
        self.trees = trees
        self.random_state = random_state

    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> NativeTrees:
        """Fit the trees to a data frame whose categories are of pandas' own type, and come first."""
        categories = [place for place, dtype in enumerate(X.dtypes) if dtype == "category"]
        matrix = _matrix(X)
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
        return np.asarray(self.trees_.predict_proba(_matrix(X)), dtype=np.float64)

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict the likeliest class of each row."""
        return np.asarray(self.classes_[self.predict_proba(X).argmax(axis=1)])


def _matrix(X: Any) -> NDArray[np.float64]:
    """Return a data frame as numbers: codes for categories, NaN for what is missing."""
    columns = []
    for name in X.columns:
        column = X[name]
        if column.dtype == "category":
            codes = column.cat.codes.to_numpy().astype(np.float64)
            columns.append(np.where(codes < 0, np.nan, codes))
        else:
            columns.append(column.to_numpy(dtype=np.float64))
    return np.column_stack(columns)


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


def bare_trees(fitted: NativeTrees, classes: Any) -> tuple[Any, list[NDArray[np.int64]] | None]:
    """Return the trees alone, with labels by their names, and the codes that they know of each category.

    scikit-learn's trees have an encoder of their own inside, which only repeats codes that are codes already, and
    which no file without code can hold. It is left out. Where a category has no row, the encoder numbers the others
    anew; so must the preparation, hence the codes.
    """
    names = np.asarray(classes, dtype=np.str_)
    inner = fitted.trees_
    if fitted.model == "lightgbm":
        return BoosterClassifier(inner.booster_, names.tolist()), None
    bare = HistGradientBoostingClassifier(**inner.get_params())
    for name in KEPT:
        setattr(bare, name, getattr(inner, name))
    bare._preprocessor, bare.classes_ = None, names
    if inner._preprocessor is None:
        return bare, None
    encoder = inner._preprocessor.named_transformers_["encoder"]
    return bare, [known[~np.isnan(known)].astype(np.int64) for known in encoder.categories_]
