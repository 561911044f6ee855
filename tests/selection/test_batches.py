"""Batches"""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare
from tests.support.literal import literal_shares, literal_shuffle
from tests.support.strategies import shuffles, tables

from fairsieve.selection.batches import (
    POINT,
    Draw,
    batch_count,
    batch_offsets,
    batch_shares,
    cell_quotas,
    draw_batches,
    share_edges,
    shuffled,
    unshuffled,
)

FILLED = tables().filter(lambda table: table[1].sum())


@given(FILLED, st.integers(1, 64))
def test_a_batch_is_filled_and_close_to_the_shares(table, size):
    """A batch is filled exactly, and each cell's part of it is within one of its share."""
    ratios, counts = table
    shares, quotas = batch_shares(ratios, counts, size), literal_shares(ratios, counts, size)
    assert shares.sum() == size
    assert (shares >= 0).all()
    assert (shares[counts == 0] == 0).all()
    assert (np.abs(shares - quotas) < 1).all()
    # Of two cells, the one with the larger share never has fewer samples in a batch.
    larger = quotas[:, None] > quotas + 1e-6
    assert (shares[:, None] >= shares)[larger].all()


@given(FILLED, st.integers(1, 64), st.data())
def test_other_names_give_the_same_shares(table, size, data):
    """Other names for classes and groups give the same shares, to within the rounding of one sample."""
    ratios, counts = table
    rows, columns = (data.draw(shuffles(length)) for length in ratios.shape)
    other = np.ix_(rows, columns)
    renamed = batch_shares(ratios[other], counts.reshape(ratios.shape)[other].ravel(), size)
    renamed = renamed.reshape(ratios.shape)
    shares = batch_shares(ratios, counts, size).reshape(ratios.shape)[rows][:, columns]
    assert np.abs(renamed - shares).max() <= 1
    remainders = np.sort(literal_shares(ratios, counts, size) % 1)
    if (np.diff(remainders) > 1e-6).all():  # no two cells are equally near to one more
        assert (renamed == shares).all()


@given(st.integers(0, 10**6), st.integers(1, 10**4))
def test_an_epoch_has_as_many_batches_as_are_filled(selected, size):
    """An epoch has as many whole batches as the selection fills, and one if it fills none; none of nobody."""
    count = batch_count(selected, size)
    assert count == (0 if selected == 0 else max(1, selected // size))


@st.composite
def many_cells(draw):
    """Ratios and counts of 2 to 500 cells, some of them empty, small, or without a ratio."""
    classes, groups = draw(st.sampled_from([(1, 2), (2, 2), (2, 4), (10, 3), (100, 5)]))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    counts = rng.integers(0, draw(st.sampled_from([2, 20, 5000])), classes * groups)
    counts[draw(st.integers(0, classes * groups - 1))] += 1
    weights = rng.exponential(size=(classes, groups)) ** draw(st.sampled_from([0, 1, 4])) + 1e-12
    weights[rng.random(weights.shape) < draw(st.sampled_from([0, 0.3]))] = 0
    weights[weights.sum(axis=1) == 0] = 1
    return weights / weights.sum(axis=1, keepdims=True), counts


def shares_of(draw):
    """How many samples of each cell every batch has, (batches, cells)."""
    ends = [np.zeros(draw.batches, np.int64), *[draw.ends(cell) for cell in range(len(draw.edges) - 1)]]
    return np.diff(ends, axis=0).T


@given(many_cells(), st.integers(1, 512), st.integers(0, 400), st.integers(0, 2**32), st.integers(0, 10**6))
def test_every_batch_and_the_epoch_round_each_quota_to_a_neighbour(table, size, batches, seed, epoch):
    """Each batch is full and has the floor or the ceiling of every quota; so has the whole epoch."""
    ratios, counts = table
    quotas = cell_quotas(ratios, counts, size)
    assert quotas == pytest.approx(literal_shares(ratios, counts, size), abs=1e-9)
    asked = Draw(share_edges(quotas), batch_offsets(batches, seed, epoch), seed, epoch)
    shares = shares_of(asked)
    assert (shares.sum(axis=1) == size).all()
    assert (shares[:, counts == 0] == 0).all()
    assert (np.abs(shares - quotas) < 1 + 1e-8).all()
    assert (np.abs(shares.sum(axis=0) - batches * quotas) < 1 + 1e-8 * (batches + 1)).all()
    assert (shares.sum(axis=0)[batches * quotas > 1.001] > 0).all()


@given(st.floats(0.01, 0.99), st.integers(1, 50), st.integers(0, 2**32))
def test_less_than_one_sample_an_epoch(share, batches, seed):
    """A cell whose share of an epoch is less than one sample comes in its turn, for twenty epochs on end."""
    edges = share_edges(np.array([share / batches, 1 - share / batches]))
    drawn = [Draw(edges, batch_offsets(batches, seed, epoch), seed, epoch) for epoch in range(20)]
    times = [shares_of(each)[:, 0].sum() for each in drawn]
    assert set(times) <= {0, 1}
    assert abs(sum(times) - 20 * share) < 3


@given(st.integers(1, 5000), st.integers(0, 2**32), st.integers(0, 10**6))
def test_offsets_are_evenly_spaced(batches, seed, epoch):
    """Offsets are evenly spaced, and those of a few batches on end are not all alike."""
    offsets = batch_offsets(batches, seed, epoch) / 2**POINT
    assert ((offsets >= 0) & (offsets < 1)).all()
    assert np.diff(np.sort(offsets)) == pytest.approx(np.full(batches - 1, 1 / batches), abs=1e-9)
    if batches >= 20:
        assert np.ptp(offsets[:10]) > 0.5


@st.composite
def draws(draw):
    """Chosen samples of a few cells, and what is drawn of them."""
    counts = np.array(draw(st.lists(st.integers(0, 12), min_size=1, max_size=5)))
    quotas = np.array([draw(st.sampled_from([0, 0.25, 1, 1.75, 4])) if count else 0 for count in counts])
    if last := int((quotas > 0).sum()):
        quotas[np.flatnonzero(quotas)[last - 1]] += -quotas.sum() % 1
    others = draw(st.integers(0, 5))  # samples that are not selected
    cells = [*np.repeat(np.arange(len(counts)), counts), *[0] * others]
    codes = np.array(draw(st.permutations(range(len(cells)))), int)
    selected = np.sort(codes[: counts.sum()])
    by_sample = np.zeros(len(cells), np.uint8)
    by_sample[codes] = cells
    batches, seed, epoch = draw(st.integers(1, 12)), draw(st.integers(0, 9)), draw(st.integers(0, 9))
    asked = Draw(share_edges(quotas), batch_offsets(batches, seed, epoch), seed, epoch)
    return selected, by_sample, counts, asked


@given(draws())
def test_a_batch_has_the_shares_of_the_cells(drawing):
    """Every batch has exactly the shares of the cells, of selected samples only."""
    selected, codes, counts, asked = drawing
    drawn = draw_batches(*drawing)
    assert drawn.shape == (asked.batches, asked.size)
    assert np.isin(drawn, selected).all()
    for batch, shares in zip(drawn, shares_of(asked), strict=True):
        assert np.bincount(codes[batch], minlength=len(counts)).tolist() == shares.tolist()


@given(draws())
def test_a_cell_is_gone_through_before_a_sample_comes_again(drawing):
    """Each cell is gone through whole before any of its samples comes again."""
    selected, codes, counts, _ = drawing
    drawn = draw_batches(*drawing)
    for cell, size in enumerate(counts):
        order = drawn[codes[drawn] == cell]
        for begin in range(0, len(order), max(1, size)):
            lap = order[begin : begin + size]
            assert len(set(lap.tolist())) == len(lap)
        times = np.bincount(order, minlength=len(codes))[selected[codes[selected] == cell]]
        assert size == 0 or times.max() - times.min() <= 1


@given(draws(), st.integers(1, 12))
def test_more_batches_begin_with_the_same_ones(drawing, more):
    """Batches are a function of selection, shares, seed and epoch; more of them begin with the same ones."""
    *rest, asked = drawing
    offsets = np.append(asked.offsets, batch_offsets(more, asked.seed, asked.epoch))
    longer = draw_batches(*rest, asked._replace(offsets=offsets))
    assert (longer[: asked.batches] == draw_batches(*drawing)).all()


KEYS = st.tuples(st.integers(0, 2**40), st.integers(0, 2**20), st.integers(0, 99), st.integers(0, 99))


@given(st.integers(1, 300), KEYS)
def test_a_shuffle_takes_every_place_once(size, key):
    """A shuffle takes every place once, and the next lap is another shuffle of the same places."""
    seed, epoch, cell, lap = key
    order = shuffled(size, seed, epoch, cell, lap * size, (lap + 2) * size, chunk=64)
    assert sorted(order[:size]) == sorted(order[size:]) == list(range(size))
    expected = [literal_shuffle(size, *key, position) for position in range(size)]
    assert order[:size].tolist() == expected


@given(st.integers(1, 2**48), KEYS, st.data())
def test_a_shuffle_backwards_finds_the_place_again(size, key, data):
    """A shuffle run backwards finds the place again, at any size."""
    seed, epoch, cell, lap = key
    position = data.draw(st.integers(0, size - 1))
    element = shuffled(size, seed, epoch, cell, lap * size + position, lap * size + position + 1)
    assert element.tolist() == [literal_shuffle(size, *key, position)]
    assert unshuffled(size, seed, epoch, cell, np.array([lap]), element).tolist() == [[position]]


@pytest.mark.parametrize("size", [2, 3, 5])
def test_every_order_is_equally_likely(size):
    orders = Counter()
    for epoch in range(3600):
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


def test_orders_do_not_change_between_versions():
    """Or a state that was saved would go on in another order."""
    assert shuffled(8, 3, 5, 1, 16, 24).tolist() == [3, 7, 6, 0, 1, 4, 5, 2]
    assert shuffled(12, 3, 5, 1, 24, 36).tolist() == [0, 4, 10, 1, 9, 3, 11, 7, 6, 5, 8, 2]
    far = 2 * 10**12
    assert shuffled(10**12, 3, 5, 1, far, far + 3).tolist() == [53921787645, 282740615231, 767340507939]
