"""Which rows to check next: laws of the choice, and its chances."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairsieve import CleanRatioEstimate, Samples
from fairsieve.errors import InvalidInputError
from fairsieve.label_noise.clean_ratio_estimate import Credibility


def problem(seed, rows, classes=2, groups=2, checked=None):
    """An estimate by which each label is wrong with a chance of its own."""
    rng = np.random.default_rng(seed)
    labels = np.append(np.arange(classes), rng.integers(0, classes, rows))[:rows]
    cells = Samples(np.zeros((rows, 1)), labels, rng.integers(0, groups, rows)).cells
    wrong = rng.random(rows)
    true_class = np.repeat(wrong[:, None] / max(cells.shape[0] - 1, 1), cells.shape[0], axis=1)
    true_class[np.arange(rows), cells.label_codes] = 1 - wrong
    nothing = np.zeros(cells.shape)
    return CleanRatioEstimate(
        0.9,
        (0.8, 1.0),
        nothing,
        nothing,
        False,
        Credibility(True, ""),
        true_class,
        cells,
        verified_codes=checked,
    )


@settings(max_examples=50, deadline=None)
@given(seed=st.integers(0, 10_000), rows=st.integers(2, 60), share=st.floats(0.01, 1.0))
def test_the_rows_are_open_and_differ_and_their_weights_have_mean_one(seed, rows, share):
    rng = np.random.default_rng(seed)
    checked = np.where(rng.random(rows) < 0.7, -1, 0)
    checked[rng.integers(rows)] = -1
    n = max(1, int(share * (checked < 0).sum()))
    chosen, weights = problem(seed, rows, checked=checked).next_to_verify(n, seed)
    assert len(set(chosen.tolist())) == len(chosen) == n
    assert (checked[chosen] < 0).all()
    assert (weights > 0).all()
    assert weights.mean() == pytest.approx(1.0)
    if n == (checked < 0).sum():
        assert weights == pytest.approx(np.ones(n))  # everybody


def test_every_row_is_chosen_as_often_as_its_weight_says():
    found = problem(0, 40, checked=np.where(np.arange(40) > 1, -1, 0))
    open_, doubt = np.arange(40) > 1, found.wrong * (1 - found.wrong)
    share = open_ * (0.75 / open_.sum() + 0.25 * doubt / doubt[open_].sum())
    times, draws, sums = np.zeros(40), 2000, []
    for seed in range(draws):
        rows, weights = found.next_to_verify(8, seed)
        times[rows] += 1
        sums.append(np.average(found.wrong[rows], weights=weights))
    assert times / draws == pytest.approx(8 * share, abs=0.04)
    assert np.mean(sums) == pytest.approx(found.wrong[open_].mean(), abs=0.03)


def test_the_choice_is_spread_over_the_cells():
    """Each cell has its share of the rows, give or take one."""
    found = problem(1, 2000, 3, 2)
    even = CleanRatioEstimate(
        *(getattr(found, name) for name in ARGUMENTS[:6]), np.eye(3)[found.cells.label_codes], found.cells
    )
    rows, _ = even.next_to_verify(200)
    counts = np.bincount(found.cells.codes[rows], minlength=6)
    assert np.abs(counts - found.cells.counts.reshape(-1) / 10).max() <= 1


ARGUMENTS = ["clean_ratio", "interval", "noise", "flip_rates", "aimed", "credible"]


@pytest.mark.parametrize(
    ("n", "seed", "message"),
    [
        (2.5, 0, "n must be a whole number"),
        (0, 0, "n must be"),
        (True, 0, "n must be a whole number"),
        ("3", 0, "n must be a whole number"),
        (41, 0, "n must be at most 40, the rows that nobody checked; got 41"),
        (3, -1, "seed must be a whole number"),
        (3, 0.5, "seed must be a whole number"),
    ],
)
def test_bad_input_is_named(n, seed, message):
    with pytest.raises(InvalidInputError, match=message):
        problem(0, 40).next_to_verify(n, seed)
