"""How columns become what boosted trees learn from: categories as codes, gaps as they are.

As in :mod:`~fairsieve.tabular.reading.encoding`, the preparation consists of scikit-learn's own parts, and tables are
encoded from their codes; both give the same numbers. Categories come first, since scikit-learn's trees put them there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.compose import ColumnTransformer
from sklearn.preprocessing import FunctionTransformer, OrdinalEncoder

from fairsieve.optional import package
from fairsieve.tabular.reading.features import Values
from fairsieve.tabular.reading.table import TextColumn

__all__ = [
    "MOST_NATIVE",
    "encode_native",
    "find_categories",
    "is_native",
    "native_frame",
    "native_preparation",
]

MOST_NATIVE = 254  # categories of a column; scikit-learn's trees take 255 values


def find_categories(values: Values) -> dict[str, list[str]]:
    """List the categories of each column of texts, sorted; of many, the commonest, and rarer ones count as missing."""
    found = {}
    for name, column in values.items():
        if isinstance(column, TextColumn):
            counts = column.counts
            common = np.argsort(-counts, kind="stable")[:MOST_NATIVE]
            found[name] = sorted(str(column.values[place]) for place in common if counts[place]) or [""]
    return found


def native_preparation(numbers: Sequence[str], categories: Mapping[str, Sequence[str]]) -> ColumnTransformer:
    """Make the preparation of columns: a code for each category, NaN for what is missing or new; numbers as they are.

    Parameters
    ----------
    numbers : sequence of str
        The columns of numbers.
    categories : dict of sequences of str
        The categories of each column of texts, in the order of their codes.
    """
    encoder = OrdinalEncoder(
        categories=[np.array(known, dtype=object) for known in categories.values()],
        handle_unknown="use_encoded_value",
        unknown_value=np.nan,
    )
    parts = [
        ("categories", encoder, list(categories)),
        ("numbers", FunctionTransformer(), list(numbers)),
    ]
    prepared = ColumnTransformer([part for part in parts if part[2]], verbose_feature_names_out=False)
    row: dict[str, Any] = {name: np.array([known[0]], dtype=object) for name, known in categories.items()}
    row |= {name: np.zeros(1) for name in numbers}
    return prepared.fit(package("pandas", "reading a table").DataFrame(row))


def is_native(prepared: ColumnTransformer) -> bool:
    """Return whether a preparation is one for trees."""
    return all(type(part) in (OrdinalEncoder, FunctionTransformer) for _, part, _ in prepared.transformers_)


def encode_native(prepared: ColumnTransformer, values: Values) -> NDArray[np.float64]:
    """Encode columns as ``prepared.transform`` does."""
    columns = []
    for name, part, names in prepared.transformers_:
        if name == "numbers":
            columns += [np.asarray(values[column], dtype=np.float64) for column in names]
        else:
            columns += [
                _codes(values[column], known) for column, known in zip(names, part.categories_, strict=True)
            ]
    return np.column_stack(columns)


def _codes(column: Any, known: Sequence[Any]) -> NDArray[np.float64]:
    """Return the place of each row's text among the known ones; NaN where it is not there."""
    places = {str(text): float(place) for place, text in enumerate(known)}
    lookup = np.array([places.get(text, np.nan) for text in [*column.values, ""]])
    return np.asarray(lookup[column.codes], dtype=np.float64)


def native_frame(prepared: ColumnTransformer, values: Values) -> Any:
    """Return the columns as a data frame with categories of pandas, in the order in which they are encoded."""
    pandas = package("pandas", "reading a table")
    matrix = encode_native(prepared, values)
    columns: dict[str, Any] = {}
    for name, part, names in prepared.transformers_:
        for place, column in enumerate(names):
            found = matrix[:, len(columns)]
            if name == "categories":
                codes = np.where(np.isnan(found), -1, found).astype(np.int16)
                found = pandas.Categorical.from_codes(
                    codes, categories=[str(text) for text in part.categories_[place]]
                )
            columns[column] = found
    return pandas.DataFrame(columns)
