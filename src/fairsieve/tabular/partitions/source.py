"""The pieces of a table: files of a folder, parts of one large file, partitions of a dask data frame."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from fairsieve.errors import InvalidInputError, require, spell
from fairsieve.selection.cells import Flags, Integers, Keys
from fairsieve.tabular.reading.columns import (
    InputTable,
    Reading,
    as_objects,
    canonical,
    is_text,
    kind_of,
    whole_numbers,
)
from fairsieve.tabular.reading.read import (
    BYTE_ORDER_MARKS,
    FIRST_ROW,
    UNPACKERS,
    ZIP,
    read_file,
    read_frame,
    read_text,
)
from fairsieve.tabular.settings import TableSettings
from fairsieve.training.parts import local_threads
from fairsieve.validation import is_dask

NAMES = re.compile(r"\.(parquet|pq|csv|tsv|txt)(\.(gz|bz2|xz|zip))?$", re.IGNORECASE)
VALUE_BYTES = 110  # of memory for each value of a table that is trained on whole, at the peak
TEXT_VALUES = 6  # letters of a CSV file to a value
PACKED_VALUES = 1.5  # bytes of a packed one
BLOCK = 2**22  # bytes that are looked at for the end of a row
PIECE_SHARE = 250  # bytes of memory for each value of a piece that is worked on; several are at a time
LARGEST_PIECE = 2e6  # values: of larger ones, what is computed takes memory, and no time is saved


@dataclass(frozen=True)
class Piece:
    """Some rows of a table.

    Attributes
    ----------
    name : str
        Of the file, or of the partition.
    path : Path, optional
    groups : tuple of int, optional
        Row groups of a Parquet file; all when None.
    span : (int, int), optional
        Bytes of a CSV file, or rows of the row groups; all when None.
    first : int
        Rows of the file before these.
    frame : optional
        A partition of a dask data frame, which whoever works on it gets as one of pandas.
    """

    name: str
    path: Path | None = None
    groups: tuple[int, ...] | None = None
    span: tuple[int, int] | None = None
    first: int = 0
    frame: Any = None

    def read(self, reading: Reading, frame: Any = None) -> InputTable | None:
        """Read the rows; None where there are none. Their index is the row of the file."""
        table: InputTable | None = None
        if frame is not None or self.groups is not None:
            start = 0 if frame is not None else FIRST_ROW
            frame = self.read_arrow().to_pandas(types_mapper=pd.ArrowDtype) if frame is None else frame
            table = read_frame(frame, reading, name=self.name, first=start) if len(frame) else None
        elif self.span is not None:
            table = read_text(self.name, self.read_bytes(), reading)
        elif self.file.stat().st_size:
            table = read_file(self.file, reading)
        if table is None or not len(table):
            return None
        return replace(table, frame=table.frame.set_axis(table.frame.index + self.first))

    def read_rows(self, reading: Reading, frame: Any) -> InputTable:
        """Read a piece that is known to have rows."""
        table = self.read(reading, frame)
        if table is None:
            raise InvalidInputError(
                f"{self.name} had rows and has none now: leave it as it is while it is read"
            )
        return table

    def read_arrow(self) -> Any:
        """Read the rows of a Parquet file as an Arrow table."""
        parquet = require("pyarrow.parquet", purpose="reading Parquet")
        with parquet.ParquetFile(self.path) as file:
            if self.span is None:
                return file.read() if self.groups is None else file.read_row_groups(list(self.groups))
            # The whole row group is never in memory: its parts would keep it there.
            (first, last), at, batches = self.span, 0, []
            for batch in file.iter_batches(last - first, self.groups):
                if at + len(batch) > first:
                    batches.append(batch.slice(max(first - at, 0), last - max(at, first)))
                at += len(batch)
                if at >= last:
                    break
        return require("pyarrow", purpose="reading Parquet").Table.from_batches(batches)

    def read_bytes(self) -> bytes:
        """Read the bytes of a CSV file, after its first row."""
        start, end = self.span or (0, 0)
        with self.file.open("rb") as stream:
            head = stream.readline()
            stream.seek(start)
            return head + stream.read(end - start)

    @property
    def file(self) -> Path:
        """The path of a piece that is no partition."""
        assert self.path is not None
        return self.path


class Source(NamedTuple):
    """A table in pieces, and what to say of that."""

    name: str
    pieces: list[Piece]
    rows: int | None  # where that is known before reading
    fits: bool  # whether it could be read whole
    note: str = ""

    def find_reading(self, reading: Reading) -> Reading:
        """Read all files of text as the first one that has rows shows."""
        for piece in self.pieces if self.rows is None and self.pieces[0].path is not None else []:
            if (table := piece.read(reading)) is not None:
                is_known = "auto" not in (table.reading.separator, table.reading.decimal)
                return table.reading if is_known else reading
        return reading


def find_source(data: Any, memory: int) -> Source | None:
    """List the pieces of a folder, of a glob, of a dask data frame, or of a file that is too large; None otherwise.

    Parameters
    ----------
    data : path, dask data frame, or anything else
    memory : int
        How many bytes may be used.
    """
    if is_dask(data):
        if not hasattr(data, "columns"):
            raise InvalidInputError(
                f"the table must be a dask data frame, whose columns have names; got {type(data).__name__}: make one"
            )
        parts = data.to_delayed()
        title = "partition {} of the data frame"
        frames = [Piece(title.format(place), frame=part) for place, part in enumerate(parts)]
        return Source("the dask data frame", frames, None, False)
    paths = _list_files(data) if isinstance(data, Path) else []
    if not paths:
        return None
    sizes = [_measure(path) for path in paths]
    fits = sum(values for _, values in sizes) * VALUE_BYTES <= memory
    is_file = data.is_file()
    if is_file and fits:
        return None
    known = [rows for rows, _ in sizes if rows is not None]
    most = min(memory / PIECE_SHARE / local_threads(), LARGEST_PIECE)
    pieces: list[Piece] = []
    for path, (_, values) in zip(paths, sizes, strict=True):
        pieces += _cut(path, most) if values > most else [Piece(path.name, path)]
    note = (
        f"{data.name} is larger than the memory allowed ({memory / 1e9:.3g} GB, {spell('--memory')}), so it was read "
        f"in {len(pieces)} parts."
    )
    rows = sum(known) if len(known) == len(paths) else None
    return Source(data.name, pieces, rows, fits, note if is_file else "")


def _list_files(data: Path) -> list[Path]:
    """List the files of a folder or of a glob, in the order of their names, or the one file; none for anything else."""
    if data.is_dir():
        shown = (path for path in data.iterdir() if not path.name.startswith((".", "_")))
        files = [path for path in shown if path.is_file() and NAMES.search(path.name)]
        what = f"the folder {data} has none"
    elif re.search(r"[*?\[]", str(data)) and not data.exists():
        pattern = data.relative_to(data.anchor)  # of a path that begins nowhere, the whole
        files = [path for path in Path(data.anchor).glob(str(pattern)) if path.is_file()]
        what = f"none fits {data}"
    else:
        return [data] if data.is_file() else []
    if not files:
        raise InvalidInputError(
            f"the table must have files that end in .parquet, .pq, .csv or such; {what}: name another place"
        )
    return sorted(files)


def _begin(path: Path) -> bytes:
    """Return the bytes that a file's kind shows in."""
    with path.open("rb") as stream:
        return stream.read(6)


def is_parquet(path: Path) -> bool:
    """Return whether a file is one of Parquet."""
    return _begin(path).startswith(b"PAR1")


def _measure(path: Path) -> tuple[int | None, float]:
    """Say how many rows and values a file has, as far as that can be told without reading it."""
    if is_parquet(path):
        parquet = require("pyarrow.parquet", purpose="reading Parquet")
        try:
            about = parquet.read_metadata(path)
        except Exception as error:  # pyarrow has many
            raise InvalidInputError(
                f"{path.name} is not a Parquet file that can be read ({error}): write it again, or leave it out"
            ) from error
        return about.num_rows, float(about.num_rows * about.num_columns)
    is_packed = _begin(path).startswith((*UNPACKERS, ZIP))
    return None, path.stat().st_size / (PACKED_VALUES if is_packed else TEXT_VALUES)


def _cut(path: Path, most: float) -> Iterable[Piece]:
    """Cut a file into pieces of at most so many values, where it can be cut."""
    if is_parquet(path):
        return _cut_parquet(path, most)
    marks = [mark for mark, encoding in BYTE_ORDER_MARKS if encoding != "utf-8-sig"]
    if _begin(path).startswith((*UNPACKERS, ZIP, *marks)):
        return [Piece(path.name, path)]
    return _cut_text(path, int(most * TEXT_VALUES))


def _cut_parquet(path: Path, most: float) -> Iterator[Piece]:
    about = require("pyarrow.parquet", purpose="reading Parquet").read_metadata(path)
    groups: list[int] = []
    rows = first = 0
    for place in range(about.num_row_groups):
        count = about.row_group(place).num_rows
        if groups and (rows + count) * about.num_columns > most:
            yield Piece(path.name, path, tuple(groups), first=first)
            groups, first, rows = [], first + rows, 0
        if count * about.num_columns > most:  # one row group is too much
            step = max(int(most / about.num_columns), 1)
            for start in range(0, count, step):
                yield Piece(path.name, path, (place,), (start, min(start + step, count)), first + start)
            first += count
            continue
        groups.append(place)
        rows += count
    if groups or not about.num_row_groups:
        yield Piece(path.name, path, tuple(groups), first=first)


def _cut_text(path: Path, most: int) -> Iterator[Piece]:
    """Cut a CSV file after rows: after a line end that an even number of quotes stands before."""
    with path.open("rb") as stream:
        begin = at = len(stream.readline())
        first = lines = 0
        size = os.fstat(stream.fileno()).st_size
        while at < size:
            block = stream.read(max(min(most, BLOCK), 1))
            is_open = block.count(b'"') % 2 == 1
            while is_open or not block.endswith(b"\n"):
                more = stream.readline()
                if not more:
                    break
                block += more
                is_open ^= more.count(b'"') % 2 == 1
            at += len(block)
            lines += re.sub(rb'"[^"]*"', b"", block).count(b"\n") if b'"' in block else block.count(b"\n")
            if at - begin >= most or at >= size:
                yield Piece(path.name, path, span=(begin, at), first=first)
                begin, first = at, lines


def release_memory() -> None:
    """Give back the memory that Arrow keeps for what it may read next."""
    if "pyarrow" in sys.modules:
        sys.modules["pyarrow"].default_memory_pool().release_unused()


def parse_memory(text: str | None) -> int:
    """Read how much memory may be used, such as 4GB; half of the machine's when None.

    >>> parse_memory("4GB"), parse_memory("500 MB")
    (4000000000, 500000000)
    """
    if text is None:
        known = hasattr(os, "sysconf")
        return int(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2) if known else 4 * 10**9
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([KMGT]?)i?B?\s*", str(text), re.IGNORECASE)
    size = float(match[1]) * 1000 ** " KMGT".index(match[2].upper() or " ") if match else 0.0
    if size < 10**6:
        raise InvalidInputError(
            f"{spell('--memory')} must be a size of at least 1MB, such as 500MB or 4GB; got {text!r}: write it so"
        )
    return int(size)


def content_keys(table: InputTable, apart: Sequence[str]) -> Keys:
    """Return a number for each row by what it holds in the columns but those ``apart``; equal rows have the same."""
    columns = {name: table.frame[name] for name in sorted(set(table.columns) - set(apart))}
    held = {
        name: column if is_text(column) else column.to_numpy(np.float64, na_value=np.nan)
        for name, column in columns.items()
    }
    keys = pd.util.hash_pandas_object(pd.DataFrame(held), index=False).to_numpy()
    return np.asarray(pd.util.hash_array(keys, categorize=False))  # so that all of its bits are mixed


# ---- Look at every piece of a table once: compare what they hold, and take a sample of the rows
#
# Rows are sampled by what they hold, so that copies of a row are taken together, and nothing else decides.
# Beside the sample, every piece names *witnesses*: rows that have a text, a gap or an extreme of a column,
# and some of each label in each group. Sample and witnesses together show what the columns are: a category
# of one piece alone is a category.

FEW_TEXTS = 300  # of a column of a piece, each of which is witnessed; of more, most are no categories
EACH_CELL = 30  # witnesses of each label in each group: what counts as enough people
MOST_CELLS = 2000


class Surveyed(NamedTuple):
    """What a piece is like.

    Attributes
    ----------
    name : str
    rows : int
    kinds : dict of (kind, example)
        What every column holds, in their order; "" where it holds nothing.
    runs : dict of (first, last)
        Columns that number the rows.
    table : InputTable
        The sampled rows and the witnesses; their index is the place in the piece.
    where : array
        The row of the file that each of them is.
    keys : array
        What tells by its content which rows are sampled and held out.
    """

    name: str
    rows: int
    kinds: dict[str, tuple[str, str]]
    runs: dict[str, tuple[int, int]]
    table: InputTable
    where: Integers
    keys: Keys


def survey_piece(piece: Piece, frame: Any, asked: TableSettings, limit: int) -> Surveyed | None:
    """Look at a piece; None where it is empty.

    Parameters
    ----------
    piece : Piece
    frame : DataFrame or None
        Its rows, where it is a partition of a dask data frame.
    asked : TableSettings
        Without the data.
    limit : int
        Rows whose key is below it are sampled.
    """
    table = piece.read(asked.reading, frame)
    if table is None:
        return None
    for option, names in (("--label", [asked.label]), ("--sensitive", asked.sensitive)):
        for name in names:
            table.column(name, option)
    kinds = {name: _find_kind(table, name, asked) for name in table.columns}
    runs = {}
    for name, (kind, _) in kinds.items():
        numbers = whole_numbers(table.frame[name]) if kind == "numbers" else None
        if numbers is not None and len(numbers) == len(table) and (np.diff(numbers) == 1).all():
            runs[name] = int(numbers[0]), int(numbers[-1])
    keys = content_keys(table, [asked.label])
    chosen = keys < limit
    chosen[_witnesses(table, asked)] = True
    places = np.flatnonzero(chosen)
    few = take_used(table, places)
    few = replace(few, frame=few.frame.set_axis(places))
    return Surveyed(table.name, len(table), kinds, runs, few, table.rows[places], keys[places])


def take_used(table: InputTable, places: Integers) -> InputTable:
    """Select some of the rows, without the texts that none of them has."""
    few = table.take(places)
    texts = {name: column for name, column in few.frame.items() if is_text(column)}
    used = {str(name): column.cat.remove_unused_categories() for name, column in texts.items()}
    return replace(few, frame=few.frame.assign(**used))


def _find_kind(table: InputTable, name: str, asked: TableSettings) -> tuple[str, str]:
    """Say what a column holds, with an example; refuse numbers among texts."""
    column = table.frame[name]
    known = column.dropna()
    decided = asked.label, *asked.sensitive, *asked.drop, *asked.categories, *asked.dates
    if name in decided or not len(known):
        return ("decided" if len(known) else ""), ""
    kind = kind_of(table, name, len(known))[0] if is_text(column) else "numbers"
    return kind, str(known.iloc[0])


def _witnesses(table: InputTable, asked: TableSettings) -> Integers:
    """Choose rows that show what the columns hold."""
    witnesses: list[Integers] = []
    for _, column in table.frame.items():
        witnesses.append(np.flatnonzero(column.isna())[:1])
        if not is_text(column):
            numbers = column.to_numpy(np.float64, na_value=np.nan)
            extremes = [np.nanargmin(numbers), np.nanargmax(numbers)] if not np.isnan(numbers).all() else []
            witnesses.append(np.array(extremes, np.int64))
        elif len(column.array.categories) <= FEW_TEXTS:
            witnesses.append(np.unique(column.array.codes, return_index=True)[1])
    cells = [pd.factorize(table.frame[name])[0] for name in (asked.label, *asked.sensitive)]
    places = pd.DataFrame(dict(enumerate(cells)))
    if places.drop_duplicates().shape[0] > MOST_CELLS:  # a sensitive column of quantities
        places = places[[0]]
    witnesses.append(places.groupby(list(places), sort=False).head(EACH_CELL).index.to_numpy())
    return np.unique(np.concatenate(witnesses))


class Sample(NamedTuple):
    """Rows that stand for all.

    Attributes
    ----------
    table : InputTable
        Sampled rows and witnesses; the index counts through all pieces.
    sampled, held : boolean arrays
        Which rows are in the sample, and which of them are measured on by models that do not see them.
    limit : int
        Rows whose key is below it are held out, in every piece.
    """

    table: InputTable
    sampled: Flags
    held: Flags
    limit: int


def merge_samples(
    surveyed: Sequence[Surveyed], bases: Sequence[int], name: str, size: int, held: int
) -> Sample:
    """Merge what pieces say of themselves, whose first rows have the numbers ``bases``; refuse different kinds."""
    pairs = zip(surveyed, bases, strict=True)
    index = np.concatenate([each.table.rows + base for each, base in pairs])
    keys = np.concatenate([each.keys for each in surveyed])
    ordered = np.sort(keys)
    limits = [int(ordered[min(count, len(ordered)) - 1]) + 1 for count in (size, held)]
    table = join_tables(name, [each.table for each in surveyed], index, [each.where for each in surveyed])
    _check_kinds(surveyed)
    sampled = keys < np.uint64(limits[0])
    return Sample(table, sampled, keys < np.uint64(limits[1]), limits[1])


def join_tables(
    name: str, tables: Sequence[InputTable], index: Integers, rows: Sequence[Integers] | None = None
) -> InputTable:
    """Put the rows of several tables with the same columns below each other, with what is said of any.

    ``index`` numbers them anew; ``rows`` says where they are in their files, where their own index does not.
    """
    _check_columns(tables)
    columns = {}
    for column in tables[0].columns:
        parts = [table.frame[column] for table in tables]
        if any(map(is_text, parts)):
            # Some may be no texts: there is nothing at all in them, or somebody decided.
            parts = [part if is_text(part) else canonical(part) for part in parts]
            # Without any text, pandas may have made another kind of categories.
            same = (part.cat.rename_categories(part.cat.categories.astype(object)) for part in parts)
            columns[column] = pd.api.types.union_categoricals([part.array for part in same])
        else:
            columns[column] = pd.concat(parts, ignore_index=True).array
    frame = pd.DataFrame(columns, index=index, copy=False)
    rows = [table.rows for table in tables] if rows is None else rows
    files = np.repeat(as_objects(table.name for table in tables), [len(table) for table in tables])
    where = pd.DataFrame({"file": files, "row": np.concatenate(rows)}, index=index)
    notes = list(dict.fromkeys(note for table in tables for note in table.notes))
    odd = frozenset().union(*(table.odd for table in tables))
    return InputTable(name, frame, tables[0].reading, notes, where=where, odd=odd)


def _check_columns(tables: Sequence[InputTable]) -> None:
    """Refuse tables with other columns than the first."""
    first = tables[0]
    for each in tables:
        for here, there, word in ((each, first, "lacks"), (first, each, "also has")):
            other = [name for name in there.columns if name not in here.columns]
            if other:
                raise InvalidInputError(
                    f"the parts of a table must have the same columns; {each.name} {word} {other[0]!r}, beside "
                    f"{first.name}: correct the file, or leave it out"
                )


def _check_kinds(surveyed: Sequence[Surveyed]) -> None:
    """Refuse pieces with a column that holds something else."""
    seen = dict[str, tuple[str, str, str]]()
    for each in surveyed:
        for name, (kind, example) in each.kinds.items():
            if kind:
                where, known, shown = seen.setdefault(name, (each.name, kind, example))
                if known != kind:
                    raise InvalidInputError(
                        f"column {name!r} must hold the same in every part; {where} has {known} (such as {shown!r}) "
                        f"and {each.name} has {kind} (such as {example!r}): correct one, add "
                        f"{spell('--categories', name, quote=True)} to take all as categories, or "
                        f"{spell('--drop', name, quote=True)}"
                    )


def number_rows(surveyed: Sequence[Surveyed]) -> set[str]:
    """Name the columns that number the rows of all pieces."""
    names = set.intersection(*(set(each.runs) for each in surveyed))
    pairs = list(pairwise(surveyed))
    return {name for name in names if all(b.runs[name][0] == a.runs[name][1] + 1 for a, b in pairs)}
