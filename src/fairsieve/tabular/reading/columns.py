"""A table as it was read, and what its columns hold: numbers, categories or dates.

A table is a pandas data frame whose columns are of two kinds: texts, of pandas' type "category" (each different text
is stored once, spaces around it are dropped, and what counts as missing is missing), and numbers that a Parquet file
or a data frame stores as such.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from decimal import Context, Decimal
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fairsieve.errors import InvalidInputError, spell
from fairsieve.selection.cells import Flags, Floats, Integers
from fairsieve.validation import as_text, as_texts, closest_hint

NoteKind = Literal["leak", "contradiction", "few", "warning", "remark"]


class Note(str):
    """A sentence about a table, of a kind by which it is chosen and sorted.

    Attributes
    ----------
    kind : {"leak", "contradiction", "few", "warning", "remark"}
        A column that duplicates the label; equal rows of different labels; groups with too few people to measure; what
        a reader must not miss; anything else.
    column : str
        The column that may say the label in other words; mostly empty.

    Examples
    --------
    >>> note = Note("Column 'code' duplicates the label.", "leak")
    >>> note.kind, note_kind("Rows without a label, left out: 3.")
    ('leak', 'remark')
    """

    kind: NoteKind = "remark"
    column: str = ""

    def __new__(cls, text: str, kind: NoteKind = "remark", column: str = "") -> Note:
        """Make a note of a text."""
        note = super().__new__(cls, text)
        note.kind, note.column = kind, column
        return note


def note_kind(text: str) -> NoteKind:
    """Return the kind of a note; a bare text is a remark."""
    return getattr(text, "kind", "remark")


USUAL = "? NA N/A n/a NaN nan NULL null #N/A <NA> k.A. k.\N{NO-BREAK SPACE}A. \N{EN DASH} \N{EM DASH}"
FRAME_NAME = "the data frame"
LEARNT = "what the model learns from"
MISSING = frozenset(("", "k. A.", *USUAL.split(" ")))
# What pandas takes as missing of itself.
_PANDAS = "#N/A #NA -1.#IND -1.#QNAN -NaN -nan 1.#IND 1.#QNAN <NA> N/A NA NULL NaN None n/a nan null"
PANDAS_MISSING = frozenset(("", "#N/A N/A", *_PANDAS.split(" ")))
NAMED = {"tab": "\t", "\\t": "\t", "comma": ",", "semicolon": ";"}


@dataclass(frozen=True)
class Reading:
    """How the text of a CSV file is read.

    Attributes
    ----------
    separator : str
        The character between two fields; "tab" for a tab, "auto" to find it from the first rows.
    decimal : str
        The decimal mark, "." or ","; "auto" to find it from the first rows.
    missing : sequence of str
        Values that count as missing, beside those in :data:`MISSING`; numbers are compared by their exact value.
    also : sequence of str
        More of them, which a model knows from training: a table may have none.
    learnt : bool
        Whether nobody said which the decimal mark is, so that it is that of training.
    """

    separator: str = "auto"
    decimal: str = "auto"
    missing: Sequence[str] = ()
    also: Sequence[str] = ()
    learnt: bool = False

    def __post_init__(self) -> None:
        separator = as_text("--separator", self.separator, "one character, tab or auto")
        object.__setattr__(self, "separator", NAMED.get(separator, separator))
        object.__setattr__(self, "missing", as_texts("--missing", self.missing, "a text or a number"))
        if self.separator != "auto" and (len(self.separator) != 1 or self.separator in '"\r\n'):
            raise InvalidInputError(
                f"{spell('--separator')} must be one character, or tab, and no quote or line end, or auto; got "
                f"{self.separator!r}"
            )
        if self.decimal not in (".", ",", "auto") or self.decimal == self.separator != "auto":
            raise InvalidInputError(
                f"{spell('--decimal')} must be . or , and differ from the separator, or auto; got "
                f"{self.decimal!r} with the separator {self.separator!r}"
            )

    @property
    def all_missing(self) -> frozenset[str]:
        """Every value that counts as missing."""
        return MISSING.union(self.missing)

    @property
    def marks(self) -> set[str]:
        """What counts as missing beside the usual, as :meth:`value` writes it."""
        return {self.value(mark) for mark in (*self.missing, *self.also)}

    def value(self, text: str) -> str:
        """Write a number in one way, unless it is a code such as 007; leave another text as it is."""
        return text if CODE.fullmatch(text) else exact_value(text, self.decimal)

    def known(self, texts: Sequence[str], met: set[str]) -> list[str | None]:
        """Replace what counts as missing by None; add the marks that were among the texts to ``met``."""
        marks = self.marks
        values = [self.value(text) for text in texts] if any(map(NUMBER.fullmatch, marks)) else texts
        met |= marks.intersection(values) | (MISSING - PANDAS_MISSING).intersection(texts)
        pairs = zip(texts, values, strict=True)
        return [None if text in MISSING or value in marks else text for text, value in pairs]


def name_rows(table: str, rows: Sequence[int] | Integers, most: int = 5) -> str:
    """Name the first of some rows of a table: as a spreadsheet numbers them in a file, from 0 on in a data frame.

    >>> name_rows("people.csv", [3, 8]), name_rows(FRAME_NAME, [0])
    ('spreadsheet rows 3, 8', 'row 0')
    """
    shown = ", ".join(map(str, rows[:most])) + (" …" if len(rows) > most else "")
    place = "" if table == FRAME_NAME else "spreadsheet "  # where the names are in row 1
    return f"{place}{'row' if len(rows) == 1 else 'rows'} {shown}"


def count_rows(table: str, rows: Integers) -> str:
    """Count rows and name the first of them.

    >>> count_rows(FRAME_NAME, np.array([3, 8])), count_rows("people.csv", np.arange(2, 1002))
    ('2 (rows 3, 8)', '1,000 (spreadsheet rows 2, 3, 4, 5, 6 …)')
    """
    return f"{len(rows):,} ({name_rows(table, rows)})"


def learnt_reading(reading: Reading, decimal: str, missing: Sequence[str] = ()) -> Reading:
    """Read another table as that of training was read, as far as nobody says otherwise."""
    if reading.decimal == "auto":
        reading = replace(reading, decimal=decimal, learnt=True)
    return replace(reading, also=missing)


@dataclass(frozen=True, eq=False)
class InputTable:
    """A table, and how it was read.

    Attributes
    ----------
    name : str
        The file's name.
    frame : DataFrame
        Its index says where each row stands in a spreadsheet: the names are in row 1, the first sample in row 2.
    reading : Reading
    notes : list of str
        What was done to it, in plain words.
    where : DataFrame, optional
        The ``file`` of each row, and its ``row`` there, where these are rows of a table in parts.
    odd : set of str
        What pandas alone would not take as missing, and " " where spaces around values were dropped, or values that are
        no texts became some.
    """

    name: str
    frame: pd.DataFrame
    reading: Reading
    notes: list[str] = field(default_factory=list)
    where: pd.DataFrame | None = field(default=None, repr=False)
    odd: frozenset[str] = frozenset()

    def __len__(self) -> int:
        return len(self.frame)

    @property
    def rows(self) -> Integers:
        """Where each row stands in the file."""
        return np.asarray(self.frame.index, dtype=np.int64)

    @property
    def columns(self) -> list[str]:
        """The columns' names."""
        return [str(name) for name in self.frame.columns]

    def row_name(self, row: int) -> str:
        """Name a row, and the file that it is in where there are several."""
        if self.where is None:
            return f"row {row}"
        return "row {1} of {0}".format(*self.where.loc[row, ["file", "row"]])

    def column(self, name: str, option: str = LEARNT) -> pd.Series:
        """Return a column by its name; where there is none, offer the closest one."""
        if name not in self.frame:
            names = self.columns
            shown = ", ".join(names[:20]) + (f", … ({len(names)} in all)" if len(names) > 20 else "")
            raise InvalidInputError(
                f"{spell(option)} must be a column of {self.name}; got {name!r}{closest_hint(name, names) or '.'} Its "
                f"columns are {shown}{headless_hint(names)}"
            )
        return self.frame[name]

    def texts(self, name: str, option: str = LEARNT) -> pd.Series:
        """Return a column as texts; where all are numbers, each exact value is written in one way."""
        return canonical(self.column(name, option), self.reading.decimal)

    def numbers(self, name: str, option: str = LEARNT) -> ParsedNumbers:
        """Read a column as numbers."""
        return parse_numbers(self.column(name, option), self.reading.decimal)

    def format(self, name: str) -> ColumnFormat:
        """Find out how the numbers of a column are written.

        >>> prices = pd.DataFrame({"price": pd.Categorical(["€ 1,500", "€ 20", None])})
        >>> InputTable("a.csv", prices, Reading(decimal=".")).format("price")
        ColumnFormat(kind='numbers', signs=['€'], thousands=True)
        """
        if not is_text(self.frame[name]):
            return ColumnFormat("numbers")
        texts = self.frame[name].array.categories
        joined = "".join(texts)
        signs = [sign for sign in SIGNS if sign in joined]
        plain = not signs or not all(any(sign in text for sign in signs) for text in texts)
        return ColumnFormat("numbers", [*signs, *[""] * plain], THOUSANDS[self.reading.decimal] in joined)

    def take(self, places: NDArray[Any]) -> InputTable:
        """Select some of the rows."""
        return replace(self, frame=self.frame.iloc[places])

    def cells(self, column: str) -> list[Any]:
        """Return the values of a column, None where missing."""
        values = self.frame[column]
        found = values.to_numpy(dtype=object, copy=True)
        found[values.isna().to_numpy()] = None
        return list(found)


def is_text(column: pd.Series) -> bool:
    """Return whether a column holds texts."""
    return isinstance(column.dtype, pd.CategoricalDtype)


def as_objects(values: Iterable[Any]) -> NDArray[np.object_]:
    """Make an array of single values of any type."""
    return np.array(list(values), dtype=object)


def coded(codes: NDArray[Any], texts: Sequence[str | None]) -> pd.Categorical:
    """Make texts of codes; equal texts become one, and None is missing.

    >>> coded(np.array([0, 1, 2, -1]), ["b", "a", "b"])
    ['b', 'a', 'b', NaN]
    Categories (2, object): ['b', 'a']
    """
    if len({None, *texts}) == len(texts) + 1:  # all differ, and none is missing
        return pd.Categorical.from_codes(codes, pd.Index(texts, dtype=object))
    places, names = pd.factorize(as_objects(texts))
    return pd.Categorical.from_codes(np.append(places, -1)[codes], pd.Index(names, dtype=object))


def recode(column: pd.Series, texts: Sequence[str | None]) -> pd.Series:
    """Replace each category of a column by another text, or by None for missing; leave out those that no row has."""
    texts = coded(column.array.codes, texts).remove_unused_categories()
    return pd.Series(texts, index=column.index, name=column.name)


def used_texts(column: pd.Series) -> dict[str, int]:
    """Count the rows with each text of a column, for texts that some row has."""
    counts = column.value_counts(sort=False)
    return dict(counts[counts > 0])


class Problems:
    """What is wrong with a table, collected so that all of it is told at once.

    Examples
    --------
    >>> problems = Problems()
    >>> for name in ("a", "b"):
    ...     with problems.collected():
    ...         raise InvalidInputError(f"{name} is not there: name another column")
    >>> problems.check()
    Traceback (most recent call last):
        ...
    fairsieve.errors.InvalidInputError: 2 problems. (1) a is not there: name another column. (2) b is not there: name
    another column
    """

    def __init__(self) -> None:
        self.found: list[str] = []

    @contextlib.contextmanager
    def collected(self) -> Iterator[None]:
        """Go on after a problem."""
        try:
            yield
        except InvalidInputError as error:
            self.found.append(str(error).removesuffix("."))

    def check(self) -> None:
        """Raise one error of all problems, if there are any."""
        found = [*dict.fromkeys(self.found)]
        if found:
            numbered = ". ".join(f"({number}) {one}" for number, one in enumerate(found, 1))
            raise InvalidInputError(found[0] if len(found) == 1 else f"{len(found)} problems. {numbered}")


def headless_hint(names: Sequence[str]) -> str:
    """Add a sentence where most names are numbers, which suggests that the names are missing."""
    numbers = sum(bool(re.fullmatch(r"[-+]?[\d.]+", name)) for name in names)
    return ". The first row must hold the columns' names" if numbers * 2 > len(names) else ""


Kind = Literal["numbers", "categories", "dates"]

EXAMPLES = 3
LARGEST = 1e307  # beyond it the sum of a few values overflows
EXACT = 2**53  # beyond it a double does not tell whole numbers apart
CODE, CODES = re.compile(r"0\d+"), re.compile(r"^0\d+$", re.MULTILINE)  # 00501 is a code, not a number
NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d{1,4})?")
WHOLE = re.compile(r"[-+]?\d+")
MOST_DIGITS = 40  # of a whole number that is written out
# Numbers as people write them: € 1.234,50 and 70 % and 1,234.5 and 1'234.
UNITS = re.compile(r"(?<![^-+])[€$£¥\s]+|[€$£¥%\s]+$")
COMMA = re.compile(r"[-+]?(\d+|\d{1,3}(\.\d{3})+),\d+")
POINT = re.compile(r"[-+]?(\d*|\d{1,3}(,\d{3})+)\.\d+")
BETWEEN = {
    ".": re.compile(r"[-+]?\d{1,3}([,'’\s]\d{3})+(\.\d+)?"),
    ",": re.compile(r"[-+]?\d{1,3}([.'’\s]\d{3})+(,\d+)?"),
}
THOUSANDS = {".": ",", ",": "."}  # that of them which is a decimal mark elsewhere
SIGNS = "%€$£¥"  # of numbers, which are read without them
AMBIGUOUS = re.compile(r"[-+]?\d{1,3}[.,]\d{3}")  # thousands, or three decimals
DATE = re.compile(r"\d{4}-\d{1,2}-\d{1,2}([T ].*)?|\d{1,2}[./]\d{1,2}[./]\d{2,4}")


@dataclass(frozen=True)
class ColumnFormat:
    """How the values of a column are written. A model learns it, and another file must not contradict it.

    Attributes
    ----------
    kind : {"numbers", "categories", "dates"}
    signs : list of str
        What stands at its numbers: "%" or a currency, "" for nothing.
    thousands : bool
        Whether a point or a comma stands between thousands.
    """

    kind: Kind
    signs: list[str] = field(default_factory=lambda: [""])
    thousands: bool = False


class ParsedNumbers(NamedTuple):
    """A column read as numbers: the numbers, NaN where missing or not one, and which are not one."""

    numbers: Floats
    odd: Flags


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
    texts = column.array.categories.to_numpy()
    parsed = _to_numbers(as_objects(map(_with_point, texts)) if decimal == "," else texts)
    # Only what is no number as it stands is looked at again, without signs and marks between thousands.
    again = np.flatnonzero(np.isnan(parsed))
    if len(again):
        parsed[again] = _to_numbers(as_objects(_plain_number(texts[place], decimal) for place in again))
    parsed = np.append(np.where(np.abs(parsed) < LARGEST, parsed, np.nan), np.nan)
    codes = column.array.codes
    numbers = parsed[codes]
    return ParsedNumbers(numbers, (codes >= 0) & np.isnan(numbers))


def _to_numbers(texts: NDArray[np.object_]) -> Floats:
    """Convert texts to doubles, NaN where one is no number."""
    return np.array(pd.to_numeric(texts, errors="coerce"), dtype=np.float64)


def _plain_number(text: str, decimal: str) -> str:
    """Write a number without its currency or percent sign and without marks between thousands, with a decimal point.

    >>> _plain_number("€ 1.234,50", ","), _plain_number("70 %", "."), _plain_number("1,234.5", ".")
    ('1234.50', '70', '1234.5')
    """
    bare = _bare_number(text)
    if BETWEEN[decimal].fullmatch(bare):
        bare = re.sub(rf"[^\d{decimal}+-]", "", bare)
    return _with_point(bare) if decimal == "," else bare


def _bare_number(text: str) -> str:
    """Take away a currency or percent sign, and write what is negative with a hyphen.

    >>> _bare_number("€ 5"), _bare_number("\u22125 %"), _bare_number("($0.29)")
    ('5', '-5', '-0.29')
    """
    return UNITS.sub("", re.sub(r"^\((.+)\)$", r"-\1", text.replace("\u2212", "-")))


def number_style(text: str) -> Literal["comma", "point", "whole", "text"]:
    """Tell by its decimal mark how a number is written; "whole" where it has none, or where a comma may be either.

    >>> [number_style(text) for text in ("1,5", "€ 1.234,50", "1.5", "1,234.5", "1,500", "70 %", "x")]
    ['comma', 'comma', 'point', 'point', 'whole', 'whole', 'text']
    >>> number_style("0,500")  # nobody writes a thousand so
    'comma'
    """
    bare = _bare_number(text)
    if COMMA.fullmatch(bare):
        return "whole" if re.fullmatch(r"[-+]?[1-9]\d{0,2}(,\d{3})+", bare) else "comma"
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
    texts = column.array.categories
    if not len(texts) or not all(map(WHOLE.fullmatch, texts)):
        return None
    exact = [*map(int, texts)]
    small = all(-(2**63) <= number < 2**63 for number in exact)
    codes = column.array.codes
    return np.asarray(np.array(exact, dtype=np.int64 if small else object)[codes[codes >= 0]])


def kind_of(table: InputTable, name: str, known: int) -> tuple[Kind, str]:
    """Decide whether a column with ``known`` values holds numbers or categories; refuse a mixture, with the ways out.

    Texts that are all numbers are numbers, unless some begin with a 0 as codes do. Where most are
    numbers and some are not, somebody has to say what those are; where some are, a hint does.
    """
    column = table.frame[name]
    # One search through all texts is fast; what it finds may be a line within one of them.
    codes = is_text(column) and CODES.search("\n".join(column.array.categories))
    if codes and any(CODE.fullmatch(text) for text in used_texts(column)):
        return "categories", ""
    parsed = table.numbers(name)
    count = known - int(parsed.odd.sum())
    if count == known:
        return "numbers", ""
    if count >= known / 2:
        _refuse_mixture(table, name, parsed)
    hint = (
        f"Column {name!r} has numbers in {count:,} of {known:,} rows with a value, and is taken as categories; to have "
        f"numbers, correct the texts, or name them by {spell('--missing')}."
    )
    return "categories", hint if count else ""


def _refuse_mixture(table: InputTable, name: str, parsed: ParsedNumbers, *, decided: bool = False) -> None:
    """Refuse numbers and texts in one column; offer to take it as categories, unless that is decided."""
    odd = np.flatnonzero(parsed.odd)
    values = list(dict.fromkeys(str(value) for value in table.take(odd).cells(name)))
    rows = name_rows(table.name, table.rows[odd], EXAMPLES)
    shown = ", ".join(repr(value) for value in values[:EXAMPLES]) + (" …" if len(values) > EXAMPLES else "")
    texts = "1 text" if len(odd) == 1 else f"{len(odd):,} texts"
    otherwise = f", or {spell('--categories', name, quote=True)} to take the whole column as categories"
    other, style = (".", "point") if table.reading.decimal == "," else (",", "comma")
    all_other = all(number_style(value) == style for value in values)
    ways = f"add {spell('--decimal', other)} if they have a decimal {style}, or " if all_other else ""
    raise InvalidInputError(
        f"column {name!r} of {table.name} mixes numbers with {texts} ({shown}; {rows}). Correct those, or {ways}"
        f"add {spell('--missing', values[0], quote=True)} to take such a value as missing{'' if decided else otherwise}"
    )


def as_numbers(table: InputTable, name: str, learnt: ColumnFormat) -> Floats:
    """Return a column as doubles, NaN where missing, dates as days; refuse what contradicts how it was learnt."""
    if learnt.kind == "dates":
        otherwise = f"leave {spell('--dates')} out when you train"
        return as_days(table, name, "a column of dates must have them", otherwise)
    parsed = table.numbers(name)
    if parsed.odd.any():
        _refuse_mixture(table, name, parsed, decided=True)
    _check_format(table, name, learnt)
    return parsed.numbers


def as_days(table: InputTable, name: str, what: str, otherwise: str) -> Floats:
    """Return a column of dates as days since 1970, NaN where missing.

    Read are 2026-03-04, with a time or without, and 04.03.2026. In 03/04/2026 nobody knows which is the month: what is
    no date, or could mean two days, is refused in the words of whoever asks for it.

    Examples
    --------
    >>> dates = ["1970-01-02", None, "1970-01-03 12:00"]
    >>> table = InputTable("a.csv", pd.DataFrame({"since": pd.Categorical(dates)}), Reading())
    >>> as_days(table, "since", "", "").tolist()
    [1.0, nan, 2.5]
    """
    column = canonical(table.column(name))
    texts = pd.Series(column.array.categories, dtype=object)
    # The day is first wherever points are written; slashes, and the 30th of February, are read by neither.
    dates = pd.to_datetime(texts, format="ISO8601", errors="coerce", utc=True)
    dates = dates.fillna(pd.to_datetime(texts, format="%d.%m.%Y", errors="coerce", utc=True))
    dates = dates.where(texts.map(DATE.fullmatch).notna())
    odd = column[column.notna() & dates.isna().to_numpy()[column.array.codes]]
    if len(odd):
        raise InvalidInputError(
            f"{what} as 2026-03-04 or 04.03.2026; {name!r} of {table.name} has {odd.iloc[0]!r} in "
            f"{name_rows(table.name, odd.index[:1])}, which is none, or could mean two days: write them so, or "
            f"{otherwise}"
        )
    days = (dates - pd.Timestamp(0, tz="UTC")) / pd.Timedelta(days=1)
    return np.asarray(np.append(days.to_numpy(), np.nan)[column.array.codes])


def _check_format(table: InputTable, name: str, learnt: ColumnFormat) -> None:
    """Refuse numbers that are written in another way than those that a model learnt from."""
    column, decimal = table.frame[name], table.reading.decimal
    here = table.format(name)
    if here == learnt or not column.notna().any():
        return
    texts = used_texts(column) if is_text(column) else [*map(str, column.dropna().unique()[:1])]
    # 5 may be € 5, but .7 is not 70 %.
    allowed = {*learnt.signs, "" if "%" not in learnt.signs else "%"}
    odd = [text for text in texts if not ({sign for sign in SIGNS if sign in text} or {""}) <= allowed]
    if odd:
        written = " or ".join(f"with {sign}" if sign else "without a sign" for sign in learnt.signs)
        raise InvalidInputError(
            f"numbers in column {name!r} of {table.name} must be written as in training, {written}; got {odd[0]!r}: "
            "write them so"
        )
    if not table.reading.learnt or learnt.thousands or not here.thousands:
        return
    other = THOUSANDS[decimal]
    marked = [text for text in texts if other in text]
    if all(AMBIGUOUS.fullmatch(_bare_number(text)) for text in marked):
        raise InvalidInputError(
            f"numbers in column {name!r} of {table.name} must be written as in training, where none had a "
            f"{'comma' if other == ',' else 'point'}; {marked[0]!r} could be read in two ways: add "
            f"{spell('--decimal', other)} "
            f"if that is its decimal mark, or {spell('--decimal', decimal)} if it stands between thousands"
        )


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
        return pd.Series(coded(codes, [*map(exact_value, values)]), column.index, name=column.name)
    texts = [_with_point(text) if decimal == "," else text for text in used_texts(column)]
    if not all(NUMBER.fullmatch(text) and not CODE.fullmatch(text) for text in texts):
        return column
    return recode(column, [exact_value(text, decimal) for text in column.array.categories])


def exact_value(value: object, decimal: str = ".") -> str:
    """Write one value as a text; a number, without rounding, in one way whatever way it was written.

    >>> exact_value("1.0"), exact_value(2.50), exact_value("3,5", ","), exact_value("a")
    ('1', '2.5', '3.5', 'a')
    >>> [exact_value(text) for text in ("+2", "1e3", "0.50", "-0", "1e301")]
    ['2', '1000', '0.5', '0', '1E+301']
    """
    text = _with_point(str(value)) if decimal == "," else str(value)
    if not NUMBER.fullmatch(text):
        return str(value)
    number = Decimal(text)
    exact = number.normalize(Context(prec=len(text) + 1, Emax=99999, Emin=-99999))
    short = -MOST_DIGITS < exact.adjusted() < MOST_DIGITS
    return "0" if not number else format(exact, "f") if short else str(exact)


def _with_point(text: str) -> str:
    """Write a number that has a decimal comma with a point; a point in it stands between thousands, or it is none.

    >>> _with_point("3,5"), _with_point("1.234,5"), _with_point("1.500"), _with_point("1.5")
    ('3.5', '1234.5', '1500', '1.5?')
    """
    if "." in text:
        if not BETWEEN[","].fullmatch(text):
            return f"{text}?"
        text = text.replace(".", "")
    return text.replace(",", ".")
