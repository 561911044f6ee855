"""Look at every piece of a table once: compare what they hold, and take a sample of the rows.

Rows are sampled by what they hold, so that copies of a row are taken together, and nothing else decides. Beside the
sample, every piece names *witnesses*: rows that have a text, a gap or an extreme of a column, and some of each label in
each group. Sample and witnesses together show what the columns are: a category of one piece alone is a category.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fairsieve.errors import InvalidInputError, spell
from fairsieve.selection.cells import Flags, Integers
from fairsieve.tabular.partitions.source import Piece, content_keys
from fairsieve.tabular.reading.columns import (
    InputTable,
    as_objects,
    canonical,
    is_text,
    kind_of,
    whole_numbers,
)
from fairsieve.tabular.settings import TableSettings

Keys = NDArray[np.uint64]

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
    _check_kinds(surveyed)
    pairs = zip(surveyed, bases, strict=True)
    index = np.concatenate([each.table.rows + base for each, base in pairs])
    keys = np.concatenate([each.keys for each in surveyed])
    ordered = np.sort(keys)
    limits = [int(ordered[min(count, len(ordered)) - 1]) + 1 for count in (size, held)]
    table = join_tables(name, [each.table for each in surveyed], index, [each.where for each in surveyed])
    sampled = keys < np.uint64(limits[0])
    return Sample(table, sampled, keys < np.uint64(limits[1]), limits[1])


def join_tables(
    name: str, tables: Sequence[InputTable], index: Integers, rows: Sequence[Integers] | None = None
) -> InputTable:
    """Put the rows of several tables with the same columns below each other, with what is said of any.

    ``index`` numbers them anew; ``rows`` says where they are in their files, where their own index does not.
    """
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


def _check_kinds(surveyed: Sequence[Surveyed]) -> None:
    """Refuse pieces with other columns, or with a column that holds something else."""
    first, seen = surveyed[0], dict[str, tuple[str, str, str]]()
    for each in surveyed:
        for here, there, word in ((each, first, "lacks"), (first, each, "has too")):
            other = [name for name in there.kinds if name not in here.kinds]
            if other:
                raise InvalidInputError(
                    f"the parts of a table must have the same columns; {each.name} {word} {other[0]!r}, beside "
                    f"{first.name}: correct the file, or leave it out"
                )
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
