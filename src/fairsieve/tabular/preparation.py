"""A table as something to train on and something to measure on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairsieve.data.splits import split_indices
from fairsieve.errors import InvalidInputError
from fairsieve.selection.cells import Cells
from fairsieve.tabular.evaluation import FEW
from fairsieve.tabular.leaks import leak_notes
from fairsieve.tabular.reading.bins import parse_bins
from fairsieve.tabular.reading.columns import known_in
from fairsieve.tabular.reading.features import Feature, features_of, frame_of, used
from fairsieve.tabular.reading.groups import Groups, groups_of
from fairsieve.tabular.reading.labels import Labels, labels_of
from fairsieve.tabular.reading.read import Table, read_table
from fairsieve.tabular.request import Asked

__all__ = ["Problem", "read_problem", "whole_problem"]


LEAST_ROWS = 30  # to learn from


@dataclass(frozen=True, eq=False)
class _Part:
    """Some rows: what a model sees of them, their labels and groups, and where they stand in the file."""

    frame: Any
    labels: NDArray[Any]
    groups: NDArray[Any]
    rows: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.rows)


@dataclass(frozen=True, eq=False)
class Problem:
    """What a table is for.

    Attributes
    ----------
    asked : Asked
    labels, groups : Labels, Groups
    features : list of Feature
    train, test : Part
    notes : list of str
        What was done to the table, in plain words.
    """

    asked: Asked
    labels: Labels
    groups: Groups
    features: list[Feature]
    train: _Part
    test: _Part
    notes: list[str]


def whole_problem(asked: Asked) -> tuple[_Part, Labels, Groups, list[Feature], list[str]]:
    """The whole table in its roles, less the rows without a label."""
    table = read_table(asked.data, asked.reading)
    labels = labels_of(table, asked.label, asked.positive)
    groups, notes = groups_of(
        table, asked.sensitive, bins=parse_bins(asked.bins), small_groups=asked.small_groups
    )
    apart = [asked.label] if asked.keep_sensitive else [asked.label, *asked.sensitive]
    features = features_of(table, apart=apart, drop=asked.drop, categories=asked.categories)
    part, more = _part_of(table, labels, groups, features)
    leaks = leak_notes(part.frame, part.labels, part.groups, labels.column, groups.columns)
    return part, labels, groups, features, [*leaks, *table.notes, *notes, *more]


def _part_of(
    table: Table, labels: Labels, groups: Groups, features: list[Feature]
) -> tuple[_Part, list[str]]:
    """The rows of a table that have a label, and what to say of the others."""
    known = known_in(labels.read(table))
    if not known.any():
        raise InvalidInputError(
            f"{table.name} must have labels in {labels.column!r}; none of its rows has one"
        )
    notes = []
    if not known.all():
        notes.append(f"Rows of {table.name} without a label, left out: {(~known).sum():,}.")
        table = table.take(known)
    kinds = {feature.column: feature.kind for feature in used(features)}
    part = _Part(frame_of(table, kinds), labels.read(table).astype(str), groups.read(table), table.rows)
    ungrouped = sum(group is None for group in part.groups)
    if ungrouped:
        notes.append(
            f"Rows of {table.name} without a value in {groups.title}, or of a group that is not compared, which count "
            f"for accuracy only: {ungrouped:,}."
        )
    return part, notes


def read_problem(asked: Asked) -> Problem:
    """Read a table, find out what its columns are, and set rows aside to measure on."""
    whole, labels, groups, features, notes = whole_problem(asked)
    if asked.test_file is None:
        cells = Cells.of(whole.labels, whole.groups, missing="own")
        train_rows, test_rows, _ = split_indices(cells, test=asked.test, validation=0.0, seed=asked.seed)
        train, test = _taken(whole, train_rows), _taken(whole, test_rows)
    else:
        table = read_table(asked.test_file, asked.reading)
        train, (test, more) = whole, _part_of(table, labels, groups, features)
        notes = [*notes, *table.notes, *more]
        if asked.test_file.samefile(asked.data):
            notes = [
                f"Careful: measured on the rows that were learnt from, since --test-file is {asked.data.name} itself; "
                "leave it out to have rows set aside.",
                *notes,
            ]
    if not len(test):
        raise InvalidInputError(
            f"--test must leave rows to measure on; {asked.test} of {len(whole)} rows leaves none: raise it, or give "
            "--test-file"
        )
    if len(train) < LEAST_ROWS:
        raise InvalidInputError(
            f"--test must leave at least {LEAST_ROWS} rows to learn from; {asked.test} of {len(whole)} rows leaves "
            f"{len(train)}: lower it, or give a larger table"
        )
    return Problem(asked, labels, groups, features, train, test, [*notes, *_few_notes(test, labels, groups)])


def _taken(part: _Part, rows: NDArray[np.intp]) -> _Part:
    """Some rows of a part."""
    frame = part.frame.iloc[rows].reset_index(drop=True)
    return _Part(frame, part.labels[rows], part.groups[rows], part.rows[rows])


def _few_notes(test: _Part, labels: Labels, groups: Groups) -> list[str]:
    """Cells of the test part that say little."""
    few = [
        f"{group} with {label} ({count})"
        for group in groups.names
        for label in labels.classes
        if (count := int(((test.groups == group) & (test.labels == label)).sum())) < FEW
    ]
    if not few:
        return []
    shown = ", ".join(few[:5]) + (f" and {len(few) - 5} more" if len(few) > 5 else "")
    return [
        f"Fewer than {FEW} people to measure on, so that their rates are rough and left out of the disparity: {shown}."
    ]
