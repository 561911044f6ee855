"""A neural network that profits from labels somebody checked: ``label_weights`` in a plain PyTorch loop.

python examples/verified_labels.py
python examples/verified_labels.py --checked 50
"""

from __future__ import annotations

import argparse

import numpy as np
import torch
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, TensorDataset

from fairsieve import FairRobustBatchSampler, equalized_odds_disparity, estimate_clean_ratio
from fairsieve.data import flip_margin, make_synthetic
from fairsieve.metrics import accuracy


def train(*, checked: int = 200, epochs: int = 60, seed: int = 0) -> dict[str, tuple[float, float]]:
    """Train a network on the labels as they are, and one on what the checked rows say; test both."""
    data, test = make_synthetic(2000, seed=seed), make_synthetic(4000, seed=seed + 1)
    given = flip_margin(data, 0.15).labels  # wrong where they look surest: nothing but checks can tell
    verified = np.full(len(data), None, dtype=object)
    rows = np.random.default_rng(seed).permutation(len(data))[:checked]
    verified[rows] = data.labels[rows]
    found = estimate_clean_ratio(
        data.features, given, sensitive_features=data.groups, verified_labels=verified, random_state=seed
    )
    own = np.eye(2)[given]
    return {
        name: _train_network(data, given, weights, test, epochs, seed)
        for name, weights in (("labels as given", own), (f"{checked} rows checked", found.true_class))
    }


def _train_network(data, given, weights, test, epochs, seed):
    """Train a small network on the chances of each true label; return accuracy and disparity."""
    torch.manual_seed(seed)
    x = torch.from_numpy(data.features).float()
    model = torch.nn.Sequential(torch.nn.Linear(x.shape[1], 16), torch.nn.ReLU(), torch.nn.Linear(16, 2))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.003)
    sampler = FairRobustBatchSampler(
        given,
        data.groups,
        100,
        clean_ratio=1.0,
        epochs=epochs,
        label_weights=weights,
        seed=seed,
    )
    loader = DataLoader(TensorDataset(x, sampler.label_weights), batch_sampler=sampler)
    for _ in range(epochs):
        sampler.update(model, x)
        for features, chances in loader:
            optimizer.zero_grad()
            cross_entropy(model(features), chances).backward()
            optimizer.step()
    with torch.no_grad():
        guessed = model(torch.from_numpy(test.features).float()).argmax(1).numpy()
    return (
        accuracy(test.labels, guessed),
        equalized_odds_disparity(test.labels, guessed, sensitive_features=test.groups),
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--checked", type=int, default=200)
    parser.add_argument("--epochs", type=int, default=60)
    for name, (right, unfair) in train(**vars(parser.parse_args())).items():
        print(f"{name}: accuracy {right:.3f}, equalized odds disparity {unfair:.3f}")
