"""Keep a trained model, as scikit-learn's own parts, in a file that holds no code and no pickle."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import FixedThresholdClassifier
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from fairsieve.errors import InvalidInputError
from fairsieve.files import read_archive, write_output
from fairsieve.optional import package
from fairsieve.tabular.reading.columns import Kind
from fairsieve.tabular.reading.encoding import encode
from fairsieve.tabular.reading.features import Values
from fairsieve.tabular.reading.native_encoding import encode_native, is_native
from fairsieve.tabular.saved_trees import rebuild_native, rebuild_trees
from fairsieve.training.linear_model import LinearModel

__all__ = [
    "LARGEST",
    "bare_classifier",
    "column_kinds",
    "damaged",
    "decide",
    "decision_threshold",
    "interpolate",
    "load_model",
    "make_pipeline",
    "probabilities",
    "save_model",
    "with_threshold",
]

# Beside what skops trusts of itself (scikit-learn's estimators, NumPy's arrays, plain values).
TREE = "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor"
TRUSTED = ("numpy.dtype", TREE)
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


def _linear_part(pipeline: Pipeline) -> LinearModel:
    """Return the linear model of a pipeline that :func:`make_pipeline` made."""
    model = bare_classifier(pipeline["model"])
    return LinearModel(model.coef_, model.intercept_)


def with_threshold(classifier: Any, threshold: float, positive: str) -> FixedThresholdClassifier:
    """Let a fitted classifier of two classes predict ``positive`` where its probability is ``threshold`` or more."""
    if not (isinstance(threshold, float) and 0 <= threshold <= 1 and positive in classifier.classes_):
        raise ValueError("its threshold is not a probability, or not that of one of its labels")
    made = FixedThresholdClassifier(
        classifier, threshold=threshold, pos_label=positive, response_method="predict_proba"
    )
    made.estimator_ = classifier
    return made


def bare_classifier(classifier: Any) -> Any:
    """Return a classifier without its threshold, where it has one."""
    return classifier.estimator_ if isinstance(classifier, FixedThresholdClassifier) else classifier


def decision_threshold(pipeline: Pipeline) -> tuple[float, str] | None:
    """Return the threshold of a kept model and the label it is for; None where the likeliest label is predicted."""
    model = pipeline["model"]
    return (model.threshold, str(model.pos_label)) if isinstance(model, FixedThresholdClassifier) else None


def probabilities(pipelines: Sequence[Pipeline], values: Values) -> list[NDArray[np.float64]]:
    """Compute the probability of each class for every row, (n, classes), by each of some models.

    Models that share a preparation share the encoded columns, which of a million rows take a while to make.
    """
    encoded: dict[int, NDArray[Any]] = {}
    found = []
    for pipeline in pipelines:
        prepared = pipeline["prepare"]
        native = is_native(prepared)
        if id(prepared) not in encoded:
            encoded[id(prepared)] = (encode_native if native else encode)(prepared, values)
        classifier: Any = bare_classifier(pipeline["model"]) if native else _linear_part(pipeline)
        predict = classifier.predict_proba if native else classifier.probabilities
        found.append(np.asarray(predict(encoded[id(prepared)])))
    return found


def decide(pipeline: Pipeline, chances: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the place of the predicted class of every row, by the model's threshold where it has one."""
    chosen = decision_threshold(pipeline)
    if chosen is None:
        return np.asarray(chances.argmax(axis=1))
    place = pipeline["model"].classes_.tolist().index(chosen[1])
    return np.asarray(np.where(chances[:, place] >= chosen[0], place, 1 - place))


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
        return _checked(pipeline)
    except (AttributeError, IndexError, KeyError, OverflowError, TypeError, ValueError) as error:
        raise damaged(path, error) from error


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


def _checked(pipeline: Any) -> Pipeline:
    """Check that a pipeline is of our parts and no others; build anew what is more than weights."""
    if type(pipeline) is not Pipeline or len(pipeline.steps) != 2 or pipeline.memory is not None:
        raise ValueError("it has other steps")
    prepared, model = pipeline["prepare"], pipeline["model"]
    if type(prepared) is not ColumnTransformer or prepared.n_jobs is not None:
        raise ValueError("its preparation is not one of fairsieve's")
    bare = bare_classifier(model)
    if type(bare) is HistGradientBoostingClassifier:
        prepared = rebuild_native(prepared)
        bare = rebuild_trees(bare, _count_categories(prepared))
    else:
        _check_linear(prepared, bare)
    if type(model) is FixedThresholdClassifier:
        bare = with_threshold(bare, model.threshold, model.pos_label)
    return Pipeline([("prepare", prepared), ("model", bare)])


def _count_categories(prepared: ColumnTransformer) -> int:
    """Count the columns of categories."""
    return sum(len(columns) for name, _, columns in prepared.transformers_ if name == "categories")


def _check_linear(prepared: ColumnTransformer, model: Any) -> None:
    """Check a preparation and a logistic regression, as :func:`make_pipeline` takes and makes them."""
    built: list[tuple[Any, type]] = [(model, LogisticRegression)]
    for name, part, _ in prepared.transformers_:
        if name == "numbers":
            built += [(part, Pipeline), (part["fill"], SimpleImputer), (part["scale"], StandardScaler)]
        else:
            built.append((part, OneHotEncoder))
    if any(type(part) is not kind for part, kind in built):
        raise ValueError("its parts are not those of a model of fairsieve")
    if not {name for name, _, _ in prepared.transformers_} <= {"numbers", "categories"}:
        raise ValueError("it has other steps")
    shape = (1 if len(model.classes_) == 2 else len(model.classes_), model.n_features_in_)
    if model.coef_.shape != shape or model.intercept_.shape != shape[:1]:
        raise ValueError("its weights are not of the right shape")
    if not (np.isfinite(model.coef_).all() and np.isfinite(model.intercept_).all()):
        raise ValueError("its weights are not numbers")
