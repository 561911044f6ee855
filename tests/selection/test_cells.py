"""Cells from any labels and groups, and their laws."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.support.refusals import refused

from fairsieve import Samples, fit
from fairsieve.selection.cells import Cells
from fairsieve.selection.epoch import Plan

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
    refused(message, Cells.of, labels, groups)


def test_a_list_of_numbers_and_strings_is_strings_as_in_numpy():
    assert Cells.of([0, "a"], [0, 1]).classes == ["0", "a"]


def test_the_positive_class():
    cells = Cells.of(["a", "b"], [0, 1])
    assert cells.class_index(None) == 1
    assert cells.class_index("a") == 0


# ---- Samples without a group: they train, and no fairness looks at them

NOTIONS = ("equalized_odds", "demographic_parity", "equal_opportunity")


@pytest.mark.parametrize("groups", [
    ["b", None, "a", "b"],
    ["b", np.nan, "a", "b"],
    np.array(["b", None, "a", "b"], object),
    np.array(["b", pd.NA, "a", "b"], object),
    np.array([np.str_("b"), pd.NaT, np.str_("a"), np.str_("b")], object),
    pd.Series(["b", None, "a", "b"]),
    pd.Series(["b", None, "a", "b"], dtype="string"),
    pd.Series(["b", None, "a", "b"], dtype="category"),
    pl.Series(["b", None, "a", "b"]),
])  # fmt: skip
def test_every_kind_of_missing_value_is_recognised(groups):
    cells = Cells.of(LABELS, groups, missing="own")
    assert cells.groups == ["a", "b", None]
    assert cells.has_ungrouped
    assert cells.named_groups == 2
    assert cells.group_codes.tolist() == [1, 2, 0, 1]
    refused("groups must not have missing values; got 1, in row 1", Cells.of, LABELS, groups)


@pytest.mark.parametrize(("groups", "values"), [
    (pd.Series([2, None, 1, 2], dtype="Int64"), [1, 2, None]),
    (pl.Series([2, None, 1, 2]), [1.0, 2.0, None]),
    ([2.0, np.nan, 1.0, 2.0], [1.0, 2.0, None]),
    (np.array(["2002", "NaT", "2001", "2002"], "M8[Y]"), None),
])  # fmt: skip
def test_missing_numbers_and_dates(groups, values):
    cells = Cells.of(LABELS, groups, missing="own")
    assert cells.group_codes.tolist() == [1, 2, 0, 1]
    assert cells.has_ungrouped
    assert values is None or cells.groups == values


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_a_crossed_group_is_missing_where_any_column_is(frame):
    columns = frame({"sex": ["f", None, "f", "m"], "old": [0, 0, None, 1]})
    cells = Cells.of(LABELS, columns, missing="own")
    assert cells.groups == [("f", 0), ("m", 1), None]
    assert cells.group_codes.tolist() == [0, 2, 2, 1]


@pytest.mark.parametrize("groups", [[None] * 4, np.full((4, 2), np.nan)])
def test_all_groups_may_be_missing(groups):
    cells = Cells.of(LABELS, groups, missing="own")
    assert (cells.groups, cells.named_groups) == ([None], 0)
    assert Plan(cells, 10).ratios.tolist() == [[1.0], [1.0]]


def test_part_of_the_samples_keeps_the_column_of_missing_groups():
    samples = Samples(np.zeros((4, 1)), LABELS, ["b", None, "a", "b"], missing="own")
    part = samples.take([0, 2])
    assert part.group_values == ["a", "b", None]
    assert part.cells.counts.tolist() == [[0, 0, 0], [1, 1, 0]]
    refused("missing must be one of refuse, own; got 'drop'", Cells.of, LABELS, [0, 1, 0, 1], missing="drop")


def test_ungrouped_samples_count_for_accuracy_and_not_for_disparity():
    rng = np.random.default_rng(0)
    features = rng.normal(size=(300, 2))
    labels = (features[:, 0] + rng.normal(size=300) > 0).astype(int)
    groups = np.where(rng.random(300) < 0.3, np.nan, rng.integers(0, 2, 300))
    data = Samples(features, labels, groups, missing="own")
    named = data.take(np.flatnonzero(~np.isnan(groups)))
    history = fit(None, data, "lr", evaluation=named, epochs=6, batch_size=50).history
    for notion in NOTIONS:
        assert history.train.disparity[notion].tolist() == history.evaluation.disparity[notion].tolist()
    assert history.train.accuracy[-1] != history.evaluation.accuracy[-1]


# ---- Laws

PAIRS = st.lists(st.tuples(st.integers(-3, 3), st.sampled_from("xyz")), min_size=1, max_size=50)
INTEGERS = [np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint64]


@given(PAIRS)
def test_codes_say_labels_and_groups_back(pairs):
    """Codes say the labels and the groups back, and every sample is in one cell."""
    labels, groups = zip(*pairs, strict=True)
    cells = Cells.of(labels, groups)
    assert [cells.classes[code] for code in cells.label_codes] == list(labels)
    assert [cells.groups[code] for code in cells.group_codes] == list(groups)
    assert cells.classes == sorted(set(labels))
    assert cells.groups == sorted(set(groups))
    for row, label in enumerate(cells.classes):
        for column, group in enumerate(cells.groups):
            assert cells.counts[row, column] == pairs.count((label, group))


@given(PAIRS, st.randoms(use_true_random=False))
def test_samples_in_another_order_have_the_same_cells(pairs, random):
    """Samples in another order have the same cells, in that order."""
    mixed = pairs[:]
    random.shuffle(mixed)
    one, other = (Cells.of(*zip(*each, strict=True)) for each in (pairs, mixed))
    code = dict(zip(pairs, one.codes.tolist(), strict=True))
    assert other.codes.tolist() == [code[pair] for pair in mixed]
    assert other.counts.tolist() == one.counts.tolist()


@given(PAIRS)
def test_known_classes_and_groups_change_no_value(pairs):
    """Cells within known classes and groups have the same values, and nobody in the others."""
    labels, groups = zip(*pairs, strict=True)
    known = Cells.of(labels, groups, classes=range(5, -5, -1), group_values="zwxy")
    assert [known.classes[code] for code in known.label_codes] == list(labels)
    assert [known.groups[code] for code in known.group_codes] == list(groups)
    assert known.shape == (10, 4)
    assert known.counts.sum() == len(pairs)


@given(st.lists(st.tuples(st.integers(0, 2), st.sampled_from("ab")), min_size=1, max_size=30))
def test_several_columns_are_one_of_their_tuples(pairs):
    """Several columns are one column of their tuples."""
    for missing in ("refuse", "own"):
        columns = np.array([list(pair) for pair in pairs], object)
        crossed = Cells.of(np.zeros(len(pairs)), columns, missing=missing)
        assert crossed.groups == sorted(set(pairs))
        assert [crossed.groups[code] for code in crossed.group_codes] == pairs


@given(st.lists(st.sampled_from(["a", "b", "c", None]), min_size=1, max_size=30))
def test_samples_without_a_group_are_in_a_last_column(groups):
    """Samples without a group are in a last column, and the others where they would be without those."""
    cells = Cells.of(np.zeros(len(groups)), np.array(groups, object), missing="own")
    assert [cells.groups[code] for code in cells.group_codes] == groups
    assert cells.has_ungrouped == (None in groups)
    assert cells.groups[: cells.named_groups] == sorted(set(groups) - {None})


@given(st.lists(st.integers(-128, 300), min_size=1, max_size=50), st.sampled_from(INTEGERS), st.booleans())
def test_integers_of_every_type_are_in_order(values, dtype, far):
    """Classes of integers of every type are in order, be they near each other or far apart."""
    array = np.array(values).astype(dtype)
    array[0] = np.iinfo(dtype).max if far else array[0]
    expected, places = np.unique(array, return_inverse=True)
    cells = Cells.of(array, np.zeros(len(array)))
    assert cells.classes == expected.tolist()
    assert cells.label_codes.tolist() == places.tolist()
