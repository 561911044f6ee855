"""Check what a sieve is given: the classifier, the labels, the groups and the weights."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import is_regressor
from sklearn.utils import assert_all_finite, indexable
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import column_or_1d

from fairsieve.errors import InvalidInputError
from fairsieve.estimators._folds import find_weight_argument
from fairsieve.inputs import Checked, check_classes, check_columns, check_groups, check_labels_known
from fairsieve.samples import Samples, check_weights
from fairsieve.selection.cells import Cells
from fairsieve.thresholds import ThresholdRule
from fairsieve.validation import shown

__all__ = ["check_estimator", "check_sieve_samples", "check_targets", "check_two_classes"]


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
    find_weight_argument(estimator)
    if not hasattr(estimator, "predict_proba"):
        raise InvalidInputError(
            "estimator must have predict_proba, which the losses come from; got "
            f"{name}: wrap it in sklearn.calibration.CalibratedClassifierCV"
        )


def check_targets(name: str, X: Any, y: Any) -> tuple[Any, NDArray[Any]]:
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
    X, labels = indexable(X, column_or_1d(y, warn=True))
    if len(labels) == 0:
        raise InvalidInputError("X and y must have at least one sample; got 0 samples")
    if labels.dtype.kind == "f":
        assert_all_finite(labels, input_name="y")
    _refuse_continuous(labels)
    return X, labels


def _refuse_continuous(labels: NDArray[Any]) -> None:
    """Refuse targets that are measured and not classes; the beginning of the message is scikit-learn's."""
    kind = type_of_target(labels, input_name="y")
    if kind in ("binary", "multiclass"):
        return
    fractional = labels[labels != np.floor(labels)] if labels.dtype.kind == "f" else labels
    raise InvalidInputError(
        f"Unknown label type: {kind}. y must hold classes, and not measurements, for which one fits a regressor; "
        f"got {len(np.unique(labels.astype(str)))} different values such as {shown(fractional[0])}: put them into "
        "ranges, for example by numpy.digitize"
    )


def check_sieve_samples(
    labels: NDArray[Any], sensitive_features: Any, sample_weight: ArrayLike | None
) -> Checked:
    """Check labels, groups and weights; the features are left to the classifier.

    The weights stay as they are, because the classifier gets them: their mean may matter to it.
    """
    groups = check_groups(sensitive_features, len(labels))
    rows, weights = np.arange(len(labels)), None
    if sample_weight is not None:
        given = check_weights(sample_weight, len(labels))
        rows = np.flatnonzero(given)
        weights = None if (given[rows] == 1).all() else given[rows]
    check_classes(labels[rows])
    data = Samples(np.zeros((len(rows), 1)), labels[rows], groups[rows], missing="own")
    return Checked(data, weights, rows, len(labels))


def check_two_classes(name: str, rule: ThresholdRule, cells: Cells) -> None:
    """Refuse a threshold where there are more than two classes."""
    if not rule.is_default and len(cells.classes) != 2:
        raise InvalidInputError(
            f"{name} must be 0.5 for more than two labels, of which the likeliest is predicted; got {rule} with "
            f"{len(cells.classes)} labels: leave it out, or make two labels of them"
        )
