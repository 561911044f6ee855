"""Predictions of a table, in memory or piece by piece, added to what was read: its values stay as they are written."""

from __future__ import annotations

import contextlib
import functools
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import repeat
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.pipeline import Pipeline

from fairsieve.errors import InvalidInputError, require, spell
from fairsieve.files import check_new, keep_inputs, output_errors, write_output
from fairsieve.report.text import csv_text
from fairsieve.selection.cells import Floats, Integers, Values
from fairsieve.tabular.model_files import predict_table
from fairsieve.tabular.partitions.partitions import open_engine
from fairsieve.tabular.partitions.source import Piece, Source, is_parquet
from fairsieve.tabular.reading.columns import InputTable, Reading, learnt_reading
from fairsieve.tabular.reading.read import (
    READERS,
    Piped,
    find_encoding,
    free_name,
    is_frame,
    read_content,
    split_rows,
    with_columns,
)
from fairsieve.validation import as_path


@dataclass(frozen=True, eq=False, repr=False)
class Predictions:
    """The predicted label of every row of a table.

    Attributes
    ----------
    predicted : array of str
    probability : array of floats
        Of what is predicted.
    notes : list of str
        What to know, in plain words.
    data, table
        What was given, and the rows as they were read.
    chances : dict of arrays
        The probability of each label, where that was asked for.
    added : dict of arrays
        All of these, by the names that their columns get.

    Examples
    --------
    >>> import pandas as pd
    >>> from fairsieve import tabular
    >>> from fairsieve.data import make_synthetic
    >>> drawn = make_synthetic(1000, seed=0)
    >>> people = pd.DataFrame(drawn.features[:, :2], columns=["x1", "x2"])
    >>> people["group"], people["label"] = drawn.groups, drawn.labels
    >>> result = tabular.train(people, label="label", sensitive="group", clean_ratio=0.95)
    >>> predictions = tabular.predict(result, people.head(5))
    >>> bool((predictions.probability >= 0.5).all())
    True
    """

    data: Any
    table: InputTable
    predicted: NDArray[np.str_]
    probability: Floats
    notes: list[str]
    chances: dict[str, Floats]
    added: dict[str, Values]

    def __len__(self) -> int:
        return len(self.predicted)

    @cached_property
    def frame(self) -> Any:
        """The rows with the predictions and their probabilities added, as a data frame."""
        return with_columns(self.data, self.table, np.arange(len(self.table)), self.added)

    def save(self, path: Path | str, *, force: bool = False, escape_formulas: bool = False) -> Path:
        """Write the rows and the predictions to a CSV file; return where.

        The values of a CSV file stay as they are written.
        """
        path = as_path("--out", path)
        if not is_frame(self.data):
            keep_inputs("--out", path, Path(str(self.data)))
        check_new("--out", path, force=force)
        content = predictions_csv(self.data, self.table, self.added, escape_formulas=escape_formulas)
        write_output(path, content)
        return path

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {len(self):,} rows of {self.table.name}>"

    def _repr_html_(self) -> str:
        return str(self.frame._repr_html_())


@dataclass(frozen=True)
class Predictor:
    """A stored model, and how to read what it predicts.

    Attributes
    ----------
    model : Pipeline
    reading : Reading
    origin : Path
        The file that the model came from.
    probabilities : bool
        Whether the probability of each label is wanted.
    """

    model: Pipeline
    reading: Reading
    origin: Path
    probabilities: bool

    def predict(self, data: Any) -> Predictions:
        """Predict the rows of a file, of a data frame, or of a table that was read already."""
        table, codes, chances, notes = predict_table(self.model, data, self.reading, self.origin)
        columns = self.columns(codes, chances)
        added = {free_name(name, table.columns): values for name, values in columns.items()}
        notes += [
            f"The table has a column {name!r} already; that of the model is {own!r}."
            for name, own in zip(columns, added, strict=True)
            if name != own
        ]
        predicted, probability, *of_labels = columns.values()
        by_label = dict(zip(map(str, self.model.classes_), of_labels, strict=False))
        return Predictions(data, table, predicted, probability, notes, by_label, added)

    def columns(self, codes: Integers, chances: Floats) -> dict[str, Values]:
        """Return predictions as columns to add."""
        classes = self.model.classes_
        columns = {"predicted": classes[codes], "probability": chances[np.arange(len(codes)), codes]}
        labels = zip(classes, chances.T, strict=True) if self.probabilities else ()
        return columns | {f"probability_{label}": values for label, values in labels}

    def predict_piece(
        self, piece: Piece, frame: Any, to_csv: bool, escape_formulas: bool
    ) -> tuple[int, Any, list[str]]:
        """Predict a piece; return how many rows it has, what to write, and what to know."""
        data, table = _read(piece, frame, self.reading)
        as_arrow = data is None and not to_csv
        if table is None:
            nothing = self.columns(np.zeros(0, np.int64), np.zeros((0, len(self.model.classes_))))
            return 0, _as_arrow(piece, nothing) if as_arrow else b"", []
        made = self.predict(table)
        if as_arrow:
            return len(made), _as_arrow(piece, made.added), made.notes
        source = table.frame if data is None else data
        content = predictions_csv(source, table, made.added, escape_formulas=escape_formulas)
        return len(made), content, made.notes


@dataclass(eq=False)
class PartPredictions:
    """Predictions of a table in parts, which are made when they are saved; then it has their number.

    Attributes
    ----------
    notes : list of str
        What to know, in plain words; complete when they are saved.
    """

    source: Source
    predictor: Predictor
    backend: str
    memory: int
    notes: list[str] = field(default_factory=list)
    rows: int = 0

    def __len__(self) -> int:
        return self.rows

    def save(self, path: Path | str, *, force: bool = False, escape_formulas: bool = False) -> Path:
        """Predict and write, piece by piece; return where: a CSV file where one file was read, else a folder.

        In a folder, the files have the names of the input; Parquet files become Parquet files, others CSV files.
        """
        path, pieces = as_path("--out", path), self.source.pieces
        to_file = pieces[0].path is not None and len({piece.path for piece in pieces}) == 1
        for piece in pieces:
            keep_inputs("--out", path, piece.path, names=[] if to_file else [piece.name])
        if path.is_dir() and (to_file or any(path.iterdir())):
            raise InvalidInputError(
                f"{spell('--out')} must be a new {'file' if to_file else 'folder'}; {path} is a folder that is there: "
                "name another"
            )
        if not path.is_dir():
            check_new("--out", path, force=force and to_file)
        with output_errors(path):
            part = Path(tempfile.mkdtemp(prefix=f".{path.name}.", suffix=".part", dir=path.parent))
        try:
            self._write(part, to_file, escape_formulas)
            with output_errors(path):
                part.chmod(0o755)
                (next(part.iterdir()) if to_file else part).replace(path)
        finally:
            shutil.rmtree(part, ignore_errors=True)
        return path

    def _write(self, folder: Path, to_file: bool, escape_formulas: bool) -> None:
        """Predict the pieces in their order, as many at a time as there are workers, and write them."""
        frames = [piece.frame for piece in self.source.pieces]
        pieces = [replace(piece, frame=None) for piece in self.source.pieces]
        engine = open_engine(self.source, self.backend, self.memory)
        learnt = self.predictor.model.reading_
        reading = learnt_reading(self.predictor.reading, learnt["decimal"], learnt["missing"])
        reading = replace(reading, separator=self.source.find_reading(reading).separator)
        predict = replace(self.predictor, reading=reading).predict_piece
        step, self.rows = getattr(engine, "threads", 16), 0
        with contextlib.ExitStack() as opened:
            writers: dict[Path, Any] = {}
            for start in range(0, len(pieces), step):
                few = slice(start, start + step)
                same = repeat(to_file), repeat(escape_formulas)
                answers = engine.ask("predictions", predict, pieces[few], frames[few], *same)
                for piece, (count, content, notes) in zip(pieces[few], answers, strict=True):
                    self.rows += count
                    self.notes.extend(note for note in notes if note not in self.notes)
                    target = folder / ("predicted" if to_file else path_name(piece))
                    with output_errors(folder):
                        if isinstance(content, bytes):
                            _append(target, content)
                            continue
                        if target not in writers:
                            parquet = require("pyarrow.parquet", purpose="writing Parquet")
                            writer = parquet.ParquetWriter(target, content.schema)
                            writers[target] = opened.enter_context(writer)
                        writers[target].write_table(content)


def path_name(piece: Piece) -> str:
    """Name the file of a piece.

    >>> path_name(Piece("partition 3 of the data frame")), path_name(Piece("a.parquet", Path("x/a.parquet")))
    ('partition-3.csv', 'a.parquet')
    """
    partition = piece.name.partition(" of ")[0].replace(" ", "-")
    return f"{partition}.csv" if piece.path is None else piece.name


def _append(path: Path, content: bytes) -> None:
    """Append rows of CSV to a file; names of columns come once."""
    start = content.find(b"\n") + 1 if path.exists() else 0
    with path.open("ab") as stream:
        stream.write(content[start:])


def _read(piece: Piece, frame: Any, reading: Reading) -> tuple[Any, InputTable | None]:
    """Read a piece, and return what its values are written from."""
    table = replace(piece, first=0).read(reading, frame)
    if frame is not None or is_parquet(piece.file):
        return frame, table
    return piece.file if piece.span is None else Piped(piece.file, piece.read_bytes()), table


def _as_arrow(piece: Piece, added: Mapping[str, Values]) -> Any:
    """Return the rows of a Parquet file with predictions added."""
    arrow = require("pyarrow", purpose="reading Parquet")
    rows = piece.read_arrow()
    for name, values in added.items():
        column = arrow.array(values.astype(object) if values.dtype.kind == "U" else values)
        rows = rows.append_column(free_name(name, rows.column_names), column)
    return rows


# ---- What is written

CHUNK = 50_000  # rows that are written at a time


def predictions_csv(
    data: Any, table: InputTable, added: Mapping[str, Values], *, escape_formulas: bool
) -> bytes:
    """Write a table that was read from the file or data frame ``data``, with columns added, as CSV.

    The values of a CSV file stay as they are written, and so do its separator, line ends and encoding.

    Parameters
    ----------
    added : dict of sequences
        Columns to add at the end.
    escape_formulas : bool
        Put an apostrophe before what a spreadsheet could take for a formula.
    """
    encoding, line_end, text = "utf-8", "\n", ""
    content = b"" if is_frame(data) else read_content(data)
    if content and content[:4] not in READERS:
        encoding = find_encoding(table.name, content)
        text = content.decode(encoding, errors="surrogateescape").lstrip("\r\n")
        line_end = "\r\n" if "\r\n" in text else "\n"
    del content

    decimal = table.reading.decimal
    written = [
        [f"{value:.4f}".replace(".", decimal) for value in values]
        if values.dtype.kind == "f"
        else values.tolist()
        for values in added.values()
    ]

    def parts() -> Iterator[tuple[list[str], list[list[Any]]]]:
        if not text:
            for start in range(0, len(table), CHUNK):
                part = table.take(np.arange(start, min(start + CHUNK, len(table))))
                yield table.columns, [part.cells(name) for name in table.columns]
            return
        names: list[str] = []
        for fields in split_rows(table.name, text, table.reading.separator, CHUNK):
            names = names or fields.iloc[0].tolist()
            kept = fields[np.isin(fields.index + 1, table.rows)]  # not the names, nor blank rows
            yield names, [kept[place].tolist() for place in kept]

    write = functools.partial(
        csv_text, separator=table.reading.separator, escape_formulas=escape_formulas, line_end=line_end
    )
    lines: list[str] = []
    start = 0
    for names, columns in parts():
        rows = slice(start, start + len(columns[0]))
        lines += [] if lines else [write([[*names, *added]])]
        lines.append(write(zip(*columns, *(values[rows] for values in written), strict=True)))
        start = rows.stop
    text = "".join(lines)
    with contextlib.suppress(UnicodeEncodeError):  # a predicted label that the file's encoding lacks
        return text.encode(encoding, errors="surrogateescape")
    return text.encode(errors="surrogateescape")
