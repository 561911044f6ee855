"""Cells"""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from fairsieve.selection.cells import Cells

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
