"""The model of the true classes: its scales, and what it learns."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from fairsieve import Samples
from fairsieve.data import flip_margin, make_synthetic
from fairsieve.label_noise.true_classes import TrueClassModel


def test_two_values_count_alike_whatever_they_are_called_and_however_rare():
    rng = np.random.default_rng(0)
    rare, usual, numbers = (rng.random(500) < 0.02) * 1.0, (rng.random(500) < 0.5) * 1.0, rng.normal(size=500)
    cells = Samples(np.zeros((500, 1)), np.arange(500) % 2, np.arange(500) // 250).cells
    columns = np.column_stack([rare, usual, numbers, np.full(500, 3.0)])
    found = TrueClassModel(np.zeros((500, 1)), columns, cells).features
    assert found.shape == (500, 3)  # a constant column says nothing
    assert np.ptp(found[:, :2], axis=0) == pytest.approx([1.0, 1.0])
    assert found[:, 2].std() == pytest.approx(1.0)
    renamed = TrueClassModel(np.zeros((500, 1)), columns * [-7.0, 100.0, 3.0, 1.0] + 2.0, cells).features
    assert renamed * [-1, 1, 1] == pytest.approx(found)


def test_it_says_more_than_the_checked_rows_alone_and_than_the_given_labels():
    """Where a fifth of the surest labels is flipped: by log loss of the true labels that nobody checked."""
    better = []
    for seed in range(4):
        data = make_synthetic(1000, seed=seed)
        given = flip_margin(data, 0.2)
        plain = LogisticRegression().fit(data.features, given.labels)
        cells = data.with_labels(given.labels).cells
        model = TrueClassModel(plain.decision_function(data.features)[:, None], data.features, cells)
        rows, left = np.split(np.random.default_rng(seed).permutation(1000), [100])
        values = model.fit(rows, data.labels[rows], np.ones(100))
        ours = model.chances(values)[left]
        alone = (
            LogisticRegression()
            .fit(data.features[rows], data.labels[rows])
            .predict_proba(data.features[left])
        )
        true = np.arange(900), data.labels[left]
        rate = np.where(given.labels == data.labels, 0.8, 0.2)[left]
        better.append([-np.log(chances).mean() for chances in (ours[true], alone[true], rate)])
    ours, alone, labels = np.mean(better, axis=0)
    assert ours < 0.6 * alone
    assert ours < 0.6 * labels


def test_weights_by_the_outcome_shift_the_constants_and_others_hardly_matter():
    """Wrong labels that were checked four times as often; and rows that were by a feature, at random weights."""
    data = make_synthetic(3000, seed=0)
    rng = np.random.default_rng(0)
    flipped = rng.random(3000) < 0.2
    given = np.where(flipped, 1 - data.labels, data.labels)
    model = TrueClassModel(np.zeros((3000, 1)), data.features, data.with_labels(given).cells)
    every = np.arange(3000)

    def estimate_wrong(chance):
        rows = np.flatnonzero(rng.random(3000) < chance)
        weights = 1 / chance[rows]
        values = model.fit(rows, data.labels[rows], weights / weights.mean())
        return 1 - model.chances(values)[every, given].mean()

    by_outcome = np.where(flipped, 0.4, 0.1)
    by_feature = np.where(data.features[:, 0] > 0, 0.4, 0.1)
    assert estimate_wrong(by_outcome) == pytest.approx(0.2, abs=0.04)
    assert estimate_wrong(by_feature) == pytest.approx(0.2, abs=0.04)
