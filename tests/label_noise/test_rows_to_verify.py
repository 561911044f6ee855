"""Which rows to check next: laws of the choice, and its chances."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairsieve import Samples
from fairsieve.label_noise.rows_to_verify import choose_rows


def problem(rng, rows, classes=2, groups=2):
    cells = Samples(np.zeros((rows, 1)), rng.integers(0, classes, rows), rng.integers(0, groups, rows)).cells
    return cells, rng.random(rows), rng.random(rows) ** 4


@settings(max_examples=50, deadline=None)
@given(seed=st.integers(0, 10_000), rows=st.integers(1, 60), share=st.floats(0.01, 1.0), known=st.booleans())
def test_the_rows_are_open_and_differ_and_their_weights_have_mean_one(seed, rows, share, known):
    rng = np.random.default_rng(seed)
    cells, wrong, information = problem(rng, rows)
    open_ = rng.random(rows) < 0.7
    open_[rng.integers(rows)] = True
    n = max(1, int(share * open_.sum()))
    chosen, weights = choose_rows(n, open_, wrong, cells, rng, information if known else None)
    assert len(set(chosen.tolist())) == len(chosen) == n
    assert open_[chosen].all()
    assert (weights > 0).all()
    assert weights.mean() == pytest.approx(1.0)
    if n == open_.sum():
        assert weights == pytest.approx(np.ones(n))  # everybody
    certain, even = choose_rows(n, open_, np.round(wrong), cells, rng)
    assert open_[certain].all()
    assert even == pytest.approx(np.ones(n))  # nothing is in doubt: at random


def test_every_row_is_chosen_as_often_as_its_weight_says():
    rng = np.random.default_rng(0)
    cells, wrong, information = problem(rng, 40)
    information[3] = 30.0  # told by far the most by this one
    open_ = np.arange(40) > 1
    share = 0.5 * open_ / open_.sum() + 0.5 * open_ * information / information[open_].sum()
    times, draws = np.zeros(40), 3000
    sums = []
    for _ in range(draws):
        rows, weights = choose_rows(8, open_, wrong, cells, rng, information)
        times[rows] += 1
        sums.append(np.average(wrong[rows], weights=weights))
    assert times[:2].tolist() == [0, 0]
    assert times[3] == draws
    others = np.flatnonzero(open_ & (np.arange(40) != 3))
    wanted = 7 * share[others] / share[others].sum()
    assert times[others] / draws == pytest.approx(wanted, abs=0.04)
    assert np.mean(sums) == pytest.approx(wrong[open_].mean(), abs=0.03)


def test_the_random_part_is_spread_over_the_cells_and_over_the_chances():
    """Each cell has its share of the rows, give or take one, and in it the lower and the higher chances."""
    rng = np.random.default_rng(1)
    cells, wrong, _ = problem(rng, 2000, 3, 2)
    even = np.ones(2000)  # every row would tell as much
    rows, _ = choose_rows(200, np.ones(2000, bool), wrong, cells, rng, even)
    counts = np.bincount(cells.codes[rows], minlength=6)
    assert np.abs(counts - cells.counts.reshape(-1) / 10).max() <= 1
    lower = (
        wrong[rows]
        < np.array([np.median(wrong[cells.codes == code]) for code in range(6)])[cells.codes[rows]]
    )
    by_cell = np.bincount(cells.codes[rows], weights=lower, minlength=6)
    assert np.abs(by_cell - counts / 2).max() <= 1
