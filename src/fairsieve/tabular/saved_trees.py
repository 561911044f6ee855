"""Check scikit-learn's boosted trees that come from a file, and build them anew from what was checked.

Their prediction follows the places of children and features without looking. So nothing of a file is used but arrays,
each of which is checked, and everything else is made here.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn._loss import HalfBinomialLoss, HalfMultinomialLoss
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.ensemble._hist_gradient_boosting.binning import _BinMapper
from sklearn.ensemble._hist_gradient_boosting.common import PREDICTOR_RECORD_DTYPE
from sklearn.ensemble._hist_gradient_boosting.predictor import TreePredictor
from sklearn.preprocessing import FunctionTransformer, OrdinalEncoder

from fairsieve.tabular.reading.native_encoding import native_preparation

__all__ = ["rebuild_native", "rebuild_trees"]

MOST_TREES = 1_000_000
BITS = 256  # categories that a set can hold


def rebuild_native(prepared: ColumnTransformer) -> ColumnTransformer:
    """Build a preparation for trees from the names of its columns and categories alone."""
    numbers: list[str] = []
    categories: dict[str, list[str]] = {}
    for name, part, columns in prepared.transformers_:
        if name == "numbers" and type(part) is FunctionTransformer:
            numbers = [str(column) for column in columns]
        elif name == "categories" and type(part) is OrdinalEncoder:
            pairs = zip(columns, part.categories_, strict=True)
            categories = {str(column): [str(text) for text in known] for column, known in pairs}
        else:
            raise ValueError("its preparation is not one of fairsieve's")
    if any(not 1 <= len(known) == len(set(known)) for known in categories.values()):
        raise ValueError("its categories are not different")
    return native_preparation(numbers, categories)


def rebuild_trees(kept: Any, categories: int) -> HistGradientBoostingClassifier:
    """Build a classifier from the arrays of one in a file, whose first features are so many categories."""
    classes = np.asarray(kept.classes_, dtype=np.str_)
    features, outputs = int(kept.n_features_in_), 1 if len(classes) == 2 else len(classes)
    if classes.ndim != 1 or len(classes) < 2 or features < 1 or not 0 <= categories <= features:
        raise ValueError("it has no classes or no features")
    made = HistGradientBoostingClassifier(categorical_features=list(range(categories)) or None)
    made.classes_, made.n_features_in_, made.n_trees_per_iteration_ = classes, features, outputs
    made._preprocessor = None
    made._loss = HalfBinomialLoss() if outputs == 1 else HalfMultinomialLoss(n_classes=outputs)
    made._baseline_prediction = _finite(kept._baseline_prediction, (1, outputs))
    made._bin_mapper, sets = _rebuild_bins(kept._bin_mapper, features, categories)
    rounds = list(kept._predictors)
    if not 0 < len(rounds) * outputs <= MOST_TREES or any(len(trees) != outputs for trees in rounds):
        raise ValueError("it has another number of trees")
    made._predictors = [[_rebuild_tree(tree, features, sets) for tree in trees] for trees in rounds]
    return made


def _rebuild_bins(kept: Any, features: int, categories: int) -> tuple[_BinMapper, NDArray[np.bool_]]:
    """Build what tells the categories that were seen in training; return which features are categories, too."""
    sets = np.arange(features) < categories
    made = _BinMapper(is_categorical=sets.astype(np.uint8))
    made.is_categorical_ = sets.astype(np.uint8)
    thresholds = list(kept.bin_thresholds_)
    if len(thresholds) != features:
        raise ValueError("it knows other features")
    made.bin_thresholds_ = [np.zeros(0)] * features
    for place in np.flatnonzero(sets):
        known = np.asarray(thresholds[place], dtype=np.float64)
        if known.ndim != 1 or not np.isin(known, np.arange(BITS)).all():
            raise ValueError("it knows categories that have no place")
        made.bin_thresholds_[place] = known
    return made, sets


def _rebuild_tree(kept: Any, features: int, sets: NDArray[np.bool_]) -> TreePredictor:
    """Build one tree; every split must lead on, to features and sets that are there."""
    nodes = np.ascontiguousarray(kept.nodes)
    if type(kept) is not TreePredictor or nodes.dtype != PREDICTOR_RECORD_DTYPE or nodes.ndim != 1:
        raise ValueError("its trees are not scikit-learn's")
    left_sets = np.ascontiguousarray(kept.raw_left_cat_bitsets)
    if left_sets.dtype != np.uint32 or left_sets.ndim != 2 or left_sets.shape[1] != BITS // 32:
        raise ValueError("its sets of categories are not bits")
    places = np.arange(len(nodes))
    split = nodes["is_leaf"] == 0
    for child in ("left", "right"):
        next_place = nodes[child].astype(np.int64)
        if not ((next_place > places) & (next_place < len(nodes)))[split].all():
            raise ValueError("a tree is not a tree: children must come after their split")
    feature = nodes["feature_idx"].astype(np.int64)
    if not ((feature >= 0) & (feature < features))[split].all():
        raise ValueError("a tree asks for a feature that is not there")
    by_set = split & (nodes["is_categorical"] != 0)
    if not sets[feature[by_set]].all() or not (nodes["bitset_idx"][by_set] < len(left_sets)).all():
        raise ValueError("a tree asks for a set of categories that is not there")
    _finite(nodes["value"], nodes.shape)
    if not len(nodes) or np.isnan(nodes["num_threshold"][split]).any():
        raise ValueError("a tree has no threshold")
    return TreePredictor(nodes.copy(), np.zeros_like(left_sets), left_sets.copy())


def _finite(values: Any, shape: tuple[int, ...]) -> NDArray[np.float64]:
    """Return an array of finite numbers of a given shape."""
    found = np.array(values, dtype=np.float64)
    if found.shape != shape or not np.isfinite(found).all():
        raise ValueError("its numbers are not finite, or not as many as they should be")
    return found
