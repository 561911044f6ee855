"""A kept model and new rows → what it predicts for them."""

from __future__ import annotations

import json
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fairsieve.errors import InvalidInputError
from fairsieve.optional import check_packages
from fairsieve.tabular.reading.features import frame_of, new_categories, notes_on_new
from fairsieve.tabular.reading.read import Reading, Table, closest, read_table
from fairsieve.tabular.saved_model import damaged, kinds_of, load_model

__all__ = ["predict"]


def predict(
    run: Path | str, data: Path | str, reading: Reading | None = None
) -> tuple[Table, NDArray[np.str_], NDArray[np.float64], list[str]]:
    """Predict the label of every row of a table by the model in a run's folder.

    Returns
    -------
    table : Table
        The rows as they were read.
    predicted : array of str
    probability : array of floats
        Of what is predicted.
    notes : list of str
        What to know, in plain words.
    """
    folder = Path(run)
    check_packages()
    if not (folder / "model.skops").is_file():
        raise InvalidInputError(
            f"RUN must be a folder that fairsieve train made; {folder} has no model.skops: name the folder that was "
            "given to train as --out"
        )
    model = load_model(folder / "model.skops")
    table = read_table(data, _with_missing_of(folder, reading or Reading()))
    kinds = kinds_of(model)
    absent = [column for column in kinds if column not in table.columns]
    if absent:
        close = closest(absent[0], table.columns)
        hint = f"Did you mean {close!r}: rename it?" if close else ""
        raise InvalidInputError(
            f"{table.name} must have every column that the model learnt from; missing: "
            f"{', '.join(map(repr, absent[:5]))}{' …' if len(absent) > 5 else ''}. "
            f"{hint or 'Give a table of the form that was trained on'}"
        )
    frame = frame_of(table, kinds)
    try:
        notes = [*table.notes, *notes_on_new(new_categories(frame, model["prepare"]))]
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Found unknown categories", category=UserWarning)
            chances = model.predict_proba(frame)
    except (
        AttributeError,
        IndexError,
        KeyError,
        TypeError,
        ValueError,
    ) as error:  # the frame is as it should be
        raise damaged(folder / "model.skops", error) from error
    return table, model.classes_[chances.argmax(axis=1)], chances.max(axis=1), notes


def _with_missing_of(folder: Path, reading: Reading) -> Reading:
    """What counted as missing in training counts as missing here."""
    try:
        known = json.loads((folder / "metrics.json").read_text(encoding="utf-8"))["settings"]["missing"]
    except (OSError, ValueError, KeyError, TypeError):
        return reading
    return replace(reading, missing=(*reading.missing, *map(str, known)))
