"""Predict a table in pieces: each is read, predicted and written before the next, in files of the input's names."""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import dataclass, field, replace
from itertools import repeat
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline

from fairsieve.errors import InvalidInputError, spell
from fairsieve.files import check_new, keep_inputs, output_errors
from fairsieve.optional import require
from fairsieve.tabular.model_files import predict_table
from fairsieve.tabular.partitions.partitions import open_engine
from fairsieve.tabular.partitions.source import Piece, Source, is_parquet
from fairsieve.tabular.reading.columns import InputTable, Reading, learnt_reading
from fairsieve.tabular.reading.read import Piped, free_name, read_text
from fairsieve.tabular.report.files import predictions_csv
from fairsieve.validation import as_path


@dataclass(frozen=True, eq=False)
class PartPredictions:
    """Predictions of a table in parts, which are made when they are saved.

    Attributes
    ----------
    notes : list of str
        What to know, in plain words; complete when they are saved.
    """

    source: Source
    model: Pipeline
    reading: Reading
    origin: Path
    probabilities: bool
    backend: str
    memory: int
    notes: list[str] = field(default_factory=list)

    def save(self, path: Path | str, *, force: bool = False, escape_formulas: bool = False) -> Path:
        """Predict and write, piece by piece; return where: a CSV file where one file was read, else a folder.

        In a folder, the files have the names of the input; Parquet files become Parquet files, others CSV files.
        """
        self.write(as_path("--out", path), force=force, escape_formulas=escape_formulas)
        return Path(path)

    def write(self, path: Path, *, force: bool = False, escape_formulas: bool = False) -> int:
        """Do what :meth:`save` does, and return how many rows were predicted."""
        pieces = self.source.pieces
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
            rows = self._write(part, to_file, escape_formulas)
            with output_errors(path):
                part.chmod(0o755)
                (next(part.iterdir()) if to_file else part).replace(path)
        finally:
            shutil.rmtree(part, ignore_errors=True)
        return rows

    def _write(self, folder: Path, to_file: bool, escape_formulas: bool) -> int:
        """Predict the pieces in their order, as many at a time as there are workers, and write them."""
        frames = [piece.frame for piece in self.source.pieces]
        pieces = [replace(piece, frame=None) for piece in self.source.pieces]
        engine = open_engine(self.source, self.backend, self.memory)
        learnt = self.model.reading_
        reading = learnt_reading(self.reading, learnt["decimal"], learnt["missing"])
        reading = replace(reading, separator=self.source.find_reading(reading).separator)
        asked = self.model, reading, self.origin, self.probabilities, to_file, escape_formulas
        rows, step, writers = 0, getattr(engine, "threads", 16), dict[str, Any]()
        for start in range(0, len(pieces), step):
            few = slice(start, start + step)
            answers = engine.ask("predictions", predict_piece, pieces[few], frames[few], *map(repeat, asked))
            for piece, (count, content, notes) in zip(pieces[few], answers, strict=True):
                rows += count
                self.notes.extend(note for note in notes if note not in self.notes)
                with output_errors(folder):
                    _append(folder / (path_name(piece) if not to_file else "predicted"), content, writers)
        for writer in writers.values():
            if hasattr(writer, "close"):
                writer.close()
        return rows


def path_name(piece: Piece) -> str:
    """Name the file of a piece.

    >>> path_name(Piece("partition 3 of the data frame")), path_name(Piece("a.parquet", Path("x/a.parquet")))
    ('partition-3.csv', 'a.parquet')
    """
    return (
        piece.name if piece.path is not None else f"{piece.name.partition(' of ')[0].replace(' ', '-')}.csv"
    )


def _append(path: Path, content: Any, writers: dict[str, Any]) -> None:
    """Append text or an Arrow table to a file; names of columns come once."""
    if not isinstance(content, bytes):
        parquet = require("pyarrow.parquet", purpose="writing Parquet")
        if path.name not in writers:
            writers[path.name] = parquet.ParquetWriter(path, content.schema)
        writers[path.name].write_table(content)
        return
    if path.name in writers:
        content = content[writers[path.name] :]
    else:
        writers[path.name] = content.find(b"\n") + 1
    with path.open("ab") as stream:
        stream.write(content)


def _read(piece: Piece, frame: Any, reading: Reading) -> tuple[Any, InputTable | None]:
    """Read a piece, and return what its values are written from."""
    if frame is not None:
        return frame, piece.read(reading, frame)
    assert piece.path is not None
    if is_parquet(piece.path):
        return None, replace(piece, first=0).read(reading)
    if piece.span is None:
        return piece.path, piece.read(reading)
    content = piece.read_bytes()
    table = read_text(piece.name, content, reading)
    return Piped(piece.path, content), table if len(table) else None


def predict_piece(
    piece: Piece,
    frame: Any,
    model: Pipeline,
    reading: Reading,
    origin: Path,
    probabilities: bool,
    to_csv: bool,
    escape_formulas: bool,
) -> tuple[int, Any, list[str]]:
    """Predict a piece; return how many rows it has, what to write, and what to know."""
    data, table = _read(piece, frame, reading)
    if table is None:
        return 0, b"" if data is not None or to_csv else _as_arrow(piece, {}, model), []
    _, codes, chances, notes = predict_table(model, table, reading, origin)
    added = name_predictions(model, codes, chances, table.columns, probabilities=probabilities)
    if data is None and not to_csv:
        return len(table), _as_arrow(piece, added, model), notes
    written = format_predictions(added, table.reading.decimal)
    source = table.frame if data is None else data
    return len(table), predictions_csv(source, table, written, escape_formulas=escape_formulas), notes


def _as_arrow(piece: Piece, added: dict[str, Any], model: Pipeline) -> Any:
    """Return the rows of a Parquet file with predictions added."""
    parquet = require("pyarrow.parquet", purpose="reading Parquet")
    arrow = require("pyarrow", purpose="reading Parquet")
    rows = piece.read_arrow(parquet)
    if not added:
        added = name_predictions(model, np.zeros(0, np.int64), np.zeros((0, 2)), rows.column_names)
    for name, values in added.items():
        rows = rows.append_column(
            name, arrow.array(values.astype(object) if values.dtype.kind == "U" else values)
        )
    return rows


def name_predictions(
    model: Pipeline, codes: Any, chances: Any, taken: list[str], *, probabilities: bool = False
) -> dict[str, Any]:
    """Return predictions by the names that their columns get beside those that are taken."""
    wanted = {"predicted": model.classes_[codes], "probability": chances[np.arange(len(codes)), codes]}
    if probabilities:
        labels = zip(map(str, model.classes_), chances.T, strict=True)
        wanted |= {f"probability_{label}": values for label, values in labels}
    return {free_name(name, taken): values for name, values in wanted.items()}


def format_predictions(added: dict[str, Any], decimal: str) -> dict[str, list[str]]:
    """Write predictions and probabilities as texts."""
    return {
        name: [f"{value:.4f}".replace(".", decimal) for value in values]
        if values.dtype.kind == "f"
        else values.tolist()
        for name, values in added.items()
    }
