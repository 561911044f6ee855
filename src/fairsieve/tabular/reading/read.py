"""Read a table with pandas, from a file or a data frame; find out how a CSV file is written, say what is wrong with it.

pandas splits the rows. Which texts are numbers, categories or dates is decided later, see
:mod:`~fairsieve.tabular.reading.columns`: every text is kept as it is written.
"""

from __future__ import annotations

import bz2
import codecs
import contextlib
import csv
import gzip
import io
import lzma
import re
import zipfile
import zlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice, zip_longest
from pathlib import Path
from typing import IO, Any

import numpy as np
import pandas as pd

from fairsieve.errors import InvalidInputError, require, spell
from fairsieve.files import read_archive
from fairsieve.selection.cells import Integers, Values
from fairsieve.tabular.reading.columns import (
    FRAME_NAME,
    InputTable,
    Note,
    Reading,
    coded,
    count_rows,
    headless_hint,
    number_style,
)
from fairsieve.validation import as_path

A_TABLE = "the path of a CSV, Parquet or Excel file, or a data frame of pandas, polars or Arrow"
FIRST_ROW = 2  # a spreadsheet has the names in row 1
MOST_VALUES = 10**9  # of a Parquet file, a few bytes of which may stand for billions
INDEX = re.compile(r"__index_level_\d+__")  # what pandas calls the row numbers
# UTF-32 comes first: its mark begins with that of UTF-16.
BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
    (codecs.BOM_UTF8, "utf-8-sig"),
)
ENCODING_NOTES = {
    "cp1252": "The file is not in UTF-8; it was read as Windows-1252 (Western European).",
    "utf-16": "The file is in UTF-16.",
    "utf-32": "The file is in UTF-32.",
}
SEPARATORS = {",": "a comma", ";": "a semicolon", "\t": "a tab", "|": "a bar"}
LOOKED_AT, MOST_LETTERS = 1000, 1_000_000  # rows and letters from which the separator is found
MOSTLY = 0.5  # of those rows; the others are cut short


def is_frame(data: Any) -> bool:
    """Return whether something is a data frame: of pandas, polars, Arrow, or another that Arrow can read.

    >>> is_frame(pd.DataFrame({"age": [31]})), is_frame("people.csv")
    (True, False)
    """
    kinds = ("to_arrow", "__arrow_c_stream__", "collect_schema")
    has_columns = len(getattr(data, "shape", (0, 0))) == 2  # a series has none
    return isinstance(data, pd.DataFrame) or (has_columns and any(hasattr(data, name) for name in kinds))


@dataclass(frozen=True)
class Piped:
    """What came through a pipe, which can be read once only."""

    path: Path
    content: bytes

    @property
    def name(self) -> str:
        """The name of the pipe."""
        return self.path.name

    def __str__(self) -> str:
        return str(self.path)


def open_pipe(data: Any) -> Any:
    """Make a path of a text; read a pipe, such as /dev/stdin or a FIFO. Anything else stays as it is."""
    path = Path(data) if isinstance(data, str) else data
    if not isinstance(path, Path) or path.is_file() or path.is_dir() or not path.exists():
        return path
    return Piped(path, path.read_bytes())


def read_content(source: Path | Piped) -> bytes:
    """Read a file, and unpack it where it is compressed: by gzip, bzip2 or xz, or as the only file of a zip archive."""
    content = source.content if isinstance(source, Piped) else source.read_bytes()
    stream = io.BytesIO(content)
    try:
        unpack = next((make for mark, make in UNPACKERS.items() if content.startswith(mark)), None)
        if unpack is not None:
            content = unpack(stream).read(MOST_BYTES + 1)
            if len(content) > MOST_BYTES:
                raise ValueError(f"it unpacks to more than {MOST_BYTES:,} bytes")
        elif content.startswith(ZIP) and (member := _only_member(stream)):
            return read_archive(stream, most=MOST_BYTES, names=[member])[member]
        return content
    except (OSError, EOFError, ValueError, zlib.error, lzma.LZMAError, zipfile.BadZipFile) as error:
        raise InvalidInputError(f"{source.name} cannot be unpacked ({error}): pack it again") from error


def _only_member(stream: IO[bytes]) -> str:
    """Return the name of the only file of an archive; nothing where there are several, as in a workbook, or damage."""
    names: list[str] = []
    with contextlib.suppress(zipfile.BadZipFile), zipfile.ZipFile(stream) as archive:
        names = archive.namelist()
    return names[0] if len(names) == 1 else ""


def read_data(data: Any, reading: Reading | None = None, what: str = "the table") -> InputTable:
    """Read a file or a data frame; a table that was read already stays as it is."""
    if isinstance(data, InputTable):
        return data
    return read_frame(data, reading) if is_frame(data) else read_table(data, reading, what)


def read_table(
    path: Path | Piped | str, reading: Reading | None = None, what: str = "the table"
) -> InputTable:
    r"""Read a CSV file with the columns' names in its first row, a Parquet file, or a workbook of Excel.

    What stands between fields, and the decimal mark, are found from the first rows unless ``reading`` says them; spaces
    around values are dropped.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "people.csv"
    ...     _ = file.write_text("age,sex\n31, F\n?,M\n")
    ...     table = read_table(file)
    >>> table.cells("age"), table.rows.tolist()
    (['31', None], [2, 3])
    """
    found = read_file(path, reading or Reading(), what)
    if found is None or not len(found):
        name = Path(str(path)).name
        raise InvalidInputError(
            f"{name} must have rows below the names of its columns; it has none: name another file"
        )
    return found


def read_file(path: Path | Piped | str, reading: Reading, what: str = "the table") -> InputTable | None:
    """Read a file, which may be without rows: then it has no length, or is None."""
    source = open_pipe(path if isinstance(path, Piped) else as_path(what, path, A_TABLE))
    try:
        content = read_content(source)
        if content[:4] in READERS:
            frame = READERS[content[:4]](source.name, io.BytesIO(content))
            del content
            return read_frame(frame, reading, name=source.name, first=FIRST_ROW) if len(frame) else None
        return read_text(source.name, content, reading)
    except OSError as error:
        raise InvalidInputError(
            f"{spell(what)} must be a file that can be read; {path}: {error.strerror or error}"
        ) from error


def _read_parquet(name: str, stream: IO[bytes]) -> pd.DataFrame:
    """Read a Parquet file; numbers keep their type, and a named index is a column."""
    parquet = require("pyarrow.parquet", purpose="reading Parquet")
    try:
        size = parquet.read_metadata(stream)
        if size.num_rows * size.num_columns > MOST_VALUES:
            raise ValueError(f"it has {size.num_rows:,} rows of {size.num_columns:,} columns, too many")
        frame = pd.read_parquet(stream, dtype_backend="pyarrow")
    except Exception as error:  # pyarrow has many
        raise InvalidInputError(
            f"{name} is not a Parquet file that can be read ({error}): write it again, or save it as CSV"
        ) from error
    named = [name for name in frame.index.names if name is not None and not INDEX.fullmatch(str(name))]
    return pd.concat([frame, frame.index.to_frame()[named]], axis=1) if named else frame


def _read_excel(name: str, stream: IO[bytes]) -> pd.DataFrame:
    """Read the first sheet of a workbook, where a package that can is installed."""
    try:
        return pd.read_excel(stream, keep_default_na=False)
    except ImportError:
        raise InvalidInputError(
            f"{name} looks like a workbook of a spreadsheet: save the sheet as CSV and give that file, or pip "
            "install openpyxl to read it"
        ) from None
    except Exception as error:  # another archive, or a damaged one
        raise InvalidInputError(
            f"{name} looks like a workbook that cannot be read ({error}): save the sheet as CSV"
        ) from error


ZIP = b"PK\x03\x04"
READERS = {b"PAR1": _read_parquet, ZIP: _read_excel}  # by the first bytes of a file
UNPACKERS: dict[bytes, Any] = {b"\x1f\x8b": gzip.open, b"BZh": bz2.BZ2File, b"\xfd7zXZ": lzma.LZMAFile}
ZSTANDARD = b"\x28\xb5\x2f\xfd"
MOST_BYTES = 2**34  # of a compressed file, a few bytes of which may stand for billions


def find_encoding(name: str, content: bytes) -> str:
    """Find the encoding of a text: by its byte order mark, else UTF-8 if it is that, else Windows-1252."""
    for mark, encoding in BYTE_ORDER_MARKS:
        if content.startswith(mark):
            return encoding
    if b"\0" in content or content.startswith(ZSTANDARD):
        raise InvalidInputError(f"{name} is neither text nor Parquet: unpack it, or save the table as CSV")
    try:
        content.decode("utf-8")
    except UnicodeDecodeError:
        return "cp1252"
    return "utf-8"


def read_text(name: str, content: bytes, reading: Reading) -> InputTable:
    """Read the text of a CSV file into columns of texts."""
    encoding = find_encoding(name, content)
    text = content.decode(encoding, errors="replace").lstrip("\r\n")
    if not text.strip():
        raise InvalidInputError(f"{name} is empty: the first row must hold the columns' names")
    reading, assumed = assume_dialect(text, reading)
    _check_separator(name, text, reading.separator)
    _check_line_ends(name, text, reading.separator)
    frame = split_rows(name, text, reading.separator)
    names, columns = [name.strip() for name in frame.iloc[0]], []
    blank, met = np.ones(len(frame) - 1, dtype=bool), set[str]()
    after = f"{reading.separator} "  # spaces at which are dropped, but in quotes
    if after in text and ('"' not in text or after in re.sub(r'"[^"]*"', "", text)):
        met.add(" ")
    for place in range(len(names)):
        codes, values = pd.factorize(frame[place].to_numpy()[1:])  # each different text once
        texts = list(map(str.strip, values))
        met |= {" "} if any(map(str.__ne__, texts, values)) else set()
        empty = codes < 0  # the field is not there at all
        if "" in texts:
            empty |= np.array([not text for text in texts])[codes]
        blank &= empty
        columns.append(coded(codes, reading.known(texts, met)))
    rows = np.arange(len(blank)) + FIRST_ROW
    notes = [ENCODING_NOTES[encoding], *assumed] if encoding in ENCODING_NOTES else assumed
    if (empty & ~blank).any():  # pandas fills short rows up, so that their last field is empty
        records = csv.reader(io.StringIO(text, newline=""), delimiter=reading.separator)
        short = np.array([len(fields) < len(names) for fields in records])[1:]
        short = short & ~blank if len(short) == len(blank) else np.zeros(len(blank), dtype=bool)
        if short.any():
            words = (
                f"Rows of {name} have fewer fields than the first row has names, and the fields that are not there "
                f"count as missing: {count_rows(name, rows[short])}. If the last row is one of them, the "
                "file may be cut off."
            )
            notes.append(Note(words, "warning"))
    table = _named_table(name, names, columns, rows, reading, notes, met)
    return table.take(~blank) if blank.any() else table


def split_rows(name: str, text: str, separator: str, chunk: int | None = None) -> Any:
    """Split the text of a CSV file into fields, as they are written; the first row holds the names.

    With ``chunk``, so many rows come at a time.
    """
    try:
        return pd.read_csv(
            io.BytesIO(text.encode("utf-8", errors="surrogatepass")),  # a StringIO takes four bytes a letter
            encoding_errors="surrogatepass",
            sep=separator,
            header=None,
            dtype=object,
            na_filter=False,
            skipinitialspace=True,
            skip_blank_lines=False,
            low_memory=False,
            chunksize=chunk,
        )
    except (pd.errors.ParserError, ValueError) as error:
        long = re.search(r"Expected (\d+) fields in line (\d+), saw (\d+)", str(error))
        if long is None:
            raise InvalidInputError(
                f'{name} must have a second " for every one that opens a text; one is not closed: add it, or take the '
                "first out"
            ) from None
        raise InvalidInputError(
            f"{name} must have as many fields in every row as in the first, {long[1]}; spreadsheet row {long[2]} has "
            f"{long[3]}: a text with {SEPARATORS.get(separator, repr(separator))} in it must stand in quotes"
        ) from None


def _named_table(
    name: str,
    names: list[str],
    columns: list[Any],
    rows: Integers,
    reading: Reading,
    notes: list[str],
    met: set[str],
) -> InputTable:
    """Make a table whose columns have different names; leave out a column without one.

    A note names the values that were said to mean missing and are not among those that were ``met``.
    """
    twice = [column for column, count in Counter(names).items() if count > 1 and column]
    if twice:
        raise InvalidInputError(
            f"the columns of {name} must have different names; {twice[0]!r} is there {names.count(twice[0])} times: "
            f"rename one{headless_hint(names)}"
        )
    unnamed = sum(1 for column in names if not column)
    if unnamed:
        words = "1 column has no name and is" if unnamed == 1 else f"{unnamed} columns have no name and are"
        notes = [*notes, f"{words} left out."]
    unmet = [repr(mark) for mark in reading.missing if reading.value(mark) not in met]
    if unmet:
        told = f"No cell of {name} has the value {' or '.join(unmet)} that {spell('--missing')} names."
        notes = [*notes, told]
    named = {column: values for column, values in zip(names, columns, strict=True) if column}
    return InputTable(name, pd.DataFrame(named, index=rows, copy=False), reading, notes, odd=frozenset(met))


def _check_line_ends(name: str, text: str, separator: str) -> None:
    """Refuse a carriage return outside quotes in a file whose rows end otherwise: it would split a cell in two."""
    if "\n" not in text or text.count("\r") == text.count("\r\n"):
        return
    # Texts in quotes may hold separators and line ends.
    quoted = rf'(?:^|(?<=[\r\n{re.escape(separator)}])) *"(?:[^"]|"")*"'
    bare = re.search(r"\r(?!\n)", re.sub(quoted, "", text))
    if bare:
        row = bare.string.count("\n", 0, bare.start()) + 1
        raise InvalidInputError(
            f"{name} has a carriage return within spreadsheet row {row}, which would cut it in two: take it "
            "out, or put the text in quotes"
        )


def _check_separator(name: str, text: str, separator: str) -> None:
    """Refuse a separator that makes one column only, where another would make several."""
    line = text.splitlines()[0]
    counts = {other: line.count(other) for other in SEPARATORS if other != separator}
    best = max(counts, key=lambda other: counts[other])
    if separator not in line and counts[best]:
        option = "tab" if best == "\t" else f"'{best}'"
        raise InvalidInputError(
            f"{name} seems to have {SEPARATORS[best]} between its columns, not "
            f"{SEPARATORS.get(separator, repr(separator))}: add {spell('--separator', option)}"
            + (f" (and {spell('--decimal', ',')} if its numbers are written 3,5)" if best == ";" else "")
        )


def assume_dialect(text: str, reading: Reading) -> tuple[Reading, list[str]]:
    r"""Replace what is "auto" in ``reading`` by what the first rows of a text show; say so where it is unusual.

    A separator must split the first rows into equally many fields; of several that do, the one with most fields is
    taken. A decimal comma is assumed only where numbers have one, none has a decimal point, and not all could be
    whole numbers with a comma between the thousands.

    Examples
    --------
    >>> found, notes = assume_dialect("size;weight\n1,5;20,25\n", Reading())
    >>> found.separator, found.decimal, notes[0][:44]
    (';', ',', 'Assumed from the first rows: a semicolon bet')
    >>> assume_dialect("size;weight\n1,500;20,250\n", Reading())[0].decimal
    '.'
    """
    separator, decimal, assumed = reading.separator, reading.decimal, []
    if separator == "auto":
        separator = _find_separator(text, "," if decimal == "," else "")
        if separator != ",":
            assumed.append(f"{SEPARATORS[separator]} between fields")
    if decimal == "auto":
        decimal = "," if separator != "," and _has_decimal_commas(text, separator) else "."
        if decimal == ",":
            assumed.append("a decimal comma in numbers")
    words = f"Assumed from the first rows: {' and '.join(assumed)}; "
    words += f"{spell('--separator')} and {spell('--decimal')} say otherwise."
    return replace(reading, separator=separator, decimal=decimal), [words] if assumed else []


def _first_records(text: str, separator: str) -> list[list[str]]:
    """Split the first rows into fields; leave out blank ones, and stop where a text is not closed."""
    found: list[list[str]] = []
    lines = io.StringIO(text[:MOST_LETTERS], newline="")
    with contextlib.suppress(csv.Error):
        for fields in islice(csv.reader(lines, delimiter=separator, skipinitialspace=True), LOOKED_AT):
            if any(field.strip() for field in fields):
                found.append(fields)
    whole = len(text) <= MOST_LETTERS or len(found) < 2
    return found if whole else found[:-1]  # the last may be cut off


def _find_separator(text: str, other: str) -> str:
    """Find the separator that makes equally many fields of every row, or of most and no more of any; else a comma."""
    best, most = ("," if other != "," else ";"), (False, 1)
    for separator in SEPARATORS:
        widths = [len(fields) for fields in _first_records(text, separator)]
        if separator == other or not widths:
            continue
        equal = sum(width == widths[0] for width in widths) / len(widths)
        found = (equal == 1, widths[0])
        if widths[0] > 1 and max(widths) == widths[0] and equal >= MOSTLY and found > most:
            best, most = separator, found
    return best


def _has_decimal_commas(text: str, separator: str) -> bool:
    """Return whether numbers have decimal commas, and none a decimal point."""
    styles: set[str] = set()
    for column in zip_longest(*_first_records(text, separator)[1:], fillvalue=""):
        fields = {field.strip() for field in column} - {"", "?", "NA", "NaN", "NULL"}
        found = Counter(map(number_style, fields))
        if found["text"] <= 0.1 * found.total():
            styles |= set(found)
    return "comma" in styles and "point" not in styles


def read_frame(
    frame: Any, reading: Reading | None = None, *, name: str = FRAME_NAME, first: int = 0
) -> InputTable:
    """Read a data frame as a table; its rows are numbered from 0.

    Numbers keep their type; booleans, categories, dates and the like become texts.

    Examples
    --------
    >>> table = read_frame(pd.DataFrame({"age": [31.0, None], "sex": [" F", "M"]}))
    >>> table.cells("age"), table.cells("sex")
    ([31.0, None], ['F', 'M'])
    """
    reading = replace(reading or Reading(), separator=",", decimal=".")  # of which it has neither
    frame = _to_pandas(frame)
    if not len(frame):
        raise InvalidInputError(f"{name} must have rows; it has none")
    names = [str(column).strip() for column in frame.columns]
    met: set[str] = set()
    columns = [_typed(frame.iloc[:, place], reading, met) for place in range(frame.shape[1])]
    return _named_table(name, names, columns, np.arange(len(frame)) + first, reading, [], met)


def _to_pandas(frame: Any) -> pd.DataFrame:
    """Convert a data frame of another kind, through Arrow."""
    if isinstance(frame, pd.DataFrame):
        return frame
    if not (hasattr(frame, "to_arrow") or hasattr(frame, "__arrow_c_stream__")) or hasattr(frame, "collect"):
        raise InvalidInputError(
            f"the table must be a data frame in memory; got a {type(frame).__name__} of "
            f"{type(frame).__module__.partition('.')[0]}: call .collect() first"
        )
    arrow = require("pyarrow", purpose="reading a data frame that is not of pandas")
    table = frame.to_arrow() if hasattr(frame, "to_arrow") else arrow.table(frame)
    return table.to_pandas(types_mapper=pd.ArrowDtype)


def _typed(column: pd.Series, reading: Reading, met: set[str]) -> Any:
    """Return a column of a data frame as numbers of their own type, or as texts, without what counts as missing."""
    types = pd.api.types
    if isinstance(column.dtype, pd.SparseDtype):
        column = column.sparse.to_dense()
    if types.is_integer_dtype(column.dtype) or types.is_float_dtype(column.dtype):
        gaps = column.isna().to_numpy(dtype=bool)
        kind = np.dtype(getattr(column.dtype, "numpy_dtype", column.dtype))  # that of a type with gaps
        values = (column.fillna(0) if gaps.any() else column).to_numpy(dtype=kind)
        for mark in reading.marks:
            with contextlib.suppress(ValueError, OverflowError):  # a text, or no number of this type
                same = (values == kind.type(mark)) & ~gaps
                gaps = gaps | same
                met |= {mark} if same.any() else set()
        if gaps.any() and kind.kind == "f":
            return np.where(gaps, kind.type(np.nan), values)
        return pd.arrays.IntegerArray(values, gaps) if gaps.any() else values
    try:
        codes, values = pd.factorize(column)
    except (TypeError, NotImplementedError, ValueError):  # lists or dicts, which cannot be looked up
        plain = column.astype(object).map(lambda one: one.tolist() if isinstance(one, np.ndarray) else one)
        codes, values = pd.factorize(plain.map(str, na_action="ignore"))
    texts = [str(value).strip() for value in values]
    met |= {" "} if texts != list(values) else set()
    return coded(codes, reading.known(texts, met))


def with_columns(data: Any, table: InputTable, rows: Integers, added: Mapping[str, Values]) -> Any:
    """Return some rows of what a table was read from, with columns added; a name that is taken gets an underscore.

    A data frame stays of its kind; rows of a file become one of pandas, whose index is the row in the file.
    """
    named = {free_name(name, table.columns): values for name, values in added.items()}
    if hasattr(data, "with_columns"):
        import polars

        return data[rows].with_columns([polars.Series(name, values) for name, values in named.items()])
    if is_frame(data):
        return _to_pandas(data).iloc[rows].assign(**named)
    taken = table.take(rows)
    index = pd.Index(taken.rows, name="row")
    frame = pd.DataFrame({name: taken.cells(name) for name in table.columns}, index, dtype=object)
    numbers = {name: pd.to_numeric(frame[name], errors="coerce") for name in table.columns}
    all_read = {name: own for name, own in numbers.items() if (own.isna() == frame[name].isna()).all()}
    return frame.assign(**all_read, **named)


def free_name(wanted: str, taken: Sequence[str]) -> str:
    """Find a name that no column has yet.

    >>> free_name("loss", ["loss", "age"])
    'loss_'
    """
    return wanted if wanted not in taken else free_name(f"{wanted}_", taken)
