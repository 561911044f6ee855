"""What users hand to an estimator, checked: features, labels, groups, weights."""

from __future__ import annotations

import unicodedata
import warnings
from collections import Counter
from collections.abc import Sequence
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state
from sklearn.utils import validation as sk
from sklearn.utils.multiclass import check_classification_targets

from fairsieve.errors import FairsieveWarning, InvalidInputError
from fairsieve.samples import Samples, as_copies, weighted_rows
from fairsieve.selection.cells import Cells, Floats, Integers, as_array, refuse_missing, unmasked
from fairsieve.validation import check_seed, shown

FLOATS = (np.float64, np.float32)
MANY_GROUPS, FEW_EACH = 20, 30  # more groups than this, of fewer people than this, are no groups


class Checked(NamedTuple):
    """What to fit on: the samples that have a weight."""

    data: Samples
    weights: Floats | None  # how often each sample counts; None, where each counts once
    rows: Integers  # where the samples stand in what was given, ascending
    given: int  # how many samples were given


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
    visible = "".join(
        sign for sign in composed if unicodedata.category(sign) not in ("Cf", "Cc") or sign.isspace()
    )
    return " ".join(visible.casefold().split())


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
    sk.check_is_fitted(estimator)
    return _validated(estimator, X, reset=False, accept_sparse="csr", dtype=FLOATS)


def _validated(estimator: Any, *arrays: Any, **options: Any) -> Any:
    """Call scikit-learn's own validation, and say which column holds texts."""
    check_columns(arrays[0])
    arrays = unmasked(arrays[0], numbers=True), *arrays[1:]
    try:
        return sk.validate_data(estimator, *arrays, **options)
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
    try:
        return int(check_random_state(random_state).randint(2**31 - 1))
    except ValueError:
        raise InvalidInputError(
            f"random_state must be None, a whole number or a RandomState; got {shown(random_state)}"
        ) from None
