"""Rows on several machines: fit on dask arrays or data frames, and predict lazily.

The solver asks sums of its rows (:class:`~fairsieve.training.linear_rows.LinearRows`). Here each partition answers on
the worker that holds it, and the answers, whose size does not depend on the number of rows, are added up. What is
fetched besides is a sample of rows, for the estimate of the labels and for the first part of the way.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from copy import copy
from dataclasses import replace
from functools import partial, partialmethod
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fairsieve.errors import FairsieveWarning, InvalidInputError
from fairsieve.inputs import Checked, check_samples
from fairsieve.label_noise.suspects import suspects_of
from fairsieve.optional import is_dask, require
from fairsieve.samples import Samples, check_weights, draw_rows
from fairsieve.selection.cells import Cells, as_array, merged, unmasked
from fairsieve.training.linear_model import LinearModel
from fairsieve.training.linear_rows import LinearRows, add_up
from fairsieve.training.rows import EVERYTHING, LossLimit
from fairsieve.training.solver import MANY, Point

Floats = NDArray[np.float64]

SAMPLE = 100_000  # rows that the estimate looks at


def _dask(part: str = "") -> Any:
    """Import dask, or a part of it."""
    return require(f"dask.{part}".rstrip("."), purpose="a fit on dask collections")


class _Part:
    """The rows of one partition, by the classes and groups of all of them, on the worker that holds it."""

    def __init__(self, arrays: tuple[Any, ...], classes: list[Any], group_values: list[Any]) -> None:
        features, labels, groups, weights = arrays
        names: Any = {"classes": classes, "group_values": group_values, "missing": "own"}
        self.data = Samples(features, labels, groups, **names)
        self.rows = LinearRows.of(self.data, weights)
        self.rows.threads = 1  # the workers share the processors already
        self.kept: tuple[Any, LinearRows] = (None, self.rows)

    def answer(self, selection: Any, name: str, arguments: tuple[Any, ...], options: Any) -> Any:
        """Answer a question of the solver."""
        return getattr(self.select(selection), name)(*arguments, **options)

    def take(self, rows: NDArray[np.int64]) -> tuple[Samples, Floats]:
        """Return some of the rows, and their weights."""
        return self.data.take(rows), self.rows.weights[rows]

    def select(self, selection: tuple[Floats, LossLimit] | None) -> LinearRows:
        """Return the selected rows; the last selection is kept, since many questions follow about it."""
        if selection is None:
            return self.rows
        known, rows = self.kept
        if known is None or known[1] != selection[1] or not np.array_equal(known[0], selection[0]):
            rows = self.rows.select(*selection)
            self.kept = selection, rows
        return rows

    def believed(self, selection: tuple[Floats, LossLimit] | None, start: int = 0) -> NDArray[np.int64]:
        """Return the numbers of the rows that are selected; the first one has the number ``start``."""
        return start + np.flatnonzero(self.select(selection).weights)

    def suspects(self, selection: Any, start: int, model: LinearModel) -> pd.DataFrame:
        """List the rows whose labels to check."""
        rows = np.arange(start, start + len(self.data))
        return suspects_of(model.decision(self.data.features), self.data, self.believed(selection), rows)


class DaskRows:
    """The rows of all partitions, with the answers of :class:`~fairsieve.training.linear_rows.LinearRows`."""

    shift = 0.0

    def __init__(
        self, parts: list[Any], sizes: list[int], shape: tuple[int, int], first: NDArray[Any]
    ) -> None:
        self.parts, self.shape = parts, shape
        self.starts = (np.cumsum(sizes) - sizes).tolist()  # the numbers of their first rows
        self.is_single = first.dtype.itemsize < 8
        self.samples, self.columns = sum(sizes), first.shape[1]
        self.outputs = 1 if shape[0] <= 2 else shape[0]
        self.selection: tuple[Floats, LossLimit] | None = None
        self.first: Floats = first[0].astype(np.float64)

    def ask(self, name: str, *arguments: Any, **options: Any) -> list[Any]:
        """Ask every partition the same question, where it is."""
        asked = [part.answer(self.selection, name, arguments, options) for part in self.parts]
        return list(_dask().compute(*asked))

    def sum(self, name: str, *arguments: Any, **options: Any) -> Any:
        """Add up the answers of all partitions."""
        return add_up(self.ask(name, *arguments, **options))

    moments = partialmethod(sum, "moments")
    derivatives = partialmethod(sum, "derivatives")
    hessian_times = partialmethod(sum, "hessian_times")
    confusion = partialmethod(sum, "confusion")
    loss_counts = partialmethod(sum, "loss_counts")
    standard_moments = partialmethod(sum, "standard_moments")
    score_moments = partialmethod(sum, "score_moments")
    soft_confusion = partialmethod(sum, "soft_confusion")
    soft_gradient = partialmethod(sum, "soft_gradient")

    def on_device(self, device: str | None) -> DaskRows:
        return self

    def reference(self) -> Floats:
        return self.first

    def select(self, parameters: Floats, limit: LossLimit) -> DaskRows:
        if limit is EVERYTHING:
            return self
        found = copy(self)
        found.selection = parameters.copy(), limit
        return found

    def take(self, rows: NDArray[np.int64]) -> LinearRows:
        """Fetch some of the rows, ascending, into memory."""
        return LinearRows.of(*self.fetch(rows))

    def fetch(self, rows: NDArray[np.int64]) -> tuple[Samples, Floats]:
        """Fetch some of the rows, ascending, with labels and groups as they were given, and their weights."""
        edges = np.searchsorted(rows, [*self.starts, self.samples])
        chosen = [
            part.take(rows[low:high] - start)
            for part, start, low, high in zip(self.parts, self.starts, edges[:-1], edges[1:], strict=True)
            if high > low
        ]
        pieces, weights = zip(*_dask().compute(*chosen), strict=True)
        joined = {
            name: np.concatenate([getattr(piece, name) for piece in pieces])
            for name in ("features", "labels", "groups")
        }
        return replace(pieces[0], **joined), np.concatenate(weights)


class DaskTable:
    """A table in partitions: read once, and kept on the workers while its model is used.

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
        dask = _dask()
        given = {"X": X, "y": y, "sensitive_features": sensitive_features, "sample_weight": sample_weight}
        blocks = {name: _blocks(name, values, X) for name, values in given.items() if values is not None}
        count = len(blocks["X"])
        for name, found in blocks.items():
            if len(found) != count:
                raise InvalidInputError(
                    f"{name} must have the partitions of X, {count}; got {len(found)}: repartition or rechunk it"
                )
        columns = [blocks.get(name, [None] * count) for name in given]
        # What is read is read once.
        arrays = dask.persist(*[dask.delayed(_read_part)(*each) for each in zip(*columns, strict=True)])
        surveyed = dask.compute(*[dask.delayed(_survey)(each) for each in arrays])
        sizes = [each[0] for each in surveyed]
        if not sum(sizes):
            raise InvalidInputError("X must have at least one row; got none")
        if not any(each[4] for each in surveyed):
            raise InvalidInputError(
                "sample_weight must be above zero for some sample; all are zero: leave it out"
            )
        full = [each for each in surveyed if each[0]]
        classes, groups = (merged([each[place] for each in full]) for place in (1, 2))
        parts = dask.persist(*[dask.delayed(_Part)(each, classes, groups) for each in arrays])
        self.parts = DaskRows(list(parts), sizes, (len(classes), len(groups)), full[0][3])
        self.checked = self._sample(estimator, X, classes, groups)
        # What fits into one process many times over is solved there.
        few = self.parts.samples <= MANY
        self.rows: Any = self.parts.take(np.arange(self.parts.samples)) if few else self.parts
        if estimator.clean_ratio == "auto" and self.checked.given < self.parts.samples:
            warnings.warn(
                f"the share of right labels is estimated on a sample of {self.checked.given:,} of "
                f"{self.parts.samples:,} rows; pass clean_ratio to give it",
                FairsieveWarning,
                stacklevel=3,
            )

    def _sample(self, estimator: Any, X: Any, classes: list[Any], groups: list[Any]) -> Checked:
        """Fetch the sample of rows that labels are estimated on, checked as rows in memory are."""
        data, weights = self.parts.fetch(draw_rows(self.parts.samples, SAMPLE))
        named = pd.DataFrame(data.features, columns=X.columns) if hasattr(X, "columns") else data.features
        checked = check_samples(estimator, named, data.labels, data.groups, weights)
        return checked._replace(data=replace(checked.data, classes=classes, group_values=groups))

    def list_suspects(self, estimator: Any, point: Point) -> None:
        """Store lazily which rows were believed and, of the others, as many as may be wrong, the highest loss first."""
        dask, da, dd = _dask(), _dask("array"), _dask("dataframe")
        parameters, *_, limit, _ = point.models[0]
        selection = None if limit is EVERYTHING else (parameters, limit)
        model = LinearModel(estimator.coef_, estimator.intercept_)
        parts = list(zip(self.parts.parts, self.parts.starts, strict=True))
        believed = [
            da.from_delayed(part.believed(selection, start), (np.nan,), dtype=np.int64)
            for part, start in parts
        ]
        estimator.sample_indices_ = da.concatenate(believed, allow_unknown_chunksizes=True)
        empty = self.checked.data.take([])
        meta = suspects_of(model.decision(empty.features), empty, np.arange(0), np.arange(0))
        frames = [part.suspects(selection, start, model) for part, start in parts]
        with dask.config.set({"dataframe.convert-string": False}):  # groups may be numbers, or tuples
            doubted = dd.from_delayed(frames, meta=meta)
            most = round((1 - estimator.clean_ratio_) * self.parts.samples)
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


def _survey(arrays: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return how many rows, which classes and groups a partition has, its first row, and whether any has a weight."""
    features, labels, groups, weights = arrays
    if len(labels) == 0:
        return 0, [], [], features, False
    cells = Cells.of(labels, groups, missing="own")
    return len(labels), cells.classes, cells.groups, features[:1], weights is None or bool(weights.any())


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
