"""What a reader must know of a table: copies, columns that hold the answer, values that read alike, too few people."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import poisson, rankdata

from fairsieve.errors import spell
from fairsieve.samples import find_alike
from fairsieve.selection.cells import Cells, Flags, Integers, Keys, Values
from fairsieve.tabular.policy import POLICY
from fairsieve.tabular.reading.columns import InputTable, Note, count_rows, is_text


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
    telling = [name for name in sorted(areas, key=lambda name: -areas[name]) if areas[name] >= STANDS_IN]
    if telling:  # those that tell most first
        listed = ", ".join(f"{column!r} ({areas[column]:.3f})" for column in telling[:MOST_NAMED])
        more = f" and {len(telling) - MOST_NAMED} more" if len(telling) > MOST_NAMED else ""
        notes.append(
            f"Through {listed}{more}, which {'stands' if len(telling) == 1 else 'stand'} in for "
            f"{' and '.join(map(repr, sensitive))} (area under the ROC curve that the column alone reaches, on rows "
            f"held out), the models can tell groups apart; {spell('--drop')} keeps a column from them."
        )
    return notes


def _codes(content: pd.Series, most: int) -> Values | None:
    """Code a column's values, −1 where missing; return None where it has too many to be a copy."""
    if is_text(content):
        return content.array.codes if content.nunique() <= most else None
    if content.iloc[: 50 * (most + 1)].nunique() > most:  # numbers mostly show here that they are many
        return None
    codes, values = pd.factorize(content)
    return None if len(values) > most else codes


def _says_again(content: pd.Series, targets: Values, most: int) -> bool:
    """Return whether a column says the targets in other words."""
    codes = _codes(content, most)
    return codes is not None and _copies(codes, targets)


def _copies(values: Values, targets: Values) -> bool:
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
    rows = np.random.default_rng(seed).permutation(np.flatnonzero(targets >= 0))[:MOST_ROWS]
    half = len(rows) // 2
    shares = np.bincount(targets[rows[half:]]) / max(len(rows) - half, 1)
    classes = [code for code, share in enumerate(shares) if share * (len(rows) - half) >= LEAST]
    if len(classes) < 2:
        return {}
    # Of two classes, one is told from the other as well as the other from it.
    told = classes[1:] if len(classes) == len(shares) == 2 else classes
    found = {}
    for name, column in values.iloc[rows].items():
        # Only the texts of these rows are coded: a column may have hundreds of thousands.
        parts = column.array.codes if is_text(column) else np.floor(PARTS * column.rank(pct=True))
        codes = pd.factorize(parts, use_na_sentinel=False)[0]
        areas = [_area(codes, targets[rows] == code, half) for code in told]
        found[str(name)] = float(max(areas) if surest else np.average(areas, weights=shares[told]))
    return found


def _area(codes: Integers, hits: Flags, half: int) -> float:
    """Compute the area under the ROC curve of the rates that the first half of the rows shows, on the others."""
    width, others = int(codes.max()) + 1, hits[half:]
    right, total = (np.bincount(codes[:half], each, width) for each in (hits[:half], None))
    rates = (right + hits[:half].mean()) / (total + 1)
    ranks, positives = rankdata(rates.round(12)[codes[half:]]), int(others.sum())
    # Mann and Whitney's count of pairs in the right order.
    pairs = ranks[others].sum() - positives * (positives + 1) / 2
    return float(pairs / (positives * (len(others) - positives)))


# ---- Copies

LOOKED_AT = 50_000  # rows among which pairs are counted
TWICE = 2.0  # as many pairs as the estimate of those by chance must be too few
SELDOM = 0.01  # a chance
RARELY = 0.01  # of the pairs of rows


def copy_notes(table: InputTable, label: str, codes: NDArray[np.integer]) -> list[Note]:
    """Tell of rows that are copies of another, first of those with another label: at least one of them is wrong.

    Parameters
    ----------
    table : InputTable
    label : str
        The column of the labels.
    codes : integers
        The label of each row, −1 where it has none.
    """
    # A column that says the label again would tell every contradictory pair apart.
    most = int(codes.max()) + 1
    told = [name for name in table.columns if name == label or _says_again(table.frame[name], codes, most)]
    columns = _hash_columns(table, [name for name in table.columns if name not in told])
    known = codes >= 0
    columns, codes, rows = columns[known], codes[known], table.rows[known]
    frame = pd.DataFrame({"row": columns.sum(axis=1, dtype=np.uint64), "code": codes})
    repeated = frame.duplicated("row", keep=False).to_numpy()
    if not repeated.any() or not _are_copies(columns):
        return []
    kinds = frame[repeated].drop_duplicates()["row"]
    several = frame["row"].isin(kinds[kinds.duplicated()]).to_numpy()
    notes = []
    if several.any():
        text = (
            f"Rows that equal another in every column but have another {label!r}: "
            f"{count_rows(table.name, rows[several])}. Where these are copies of one row, and not people who "
            "are alike, at least one label of each set is wrong: correct it, or take the copies out."
        )
        notes.append(Note(text, "contradiction"))
    if (again := frame.duplicated(["row", "code"]).to_numpy()).any():
        text = (
            f"Rows that repeat an earlier one in every column: {count_rows(table.name, rows[again])}. They count as "
            "often as they are there; take out what was entered twice."
        )
        notes.append(Note(text, "warning"))
    return notes


def _hash_columns(table: InputTable, names: list[str]) -> Keys:
    """Return a number for each value, by which the sum of a row tells it from rows that are not equal."""
    hashes = np.zeros((len(table), len(names)), dtype=np.uint64)
    for place, name in enumerate(names):
        column = table.frame[name]
        codes = column.array.codes if is_text(column) else pd.factorize(column)[0]
        hashes[:, place] = pd.util.hash_array(codes.astype(np.int64) + (place + 1) * 2**40)
    return hashes


def _are_copies(columns: Keys) -> bool:
    """Return whether there are clearly more pairs of equal rows than chance would make.

    People who are alike in a few columns are no copies. How many pairs chance makes is told by the pairs that are equal
    in all columns but one and differ in that: would they agree on it as often as any two rows do, so many more pairs
    would be equal in all.
    """
    whole = columns.sum(axis=1, dtype=np.uint64)
    equal, every = _count_pairs(whole), len(whole) * (len(whole) - 1) / 2
    expected = 0.0
    for column in columns.T:
        agree = _count_pairs(column, share=False) / every
        if agree < RARELY:  # then copies are much of it
            agree = max(agree - equal / every, 0.0)
        near = max(_count_pairs(whole - column) - equal, 0.0)
        expected = max(expected, near * agree / (1 - agree) if agree < 1 else 0.0)
    return bool(poisson.sf(equal - 1, TWICE * expected) < SELDOM)


def _count_pairs(hashes: Keys, *, share: bool = True) -> float:
    """Count the pairs of equal hashes, or estimate it from a ``share`` of the values where there are many."""
    step = -(-len(hashes) // LOOKED_AT) if share else 1
    sizes = np.unique(hashes[hashes % np.uint64(step) == 0] if step > 1 else hashes, return_counts=True)[1]
    return float((sizes * (sizes - 1.0)).sum() / 2 * step)
