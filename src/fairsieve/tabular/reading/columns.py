"""What a column holds: numbers or categories."""

from __future__ import annotations

import re
from collections.abc import Sequence
from decimal import Context, Decimal
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fairsieve.errors import InvalidInputError
from fairsieve.optional import package
from fairsieve.tabular.reading.dates import days_since_1970
from fairsieve.tabular.reading.table import InputTable, NumberColumn, TextColumn, as_objects

__all__ = [
    "EXACT",
    "Kind",
    "ParsedNumbers",
    "as_categories",
    "as_numbers",
    "canonical",
    "exact_value",
    "kind_of",
    "parse_numbers",
    "whole_numbers",
]

Kind = Literal["numbers", "categories"]

EXAMPLES = 3
LARGEST = 1e307  # beyond it the sum of a few values overflows
EXACT = 2**53  # beyond it a double does not tell whole numbers apart
CODE = re.compile(r"0\d+")  # 00501 is a code, not a number
NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d{1,4})?")
THOUSANDS = re.compile(r"[-+]?\d{1,3}(\.\d{3})+,\d+")  # points between thousands, and a decimal comma
WHOLE = re.compile(r"[-+]?\d+")
MOST_DIGITS = 40  # of a whole number that is written out


class ParsedNumbers(NamedTuple):
    """Texts read as numbers: the numbers, NaN where missing or not one, and which are not one."""

    numbers: NDArray[np.float64]
    odd: NDArray[np.bool_]


def parse_numbers(column: TextColumn | NumberColumn, decimal: str = ".") -> ParsedNumbers:
    """Read a column as numbers; infinities are not numbers.

    Examples
    --------
    >>> found = parse_numbers(TextColumn.of(["3", None, "x"]))
    >>> found.numbers.tolist(), found.odd.tolist()
    ([3.0, nan, nan], [False, False, True])
    """
    if isinstance(column, NumberColumn):
        numbers = np.where(column.known, column.numbers, np.nan).astype(np.float64)
        odd = np.abs(numbers) >= LARGEST
        return ParsedNumbers(np.where(odd, np.nan, numbers) if odd.any() else numbers, odd)
    texts = column.values
    if decimal == ",":
        texts = as_objects(_with_point(text) for text in texts)
    to_numeric = package("pandas", "reading a table").to_numeric
    parsed = np.asarray(to_numeric(texts, errors="coerce"), dtype=np.float64)
    parsed = np.append(np.where(np.abs(parsed) < LARGEST, parsed, np.nan), np.nan)
    numbers = parsed[column.codes]
    return ParsedNumbers(numbers, column.known & np.isnan(numbers))


def _with_point(text: str) -> str:
    """Write a number that has a decimal comma with a point.

    >>> _with_point("3,5"), _with_point("1.234,5")
    ('3.5', '1234.5')
    """
    return (text.replace(".", "") if THOUSANDS.fullmatch(text) else text).replace(",", ".")


def whole_numbers(column: TextColumn | NumberColumn) -> NDArray[Any] | None:
    """Return the values of the rows that have one as exact whole numbers; None where some are not whole numbers.

    Examples
    --------
    >>> whole_numbers(TextColumn.of(["1000000000000000001", "1000000000000000002"])).tolist()
    [1000000000000000001, 1000000000000000002]
    """
    if isinstance(column, NumberColumn):
        return column.numbers[column.known] if column.numbers.dtype.kind in "iu" else None
    used = column.counts > 0
    if not used.any() or not all(WHOLE.fullmatch(text) for text in column.values[used]):
        return None
    exact = [int(text) if seen else 0 for text, seen in zip(column.values, used, strict=True)]
    small = all(-(2**63) <= number < 2**63 for number in exact)
    return np.array(exact, dtype=np.int64 if small else object)[column.codes[column.known]]


def kind_of(table: InputTable, name: str, *, categories: Sequence[str] = ()) -> Kind:
    """Decide whether a column holds numbers or categories; refuse a mixture, with the ways out.

    Texts that are all numbers are numbers, unless some begin with a 0 as codes do. Where most are
    numbers and some are not, somebody has to say what those are.
    """
    column = table.columns[name]
    known = int(column.known.sum())
    if name in categories or not known:
        return "categories"
    if isinstance(column, TextColumn) and any(
        CODE.fullmatch(text) for text in column.values[column.counts > 0]
    ):
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
    values = list(dict.fromkeys(str(value) for value in table.columns[name].take(odd).tolist()))
    rows = ", ".join(str(row) for row in table.rows[odd[:EXAMPLES]])
    listed = ", ".join(repr(value) for value in values[:EXAMPLES]) + (" …" if len(values) > EXAMPLES else "")
    texts, where = ("1 text", "row") if len(odd) == 1 else (f"{len(odd):,} texts", "rows")
    otherwise = "" if decided else f", or --categories {name!r} to take the whole column as categories"
    raise InvalidInputError(
        f"column {name!r} of {table.name} mixes numbers with {texts} ({listed}; {where} {rows}"
        f"{' …' if len(odd) > EXAMPLES else ''}). Correct those, or add --missing {values[0]!r} to take such a value "
        f"as missing{otherwise}"
    )


def as_numbers(table: InputTable, name: str) -> NDArray[np.float64]:
    """Return a column as doubles, NaN where missing; dates as days; refuse other texts in it."""
    parsed = parse_numbers(table.columns[name], table.reading.decimal)
    if parsed.odd.any():
        days = days_since_1970(table.columns[name])
        if days is not None:
            return days
        _refuse_mixture(table, name, parsed, decided=True)
    return parsed.numbers


def as_categories(table: InputTable, name: str) -> TextColumn:
    """Return a column as texts; numbers are written in one way, without rounding."""
    column = table.columns[name]
    return canonical(column) if isinstance(column, NumberColumn) else column


def canonical(column: TextColumn | NumberColumn, decimal: str = ".") -> TextColumn:
    """Return a column as texts; where all are numbers, write each exact value in one way (1, not 1.0).

    No value passes through floating point, so numbers of any length stay apart. Codes that begin with a 0
    stay as they are.

    Examples
    --------
    >>> canonical(TextColumn.of(["1.0", "0", None, "1"])).tolist()
    ['1', '0', None, '1']
    >>> canonical(TextColumn.of(["1234567890123451", "1234567890123452.0"])).tolist()
    ['1234567890123451', '1234567890123452']
    """
    if isinstance(column, NumberColumn):
        values, places = np.unique(column.numbers[column.known], return_inverse=True)
        codes = np.full(len(column), -1, dtype=np.int32)
        codes[column.known] = places
        texts = [
            _exact_text(str(value) if isinstance(value, int) else repr(value)) for value in values.tolist()
        ]
        return TextColumn(codes, as_objects(range(len(values)))).recoded(texts)
    texts = column.values.tolist()
    if decimal == ",":
        texts = [_with_point(text) for text in texts]
    used = [text for text, count in zip(texts, column.counts, strict=True) if count]
    if not all(NUMBER.fullmatch(text) and not CODE.fullmatch(text) for text in used):
        return column
    return column.recoded([_exact_text(text) if NUMBER.fullmatch(text) else text for text in texts])


def exact_value(value: object, decimal: str = ".") -> str:
    """Write one value as a text; a number, without rounding, in one way whatever way it was written.

    >>> exact_value("1.0"), exact_value(2.50), exact_value("3,5", ","), exact_value("a")
    ('1', '2.5', '3.5', 'a')
    """
    text = _with_point(str(value)) if decimal == "," else str(value)
    return _exact_text(text) if NUMBER.fullmatch(text) else str(value)


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
