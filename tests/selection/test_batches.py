"""Batches: exact size, the right shares, no repeats within a pass."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from scipy.stats import chisquare

from fairsieve.selection.batches import batch_count, batch_shares, draw_batches
from fairsieve.selection.shuffle import shuffled


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


def test_order_is_a_function_of_seed_and_epoch():
    codes, counts, shares = np.zeros(50, int), np.array([50]), np.array([50])
    selected = np.arange(50)
    one = draw_batches(selected, codes, counts, shares, 1, 3, 4)
    assert (one == draw_batches(selected, codes, counts, shares, 1, 3, 4)).all()
    assert (one != draw_batches(selected, codes, counts, shares, 1, 3, 5)).any()
    assert (one != draw_batches(selected, codes, counts, shares, 1, 4, 4)).any()


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


@pytest.mark.parametrize(("selected", "size", "count"), [(0, 4, 0), (3, 4, 1), (8, 4, 2), (11, 4, 2)])
def test_batches_of_an_epoch(selected, size, count):
    assert batch_count(selected, size) == count
