"""Turn a table into something to train on and something to measure on; warn of columns that tell too much."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from fairsieve.errors import InvalidInputError, spell
from fairsieve.label_noise.estimate import CleanRatioEstimate
from fairsieve.notions import find_notion
from fairsieve.samples import find_copies, shuffled_places
from fairsieve.selection.cells import Cells, Flags, Floats, Integers, Values
from fairsieve.tabular.answers import Answers, read_answers
from fairsieve.tabular.model_files import reasons_to_read
from fairsieve.tabular.partitions.partitions import Partitions, refuse_in_parts
from fairsieve.tabular.partitions.source import find_source, join_tables, parse_memory
from fairsieve.tabular.reading.columns import (
    ColumnFormat,
    InputTable,
    Note,
    Problems,
    as_objects,
    count_rows,
    is_text,
    learnt_reading,
)
from fairsieve.tabular.reading.encoding import (
    Feature,
    describe_features,
    feature_values,
    find_formats,
    hash_rows,
)
from fairsieve.tabular.reading.read import is_frame, read_data
from fairsieve.tabular.reading.roles import Groups, Labels, find_groups, find_labels, write_bins
from fairsieve.tabular.settings import TableSettings
from fairsieve.tabular.table_notes import alike_notes, copy_notes, leak_notes

LEAST_ROWS = 30  # to learn from


@dataclass(frozen=True, eq=False)
class TablePart:
    """Some rows of a table, in their roles.

    Attributes
    ----------
    values : DataFrame
        The columns that a model sees: doubles, and texts of pandas' type "category".
    labels : Categorical
        Coded by the place of each label in ``Labels.classes``; none is missing.
    groups : Categorical
        Coded by the place of each group in ``Groups.names``; missing where it is not compared.
    verified : integer array
        The places of verified labels in ``Labels.classes``; −1 where nobody checked.
    verified_weight : array
        The inverse of each checked row's chance to be chosen, up to a factor.
    """

    values: pd.DataFrame
    labels: pd.Categorical
    groups: pd.Categorical
    verified: Integers
    verified_weight: Floats

    def __len__(self) -> int:
        return len(self.values)

    @property
    def rows(self) -> Integers:
        """Where the rows stand in the file."""
        return np.asarray(self.values.index, dtype=np.int64)

    @property
    def grouped(self) -> Flags:
        """Which rows have a group that is compared."""
        return np.asarray(self.groups.codes >= 0)

    @cached_property
    def cells(self) -> Cells:
        """The cell of every row; a last group None is that of the rows without one."""
        names = self.groups.categories.tolist()
        groups = names if self.grouped.all() else [*names, None]
        places = np.where(self.grouped, self.groups.codes, len(names))
        return Cells(self.label_codes * len(groups) + places, self.labels.categories.tolist(), groups)

    @property
    def label_codes(self) -> Integers:
        """The labels as numbers: texts of a million rows take long to compare."""
        return np.asarray(self.labels.codes, dtype=np.int64)

    @property
    def group_codes(self) -> Values:
        """The groups as numbers, NaN where there is none."""
        codes = np.asarray(self.groups.codes, dtype=np.int64)
        return codes if self.grouped.all() else np.where(self.grouped, codes, np.nan)

    def find_copies(self) -> Integers | None:
        """Tell different rows apart, as numbers; return None if none is a copy of another."""
        return find_copies(self.values, self.groups.codes)

    def class_names(self, codes: Iterable[Any]) -> list[str]:
        """Return the labels that codes stand for."""
        return [str(self.labels.categories[int(code)]) for code in codes]

    def group_names(self, codes: Iterable[Any]) -> list[str | None]:
        """Return the groups that codes stand for; None stays None, and −1 is None."""
        names = [*map(str, self.groups.categories), None]
        return [names[-1 if code is None else int(code)] for code in codes]

    def take(self, rows: Values) -> TablePart:
        """Select some of the rows."""
        checked = self.verified[rows], self.verified_weight[rows]
        return TablePart(self.values.iloc[rows], self.labels[rows], self.groups[rows], *checked)

    @property
    def facts(self) -> dict[str, Any]:
        """What an estimator's ``fit`` takes beside columns and labels: groups, and what somebody checked."""
        facts: dict[str, Any] = {"sensitive_features": self.group_codes}
        if (self.verified >= 0).any():
            checked = as_objects(None if code < 0 else int(code) for code in self.verified)
            facts |= {"verified_labels": checked, "verified_weight": self.verified_weight}
        return facts

    def named_suspects(self, suspects: pd.DataFrame) -> pd.DataFrame:
        """Select the rows that are suggested another label, and name rows, labels and groups by what they are."""
        suspects = suspects[suspects["label"] != suspects["suggested"]].reset_index(drop=True)
        groups = self.group_names(self.groups.codes[suspects["row"]])
        return suspects.rename(columns={"suggested": "suggested_label"}).assign(
            row=self.rows[suspects["row"]],
            label=as_objects(self.class_names(suspects["label"])),
            suggested_label=as_objects(self.class_names(suspects["suggested"])),
            group=as_objects(groups),
        )


def named_estimate(estimate: CleanRatioEstimate, part: TablePart) -> CleanRatioEstimate:
    """Name classes and groups in an estimate that was made from their codes."""
    cells = estimate.cells
    named = Cells(cells.codes, part.class_names(cells.classes), part.group_names(cells.groups))
    return replace(estimate, cells=named)


@dataclass(frozen=True, eq=False, kw_only=True)
class TableProblem:
    """What a table is for.

    Attributes
    ----------
    asked : TableSettings
    labels, groups : Labels, Groups
    features : list of Feature
    whole : TablePart
        All rows with a label, as it is given.
    train, test : TablePart
        Nothing is set aside to measure on until :func:`read_problem` does.
    notes : list of str
        What was done to the table, in plain words.
    table : InputTable
        The table as it was read, with the rows and columns that nobody learns from.
    answers : Answers, optional
        Labels that somebody checked.
    seen : int
        How many rows of a test file equal one that is learnt from.
    parts : Partitions, optional
        All rows of a table in parts, of which ``whole``, ``train`` and ``table`` are a sample.
    """

    asked: TableSettings
    labels: Labels
    groups: Groups
    features: list[Feature]
    whole: TablePart
    train: TablePart
    test: TablePart
    notes: list[str]
    table: InputTable
    answers: Answers | None = None
    seen: int = 0
    parts: Partitions | None = None

    @property
    def formats(self) -> dict[str, ColumnFormat]:
        """How the columns that are learnt from are written."""
        return find_formats(self.features)

    @property
    def learnt(self) -> int:
        """How many rows are learnt from: in parts, more than those of ``train``."""
        return len(self.train) if self.parts is None else self.parts.learnt

    @property
    def pos_label(self) -> int | None:
        """The code of the positive label, as estimators take it; None where there is none."""
        return None if self.labels.positive is None else self.labels.positive_code

    @property
    def without_leaks(self) -> TablePart:
        """The rows to learn from, without columns that may say the label in other words: they would confirm any."""
        leaks = {getattr(note, "column", "") for note in self.notes}
        values = self.train.values
        return replace(self.train, values=values[[name for name in values if name not in leaks]])

    @property
    def read(self) -> dict[str, Any]:
        """How the columns that are learnt from were read, as plain values, for a model to keep."""
        numbers = [name for name, one in self.formats.items() if one.kind == "numbers"]
        # Those of a data frame have no mark.
        in_text = any(is_text(self.table.frame[name]) for name in numbers)
        return {
            "decimal": self.table.reading.decimal if in_text else "auto",
            "missing": list(self.asked.reading.missing),
            "columns": {name: vars(one) for name, one in self.formats.items()},
            "needs": reasons_to_read(self.table, self.formats),
        }


def open_table(asked: TableSettings) -> tuple[InputTable, Partitions | None]:
    """Read a table; where it is in parts that do not fit into memory together, rows that stand for all of them."""
    source = find_source(asked.data, parse_memory(asked.memory))
    if source is None:
        return read_data(asked.data, asked.reading), None
    if not source.fits or asked.backend != "local":
        parts = Partitions(source, asked)
        return parts.sample.table, parts
    tables = [table for piece in source.pieces if (table := piece.read(asked.reading)) is not None]
    if not tables:
        raise InvalidInputError(
            f"{source.name} must have rows; none of its {len(source.pieces)} parts has one: name another place"
        )
    return join_tables(source.name, tables, np.arange(sum(map(len, tables)))), None


def read_whole(asked: TableSettings) -> TableProblem:
    """Read the whole table in its roles, less the rows without a label."""
    table, parts = open_table(asked)
    problems = Problems()
    with problems.collected():
        labels = find_labels(table, asked.label, asked.positive)
        _check_labels(labels, asked)
    with problems.collected():
        groups, notes = find_groups(table, asked)
    with problems.collected():
        features = describe_features(table, asked, problems)
    problems.check()
    part, more = _read_part(table, labels, groups, find_formats(features))
    answers = read_answers(asked.verified, table, labels) if asked.verified else None
    if answers is not None:
        codes, weights = answers.over(part.rows)
        part = replace(part, verified=codes, verified_weight=weights)
    leaks = leak_notes(part.values, part.labels, part.groups, labels.column, groups.columns)
    alike = [*alike_notes(labels.column, part.labels), *alike_notes(groups.title, part.groups)]
    codes = np.full(len(table), -1)
    codes[np.searchsorted(table.rows, part.rows)] = part.label_codes
    copies = copy_notes(table, labels.column, codes)
    hints = [feature.hint for feature in features if feature.hint]
    problem = TableProblem(
        asked=asked,
        labels=labels,
        groups=groups,
        features=features,
        whole=part,
        train=part,
        test=part.take(np.zeros(0, np.int64)),
        notes=[*copies, *alike, *leaks, *table.notes, *notes, *hints, *more],
        table=table,
        answers=answers,
    )
    return problem if parts is None else parts.narrow(problem)


def _check_labels(labels: Labels, asked: TableSettings) -> None:
    """Refuse settings that the number of labels forbids."""
    count = len(labels.classes)
    if count > 2 and not asked.threshold.is_default:
        raise InvalidInputError(
            f"{spell('--threshold')} must be 0.5 for more than two labels, of which the likeliest is predicted; got "
            f"{asked.threshold} with {count} labels: leave it out, or make two labels of them"
        )
    notion = find_notion(asked.fairness)
    if notion.needs_positive and labels.positive is None:
        raise InvalidInputError(
            f"{spell('--positive')} must be given for {notion.title} with {count} labels; they are "
            f"{', '.join(labels.classes)}"
        )


def _read_part(
    table: InputTable, labels: Labels, groups: Groups, formats: Mapping[str, ColumnFormat]
) -> tuple[TablePart, list[str]]:
    """Read the rows of a table that have a label, and say what became of the others."""
    column = labels.read(table)
    known = np.asarray(column.codes >= 0)
    if not known.any():
        raise InvalidInputError(
            f"{table.name} must have labels in {labels.column!r}; none of its rows has one"
        )
    nobody = np.full(len(table), -1), np.ones(len(table))
    part = TablePart(feature_values(table, formats), column, groups.read(table), *nobody).take(known)
    others = f"a value in {groups.title}, or of a group that is not compared, which count for accuracy only"
    which = {"a label, left out": table.rows[~known], others: part.rows[~part.grouped]}
    return part, [
        f"Rows of {table.name} without {what}: {count_rows(table.name, rows)}."
        for what, rows in which.items()
        if len(rows)
    ]


def read_problem(asked: TableSettings) -> TableProblem:
    """Read a table, find out what its columns are, and set rows aside to measure on, where that is asked for."""
    whole = read_whole(asked)
    if whole.parts is not None:
        refuse_in_parts(asked)
        whole.parts.encode(whole.train.values, asked.reading.missing, asked.dates)
    part, notes, seen = whole.train, whole.notes, 0
    train, test = part, whole.test
    if asked.test is not None:
        aside = set_aside(part.cells, asked.test, part.find_copies(), asked.seed)
        train, test = part.take(np.flatnonzero(~aside)), part.take(np.flatnonzero(aside))
    elif asked.test_file is not None:
        reading = learnt_reading(asked.reading, whole.read["decimal"])
        table = read_data(asked.test_file, reading, "--test-file")
        test, more = _read_part(table, whole.labels, whole.groups, whole.formats)
        seen = _count_seen(whole, table, test)
        if seen:
            text = (
                f"{seen:,} of the {len(test):,} rows measured on {'equals' if seen == 1 else 'equal'} a row that was "
                f"learnt from, so the numbers may be too good; without {spell('--test-file')}, rows are measured on by "
                "models that did not see them."
            )
            notes = [Note(text, "warning"), *notes]
        notes = [*notes, *table.notes, *more]
    if len(train) < LEAST_ROWS or (train is not part and not len(test)):
        raise InvalidInputError(
            f"{spell('--test')} must leave rows to measure on, and at least {LEAST_ROWS} to learn from; {asked.test} "
            f"of {len(part)} rows leaves {len(test)} and {len(train)}: change it, or give {spell('--test-file')} or a "
            "larger table"
        )
    # What was found is recorded, so that another command finds the same.
    asked = replace(asked, bins=[write_bins(column, its.edges) for column, its in whole.groups.bins.items()])
    if not is_frame(asked.data):
        reading = whole.table.reading
        asked = replace(asked, separator=reading.separator, decimal=reading.decimal)
    return replace(whole, asked=asked, train=train, test=test, seen=seen, notes=notes)


def _count_seen(whole: TableProblem, table: InputTable, test: TablePart) -> int:
    """Count the rows of a test file that equal a row that is learnt from, in all columns that both tables have."""
    rest = sorted(set(whole.table.columns) & set(table.columns) - set(whole.formats))
    hashes = hash_rows(table, test.values, rest)
    if whole.parts is not None:
        known = whole.parts.find_seen(hashes, rest)
    else:
        known = hash_rows(whole.table, whole.train.values, rest)
    return int(np.isin(hashes, known).sum())


# ---- Parts that are alike, copies together: a copy of a row says nothing of new people


def deal_folds(cells: Cells, folds: int, copies: Integers | None, seed: int) -> Integers:
    """Give every row a fold, 0 … folds − 1, so that each cell is spread evenly, and copies share one.

    A class whose rows are all copies of one is in no fold (−1): it is learnt from only.

    >>> cells = Cells.of([0, 0, 0, 0, 1, 1, 1, 1], ["a"] * 8)
    >>> fold = deal_folds(cells, 2, np.array([0, 0, 1, 2, 3, 4, 5, 5]), seed=0)
    >>> int(fold[0] == fold[1]), int(fold[6] == fold[7])
    (1, 1)
    """
    fold = shuffled_places(cells, seed, copies) % folds
    for code in range(cells.shape[0]):
        of_class = cells.label_codes == code
        if len(np.unique(fold[of_class])) == 1:
            fold[of_class] = -1
    return fold


def set_aside(cells: Cells, share: float, copies: Integers | None, seed: int) -> Flags:
    """Choose rows to set aside, the same share of each cell; copies go to one side, and every class is learnt from.

    >>> aside = set_aside(Cells.of(["no"] * 50 + ["yes"] * 50, ["a"] * 100), 0.999, None, seed=0)
    >>> aside[:50].sum(), aside[50:].sum()  # neither label is left out of what is measured on
    (np.int64(49), np.int64(49))

    >>> set_aside(Cells.of([0] * 10, ["a"] * 10), 0.2, None, seed=0).sum()
    np.int64(2)
    """
    places = shuffled_places(cells, seed, copies)
    aside = np.floor((places + 1) * share + 0.5) > np.floor(places * share + 0.5)
    for code in range(cells.shape[0]):
        mine = np.flatnonzero(cells.label_codes == code)
        if len(mine) and aside[mine].all():  # one row is enough: the others are needed to measure on
            aside[mine[:1] if copies is None else copies == copies[mine[0]]] = False
    return np.asarray(aside)
