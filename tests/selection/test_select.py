"""Selection equals Algorithm 1 on every input, and its laws."""

import numpy as np
import pytest
import torch
from tests.support.literal import literal_selection

import fairsieve


@pytest.mark.parametrize("n", [5_000, 20_000, 150_000])
@pytest.mark.parametrize("seed", range(3))
def test_equals_the_literal_walk_at_every_digit_width(n, seed):
    rng = np.random.default_rng(seed)
    labels, groups = rng.integers(0, 2, n), (rng.random(n) < 0.8).astype(int)
    losses = rng.exponential(size=n).astype(np.float32)
    if seed == 2:
        losses = np.round(losses, 2)  # ties
    ratios = rng.dirichlet([1, 1], 2)
    expected, _ = literal_selection(losses, labels, groups, ratios, 0.9)
    assert fairsieve.select(losses, labels, groups, ratios, 0.9).indices.tolist() == expected


def test_arrays_give_arrays_and_inputs_are_not_changed():
    losses = np.array([0.3, 0.1, 0.2, 0.4])
    losses.setflags(write=False)
    found = fairsieve.select(losses, ["n", "n", "y", "y"], [True, False, True, False], [[0.5, 0.5]] * 2, 1.0)
    assert isinstance(found.indices, np.ndarray)
    assert found.budget == 4
    assert losses.tolist() == [0.3, 0.1, 0.2, 0.4]


def test_integer_and_strided_losses():
    assert fairsieve.select([3, 1, 2], [0] * 3, [0] * 3, [[1.0]], 0.67).indices.tolist() == [1, 2]
    losses = np.array([3.0, 0, 1, 0, 2, 0])[::2]
    assert fairsieve.select(losses, [0] * 3, [0] * 3, [[1.0]], 0.67).indices.tolist() == [1, 2]


def test_no_samples():
    found = fairsieve.select([], np.zeros(0, int), np.zeros(0, int), [[0.5, 0.5]] * 2, 0.9)
    assert len(found) == 0
    assert found.counts.tolist() == [[0, 0], [0, 0]]
    assert fairsieve.select([], np.zeros(0, int), np.zeros(0, int), [[1.0]], 0.9).counts.tolist() == [[0]]


RATIOS = [[0.5, 0.5], [0.5, 0.5]]


@pytest.mark.parametrize(("arguments", "message"), [
    (([[0.1], [0.2]], [0, 1], [0, 1], RATIOS, 0.9), r"losses must have one value per sample"),
    (([0.1, 0.2], [0, 1], [0, 1], [[1.5, -0.5]] * 2, 0.9), r"ratios must lie in \[0, 1\]"),
    (([0.1, 0.2], [0, 1], [0, 1], [[1.5, 0.5]] * 2, 0.9), r"ratios must lie in \[0, 1\]"),
    (([0.1, 0.2], [0, 1], [0, 1], [[-0.5, 1.0, 0.5]] * 2, 0.9), r"ratios must lie in \[0, 1\]"),
    (([0.1, 0.2], [0, 1], [0, 1], [0.5, 0.5], 0.9), r"ratios must be a table"),
    ((torch.tensor([1j, 0j]), [0, 1], [0, 1], RATIOS, 0.9), r"losses must be real numbers"),
])  # fmt: skip
def test_bad_input_is_named(arguments, message):
    with pytest.raises(fairsieve.errors.InvalidInputError, match=message):
        fairsieve.select(*arguments)


def test_classes_that_are_absent_can_be_named():
    found = fairsieve.select(
        [0.1], ["no"], ["a"], RATIOS, 1.0, classes=["no", "yes"], group_values=["a", "b"]
    )
    assert found.counts.shape == (2, 2)
    assert fairsieve.select([0.1], [1], [0], RATIOS, 1.0).counts.shape == (2, 2)  # codes need no names
    assert len(fairsieve.select([0.1, 0.2], [-1, 1], [0, 1], RATIOS, 1.0)) == 1  # which these are not
