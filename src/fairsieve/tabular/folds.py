"""Tell of rows that are copies of another, and deal rows to parts that are alike, copies together.

A copy of a row says nothing of new people.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import poisson

from fairsieve.data.splits import shuffled_places
from fairsieve.selection.cells import Cells
from fairsieve.tabular.reading.columns import InputTable, Note, count_rows, is_text

Codes = NDArray[np.int64]

LOOKED_AT = 50_000  # rows among which pairs are counted
TWICE = 2.0  # as many pairs as the estimate of those by chance must be too few
SELDOM = 0.01  # a chance
RARELY = 0.01  # of the pairs of rows


def deal_folds(cells: Cells, folds: int, copies: Codes | None, seed: int) -> Codes:
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


def set_aside(cells: Cells, share: float, copies: Codes | None, seed: int) -> NDArray[np.bool_]:
    """Choose rows to set aside, the same share of each cell; copies go to one side, and every class is learnt from.

    >>> set_aside(Cells.of([0] * 10, ["a"] * 10), 0.2, None, seed=0).sum()
    np.int64(2)
    """
    places = shuffled_places(cells, seed, copies)
    aside = np.floor((places + 1) * share + 0.5) > np.floor(places * share + 0.5)
    for code in range(cells.shape[0]):
        mine = cells.label_codes == code
        if aside[mine].all():
            aside[mine] = False
    return np.asarray(aside)


# ---- What is said of copies


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
    columns = _hash_columns(table, [name for name in table.columns if name != label])
    known = codes >= 0
    columns, codes, rows = columns[known], codes[known], table.rows[known]
    whole = columns.sum(axis=1, dtype=np.uint64)
    frame = pd.DataFrame({"row": whole, "code": codes})
    repeated = frame.duplicated("row", keep=False).to_numpy()
    if not repeated.any() or not _are_copies(columns):
        return []
    several = (
        frame["row"]
        .isin(frame[repeated].drop_duplicates()["row"].loc[lambda one: one.duplicated()])
        .to_numpy()
    )
    notes = []
    if several.any():
        text = (
            f"Rows that equal another in every column but have another {label!r}: "
            f"{count_rows(table.name, rows[several])}. In each set of them at least one label is wrong: "
            "correct it, or take the copies out."
        )
        notes.append(Note(text, "contradiction"))
    if (again := frame.duplicated(["row", "code"]).to_numpy()).any():
        text = (
            f"Rows that repeat an earlier one in every column: {count_rows(table.name, rows[again])}. They count as "
            "often as they are there; take out what was entered twice."
        )
        notes.append(Note(text, "warning"))
    return notes


def _hash_columns(table: InputTable, names: list[str]) -> NDArray[np.uint64]:
    """Return a number for each value, by which the sum of a row tells it from rows that are not equal."""
    hashes = np.zeros((len(table), len(names)), dtype=np.uint64)
    for place, name in enumerate(names):
        column = table.frame[name]
        codes = column.array.codes if is_text(column) else pd.factorize(column)[0]
        hashes[:, place] = pd.util.hash_array(codes.astype(np.int64) + (place + 1) * 2**40)
    return hashes


def _are_copies(columns: NDArray[np.uint64]) -> bool:
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


def _count_pairs(hashes: NDArray[np.uint64], *, share: bool = True) -> float:
    """Count the pairs of equal hashes, or estimate it from a ``share`` of the values where there are many."""
    step = -(-len(hashes) // LOOKED_AT) if share else 1
    sizes = np.unique(hashes[hashes % np.uint64(step) == 0] if step > 1 else hashes, return_counts=True)[1]
    return float((sizes * (sizes - 1.0)).sum() / 2 * step)
