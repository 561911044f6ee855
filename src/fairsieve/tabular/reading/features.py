"""What a model learns from: which columns, as what, and how they become numbers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from fairsieve.errors import InvalidInputError
from fairsieve.optional import package
from fairsieve.tabular.reading.columns import Kind, as_kind, kind_of, known_in
from fairsieve.tabular.reading.read import Table, find_column

__all__ = ["Feature", "features_of", "frame_of", "new_categories", "notes_on_new", "preparation", "used"]

MOST_CATEGORIES = 50
COMMA = re.compile(r"[+-]?\d+(\.\d{3})*,\d+")
DATE = re.compile(r"\d{4}-\d{1,2}-\d{1,2}([T ].*)?|\d{1,2}[./]\d{1,2}[./]\d{2,4}")


@dataclass(frozen=True)
class Feature:
    """A column, and what is made of it.

    Attributes
    ----------
    column : str
    kind : {"numbers", "categories"}
    missing : int
        Rows without a value.
    distinct : int
        Different values.
    left_out : str
        Why it is not learnt from; empty where it is.
    """

    column: str
    kind: Kind
    missing: int
    distinct: int
    left_out: str = ""

    @property
    def treatment(self) -> str:
        """What is made of it, in words."""
        if self.left_out:
            return f"left out: {self.left_out}"
        if self.kind == "numbers":
            filled = "missing ones take the median, and a column says which; " if self.missing else ""
            return f"{filled}standardised"
        rest = (
            f"; the {MOST_CATEGORIES - 1} commonest, the others as one"
            if self.distinct > MOST_CATEGORIES
            else ""
        )
        return f"one column for each value{', missing being one' if self.missing else ''}{rest}"


def features_of(
    table: Table,
    *,
    apart: Sequence[str],
    drop: Sequence[str] = (),
    categories: Sequence[str] = (),
) -> list[Feature]:
    """Every column but those set ``apart`` (label and sensitive ones), and what is made of it."""
    for column in (*drop, *categories):
        find_column(table, column, "--drop" if column in drop else "--categories")
    found = [
        _describe(table, column, "you asked for it", categories)
        if column in drop
        else _describe(table, column, "", categories)
        for column in table.columns
        if column not in apart
    ]
    if not used(found):
        raise InvalidInputError(
            f"{table.name} must have a column to learn from beside the label and the sensitive ones; it has "
            + (", ".join(f"{one.column!r} ({one.treatment})" for one in found[:5]) or "none")
        )
    return found


def used(features: Sequence[Feature]) -> list[Feature]:
    """Those that are learnt from."""
    return [feature for feature in features if not feature.left_out]


def _describe(table: Table, column: str, left_out: str, categories: Sequence[str]) -> Feature:
    """A column's kind, its gaps, and why it is left out, if it is."""
    values = table.columns[column]
    known = known_in(values)
    distinct = len(set(values[known].tolist()))
    missing = int((~known).sum())
    kind: Kind = "categories" if left_out else kind_of(table, column, categories=categories)
    reason = left_out or _useless(table, column, kind, distinct, missing, forced=column in categories)
    return Feature(column, kind, missing, distinct, reason)


def _useless(table: Table, column: str, kind: Kind, distinct: int, missing: int, *, forced: bool) -> str:
    """Why nothing can be learnt from a column; empty where something can."""
    if distinct == 0:
        return "no row has a value"
    if distinct == 1 and not missing:
        return "the same value in every row"
    values = as_kind(table, column, kind)
    if kind == "numbers":
        steps = np.diff(values)
        return "it numbers the rows" if len(steps) > 1 and (steps == 1).all() else ""
    if forced:
        return ""
    if all(DATE.fullmatch(value) for value in values if value):
        return "dates; add a column of numbers, such as years since, to learn from them"
    if distinct > 20 and distinct > (len(values) - missing) / 2:
        if sum(bool(COMMA.fullmatch(value)) for value in values) > (len(values) - missing) / 2:
            return "numbers with a decimal comma; add --decimal , to learn from them"
        return "a different value in most rows, as names and identifiers have"
    return ""


def preparation(features: Sequence[Feature]) -> ColumnTransformer:
    """Columns → numbers; it is of scikit-learn's own parts only, so that it can be kept without pickle."""
    by_kind = {
        kind: [feature.column for feature in used(features) if feature.kind == kind]
        for kind in ("numbers", "categories")
    }
    numbers = Pipeline(
        [("fill", SimpleImputer(strategy="median", add_indicator=True)), ("scale", StandardScaler())]
    )
    values = OneHotEncoder(
        max_categories=MOST_CATEGORIES, handle_unknown="infrequent_if_exist", sparse_output=False
    )
    parts = [("numbers", numbers, by_kind["numbers"]), ("categories", values, by_kind["categories"])]
    return ColumnTransformer([part for part in parts if part[2]], verbose_feature_names_out=False)


def frame_of(table: Table, kinds: dict[str, Kind]) -> Any:
    """The data frame that :func:`preparation` and a kept model take."""
    columns = {}
    for column, kind in kinds.items():
        find_column(table, column, "what the model learns from")
        columns[column] = as_kind(table, column, kind)
    return package("pandas", "reading a table").DataFrame(columns, copy=False)


def new_categories(frame: Any, prepared: ColumnTransformer) -> dict[str, list[str]]:
    """Values that the preparation has not seen, by column; they say nothing to the model."""
    found = {}
    for name, encoder, columns in prepared.transformers_:
        if name == "categories":
            for column, known in zip(columns, encoder.categories_, strict=True):
                values: NDArray[Any] = frame[column].unique()
                new = sorted({str(value) for value in values} - {str(value) for value in known})
                if new:
                    found[column] = new
    return found


def notes_on_new(new: dict[str, list[str]]) -> list[str]:
    """A note on values that are new."""
    notes = []
    for column, values in new.items():
        shown = ", ".join(repr(value) if value else "missing" for value in values[:3])
        more = f" and {len(values) - 3} more" if len(values) > 3 else ""
        notes.append(
            f"Column {column!r} has values that training did not have ({shown}{more}); they are ignored."
        )
    return notes
