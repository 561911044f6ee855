"""Shuffles that are functions, forwards and backwards."""

from __future__ import annotations

import pytest

from fairsieve.core.shuffle import inverse_factors, new_shuffle, shuffled, unshuffled


@pytest.mark.parametrize("size", [*range(1, 70), 127, 128, 129, 1000])
def test_backwards_undoes_forwards(size):
    for lap in range(3):
        shuffle = new_shuffle(size, 3, 5, 1, lap)
        inverses = inverse_factors(shuffle)
        order = [shuffled(shuffle, position) for position in range(size)]
        assert sorted(order) == list(range(size))
        assert [unshuffled(shuffle, inverses, element) for element in order] == list(range(size))
