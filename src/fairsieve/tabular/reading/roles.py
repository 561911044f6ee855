"""The roles of columns: the label, and the sensitive columns with the groups that they make."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pandas as pd

from fairsieve.errors import InvalidInputError, spell
from fairsieve.samples import find_alike
from fairsieve.selection.cells import Floats
from fairsieve.tabular.reading.columns import (
    EXACT,
    ColumnFormat,
    InputTable,
    as_numbers,
    coded,
    exact_value,
    name_rows,
    recode,
    used_texts,
)
from fairsieve.tabular.settings import TableSettings
from fairsieve.validation import closest_hint

MOST_CLASSES = 20
LEAST_OF_A_CLASS = 10
MOST_GROUPS = 20
MOST_NUMBERS = 10  # a column with more different numbers is a quantity
LEAST_GROUP = 30
OTHER = "other"
SUGGESTED = 4  # groups of numbers


@dataclass(frozen=True)
class Labels:
    """What a label column holds.

    Attributes
    ----------
    column : str
    classes : tuple of str
        Its values, sorted.
    positive : str or None
        The value whose rates are reported; None where there are three or more and none was named.
    """

    column: str
    classes: tuple[str, ...]
    positive: str | None

    @property
    def positive_code(self) -> int:
        """The place of the positive label among the classes; −1 where there is none."""
        return -1 if self.positive is None else self.classes.index(self.positive)

    def read(self, table: InputTable, predicted: str | None = None) -> pd.Categorical:
        """Read the labels of a table, coded by their place in ``classes``; refuse values that are none of them.

        ``predicted`` names a column of predicted labels to read instead.
        """
        name, option = (self.column, "the label") if predicted is None else (predicted, "--prediction")
        column = table.texts(name, option)
        new = sorted(set(used_texts(column)) - set(self.classes))
        if new:
            hint = "" if predicted is None else f"; if these are scores, give them as {spell('--score')}"
            raise InvalidInputError(
                f"labels in {name!r} of {table.name} must be among {', '.join(self.classes)}; got also "
                f"{', '.join(map(repr, new[:3]))}{hint}"
            )
        return coded_by(column, self.classes)


def coded_by(column: pd.Series, names: Sequence[str]) -> pd.Categorical:
    """Code a column by the places of its texts in ``names``; others are missing."""
    return column.cat.set_categories(pd.Index(names, dtype=object)).array


def find_labels(table: InputTable, column: str, positive: str | None) -> Labels:
    """Find the classes in a label column, and check them."""
    counted = used_texts(table.texts(column, "--label"))
    classes = tuple(sorted(counted))
    counts = [counted[name] for name in classes]
    if len(classes) < 2:
        having = f"only the value {classes[0]!r}" if classes else "no value at all"
        raise InvalidInputError(
            f"{spell('--label')} must be a column with two or more values to tell apart; {column!r} of {table.name} "
            f"has {having}: name another column"
        )
    if len(classes) > MOST_CLASSES:
        raise InvalidInputError(
            f"{spell('--label')} must be a column with at most {MOST_CLASSES} values; {column!r} of {table.name} has "
            f"{len(classes):,}, such as {classes[0]!r}. For a quantity, add a column that says in which class each row "
            "is (for example above and below a limit)"
        )
    rare = int(np.argmin(counts))
    if counts[rare] < LEAST_OF_A_CLASS:
        alike = [name for same in find_alike(classes) if classes[rare] in same for name in same]
        others = [repr(name) for name in alike if name != classes[rare]]
        reads = f", and reads like {' and '.join(others)}: write them in one way" if others else ""
        raise InvalidInputError(
            f"every value of the label must be in at least {LEAST_OF_A_CLASS} rows; {classes[rare]!r} of {column!r} is "
            f"in {counts[rare]}{reads or ': correct it if it is misspelt'}, else take those rows out or merge it with "
            "another value"
        )
    if positive is None:
        return Labels(column, classes, classes[-1] if len(classes) == 2 else None)
    positive = positive.strip()
    named = next((name for name in (positive, exact_value(positive)) if name in classes), None)
    if named is None:
        raise InvalidInputError(
            f"{spell('--positive')} must be a value of {column!r}; got "
            f"{positive!r}{closest_hint(positive, classes) or '.'} Its values are {', '.join(classes)}"
        )
    return Labels(column, classes, named)


class Bins(NamedTuple):
    """How a column of quantities makes groups: the edges between them, and how its numbers are written."""

    edges: tuple[float, ...]
    format: ColumnFormat


@dataclass(frozen=True)
class Groups:
    """Which groups are compared, and how a row's group is found.

    Attributes
    ----------
    columns : tuple of str
        The sensitive columns; several are crossed.
    bins : dict of Bins
        Those of them that are quantities.
    names : tuple of str
        The groups, sorted.
    merged : str or None
        The name of the group that those in none of the others make; where it is None, they are not compared.
    """

    columns: tuple[str, ...]
    bins: Mapping[str, Bins]
    names: tuple[str, ...] = ()
    merged: str | None = None

    def read(self, table: InputTable) -> pd.Categorical:
        """Read the group of every row, coded by its place in ``names``; missing where it is not compared."""
        crossed = self.categories(table, self.columns)
        if self.merged:
            names = [name if name in self.names else self.merged for name in crossed.array.categories]
            crossed = recode(crossed, names)
        return coded_by(crossed, self.names)

    def categories(self, table: InputTable, columns: Sequence[str]) -> pd.Series:
        """Name the category of every row by some of the columns, however few people it has; missing where one is."""
        parts = {}
        for name in columns:
            parts[name] = table.texts(name, "--sensitive").array
            if name in self.bins:
                edges, learnt = self.bins[name]
                parts[name] = _bin_numbers(as_numbers(table, name, learnt), edges)
        crossed = pd.DataFrame(parts).groupby(list(columns), observed=True, sort=False)
        names = [
            one if isinstance(one, str) else " / ".join(map(_as_part, one)) for one in crossed.size().index
        ]
        codes = crossed.ngroup().fillna(-1).to_numpy(dtype=np.int64)
        return pd.Series(coded(codes, names), index=table.frame.index)

    @property
    def title(self) -> str:
        """What the groups are of, for heads of tables."""
        return " and ".join(self.columns)


def find_groups(table: InputTable, asked: TableSettings) -> tuple[Groups, list[str]]:
    """Find the groups that sensitive columns make, check them, and say in words what was done to them."""
    columns, rules = tuple(asked.sensitive), parse_bins(asked.bins)
    if not columns:
        raise InvalidInputError(f"{spell('--sensitive')} must name one column or more: the groups to compare")
    for column in rules:
        if column not in columns:
            raise InvalidInputError(
                f"{spell('--bins')} must be of a sensitive column, {', '.join(columns)}; got {column!r}"
                f"{closest_hint(column, columns)}"
            )
    edges = {column: its for column in columns if (its := _check_column(table, column, rules.get(column)))}
    written = {column: table.format(column) for column in edges}
    groups = Groups(columns, {column: Bins(edges[column], written[column]) for column in edges})
    counts = dict(sorted(used_texts(groups.categories(table, columns)).items()))
    title = f"{' and '.join(map(repr, columns))} of {table.name}"
    if len(counts) < 2:
        only = f"only {next(iter(counts))!r}" if counts else "no value at all"
        raise InvalidInputError(
            f"{spell('--sensitive')} must make two or more groups to compare; {title} has {only}: name another column"
        )
    if len(columns) > 1:
        _refuse_many(title, len(counts), "name fewer columns")
    small = {name: count for name, count in counts.items() if count < LEAST_GROUP}
    other = OTHER
    while other in counts:  # a group may be called so
        other = f"({other})"
    if small and asked.small_groups == "stop":
        fewest = sorted(small, key=lambda name: small[name])[:5]
        listed = (f"{name!r} ({small[name]} {'person' if small[name] == 1 else 'people'})" for name in fewest)
        raise InvalidInputError(
            f"groups of {title} must have at least {LEAST_GROUP} people, or their rates are chance; too small: "
            f"{', '.join(listed)}. Add {spell('--small-groups', 'ignore')} to train on them without comparing them, "
            f"or {spell('--small-groups', 'merge')} to make them one group, {other!r}"
        )
    merged = other if asked.small_groups == "merge" and sum(small.values()) >= LEAST_GROUP else None
    names = sorted({*counts} - {*small} | ({merged} if merged else set()))
    if len(names) < 2:
        raise InvalidInputError(
            f"{spell('--sensitive')} must make two or more groups of at least {LEAST_GROUP} people; {title} makes "
            f"{', '.join(f'{name} ({count})' for name, count in counts.items())}"
        )
    done = f"are one group, {merged!r}" if merged else "are trained on but not compared"
    told = ", ".join(f"{name} ({count})" for name, count in small.items())
    notes = [f"Groups of fewer than {LEAST_GROUP} people {done}: {told}."] if small else []
    return replace(groups, names=tuple(names), merged=merged), notes


def _check_column(table: InputTable, column: str, rule: str | None) -> tuple[float, ...] | None:
    """Return the edges of a sensitive column that is a quantity; None for one of categories."""
    values, parsed = table.column(column, "--sensitive"), table.numbers(column)
    distinct, title = int(values.nunique()), f"{column!r} of {table.name}"
    numeric = bool(values.notna().any()) and not parsed.odd.any()
    if rule is not None:
        if not numeric:
            odd = values[parsed.odd].head(1).items()
            example = "".join(f", such as {cell!r} in {name_rows(table.name, [row])}" for row, cell in odd)
            raise InvalidInputError(
                f"{spell('--bins')} must be of a column of numbers; {title} has texts{example}"
            )
        return find_edges(rule, parsed.numbers, column)
    if numeric and distinct > MOST_NUMBERS:
        example = ",".join(map(_write_edge, suggested_edges(parsed.numbers)))
        raise InvalidInputError(
            f"{spell('--sensitive')} must be a column of groups; {title} has numbers, {distinct:,} different ones: add "
            f"{spell('--bins', f'{column}={example}')} to make groups between these edges, or "
            f"{spell('--bins', f'{column}=4')} for four of equal size"
        )
    _refuse_many(title, distinct, "choose a column of groups, or add one that puts these values together")
    return None


def _refuse_many(title: str, count: int, advice: str) -> None:
    """Refuse so many groups that nothing can be said of any."""
    if count > MOST_GROUPS:
        raise InvalidInputError(
            f"{spell('--sensitive')} must make at most {MOST_GROUPS} groups; {title} makes {count:,}: {advice}"
        )


def _as_part(name: str) -> str:
    """Quote a name that would run into its neighbours in the name of a crossed group.

    >>> " / ".join(map(_as_part, ["a / b", "c"])), " / ".join(map(_as_part, ["a", "b / c"]))
    ("'a / b' / c", "a / 'b / c'")
    """
    return repr(name) if " / " in f" {name} " or name[0] in "'\"" else name


def parse_bins(options: Sequence[str]) -> dict[str, str]:
    """Split ``--bins age=25,45`` and ``--bins age=4`` by column.

    >>> parse_bins(["age=25,45"])
    {'age': '25,45'}
    """
    found = {}
    for option in options:
        column, sign, rule = option.rpartition("=")
        if not (sign and column and rule) or column.strip() in found:
            raise InvalidInputError(
                f"{spell('--bins')} must be COLUMN=EDGES or COLUMN=HOW MANY, such as age=25,45,65 or age=4, once for "
                f"each column; got {option!r}{' too' if sign else ''}"
            )
        found[column.strip()] = rule
    return found


def write_bins(column: str, edges: Sequence[float]) -> str:
    """Write edges as ``--bins`` takes them.

    >>> write_bins("age", (25.0, 45.5)), write_bins("size", (5.0,))  # 5 alone would be a number of groups
    ('age=25,45.5', 'size=5.0')
    """
    count = len(edges) == 1 and 2 <= edges[0] <= 10
    return f"{column}={','.join(map(repr if count else _write_edge, edges))}"


def _write_edge(edge: float) -> str:
    """Write an edge so that it is read as the same number.

    >>> _write_edge(25.0), _write_edge(45.5), _write_edge(1000001.0), _write_edge(1e300)
    ('25', '45.5', '1000001', '1e+300')
    """
    return str(int(edge)) if edge.is_integer() and abs(edge) < EXACT else repr(float(edge))


def find_edges(rule: str, numbers: Floats, column: str) -> tuple[float, ...]:
    """Find the edges that a rule stands for: those given, or those of equally large groups.

    >>> find_edges("2", np.array([1.0, 2.0, 3.0, 4.0]), "age")
    (3.0,)
    """
    try:
        values = [float(part) for part in rule.split(",")]
    except ValueError:
        values = []
    if len(values) == 1 and values[0].is_integer() and 2 <= values[0] <= 10 and "." not in rule:
        edges = suggested_edges(numbers, int(values[0]))
        if edges:
            return edges
    elif values and np.isfinite(values).all() and (np.diff(values) > 0).all():
        return tuple(values)
    raise InvalidInputError(
        f"{spell('--bins')} of {column!r} must be edges in ascending order, such as 25,45,65, or a number of equally "
        f"large groups from 2 to 10; got {rule!r}"
    )


def suggested_edges(numbers: Floats, count: int = SUGGESTED) -> tuple[float, ...]:
    """Suggest edges between ``count`` groups of about equal size, at values that occur."""
    known = np.sort(numbers[~np.isnan(numbers)])
    if not len(known):
        return ()
    places = np.ceil(np.arange(1, count) / count * len(known)).astype(int)
    edges = np.unique(known[np.minimum(places, len(known) - 1)])
    return tuple(float(edge) for edge in edges if edge > known[0])


def _bin_numbers(numbers: Floats, edges: Sequence[float]) -> pd.Categorical:
    """Name the group of each number; it is missing where the number is.

    >>> _bin_numbers(np.array([30.0, 20.0, 50.0]), (25, 45)).tolist()
    ['25 to under 45', 'under 25', '45 and over']
    """
    edges = [*map(float, edges)]
    for digits in (6, 17):  # as few as tell the edges apart
        written = [_write_edge(edge) if edge.is_integer() else f"{edge:.{digits}g}" for edge in edges]
        if len({*written}) == len(written):
            break
    between = [f"{low} to under {high}" for low, high in pairwise(written)]
    names = [f"under {written[0]}", *between, f"{written[-1]} and over"]
    return pd.cut(numbers, [-np.inf, *edges, np.inf], right=False, labels=names, ordered=False)
