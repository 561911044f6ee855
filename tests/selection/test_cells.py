"""Cells from any labels and groups."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch

from fairsieve.errors import InvalidInputError
from fairsieve.selection.cells import Cells

LABELS = [1, 0, 1, 1]
GROUPS = ["b", "a", "a", "b"]


@pytest.mark.parametrize("labels", [
    LABELS,
    np.array(LABELS),
    np.array(LABELS, bool),
    np.array(LABELS, np.float32),
    torch.tensor(LABELS),
    pd.Series(LABELS),
    pd.Series(LABELS, dtype="category"),
    pl.Series(LABELS),
    ["yes", "no", "yes", "yes"],
    np.array(["yes", "no", "yes", "yes"], object),
    np.array(LABELS)[:, None],
    np.array(LABELS).view(np.memmap),
])  # fmt: skip
def test_any_label_type_gives_the_same_cells(labels):
    cells = Cells.of(labels, GROUPS)
    assert cells.codes.tolist() == [3, 0, 2, 3]
    assert cells.counts.tolist() == [[1, 0], [1, 2]]  # (no, b) is empty, not an error
    assert cells.label_codes.tolist() == LABELS
    assert cells.group_codes.tolist() == [1, 0, 0, 1]


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_several_columns_are_crossed(frame):
    columns = frame({"sex": ["f", "m", "f", "m"], "old": [0, 0, 1, 1]})
    cells = Cells.of(LABELS, columns)
    assert cells.groups == [("f", 0), ("f", 1), ("m", 0), ("m", 1)]
    assert cells.group_codes.tolist() == [0, 2, 1, 3]


def test_booleans_have_both_classes():
    assert Cells.of([True, True], [0, 1]).classes == [False, True]


def test_many_cells_need_wider_codes():
    cells = Cells.of(np.arange(400) % 2, np.arange(400))
    assert cells.codes.dtype == np.int16
    assert cells.counts.sum() == 400
    assert Cells.of([299, 0], [0, 0], classes=range(300)).codes.tolist() == [299, 0]


def test_more_values_than_a_table_holds():
    cells = Cells.of(np.arange(2**16 + 1), np.zeros(2**16 + 1, int))
    assert cells.codes.tolist() == cells.classes == list(range(2**16 + 1))


@pytest.mark.parametrize(("labels", "groups", "message"), [
    ([0, None], [0, 1], "labels must not have missing values; got 1, in row 1"),
    ([0.0, np.nan], [0, 1], "labels must not have missing values"),
    ([0, 1], [np.nan, 1.0], "groups must not have missing values"),
    ([0, 1], np.array(["2001", "NaT"], "M8[Y]"), "groups must not have missing values; got 1, in row 1"),
    ([None] * 5, [0] * 5, "got 5, in rows 0, 1, 2, 3, 4: drop"),
    ([None] * 6, [0] * 6, "got 6, in rows 0, 1, 2, 3, 4, …: drop"),
    ([[0], [0, 1]], [0, 1], "labels must have rows of one length; got"),
    (np.zeros((2, 2)), [0, 1], "labels must have one dimension"),
    (np.zeros((2, 2, 2)), [0, 1], "labels must have one dimension"),
    ([0, 1], np.zeros((2, 2, 2)), "groups must have one or two dimensions"),
])  # fmt: skip
def test_bad_input_is_named(labels, groups, message):
    with pytest.raises(InvalidInputError, match=message):
        Cells.of(labels, groups)


def test_a_list_of_numbers_and_strings_is_strings_as_in_numpy():
    assert Cells.of([0, "a"], [0, 1]).classes == ["0", "a"]


def test_the_positive_class():
    cells = Cells.of(["a", "b"], [0, 1])
    assert cells.class_index(None) == 1
    assert cells.class_index("a") == 0
