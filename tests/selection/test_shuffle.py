"""Shuffles that are functions, forwards and backwards."""

from __future__ import annotations

import numpy as np
import pytest

from fairsieve.selection.shuffle import shuffled, unshuffled


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
