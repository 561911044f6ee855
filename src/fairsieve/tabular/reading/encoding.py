"""How columns become the numbers that a model learns from.

The preparation consists of scikit-learn's own parts, so that it can be kept without pickle and used without
fairsieve. Its statistics are computed column by column, and tables are encoded from their codes, which takes a
fraction of the time and memory of ``ColumnTransformer`` on a million rows. Both give the same numbers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from fairsieve.optional import package
from fairsieve.tabular.reading.features import MOST_CATEGORIES, Values
from fairsieve.tabular.reading.table import TextColumn, as_objects

__all__ = ["as_frame", "encode", "encoded_columns", "fit_preparation", "new_categories", "notes_on_new"]

LARGEST = float(np.finfo(np.float32).max)


def fit_preparation(values: Values) -> ColumnTransformer:
    """Fit the preparation of columns: numbers are filled and standardised, texts have a column for each value."""
    numbers = {name: column for name, column in values.items() if not isinstance(column, TextColumn)}
    texts = {name: column for name, column in values.items() if isinstance(column, TextColumn)}
    fill = SimpleImputer(strategy="median", add_indicator=True)
    scale = StandardScaler()
    one_hot = OneHotEncoder(
        max_categories=MOST_CATEGORIES, handle_unknown="infrequent_if_exist", sparse_output=False
    )
    parts = [
        ("numbers", Pipeline([("fill", fill), ("scale", scale)]), list(numbers)),
        ("categories", one_hot, list(texts)),
    ]
    prepared = ColumnTransformer([part for part in parts if part[2]], verbose_feature_names_out=False)
    prepared.fit(_smallest_frame(numbers, texts))
    if numbers:
        _set_statistics(prepared.named_transformers_["numbers"], list(numbers.values()))
    return prepared


def _smallest_frame(numbers: Mapping[str, NDArray[np.float64]], texts: Mapping[str, TextColumn]) -> Any:
    """Make a small frame on which the preparation learns the same structure as on all rows.

    It has every category at least once, the commonest of many more often, and a gap where a column has one.
    """
    columns: dict[str, list[Any]] = {}
    for name, column in numbers.items():
        gaps = np.isnan(column)
        columns[name] = [np.nan, 0.0] if gaps.any() else [0.0]
    for name, text in texts.items():
        columns[name] = _list_categories(text)
    length = max(len(column) for column in columns.values())
    padded = {name: column + [column[-1]] * (length - len(column)) for name, column in columns.items()}
    return package("pandas", "reading a table").DataFrame(
        {name: column if name in numbers else as_objects(column) for name, column in padded.items()}
    )


def _list_categories(column: TextColumn) -> list[str]:
    """List every category; of more than a model takes, the commonest twice, as scikit-learn would rank them."""
    found = {str(text): int(count) for text, count in zip(column.values, column.counts, strict=True) if count}
    if not column.known.all():
        found[""] = int((~column.known).sum())
    names = sorted(found)
    if len(names) <= MOST_CATEGORIES:
        return names
    order = np.argsort([found[name] for name in names], kind="stable")[::-1]
    return [*names, *(names[place] for place in order[: MOST_CATEGORIES - 1][::-1])]


def _set_statistics(part: Pipeline, columns: list[NDArray[np.float64]]) -> None:
    """Give imputer and scaler the medians, means and deviations of all rows."""
    fill, scale = part["fill"], part["scale"]
    gaps = [np.isnan(column) for column in columns]
    medians = [
        float(np.median(column[~gap])) if not gap.all() else 0.0
        for column, gap in zip(columns, gaps, strict=True)
    ]
    fill.statistics_ = np.array(medians)
    filled = (
        np.where(gap, median, column) for column, gap, median in zip(columns, gaps, medians, strict=True)
    )
    fitted = [_fit_scaler(column) for column in filled]
    fitted += [_fit_scaler(gaps[place].astype(np.float64)) for place in fill.indicator_.features_]
    scale.mean_, scale.scale_ = (np.array(column) for column in zip(*fitted, strict=True))
    with np.errstate(over="ignore"):
        scale.var_ = scale.scale_**2
    scale.n_samples_seen_ = np.int64(len(columns[0]))


def _fit_scaler(column: NDArray[np.float64]) -> tuple[float, float]:
    """Return mean and deviation; of very large numbers, computed on smaller ones, so that squares do not overflow."""
    largest = float(np.abs(column).max(initial=0.0))
    unit = largest if largest > 1e100 else 1.0
    scaler = StandardScaler().fit((column / unit)[:, None])
    return float(scaler.mean_[0]) * unit, float(scaler.scale_[0]) * unit


def encode(prepared: ColumnTransformer, values: Values) -> NDArray[np.float32]:
    """Encode columns by a fitted preparation, as ``prepared.transform`` does, in single precision."""
    rows = len(next(iter(values.values())))
    parts = {
        name: (part, [values[column] for column in columns]) for name, part, columns in prepared.transformers_
    }
    widths = {name: _width(name, part, columns) for name, (part, columns) in parts.items()}
    found = np.zeros((rows, sum(widths.values())), dtype=np.float32)
    first = 0
    for name, (part, columns) in parts.items():
        block = found[:, first : first + widths[name]]
        if name == "numbers":
            _encode_numbers(part, columns, block)
        else:
            _encode_categories(part, columns, block)
        first += widths[name]
    return found


def _width(name: str, part: Any, columns: list[Any]) -> int:
    """Count the numbers that a part makes of a row."""
    if name == "numbers":
        return len(columns) + len(part["fill"].indicator_.features_)
    return sum(_category_widths(part))


def _category_widths(encoder: OneHotEncoder) -> list[int]:
    """Count the columns of each text; all infrequent categories share one."""
    pairs = zip(encoder.categories_, encoder.infrequent_categories_, strict=True)
    return [len(known) if rest is None else len(known) - len(rest) + 1 for known, rest in pairs]


def _encode_numbers(part: Pipeline, columns: list[Any], block: NDArray[np.float32]) -> None:
    """Fill and standardise numbers; add a column for the gaps of each column that had some in training."""
    fill, scale = part["fill"], part["scale"]
    for place, column in enumerate(columns):
        filled = np.where(np.isnan(column), fill.statistics_[place], column)
        standard = (filled - scale.mean_[place]) / scale.scale_[place]
        block[:, place] = np.clip(
            standard, -LARGEST, LARGEST
        )  # a value far from all in training stays finite
    for place, column in enumerate(fill.indicator_.features_, start=len(columns)):
        block[:, place] = (np.isnan(columns[column]) - scale.mean_[place]) / scale.scale_[place]


def _encode_categories(encoder: OneHotEncoder, columns: list[Any], block: NDArray[np.float32]) -> None:
    """Give each category its column; what is new is the rest where there is one, and nothing elsewhere."""
    every, first = np.arange(len(block)), 0
    parts = zip(
        columns, encoder.categories_, encoder.infrequent_categories_, _category_widths(encoder), strict=True
    )
    for column, known, rest, width in parts:
        rare = set() if rest is None else set(rest)
        places = {str(text): place for place, text in enumerate(text for text in known if text not in rare)}
        other = -1 if rest is None else width - 1
        lookup = np.array([places.get(text, other) for text in [*column.values, ""]])
        code = lookup[column.codes]
        there = code >= 0
        block[every[there], first + code[there]] = 1.0
        first += width


def encoded_columns(prepared: ColumnTransformer) -> list[str]:
    """Name the column that each encoded number was made of."""
    found: list[str] = []
    for name, part, columns in prepared.transformers_:
        if name == "numbers":
            found += [*columns, *(columns[place] for place in part["fill"].indicator_.features_)]
        else:
            pairs = zip(columns, _category_widths(part), strict=True)
            found += [column for column, width in pairs for _ in range(width)]
    return found


def as_frame(values: Values) -> Any:
    """Return the data frame that ``prepared.transform`` and a kept model take."""
    columns = {
        name: column.objects("") if isinstance(column, TextColumn) else column
        for name, column in values.items()
    }
    return package("pandas", "reading a table").DataFrame(columns, copy=False)


def new_categories(values: Values, prepared: ColumnTransformer) -> dict[str, list[str]]:
    """List values that the preparation has not seen, by column; they say nothing to the model."""
    found = {}
    for name, encoder, columns in prepared.transformers_:
        if name == "categories":
            for column, known in zip(columns, encoder.categories_, strict=True):
                texts = values[column]
                assert isinstance(texts, TextColumn)
                here = set(texts.values[texts.counts > 0])
                if isinstance(encoder, OneHotEncoder) and not texts.known.all():  # trees know what is missing
                    here.add("")
                new = sorted(here - {str(value) for value in known})
                if new:
                    found[column] = new
    return found


def notes_on_new(new: dict[str, list[str]]) -> list[str]:
    """Write a note on values that are new."""
    notes = []
    for column, values in new.items():
        listed = ", ".join(repr(value) if value else "missing" for value in values[:3])
        more = f" and {len(values) - 3} more" if len(values) > 3 else ""
        notes.append(
            f"Column {column!r} has values that training did not have ({listed}{more}); they are ignored."
        )
    return notes
