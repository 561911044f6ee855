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
from fairsieve.tabular.partitions.source import Piece, content_keys
from fairsieve.tabular.reading.columns import (
    InputTable,
    Reading,
    canonical,
    find_column,
    is_text,
    kind_of,
    whole_numbers,
)
from fairsieve.tabular.settings import TableSettings

Keys = NDArray[np.uint64]

FEW_TEXTS = 300  # of a column of a piece, each of which is witnessed; of more, most are no categories
EACH_CELL = 30  # witnesses of each label in each group: what counts as enough people
MOST_CELLS = 2000


class Roles(NamedTuple):
    """What a piece needs to know of what was asked."""

    label: str
    sensitive: tuple[str, ...]
    apart: frozenset[str]  # columns whose kind somebody decided
    reading: Reading

    @classmethod
    def of(cls, asked: TableSettings, reading: Reading) -> Roles:
        """Return what workers are told: not the data themselves."""
        decided = (asked.label, *asked.sensitive, *asked.drop, *asked.categories, *asked.dates)
        return cls(asked.label, tuple(asked.sensitive), frozenset(decided), reading)


class Kind(NamedTuple):
    """What a column of a piece holds, with an example; "" where it holds nothing."""

    name: str
    example: str = ""


class Surveyed(NamedTuple):
    """What a piece is like.

    Attributes
    ----------
    name : str
    rows : int
    kinds : dict of Kind
        Of every column, in their order.
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
    kinds: dict[str, Kind]
    runs: dict[str, tuple[int, int]]
    table: InputTable
    where: NDArray[np.int64]
    keys: Keys


def survey_piece(piece: Piece, frame: Any, roles: Roles, limit: int) -> Surveyed | None:
    """Look at a piece; None where it is empty.

    Parameters
    ----------
    piece : Piece
    frame : DataFrame or None
        Its rows, where it is a partition of a dask data frame.
    roles : Roles
    limit : int
        Rows whose key is below it are sampled.
    """
    table = piece.read(roles.reading, frame)
    if table is None:
        return None
    for option, names in (("--label", [roles.label]), ("--sensitive", roles.sensitive)):
        for name in names:
            find_column(table, name, option)
    kinds = {name: _kind(table, name, roles) for name in table.columns}
    runs = {}
    for name, kind in kinds.items():
        numbers = (
            whole_numbers(table.frame[name]) if kind.name == "numbers" and name not in roles.apart else None
        )
        if numbers is not None and len(numbers) == len(table) and (np.diff(numbers) == 1).all():
            runs[name] = int(numbers[0]), int(numbers[-1])
    keys = content_keys(table, [roles.label])
    chosen = keys < limit
    chosen[_witnesses(table, roles)] = True
    places = np.flatnonzero(chosen)
    few = take_used(table, places)
    few = replace(few, frame=few.frame.set_axis(places))
    return Surveyed(table.name, len(table), kinds, runs, few, table.rows[places], keys[places])


def take_used(table: InputTable, places: NDArray[np.int64]) -> InputTable:
    """Select some of the rows, without the texts that none of them has."""
    few = table.take(places)
    used = {
        name: column.cat.remove_unused_categories() if is_text(column) else column
        for name, column in few.frame.items()
    }
    return replace(few, frame=pd.DataFrame(used))


def _kind(table: InputTable, name: str, roles: Roles) -> Kind:
    """Say what a column holds; refuse numbers among texts."""
    column = table.frame[name]
    known = int(column.notna().sum())
    if not known:
        return Kind("")
    if name in roles.apart:
        return Kind("decided")
    kind, _ = kind_of(table, name, known) if is_text(column) else ("numbers", "")
    table._parsed.pop(name, None)
    return Kind(kind, str(column[column.notna()].iloc[0]))


def _witnesses(table: InputTable, roles: Roles) -> NDArray[np.int64]:
    """Choose rows that show what the columns hold."""
    witnesses: list[NDArray[np.int64]] = []
    for _, column in table.frame.items():
        if is_text(column):
            codes = column.array.codes
            if len(column.array.categories) <= FEW_TEXTS:
                witnesses.append(np.unique(codes, return_index=True)[1])
            else:
                witnesses.append(np.flatnonzero(codes < 0)[:1])
            continue
        numbers = column.to_numpy(np.float64, na_value=np.nan)
        gaps = np.isnan(numbers)
        witnesses.append(np.flatnonzero(gaps)[:1])
        if not gaps.all():
            witnesses.append(np.array([np.nanargmin(numbers), np.nanargmax(numbers)]))
    cells = [pd.factorize(table.frame[name])[0] for name in (roles.label, *roles.sensitive)]
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
    sampled: NDArray[np.bool_]
    held: NDArray[np.bool_]
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
    where = pd.DataFrame(
        {
            "file": np.concatenate([np.full(len(each.where), each.name, object) for each in surveyed]),
            "row": np.concatenate([each.where for each in surveyed]),
        },
        index=index,
    )
    notes = list(dict.fromkeys(note for each in surveyed for note in each.table.notes))
    table = join_tables(name, [each.table for each in surveyed], index, where, notes)
    sampled = keys < np.uint64(limits[0])
    return Sample(table, sampled, keys < np.uint64(limits[1]), limits[1])


def join_tables(
    name: str, tables: Sequence[InputTable], index: NDArray[np.int64], where: pd.DataFrame, notes: list[str]
) -> InputTable:
    """Put the rows of several tables with the same columns below each other."""
    columns = {}
    for column in tables[0].columns:
        parts = [table.frame[column] for table in tables]
        texts = [is_text(part) for part in parts]
        if any(texts) and not all(texts):  # nothing at all in one, or somebody decided
            pairs = zip(parts, tables, strict=True)
            parts = [
                part if is_text(part) else canonical(part, table.reading.decimal) for part, table in pairs
            ]
        if any(texts):
            # Without any text, pandas may have made another kind of categories.
            same = [
                pd.Categorical.from_codes(part.array.codes, part.array.categories.astype(object))
                for part in parts
            ]
            columns[column] = pd.api.types.union_categoricals(same)
        else:
            columns[column] = pd.concat(
                [part.reset_index(drop=True) for part in parts], ignore_index=True
            ).array
    frame = pd.DataFrame(columns, index=index, copy=False)
    odd = frozenset().union(*(table.odd for table in tables))
    return InputTable(name, frame, tables[0].reading, notes, where=where, odd=odd)


def _check_kinds(surveyed: Sequence[Surveyed]) -> None:
    """Refuse pieces with other columns, or with a column that holds something else."""
    first = surveyed[0]
    seen: dict[str, tuple[str, Kind]] = {}
    for each in surveyed:
        for here, there, word in ((each, first, "lacks"), (first, each, "has too")):
            other = [name for name in there.kinds if name not in here.kinds]
            if other:
                raise InvalidInputError(
                    f"the parts of a table must have the same columns; {each.name} {word} {other[0]!r}, beside "
                    f"{first.name}: correct the file, or leave it out"
                )
        for name, kind in each.kinds.items():
            if not kind.name:
                continue
            known, one = seen.setdefault(name, (each.name, kind))
            if one.name != kind.name:
                raise InvalidInputError(
                    f"column {name!r} must hold the same in every part; {known} has {one.name} (such as "
                    f"{one.example!r}) and {each.name} has {kind.name} (such as {kind.example!r}): correct one, add "
                    f"{spell('--categories', name, quote=True)} to take all as categories, or "
                    f"{spell('--drop', name, quote=True)}"
                )


def number_rows(surveyed: Sequence[Surveyed]) -> set[str]:
    """Name the columns that number the rows of all pieces."""
    names = set.intersection(*(set(each.runs) for each in surveyed))
    pairs = list(pairwise(surveyed))
    return {name for name in names if all(b.runs[name][0] == a.runs[name][1] + 1 for a, b in pairs)}
