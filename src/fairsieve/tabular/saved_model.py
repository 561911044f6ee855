"""Keep a trained model, as scikit-learn's own parts, in a file that holds no code and no pickle."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from fairsieve.errors import InvalidInputError
from fairsieve.files import read_archive, write_output
from fairsieve.optional import package
from fairsieve.tabular.reading.columns import Kind
from fairsieve.training.linear_model import LinearModel

__all__ = [
    "column_kinds",
    "damaged",
    "interpolate",
    "linear_part",
    "load_model",
    "make_pipeline",
    "save_model",
]

# Beside what skops trusts of itself (scikit-learn's estimators, NumPy's arrays, plain values).
TRUSTED = ("numpy.dtype",)
LARGEST = 256 * 2**20  # bytes of a model, packed or unpacked; most have a few thousand


def make_pipeline(
    prepared: ColumnTransformer, linear: LinearModel, classes: Sequence[str], epochs: int
) -> Pipeline:
    """Make a fitted pipeline of scikit-learn's from a preparation and a linear model."""
    model = LogisticRegression()
    model.classes_ = np.asarray(classes, dtype=np.str_)
    model.coef_ = np.array(linear.coef, dtype=np.float64)
    model.intercept_ = np.array(linear.intercept, dtype=np.float64)
    model.n_features_in_ = model.coef_.shape[1]
    model.n_iter_ = np.array([epochs], dtype=np.int32)
    return Pipeline([("prepare", prepared), ("model", model)])


def interpolate(first: LinearModel, second: LinearModel, share: float) -> LinearModel:
    """Return the linear model ``share`` of the way from one to another.

    >>> interpolate(LinearModel(np.zeros((1, 1)), np.zeros(1)), LinearModel(np.ones((1, 1)), np.ones(1)), 0.25).coef
    array([[0.25]])
    """
    return LinearModel(
        (1 - share) * first.coef + share * second.coef,
        (1 - share) * first.intercept + share * second.intercept,
    )


def linear_part(pipeline: Pipeline) -> LinearModel:
    """Return the linear model of a pipeline that :func:`make_pipeline` made."""
    return LinearModel(pipeline["model"].coef_, pipeline["model"].intercept_)


def column_kinds(pipeline: Pipeline) -> dict[str, Kind]:
    """Return the columns that a kept model takes, and their kinds."""
    return {column: name for name, _, columns in pipeline["prepare"].transformers_ for column in columns}


def save_model(pipeline: Pipeline, path: Path) -> None:
    """Write a model to a file."""
    skops = package("skops.io", "keeping a model without pickle")
    write_output(path, skops.dumps(pipeline, compression=zipfile.ZIP_DEFLATED, compresslevel=9))


def load_model(path: Path) -> Pipeline:
    """Read a model; refuse a file with anything in it but what :func:`save_model` writes, and run none of it."""
    skops = package("skops.io", "reading a model")
    try:
        content = path.read_bytes() if path.stat().st_size <= LARGEST else b""
    except OSError as error:
        raise InvalidInputError(
            f"the model must be a file that can be read; {path}: {error.strerror}"
        ) from error
    try:
        content = _repacked(content)
        untrusted = sorted(set(skops.get_untrusted_types(data=content)) - set(TRUSTED))
        pipeline = None if untrusted else skops.loads(content, trusted=list(TRUSTED))
    except Exception as error:  # zip, JSON, NumPy and skops have many, and none of them matters
        raise damaged(path, error) from error
    if untrusted:
        raise InvalidInputError(
            f"{path} must hold nothing but types of scikit-learn and NumPy, or loading it could run code; it holds "
            f"{', '.join(untrusted)}: it was not made by fairsieve, and was not loaded"
        )
    try:
        _check_parts(pipeline)
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        raise damaged(path, error) from error
    return pipeline


def damaged(path: Path, error: Exception) -> InvalidInputError:
    """Say that a file is not one of ours."""
    return InvalidInputError(
        f"{path} is not a model that fairsieve kept, or it is damaged ({error}): train again, or copy it again"
    )


def _repacked(content: bytes) -> bytes:
    """Unpack an archive within the limit, and pack it again with sizes that are true.

    The sizes that an archive declares may lie, and what reads it next may trust them.
    """
    members = read_archive(io.BytesIO(content), most=LARGEST)
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name, unpacked in members.items():
            archive.writestr(name, unpacked)
    return stream.getvalue()


def _check_parts(pipeline: Any) -> None:
    """Check that a pipeline is built as :func:`make_pipeline` builds it, of the same parts and no others."""
    prepared, model = pipeline["prepare"], pipeline["model"]
    built: list[tuple[Any, type]] = [
        (pipeline, Pipeline),
        (prepared, ColumnTransformer),
        (model, LogisticRegression),
    ]
    for name, part, _ in prepared.transformers_:
        if name == "numbers":
            built += [(part, Pipeline), (part["fill"], SimpleImputer), (part["scale"], StandardScaler)]
        else:
            built.append((part, OneHotEncoder))
    if any(type(part) is not kind for part, kind in built):
        raise ValueError("its parts are not those of a model of fairsieve")
    if len(pipeline.steps) != 2 or not {name for name, _, _ in prepared.transformers_} <= {
        "numbers",
        "categories",
    }:
        raise ValueError("it has other steps")
    if pipeline.memory is not None or prepared.n_jobs is not None:
        raise ValueError("it asks for files or processes of its own")
    shape = (1 if len(model.classes_) == 2 else len(model.classes_), model.n_features_in_)
    if model.coef_.shape != shape or model.intercept_.shape != shape[:1]:
        raise ValueError("its weights are not of the right shape")
    if not (np.isfinite(model.coef_).all() and np.isfinite(model.intercept_).all()):
        raise ValueError("its weights are not numbers")
