"""The ratios and their step."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from fairsieve.errors import InvalidInputError
from fairsieve.selection.cells import Cells
from fairsieve.selection.epoch import Plan
from fairsieve.selection.fairness import comparisons, fairness_name
from fairsieve.selection.ratios import cell_sizes, initial_ratios, move_ratios

NOTIONS = ("equalized_odds", "demographic_parity", "equal_opportunity")


def step(cells, means_or_sums, fairness, *, ratios=None, size=0.1, counts=None, pos_label=None):
    """Ratios after one step, from cell means (or, for parity, sums against each target)."""
    wanted = comparisons(fairness, cells, pos_label)
    counts = cells.counts.ravel() if counts is None else np.array(counts)
    sums = np.array(means_or_sums, float).reshape(len(wanted.targets), -1)
    if not wanted.by_group:
        sums = sums * counts
    table = (initial_ratios(cells) if ratios is None else np.array(ratios, float)).copy()
    move_ratios(table, sums, counts, wanted.rows, wanted.by_group, size)
    return table


@pytest.fixture
def even():
    """Two classes, two groups, ten samples a cell."""
    return Cells.of(np.repeat([0, 0, 1, 1], 10), np.repeat([0, 1, 0, 1], 10))


def test_ratios_start_at_the_shares_of_the_cells():
    cells = Cells.of([0, 0, 0, 0, 1], ["a", "b", "b", "b", "a"])
    assert initial_ratios(cells).tolist() == [[0.25, 0.75], [1, 0]]
    assert initial_ratios(Cells.of([0], ["a"], classes=[0, 1], group_values=["a", "b"]))[1].tolist() == [
        0.5,
        0.5,
    ]


def test_demographic_parity_divides_by_the_group():
    cells = Cells.of(np.repeat([0, 0, 1, 1], [30, 10, 10, 10]), np.repeat([0, 1, 0, 1], [30, 10, 10, 10]))
    # (1, 0): 4 / 40 = .1 and (1, 1): 3 / 20 = .15, though 4 > 3.
    moved = step(cells, [0, 0, 4, 3], "demographic_parity", ratios=[[0.5, 0.5]] * 2)
    assert moved == pytest.approx(np.array([[0.5, 0.5], [0.4, 0.6]]))


def test_three_classes_compare_the_rate_of_each_predicted_class():
    cells = Cells.of(np.repeat([0, 1, 2], 8), np.tile([0, 1], 12))
    wanted = comparisons("demographic_parity", cells)
    assert wanted.targets == (0, 1, 2)
    sums = np.zeros((3, 6))
    sums[2, 4], sums[2, 5] = 1, 5  # against class 2, over the cells of class 2: group 1 should rise
    assert step(cells, sums, "demographic_parity")[2] == pytest.approx([0.4, 0.6])
    sums = np.zeros((3, 6))
    sums[2, 0], sums[2, 1] = 1, 5  # against class 2, over the cells of class 0: group 1 should fall
    assert step(cells, sums, "demographic_parity")[0] == pytest.approx([0.6, 0.4])


def test_of_equal_gaps_the_first_counts(even):
    assert step(even, [0.25, 0.5, 0.25, 0.5], "equalized_odds") == pytest.approx(
        np.array([[0.4, 0.6], [0.5, 0.5]])
    )


def test_empty_cells_are_not_compared(even):
    moved = step(even, [0, 9, 0.1, 0.2], "equalized_odds", counts=[10, 0, 10, 10])
    assert moved == pytest.approx(np.array([[0.5, 0.5], [0.4, 0.6]]))


def test_ratios_stop_at_their_bounds(even):
    moved = step(even, [0, 1, 0, 0], "equalized_odds", ratios=[[0.05, 0.95], [0.5, 0.5]])
    assert moved[0].tolist() == [0.0, 1.0]
    assert step(even, [0, 1, 0, 0], "equalized_odds", ratios=[[0, 1], [0.5, 0.5]])[0].tolist() == [0, 1]


def test_names_of_fairness_with_underscores_and_dashes():
    assert fairness_name("demographic-parity") == "demographic_parity"
    with pytest.raises(InvalidInputError, match=r"fairness must be one of equalized_odds.*got 'fairness'"):
        fairness_name("fairness")


@given(
    st.lists(st.floats(0.01, 5), min_size=4, max_size=4, unique=True),
    st.lists(st.integers(1, 50), min_size=4, max_size=4),
    st.lists(st.floats(0, 1), min_size=2, max_size=2),
)
def test_with_an_offset_of_one_a_step_is_that_of_the_authors(sums, counts, shares):
    """Their rule, read off their code: a cell's loss over its count + 1, the class with the wider gap, clipped."""
    lowest = [total / (count + 1) for total, count in zip(sums, counts, strict=True)]
    gap_0, gap_1 = abs(lowest[1] - lowest[0]), abs(lowest[3] - lowest[2])
    assume(abs(gap_0 - gap_1) > 1e-9 and max(gap_0, gap_1) > 1e-9)
    label = 1 if gap_1 > gap_0 else 0
    up = lowest[2 * label + 1] > lowest[2 * label]
    expected = list(shares)
    expected[label] = min(1.0, max(0.0, shares[label] + (0.001 if up else -0.001)))
    ratios = np.array([[1 - shares[0], shares[0]], [1 - shares[1], shares[1]]])
    rows = comparisons("equalized_odds", Cells.of([0, 1], [0, 1])).rows
    sizes = cell_sizes(np.array(counts), False, 1)
    move_ratios(ratios, np.array([sums]), sizes, rows, False, 0.001)
    assert ratios[:, 1] == pytest.approx(expected, abs=1e-12)


def test_a_plan_with_the_authors_offset_moves_another_class():
    """Two small cells and two large ones: without the offset class 0 has the wider gap, with it class 1."""
    cells = Cells.of([0] * 2 + [1] * 200, [0, 1] + [0] * 100 + [1] * 100)
    losses = np.concatenate([[2.0, 1.0], np.full(100, 1.9), np.full(100, 1.0)])
    moved = []
    for offset in (0, 1):
        plan = Plan(cells, 10, clean_ratio=1.0, step_size=0.1, warmup_epochs=0, count_offset=offset)
        before = plan.ratios.copy()
        plan.update(losses)
        moved.append(np.flatnonzero((plan.ratios != before).any(axis=1)).tolist())
    assert moved == [[0], [1]]
