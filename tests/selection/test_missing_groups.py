"""Samples without a group: they train, and no fairness looks at them."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

from fairsieve import Samples, fit
from fairsieve.errors import InvalidInputError
from fairsieve.selection.cells import Cells
from fairsieve.selection.epoch import Plan

LABELS = [1, 0, 1, 1]
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
    with pytest.raises(InvalidInputError, match="groups must not have missing values; got 1, in row 1"):
        Cells.of(LABELS, groups)


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
    with pytest.raises(InvalidInputError, match="missing must be one of refuse, own; got 'drop'"):
        Cells.of(LABELS, [0, 1, 0, 1], missing="drop")


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
