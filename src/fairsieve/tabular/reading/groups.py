"""The sensitive columns: which groups are compared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from fairsieve.errors import InvalidInputError
from fairsieve.tabular.reading.bins import bin_numbers, find_edges, suggested_edges
from fairsieve.tabular.reading.columns import ParsedNumbers, canonical, parse_numbers
from fairsieve.tabular.reading.labels import coded_by
from fairsieve.tabular.reading.table import InputTable, TextColumn, as_objects, find_column
from fairsieve.validation import check_choice, closest_hint

__all__ = ["LEAST_GROUP", "Groups", "SmallGroups", "find_groups"]

SmallGroups = Literal["stop", "merge", "ignore"]
Edges = Mapping[str, tuple[float, ...]]

MOST_GROUPS = 20
MOST_NUMBERS = 10  # a column with more different numbers is a quantity
LEAST_GROUP = 30
OTHER = "other"


@dataclass(frozen=True)
class Groups:
    """Which groups are compared, and how a row's group is found.

    Attributes
    ----------
    columns : tuple of str
        The sensitive columns; several are crossed.
    names : tuple of str
        The groups, sorted.
    edges : dict
        The edges of the columns that are quantities.
    merged : bool
        Whether those in none of the groups are one, "other"; they are otherwise not compared.
    """

    columns: tuple[str, ...]
    names: tuple[str, ...]
    edges: Edges
    merged: bool = False

    def read(self, table: InputTable) -> TextColumn:
        """Read the group of every row, coded by its place in ``names``; missing where it is not compared."""
        crossed = _cross(table, self.columns, self.edges)
        if self.merged:
            crossed = crossed.recoded([name if name in self.names else OTHER for name in crossed.values])
        return coded_by(crossed, self.names)

    @property
    def title(self) -> str:
        """What the groups are of, for heads of tables."""
        return " and ".join(self.columns)


def find_groups(
    table: InputTable,
    columns: Sequence[str],
    *,
    bins: Mapping[str, str] | None = None,
    small_groups: SmallGroups = "stop",
) -> tuple[Groups, list[str]]:
    """Find the groups that sensitive columns make, check them, and say in words what was done to them."""
    check_choice("--small-groups", small_groups, ("stop", "merge", "ignore"))
    rules = dict(bins or {})
    if not columns:
        raise InvalidInputError("--sensitive must name one column or more: the groups to compare")
    for column in rules:
        if column not in columns:
            raise InvalidInputError(
                f"--bins must be of a sensitive column, {', '.join(columns)}; got {column!r}"
                f"{closest_hint(column, columns)}"
            )
    edges = {column: its for column in columns if (its := _check_column(table, column, rules.get(column)))}
    crossed = _cross(table, columns, edges)
    counts = {
        str(name): int(count) for name, count in zip(crossed.values, crossed.counts, strict=True) if count
    }
    title = " and ".join(repr(column) for column in columns)
    if len(counts) < 2:
        only = f"only {next(iter(counts))!r}" if counts else "no value at all"
        raise InvalidInputError(
            f"--sensitive must make two or more groups to compare; {title} of {table.name} has {only}: name another "
            "column"
        )
    _refuse_many(title, len(counts), table, crossed_columns=len(columns) > 1)
    small = {name: count for name, count in counts.items() if count < LEAST_GROUP}
    if small and small_groups == "stop":
        _refuse_small(title, small)
    large = sorted(set(counts) - set(small))
    merged = small_groups == "merge" and sum(small.values()) >= LEAST_GROUP
    if len(large) + merged < 2:
        raise InvalidInputError(
            f"--sensitive must make two or more groups of at least {LEAST_GROUP} people; {title} of {table.name} makes "
            f"{', '.join(f'{name} ({count})' for name, count in sorted(counts.items()))}"
        )
    found = Groups(tuple(columns), tuple(sorted({*large, OTHER}) if merged else large), edges, merged=merged)
    return found, _notes_on_small(small, merged)


def _check_column(table: InputTable, column: str, rule: str | None) -> tuple[float, ...] | None:
    """Return the edges of a sensitive column that is a quantity; None for one of categories."""
    values = find_column(table, column, "--sensitive")
    parsed = parse_numbers(values, table.reading.decimal)
    distinct = values.distinct
    numeric = bool(values.known.any()) and not parsed.odd.any()
    if rule is not None:
        if not numeric:
            _refuse_texts(table, column, parsed)
        return find_edges(rule, parsed.numbers, column)
    if numeric and distinct > MOST_NUMBERS:
        example = ",".join(f"{edge:g}" for edge in suggested_edges(parsed.numbers))
        raise InvalidInputError(
            f"--sensitive must be a column of groups; {column!r} of {table.name} has numbers, {distinct:,} different "
            f"ones: add --bins {column}={example} to make groups between these edges, or --bins {column}=4 for four of "
            "equal size"
        )
    _refuse_many(repr(column), distinct, table)
    return None


def _refuse_texts(table: InputTable, column: str, parsed: ParsedNumbers) -> None:
    """Refuse bins of a column of texts."""
    first = np.flatnonzero(parsed.odd)[:1]
    example = ""
    if len(first):
        example = f", such as {table.columns[column].take(first).tolist()[0]!r} in row {table.rows[first[0]]}"
    raise InvalidInputError(
        f"--bins must be of a column of numbers; {column!r} of {table.name} has texts{example}"
    )


def _refuse_many(title: str, count: int, table: InputTable, *, crossed_columns: bool = False) -> None:
    """Refuse so many groups that nothing can be said of any."""
    if count > MOST_GROUPS:
        advice = (
            "name fewer columns"
            if crossed_columns
            else "choose a column of groups, or add one that puts these values together"
        )
        raise InvalidInputError(
            f"--sensitive must make at most {MOST_GROUPS} groups; {title} of {table.name} makes {count:,}: {advice}"
        )


def _refuse_small(title: str, small: Mapping[str, int]) -> None:
    """Refuse groups of so few people that their rates are chance."""
    shown = ", ".join(
        f"{name!r} ({count} people)" for name, count in sorted(small.items(), key=lambda one: one[1])[:5]
    )
    raise InvalidInputError(
        f"groups of {title} must have at least {LEAST_GROUP} people, or their rates are chance; too small: {shown}. "
        "Add --small-groups ignore to train on them without comparing them, or --small-groups merge to make them one "
        f"group, {OTHER!r}"
    )


def _notes_on_small(small: Mapping[str, int], merged: bool) -> list[str]:
    """Say what became of small groups."""
    if not small:
        return []
    names = ", ".join(f"{name} ({count})" for name, count in sorted(small.items()))
    done = f"are one group, {OTHER!r}" if merged else "are trained on but not compared"
    return [f"Groups of fewer than {LEAST_GROUP} people {done}: {names}."]


def _cross(table: InputTable, columns: Sequence[str], edges: Edges) -> TextColumn:
    """Name the group of every row; it is missing where one of its parts is."""
    parts = []
    for name in columns:
        column = find_column(table, name, "--sensitive")
        if name in edges:
            parts.append(bin_numbers(parse_numbers(column, table.reading.decimal).numbers, edges[name]))
        else:
            parts.append(canonical(column, table.reading.decimal))
    crossed = parts[0]
    for part in parts[1:]:
        known = crossed.known & part.known
        pairs = crossed.codes.astype(np.int64) * len(part.values) + part.codes
        found, places = np.unique(pairs[known], return_inverse=True)
        codes = np.full(len(known), -1, dtype=np.int32)
        codes[known] = places
        first, second = np.divmod(found, max(len(part.values), 1))
        names = [f"{crossed.values[i]} / {part.values[j]}" for i, j in zip(first, second, strict=True)]
        crossed = TextColumn(codes, as_objects(range(len(names)))).recoded(names)
    return crossed
