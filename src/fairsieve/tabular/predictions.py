"""Predict labels by a kept model, and write them beside the rows, which stay byte for byte as they were."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.pipeline import Pipeline

from fairsieve.errors import InvalidInputError
from fairsieve.report.text import columns_csv
from fairsieve.tabular.model_files import damaged, decide, probabilities
from fairsieve.tabular.reading.columns import InputTable, Reading, closest
from fairsieve.tabular.reading.encoding import feature_values, new_categories, notes_on_new
from fairsieve.tabular.reading.read import find_encoding, read_data


def predict_table(
    model: Pipeline, data: Any, reading: Reading, origin: Path
) -> tuple[InputTable, NDArray[np.int64], NDArray[np.float64], list[str]]:
    """Predict the label of every row of a file or data frame.

    Parameters
    ----------
    origin : Path
        The file that the model came from.

    Returns
    -------
    table : InputTable
        The rows as they were read.
    codes : integer array
        Places of the predicted labels in ``model.classes_``.
    chances : array of shape (n, classes)
    notes : list of str
        What to know, in plain words.
    """
    prepared = model["prepare"]
    table = read_data(data, replace(reading, missing=(*reading.missing, *prepared.missing)))
    absent = [column for column in prepared.kinds if column not in table.frame]
    if absent:
        close = closest(absent[0], table.columns)
        hint = f"Did you mean {close!r}: rename it?" if close else ""
        raise InvalidInputError(
            f"{table.name} must have every column that the model learnt from; missing: "
            f"{', '.join(map(repr, absent[:5]))}{' …' if len(absent) > 5 else ''}. "
            f"{hint or 'Give a table of the form that was trained on'}"
        )
    values = feature_values(table, prepared.kinds)
    try:
        notes = [*table.notes, *notes_on_new(new_categories(values, prepared))]
        chances = probabilities([model], values)[0]
        if not np.isfinite(chances).all():
            raise ValueError("it predicts probabilities that are not numbers")
        return table, decide(model, chances), chances, notes
    except (AttributeError, LookupError, TypeError, ValueError) as error:  # the values are as they should be
        raise damaged(origin, error) from error


def predictions_csv(
    path: Path, table: InputTable, added: Mapping[str, Sequence[str]], *, escape_formulas: bool = False
) -> bytes:
    """Write a table with columns added, as CSV.

    The rows of a CSV file are copied as they are, with their quotes, spaces, separator, line ends and encoding.

    Parameters
    ----------
    path : Path
        The file that ``table`` was read from.
    added : dict of sequences
        Columns to add at the end.
    escape_formulas : bool
        Write the table anew, with an apostrophe before what a spreadsheet could take for a formula.
    """
    with path.open("rb") as stream:
        is_text = stream.read(4) not in (b"PAR1", b"PK\x03\x04")
    if escape_formulas or not is_text:
        columns: dict[str, Iterable[Any]] = {
            name: ["" if value is None else value for value in table.cells(name)] for name in table.columns
        }
        columns |= added
        return columns_csv(
            columns, escape_formulas=escape_formulas, separator=table.reading.separator
        ).encode()
    content = path.read_bytes()
    encoding = find_encoding(path.name, content)
    errors = "replace" if encoding.startswith(("utf-16", "utf-32")) else "surrogateescape"
    text = _copied_rows(content.decode(encoding, errors=errors), table, added)
    try:
        return text.encode(encoding, errors=errors)
    except UnicodeEncodeError:  # a predicted label that the file's encoding lacks
        return text.encode("utf-8", errors=errors)


def _copied_rows(text: str, table: InputTable, added: Mapping[str, Sequence[str]]) -> str:
    """Copy the rows of a CSV file, with fields added to each."""
    separator = table.reading.separator
    records = _records(text.lstrip("\r\n"), separator)
    header, width = next(records)
    line_end = header[len(header.rstrip("\r\n")) :] or "\n"
    rows = iter(zip(table.rows.tolist(), zip(*added.values(), strict=True), strict=True))
    lines = [header.rstrip("\r\n") + separator + _joined(list(added), separator)]
    wanted, fields = next(rows)
    for row, (record, found) in enumerate(records, start=2):
        if row == wanted:
            padding = separator * (width - found)
            lines.append(record.rstrip("\r\n") + padding + separator + _joined(fields, separator))
            wanted, fields = next(rows, (-1, ()))
    return line_end.join(lines) + line_end


def _records(text: str, separator: str) -> Iterator[tuple[str, int]]:
    """Yield the text of each record with its line end, and how many fields it has."""
    lines: list[str] = []

    def remembered() -> Iterator[str]:
        for line in io.StringIO(text, newline=""):
            lines.append(line)
            yield line

    for fields in csv.reader(remembered(), delimiter=separator, skipinitialspace=True):
        yield "".join(lines), len(fields)
        lines.clear()


def _joined(fields: Sequence[str], separator: str) -> str:
    """Write fields as a part of a row, in quotes where they need them."""
    stream = io.StringIO()
    csv.writer(stream, delimiter=separator, lineterminator="").writerow(fields)
    return stream.getvalue()
