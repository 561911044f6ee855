"""The rounds of a sieve, around classifiers whose answer to weights is known."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.literal import literal_selection

from fairsieve import Cells
from fairsieve.estimators._rounds import RoundSettings, find_best_round, run_rounds
from fairsieve.label_noise.weighting import _select_by_loss, _weigh_by_chance

N = 2000


def make_settings(fairness, **options):
    chosen = {"signal": "error", "step_size": 1.0, "tolerance": 0.05, "pos_label": None} | options
    return RoundSettings(fairness=fairness, **chosen)


def toy(reaction):
    """Cells, and a classifier that says yes to group b the oftener the more (yes, b) weighs."""
    rng = np.random.default_rng(0)
    score, group = rng.random(N), rng.integers(0, 2, N)
    label = (score + 0.1 * rng.normal(size=N) > 0.5).astype(int)
    cells = Cells.of(label, group)
    asked = []

    def ask(weights):
        weights = np.ones(N) if weights is None else weights
        asked.append(weights)
        share = weights[(label == 1) & (group == 1)].sum() / weights[label == 1].sum()
        low = 0.8 - reaction * (share - (group[label == 1] == 1).mean())
        yes = score > np.where(group == 1, low, 0.5)
        return np.column_stack([0.9 - 0.8 * yes, 0.1 + 0.8 * yes])

    return cells, ask, asked


@settings(max_examples=50)
@given(
    reaction=st.floats(0.5, 5.0),
    step_size=st.floats(0.2, 3.0),
    signal=st.sampled_from(["error", "loss"]),
)
def test_disparity_falls_however_strongly_the_classifier_reacts(reaction, step_size, signal):
    cells, ask, asked = toy(reaction)
    label_weights = _weigh_by_chance(ask(None), cells, np.zeros((2, 2)))
    rule = make_settings("equal_opportunity", signal=signal, step_size=step_size)
    rounds = run_rounds(ask, lambda *_: label_weights, cells, rule, 12)
    best = rounds[find_best_round(rounds, 0.05)]
    assert best.disparity < 0.75 * rounds[0].disparity
    assert best.accuracy >= rounds[0].accuracy
    assert len(asked) == len(rounds) + 1
    for each in rounds[1:]:
        assert (each.weights >= 0).all()
        assert each.ratios.sum(axis=1) == pytest.approx([1, 1])
        sums = np.bincount(cells.codes, weights=each.weights, minlength=4).reshape(2, 2)
        assert sums / sums.sum(axis=1, keepdims=True) == pytest.approx(each.ratios)  # Eq. 3


def test_rounds_end_when_the_weights_no_longer_change():
    cells, ask, asked = toy(1.0)
    everyone = Cells.of(cells.label_codes, np.zeros(N))
    label_weights = _weigh_by_chance(ask(None), everyone, np.zeros((2, 1)))
    rounds = run_rounds(
        ask, lambda *_: label_weights, everyone, make_settings("equalized_odds", tolerance=0.01), 9
    )
    assert len(rounds) == 2
    assert len(asked) == 3


def test_aimed_flips_use_the_papers_selection():
    rng = np.random.default_rng(0)
    cells = Cells.of(rng.integers(0, 2, 300), rng.integers(0, 2, 300))
    probabilities = rng.dirichlet([1, 1], 300)
    ratios = np.array([[0.6, 0.4], [0.3, 0.7]])
    losses = -np.log(probabilities[np.arange(300), cells.label_codes])
    expected, _ = literal_selection(losses, cells.label_codes, cells.group_codes, ratios, 0.8)
    assert np.flatnonzero(_select_by_loss(probabilities, cells, ratios, 0.8).kept).tolist() == expected
