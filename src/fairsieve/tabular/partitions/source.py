"""The pieces of a table: files of a folder, parts of one large file, partitions of a dask data frame."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fairsieve.errors import InvalidInputError, spell
from fairsieve.optional import is_dask, require
from fairsieve.tabular.reading.columns import InputTable, Reading
from fairsieve.tabular.reading.read import BYTE_ORDER_MARKS, UNPACKERS, ZIP, read_frame, read_part, read_text
from fairsieve.training.parts import local_threads

ENDINGS = (".parquet", ".pq", ".csv", ".tsv", ".txt")
PACKED = (".gz", ".bz2", ".xz", ".zip")
VALUE_BYTES = 110  # of memory for each value of a table that is trained on whole, at the peak
TEXT_VALUES = 6  # letters of a CSV file to a value
PACKED_VALUES = 1.5  # bytes of a packed one
BLOCK = 2**22  # bytes that are looked at for the end of a row
PIECE_SHARE = 250  # bytes of memory for each value of a piece that is worked on; several are at a time
LARGEST_PIECE = 2e6  # values: of larger ones, what is computed takes memory, and no time is saved


class Size(NamedTuple):
    """How many rows and values a file has, as far as that can be told without reading it."""

    rows: int | None
    values: float


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
        table = self._read(reading, frame)
        if table is None or not self.first:
            return table
        return replace(table, frame=table.frame.set_axis(table.frame.index + self.first))

    def read_rows(self, reading: Reading, frame: Any = None) -> InputTable:
        """Read a piece that is known to have rows."""
        table = self.read(reading, frame)
        if table is None:
            raise InvalidInputError(
                f"{self.name} had rows and has none now: leave it as it is while it is read"
            )
        return table

    def read_arrow(self, parquet: Any) -> Any:
        """Read the rows of a Parquet file as an Arrow table."""
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
        assert self.path is not None
        assert self.span is not None
        with self.path.open("rb") as stream:
            head = stream.readline()
            stream.seek(self.span[0])
            return head + stream.read(self.span[1] - self.span[0])

    def _read(self, reading: Reading, frame: Any) -> InputTable | None:
        if frame is not None:
            return read_frame(frame, reading, name=self.name) if len(frame) else None
        assert self.path is not None
        if self.groups is not None:
            parquet = require("pyarrow.parquet", purpose="reading Parquet")
            import pandas as pd

            rows = self.read_arrow(parquet).to_pandas(types_mapper=pd.ArrowDtype)
            return read_frame(rows, reading, name=self.name, first=2) if len(rows) else None
        if self.span is not None:
            table = read_text(self.name, self.read_bytes(), reading)
            return table if len(table) else None
        return read_part(self.path, reading)


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
        pieces = [
            Piece(f"partition {place} of the data frame", frame=part) for place, part in enumerate(parts)
        ]
        return Source("the dask data frame", pieces, None, False)
    if not isinstance(data, Path):
        return None
    paths = _list_files(data)
    if paths is None:
        return _split(data, memory) if data.is_file() else None
    sizes = [_measure(path) for path in paths]
    known = [size.rows for size in sizes]
    rows = None if None in known else sum(known)  # type: ignore[arg-type]
    most = _largest_piece(memory)
    cut: list[Piece] = []
    for path, size in zip(paths, sizes, strict=True):
        cut += _cut(path, size, most) if size.values > most else [Piece(path.name, path)]
    fits = sum(size.values for size in sizes) * VALUE_BYTES <= memory
    return Source(data.name, cut, rows, fits)


def _list_files(data: Path) -> list[Path] | None:
    """List the files of a folder or of a glob, in the order of their names; None for anything else."""
    if data.is_dir():
        files = [path for path in data.iterdir() if not path.name.startswith((".", "_"))]
        files = [
            path
            for path in files
            if path.is_file() and path.name.lower().removesuffix(_packed(path)).endswith(ENDINGS)
        ]
        what = f"the folder {data} has none"
    elif re.search(r"[*?\[]", str(data)) and not data.exists():
        root, pattern = (
            (Path(data.anchor), data.relative_to(data.anchor)) if data.is_absolute() else (Path(), data)
        )
        files = [path for path in root.glob(str(pattern)) if path.is_file()]
        what = f"none fits {data}"
    else:
        return None
    if not files:
        raise InvalidInputError(
            f"the table must have files that end in {', '.join(ENDINGS[:3])} or such; {what}: name another place"
        )
    return sorted(files)


def _packed(path: Path) -> str:
    return next((ending for ending in PACKED if path.name.lower().endswith(ending)), "")


def _begin(path: Path) -> bytes:
    """Return the bytes that a file's kind shows in."""
    with path.open("rb") as stream:
        return stream.read(6)


def is_parquet(path: Path) -> bool:
    """Return whether a file is one of Parquet."""
    return _begin(path).startswith(b"PAR1")


def _measure(path: Path) -> Size:
    """Say how large a file is."""
    if is_parquet(path):
        parquet = require("pyarrow.parquet", purpose="reading Parquet")
        try:
            about = parquet.read_metadata(path)
        except Exception as error:  # pyarrow has many
            raise InvalidInputError(
                f"{path.name} is not a Parquet file that can be read ({error}): write it again, or leave it out"
            ) from error
        return Size(about.num_rows, float(about.num_rows * about.num_columns))
    is_packed = _begin(path).startswith((*UNPACKERS, ZIP))
    return Size(None, path.stat().st_size / (PACKED_VALUES if is_packed else TEXT_VALUES))


def _split(path: Path, memory: int) -> Source | None:
    """Split one file that is too large to be read whole."""
    size = _measure(path)
    if size.values * VALUE_BYTES <= memory:
        return None
    pieces = _cut(path, size, _largest_piece(memory))
    note = (
        f"{path.name} is larger than the memory allowed ({memory / 1e9:.3g} GB, {spell('--memory')}), so it was read "
        f"in {len(pieces)} parts."
    )
    return Source(path.name, pieces, size.rows, False, note)


def _largest_piece(memory: int) -> float:
    """Return how many values a piece may have."""
    return min(memory / PIECE_SHARE / local_threads(), LARGEST_PIECE)


def _cut(path: Path, size: Size, most: float) -> list[Piece]:
    """Cut a file into pieces of at most so many values, where it can be cut."""
    if is_parquet(path):
        return list(_cut_parquet(path, most))
    marks = [mark for mark, encoding in BYTE_ORDER_MARKS if encoding != "utf-8-sig"]
    if _begin(path).startswith((*UNPACKERS, ZIP, *marks)):
        return [Piece(path.name, path)]
    return list(_cut_text(path, int(most * TEXT_VALUES)))


def _cut_parquet(path: Path, most: float) -> Iterator[Piece]:
    parquet = require("pyarrow.parquet", purpose="reading Parquet")
    about = parquet.read_metadata(path)
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
        is_open = False
        size = os.fstat(stream.fileno()).st_size
        while at < size:
            block = stream.read(max(min(most, BLOCK), 1))
            at += len(block)
            while at < size and not block.endswith(b"\n"):
                more = stream.readline()
                block, at = block + more, at + len(more)
            is_open ^= bool(block.count(b'"') % 2)
            while is_open and at < size:
                more = stream.readline()
                block, at = block + more, at + len(more)
                is_open ^= bool(more.count(b'"') % 2)
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
        return (
            int(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2)
            if hasattr(os, "sysconf")
            else 4 * 10**9
        )
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([KMGT]?)i?B?\s*", str(text), re.IGNORECASE)
    size = float(match[1]) * 1000 ** " KMGT".index(match[2].upper() or " ") if match else 0.0
    if size < 10**6:
        raise InvalidInputError(
            f"{spell('--memory')} must be a size of at least 1MB, such as 500MB or 4GB; got {text!r}: write it so"
        )
    return int(size)


def content_keys(table: InputTable, apart: Sequence[str]) -> NDArray[np.uint64]:
    """Return a number for each row by what it holds in the columns but those ``apart``; equal rows have the same."""
    import pandas as pd

    keys = np.zeros(len(table), np.uint64)
    for name, column in table.frame.items():
        if name not in apart:
            is_text = isinstance(column.dtype, pd.CategoricalDtype)
            values = (
                column.array.categories.to_numpy(object)
                if is_text
                else column.to_numpy(np.float64, na_value=np.nan)
            )
            hashed = pd.util.hash_array(values, categorize=False)
            hashed = np.append(hashed, np.uint64(1))[column.array.codes] if is_text else hashed
            keys += pd.util.hash_array(
                hashed ^ pd.util.hash_array(np.array([name], object))[0], categorize=False
            )
    return np.asarray(pd.util.hash_array(keys, categorize=False))
