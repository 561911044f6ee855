"""How far labels can be trusted: counts and chances against their definitions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairsieve.label_noise.true_counts import (
    chance_right,
    scaled_rates,
    transitions,
    true_sums,
)
from fairsieve.selection.cells import Cells


def drawn(seed, classes, groups, count=400):
    """Cells with every class in every group, probabilities of labels, and flip rates below a third."""
    rng = np.random.default_rng(seed)
    every = np.arange(classes * groups)
    cell = np.concatenate([every, rng.integers(0, classes * groups, count - len(every))])
    cells = Cells.of(cell // groups, cell % groups)
    return cells, rng.dirichlet(np.ones(classes), count), rng.uniform(0, 0.3, (classes, groups))


SHAPES = {"seed": st.integers(0, 2**32 - 1), "classes": st.integers(2, 4), "groups": st.integers(1, 3)}


@given(**SHAPES)
def test_true_counts_follow_from_observed_ones(seed, classes, groups):
    _, _, rates = drawn(seed, classes, groups)
    true = np.random.default_rng(seed).uniform(1, 100, (classes, groups, 2))
    table = transitions(rates)
    assert table.sum(axis=2) == pytest.approx(np.ones((groups, classes)))
    observed = np.zeros_like(true)
    for z in range(groups):
        for i in range(classes):
            for j in range(classes):
                stays = 1 - rates[i, z] if i == j else rates[i, z] / (classes - 1)
                observed[j, z] += stays * true[i, z]
    assert true_sums(observed, table) == pytest.approx(true)


@given(**SHAPES)
def test_the_chance_of_a_right_label_is_bayes(seed, classes, groups):
    cells, true, rates = drawn(seed, classes, groups)
    table = transitions(rates)
    labels = np.array([p @ table[z] for p, z in zip(true, cells.group_codes, strict=True)])
    right, mass = chance_right(labels, cells, table)
    for n in range(0, len(cells), 20):
        y, z = cells.label_codes[n], cells.group_codes[n]
        assert right[n] == pytest.approx(true[n, y] * (1 - rates[y, z]) / labels[n, y], abs=1e-4)
    sums = np.bincount(cells.codes, weights=mass, minlength=cells.counts.size).reshape(cells.shape)
    counts = cells.counts.astype(float)
    assert sums == pytest.approx(np.maximum(true_sums(counts, table), 0.05 * counts))


@settings(max_examples=50)
@given(noise=st.floats(0.01, 0.2), **SHAPES)
def test_scaled_rates_give_the_share_asked_for(noise, seed, classes, groups):
    cells, _, rates = drawn(seed, classes, groups)
    scaled = scaled_rates(rates, noise, cells)
    true = true_sums(cells.counts.astype(float), transitions(scaled))
    assert (scaled * true).sum() / len(cells) == pytest.approx(noise, abs=0.02)
    assert scaled / scaled.max() == pytest.approx(rates / rates.max())
    assert scaled_rates(np.zeros_like(rates), noise, cells) == pytest.approx(np.full(rates.shape, noise))
