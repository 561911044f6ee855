"""Score fairness in scikit-learn's model selection, which passes the groups by metadata routing."""

from __future__ import annotations

from typing import Any

import numpy as np
import sklearn
from numpy.typing import ArrayLike
from sklearn.metrics import make_scorer

from fairsieve import metrics
from fairsieve.errors import InvalidInputError, NotReadyError
from fairsieve.notions import EO, find_notion
from fairsieve.validation import check_choice, shown


def fairness_scorer(
    fairness: str = EO,
    *,
    method: metrics.Method = "to_overall",
    pos_label: Any | None = None,
    with_accuracy: bool = False,
) -> Any:
    """Make a scorer of fairness: the negative disparity, because scores are maximised.

    With metadata routing enabled, ``search.fit(X, y, sensitive_features=z)`` passes the groups to it. It also
    takes ``sample_weight``, if that is requested.

    Parameters
    ----------
    fairness : str, default="equalized-odds"
        The name of a notion of fairness, see :mod:`fairsieve.notions`.
    method : {"to_overall", "between_groups"}, default="to_overall"
        See :mod:`fairsieve.metrics`.
    pos_label : label, optional
        For notions that are about one class; the last of two when None.
    with_accuracy : bool, default=False
        Score the accuracy minus the disparity. A constant prediction is fair, so choose hyperparameters
        by this, or by several scorers, and not by the disparity alone.

    Examples
    --------
    >>> with sklearn.config_context(enable_metadata_routing=True):
    ...     scoring = {"accuracy": "accuracy", "fairness": fairness_scorer("demographic-parity")}
    """
    if not sklearn.get_config()["enable_metadata_routing"]:
        raise NotReadyError(
            "fairness_scorer gets the groups by scikit-learn's metadata routing, which is off: call "
            "sklearn.set_config(enable_metadata_routing=True) first"
        )
    if not isinstance(with_accuracy, (bool, np.bool_)):
        raise InvalidInputError(f"with_accuracy must be True or False; got {shown(with_accuracy)}")
    options: dict[str, Any] = {
        "fairness": find_notion(fairness).name,
        "method": check_choice("method", method, ("to_overall", "between_groups")),
        "pos_label": pos_label,
        "with_accuracy": bool(with_accuracy),
    }
    return make_scorer(_fairness_score, **options).set_score_request(sensitive_features=True)


def _fairness_score(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    sensitive_features: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    fairness: str,
    with_accuracy: bool,
    **options: Any,
) -> float:
    """Compute the score of :func:`fairness_scorer`, in [−1, 0] or, with the accuracy, in [−1, 1].

    >>> options = {"fairness": "equalized-odds", "pos_label": None, "with_accuracy": False}
    >>> _fairness_score([0, 0, 1], [0, 1, 1], sensitive_features=list("abb"), **options)
    -0.5
    """
    if sensitive_features is None:
        raise InvalidInputError(
            "sensitive_features must be given to a scorer of fairness; got None: pass them to fit, as in "
            "search.fit(X, y, sensitive_features=z)"
        )
    right = metrics.accuracy(y_true, y_pred, sample_weight=sample_weight) if with_accuracy else 0.0
    options |= {"sensitive_features": sensitive_features, "sample_weight": sample_weight}
    return right - metrics.disparity(fairness, y_true, y_pred, **options)
