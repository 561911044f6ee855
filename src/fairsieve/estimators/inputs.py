"""What users hand to an estimator, checked: features, labels, groups."""

from __future__ import annotations

from collections.abc import Iterator
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state
from sklearn.utils import validation as sk
from sklearn.utils.multiclass import check_classification_targets

from fairsieve.core.checks import check_at_least
from fairsieve.errors import InvalidInputError
from fairsieve.samples import Samples

__all__ = ["check_features", "check_samples", "dense_chunks", "seed_of"]

FLOATS = (np.float64, np.float32)


def check_samples(estimator: Any, X: Any, y: Any, sensitive_features: Any) -> Samples:
    """Samples to fit ``estimator`` on, whose feature names and number it remembers.

    Without ``sensitive_features`` everyone is in one group. Sparse features are made dense.
    """
    features, labels = validated(estimator, X, y, accept_sparse="csr", dtype=FLOATS)
    check_classification_targets(labels)
    groups = np.zeros(len(labels), np.int64) if sensitive_features is None else sensitive_features
    data = Samples(features.toarray() if hasattr(features, "toarray") else features, labels, groups)
    if np.count_nonzero(data.cells.counts.sum(axis=1)) < 2:
        raise InvalidInputError(
            f"y must have two or more classes to tell apart; got one class, {labels[0]!r}"
        )
    return data


def check_features(estimator: Any, X: Any) -> Any:
    """Features to predict from, dense or CSR, of the kind that ``estimator`` was fitted on."""
    sk.check_is_fitted(estimator)
    return validated(estimator, X, reset=False, accept_sparse="csr", dtype=FLOATS)


def validated(estimator: Any, *arrays: Any, **options: Any) -> Any:
    """scikit-learn's own validation, which is a function from 1.6 on and a method before."""
    if hasattr(sk, "validate_data"):
        return sk.validate_data(estimator, *arrays, **options)
    return estimator._validate_data(*arrays, **options)


def dense_chunks(features: Any, rows: int = 8192) -> Iterator[NDArray[Any]]:
    """The rows of a dense or sparse matrix, some at a time, dense."""
    for first in range(0, features.shape[0], rows):
        part = features[first : first + rows]
        yield part.toarray() if hasattr(part, "toarray") else part


def seed_of(random_state: Any) -> int:
    """The seed in a ``random_state``: a whole number is one, a generator or None draws one.

    >>> seed_of(7)
    7
    """
    if isinstance(random_state, Integral):
        return check_at_least("random_state", random_state, 0)
    return int(check_random_state(random_state).randint(2**31 - 1))
