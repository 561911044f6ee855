"""A trained model as scikit-learn's own parts, kept in a file that holds no code and no pickle."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline
from torch import nn

from fairsieve.errors import InvalidInputError
from fairsieve.files import write_output
from fairsieve.tables.columns import Kind
from fairsieve.tables.packages import package

__all__ = ["between", "kinds_of", "load_model", "pipeline_of", "save_model"]

# Beside what skops trusts of itself (scikit-learn's estimators, NumPy's arrays, plain values).
TRUSTED = ("numpy.dtype",)


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
    return fitted_pipeline(prepared, factor * weights, factor * bias, classes, epochs)


def fitted_pipeline(
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
    return fitted_pipeline(
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
    """Read a model; a file with anything in it but scikit-learn's own types is refused unread."""
    skops = package("skops.io", "reading a model")
    try:
        content = path.read_bytes()
    except OSError as error:
        raise InvalidInputError(
            f"the model must be a file that can be read; {path}: {error.strerror}"
        ) from error
    try:
        untrusted = sorted(set(skops.get_untrusted_types(data=content)) - set(TRUSTED))
        if untrusted:
            raise InvalidInputError(
                f"{path} must hold nothing but types of scikit-learn and NumPy, or loading it could run code; it holds "
                f"{', '.join(untrusted)}: it was not made by fairsieve, and was not loaded"
            )
        pipeline = skops.loads(content, trusted=list(TRUSTED))
    except (zipfile.BadZipFile, KeyError, ValueError, TypeError) as error:
        if isinstance(error, InvalidInputError):
            raise
        raise InvalidInputError(
            f"{path} is not a model that fairsieve kept, or it is damaged: {error}"
        ) from error
    if not (isinstance(pipeline, Pipeline) and [name for name, _ in pipeline.steps] == ["prepare", "model"]):
        raise InvalidInputError(f"{path} is not a model that fairsieve kept")
    return pipeline
