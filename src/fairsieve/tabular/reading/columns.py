"""What a column holds: numbers or categories."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from fairsieve.errors import InvalidInputError
from fairsieve.optional import package
from fairsieve.tabular.reading.read import Table

__all__ = ["Kind", "Parsed", "as_kind", "canonical", "kind_of", "known_in", "parse_numbers"]

Kind = Literal["numbers", "categories"]

EXAMPLES = 3
LARGEST = 1e100  # beyond it squares overflow, and nobody counts so far
CODE = re.compile(r"0\d+")  # 00501 is a code, not a number


@dataclass(frozen=True, eq=False)
class Parsed:
    """Texts taken for numbers: the numbers, NaN where missing or not one, and which are not."""

    numbers: NDArray[np.float64]
    odd: NDArray[np.bool_]


def known_in(values: NDArray[Any]) -> NDArray[np.bool_]:
    """Which values are not missing."""
    if values.dtype.kind == "f":
        return np.asarray(~np.isnan(values))
    return np.array([value is not None for value in values], dtype=bool)


def parse_numbers(values: NDArray[Any], decimal: str = ".") -> Parsed:
    """Numbers of texts; infinities are not numbers.

    Examples
    --------
    >>> found = parse_numbers(np.array(["3", None, "x"], dtype=object))
    >>> found.numbers.tolist(), found.odd.tolist()
    ([3.0, nan, nan], [False, False, True])
    """
    known = known_in(values)
    if values.dtype.kind == "f":
        return Parsed(np.where(np.abs(values) < LARGEST, values, np.nan), np.abs(values) >= LARGEST)
    texts = np.where(known, values, "")
    if decimal == ",":
        texts = np.array([text.replace(",", ".") for text in texts], dtype=object)
    numbers = np.asarray(
        package("pandas", "reading a table").to_numeric(texts, errors="coerce"), dtype=np.float64
    )
    numbers = np.where(np.abs(numbers) < LARGEST, numbers, np.nan)
    return Parsed(numbers, known & np.isnan(numbers))


def kind_of(table: Table, name: str, *, categories: Sequence[str] = ()) -> Kind:
    """Whether a column holds numbers or categories; a mixture is refused, with the ways out.

    Texts that are all numbers are numbers, unless some begin with a 0 as codes do. Where most are
    numbers and some are not, somebody has to say what those are.
    """
    values = table.columns[name]
    known = known_in(values)
    if name in categories or not known.any():
        return "categories"
    parsed = parse_numbers(values, table.reading.decimal)
    share = 1 - parsed.odd.sum() / known.sum()
    if values.dtype.kind != "f" and any(CODE.fullmatch(value) for value in values[known]):
        return "categories"
    if share == 1:
        return "numbers"
    if share >= 0.5:
        _refuse_mixture(table, name, parsed)
    return "categories"


def _refuse_mixture(table: Table, name: str, parsed: Parsed, *, decided: bool = False) -> None:
    """Numbers and texts in one column; it can still be taken as categories, unless that is decided."""
    odd = np.flatnonzero(parsed.odd)
    values = list(dict.fromkeys(str(value) for value in table.columns[name][odd]))
    rows = ", ".join(str(row) for row in table.rows[odd[:EXAMPLES]])
    shown = ", ".join(repr(value) for value in values[:EXAMPLES]) + (" …" if len(values) > EXAMPLES else "")
    texts, where = ("1 text", "row") if len(odd) == 1 else (f"{len(odd):,} texts", "rows")
    otherwise = "" if decided else f", or --categories {name!r} to take the whole column as categories"
    raise InvalidInputError(
        f"column {name!r} of {table.name} mixes numbers with {texts} ({shown}; {where} {rows}"
        f"{' …' if len(odd) > EXAMPLES else ''}). Correct those, or add --missing {values[0]!r} to take such a value "
        f"as missing{otherwise}"
    )


def as_kind(table: Table, name: str, kind: Kind) -> NDArray[Any]:
    """A column as its kind has it: doubles, NaN where missing; or texts, "" where missing."""
    values = table.columns[name]
    if kind == "numbers":
        parsed = parse_numbers(values, table.reading.decimal)
        if parsed.odd.any():
            _refuse_mixture(table, name, parsed, decided=True)
        return parsed.numbers
    texts = canonical(values, table.reading.decimal) if values.dtype.kind == "f" else values
    found = np.empty(len(texts), dtype=object)
    found[:] = ["" if value is None else value for value in texts]
    return found


def canonical(values: NDArray[Any], decimal: str = ".") -> NDArray[Any]:
    """Texts, None where missing; where all are numbers, each in one way of writing (1, not 1.0).

    Examples
    --------
    >>> canonical(np.array(["1.0", "0", None], dtype=object)).tolist()
    ['1', '0', None]
    """
    parsed = parse_numbers(values, decimal)
    if parsed.odd.any():
        return values
    found = np.empty(len(values), dtype=object)
    known = known_in(values)
    found[known] = [f"{number:.15g}" for number in parsed.numbers[known]]
    return found
