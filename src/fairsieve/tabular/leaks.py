"""Find columns that duplicate the label or the group (leaks), or tell them alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fairsieve.tabular.reading.columns import Note, count_distinct, is_text

NEARLY_ALL = 0.98  # of the rows in which a copy says the same
NEARLY_PERFECT = 0.98  # area under the ROC curve of one column for the label
STANDS_IN = 0.8  # the same for the group; Adult's relationship reaches .87 for sex, marital-status .76
MOST_NAMED = 3
MOST_ROWS = 20_000  # on which columns are ranked
PARTS = 100  # that numbers are cut into
LEAST = 10  # rows of a class, on either side


def leak_notes(
    values: pd.DataFrame, labels: pd.Categorical, groups: pd.Categorical, label: str, sensitive: Sequence[str]
) -> list[str]:
    """Warn of columns that are learnt from and duplicate the column ``label`` or the groups.

    A copy of the label makes a model that looks perfect and is of no use where the label is not known.
    """
    notes: list[str] = []
    copies = set(sensitive)  # --keep-sensitive asks for those
    for column, content in values.items():
        codes = (
            None if column in copies else _codes(content, max(len(labels.categories), len(groups.categories)))
        )
        if codes is None:
            continue
        if _copies(codes, labels.codes):
            copies.add(column)
            text = (
                f"Column {column!r} duplicates the label {label!r} (a leak), so the models read the answer instead "
                f"of learning it. Unless it is known where you predict, add --drop {column!r}."
            )
            notes.append(Note(text, "leak"))
        elif _copies(codes, groups.codes):
            copies.add(column)
            notes.append(
                f"Column {column!r} duplicates {' and '.join(sensitive)!r}, so the models know the group; add "
                f"--drop {column!r} to keep it from them."
            )
    rest = values[[column for column in values.columns if column not in copies]]
    told = set(sensitive) & set(values)
    return [
        *notes,
        *_label_notes(rest, labels, label),
        *([] if told else _group_notes(rest, groups, sensitive)),
    ]


def _label_notes(values: pd.DataFrame, labels: pd.Categorical, label: str) -> list[str]:
    """Warn of columns that alone predict the label almost perfectly."""
    areas = rank_columns(values, labels.codes)
    return [
        Note(
            f"Column {column!r} alone predicts {label!r} almost perfectly (area under the ROC curve {area:.3f} on "
            f"rows held out). It may be known only once the label is, which would be a leak: if so, add --drop "
            f"{column!r}.",
            "warning",
        )
        for column, area in areas.items()
        if area >= NEARLY_PERFECT
    ]


def _group_notes(values: pd.DataFrame, groups: pd.Categorical, sensitive: Sequence[str]) -> list[str]:
    """Name the columns that stand in for the group, those that tell most first."""
    areas = rank_columns(values, groups.codes)
    found = sorted((column for column in areas if areas[column] >= STANDS_IN), key=lambda name: -areas[name])
    if not found:
        return []
    listed = ", ".join(f"{column!r} ({areas[column]:.3f})" for column in found[:MOST_NAMED])
    more = f" and {len(found) - MOST_NAMED} more" if len(found) > MOST_NAMED else ""
    verb = "stands in" if len(found) == 1 else "stand in"
    return [
        f"Through {listed}{more}, which {verb} for {' and '.join(map(repr, sensitive))} (area under the ROC curve "
        "that the column alone reaches, on rows held out), the models can tell groups apart; --drop COLUMN keeps a "
        "column from them."
    ]


def _codes(content: pd.Series, most: int) -> NDArray[Any] | None:
    """Code a column's values, −1 where missing; return None where it has too many to be a copy."""
    if is_text(content):
        return content.array.codes if count_distinct(content) <= most else None
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
    if not known.any() or known.sum() < NEARLY_ALL * len(known):
        return False
    rows, columns = (int(codes.max()) + 1 for codes in (values, targets))
    pairs = values[known].astype(np.int64) * columns + targets[known]
    table = np.bincount(pairs, minlength=rows * columns).reshape(rows, columns)
    table = table[np.bincount(values[values >= 0], minlength=rows) > 0]
    table = table[:, np.bincount(targets[targets >= 0], minlength=columns) > 0]
    if table.shape[0] != table.shape[1] or len(table) < 2:
        return False
    partner = table.argmax(axis=1)
    one_to_one = (table.argmax(axis=0)[partner] == np.arange(len(table))).all()
    return bool(one_to_one and table.max(axis=1).sum() >= NEARLY_ALL * known.sum())


def rank_columns(values: pd.DataFrame, targets: NDArray[np.integer], seed: int = 0) -> dict[str, float]:
    """Compute how well each column alone tells the targets on rows held out: the area under the ROC curve.

    Half of the rows (of at most 20,000) say how likely each target is for each value of a column, the other half how
    well that ranks them. Numbers are cut into a hundred parts; missing is a value. Of more than two targets, each is
    told from the others, and the areas are averaged by their shares.

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
    hits = [targets[rows] == code for code in told]
    found: dict[str, float] = {}
    for name, column in values.items():
        codes = _codes_for(column, rows)
        areas = [_area(codes, one, np.arange(half), np.arange(half, len(rows))) for one in hits]
        found[str(name)] = float(np.average(areas, weights=shares[told]))
    return found


def _codes_for(column: pd.Series, rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Code the values of some rows of a column; missing is the last code."""
    if is_text(column):
        codes = column.array.codes[rows].astype(np.int64)
        return np.where(codes >= 0, codes, len(column.array.categories))
    numbers = column.to_numpy()[rows]
    ordered = np.sort(numbers)  # NaN is last
    known = len(ordered) - int(np.isnan(ordered).sum())
    edges = np.unique(ordered[np.arange(1, PARTS) * known // PARTS]) if known else ordered[:0]
    return np.where(np.isnan(numbers), len(edges) + 1, np.searchsorted(edges, numbers, side="left"))


def _area(
    codes: NDArray[np.int64], hits: NDArray[np.bool_], learnt: NDArray[np.int64], held: NDArray[np.int64]
) -> float:
    """Compute the area under the ROC curve of the rates that one half of the rows shows, on the other half."""
    width = int(codes.max()) + 1
    total = np.bincount(codes[learnt], minlength=width)
    right = np.bincount(codes[learnt], weights=hits[learnt], minlength=width)
    rates = (right + hits[learnt].mean()) / (total + 1)
    ranks = np.unique(rates.round(12), return_inverse=True)[1]
    positive = np.bincount(ranks[codes[held]], weights=hits[held])
    negative = np.bincount(ranks[codes[held]], weights=~hits[held])
    below = np.cumsum(negative) - negative / 2
    return float((positive @ below) / max(positive.sum() * negative.sum(), 1.0))
