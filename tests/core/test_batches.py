"""Batches: exact size, the right shares, no repeats within a pass."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare

from fairsieve.core.batches import batch_count, batch_shares, draw_batches, sample_weights
from fairsieve.core.shuffle import new_shuffle, shuffled


@st.composite
def tables(draw):
    """Ratios and counts of selected samples."""
    classes, groups = draw(st.integers(1, 4)), draw(st.integers(1, 4))
    counts = np.array(
        draw(st.lists(st.integers(0, 30), min_size=classes * groups, max_size=classes * groups))
    )
    raw = np.array(
        draw(st.lists(st.integers(0, 9), min_size=classes * groups, max_size=classes * groups)), float
    )
    raw = raw.reshape(classes, groups)
    sums = raw.sum(axis=1, keepdims=True)
    ratios = np.divide(raw, sums, out=np.full_like(raw, 1 / groups), where=sums > 0)
    return ratios, counts


@given(tables(), st.integers(1, 64))
def test_shares_fill_a_batch_exactly_and_follow_their_quota(table, size):
    ratios, counts = table
    if counts.sum() == 0:
        return
    shares = batch_shares(ratios, counts, size)
    assert shares.sum() == size
    assert (shares[counts == 0] == 0).all()
    per_class = counts.reshape(ratios.shape).sum(axis=1)
    assert shares.reshape(ratios.shape).sum(axis=1) == pytest.approx(
        size * per_class / counts.sum(), abs=ratios.shape[1]
    )
    if (counts > 0).all():
        quotas = ratios * size * per_class[:, None] / counts.sum()
        assert (np.abs(shares - quotas.ravel()) < 1).all()


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


@given(
    st.lists(st.integers(0, 12), min_size=1, max_size=6),
    st.integers(1, 20),
    st.integers(0, 5),
    st.integers(0, 9),
)
def test_drawing_goes_through_each_cell_without_replacement(counts, batches, seed, epoch):
    counts = np.array(counts)
    codes = np.repeat(np.arange(len(counts)), counts)
    chosen = np.arange(counts.sum())
    shares = np.where(counts > 0, 2, 0)
    if not shares.sum():
        return
    drawn = draw_batches(chosen, codes, counts, shares, batches, seed, epoch)
    assert drawn.shape == (batches, shares.sum())
    for cell, size in enumerate(counts):
        if size:
            order = drawn[codes[drawn] == cell]
            assert len(order) == 2 * batches
            for lap in range(len(order) // size):
                assert sorted(order[lap * size : (lap + 1) * size]) == np.flatnonzero(codes == cell).tolist()
            times = Counter(order.tolist())
            assert max(times.values()) - (min(times.values()) if len(times) == size else 0) <= 1


def test_order_is_a_function_of_seed_and_epoch():
    codes, counts, shares = np.zeros(50, int), np.array([50]), np.array([50])
    chosen = np.arange(50)
    one = draw_batches(chosen, codes, counts, shares, 1, 3, 4)
    assert (one == draw_batches(chosen, codes, counts, shares, 1, 3, 4)).all()
    assert (one != draw_batches(chosen, codes, counts, shares, 1, 3, 5)).any()
    assert (one != draw_batches(chosen, codes, counts, shares, 1, 4, 4)).any()


@given(st.integers(1, 300), st.integers(0, 2**40), st.integers(0, 2**20))
def test_a_shuffle_is_a_bijection(size, seed, epoch):
    shuffle = new_shuffle(size, seed, epoch, 0, 0)
    assert sorted(shuffled(shuffle, i) for i in range(size)) == list(range(size))


@pytest.mark.parametrize("size", [2, 3, 4, 5])
def test_every_order_is_equally_likely(size):
    orders = Counter()
    for epoch in range(6000):
        shuffle = new_shuffle(size, 0, epoch, 0, 0)
        orders[tuple(shuffled(shuffle, i) for i in range(size))] += 1
    seen = [orders[order] for order in sorted(orders)]
    assert len(seen) == np.prod(np.arange(1, size + 1))
    assert chisquare(seen).pvalue > 1e-3


@pytest.mark.parametrize("size", [37, 1000])
def test_places_and_neighbours_look_random(size):
    shuffles = [new_shuffle(size, 1, epoch, 0, 0) for epoch in range(200)]
    orders = np.array([[shuffled(shuffle, i) for i in range(size)] for shuffle in shuffles])
    steps = np.bincount(((orders[:, 1:] - orders[:, :-1]) % size).ravel(), minlength=size)[1:]
    assert chisquare(steps).pvalue > 1e-3
    halves = (orders < size / 2)[:, : size // 2].mean()
    assert halves == pytest.approx(0.5, abs=0.02)


@pytest.mark.parametrize(("selected", "size", "count"), [(0, 4, 0), (3, 4, 1), (8, 4, 2), (11, 4, 2)])
def test_batches_of_an_epoch(selected, size, count):
    assert batch_count(selected, size) == count


@given(tables())
def test_weights_give_each_class_its_size_and_each_group_its_ratio(table):
    ratios, counts = table
    codes = np.repeat(np.arange(len(counts)), counts)
    weights = sample_weights(np.arange(len(codes)), codes, ratios, counts)
    sums = np.bincount(codes, weights=weights, minlength=len(counts)).reshape(ratios.shape)
    sizes = counts.reshape(ratios.shape).sum(axis=1)
    for row, size, ratio, present in zip(sums, sizes, ratios, counts.reshape(ratios.shape) > 0, strict=True):
        if ratio[present].sum() > 0:
            assert row.sum() == pytest.approx(size)
            assert row[present] == pytest.approx(size * ratio[present] / ratio[present].sum())
