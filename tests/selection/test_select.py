"""Selection equals Algorithm 1 on every input, and its laws."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from tests.support.literal import literal_selection, literal_selection_loop

import fairsieve
from fairsieve.selection.cells import Cells
from fairsieve.selection.select import count_budget, select_cells


@pytest.mark.parametrize("n", [5_000, 20_000, 150_000])
@pytest.mark.parametrize("seed", range(3))
def test_equals_the_literal_walk_at_every_digit_width(n, seed):
    rng = np.random.default_rng(seed)
    labels, groups = rng.integers(0, 2, n), (rng.random(n) < 0.8).astype(int)
    losses = rng.exponential(size=n).astype(np.float32)
    if seed == 2:
        losses = np.round(losses, 2)  # ties
    ratios = rng.dirichlet([1, 1], 2)
    expected = literal_selection_loop(losses, labels, groups, ratios, 0.9)
    assert fairsieve.select(losses, labels, groups, ratios, 0.9).indices.tolist() == sorted(expected)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_every_float_format_is_exact(dtype):
    generator = torch.Generator().manual_seed(0)
    losses = torch.randn(500, generator=generator).to(dtype)
    labels = torch.randint(0, 2, (500,), generator=generator)
    groups = torch.randint(0, 3, (500,), generator=generator)
    ratios = torch.tensor([[0.2, 0.3, 0.5], [0.6, 0.1, 0.3]], dtype=torch.float64)
    found = fairsieve.select(losses, labels, groups, ratios, 0.8)
    expected, _ = literal_selection(
        losses.double().tolist(), labels.tolist(), groups.tolist(), ratios.tolist(), 0.8
    )
    assert isinstance(found.indices, torch.Tensor)
    assert isinstance(found.counts, torch.Tensor)
    assert found.indices.tolist() == expected


def test_arrays_give_arrays_and_inputs_are_not_changed():
    losses = np.array([0.3, 0.1, 0.2, 0.4])
    losses.setflags(write=False)
    found = fairsieve.select(losses, ["n", "n", "y", "y"], [True, False, True, False], [[0.5, 0.5]] * 2, 1.0)
    assert isinstance(found.indices, np.ndarray)
    assert found.budget == 4
    assert losses.tolist() == [0.3, 0.1, 0.2, 0.4]


def test_infinite_losses_come_last():
    losses = [np.inf, 0.0, -np.inf, 1.0]
    found = fairsieve.select(losses, [0, 0, 0, 0], [0, 0, 0, 0], [[1.0]], 0.75)
    assert found.indices.tolist() == [1, 2, 3]


def test_equal_zeros_tie_whatever_their_sign():
    assert fairsieve.select([0.0, -0.0, -0.0], [0] * 3, [0] * 3, [[1.0]], 0.67).indices.tolist() == [0, 1]


def test_integer_and_strided_losses():
    assert fairsieve.select([3, 1, 2], [0] * 3, [0] * 3, [[1.0]], 0.67).indices.tolist() == [1, 2]
    losses = np.array([3.0, 0, 1, 0, 2, 0])[::2]
    assert fairsieve.select(losses, [0] * 3, [0] * 3, [[1.0]], 0.67).indices.tolist() == [1, 2]


def test_no_samples():
    found = fairsieve.select([], np.zeros(0, int), np.zeros(0, int), [[0.5, 0.5]] * 2, 0.9)
    assert len(found) == 0
    assert found.counts.tolist() == [[0, 0], [0, 0]]
    assert fairsieve.select([], np.zeros(0, int), np.zeros(0, int), [[1.0]], 0.9).counts.tolist() == [[0]]


@pytest.mark.parametrize(("ratio", "n", "budget"), [(0.29, 100, 29), (0.9, 10, 9), (1.0, 7, 7), (0.1, 3, 0)])
def test_rounding_does_not_decide_the_budget(ratio, n, budget):
    assert count_budget(ratio, n) == budget


RATIOS = [[0.5, 0.5], [0.5, 0.5]]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([0.1, np.nan], [0, 1], [0, 1], RATIOS, 0.9), r"losses must not be NaN; got 1, the first at 1"),
        (
            ([0.1], [0, 1], [0, 1], RATIOS, 0.9),
            r"losses must have one value per sample, the shape \(2,\); got \(1,\)",
        ),
        (([[0.1], [0.2]], [0, 1], [0, 1], RATIOS, 0.9), r"losses must have one value per sample"),
        (([0.1, 0.2], [0, 1], [0], RATIOS, 0.9), r"got 2 labels and 1 groups"),
        (([0.1, 0.2], [0, 1], [0, 1], RATIOS, 0.0), r"clean_ratio must be a number in \(0, 1\].*got 0"),
        (([0.1, 0.2], [0, 1], [0, 1], RATIOS, 1.1), r"clean_ratio must be .*got 1.1"),
        (([0.1, 0.2], [0, 1], [0, 1], RATIOS, np.nan), r"clean_ratio must be .*got nan"),
        (([0.1, 0.2], [0, 1], [0, 1], [[0.5, 0.4]] * 2, 0.9), r"row 0 sums to 0.9"),
        (([0.1, 0.2], [0, 1], [0, 1], [[1.5, -0.5]] * 2, 0.9), r"ratios must lie in \[0, 1\]"),
        (([0.1, 0.2], [0, 1], [0, 1], [[1.5, 0.5]] * 2, 0.9), r"ratios must lie in \[0, 1\]"),
        (([0.1, 0.2], [0, 1], [0, 1], [[-0.5, 1.0, 0.5]] * 2, 0.9), r"ratios must lie in \[0, 1\]"),
        (([0.1, 0.2], [0, 1], [0, 1], [0.5, 0.5], 0.9), r"ratios must be a table"),
        (([0.1, 0.2], ["a", "b"], [0, 1], [[0.5, 0.5]] * 3, 0.9), r"ratios must have one row per class"),
        ((["x", "y"], [0, 1], [0, 1], RATIOS, 0.9), r"losses must be real numbers"),
        ((torch.tensor([1j, 0j]), [0, 1], [0, 1], RATIOS, 0.9), r"losses must be real numbers"),
    ],
)
def test_bad_input_is_named(arguments, message):
    with pytest.raises(fairsieve.InvalidInputError, match=message):
        fairsieve.select(*arguments)


def test_classes_that_are_absent_can_be_named():
    found = fairsieve.select(
        [0.1], ["no"], ["a"], RATIOS, 1.0, classes=["no", "yes"], group_values=["a", "b"]
    )
    assert found.counts.shape == (2, 2)
    assert fairsieve.select([0.1], [1], [0], RATIOS, 1.0).counts.shape == (2, 2)  # codes need no names
    assert len(fairsieve.select([0.1, 0.2], [-1, 1], [0, 1], RATIOS, 1.0)) == 1  # which these are not


def test_selection_of_cells_is_the_same():
    rng = np.random.default_rng(0)
    losses, labels, groups = rng.random(50), rng.integers(0, 2, 50), rng.integers(0, 2, 50)
    cells = Cells.of(labels, groups)
    one = select_cells(losses, cells, np.array(RATIOS), 0.9)
    assert one.indices.tolist() == fairsieve.select(losses, labels, groups, RATIOS, 0.9).indices.tolist()
