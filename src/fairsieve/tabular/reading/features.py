"""Which columns a model learns from, and as what."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from fairsieve.errors import InvalidInputError
from fairsieve.tabular.reading.columns import (
    DATE,
    EXACT,
    Kind,
    as_categories,
    as_numbers,
    days_since_1970,
    kind_of,
    number_style,
    whole_numbers,
)
from fairsieve.tabular.reading.table import InputTable, count_distinct, find_column, is_text, used_texts

__all__ = ["MOST_CATEGORIES", "Feature", "describe_features", "feature_values", "used"]

MOST_CATEGORIES = 50
IDENTIFIERS = "a different value in most rows, as names and identifiers have"


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
    large : bool
        Whether it holds whole numbers beyond 2**53, which are taken as categories.
    dates : bool
        Whether it holds dates, which are taken as days.
    hint : str
        What to know of how its numbers are written; mostly empty.
    """

    column: str
    kind: Kind
    missing: int
    distinct: int
    left_out: str = ""
    large: bool = False
    dates: bool = False
    hint: str = ""

    @property
    def treatment(self) -> str:
        """What is made of it, in words."""
        if self.left_out:
            return f"left out: {self.left_out}"
        days = "days since 1970; " if self.dates else ""
        if self.kind == "numbers":
            filled = days + (
                "missing ones take the median, and a column says which; " if self.missing else ""
            )
            return f"{filled}standardised"
        rest = (
            f"; the {MOST_CATEGORIES - 1} commonest, the others as one"
            if self.distinct > MOST_CATEGORIES
            else ""
        )
        return f"one column for each value{', missing being one' if self.missing else ''}{rest}{self._large}"

    @property
    def tree_treatment(self) -> str:
        """What is made of it for boosted trees, in words."""
        if self.left_out:
            return self.treatment
        missing = "; missing ones stay missing" if self.missing else ""
        if self.kind == "numbers":
            return f"as it is{missing}"
        return f"categories as they are{missing}{self._large}"

    @property
    def _large(self) -> str:
        return " (whole numbers beyond 2**53, taken as categories)" if self.large else ""


def describe_features(
    table: InputTable,
    *,
    apart: Sequence[str],
    drop: Sequence[str] = (),
    categories: Sequence[str] = (),
    dates: Sequence[str] = (),
) -> list[Feature]:
    """Describe every column but those set ``apart`` (label and sensitive ones), and what is made of it."""
    for option, columns in (("--drop", drop), ("--categories", categories), ("--dates", dates)):
        for column in columns:
            find_column(table, column, option)
    found = [
        _describe_dates(table, column)
        if column in dates and column not in drop
        else _describe(table, column, "you asked for it" if column in drop else "", categories)
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
    """Select those that are learnt from."""
    return [feature for feature in features if not feature.left_out]


def _describe_dates(table: InputTable, name: str) -> Feature:
    """Describe a column of dates that is taken as numbers; refuse what is no date."""
    column = table.frame[name]
    if days_since_1970(column) is None:
        raise InvalidInputError(
            f"--dates must be a column of dates, written as 2026-03-04 or 04.03.2026; {name!r} of {table.name} has "
            "others, or dates that do not exist: write them so, or leave the option out"
        )
    return Feature(name, "numbers", int(column.isna().sum()), count_distinct(column), dates=True)


def _describe(table: InputTable, name: str, left_out: str, categories: Sequence[str]) -> Feature:
    """Find a column's kind, its gaps, and why it is left out, if it is."""
    column = table.frame[name]
    distinct, missing = count_distinct(column), int(column.isna().sum())
    if left_out:
        return Feature(name, "categories", missing, distinct, left_out)
    kind = kind_of(table, name, categories=categories)
    if distinct == 0:
        return Feature(name, kind, missing, distinct, "no row has a value")
    if distinct == 1 and not missing:
        return Feature(name, kind, missing, distinct, "the same value in every row")
    many = distinct > 20 and distinct > (len(column) - missing) / 2
    point = is_text(column) and table.reading.decimal == "."
    if kind == "categories":
        if name in categories or not is_text(column):
            return Feature(name, kind, missing, distinct)
        commas = point and all(number_style(text) == "comma" for text in used_texts(column))
        return Feature(
            name, kind, missing, distinct, _useless_texts(column, many, commas), hint=_hint(name, commas)
        )
    numbers = whole_numbers(column)
    if numbers is None:
        texts = used_texts(column) if point else {}
        between = "," in "".join(texts) and all(number_style(text) == "whole" for text in texts)
        hint = f"Commas in column {name!r} were read as marks between thousands (1,500 is 1500)."
        return Feature(name, kind, missing, distinct, hint=hint if between else "")
    if not missing and len(numbers) > 2 and bool((np.diff(numbers) == 1).all()):
        return Feature(name, kind, missing, distinct, "it numbers the rows")
    if int(numbers.min()) >= -EXACT and int(numbers.max()) <= EXACT:
        return Feature(name, kind, missing, distinct)
    if many or distinct > MOST_CATEGORIES:
        which = IDENTIFIERS if many else "subtract a constant, or add --categories to take them as categories"
        return Feature(
            name, kind, missing, distinct, f"whole numbers beyond 2**53, which doubles merge; {which}"
        )
    return Feature(name, "categories", missing, distinct, large=True)


def _hint(name: str, commas: bool) -> str:
    """Name the option that reads numbers with a decimal comma."""
    return (
        f"Column {name!r} looks like numbers with a decimal comma; --decimal , reads them as such."
        if commas
        else ""
    )


def _useless_texts(column: pd.Series, many: bool, commas: bool) -> str:
    """Say why nothing can be learnt from a column of texts; return an empty text where something can."""
    if all(DATE.fullmatch(text) for text in used_texts(column)):
        return "dates; add --dates to learn from them as numbers"
    if many:
        return "numbers with a decimal comma; add --decimal , to learn from them" if commas else IDENTIFIERS
    return ""


def feature_values(table: InputTable, kinds: Mapping[str, Any]) -> pd.DataFrame:
    """Return the columns that a model takes: doubles, NaN where missing, or texts."""
    values: dict[str, Any] = {}
    for column, kind in kinds.items():
        find_column(table, column, "what the model learns from")
        values[column] = (
            as_numbers(table, column) if kind == "numbers" else as_categories(table, column).array
        )
    return pd.DataFrame(values, index=table.frame.index, copy=False)
