"""Which columns a model learns from, and the numbers that they become."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, TransformerMixin

from fairsieve.errors import InvalidInputError, spell
from fairsieve.selection.cells import Floats, Keys, Values, slices
from fairsieve.tabular.reading.columns import (
    DATE,
    EXACT,
    ColumnFormat,
    InputTable,
    Kind,
    Problems,
    Reading,
    as_days,
    as_numbers,
    canonical,
    is_text,
    kind_of,
    number_style,
    used_texts,
    whole_numbers,
)
from fairsieve.tabular.reading.read import read_frame
from fairsieve.tabular.settings import TableSettings

MOST_CATEGORIES = 50
IDENTIFIERS = "a different value in most rows, as names and identifiers have"


@dataclass(frozen=True)
class Feature:
    """A column, and what is made of it.

    Attributes
    ----------
    column : str
    format : ColumnFormat
        What it holds, and how that is written.
    missing : int
        Rows without a value.
    distinct : int
        Different values.
    left_out : str
        Why it is not learnt from; empty where it is.
    hint : str
        What to know of how its numbers are written; mostly empty.
    """

    column: str
    format: ColumnFormat
    missing: int
    distinct: int
    left_out: str = ""
    hint: str = ""

    @property
    def kind(self) -> Kind:
        """What a model takes it for: numbers, which dates become too, or categories."""
        return "categories" if self.format.kind == "categories" else "numbers"

    def treatment(self, model: str) -> str:
        """Say what is made of it for a kind of model."""
        if self.left_out:
            return f"left out: {self.left_out}"
        if model != "logistic":
            return "as it is; missing values stay missing"
        if self.kind == "numbers":
            days = "days since 1970; " if self.format.kind == "dates" else ""
            filled = "; missing ones take the median, and a column says which" if self.missing else ""
            return f"{days}standardised{filled}"
        return f"one column for each value, missing being one; of more than {MOST_CATEGORIES}, the rarest share one"


def describe_features(table: InputTable, asked: TableSettings, problems: Problems) -> list[Feature]:
    """Describe every column but the label and the sensitive ones, and what is made of it; collect problems."""
    found: list[Feature] = []
    for name in ("drop", "categories", "dates"):
        for column in getattr(asked, name):
            with problems.collected():
                table.column(column, f"--{name}")
    apart = {asked.label} if asked.keep_sensitive else {asked.label, *asked.sensitive}
    for column in table.columns:
        if column not in apart:
            with problems.collected():
                found.append(_describe(table, column, asked))
    if not used(found) and not problems.found:
        raise InvalidInputError(
            f"{table.name} must have a column to learn from beside the label and the sensitive ones; it has "
            + (", ".join(f"{one.column!r} (left out: {one.left_out})" for one in found[:5]) or "none")
        )
    return found


def used(features: Sequence[Feature]) -> list[Feature]:
    """Select those that are learnt from."""
    return [feature for feature in features if not feature.left_out]


def _describe(table: InputTable, name: str, asked: TableSettings) -> Feature:
    """Find a column's kind, its gaps, and why it is left out, if it is."""
    column, texts = table.frame[name], is_text(table.frame[name])
    missing, distinct = int(column.isna().sum()), int(column.nunique())
    made = Feature(name, ColumnFormat("categories"), missing, distinct)
    if name in asked.drop:
        return replace(made, left_out="you asked for it")
    if distinct == 0:
        return replace(made, left_out="no row has a value")
    if name in asked.dates:
        as_days(table, name, f"{spell('--dates')} must be a column of dates, written", "leave the option out")
        return replace(made, format=ColumnFormat("dates"))
    chosen = name in asked.categories
    if not chosen:
        kind, hint = kind_of(table, name, len(column) - missing)
        made = replace(made, hint=hint)
        if kind == "numbers":
            made = replace(made, format=table.format(name))
    if distinct == 1 and not missing:
        return replace(made, left_out="the same value in every row")
    many = distinct > 20 and distinct > (len(column) - missing) / 2
    numbers = whole_numbers(column) if made.kind == "numbers" else None
    if numbers is None:
        plain = chosen or not texts
        return made if plain else _describe_texts(made, column.array.categories, table.reading.decimal, many)
    if not missing and len(numbers) > 2 and bool((np.diff(numbers) == 1).all()):
        return replace(made, left_out="it numbers the rows")
    if int(numbers.min()) >= -EXACT and int(numbers.max()) <= EXACT:
        return made
    if many or distinct > MOST_CATEGORIES:
        other = f"subtract a constant, or add {spell('--categories')} to take them as categories"
        which = IDENTIFIERS if many else other
        return replace(made, left_out=f"whole numbers beyond 2**53, which doubles merge; {which}")
    hint = f"Whole numbers beyond 2**53, which doubles would merge, are taken as categories: {name!r}."
    return replace(made, format=ColumnFormat("categories"), hint=hint)


def _describe_texts(made: Feature, texts: Iterable[str], decimal: str, many: bool) -> Feature:
    """Say why nothing can be learnt from a column of texts, or how its numbers may be meant."""

    def all_are(style: str) -> bool:
        return decimal == "." and all(number_style(text) == style for text in texts)

    if made.kind == "numbers":
        hints, of_column, signs = [], f"column {made.column!r}", made.format.signs
        if made.format.thousands and all_are("whole"):
            hints.append(f"Commas in {of_column} were read as marks between thousands (1,500 is 1500).")
        signs = ["%", "none"] if signs == ["%", ""] else [sign for sign in signs if sign]
        if len(signs) > 1:
            hints.append(f"Signs of numbers in {of_column} differ, and are ignored: {' and '.join(signs)}.")
        return replace(made, hint=" ".join(hints))
    comma, useless = spell("--decimal", ","), IDENTIFIERS
    if all_are("comma"):
        hint = f"Column {made.column!r} looks like numbers with a decimal comma; {comma} reads them as such."
        useless = f"numbers with a decimal comma; add {comma} to learn from them"
        made = replace(made, hint=hint)
    if all(map(DATE.fullmatch, texts)):
        twice = any("/" in text for text in texts)
        why = f"dates; add {spell('--dates')} to learn from them as numbers"
        wrong = f"dates that may mean two days; write 2026-03-04, and add {spell('--dates')}"
        return replace(made, left_out=wrong if twice else why)
    return replace(made, left_out=useless) if many else made


def find_formats(features: Sequence[Feature]) -> dict[str, ColumnFormat]:
    """Say how the columns that are learnt from are written."""
    return {one.column: one.format for one in used(features)}


def feature_values(table: InputTable, formats: Mapping[str, ColumnFormat]) -> pd.DataFrame:
    """Return the columns that a model takes, read as it learnt them: doubles, NaN where missing, or texts."""
    values: dict[str, Any] = {}
    for name, learnt in formats.items():
        if learnt.kind == "categories":
            column = table.column(name)
            values[name] = (column if is_text(column) else canonical(column)).array
        else:
            values[name] = as_numbers(table, name, learnt)
    return pd.DataFrame(values, index=table.frame.index, copy=False)


def hash_rows(table: InputTable, values: pd.DataFrame, rest: Sequence[str]) -> Keys:
    """Return a number for each row of ``values``, by what these and the ``rest`` of its columns hold."""
    texts = {name: table.texts(name).loc[values.index] for name in rest}
    whole = pd.concat([values, pd.DataFrame(texts)], axis=1)
    return np.asarray(pd.util.hash_pandas_object(whole, index=False))


LARGEST = float(np.finfo(np.float32).max)
HUGE = 1e100  # whose squares overflow
MOST_NATIVE = 254  # categories of a column for trees; scikit-learn's take 255 values
CHUNK = 65_536  # rows of numbers that are encoded at a time


class Preparation(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Turn the columns of a table into numbers, the first step of every model that is stored.

    For a linear model, numbers are filled (by the median, with a column that says where) and standardised, and a
    category has a column for each value, a missing one being a value too. For trees, numbers stay as they are and a
    category is a code; categories come first, since scikit-learn's trees put them there.

    The order of columns and categories follows from what they hold, so that names and the table's order decide nothing.

    It takes a data frame however its gaps were read: as None, NaN, NA, an empty text, or a mark such as "?".

    Parameters
    ----------
    one_hot : bool
        Encode for a linear model; for trees otherwise.
    missing : sequence of str
        Marks that count as missing beside the usual ones.
    dates : sequence of str
        Columns of dates, which are taken as days.

    Attributes
    ----------
    numbers_ : list of str
        The columns of numbers.
    gaps_ : list of str
        Those of them with gaps in training.
    fill_, mean_, scale_ : arrays
        Medians of the numbers; means and deviations of the numbers and of their gaps.
    categories_ : dict of lists of str
        The categories of each column of texts; "" for missing ones, if there were any.
    rest_ : list of str
        The columns with rarer categories, which share one more column.
    n_features_in_ : int

    Examples
    --------
    >>> people = pd.DataFrame({"age": [20.0, 40.0], "job": pd.Categorical(["nurse", "cook"])})
    >>> prepared = Preparation().fit(people)
    >>> prepared.transform(pd.DataFrame({"job": ["cook", None], "age": ["30", "?"]})).tolist()
    [[0.0, 0.0, 1.0], [0.0, 0.0, 0.0]]
    """

    def __init__(
        self, *, one_hot: bool = True, missing: Sequence[str] = (), dates: Sequence[str] = ()
    ) -> None:
        self.one_hot = one_hot
        self.missing = missing
        self.dates = dates

    def fit(self, X: pd.DataFrame, y: Any = None) -> Preparation:
        """Learn from columns of doubles and of texts (pandas' categories)."""
        names = sorted(map(str, X.columns), key=lambda name: _content(X[name]))
        texts = [name for name in names if is_text(X[name])]
        self.numbers_ = [name for name in names if name not in texts]
        self.n_features_in_ = X.shape[1]
        self.categories_: dict[str, list[str]] = {}
        self.rest_: list[str] = []
        for name in texts:
            self._keep_categories(name, _by_appearance(X[name]))
        self.gaps_ = [name for name in self.numbers_ if X[name].isna().any()]
        if self.one_hot:
            self.fit_numbers(X)
        return self

    def _keep_categories(self, name: str, found: dict[str, int]) -> None:
        """Keep the categories of a column, by their counts in the order in which they first appear."""
        most = MOST_CATEGORIES if self.one_hot else MOST_NATIVE
        if not self.one_hot:
            found.pop("", None)
        kept = list(found)
        if len(kept) > most:
            # The commonest, and of those equally common the first to appear.
            order = np.argsort([-count for count in found.values()], kind="stable")
            kept = [kept[place] for place in sorted(order[: most - self.one_hot])]
            self.rest_ += [name] if self.one_hot else []
        self.categories_[name] = kept or [""]

    def fit_numbers(self, X: pd.DataFrame) -> None:
        """Learn medians, means and deviations."""
        numbers = X[self.numbers_].to_numpy(dtype=np.float64)
        gaps = np.isnan(numbers)
        self.fill_ = np.nan_to_num(pd.DataFrame(numbers).median().to_numpy())
        with_gaps = gaps[:, [self.numbers_.index(name) for name in self.gaps_]]
        filled = np.column_stack([np.where(gaps, self.fill_, numbers), with_gaps])
        # Squares of very large numbers would overflow, so they are taken in a unit.
        largest = np.abs(filled).max(axis=0, initial=0.0)
        unit = np.where(largest > HUGE, largest, 1.0)
        centres = [(column.mean(), column.std()) for column in (filled / unit).T]
        mean, spread = np.array(centres).reshape(-1, 2).T
        # A deviation that is nothing but rounding is none.
        constant = spread <= 10 * np.finfo(np.float64).eps * np.maximum(np.abs(mean), 1e-300)
        self.mean_, self.scale_ = mean * unit, np.where(constant, 1.0, spread * unit)

    @property
    def kinds(self) -> dict[str, Kind]:
        """The columns that it takes, and their kinds."""
        kinds: dict[str, Kind] = dict.fromkeys(self.numbers_, "numbers")
        return kinds | dict.fromkeys(self.categories_, "categories")

    def settle(self, model: Any) -> Any:
        """Return a linear model whose coefficients of each category have the mean 0.

        Their columns add up to one in every row, so that a constant may move from them to the intercept: nothing but
        the ridge, which wants the mean 0, and rounding say where it stands. Unknown values are then like the average.
        """
        found, first = copy(model), len(self.numbers_) + len(self.gaps_)
        found.coef_, found.intercept_ = model.coef_.copy(), model.intercept_.copy()
        for name in self.categories_:
            block = found.coef_[:, first : first + self._width(name)]
            found.intercept_ += block.mean(axis=1)
            block -= block.mean(axis=1, keepdims=True)
            first += self._width(name)
        return found

    @property
    def sources(self) -> list[str]:
        """The column that each encoded number was made of."""
        found = [*self.numbers_, *self.gaps_]
        for name in self.categories_:
            found += [name] * self._width(name)
        return found

    def _width(self, name: str) -> int:
        return len(self.categories_[name]) + (name in self.rest_)

    def transform(self, X: pd.DataFrame) -> Values:
        """Encode a data frame that has the columns; others are ignored, and so are categories that are new."""
        there = [name for name in self.kinds if name in X.columns]  # feature_values says which is not
        table = read_frame(X[there], Reading(missing=self.missing))
        kinds = self.kinds | dict.fromkeys(self.dates, "dates")
        values = feature_values(table, {name: ColumnFormat(kind) for name, kind in kinds.items()})
        return self.encode(values, np.float64)

    def encode(self, values: pd.DataFrame, kind: Any = np.float32) -> Values:
        """Encode columns of doubles and of texts (pandas' categories), such as it was fitted to.

        In single precision is trained, in double precision predicted, as scikit-learn does.
        """
        if not self.one_hot:
            codes = [_places(values[name], known) for name, known in self.categories_.items()]
            return np.column_stack([*codes, values[self.numbers_].to_numpy(dtype=np.float64)])
        return np.asarray(self.compact(values, kind))

    def compact(self, values: pd.DataFrame, kind: Any = np.float32) -> OneHot:
        """Encode for a linear model, with categories as codes."""
        widths = [self._width(name) for name in self.categories_]
        first = len(self.numbers_) + len(self.gaps_)
        found = np.empty((len(values), first), dtype=kind)
        numbers = values[self.numbers_].to_numpy(dtype=np.float64)
        with_gaps = [self.numbers_.index(name) for name in self.gaps_]
        for rows in slices(len(values) if first else 0, CHUNK):
            chunk = numbers[rows]
            gaps = np.isnan(chunk)
            whole = np.concatenate([np.where(gaps, self.fill_, chunk), gaps[:, with_gaps]], axis=1)
            # A value far from all in training stays finite.
            found[rows] = np.clip((whole - self.mean_) / self.scale_, -LARGEST, LARGEST)
        codes = np.empty((len(values), len(widths)), np.uint8, order="F")
        for column, (name, known), width in zip(codes.T, self.categories_.items(), widths, strict=True):
            column[:] = _places(values[name], known, "", float(width - (name in self.rest_)))
        return OneHot(found, codes, widths)


def _by_appearance(column: pd.Series) -> dict[str, int]:
    """Count the rows with each text of a column, "" where missing, in the order in which they first appear."""
    texts = [*map(str, column.array.categories), ""]  # the code of a missing one is −1
    counts = pd.Series(column.array.codes).value_counts(sort=False)
    return {texts[code]: count for code, count in zip(counts.index, counts.tolist(), strict=True)}


def _content(column: pd.Series) -> tuple[bool, bytes]:
    """Return what sorts columns by what they hold, whatever they and their categories are called.

    A model that depended on names or on their order, by no more than rounding, could be another one.
    """
    if is_text(column):
        codes = column.array.codes
        held = [pd.factorize(codes)[0].astype(np.int64), codes < 0]
    else:
        numbers = column.to_numpy(dtype=np.float64)
        held = [np.nan_to_num(numbers) + 0.0, np.isnan(numbers)]
    return is_text(column), hashlib.sha256(b"".join(one.tobytes() for one in held)).digest()


def _places(
    column: pd.Series, known: Sequence[str], missing: str | None = None, rest: float = np.nan
) -> Floats:
    """Return the place of each row's text among the known ones; ``rest`` for others, NaN where that is nothing."""
    places = {text: float(place) for place, text in enumerate(known)}
    lookup = [places.get(str(text), rest) for text in column.array.categories]
    lookup.append(np.nan if missing is None else places.get(missing, rest))
    return np.asarray(np.array(lookup)[column.array.codes])


def notes_on_new(values: pd.DataFrame, prepared: Preparation, *, quoted: bool = True) -> list[str]:
    """Write a note on values that the preparation has not seen, which say nothing to the model.

    It tells their number alone where they may not be ``quoted``.
    """
    empty = [name for name in prepared.numbers_ if name not in prepared.gaps_ and values[name].isna().all()]
    notes = [f"Column {name!r} has no value at all, and training had one in every row." for name in empty]
    for name, known in prepared.categories_.items():
        here = set(used_texts(values[name]))
        if prepared.one_hot and bool(values[name].isna().any()):  # trees know what is missing
            here.add("")
        new = sorted(here - set(known)) if name not in prepared.rest_ else []
        if new:
            shown = ", ".join(repr(value) if value else "missing" for value in new[:3])
            more = f" and {len(new) - 3} more" if len(new) > 3 else ""
            told = f" ({shown}{more})" if quoted else f", {len(new):,} of them"
            notes.append(f"Column {name!r} has values that training did not have{told}; they are ignored.")
    return notes


# ---- Categories as codes: a matrix product takes them as they are


class OneHot:
    """An array of shape (n, d): columns of numbers, then one column for each value of each category.

    Parameters
    ----------
    numbers : array of shape (n, k)
    codes : integer array of shape (n, categories)
        The value of each category; its width stands for none, which leaves all of its columns 0.
    widths : sequence of int
        How many columns each category has.

    Examples
    --------
    >>> features = OneHot(np.array([[0.5], [1.5]], np.float32), np.array([[1], [2]], np.uint8), [2])
    >>> np.asarray(features).tolist(), features.shape
    ([[0.5, 0.0, 1.0], [1.5, 0.0, 0.0]], (2, 3))
    >>> (features[:2] @ np.array([[2.0], [3.0], [4.0]])).ravel().tolist()
    [5.0, 3.0]
    """

    __array_ufunc__ = None  # so that an array on the left leaves the product to __rmatmul__
    ndim = 2

    def __init__(self, numbers: Values, codes: Values, widths: Sequence[int]) -> None:
        self.numbers, self.codes, self.widths = numbers, codes, tuple(widths)
        self.dtype, self.itemsize = numbers.dtype, numbers.itemsize
        self.shape = len(numbers), numbers.shape[1] + sum(self.widths)

    def __len__(self) -> int:
        return len(self.numbers)

    @property
    def nbytes(self) -> int:
        return int(self.numbers.nbytes + self.codes.nbytes)

    def __getitem__(self, rows: Any) -> Any:
        """Return a slice of the rows as they are kept; single or listed rows with all of their columns."""
        if isinstance(rows, slice):
            return OneHot(self.numbers[rows], self.codes[rows], self.widths)
        if isinstance(rows, int):
            return np.asarray(self[rows : rows + 1])[0]
        return np.asarray(OneHot(self.numbers[rows], self.codes[rows], self.widths))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Values:
        found = np.zeros(self.shape, dtype or self.dtype)
        first, rows = self.numbers.shape[1], np.arange(len(self))
        found[:, :first] = self.numbers
        for codes, width in zip(self.codes.T, self.widths, strict=True):
            there = codes < width
            found[rows[there], first + codes[there].astype(np.int64)] = 1
            first += width
        return found

    def __matmul__(self, coefficients: Values) -> Floats:
        first = self.numbers.shape[1]
        found: Floats = (self.numbers @ coefficients[:first]).astype(np.float64)
        for codes, width in zip(self.codes.T, self.widths, strict=True):
            table = np.zeros((width + 1, coefficients.shape[1]))
            table[:width] = coefficients[first : first + width]
            found += table.take(codes, axis=0)
            first += width
        return found

    def __rmatmul__(self, residuals: Values) -> Floats:
        rows = np.atleast_2d(residuals)
        found = [np.asarray(rows @ self.numbers, np.float64)]
        for codes, width in zip(self.codes.T, self.widths, strict=True):
            found.append(np.stack([np.bincount(codes, each, minlength=width + 1)[:width] for each in rows]))
        whole = np.concatenate(found, axis=1)
        return np.asarray(whole[0] if residuals.ndim == 1 else whole)

    def __sub__(self, other: Any) -> Values:
        return np.asarray(np.asarray(self) - other)

    def astype(self, dtype: Any) -> Values:
        return np.asarray(self, dtype=dtype)
