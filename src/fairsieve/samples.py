"""What is trained on: features, labels, groups and weights, as users hand them over, checked and side by side."""

from __future__ import annotations

import unicodedata
import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from fairsieve.errors import FairsieveWarning, InvalidInputError
from fairsieve.selection.cells import Cells, Floats, Integers, Missing, as_array, refuse_missing, unmasked
from fairsieve.validation import check_seed, shown

# Of tables with fewer different rows than this share of the rows, equal rows are people who are alike, not copies of
# one person: ten rows that share all features teach a model nothing by heart.
COPIES = 0.1


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
        known: Any = {"classes": self.classes, "group_values": self.group_values}
        cells = Cells.of(self.labels, self.groups, missing=self.missing, **known)
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


def find_copies(values: Any, groups: NDArray[Any]) -> Integers | None:
    """Tell different rows apart by their features and group, as numbers; return None if none is a copy.

    Where a few features leave few different rows, equal ones are people who are alike, and none is a copy.

    >>> import pandas as pd
    >>> find_copies(pd.DataFrame({"size": [1.5, 2.5, 1.5]}), np.zeros(3))
    array([0, 1, 0])
    """
    import pandas as pd  # late: metrics need this file, and no pandas

    kinds = pd.DataFrame({"row": pd.util.hash_pandas_object(values, index=False).to_numpy(), "group": groups})
    codes = kinds.groupby(["row", "group"], sort=False).ngroup().to_numpy(np.int64)
    different = int(codes.max(initial=-1)) + 1
    return codes if COPIES * len(codes) <= different < len(codes) else None


def shuffled_places(
    cells: Cells, seed: int | np.random.Generator, copies: Integers | None = None, *, by_code: bool = False
) -> Integers:
    """Give every sample a number, cell by cell, in an order that the seed draws within each.

    The cells come in the order of their first samples: what labels and groups are called decides nothing. ``by_code``
    takes them in the order of their codes. ``copies`` are codes of samples that belong together, which have the number
    of one of them.

    >>> names = ["a", "b"], ["z", "b"]
    >>> places = [shuffled_places(Cells.of([0] * 8, own * 4), seed=0).tolist() for own in names]
    >>> places[0] == places[1]
    True
    """
    kinds = np.arange(len(cells)) if copies is None else copies
    _, first, kinds = np.unique(kinds, return_index=True, return_inverse=True)
    codes = cells.codes[first]
    if not by_code:
        _, begin, codes = np.unique(codes, return_index=True, return_inverse=True)
        codes = np.argsort(np.argsort(begin))[codes]
    order = np.random.default_rng(seed).permutation(len(first))
    order = order[np.argsort(codes[order], kind="stable")]
    places = np.empty(len(first), np.int64)
    places[order] = np.arange(len(first))
    return places[kinds]


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


# ---- What users hand to an estimator, checked: features, labels, groups, weights

FLOATS = (np.float64, np.float32)
MANY_GROUPS, FEW_EACH = 20, 30  # more groups than this, of fewer people than this, are no groups


class Checked(NamedTuple):
    """What to fit on: the samples that have a weight."""

    data: Samples
    weights: Floats | None  # how often each sample counts; None, where each counts once
    rows: Integers  # where the samples stand in what was given, ascending
    given: int  # how many samples were given

    @property
    def counts(self) -> Floats:
        """How often each sample counts."""
        return np.ones(len(self.data)) if self.weights is None else self.weights


def check_samples(
    estimator: Any,
    X: Any,
    y: Any,
    sensitive_features: Any = None,
    sample_weight: ArrayLike | None = None,
    *,
    keep_sparse: bool = False,
) -> Checked:
    """Check what to fit ``estimator`` on; it remembers the number and the names of the features.

    Without ``sensitive_features`` everyone is in one group; where some are missing, those samples
    have none. Sparse features are made dense, unless they are to be kept as they are.
    """
    check_labels_known(y)
    features, labels = _validated(estimator, X, y, accept_sparse="csr", dtype=FLOATS)
    from sklearn.utils.multiclass import check_classification_targets  # late: metrics do without scikit-learn

    if labels.dtype.kind not in "iub":  # whole numbers are classes; looking at all of them takes time
        check_classification_targets(labels)
    groups = check_groups(sensitive_features, len(labels))
    rows, weights = weighted_rows(sample_weight, len(labels))
    weights = None if weights is None else as_copies(weights)
    check_classes(labels, rows)
    data = Samples(features if keep_sparse else dense(features), labels, groups, missing="own")
    warn_of_alike(data.cells)
    return Checked(data if len(rows) == len(data) else data.take(rows), weights, rows, len(data))


def check_labels_known(y: Any) -> None:
    """Refuse missing labels: scikit-learn does not see None."""
    if y is not None:
        labels = as_array("y", y)
        if labels.ndim == 1:  # others are told by scikit-learn
            refuse_missing("y", labels)


def check_classes(labels: NDArray[Any], rows: Integers) -> None:
    """Check that there are two or more classes to learn, in the rows that have a weight."""
    kept = labels if len(rows) == len(labels) else labels[rows]
    if (kept != kept[0]).any():
        return
    if (labels != labels[0]).any():
        raise InvalidInputError(
            "sample_weight must be above zero for samples of two or more classes; got only samples of the class "
            f"{shown(kept[0])} with a weight: a weight of 0 leaves a sample out"
        )
    raise InvalidInputError(
        f"y must have two or more classes to tell apart; got one class, {shown(labels[0])}: look for the column that "
        "says what to predict"
    )


def find_alike(values: Sequence[Any]) -> list[list[Any]]:
    """Find different texts that people read as the same: in composition, invisible characters, spaces or case.

    Values of several columns are compared column by column.

    >>> find_alike(["Left", "left ", "right", ("a", 1), ("A", 1), ("a", 2)])
    [['Left', 'left '], [('a', 1), ('A', 1)]]
    """
    by_reading: dict[Any, list[Any]] = {}
    for value in values:
        parts = value if isinstance(value, tuple) else (value,)
        key = tuple(_reading(part) if isinstance(part, str) else part for part in parts)
        by_reading.setdefault(key, []).append(value)
    return [alike for alike in by_reading.values() if len(alike) > 1]


def _reading(text: str) -> str:
    """Return a text as it is read aloud: composed, without invisible characters, single spaces, without case."""
    composed = unicodedata.normalize("NFKC", text)
    kept = (sign for sign in composed if unicodedata.category(sign) not in ("Cf", "Cc") or sign.isspace())
    return " ".join("".join(kept).casefold().split())


def warn_of_alike(cells: Cells) -> None:
    """Warn of labels and groups that are separate, and look alike."""
    for name, values in (("y", cells.classes), ("sensitive_features", cells.groups)):
        for alike in find_alike(values):
            listed = " and ".join(ascii(value) for value in alike)
            warnings.warn(
                f"{name} has {len(alike)} values that read the same, {listed}: each is taken for one of its own. Where "
                "they mean the same, write them in one way",
                FairsieveWarning,
                stacklevel=3,
            )


def warn_of_groups(cells: Cells) -> None:
    """Warn where fairness has nothing to compare, or only chance."""
    groups, people = cells.named_groups, int(cells.counts[:, : cells.named_groups].sum())
    if groups < 2:
        having = "one group, " + shown(cells.groups[0]) if groups else "no group, all are missing"
        warnings.warn(
            f"sensitive_features has {having}: there is nothing to compare, and the model "
            "is robust and nothing more",
            FairsieveWarning,
            stacklevel=3,
        )
    elif groups > MANY_GROUPS and people < groups * FEW_EACH:
        warnings.warn(
            f"sensitive_features has {groups} groups for {people} samples: what differs between so few is chance. Put "
            "values together, for example numbers into ranges",
            FairsieveWarning,
            stacklevel=3,
        )


def check_groups(sensitive_features: Any, samples: int) -> NDArray[Any]:
    """Check that there is one group, or one row of columns to cross, per sample; all are one group when None."""
    if sensitive_features is None:
        return np.zeros(samples, np.int64)
    groups = as_array("sensitive_features", sensitive_features)
    if len(groups) != samples:
        raise InvalidInputError(
            f"sensitive_features must have one value per sample, {samples}; got {len(groups)}"
        )
    return groups


def check_features(estimator: Any, X: Any) -> Any:
    """Check features to predict from, dense or CSR, of the kind that ``estimator`` was fitted on."""
    from sklearn.utils.validation import check_is_fitted

    check_is_fitted(estimator)
    return _validated(estimator, X, reset=False, accept_sparse="csr", dtype=FLOATS)


def _validated(estimator: Any, *arrays: Any, **options: Any) -> Any:
    """Call scikit-learn's own validation, and say which column holds texts."""
    from sklearn.utils.validation import validate_data

    check_columns(arrays[0])
    arrays = unmasked(arrays[0], numbers=True), *arrays[1:]
    try:
        return validate_data(estimator, *arrays, **options)
    except ValueError:
        _refuse_texts(arrays[0])
        raise


def check_columns(X: Any) -> None:
    """Check that columns have different names, where they have names."""
    names = Counter(map(str, getattr(X, "columns", ())))
    twice = next((name for name, count in names.items() if count > 1), None)
    if twice is not None:
        raise InvalidInputError(
            f"X must have columns of different names; {twice!r} is there {names[twice]} times: rename one"
        )


def _refuse_texts(X: Any) -> None:
    """Refuse the first column that is not numbers, by its name or its place."""
    table = np.asarray(X, dtype=object) if not hasattr(X, "toarray") else np.empty(0, dtype=object)
    if table.ndim != 2:
        return
    names = [shown(name) for name in getattr(X, "columns", range(table.shape[1]))]
    for name, column in zip(names, table.T, strict=True):
        for value in column:
            if isinstance(value, str) and not _is_number(value):
                raise InvalidInputError(
                    f"X must hold numbers; column {name} holds texts such as {shown(value)}: encode it first, for "
                    "example by sklearn.preprocessing.OneHotEncoder"
                )


def _is_number(text: str) -> bool:
    """Return whether NumPy would make a number of a text."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def dense(features: Any) -> NDArray[Any]:
    """Return a dense or sparse matrix as a dense one."""
    return np.asarray(features.toarray() if hasattr(features, "toarray") else features)


def read_seed(random_state: Any, checkpoint_dir: Any = None) -> int:
    """Return the seed in a ``random_state``: a whole number is one, a generator or None draws one.

    Checkpoints need it to be the same in another process.

    Examples
    --------
    >>> read_seed(7)
    7
    >>> read_seed(None, "checkpoints")
    Traceback (most recent call last):
        ...
    fairsieve.errors.InvalidInputError: random_state must be a whole number where checkpoints are kept, or
    training could not go on from them; got None
    """
    if isinstance(random_state, Integral):
        return check_seed("random_state", random_state)
    if checkpoint_dir is not None:
        raise InvalidInputError(
            "random_state must be a whole number where checkpoints are kept, or training could not go on from "
            f"them; got {random_state!r}"
        )
    from sklearn.utils import check_random_state

    try:
        return int(check_random_state(random_state).randint(2**31 - 1))
    except ValueError:
        raise InvalidInputError(
            f"random_state must be None, a whole number or a RandomState; got {shown(random_state)}"
        ) from None
