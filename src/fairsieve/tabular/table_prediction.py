"""Predict the labels of new rows by a kept model."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.pipeline import Pipeline

from fairsieve.errors import InvalidInputError
from fairsieve.optional import check_packages
from fairsieve.tabular.model_files import damaged, decide, find_model, probabilities, read_model
from fairsieve.tabular.reading.encoding import new_categories, notes_on_new
from fairsieve.tabular.reading.features import feature_values
from fairsieve.tabular.reading.read import read_data
from fairsieve.tabular.reading.table import InputTable, Reading, closest

__all__ = ["label_probabilities", "predict_rows", "predict_table"]


def predict_table(
    run: Path | str, data: Any, reading: Reading | None = None
) -> tuple[InputTable, NDArray[np.str_], NDArray[np.float64], list[str]]:
    """Predict the label of every row of a file or data frame by the model in a run's folder.

    Returns
    -------
    table : InputTable
        The rows as they were read.
    predicted : array of str
    probability : array of floats
        Of what is predicted.
    notes : list of str
        What to know, in plain words.
    """
    folder = Path(run)
    check_packages()
    model, reading = read_model(folder), reading or Reading()
    table = read_data(data, replace(reading, missing=(*reading.missing, *model["prepare"].missing)))
    return (table, *predict_rows(model, table, find_model(folder)))


def predict_rows(
    model: Pipeline, table: InputTable, origin: Path
) -> tuple[NDArray[np.str_], NDArray[np.float64], list[str]]:
    """Predict the label of every row of a table that was read, by a model that came from the file ``origin``."""
    kinds = model["prepare"].kinds
    absent = [column for column in kinds if column not in table.frame]
    if absent:
        close = closest(absent[0], table.columns)
        hint = f"Did you mean {close!r}: rename it?" if close else ""
        raise InvalidInputError(
            f"{table.name} must have every column that the model learnt from; missing: "
            f"{', '.join(map(repr, absent[:5]))}{' …' if len(absent) > 5 else ''}. "
            f"{hint or 'Give a table of the form that was trained on'}"
        )
    values = feature_values(table, kinds)
    try:
        notes = [*table.notes, *notes_on_new(new_categories(values, model["prepare"]))]
        chances = probabilities([model], values)[0]
        if not np.isfinite(chances).all():
            raise ValueError("it predicts probabilities that are not numbers")
        codes = decide(model, chances)
    except (
        AttributeError,
        IndexError,
        KeyError,
        TypeError,
        ValueError,
    ) as error:  # the values are as they should be
        raise damaged(origin, error) from error
    return model.classes_[codes], chances[np.arange(len(codes)), codes], notes


def label_probabilities(model: Pipeline, table: InputTable) -> dict[str, NDArray[np.float64]]:
    """Return the probability of each label for every row of a table that the model can predict."""
    chances = probabilities([model], feature_values(table, model["prepare"].kinds))[0]
    return {str(label): chances[:, code] for code, label in enumerate(model.classes_)}
