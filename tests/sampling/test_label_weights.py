"""Chances of the true labels in the batch sampler: one-hot ones change nothing, and others are expectations."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.refusals import refused

from fairsieve import FairRobustBatchSampler, ShardedBatchSampler
from fairsieve.sampling.losses import cross_entropy, expected_losses

EXAMPLE = Path(__file__).parents[2] / "examples" / "verified_labels.py"


def problem(seed, classes=2, groups=2, n=60):
    rng = np.random.default_rng(seed)
    y, z = np.arange(n) % classes, rng.integers(0, groups, n)
    return y, z, torch.from_numpy(rng.normal(size=(n, classes)))


@settings(max_examples=30, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    classes=st.integers(2, 3),
    kind=st.sampled_from([FairRobustBatchSampler, ShardedBatchSampler]),
    fairness=st.sampled_from(["equalized_odds", "demographic_parity"]),
    signal=st.sampled_from(["loss", "error"]),
    observed=st.booleans(),
)
def test_one_hot_weights_of_the_given_labels_change_nothing(seed, classes, kind, fairness, signal, observed):
    y, z, outputs = problem(seed, classes)
    options = {
        "clean_ratio": 0.8, "warmup_epochs": 0, "step_size": 0.05, "fairness": fairness, "signal": signal,
    }  # fmt: skip
    weights = np.eye(classes)[y]
    pair = [kind.paper(y, z, 20, **options), kind.paper(y, z, 20, **options, label_weights=weights)]
    for _ in range(3):
        for sampler in pair:
            if observed:
                sampler.observe(np.arange(60), outputs)
                sampler.update()
            else:
                sampler.update(outputs)
        assert pair[0].indices.tolist() == pair[1].indices.tolist()
        assert pair[0].ratios.tolist() == pair[1].ratios.tolist()
        assert list(pair[0]) == list(pair[1])
        outputs = outputs.roll(7, dims=0)


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10_000), classes=st.integers(2, 3), single=st.booleans())
def test_losses_and_errors_are_expectations_over_the_classes(seed, classes, single):
    y, z, outputs = problem(seed, classes)
    outputs = outputs[:, 1] if single and classes == 2 else outputs
    weights = np.random.default_rng(seed).dirichlet(np.ones(classes), 60)
    options = {"clean_ratio": 1.0, "warmup_epochs": 0, "signal": "error"}
    sampler = FairRobustBatchSampler.paper(y, z, 20, **options, label_weights=weights)
    losses, signals = sampler._measured(outputs, cross_entropy)
    everyone = [torch.full((60,), c) for c in range(classes)]
    slow = sum(weights[:, c] * cross_entropy(outputs, everyone[c]).numpy() for c in range(classes))
    assert losses.numpy() == pytest.approx(slow, rel=1e-5)
    guessed = (outputs > 0).long() if outputs.ndim == 1 else outputs.argmax(1)
    wrong = 1 - weights[np.arange(60), guessed.numpy()]
    assert signals[0].numpy() == pytest.approx(wrong, rel=1e-5, abs=1e-6)
    assert sampler.plan.cells.label_codes.tolist() == weights.argmax(axis=1).tolist()
    assert sampler.label_weights.sum(dim=1).numpy() == pytest.approx(np.ones(60))


def test_an_impossible_class_of_infinite_loss_does_not_count():
    outputs = torch.tensor([[0.0, -torch.inf]])
    assert expected_losses(outputs, torch.tensor([[1.0, 0.0]]), cross_entropy).tolist() == [0.0]


@pytest.mark.parametrize(("weights", "message"), [
    (np.ones((60, 3)) / 3, r"of the shape \(samples, classes\), \(60, 2\); got float64 of the shape \(60, 3\)"),
    (np.full((60, 2), "x"), "label_weights must be numbers"),
    (np.ones((60, 2)), r"with the sum 1 in every row; row 0 is \[1\.0, 1\.0\]"),
    (np.tile([1.5, -0.5], (60, 1)), "must be chances, at least 0"),
    (np.tile([np.nan, 1.0], (60, 1)), "must be chances"),
])  # fmt: skip
@pytest.mark.parametrize("kind", [FairRobustBatchSampler, ShardedBatchSampler])
def test_bad_weights_are_named(kind, weights, message):
    y, z, _ = problem(0)
    refused(message, kind, y, z, 20, clean_ratio=1.0, label_weights=weights)


def test_the_example_of_a_network_profits_from_checked_rows():
    spec = importlib.util.spec_from_file_location("verified_labels_example", EXAMPLE)
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    found = example.train(checked=100, epochs=15)  # the groups' shares move for longer than that
    assert found["100 rows checked"][0] > found["labels as given"][0] + 0.1
