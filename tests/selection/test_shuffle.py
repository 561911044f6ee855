"""Shuffles that are functions, forwards and backwards."""

from __future__ import annotations

import pytest

from fairsieve.selection.shuffle import _shuffled, inverse_factors, new_shuffle, unshuffled


@pytest.mark.parametrize("size", [*range(1, 70), 127, 128, 129, 1000])
def test_backwards_undoes_forwards(size):
    for lap in range(3):
        shuffle = new_shuffle(size, 3, 5, 1, lap)
        inverses = inverse_factors(shuffle)
        order = [_shuffled(shuffle, position) for position in range(size)]
        assert sorted(order) == list(range(size))
        assert [unshuffled(shuffle, inverses, element) for element in order] == list(range(size))


def test_orders_stay_what_they_were():
    """Or a state that was saved would go on in another order."""
    one, other = new_shuffle(12, 3, 5, 1, 2), new_shuffle(10**12, 3, 5, 1, 2)
    eight = new_shuffle(8, 3, 5, 1, 2)
    assert [_shuffled(eight, i) for i in range(8)] == [3, 7, 6, 0, 1, 4, 5, 2]
    assert [_shuffled(one, i) for i in range(12)] == [0, 4, 10, 1, 9, 3, 11, 7, 6, 5, 8, 2]
    assert [_shuffled(other, i) for i in range(3)] == [53921787645, 282740615231, 767340507939]
