"""What is trained on: features, labels and groups, side by side."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from fairsieve.errors import InvalidInputError
from fairsieve.selection.cells import Cells, Floats, Integers, Missing, as_array, unmasked
from fairsieve.validation import shown


@dataclass(frozen=True, eq=False)
class Samples:
    """Features, labels and groups of n samples.

    Attributes
    ----------
    features : float array or scipy-sparse matrix of shape (n, d)
        What a model sees. Only the Newton solver takes a sparse one. Numbers of another type, such as integers, become
        float32 where that changes none of them, else float64.
    labels : array of shape (n,)
        Any type, two or more classes.
    groups : array of shape (n,) or (n, columns)
        The sensitive attribute; several columns are crossed. With ``missing="own"`` some may lack it.
    feature_names : tuple of str
        One per feature; empty when unnamed.
    classes, group_values : lists, optional
        All the values labels and groups may take, for data that lacks some.
    missing : {"refuse", "own"}
        What to do with missing groups, see :meth:`~fairsieve.selection.cells.Cells.of`.
    truth : array of shape (n,), optional
        The right labels, where they are known beside those that were given. Nothing learns from them.

    Examples
    --------
    >>> samples = Samples([[0.0], [1.0]], ["no", "yes"], ["a", "b"])
    >>> len(samples), samples.cells.shape
    (2, (2, 2))
    """

    features: NDArray[Any]
    labels: NDArray[Any]
    groups: NDArray[Any]
    feature_names: tuple[str, ...] = ()
    classes: list[Any] | None = None
    group_values: list[Any] | None = None
    missing: Missing = "refuse"
    truth: NDArray[Any] | None = None
    cells: Cells = field(init=False, repr=False)

    def __post_init__(self) -> None:
        features = _as_features(self.features)
        cells = Cells.of(
            self.labels,
            self.groups,
            classes=self.classes,
            group_values=self.group_values,
            missing=self.missing,
        )
        if len(cells) != features.shape[0]:
            raise InvalidInputError(
                f"features and labels must have one row per sample; got {features.shape[0]} rows and "
                f"{len(cells)} labels"
            )
        _check_finite(features)
        if self.feature_names and len(self.feature_names) != features.shape[1]:
            raise InvalidInputError(
                f"feature_names must have one name per feature, {features.shape[1]}; got {len(self.feature_names)}"
            )
        if self.truth is not None:
            truth = as_array("truth", self.truth)
            if truth.shape != (len(cells),):
                raise InvalidInputError(
                    f"truth must have one label per sample, the shape ({len(cells)},); got {truth.shape}"
                )
            vars(self).update(truth=truth)
        labels, groups = as_array("labels", self.labels), as_array("groups", self.groups)
        # The fields are frozen for others, not here.
        vars(self).update(features=features, labels=labels, groups=groups)
        vars(self).update(classes=cells.classes, group_values=cells.groups, cells=cells)

    def __len__(self) -> int:
        return int(self.features.shape[0])

    def with_labels(self, labels: ArrayLike) -> Samples:
        """Return the same samples under other labels."""
        return replace(self, labels=np.asarray(labels))

    def take(self, indices: ArrayLike) -> Samples:
        """Select some of the samples; classes and groups keep their places."""
        rows = np.asarray(indices)
        rows = rows if rows.size else np.zeros(0, np.int64)
        truth = None if self.truth is None else self.truth[rows]
        features, labels, groups = self.features[rows], self.labels[rows], self.groups[rows]
        return replace(self, features=features, labels=labels, groups=groups, truth=truth)


def _as_features(given: Any) -> Any:
    """Return features as floats, dense or CSR."""
    if sparse.issparse(given):
        features: Any = sparse.csr_matrix(given)
    else:
        features = as_array("features", unmasked(given, numbers=True))
    if features.ndim < 2:
        raise InvalidInputError(
            f"features must have one row per sample, the shape (n, d); got {features.shape}"
        )
    if features.dtype.kind not in "fiub":
        raise InvalidInputError(f"features must be numbers; got {features.dtype}: encode categories first")
    if features.dtype in (np.float32, np.float64):
        return features
    # Single precision takes half the memory, and tells whole numbers up to 2**24 apart.
    stored = _stored_values(features)
    is_exact = bool((stored == stored.astype(np.float32)).all())
    return features.astype(np.float32 if is_exact else np.float64)


def _check_finite(features: Any) -> None:
    """Refuse features that are infinite or missing."""
    if not np.isfinite(_stored_values(features)).all():
        features = features.toarray() if sparse.issparse(features) else features
        rows = (~np.isfinite(features)).reshape(len(features), -1).any(axis=1)
        raise InvalidInputError(
            f"features must be finite; row {int(rows.argmax())} is not ({int(rows.sum())} rows in all): "
            "impute missing values first"
        )


def _stored_values(features: Any) -> NDArray[Any]:
    """Return the entries that are stored: of a sparse matrix, those that may differ from 0."""
    return np.asarray(features.data if sparse.issparse(features) else features)


def check_kind_of_samples(name: str, value: Any) -> None:
    """Refuse anything but samples, such as their features alone."""
    if not isinstance(value, Samples):
        raise InvalidInputError(
            f"{name} must be Samples(features, labels, groups); got {type(value).__name__}"
        )


LARGEST = 1e100  # weight of a sample


def check_weights(sample_weight: ArrayLike, samples: int, *, some: bool = True) -> Floats:
    """Check that there is one finite weight of at least 0 per sample, and ``some`` above 0; return doubles.

    >>> check_weights([1, 0], 2)
    array([1., 0.])
    """
    weights = as_array("sample_weight", unmasked(sample_weight, numbers=True))
    if weights.dtype.kind not in "fiub":
        raise InvalidInputError(f"sample_weight must be numbers; got {weights.dtype}")
    if weights.shape != (samples,):
        raise InvalidInputError(
            f"sample_weight must have one number per sample, the shape ({samples},); got {weights.shape}"
        )
    bad = ~(np.isfinite(weights) & (weights >= 0))
    if bad.any():
        first = int(bad.argmax())
        raise InvalidInputError(
            f"sample_weight must be finite and not negative; got {shown(weights[first])} in row {first}: a weight of 0 "
            "leaves a sample out"
        )
    if weights.max(initial=0.0) > LARGEST:
        raise InvalidInputError(
            f"sample_weight must be at most {LARGEST:g}, so that products of sums are finite; got {weights.max():g}: "
            "divide the weights by their mean"
        )
    if some and samples and not weights.any():
        raise InvalidInputError(
            "sample_weight must be above zero for some sample; all weights are zero: leave it out"
        )
    return weights.astype(np.float64)


def draw_rows(samples: int, most: int) -> Integers:
    """Draw ``most`` of so many rows, ascending and always the same ones; all where there are no more.

    >>> draw_rows(3, 5).tolist()
    [0, 1, 2]
    """
    if samples <= most:
        return np.arange(samples)
    return np.sort(np.random.default_rng(0).choice(samples, most, replace=False, shuffle=False))


def as_copies(weights: Floats) -> Floats:
    """Return weights as numbers of copies: a weight of 2 is the sample twice.

    Weights that sum to less than there are samples, such as shares of 1, say how samples compare, and not how many
    there are: they are given the mean 1.

    >>> as_copies(np.array([2.0, 1.0])).tolist(), as_copies(np.array([0.75, 0.25])).tolist()
    ([2.0, 1.0], [1.5, 0.5])
    """
    return weights * max(1.0, len(weights) / max(float(weights.sum()), 1e-300))


def weighted_rows(sample_weight: ArrayLike | None, samples: int) -> tuple[Integers, Floats | None]:
    """Return the rows that have a weight, and their weights; None where all are 1.

    >>> weighted_rows([2.0, 0.0, 1.0], 3)
    (array([0, 2]), array([2., 1.]))
    """
    if sample_weight is None:
        return np.arange(samples), None
    weights = check_weights(sample_weight, samples)
    rows = np.flatnonzero(weights)
    return rows, None if (weights[rows] == 1).all() else weights[rows]
