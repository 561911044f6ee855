"""What a column of texts holds: numbers, categories or dates."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime
from decimal import Context, Decimal
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fairsieve.errors import InvalidInputError
from fairsieve.tabular.reading.table import InputTable, as_objects, coded, is_text, recode, used_texts

__all__ = [
    "DATE",
    "EXACT",
    "Kind",
    "ParsedNumbers",
    "as_categories",
    "as_numbers",
    "canonical",
    "days_since_1970",
    "exact_value",
    "kind_of",
    "number_style",
    "parse_numbers",
    "whole_numbers",
]

Kind = Literal["numbers", "categories"]

EXAMPLES = 3
LARGEST = 1e307  # beyond it the sum of a few values overflows
EXACT = 2**53  # beyond it a double does not tell whole numbers apart
CODE = re.compile(r"0\d+")  # 00501 is a code, not a number
NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d{1,4})?")
WHOLE = re.compile(r"[-+]?\d+")
MOST_DIGITS = 40  # of a whole number that is written out
# Numbers as people write them: € 1.234,50 and 70 % and 1,234.5 and 1'234.
UNITS = re.compile(r"(?<![^-+])[€$£¥\s]+|[€$£¥%\s]+$")
COMMA = re.compile(r"[-+]?(\d+|\d{1,3}(\.\d{3})+),\d+")
POINT = re.compile(r"[-+]?(\d*|\d{1,3}(,\d{3})+)\.\d+")
BETWEEN = {
    ".": re.compile(r"[-+]?\d{1,3}([,'’\s]\d{3})+(\.\d+)?"),
    ",": re.compile(r"[-+]?\d{1,3}(\.\d{3})+,\d+|[-+]?\d{1,3}(['’\s]\d{3})+(,\d+)?"),
}
MARKS = {".": re.compile(r"[,'’\s]"), ",": re.compile(r"[.'’\s]")}  # between thousands
DATE = re.compile(r"\d{4}-\d{1,2}-\d{1,2}([T ].*)?|\d{1,2}[./]\d{1,2}[./]\d{2,4}")
ISO = re.compile(r"(\d{4})-(\d{1,2})-(\d{1,2})(?:[T ](.+))?")
DOTTED = re.compile(r"(\d{1,2})\.(\d{1,2})\.(\d{4})")  # the day is first wherever points are written
START, SECONDS = datetime(1970, 1, 1), 86_400.0


class ParsedNumbers(NamedTuple):
    """A column read as numbers: the numbers, NaN where missing or not one, and which are not one."""

    numbers: NDArray[np.float64]
    odd: NDArray[np.bool_]


def parse_numbers(column: pd.Series, decimal: str = ".") -> ParsedNumbers:
    """Read a column as numbers; infinities are not numbers.

    Examples
    --------
    >>> found = parse_numbers(pd.Series(["3", None, "x", "€ 1,234.5", "70 %"], dtype="category"))
    >>> found.numbers.tolist(), found.odd.tolist()
    ([3.0, nan, nan, 1234.5, 70.0], [False, False, True, False, False])
    """
    if not is_text(column):
        numbers = column.to_numpy(dtype=np.float64, na_value=np.nan)
        odd = np.abs(numbers) >= LARGEST
        return ParsedNumbers(np.where(odd, np.nan, numbers) if odd.any() else numbers, odd)
    texts = column.cat.categories.to_numpy()
    parsed = _to_numbers(as_objects(map(_with_point, texts)) if decimal == "," else texts)
    # Only what is no number as it stands is looked at again, without signs and marks between thousands.
    again = np.flatnonzero(np.isnan(parsed))
    parsed[again] = _to_numbers(as_objects(_plain_number(texts[place], decimal) for place in again))
    parsed = np.append(np.where(np.abs(parsed) < LARGEST, parsed, np.nan), np.nan)
    codes = column.cat.codes.to_numpy()
    numbers = parsed[codes]
    return ParsedNumbers(numbers, (codes >= 0) & np.isnan(numbers))


def _to_numbers(texts: NDArray[np.object_]) -> NDArray[np.float64]:
    """Convert texts to doubles, NaN where one is no number."""
    return np.array(pd.to_numeric(texts, errors="coerce"), dtype=np.float64)


def _plain_number(text: str, decimal: str) -> str:
    """Write a number without its currency or percent sign and without marks between thousands, with a decimal point.

    >>> _plain_number("€ 1.234,50", ","), _plain_number("70 %", "."), _plain_number("1,234.5", ".")
    ('1234.50', '70', '1234.5')
    """
    bare = UNITS.sub("", text)
    if BETWEEN[decimal].fullmatch(bare):
        bare = MARKS[decimal].sub("", bare)
    return bare.replace(",", ".") if decimal == "," else bare


def number_style(text: str) -> Literal["comma", "point", "whole", "text"]:
    """Tell by its decimal mark how a number is written; "whole" where it has none, or where a comma may be either.

    >>> [number_style(text) for text in ("1,5", "€ 1.234,50", "1.5", "1,234.5", "1,500", "70 %", "x")]
    ['comma', 'comma', 'point', 'point', 'whole', 'whole', 'text']
    """
    bare = UNITS.sub("", text)
    if COMMA.fullmatch(bare):
        return "whole" if re.fullmatch(r"[-+]?\d{1,3}(,\d{3})+", bare) else "comma"
    if POINT.fullmatch(bare):
        return "point"
    return "whole" if WHOLE.fullmatch(bare) or BETWEEN["."].fullmatch(bare) else "text"


def whole_numbers(column: pd.Series) -> NDArray[Any] | None:
    """Return the values of the rows that have one as exact whole numbers; None where some are not whole numbers.

    Examples
    --------
    >>> long = pd.Series(["1000000000000000001", "1000000000000000002"], dtype="category")
    >>> whole_numbers(long).tolist()
    [1000000000000000001, 1000000000000000002]
    """
    if not is_text(column):
        known = column.dropna()
        kind = np.dtype(getattr(column.dtype, "numpy_dtype", column.dtype))
        return np.asarray(known.to_numpy(dtype=kind)) if kind.kind in "iu" else None
    used = used_texts(column)
    if not used or not all(WHOLE.fullmatch(text) for text in used):
        return None
    exact = [int(text) if text in used else 0 for text in column.cat.categories]
    small = all(-(2**63) <= number < 2**63 for number in exact)
    codes = column.cat.codes.to_numpy()
    return np.asarray(np.array(exact, dtype=np.int64 if small else object)[codes[codes >= 0]])


def kind_of(table: InputTable, name: str, *, categories: Sequence[str] = ()) -> Kind:
    """Decide whether a column holds numbers or categories; refuse a mixture, with the ways out.

    Texts that are all numbers are numbers, unless some begin with a 0 as codes do. Where most are
    numbers and some are not, somebody has to say what those are.
    """
    column = table.frame[name]
    known = int(column.notna().sum())
    if name in categories or not known:
        return "categories"
    if is_text(column) and any(text[0] == "0" and CODE.fullmatch(text) for text in used_texts(column)):
        return "categories"
    parsed = parse_numbers(column, table.reading.decimal)
    share = 1 - parsed.odd.sum() / known
    if share == 1:
        return "numbers"
    if share >= 0.5:
        _refuse_mixture(table, name, parsed)
    return "categories"


def _refuse_mixture(table: InputTable, name: str, parsed: ParsedNumbers, *, decided: bool = False) -> None:
    """Refuse numbers and texts in one column; offer to take it as categories, unless that is decided."""
    odd = np.flatnonzero(parsed.odd)
    values = list(dict.fromkeys(str(value) for value in table.take(odd).cells(name)))
    rows = ", ".join(str(row) for row in table.rows[odd[:EXAMPLES]])
    shown = ", ".join(repr(value) for value in values[:EXAMPLES]) + (" …" if len(values) > EXAMPLES else "")
    texts, where = ("1 text", "row") if len(odd) == 1 else (f"{len(odd):,} texts", "rows")
    otherwise = "" if decided else f", or --categories {name!r} to take the whole column as categories"
    comma = all(number_style(value) == "comma" for value in values) and table.reading.decimal == "."
    ways = "add --decimal , if they have a decimal comma, or " if comma else ""
    raise InvalidInputError(
        f"column {name!r} of {table.name} mixes numbers with {texts} ({shown}; {where} {rows}"
        f"{' …' if len(odd) > EXAMPLES else ''}). Correct those, or {ways}add --missing {values[0]!r} to take such a "
        f"value as missing{otherwise}"
    )


def as_numbers(table: InputTable, name: str) -> NDArray[np.float64]:
    """Return a column as doubles, NaN where missing; dates as days; refuse other texts in it."""
    column = table.frame[name]
    parsed = parse_numbers(column, table.reading.decimal)
    if parsed.odd.any():
        days = days_since_1970(column)
        if days is not None:
            return days
        _refuse_mixture(table, name, parsed, decided=True)
    return parsed.numbers


def as_categories(table: InputTable, name: str) -> pd.Series:
    """Return a column as texts; numbers are written in one way, without rounding."""
    column = table.frame[name]
    return column if is_text(column) else canonical(column)


def canonical(column: pd.Series, decimal: str = ".") -> pd.Series:
    """Return a column as texts; where all are numbers, write each exact value in one way (1, not 1.0).

    No value passes through floating point, so numbers of any length stay apart. Codes that begin with a 0
    stay as they are.

    Examples
    --------
    >>> canonical(pd.Series(["1.0", "0", None, "1"], dtype="category")).tolist()
    ['1', '0', nan, '1']
    >>> canonical(pd.Series(["1234567890123451", "1234567890123452.0"], dtype="category")).tolist()
    ['1234567890123451', '1234567890123452']
    """
    if not is_text(column):
        codes, values = pd.factorize(column)
        texts = [
            _exact_text(str(value) if isinstance(value, int) else repr(value)) for value in values.tolist()
        ]
        return pd.Series(coded(codes, texts), index=column.index, name=column.name)
    texts = [str(text) for text in column.cat.categories]
    if decimal == ",":
        texts = [_with_point(text) for text in texts]
    used = used_texts(column)
    pairs = zip(column.cat.categories, texts, strict=True)
    if not all(NUMBER.fullmatch(text) and not CODE.fullmatch(text) for own, text in pairs if own in used):
        return column
    return recode(column, [_exact_text(text) if NUMBER.fullmatch(text) else text for text in texts])


def exact_value(value: object, decimal: str = ".") -> str:
    """Write one value as a text; a number, without rounding, in one way whatever way it was written.

    >>> exact_value("1.0"), exact_value(2.50), exact_value("3,5", ","), exact_value("a")
    ('1', '2.5', '3.5', 'a')
    """
    text = _with_point(str(value)) if decimal == "," else str(value)
    return _exact_text(text) if NUMBER.fullmatch(text) else str(value)


def _with_point(text: str) -> str:
    """Write a number that has a decimal comma with a point.

    >>> _with_point("3,5"), _with_point("1.234,5")
    ('3.5', '1234.5')
    """
    thousands = re.fullmatch(r"[-+]?\d{1,3}(\.\d{3})+,\d+", text)
    return (text.replace(".", "") if thousands else text).replace(",", ".")


def _exact_text(text: str) -> str:
    """Write a number in one way, without rounding it.

    >>> [_exact_text(text) for text in ("1.0", "+2", "1e3", "0.50", "-0", "1e301")]
    ['1', '2', '1000', '0.5', '0', '1E+301']
    """
    number = Decimal(text)
    if not number.is_finite():
        return text
    if not number:
        return "0"
    exact = number.normalize(Context(prec=len(text) + 1, Emax=99999, Emin=-99999))
    return format(exact, "f") if -MOST_DIGITS < exact.adjusted() < MOST_DIGITS else str(exact)


def days_since_1970(column: pd.Series) -> NDArray[np.float64] | None:
    """Return a column of dates as days, NaN where missing; None where some value is no date that can only mean one day.

    Read are 2026-03-04, with a time or without, and 04.03.2026. In 03/04/2026 nobody knows which is the month.

    Examples
    --------
    >>> days_since_1970(pd.Series(["1970-01-02", None, "1970-01-03 12:00"], dtype="category")).tolist()
    [1.0, nan, 2.5]
    >>> days_since_1970(pd.Series(["03/04/2026"], dtype="category")) is None
    True
    """
    if not is_text(column):
        return None
    used = used_texts(column)
    days = [_days(text) if text in used else np.nan for text in column.cat.categories]
    if any(day is None for day in days):
        return None
    return np.asarray(np.array([*days, np.nan], dtype=np.float64)[column.cat.codes.to_numpy()])


def _days(text: str) -> float | None:
    """Read one date; None where it is none."""
    try:
        if match := ISO.fullmatch(text):
            year, month, day = (int(part) for part in match.groups()[:3])
            moment = datetime(year, month, day)
            if match[4]:
                clock = datetime.fromisoformat(f"1970-01-01T{match[4].strip()}").replace(tzinfo=None)
                return ((moment - START) + (clock - START)).total_seconds() / SECONDS
        elif match := DOTTED.fullmatch(text):
            moment = datetime(int(match[3]), int(match[2]), int(match[1]))
        else:
            return None
    except ValueError:  # the 30th of February
        return None
    return (moment - START).total_seconds() / SECONDS
