"""What users hand to an estimator, checked: features, labels, groups, weights."""

from __future__ import annotations

from collections.abc import Iterator
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state
from sklearn.utils import validation as sk
from sklearn.utils.multiclass import check_classification_targets

from fairsieve.core.cells import as_array
from fairsieve.core.checks import check_at_least
from fairsieve.errors import InvalidInputError
from fairsieve.samples import Samples
from fairsieve.training.loop import weighted_rows

__all__ = [
    "Checked",
    "check_features",
    "check_groups",
    "check_samples",
    "dense",
    "dense_chunks",
    "lasting_seed_of",
    "seed_of",
]

FLOATS = (np.float64, np.float32)


class Checked(NamedTuple):
    """What to fit on: the samples that have a weight."""

    data: Samples
    weights: NDArray[np.float64] | None  # with mean 1; None, where all weigh the same
    rows: NDArray[np.int64]  # where the samples stand in what was given
    given: int  # how many samples were given


def check_samples(
    estimator: Any, X: Any, y: Any, sensitive_features: Any = None, sample_weight: ArrayLike | None = None
) -> Checked:
    """What to fit ``estimator`` on; it remembers the number and the names of the features.

    Without ``sensitive_features`` everyone is in one group; where some are missing, those samples
    have none. Sparse features are made dense.
    """
    features, labels = validated(estimator, X, y, accept_sparse="csr", dtype=FLOATS)
    check_classification_targets(labels)
    groups = check_groups(sensitive_features, len(labels))
    rows, weights = weighted_rows(sample_weight, len(labels))
    if len(np.unique(labels[rows])) < 2:
        raise InvalidInputError(
            f"y must have two or more classes to tell apart; got one class, {labels[rows][0]!r}"
        )
    data = Samples(dense(features), labels, groups, missing="own")
    return Checked(data if len(rows) == len(data) else data.take(rows), weights, rows, len(data))


def check_groups(sensitive_features: Any, samples: int) -> NDArray[Any]:
    """One group, or one row of columns that are crossed, per sample; one group of all when None."""
    if sensitive_features is None:
        return np.zeros(samples, np.int64)
    groups = as_array("sensitive_features", sensitive_features)
    if len(groups) != samples:
        raise InvalidInputError(
            f"sensitive_features must have one value per sample, {samples}; got {len(groups)}"
        )
    return groups


def check_features(estimator: Any, X: Any) -> Any:
    """Features to predict from, dense or CSR, of the kind that ``estimator`` was fitted on."""
    sk.check_is_fitted(estimator)
    return validated(estimator, X, reset=False, accept_sparse="csr", dtype=FLOATS)


def validated(estimator: Any, *arrays: Any, **options: Any) -> Any:
    """scikit-learn's own validation, which is a function from 1.6 on and a method before."""
    if hasattr(sk, "validate_data"):
        return sk.validate_data(estimator, *arrays, **options)
    return estimator._validate_data(*arrays, **options)


def dense(features: Any) -> NDArray[Any]:
    """A dense or sparse matrix, dense."""
    return np.asarray(features.toarray() if hasattr(features, "toarray") else features)


def dense_chunks(features: Any, rows: int = 8192) -> Iterator[NDArray[Any]]:
    """The rows of a dense or sparse matrix, some at a time, dense."""
    for first in range(0, features.shape[0], rows):
        yield dense(features[first : first + rows])


def seed_of(random_state: Any) -> int:
    """The seed in a ``random_state``: a whole number is one, a generator or None draws one.

    >>> seed_of(7)
    7
    """
    if isinstance(random_state, Integral):
        return check_at_least("random_state", random_state, 0)
    return int(check_random_state(random_state).randint(2**31 - 1))


def lasting_seed_of(random_state: Any, checkpoint_dir: Any) -> int:
    """The seed in a ``random_state``, which checkpoints need to be the same in another process.

    >>> lasting_seed_of(None, "checkpoints")
    Traceback (most recent call last):
        ...
    fairsieve.errors.InvalidInputError: random_state must be a whole number where checkpoints are kept, or
    training could not go on from them; got None
    """
    if checkpoint_dir is not None and not isinstance(random_state, Integral):
        raise InvalidInputError(
            "random_state must be a whole number where checkpoints are kept, or training could not go on from "
            f"them; got {random_state!r}"
        )
    return seed_of(random_state)
