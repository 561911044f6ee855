"""The sensitive columns: which groups are compared."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from fairsieve.errors import InvalidInputError
from fairsieve.tabular.reading.bins import binned, edges_of, suggested_edges
from fairsieve.tabular.reading.columns import Parsed, canonical, known_in, parse_numbers
from fairsieve.tabular.reading.read import Table, find_column
from fairsieve.validation import check_choice

__all__ = ["LEAST_GROUP", "Groups", "SmallGroups", "groups_of"]

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

    def read(self, table: Table) -> NDArray[Any]:
        """The group of every row; None where it is missing or not compared."""
        found = _crossed(table, self.columns, self.edges)
        rest = OTHER if self.merged else None
        named = [name if name is None or name in self.names else rest for name in found]
        groups = np.empty(len(named), dtype=object)
        groups[:] = named
        return groups

    @property
    def title(self) -> str:
        """What the groups are of, for heads of tables."""
        return " and ".join(self.columns)


def groups_of(
    table: Table,
    columns: Sequence[str],
    *,
    bins: Mapping[str, str] | None = None,
    small_groups: SmallGroups = "stop",
) -> tuple[Groups, list[str]]:
    """The groups that sensitive columns make, checked; and what was done to them, in words."""
    check_choice("--small-groups", small_groups, ("stop", "merge", "ignore"))
    rules = dict(bins or {})
    if not columns:
        raise InvalidInputError("--sensitive must name one column or more: the groups to compare")
    for column in rules:
        if column not in columns:
            raise InvalidInputError(
                f"--bins must be of a sensitive column, {', '.join(columns)}; got {column!r}"
            )
    edges = {column: its for column in columns if (its := _check_column(table, column, rules.get(column)))}
    counts = Counter(name for name in _crossed(table, columns, edges) if name is not None)
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


def _check_column(table: Table, column: str, rule: str | None) -> tuple[float, ...] | None:
    """The edges of a sensitive column that is a quantity; None for one of categories."""
    values = find_column(table, column, "--sensitive")
    parsed = parse_numbers(values, table.reading.decimal)
    distinct = len(np.unique(values[known_in(values)].astype(str)))
    numeric = bool(known_in(values).any()) and not parsed.odd.any()
    if rule is not None:
        if not numeric:
            _refuse_texts(table, column, parsed)
        return edges_of(rule, parsed.numbers, column)
    if numeric and distinct > MOST_NUMBERS:
        example = ",".join(f"{edge:g}" for edge in suggested_edges(parsed.numbers))
        raise InvalidInputError(
            f"--sensitive must be a column of groups; {column!r} of {table.name} has numbers, {distinct:,} different "
            f"ones: add --bins {column}={example} to make groups between these edges, or --bins {column}=4 for four of "
            "equal size"
        )
    _refuse_many(repr(column), distinct, table)
    return None


def _refuse_texts(table: Table, column: str, parsed: Parsed) -> None:
    """Bins are for numbers."""
    first = np.flatnonzero(parsed.odd)[:1]
    example = (
        f", such as {table.columns[column][first[0]]!r} in row {table.rows[first[0]]}" if len(first) else ""
    )
    raise InvalidInputError(
        f"--bins must be of a column of numbers; {column!r} of {table.name} has texts{example}"
    )


def _refuse_many(title: str, count: int, table: Table, *, crossed_columns: bool = False) -> None:
    """With hundreds of groups nothing can be said of any."""
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
    """Of a handful of people no rate can be told."""
    shown = ", ".join(
        f"{name!r} ({count} people)" for name, count in sorted(small.items(), key=lambda one: one[1])[:5]
    )
    raise InvalidInputError(
        f"groups of {title} must have at least {LEAST_GROUP} people, or their rates are chance; too small: {shown}. "
        "Add --small-groups ignore to train on them without comparing them, or --small-groups merge to make them one "
        f"group, {OTHER!r}"
    )


def _notes_on_small(small: Mapping[str, int], merged: bool) -> list[str]:
    """What became of small groups."""
    if not small:
        return []
    names = ", ".join(f"{name} ({count})" for name, count in sorted(small.items()))
    done = f"are one group, {OTHER!r}" if merged else "are trained on but not compared"
    return [f"Groups of fewer than {LEAST_GROUP} people {done}: {names}."]


def _crossed(table: Table, columns: Sequence[str], edges: Edges) -> list[str | None]:
    """The group of every row by its name; None where a part is missing."""
    parts: list[Sequence[str | None]] = []
    for column in columns:
        values = find_column(table, column, "--sensitive")
        if column in edges:
            parts.append(binned(parse_numbers(values, table.reading.decimal).numbers, edges[column]))
        else:
            parts.append(list(canonical(values, table.reading.decimal)))
    return [None if None in row else " / ".join(map(str, row)) for row in zip(*parts, strict=True)]
