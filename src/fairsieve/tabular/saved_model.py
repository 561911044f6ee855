"""A trained model as scikit-learn's own parts, kept in a file that holds no code and no pickle."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from torch import nn

from fairsieve.errors import InvalidInputError
from fairsieve.files import write_output
from fairsieve.optional import package
from fairsieve.tabular.reading.columns import Kind

__all__ = ["between", "damaged", "kinds_of", "load_model", "pipeline_of", "save_model"]

# Beside what skops trusts of itself (scikit-learn's estimators, NumPy's arrays, plain values).
TRUSTED = ("numpy.dtype",)
LARGEST = 256 * 2**20  # bytes of a model, packed or unpacked; most have a few thousand


def pipeline_of(
    prepared: ColumnTransformer, module: nn.Module, classes: NDArray[Any], epochs: int
) -> Pipeline:
    """Preparation and linear model, as a fitted pipeline of scikit-learn.

    The paper's model has the logit 2·f(x) for two classes; scikit-learn's has f(x).
    """
    linear: Any = module.linear
    weights = linear.weight.detach().cpu().double().numpy()
    bias = linear.bias.detach().cpu().double().numpy()
    factor = 2.0 if len(weights) == 1 else 1.0
    return _fitted_pipeline(prepared, factor * weights, factor * bias, classes, epochs)


def _fitted_pipeline(
    prepared: ColumnTransformer,
    weights: NDArray[np.float64],
    bias: NDArray[np.float64],
    classes: NDArray[Any],
    epochs: int,
) -> Pipeline:
    """A pipeline that predicts by given weights."""
    model = LogisticRegression()
    model.classes_ = np.asarray(classes, dtype=np.str_)
    model.coef_, model.intercept_ = weights, bias
    model.n_features_in_ = weights.shape[1]
    model.n_iter_ = np.array([epochs], dtype=np.int32)
    return Pipeline([("prepare", prepared), ("model", model)])


def between(first: Pipeline, second: Pipeline, share: float) -> Pipeline:
    """The linear model ``share`` of the way from one to another, on the same preparation."""
    one, other = first["model"], second["model"]
    return _fitted_pipeline(
        first["prepare"],
        (1 - share) * one.coef_ + share * other.coef_,
        (1 - share) * one.intercept_ + share * other.intercept_,
        one.classes_,
        int(one.n_iter_[0]),
    )


def kinds_of(pipeline: Pipeline) -> dict[str, Kind]:
    """What a kept model takes: its columns and their kinds."""
    return {column: name for name, _, columns in pipeline["prepare"].transformers_ for column in columns}


def save_model(pipeline: Pipeline, path: Path) -> None:
    """Write a model."""
    skops = package("skops.io", "keeping a model without pickle")
    write_output(path, skops.dumps(pipeline, compression=zipfile.ZIP_DEFLATED, compresslevel=9))


def load_model(path: Path) -> Pipeline:
    """Read a model; a file with anything in it but what :func:`save_model` writes is refused, and none of it is run."""
    skops = package("skops.io", "reading a model")
    try:
        content = path.read_bytes() if path.stat().st_size <= LARGEST else b""
    except OSError as error:
        raise InvalidInputError(
            f"the model must be a file that can be read; {path}: {error.strerror}"
        ) from error
    try:
        _check_size(content)
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
    """What to say of a file that is not one of ours."""
    return InvalidInputError(
        f"{path} is not a model that fairsieve kept, or it is damaged ({error}): train again, or copy it again"
    )


def _check_size(content: bytes) -> None:
    """Whether a file stays small when it is unpacked; no member gives more than it says."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        size = sum(member.file_size for member in archive.infolist())
    if size > LARGEST:
        raise ValueError(f"it unpacks to {size:,} bytes")


def _check_parts(pipeline: Any) -> None:
    """Whether a pipeline is built as :func:`pipeline_of` builds it, of the same parts and no others."""
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
