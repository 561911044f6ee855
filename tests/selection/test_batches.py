"""Batches: exact size, the right shares, no repeats within a pass."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from scipy.stats import chisquare

from fairsieve.selection.batches import batch_shares
from fairsieve.selection.shuffle import shuffled, unshuffled


def test_an_empty_cell_leaves_its_share_to_its_class():
    shares = batch_shares(np.array([[0.5, 0.5], [0.5, 0.5]]), np.array([10, 0, 5, 5]), 20)
    assert shares.tolist() == [10, 0, 5, 5]


def test_a_cell_alone_with_ratio_zero_still_stands_for_its_class():
    assert batch_shares(np.array([[0.0, 1.0], [0.5, 0.5]]), np.array([4, 0, 2, 2]), 8).tolist() == [
        4,
        0,
        2,
        2,
    ]


@pytest.mark.parametrize("size", [2, 3, 4, 5])
def test_every_order_is_equally_likely(size):
    orders = Counter()
    for epoch in range(6000):
        orders[tuple(shuffled(size, 0, epoch, 0, 0, size).tolist())] += 1
    seen = [orders[order] for order in sorted(orders)]
    assert len(seen) == np.prod(np.arange(1, size + 1))
    assert chisquare(seen).pvalue > 1e-3


@pytest.mark.parametrize("size", [37, 1000])
def test_places_and_neighbours_look_random(size):
    orders = np.array([shuffled(size, 1, epoch, 0, 0, size) for epoch in range(200)])
    steps = np.bincount(((orders[:, 1:] - orders[:, :-1]) % size).ravel(), minlength=size)[1:]
    assert chisquare(steps).pvalue > 1e-3
    halves = (orders < size / 2)[:, : size // 2].mean()
    assert halves == pytest.approx(0.5, abs=0.02)


@pytest.mark.parametrize("size", [*range(1, 70), 127, 128, 129, 1000])
def test_unshuffled_undoes_shuffled(size):
    for lap in range(3):
        order = shuffled(size, 3, 5, 1, lap * size, (lap + 1) * size)
        assert sorted(order) == list(range(size))
        assert unshuffled(size, 3, 5, 1, np.array([lap]), order).tolist() == [list(range(size))]


def test_orders_do_not_change_between_versions():
    """Or a state that was saved would go on in another order."""
    assert shuffled(8, 3, 5, 1, 16, 24).tolist() == [3, 7, 6, 0, 1, 4, 5, 2]
    assert shuffled(12, 3, 5, 1, 24, 36).tolist() == [0, 4, 10, 1, 9, 3, 11, 7, 6, 5, 8, 2]
    far = 2 * 10**12
    assert shuffled(10**12, 3, 5, 1, far, far + 3).tolist() == [53921787645, 282740615231, 767340507939]
