"""Turn a table into something to train on and something to measure on; warn of columns that tell too much."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import rankdata

from fairsieve.data.splits import find_copies
from fairsieve.errors import InvalidInputError, spell
from fairsieve.inputs import find_alike
from fairsieve.label_noise.estimate import CleanRatioEstimate
from fairsieve.notions import find_notion
from fairsieve.selection.cells import Cells
from fairsieve.tabular.answers import Answers, read_answers
from fairsieve.tabular.folds import copy_notes, set_aside
from fairsieve.tabular.partitions.partitions import Partitions, open_table, refuse_in_parts
from fairsieve.tabular.plain_form import reasons_to_read
from fairsieve.tabular.policy import POLICY
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
    verified: NDArray[np.int64]
    verified_weight: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.values)

    @property
    def rows(self) -> NDArray[np.int64]:
        """Where the rows stand in the file."""
        return np.asarray(self.values.index, dtype=np.int64)

    @property
    def grouped(self) -> NDArray[np.bool_]:
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
    def label_codes(self) -> NDArray[np.int64]:
        """The labels as numbers: texts of a million rows take long to compare."""
        return np.asarray(self.labels.codes, dtype=np.int64)

    @property
    def group_codes(self) -> NDArray[Any]:
        """The groups as numbers, NaN where there is none."""
        if self.grouped.all():
            return np.asarray(self.groups.codes, dtype=np.int64)
        return np.where(self.grouped, self.groups.codes, np.nan)

    def find_copies(self) -> NDArray[np.int64] | None:
        """Tell different rows apart, as numbers; return None if none is a copy of another."""
        return find_copies(self.values, self.groups.codes)

    def class_names(self, codes: Iterable[Any]) -> list[str]:
        """Return the labels that codes stand for."""
        return [str(self.labels.categories[int(code)]) for code in codes]

    def group_names(self, codes: Iterable[Any]) -> list[str | None]:
        """Return the groups that codes stand for; None stays None, and −1 is None."""
        return [
            None if code is None or code < 0 else str(self.groups.categories[int(code)]) for code in codes
        ]

    def take(self, rows: NDArray[Any]) -> TablePart:
        """Select some of the rows."""
        checked = self.verified[rows], self.verified_weight[rows]
        return TablePart(self.values.iloc[rows], self.labels[rows], self.groups[rows], *checked)

    @property
    def facts(self) -> dict[str, Any]:
        """What an estimator's ``fit`` takes beside columns and labels: groups, and what somebody checked."""
        found: dict[str, Any] = {"sensitive_features": self.group_codes}
        if (self.verified >= 0).any():
            checked = as_objects(None if code < 0 else int(code) for code in self.verified)
            found |= {"verified_labels": checked, "verified_weight": self.verified_weight}
        return found

    def named_suspects(self, found: pd.DataFrame) -> pd.DataFrame:
        """Select the rows that are suggested another label, and name rows, labels and groups by what they are."""
        found = found[found["label"] != found["suggested"]].reset_index(drop=True)
        groups = self.group_names(self.groups.codes[found["row"]])
        return found.rename(columns={"suggested": "suggested_label"}).assign(
            row=self.rows[found["row"]],
            label=as_objects(self.class_names(found["label"])),
            suggested_label=as_objects(self.class_names(found["suggested"])),
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
    formats : dict of ColumnFormat
        How the columns that are learnt from are written.
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
    formats: dict[str, ColumnFormat]
    whole: TablePart
    train: TablePart
    test: TablePart
    notes: list[str]
    table: InputTable
    answers: Answers | None = None
    seen: int = 0
    parts: Partitions | None = None

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
        texts = (
            is_text(self.table.frame[name]) for name, one in self.formats.items() if one.kind == "numbers"
        )
        return {
            "decimal": self.table.reading.decimal
            if any(texts)
            else "auto",  # numbers of a data frame have none
            "missing": list(self.asked.reading.missing),
            "columns": {name: vars(one) for name, one in self.formats.items()},
            "needs": reasons_to_read(self.table, self.formats),
        }


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
    formats = find_formats(table, features)
    part, more = _read_part(table, labels, groups, formats)
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
        formats=formats,
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
    part = TablePart(feature_values(table, formats), column, groups.read(table), *nobody)
    notes = []
    if not known.all():
        notes.append(
            f"Rows of {table.name} without a label, left out: {count_rows(table.name, table.rows[~known])}."
        )
        part = part.take(known)
    if not part.grouped.all():
        notes.append(
            f"Rows of {table.name} without a value in {groups.title}, or of a group that is not compared, which count "
            f"for accuracy only: {count_rows(table.name, part.rows[~part.grouped])}."
        )
    return part, notes


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
            f"of "
            f"{len(part)} rows leaves {len(test)} and {len(train)}: change it, or give {spell('--test-file')} or a "
            f"larger table"
        )
    # What was found is recorded, so that another command finds the same.
    asked = replace(asked, bins=[write_bins(column, its) for column, its in whole.groups.edges.items()])
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


def few_notes(cells: Cells) -> list[str]:
    """Name the cells that are too small to measure."""
    few = [
        f"{group} with {label} ({cells.counts[row, column]})"
        for column, group in enumerate(cells.groups[: cells.named_groups])
        for row, label in enumerate(cells.classes)
        if cells.counts[row, column] < POLICY.fewest
    ]
    if not few:
        return []
    listed = ", ".join(few[:5]) + (f" and {len(few) - 5} more" if len(few) > 5 else "")
    text = (
        f"Fewer than {POLICY.fewest} people to measure on, so their rates are rough and left out of the disparity: "
        f"{listed}."
    )
    return [Note(text, "few")]


NEARLY_ALL = 0.98  # of the rows in which a copy says the same
NEARLY_PERFECT = 0.98  # area under the ROC curve of one column for the label
STANDS_IN = 0.8  # the same for the group; Adult's relationship reaches .87 for sex, marital-status .76
MOST_NAMED = 3
MOST_ROWS = 20_000  # on which columns are ranked
PARTS = 100  # that numbers are cut into
BLOCK = 64  # columns that are ranked at a time
LEAST = 10  # rows of a class, on either side


def alike_notes(column: str, values: pd.Categorical) -> list[Note]:
    """Warn of labels or groups that read the same: the cheapest errors there are."""
    counts = dict(zip(values.categories, np.bincount(values.codes[values.codes >= 0]).tolist(), strict=False))
    return [
        Note(
            f"{column!r} has values that read the same and are taken for different ones: "
            f"{', '.join(f'{value!a} ({counts.get(value, 0)} rows)' for value in alike)}. Where they mean the same, "
            "write them in one way.",
            "warning",
        )
        for alike in find_alike(list(values.categories))
    ]


def leak_notes(
    values: pd.DataFrame, labels: pd.Categorical, groups: pd.Categorical, label: str, sensitive: Sequence[str]
) -> list[str]:
    """Warn of columns that are learnt from and duplicate the column ``label`` or the groups.

    A copy of the label makes a model that looks perfect and is of no use where the label is not known.
    """
    notes: list[str] = []
    what = repr(label) if len(labels.categories) == 2 else f"a label of {label!r}"
    copies, most = set(sensitive), max(len(labels.categories), len(groups.categories))
    for column, content in values.items():
        codes = None if column in copies else _codes(content, most)  # --keep-sensitive asks for those
        if codes is None:
            continue
        if _copies(codes, labels.codes):
            copies.add(column)
            text = (
                f"Column {column!r} duplicates the label {label!r} (a leak), so the models read the answer instead "
                f"of learning it. Unless it is known where you predict, add {spell('--drop', column, quote=True)}."
            )
            notes.append(Note(text, "leak", str(column)))
        elif _copies(codes, groups.codes):
            copies.add(column)
            notes.append(
                f"Column {column!r} duplicates {' and '.join(sensitive)!r}, so the models know the group; add "
                f"{spell('--drop', column, quote=True)} to keep it from them."
            )
    rest = values[[column for column in values.columns if column not in copies]]
    for column, area in rank_columns(rest, labels.codes, surest=True).items():
        if area >= NEARLY_PERFECT:
            text = (
                f"Column {column!r} alone predicts {what} almost perfectly (area under the ROC curve {area:.3f} on "
                f"rows held out). It may be known only once the label is, which would be a leak: if so, "
                f"add {spell('--drop', column, quote=True)}."
            )
            notes.append(Note(text, "warning", str(column)))
    areas = {} if set(sensitive) & set(values) else rank_columns(rest, groups.codes)
    found = sorted((column for column in areas if areas[column] >= STANDS_IN), key=lambda name: -areas[name])
    if found:  # those that tell most first
        listed = ", ".join(f"{column!r} ({areas[column]:.3f})" for column in found[:MOST_NAMED])
        more = f" and {len(found) - MOST_NAMED} more" if len(found) > MOST_NAMED else ""
        notes.append(
            f"Through {listed}{more}, which {'stands' if len(found) == 1 else 'stand'} in for "
            f"{' and '.join(map(repr, sensitive))} (area under the ROC curve that the column alone reaches, on rows "
            f"held out), the models can tell groups apart; {spell('--drop')} keeps a column from them."
        )
    return notes


def _codes(content: pd.Series, most: int) -> NDArray[Any] | None:
    """Code a column's values, −1 where missing; return None where it has too many to be a copy."""
    if is_text(content):
        return content.array.codes if content.nunique() <= most else None
    if content.iloc[: 50 * (most + 1)].nunique() > most:  # numbers mostly show here that they are many
        return None
    codes, found = pd.factorize(content)
    return None if len(found) > most else codes


def _copies(values: NDArray[Any], targets: NDArray[Any]) -> bool:
    """Return whether values and targets stand for each other one to one, in nearly all rows; −1 is missing.

    Examples
    --------
    >>> targets = np.array([1, 0, 0, 1])
    >>> _copies(np.array([5, 2, 2, 5]), targets), _copies(np.array([1, 0, 1, 1]), targets)
    (True, False)
    """
    known = (values >= 0) & (targets >= 0)
    table = pd.crosstab(values[known], targets[known]).to_numpy()
    if known.mean() < NEARLY_ALL or len(table) != table.shape[1] or len(table) < 2:
        return False
    partners = set(table.argmax(axis=1).tolist())
    return len(partners) == len(table) and bool(table.max(axis=1).sum() >= NEARLY_ALL * known.sum())


def rank_columns(
    values: pd.DataFrame, targets: NDArray[np.integer], seed: int = 0, *, surest: bool = False
) -> dict[str, float]:
    """Compute how well each column alone tells the targets on rows held out: the area under the ROC curve.

    Half of the rows (of at most 20,000) say how likely each target is for each value of a column, the other half how
    well that ranks them. Numbers are cut into a hundred parts; missing is a value. Of more than two targets, each is
    told from the others, and the areas are averaged by their shares, or the largest is taken (``surest``).

    Parameters
    ----------
    values : DataFrame
        The columns.
    targets : integers
        −1 where there is none.

    Examples
    --------
    >>> targets = np.arange(200) % 2
    >>> columns = pd.DataFrame({"copy": targets.astype(float), "count": np.arange(200) // 2 * 1.0})
    >>> found = rank_columns(columns, targets)
    >>> found["copy"], found["count"] < 0.8
    (1.0, True)
    """
    rng = np.random.default_rng(seed)
    rows = rng.permutation(np.flatnonzero(targets >= 0))[:MOST_ROWS]
    half = len(rows) // 2
    shares = np.bincount(targets[rows[half:]]) / max(len(rows) - half, 1)
    classes = [code for code, share in enumerate(shares) if share * (len(rows) - half) >= LEAST]
    if len(classes) < 2:
        return {}
    # Of two classes, one is told from the other as well as the other from it.
    told = classes[1:] if len(classes) == len(shares) == 2 else classes
    hits = np.column_stack([targets[rows] == code for code in told])
    by_target = (_areas(codes, hits, half) for codes in _coded_blocks(values.iloc[rows]))
    areas = [
        each.max(axis=0) if surest else np.average(each, axis=0, weights=shares[told]) for each in by_target
    ]
    return dict(zip(map(str, values.columns), np.concatenate(areas or [np.zeros(0)]).tolist(), strict=True))


def _coded_blocks(values: pd.DataFrame) -> Iterator[NDArray[np.int64]]:
    """Code the values of some columns at a time, one column each; missing has a code of its own."""
    for start in range(0, values.shape[1], BLOCK):
        block = values.iloc[:, start : start + BLOCK]
        codes = np.empty(block.shape, dtype=np.int64)
        numeric = np.array([not isinstance(kind, pd.CategoricalDtype) for kind in block.dtypes])
        ranks = block.loc[:, numeric].rank(pct=True).to_numpy()
        codes[:, numeric] = np.where(np.isnan(ranks), PARTS + 1, np.floor(PARTS * ranks))
        for place in np.flatnonzero(~numeric):
            # Only the texts of these rows: a column may have hundreds of thousands.
            codes[:, place] = np.unique(block.iloc[:, place].array.codes, return_inverse=True)[1]
        yield codes


def _areas(codes: NDArray[np.int64], hits: NDArray[np.bool_], half: int) -> NDArray[np.float64]:
    """Compute the areas under the ROC curves of the rates that the first half of the rows shows, on the others.

    Returns an area for each column of hits and each column of codes.
    """
    width, columns = int(codes.max()) + 1, codes.shape[1]
    flat = codes + width * np.arange(columns)
    total = np.bincount(flat[:half].ravel(), minlength=width * columns)
    found = []
    for known, others in zip(hits[:half].T, hits[half:].T, strict=True):
        right = np.bincount(flat[:half][known].ravel(), minlength=width * columns)
        rates = (right + known.mean()) / (total + 1)
        ranks, positives = rankdata(rates.round(12)[flat[half:]], axis=0), int(others.sum())
        # Mann and Whitney's count of pairs in the right order.
        pairs = ranks[others].sum(axis=0) - positives * (positives + 1) / 2
        found.append(pairs / (positives * (len(others) - positives)))
    return np.array(found)
