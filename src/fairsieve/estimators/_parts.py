"""Fit on rows in parts: of a table, or of dask arrays and data frames, for which predictions are lazy too.

The solver asks sums of its rows (:mod:`~fairsieve.training.parts`). Each part answers where it is, and the answers,
whose size does not depend on the number of rows, are added up. What is fetched besides is a sample of rows, for the
estimate of the labels and for the first part of the way.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import repeat
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fairsieve.errors import FairsieveWarning, InvalidInputError, require
from fairsieve.label_noise.estimate import Rule
from fairsieve.label_noise.verified import suspects_of
from fairsieve.samples import Checked, Samples, check_samples, check_weights, draw_rows
from fairsieve.selection.cells import Cells, Floats, Integers, as_array, merged, unmasked
from fairsieve.training.compromises import Point
from fairsieve.training.newton import LinearModel
from fairsieve.training.parts import SAMPLE, Chances, DaskEngine, Part, PartRows, Selection, View
from fairsieve.training.rows import EVERYTHING
from fairsieve.training.solver import MANY
from fairsieve.validation import is_dask


class PartTable:
    """A table in parts, as a fit takes it: what is asked of all rows, and a sample of them in memory.

    Attributes
    ----------
    parts : PartRows
        All rows, where they are.
    checked : Checked
        The sample, which the estimate and what held-out rows choose look at.
    """

    def __init__(self, parts: PartRows, checked: Checked) -> None:
        self.parts, self.checked = parts, checked

    def tell(self, estimator: Any) -> None:
        """Say how large the sample is."""
        if estimator.clean_ratio == "auto" and self.checked.given < self.parts.samples:
            warnings.warn(
                f"the share of right labels is estimated on a sample of {self.checked.given:,} of "
                f"{self.parts.samples:,} rows; pass clean_ratio to give it",
                FairsieveWarning,
                stacklevel=5,
            )

    def roles(self, rule: Rule | None, share: float, ridge: float) -> tuple[Any, Any, Any]:
        """Return all rows as they are trained on, as they are believed, and as they are labelled.

        Parameters
        ----------
        rule : callable or None
            Tells how likely each class is the true one; the labels are believed when None.
        share : float
            Of the labels, at most so many are left out, the least believable first.
        ridge : float
        """
        believed = self.parts if rule is None else self.parts.believe(rule)
        self.parts = believed if rule is None else believed.seen(believed=False)
        train = believed if not share else believed.seen(kept=self.parts.keep_believable(share, ridge))
        found = train, believed, self.parts
        if self.parts.samples > MANY:
            return found
        # What fits into one process many times over is solved there.
        every = np.arange(self.parts.samples)
        taken = {id(rows): rows.take(every) for rows in {id(each): each for each in found}.values()}
        return taken[id(train)], taken[id(believed)], taken[id(self.parts)]

    def most_doubted(self, estimator: Any) -> int:
        """Return how many rows may be listed as suspects: none, where it is not known which labels are wrong."""
        if estimator.estimate_ is not None and not estimator.estimate_.credible:
            return 0
        acts = estimator.estimate_ is not None and estimator.estimate_.acts
        return self.parts.samples if acts else round((1 - estimator.clean_ratio_) * self.parts.samples)

    def list_suspects(self, estimator: Any, point: Point) -> None:
        """Remember by what rows are doubted."""
        self.view, self.most = View(selection=selection_of(point)), self.most_doubted(estimator)
        self.model = LinearModel(estimator.coef_, estimator.intercept_)


def selection_of(point: Point) -> Selection | None:
    """Return which rows a point selected by their losses; None for all."""
    parameters, *_, limit, _ = point.models[0]
    return None if limit is EVERYTHING else (parameters, limit)


def list_doubted(
    part: Part,
    chances: Chances,
    start: int,
    view: View,
    model: LinearModel,
    names: tuple[Any, Any] | None = None,
) -> pd.DataFrame:
    """List the rows of a part whose labels to check, on its worker; ``names`` are those of classes and groups."""
    labels, groups = part.given or (part.labels, part.groups)
    names = names or (list(range(part.shape[0])), list(range(part.shape[1])))
    features = np.zeros((len(part), 1), np.float32)
    data = Samples(features, labels, groups, classes=names[0], group_values=names[1], missing="own")
    wrong, believed = None, believed_rows(part, chances, 0, view)
    if chances is not None:
        wrong = 1.0 - own_chances(part, chances)
    rows = np.arange(start, start + len(part))
    return suspects_of(model.decision(part.features), data, believed, rows, wrong=wrong)


def believed_rows(part: Part, chances: Chances, start: int, view: View) -> Integers:
    """Return the numbers of the rows that are believed; the first one has the number ``start``."""
    is_believed = part.rows(None, view).weights if chances is None else own_chances(part, chances) >= 0.5
    return start + np.flatnonzero(is_believed)


def own_chances(part: Part, chances: NDArray[np.float32]) -> Floats:
    """Return how likely the label of each row is the true one."""
    return chances[np.arange(len(part)), part.labels.astype(np.int64)].astype(np.float64)


class DaskTable(PartTable):
    """Dask collections: read once, and kept on the workers while their model is used.

    Parameters
    ----------
    estimator
        Learns the number and the names of the features. Where it estimates the clean ratio of a sample, it warns.
    X, y, sensitive_features, sample_weight : dask arrays, data frames or series
        With the same rows in each partition.
    verified_labels : None
        Needs rows in memory.
    """

    def __init__(
        self,
        estimator: Any,
        X: Any,
        y: Any,
        sensitive_features: Any,
        sample_weight: Any,
        verified_labels: Any,
    ) -> None:
        if verified_labels is not None:
            raise InvalidInputError(
                "verified_labels must be None where X is a dask collection: fit a sample of the rows in memory, and "
                "pass the clean ratio that it finds"
            )
        if estimator.device not in (None, "cpu"):
            raise InvalidInputError(
                f"device must be None where X is a dask collection; got {estimator.device!r}: leave it out"
            )
        given = {"X": X, "y": y, "sensitive_features": sensitive_features, "sample_weight": sample_weight}
        blocks = {name: _blocks(name, values, X) for name, values in given.items() if values is not None}
        count = len(blocks["X"])
        for name, found in blocks.items():
            if len(found) != count:
                raise InvalidInputError(
                    f"{name} must have the partitions of X, {count}; got {len(found)}: repartition or rechunk it"
                )
        columns = [blocks.get(name, [None] * count) for name in given]
        engine = DaskEngine()
        # What is read is read once.
        arrays = engine.keep("reading", _read_part, *columns)
        surveyed = engine.ask("survey", _survey, arrays)
        sizes = [each[0] for each in surveyed]
        if not sum(sizes):
            raise InvalidInputError("X must have at least one row; got none")
        if not any(each[4] for each in surveyed):
            raise InvalidInputError(
                "sample_weight must be above zero for some sample; all are zero: leave it out"
            )
        full = [each for each in surveyed if each[0]]
        self.names = merged([each[1] for each in full]), merged([each[2] for each in full])
        factor = max(1.0, sum(each[5] for each in surveyed) / sum(each[4] for each in surveyed))  # as_copies
        parts = engine.keep("rows", _make_part, arrays, repeat(self.names), repeat(factor))
        self.parts = PartRows(engine, parts, sizes, (len(self.names[0]), len(self.names[1])), full[0][3])
        self.checked = self._sample(estimator, X)
        self.tell(estimator)

    def _sample(self, estimator: Any, X: Any) -> Checked:
        """Fetch the sample of rows that labels are estimated on, checked as rows in memory are."""
        pieces = self.parts.fetch(Part.take_given, draw_rows(self.parts.samples, SAMPLE))
        features, labels, groups, weights = map(np.concatenate, zip(*pieces, strict=True))
        named = pd.DataFrame(features, columns=X.columns) if hasattr(X, "columns") else features
        checked = check_samples(estimator, named, labels, groups, weights)
        classes, values = self.names
        return checked._replace(data=replace(checked.data, classes=classes, group_values=values))

    def list_suspects(self, estimator: Any, point: Point) -> None:
        """Store lazily which rows were believed and, of the others, as many as may be wrong, the likeliest first."""
        names = "dask", "dask.array", "dask.dataframe"
        dask, da, dd = (require(name, purpose="a fit on dask collections") for name in names)
        view = View(selection=selection_of(point))
        parts = list(zip(self.parts.parts, self.parts.chances, self.parts.starts, strict=True))
        model = LinearModel(estimator.coef_, estimator.intercept_)
        believed = [
            da.from_delayed(dask.delayed(believed_rows)(*part, view), (np.nan,), dtype=np.int64)
            for part in parts
        ]
        estimator._selected = da.concatenate(believed, allow_unknown_chunksizes=True)
        empty = self.checked.data.take([])
        decision = np.zeros((0, 3) if len(self.names[0]) > 2 else 0)
        meta = suspects_of(decision, empty, np.arange(0), np.arange(0))
        lists = (dask.delayed(list_doubted)(*part, view, model, self.names) for part in parts)
        # Where there are any, pandas calls texts another type.
        frames = [one.astype(dict(meta.dtypes)) for one in lists]
        with dask.config.set({"dataframe.convert-string": False}):  # groups may be numbers, or tuples
            doubted = dd.from_delayed(frames, meta=meta)
            most = self.most_doubted(estimator)
            estimator._suspects, estimator._kept = doubted.nlargest(most, "loss"), None


def _blocks(name: str, values: Any, X: Any) -> list[Any]:
    """Return the partitions of a collection as delayed objects, with the rows of X's where these are known."""
    if not is_dask(values):
        raise InvalidInputError(
            f"{name} must be a dask array, data frame or series where X is one; got {type(values).__name__}: make it "
            "one, for example by dask.array.from_array with the chunks of X"
        )
    if hasattr(values, "chunks"):
        rows = getattr(X, "chunks", values.chunks)[0]
        if not np.isnan(rows).any() and not np.isnan(values.shape[0]) and sum(rows) == values.shape[0]:
            values = values.rechunk((rows, *((size,) for size in values.shape[1:])))
    return list(np.ravel(values.to_delayed()))


def _read_part(X: Any, y: Any, sensitive_features: Any, sample_weight: Any) -> tuple[Any, ...]:
    """Check one partition, on a worker; return features, labels, groups and weights."""
    features = as_array("X", unmasked(X, numbers=True))
    if features.ndim != 2 or features.dtype.kind not in "fiub":
        raise InvalidInputError(
            f"X must hold numbers in rows and columns; got {features.dtype} of shape {features.shape}: encode texts "
            "first"
        )
    features = np.ascontiguousarray(features if features.dtype == np.float32 else features.astype(np.float64))
    labels = as_array("y", y)
    groups = np.zeros(len(labels), np.int64)
    if sensitive_features is not None:
        groups = as_array("sensitive_features", sensitive_features)
    weights = None if sample_weight is None else check_weights(sample_weight, len(labels), some=False)
    for name, values in (("y", labels), ("sensitive_features", groups)):
        if len(values) != len(features):
            raise InvalidInputError(
                f"{name} must have the rows of X in each partition; one has {len(values)} where X has {len(features)}: "
                "repartition or rechunk both in the same way"
            )
    if not np.isfinite(features).all():
        raise InvalidInputError("X must be finite; it has NaN or infinite values: impute them first")
    return features, labels, groups, weights


def _make_part(arrays: tuple[Any, ...], names: tuple[list[Any], list[Any]], factor: float) -> Part:
    """Make the rows of a partition, by the classes and groups of all of them."""
    features, labels, groups, weights = arrays
    weights = None if weights is None else weights * factor
    data = Samples(features, labels, groups, classes=names[0], group_values=names[1], missing="own")
    cells, shape = data.cells, (len(names[0]), len(names[1]))
    codes, given = (cells.label_codes, cells.group_codes), (data.labels, data.groups)
    return Part(data.features, *codes, shape, weights, given=given)


def _survey(arrays: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the rows, classes and groups of a partition, its first row, its weight, and how many rows have any."""
    features, labels, groups, weights = arrays
    cells = Cells.of(labels, groups, missing="own")
    weights = np.ones(len(labels)) if weights is None else weights
    weighed = float(weights.sum()), np.count_nonzero(weights)
    return len(labels), cells.classes, cells.groups, features[:1], *weighed


def _predict_finite(predict: Callable[[Any], Any], X: Any) -> Any:
    """Predict for one partition, on a worker, unless there are gaps in it."""
    values = as_array("X", unmasked(X, numbers=True))
    if values.dtype.kind not in "fiub" or not np.isfinite(values).all():
        raise InvalidInputError(
            "X must be finite numbers; a partition of it has NaN, infinite values or texts: impute or encode them first"
        )
    return predict(X)


def predict_lazily(estimator: Any, X: Any, predict: Callable[[Any], Any]) -> Any:
    """Predict for a dask array or data frame, when it is computed; ``predict`` takes an array."""
    names = getattr(estimator, "feature_names_in_", None)
    if hasattr(X, "columns") and names is not None and list(X.columns) != list(names):
        raise InvalidInputError(
            f"X must have the columns that the model was trained on, {list(names)}; got {list(X.columns)}"
        )
    if X.ndim != 2 or X.shape[1] != estimator.n_features_in_:
        raise InvalidInputError(
            f"X must have the {estimator.n_features_in_} columns that the model was trained on; got {X.shape[-1]}"
        )
    meta = predict(np.zeros((0, estimator.n_features_in_)))
    predict = partial(_predict_finite, predict)
    if hasattr(X, "chunks"):
        X = X.rechunk({1: -1})
        shape = {"drop_axis": 1} if meta.ndim == 1 else {"chunks": (X.chunks[0], (meta.shape[1],))}
        return X.map_blocks(predict, dtype=meta.dtype, meta=meta, **shape)
    return X.map_partitions(predict, meta=meta)
