"""Doubts of labels, beside a version that says them sample by sample."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from fairsieve import FairRobustBatchSampler
from fairsieve.sampling.doubt import ABOUT, FEW, LITTLE, Doubt
from fairsieve.selection.cells import Cells
from fairsieve.selection.epoch import Plan


def literal_doubts(logits, labels, groups, counts):
    """Doubts after one epoch: above 0 where the label is believed little and the likeliest other one is believed."""
    classes = len(counts)
    of_class = [(sum(counts[c]) + 1) / (counts.sum() + classes) for c in range(classes)]
    freed = []
    for row, group in zip(logits, groups, strict=True):
        everyone = sum(counts[c][group] for c in range(classes))
        share = [(counts[c][group] + FEW * of_class[c]) / (everyone + FEW) for c in range(classes)]
        odds = [math.exp(row[c]) / share[c] * of_class[c] for c in range(classes)]
        freed.append([each / sum(odds) for each in odds])
    typical = np.zeros(counts.shape)
    for c in range(classes):
        of_all = [row[c] for row, label in zip(freed, labels, strict=True) if label == c]
        for g in range(counts.shape[1]):
            own = [row[c] for row, *cell in zip(freed, labels, groups, strict=True) if cell == [c, g]]
            mean = sum(of_all) / len(of_all) if of_all else 0.0
            typical[c, g] = max((sum(own) + FEW * mean) / (len(own) + FEW), 1e-30)
    doubts = []
    for row, label, group in zip(freed, labels, groups, strict=True):
        others = [c for c in range(classes) if c != label]
        likeliest = max(row[c] for c in others)
        rival = max(row[c] / typical[c, group] for c in others if row[c] == likeliest)
        little = math.log(typical[label, group] / LITTLE / row[label])
        doubts.append(min(little, math.log(rival / ABOUT)))
    return doubts


@given(st.integers(0, 10**6), st.integers(2, 4), st.integers(1, 3), st.booleans())
def test_a_label_is_doubted_beside_what_is_typical_of_its_cell(seed, classes, groups, selects):
    """Beliefs, rivals and doubts are those of the literal version, from logits of any size.

    What the group gives away is what it gives away in the batches, where some are left out and groups have weights.
    """
    rng = np.random.default_rng(seed)
    labels = np.r_[np.arange(classes), rng.integers(classes, size=40)]
    columns = rng.integers(groups, size=len(labels))
    logits = rng.normal(0, rng.choice([0.1, 1.0, 5.0]), (len(labels), classes))
    cells = Cells.of(labels, columns, group_values=list(range(groups)))
    plan = Plan(cells, 4, step_size=None, balance=0, clean_ratio=0.7, warmup_epochs=0)
    if selects:
        plan.update(rng.random(len(labels)))
    doubt, outputs = Doubt(plan), torch.from_numpy(logits)
    doubt.learn_typical(doubt.rows(outputs)[0])
    found = doubt.scores(doubt.rows(outputs))
    trained = plan.quotas.reshape(cells.shape) / plan.quotas.sum() * len(labels)
    wanted = literal_doubts(logits, labels, columns, trained)
    assert found.numpy() == pytest.approx(wanted, abs=1e-6)


@given(st.integers(0, 10**6))
def test_one_logit_is_doubted_as_the_two_that_it_stands_for(seed):
    """A logit of the second class gives the same beliefs and rivals as zero beside it."""
    rng = np.random.default_rng(seed)
    labels, columns = np.r_[0, 1, rng.integers(2, size=30)], np.r_[0, 1, rng.integers(2, size=30)]
    logits = torch.from_numpy(rng.normal(0, 2, len(labels)))
    doubt = Doubt(Plan(Cells.of(labels, columns), 4, step_size=None))
    both = torch.stack([torch.zeros_like(logits), logits], dim=1)
    doubt.learn_typical(doubt.rows(both)[0])
    assert torch.allclose(doubt.rows(logits), doubt.rows(both))


@pytest.mark.parametrize("groups", [1, 2])
def test_a_rare_class_is_foreseen_no_more_often_for_the_doubt(groups):
    """Samples that are likelier than others to be of a rare class are not doubted for it: nearly all labels stay."""
    rng = np.random.default_rng(4)
    logits, columns = rng.normal(-4, 1.5, 4000), rng.integers(groups, size=4000)
    labels = (rng.random(4000) < 1 / (1 + np.exp(-logits))).astype(int)
    sampler = FairRobustBatchSampler(labels, columns, 50, warmup_epochs=0)
    sampler.update(torch.from_numpy(logits))
    assert 0.02 < labels.mean() < 0.08
    assert len(sampler.indices) > 0.97 * len(labels)
    assert labels[sampler.indices].mean() < 1.1 * labels.mean()
