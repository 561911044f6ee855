"""Read the answers of people who checked labels, and say what they tell of the labels and of the models."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from fairsieve.errors import InvalidInputError, spell
from fairsieve.label_noise.estimate import CleanRatioEstimate
from fairsieve.metrics import Score, newcombe, simultaneous, wilson
from fairsieve.report.text import load_sentences
from fairsieve.selection.cells import Codes, Floats, Values
from fairsieve.tabular.evaluation import Share
from fairsieve.tabular.reading.columns import InputTable, exact_value
from fairsieve.tabular.reading.read import read_data, read_table
from fairsieve.tabular.reading.roles import Labels
from fairsieve.validation import closest_hint

if TYPE_CHECKING:
    from fairsieve.tabular.preparation import TableProblem

Facts = dict[str, Any]  # names and numbers of a sentence
ANSWER_COLUMNS = ("row", "id", "given_label", "verified_label", "sampling_weight", "row_checksum")
NEEDED = ("row", "verified_label", "sampling_weight", "row_checksum")


@dataclass(frozen=True, eq=False)
class Answers:
    """What people said about labels of a table.

    Attributes
    ----------
    frame : DataFrame
        Its index has the rows with an answer, as the table numbers them, ascending. Columns are ``code``, the verified
        label of each by its place among the classes, ``given``, the label that the table has, and ``weight``, the
        inverse of the row's chance to be chosen, up to a factor.
    unsure, unanswered : int
        Rows of the files without a verified label.
    """

    frame: pd.DataFrame
    unsure: int
    unanswered: int

    def over(self, rows: Codes) -> tuple[Codes, Floats]:
        """Return codes (−1 where nobody answered) and weights (1 there) of rows."""
        answers = self.frame.reindex(rows)
        return answers["code"].fillna(-1).to_numpy(np.int64), answers["weight"].fillna(1.0).to_numpy()


def unsure_word(classes: Sequence[str]) -> str:
    """Return the word that stands for an unsure answer; no label is called so.

    >>> unsure_word(["high", "low"]), unsure_word(["sure", "unsure"])
    ('unsure', '(unsure)')
    """
    word = "unsure"
    while word in {name.lower() for name in classes}:
        word = f"({word})"
    return word


def count_answers(path: Path) -> int:
    """Count the answers in a file; 0 where it is not one to fill in."""
    try:
        frame = read_table(path).frame
    except (InvalidInputError, OSError):
        return 0
    return int(frame["verified_label"].notna().sum()) if "verified_label" in frame else 0


def read_answers(sources: Sequence[Any], table: InputTable, labels: Labels) -> Answers:
    """Read answers to rows of a table; refuse answers to other rows, unknown labels and contradictions.

    Parameters
    ----------
    sources : sequence of path or data frame
        With the columns :data:`ANSWER_COLUMNS`.
    table : InputTable
    labels : Labels
    """
    by_row: dict[int, tuple[str, float, str]] = {}  # label, weight and file, by the place of the row
    unsure = unanswered = 0
    given = labels.read(table)
    files = [read_data(source, what="--verified") for source in sources]
    for file in files:
        places = _find_rows(file, table)
        if "given_label" in file.columns:
            _check_given(file, table, places, given[places])
        texts = file.cells("verified_label")
        for place, text, weight in zip(places.tolist(), texts, _read_weights(file, len(table)), strict=True):
            if text is None or str(text).lower() == unsure_word(labels.classes):
                unsure, unanswered = unsure + (text is not None), unanswered + (text is None)
                continue
            row = int(table.rows[place])
            answer = _find_label(str(text), labels, row, file.name), weight, file.name
            _check_same(by_row.setdefault(place, answer), answer, f"row {row} of {table.name}")
    if not by_row:
        names = ", ".join(file.name for file in files)
        raise InvalidInputError(
            f"{spell('--verified')} must have an answer in verified_label; {names} has {unanswered:,} empty and "
            f"{unsure:,} unsure ones and no other: answer some rows first"
        )
    order = sorted(by_row)
    codes = [labels.classes.index(by_row[place][0]) for place in order]
    columns = {"code": codes, "given": given.codes[order], "weight": [by_row[place][1] for place in order]}
    return Answers(pd.DataFrame(columns, index=table.rows[order]), unsure, unanswered)


def _find_rows(file: InputTable, table: InputTable) -> Codes:
    """Find the place in the table of every line of a file, by its number and checksum, or by its checksum alone."""
    absent = [name for name in NEEDED if name not in file.columns]
    if absent:
        raise InvalidInputError(
            f"{spell('--verified')} must be a file that fairsieve review wrote, with the columns {', '.join(NEEDED)}; "
            f"{file.name} has no {absent[0]}: give that file with its column verified_label filled in"
        )
    numbers = file.numbers("row").numbers
    sums = file.cells("row_checksum")
    if np.isin(numbers, table.rows).all():
        places = np.searchsorted(table.rows, numbers)
        if row_checksums(table, places) == sums:
            return places
    return _find_checksums(numbers, sums, file.name, table)


def _find_checksums(numbers: Floats, sums: Sequence[str | None], name: str, table: InputTable) -> Codes:
    """Find rows that stand elsewhere in the table: sorted in another way, or among others."""
    every = pd.DataFrame({"sum": row_checksums(table, np.arange(len(table)))})
    lines = pd.DataFrame({"number": numbers, "sum": sums})
    # Of several equal rows, each is taken once.
    once = lines.drop_duplicates()
    others = every.assign(turn=every.groupby("sum").cumcount(), place=every.index)
    taken = once.assign(turn=once.groupby("sum").cumcount()).merge(others, how="left")
    places = lines.merge(taken, how="left")["place"]
    wrong = numbers[places.isna()]
    if len(wrong):
        first = "without a number" if math.isnan(wrong[0]) else f"{int(wrong[0])}"
        raise InvalidInputError(
            f"{spell('--verified')} must hold answers to rows of {table.name}; {len(wrong):,} of the {len(lines):,} "
            f"rows of {name} are not in it or say something else there (the first: row {first}). Give the table that "
            f"fairsieve review read, with its values unchanged, and the same {spell('--missing')}"
        )
    return np.asarray(places, dtype=np.int64)


def _read_weights(file: InputTable, most: int) -> list[float]:
    """Read the weights of a file; their mean was 1, so that none is larger than the number of rows."""
    weights = file.numbers("sampling_weight").numbers
    wrong = np.flatnonzero(~((weights > 0) & (weights <= most)))
    if len(wrong):
        row, text = (file.cells(name)[wrong[0]] for name in ("row", "sampling_weight"))
        raise InvalidInputError(
            f"sampling_weight in {file.name} must be a number above 0 and at most {most:,}, the number of rows of the "
            f"table; got {text!r} for row {row}: leave that column as it was"
        )
    return [float(weight) for weight in weights]


def _check_given(file: InputTable, table: InputTable, places: Any, own: pd.Categorical) -> None:
    """Check that nobody wrote corrections into the column of the given labels."""
    for text, label, row in zip(file.cells("given_label"), own, table.rows[places], strict=True):
        if text is None or not isinstance(label, str) or not _same(str(text), label):
            raise InvalidInputError(
                f"given_label in {file.name} must stay as it was; row {row} is {label!r} in {table.name} and "
                f"{text!r} here: put corrections into verified_label"
            )


def _check_same(one: tuple[str, float, str], other: tuple[str, float, str], row: str) -> None:
    """Check that two answers to one row agree, and so do the chances at which it was chosen."""
    for part, what in enumerate(("answer each row in one way", "give each row one sampling_weight")):
        if one[part] != other[part]:
            raise InvalidInputError(
                f"{spell('--verified')} must {what}; {row} is {one[part]!r} in {one[2]} and {other[part]!r} in "
                f"{other[2]}: keep one of the two"
            )


def _find_label(text: str, labels: Labels, row: int, name: str) -> str:
    """Find the label that an answer names; what a spreadsheet does to capitals and apostrophes is tolerated."""
    matching = [text] if text in labels.classes else [one for one in labels.classes if _same(text, one)]
    if len(matching) == 1:
        return matching[0]
    raise InvalidInputError(
        f"verified_label in {name} must be one of {', '.join(labels.classes)}, empty, or "
        f"{unsure_word(labels.classes)}; got {text!r} for row {row}"
        f"{closest_hint(text, labels.classes) or '.'} Correct it"
    )


def _same(text: str, label: str) -> bool:
    """Return whether a spreadsheet may have made ``text`` of ``label``.

    >>> _same("TRUE", "true"), _same("'=x", "=x"), _same("1", "1.0"), _same("low", "high")
    (True, True, True, False)
    """
    spellings = (text, text.removeprefix("'"), text.replace(",", "."))
    return exact_value(label).lower() in (exact_value(one).lower() for one in spellings)


def row_checksums(table: InputTable, places: Values | Sequence[int]) -> list[str]:
    """Compute a checksum of everything that stands in some rows.

    It does not depend on how a number is written (1 or 1.0), on separators or on the order of columns. It begins with
    a letter, so that no spreadsheet takes it for a number.
    """
    rows = table.take(np.asarray(places, dtype=np.int64))
    names, decimal = sorted(rows.columns), table.reading.decimal
    columns = []
    for name in names:
        values = rows.cells(name)
        written = {one: json.dumps(exact_value(one, decimal)) for one in set(values) if one is not None}
        columns.append([written.get(value, "null") for value in values])
    return [
        "r" + hashlib.sha256(f"[{json.dumps(names)}, [{', '.join(texts)}]]".encode()).hexdigest()[:12]
        for texts in zip(*columns, strict=True)
    ]


# ---- What the answers say

MORE = 10  # checks, by which intervals would narrow


def _say() -> Any:
    return load_sentences("fairsieve.tabular", "sentences.j2")


def describe_answers(problem: TableProblem, estimate: CleanRatioEstimate) -> tuple[Facts, list[str]]:
    """Describe what the answers say of the labels: for ``metrics.json``, and in words."""
    answers = problem.answers
    assert answers is not None
    wrong, weights = answers.frame["code"] != answers.frame["given"], answers.frame["weight"]
    inside = np.searchsorted(problem.table.rows, answers.frame.index)
    groups = pd.Series(problem.groups.read(problem.table)[inside]).astype(object).fillna("no group")
    share = float(np.average(wrong, weights=weights))
    worth = float(weights.sum() ** 2 / (weights**2).sum())  # as so many rows of one weight
    described: Facts = {
        "wrong": Share(int(wrong.sum()), len(wrong)),
        "by_group": {name: Share(int(its.sum()), len(its)) for name, its in wrong.groupby(groups.to_numpy())},
        "unsure": answers.unsure,
        "unanswered": answers.unanswered,
        # By the checked rows and their chances to be chosen.
        "share_wrong": Score(share, wilson(share * worth, worth)),
        "rates": rate_records(estimate),
    }
    described["stands_out"] = _stands_out(described["by_group"])
    return described, [_say().counted(described), *tell_rates(estimate)]


def _stands_out(by_group: dict[str, Share]) -> Facts | None:
    """Find the group whose labels are surely wrong more often than those of all others together, if there is one."""
    normal, outstanding = simultaneous(len(by_group)), []
    wrong, count = (sum(getattr(share, name) for share in by_group.values()) for name in ("hits", "total"))
    for name, own in by_group.items():
        others = Share(wrong - own.hits, count - own.total)
        low, _ = newcombe(own.hits, own.total, others.hits, others.total, normal)
        outstanding.append((low, {"group": name, "wrong": own, "others": others}))
    low, surest = max(outstanding, key=lambda each: each[0])
    return surest if low > 0 else None


def tell_revealed(described: Facts) -> str:
    """Say in a sentence what checked labels reveal."""
    return str(_say().revealed(described))


def rate_records(estimate: CleanRatioEstimate) -> list[Facts]:
    """Collect the flip rates that checked labels show, with intervals; empty where there are none."""
    rates, cells = estimate.verified, estimate.cells
    if rates is None:
        return []
    narrowing, by_group = rates.narrowing(MORE), rates.checked.sum(axis=0)
    flip_rates, low, high = (values.tolist() for values in (rates.flip_rates, rates.low, rates.high))
    return [
        {
            "label": str(label),
            "group": None if group is None else str(group),
            "checked_in_group": int(by_group[column]),
            "flip_rate": Score(flip_rates[row][column], (low[row][column], high[row][column])),
            "narrowed_by_ten_checks": float(narrowing[row, column]),
        }
        for row, label in enumerate(cells.classes)
        for column, group in enumerate(cells.groups)
        if cells.counts[:, column].any()
    ]


def tell_rates(estimate: CleanRatioEstimate) -> list[str]:
    """Say the flip rates that checked labels show, and what more checks would be worth; empty where there are none."""
    records = rate_records(estimate)
    return [_say().flip_rates(records, MORE)] if records else []
