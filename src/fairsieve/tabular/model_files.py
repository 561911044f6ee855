"""Keep the model of a run in its folder, whatever its kind, and read it again.

Logistic regression and scikit-learn's trees are kept in ``model.skops``. LightGBM's trees are kept in its own text
format, ``model.txt``, beside ``model.json``, which says what the columns and labels are and holds a checksum.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline

from fairsieve.errors import InvalidInputError
from fairsieve.files import write_output
from fairsieve.tabular.boosted_trees import BoosterClassifier, import_lightgbm
from fairsieve.tabular.lightgbm_text import check_text
from fairsieve.tabular.reading.native_encoding import native_preparation
from fairsieve.tabular.saved_model import (
    LARGEST,
    bare_classifier,
    damaged,
    decision_threshold,
    load_model,
    save_model,
    with_threshold,
)

__all__ = ["find_model", "read_model", "write_model"]

FORMAT = "fairsieve-lightgbm-1"
DESCRIPTION, TREES, ARCHIVE = "model.json", "model.txt", "model.skops"
MOST_DESCRIPTION = 16 * 2**20  # bytes


def write_model(pipeline: Pipeline, folder: Path) -> None:
    """Write a model into a folder."""
    classifier = bare_classifier(pipeline["model"])
    if not isinstance(classifier, BoosterClassifier):
        save_model(pipeline, folder / ARCHIVE)
        return
    text = classifier.booster.model_to_string().encode()
    columns = {name: (part, names) for name, part, names in pipeline["prepare"].transformers_}
    encoder, texts = columns.get("categories", (None, []))
    known = [] if encoder is None else [[str(text) for text in one] for one in encoder.categories_]
    threshold = decision_threshold(pipeline)
    described = {
        "format": FORMAT,
        "numbers": list(columns.get("numbers", (None, []))[1]),
        "categories": dict(zip(texts, known, strict=True)),
        "classes": classifier.classes_.tolist(),
        "threshold": None if threshold is None else {"value": threshold[0], "positive": threshold[1]},
        "trees": {"file": TREES, "bytes": len(text), "sha256": hashlib.sha256(text).hexdigest()},
    }
    write_output(folder / TREES, text)
    write_output(folder / DESCRIPTION, (json.dumps(described, indent=2, ensure_ascii=False) + "\n").encode())


def find_model(folder: Path) -> Path:
    """Find the file of a run's model."""
    for name in (ARCHIVE, DESCRIPTION):
        if (folder / name).is_file():
            return folder / name
    raise InvalidInputError(
        f"RUN must be a folder that fairsieve train made; {folder} has no {ARCHIVE} and no {DESCRIPTION}: name the "
        "folder that was given to train as --out"
    )


def read_model(folder: Path) -> Pipeline:
    """Read the model of a run's folder; refuse one with anything in it but what :func:`write_model` writes."""
    path = find_model(folder)
    if path.name == ARCHIVE:
        return load_model(path)
    lightgbm = import_lightgbm("reading this model")
    try:
        described = json.loads(_read_file(path, MOST_DESCRIPTION))
        return _read_booster(described, folder, lightgbm)
    except (
        AttributeError,
        KeyError,
        RecursionError,
        TypeError,
        ValueError,
        lightgbm.basic.LightGBMError,
    ) as error:
        if isinstance(error, InvalidInputError):
            raise
        raise damaged(path, error) from error


def _read_file(path: Path, most: int) -> bytes:
    """Read a file of at most so many bytes."""
    try:
        size = path.stat().st_size
        content = path.read_bytes() if size <= most else b""
    except OSError as error:
        raise InvalidInputError(
            f"the model must be a file that can be read; {path}: {error.strerror}"
        ) from error
    if size > most:
        raise ValueError(f"{path.name} has {size:,} bytes, more than {most:,}")
    return content


def _read_booster(described: Any, folder: Path, lightgbm: Any) -> Pipeline:
    """Build a pipeline from a description and the trees beside it."""
    if described["format"] != FORMAT:
        raise ValueError(f"its format is not {FORMAT}")
    numbers, classes = _names(described["numbers"]), _names(described["classes"])
    categories = {str(column): _names(known) for column, known in described["categories"].items()}
    if len(classes) < 2 or not all(categories.values()) or set(numbers) & set(categories):
        raise ValueError("it has no labels, or no categories, or a column twice")
    trees = described["trees"]
    text = _read_file(folder / TREES, LARGEST)
    if len(text) != trees["bytes"] or hashlib.sha256(text).hexdigest() != trees["sha256"]:
        raise ValueError(f"{TREES} is not the file that it describes")
    checked = check_text(text.decode("ascii"), features=len(numbers) + len(categories), classes=len(classes))
    booster = lightgbm.Booster(model_str=checked)
    classifier: Any = BoosterClassifier(booster, classes)
    threshold = described["threshold"]
    if threshold is not None:
        classifier = with_threshold(classifier, threshold["value"], threshold["positive"])
    return Pipeline([("prepare", native_preparation(numbers, categories)), ("model", classifier)])


def _names(values: Any) -> list[str]:
    """Check a list of different texts."""
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise ValueError("names must be texts")
    if len(np.unique(np.array(values, dtype=object))) != len(values):
        raise ValueError("names must be different")
    return values
