"""Store the model of a run in its folder, whatever its kind, read it again, and predict by it.

Every model is one file, ``model.skops``, without code and without pickle. LightGBM's trees stand in it as a text, in
LightGBM's own format.
"""

from __future__ import annotations

import functools
import io
import math
import re
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import FixedThresholdClassifier
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler

from fairsieve.errors import FairsieveError, InvalidInputError, require, spell
from fairsieve.estimators.base import at_threshold
from fairsieve.files import read_archive, write_output
from fairsieve.selection.cells import Floats, Integers, Values, slices
from fairsieve.tabular.reading.columns import (
    NUMBER,
    PANDAS_MISSING,
    ColumnFormat,
    InputTable,
    Reading,
    is_text,
    learnt_reading,
)
from fairsieve.tabular.reading.encoding import CHUNK, Preparation, feature_values, notes_on_new
from fairsieve.tabular.reading.read import read_data

# Beside what skops trusts of itself: scikit-learn's estimators, NumPy's arrays, plain values. The last three are parts
# of scikit-learn's trees; what a partial calls must be trusted too, and check_array is all that is.
TRUSTED = (
    "fairsieve.tabular.reading.encoding.Preparation",
    "numpy.dtype",
    "fairsieve.tabular.model_files.BoosterClassifier",
    "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor",
    "functools.partial",
    "sklearn.utils.validation.check_array",
)
PREPARATION, BOOSTER = TRUSTED[0], TRUSTED[2]
ARCHIVE = "model.skops"
LARGEST = 256 * 2**20  # bytes of a model, packed or unpacked; most have a few thousand
UNKNOWN = ("categories_", "_infrequent_indices")  # where a NaN has a meaning


class BoosterClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """LightGBM's trees, which predict labels by their names; they are made fitted.

    Parameters
    ----------
    trees : str
        In LightGBM's own format: ``lightgbm.Booster(model_str=trees)`` reads them.
    classes : sequence of str
    """

    def __init__(self, trees: str, classes: Sequence[str]) -> None:
        self.trees = trees
        self.classes = classes
        self.classes_ = np.asarray(classes, dtype=np.str_)

    def fit(self, X: Any, y: Any) -> BoosterClassifier:
        """Return the classifier, which is fitted already."""
        return self

    def predict_proba(self, X: Any) -> Floats:
        """Predict the probabilities of ``classes_``, an array of shape (n, classes)."""
        trees = _load_booster(self.trees)
        chances = np.asarray(trees.predict(np.asarray(X, dtype=np.float64)), dtype=np.float64)
        return np.column_stack([1 - chances, chances]) if chances.ndim == 1 else chances

    def predict(self, X: Any) -> Values:
        """Predict the likeliest class of each row."""
        return np.asarray(self.classes_[self.predict_proba(X).argmax(axis=1)])


@functools.lru_cache(maxsize=2)
def _load_booster(trees: str) -> Any:
    """Read trees in LightGBM's format; refuse numbers that are not finite.

    A threshold may be infinite: by that LightGBM parts missing values from all others.
    """
    lightgbm = require("lightgbm", purpose="reading this model")
    for name, values in re.findall(r"^(leaf_value|threshold|shrinkage)=(.*)$", trees, re.MULTILINE):
        numbers = [float(number) for number in values.split()]
        if any(map(math.isnan if name == "threshold" else lambda number: not math.isfinite(number), numbers)):
            raise ValueError("its trees hold a number that is not finite")
    return lightgbm.Booster(model_str=trees)


MODELS = (LogisticRegression, HistGradientBoostingClassifier, BoosterClassifier)


def with_threshold(classifier: Any, threshold: float, positive: str) -> FixedThresholdClassifier:
    """Let a fitted classifier of two classes predict ``positive`` where its probability is ``threshold`` or more."""
    if not (isinstance(threshold, float) and 0 <= threshold <= 1 and positive in classifier.classes_):
        raise ValueError("its threshold is not a probability, or not that of one of its labels")
    made = at_threshold(classifier, threshold, positive)
    made.estimator_ = classifier
    return made


def make_model(prepared: Preparation | ColumnTransformer, classifier: Any, read: dict[str, Any]) -> Pipeline:
    """Put a fitted preparation and a fitted classifier together, with how the columns were read.

    That is kept as plain values: the ``decimal`` mark, what counts as ``missing``, and the formats of the ``columns``.
    """
    model = Pipeline([("prepare", prepared), ("model", classifier)])
    model.reading_ = read
    return model


def _formats(model: Pipeline) -> dict[str, ColumnFormat]:
    """Return how the columns that a model learnt from are written; refuse others than those."""
    read, kinds = model.reading_, model["prepare"].kinds
    formats = {str(name): ColumnFormat(**one) for name, one in read["columns"].items()}
    numeric = {name: "categories" if one.kind == "categories" else "numbers" for name, one in formats.items()}
    if numeric != kinds or read["decimal"] not in (".", ",", "auto"):
        raise ValueError("its columns are not those that it learnt from")
    return formats


def probabilities(pipelines: Sequence[Pipeline], values: pd.DataFrame) -> list[Floats]:
    """Compute the probability of each class for every row, (n, classes), by models that share a preparation."""
    predicted = [np.empty((len(values), len(one["model"].classes_))) for one in pipelines]
    for rows in slices(len(values), CHUNK):
        # As they were read: marks of missing values are gone.
        encoded = pipelines[0]["prepare"].encode(values.iloc[rows], np.float64)
        for chances, one in zip(predicted, pipelines, strict=True):
            chances[rows] = one["model"].predict_proba(encoded)
    return predicted


def decide(pipeline: Pipeline, chances: Floats) -> Integers:
    """Return the place of the predicted class of every row, by the model's threshold where it has one."""
    model = pipeline["model"]
    if not isinstance(model, FixedThresholdClassifier):
        return np.asarray(chances.argmax(axis=1))
    place = model.classes_.tolist().index(str(model.pos_label))
    return np.asarray(np.where(chances[:, place] >= model.threshold, place, 1 - place))


def write_model(pipeline: Pipeline, folder: Path) -> None:
    """Write a model into a folder; equal models give equal bytes.

    Where pandas alone reads the columns as they were read, its preparation is scikit-learn's, and fairsieve is not
    needed to load it.
    """
    if not pipeline.reading_["needs"]:
        prepared = pipeline["prepare"]
        read = pipeline.reading_ | {"prepared": vars(prepared)}
        pipeline = make_model(to_sklearn(prepared), pipeline["model"], read)
    skops = require("skops.io", purpose="keeping a model without pickle")
    write_output(folder / ARCHIVE, _without_addresses(skops.dumps(pipeline)))


def _without_addresses(content: bytes) -> bytes:
    """Replace the addresses in memory that name the objects of a skops archive by numbers, and drop the time."""
    members = read_archive(io.BytesIO(content), most=LARGEST)
    schema = members.pop("schema.json").decode()
    numbers: dict[str, str] = {}
    pattern = re.compile(r'("__id__": |"file": ")(\d+)')
    schema = pattern.sub(lambda match: match[1] + numbers.setdefault(match[2], str(len(numbers) + 1)), schema)
    renamed = {re.sub(r"^\d+", lambda match: numbers[match[0]], name): one for name, one in members.items()}
    return _packed({"schema.json": schema.encode(), **dict(sorted(renamed.items()))})


def _packed(members: Mapping[str, bytes]) -> bytes:
    """Pack files into an archive without a time."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name, content in members.items():
            archive.writestr(zipfile.ZipInfo(name), content, zipfile.ZIP_DEFLATED)
    return stream.getvalue()


def trusted_types(pipeline: Pipeline) -> list[str]:
    """Name what somebody who loads a stored model has to trust beside what skops trusts."""
    needed = {PREPARATION: bool(pipeline.reading_["needs"])}
    model = getattr(pipeline["model"], "estimator_", pipeline["model"])
    needed[BOOSTER] = isinstance(model, BoosterClassifier)
    trees = isinstance(model, HistGradientBoostingClassifier)
    return [name for place, name in enumerate(TRUSTED) if needed.get(name, place == 1 or trees)]


def read_model(folder: Path) -> Pipeline:
    """Read the model of a run's folder; refuse one with anything in it but what :func:`write_model` writes."""
    path = folder / ARCHIVE
    if not path.is_file():
        raise InvalidInputError(
            f"RUN must be a folder that fairsieve train made; {folder} has no {ARCHIVE}: name the folder that was "
            f"given to train as {spell('--out')}"
        )
    try:
        pipeline = _load(path)
        _check_numbers(pipeline.steps)
    except FairsieveError:
        raise
    except Exception as error:  # zip, JSON, NumPy, skops and LightGBM have many, and none of them matters
        raise damaged(path, error) from error
    return pipeline


def damaged(path: Path, error: Exception) -> InvalidInputError:
    """Say that a file is not one of ours."""
    return InvalidInputError(
        f"{path} is not a model that fairsieve kept, or it is damaged ({error}): train again, or copy it again"
    )


def _load(path: Path) -> Pipeline:
    """Load an archive of skops; refuse one with other types, and run none of it."""
    skops = require("skops.io", purpose="reading a model")
    # The sizes that an archive declares may lie, and what reads it next may trust them: it is packed anew.
    content = _packed(read_archive(path, most=LARGEST))
    untrusted = sorted(set(skops.get_untrusted_types(data=content)) - set(TRUSTED))
    if untrusted:
        raise InvalidInputError(
            f"{path} must hold nothing but types of scikit-learn and NumPy, or loading it could run code; it holds "
            f"{', '.join(untrusted)}: it was not made by fairsieve, and was not loaded"
        )
    pipeline = skops.loads(content, trusted=list(TRUSTED))
    if type(pipeline) is not Pipeline or len(pipeline.steps) != 2 or pipeline.memory is not None:
        raise ValueError("it has other steps")
    read = getattr(pipeline, "reading_", {})
    if "prepared" in read:
        _check_numbers(pipeline.steps)
        prepared = Preparation()
        prepared.__dict__.update(read.pop("prepared"))
        pipeline.steps[0] = ("prepare", prepared)
    prepared, model = pipeline["prepare"], pipeline["model"]
    if isinstance(model, FixedThresholdClassifier):
        with_threshold(model.estimator_, model.threshold, model.pos_label)  # which checks it
        model = model.estimator_

    if type(prepared) is not Preparation or type(model) not in MODELS:
        raise ValueError("its parts are not those of a model of this version")
    Reading(missing=pipeline.reading_["missing"])
    _formats(pipeline)  # which check them
    return pipeline


def _check_numbers(model: Any, name: str = "") -> None:
    """Check that no number that a fitted model has learnt is NaN; infinite ones have a meaning in trees."""
    parts: list[tuple[str, Any]] = []
    if isinstance(model, Mapping | list | tuple):
        parts = [(name, one) for one in (model.values() if isinstance(model, Mapping) else model)]
    elif isinstance(model, np.ndarray) and model.dtype.names:
        parts = [(name, model[field]) for field in model.dtype.names]
    elif hasattr(model, "__dict__"):
        params = model.get_params(deep=False) if isinstance(model, BaseEstimator) else {}
        # What a user may set has meanings of its own for NaN.
        kept = {own for own in params if own != "threshold" and not isinstance(params[own], BaseEstimator)}
        parts = [(own, value) for own, value in vars(model).items() if own not in kept]
    elif name not in UNKNOWN and np.asarray(model).dtype.kind == "f" and np.isnan(model).any():
        raise ValueError(f"its {name} holds a number that is not finite")
    for own, part in parts:
        _check_numbers(part, own)


def predict_table(
    model: Pipeline, data: Any, reading: Reading, origin: Path
) -> tuple[InputTable, Integers, Floats, list[str]]:
    """Predict the label of every row of a file or data frame.

    Parameters
    ----------
    origin : Path
        The file that the model came from.

    Returns
    -------
    table : InputTable
        The rows as they were read.
    codes : integer array
        Places of the predicted labels in ``model.classes_``.
    chances : array of shape (n, classes)
    notes : list of str
        What to know, in plain words.
    """
    learnt = model.reading_
    table = read_data(data, learnt_reading(reading, learnt["decimal"], learnt["missing"]))
    values = feature_values(table, _formats(model))
    try:
        notes = [*table.notes, *notes_on_new(values, model["prepare"])]
        chances = probabilities([model], values)[0]
        if not np.isfinite(chances).all():
            raise ValueError("it predicts probabilities that are not numbers")
        return table, decide(model, chances), chances, notes
    except (FairsieveError, MemoryError):
        raise
    except Exception as error:  # the values are as they should be
        raise damaged(origin, error) from error


# ---- The preparation as scikit-learn's own transformers, which need no fairsieve

# They are made from what was learnt: scikit-learn's encoder takes half a minute to fit where counting takes a second.

REST = "(any other)"  # stands for the rarer categories, which share a column
TRUTHS = {"true", "false"}


def reasons_to_read(table: InputTable, formats: Mapping[str, ColumnFormat]) -> list[str]:
    """Say why pandas alone would not read the columns as they were read; nothing where it would."""
    reasons = []
    if table.odd:
        told = ", ".join("spaces around them" if mark == " " else repr(mark) for mark in sorted(table.odd))
        reasons.append(f"values are read in a way of their own ({told})")
    for name, one in formats.items():
        column = table.frame[name]
        texts = column.array.categories if is_text(column) else []
        if one.kind == "dates":
            reasons.append(f"{name!r} has dates")
        elif one.kind == "numbers" and not all(map(NUMBER.fullmatch, texts)):
            reasons.append(f"{name!r} has numbers with signs or marks")
        elif one.kind == "categories":
            other = not is_text(column) or TRUTHS.issuperset(map(str.lower, texts))
            if other or all(map(NUMBER.fullmatch, texts)) or PANDAS_MISSING.intersection(texts):
                reasons.append(f"{name!r} has categories that pandas would not read as texts")
    return reasons


def to_sklearn(prepared: Preparation) -> ColumnTransformer:
    """Build the transformer that encodes as a preparation does."""
    texts, numbers = list(prepared.categories_), prepared.numbers_
    rows = 2 * max(map(len, prepared.categories_.values()), default=1) + 2
    # Equal rows but for what has to be met: every category twice, the stand-in for rarer ones once, each gap.
    shown: dict[str, Any] = {
        name: np.append(
            np.resize(np.array(known, object), rows - 1), REST if name in prepared.rest_ else known[0]
        )
        for name, known in prepared.categories_.items()
    }
    fill = prepared.fill_ if prepared.one_hot else np.zeros(len(numbers))
    for name, value in zip(numbers, fill, strict=True):
        shown[name] = np.full(rows, value)
        if name in prepared.gaps_:
            shown[name][0] = np.nan
    lists = [[*known, *[REST] * (name in prepared.rest_)] for name, known in prepared.categories_.items()]
    categories = [np.array(known, object) for known in lists]
    if prepared.one_hot:
        encoder: Any = OneHotEncoder(
            categories=categories, handle_unknown="infrequent_if_exist", min_frequency=2, sparse_output=False
        )
        steps = SimpleImputer(strategy="median", add_indicator=True), StandardScaler()
        scaled: Any = Pipeline([("fill", steps[0]), ("scale", steps[1])])
    else:
        encoder = OrdinalEncoder(
            categories=categories,
            handle_unknown="use_encoded_value",
            unknown_value=np.nan,
            encoded_missing_value=np.nan,
        )
        scaled = "passthrough"
    gaps = [
        (name, SimpleImputer(missing_values=gap, strategy="constant", fill_value=""))
        for name, gap in (("gaps", np.nan), ("nothing", None))
    ]
    parts = [("texts", Pipeline([*gaps, ("encode", encoder)]), texts), ("numbers", scaled, numbers)]
    parts = [part for part in (parts[::-1] if prepared.one_hot else parts) if part[2]]
    made = ColumnTransformer(parts, verbose_feature_names_out=False)
    made.fit(pd.DataFrame(shown))
    if prepared.one_hot and numbers:
        scaler = made.named_transformers_["numbers"]["scale"]
        scaler.mean_, scaler.scale_ = prepared.mean_.copy(), prepared.scale_.copy()
        scaler.var_ = prepared.scale_**2
    return made
