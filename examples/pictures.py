"""Pictures with wrong labels: augmentation, loader workers, a GPU if there is one, and a checkpoint.

    python examples/pictures.py [--epochs 20] [--workers 2] [--checkpoint pictures.pt]

The pictures are scikit-learn's digits. Group 1 are bold ones, and a fifth of their labels is wrong.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, Dataset

from fairsieve import FairRobustBatchSampler, equalized_odds_disparity


class Digits(Dataset):
    """Pictures that are shifted by up to one place when they are trained on."""

    def __init__(self, images: torch.Tensor, labels: torch.Tensor) -> None:
        self.images, self.labels = images, labels

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        shift = torch.randint(-1, 2, (2,)).tolist()
        return self.images[index].roll(shift, dims=(1, 2)), self.labels[index]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--checkpoint", type=Path)
    arguments = parser.parse_args()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    rng = np.random.default_rng(0)
    torch.manual_seed(0)
    pictures, true = load_digits(return_X_y=True)
    groups = (pictures.mean(axis=1) > np.median(pictures.mean(axis=1))).astype(int)  # bold or not
    images = torch.from_numpy(pictures / 16).float().reshape(-1, 1, 8, 8)
    train = rng.random(len(true)) < 0.6
    given = true.copy()
    wrong = train & (groups == 1) & (rng.random(len(true)) < 0.2)
    given[wrong] = (given[wrong] + rng.integers(1, 10, wrong.sum())) % 10

    model = nn.Sequential(
        nn.Conv2d(1, 32, 3, 1, 1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(512, 10)
    ).to(device)
    optimizer = torch.optim.Adam(model.parameters(), 3e-3)
    labels = torch.from_numpy(given[train])
    sampler = FairRobustBatchSampler(labels, groups[train], 64, clean_ratio=0.9, epochs=arguments.epochs)
    loader = DataLoader(Digits(images[train], labels), batch_sampler=sampler, num_workers=arguments.workers)
    if arguments.checkpoint and arguments.checkpoint.exists():
        state = torch.load(arguments.checkpoint, weights_only=True)
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        sampler.load_state_dict(state["sampler"])
    while sampler.epoch < arguments.epochs:
        sampler.update(model, images[train])  # judged as they are, without the shifts
        for features, targets in loader:
            loss = nn.functional.cross_entropy(model(features.to(device)), targets.to(device))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if arguments.checkpoint:
            states = {"model": model, "optimizer": optimizer, "sampler": sampler}
            torch.save({name: each.state_dict() for name, each in states.items()}, arguments.checkpoint)
    print(sampler.summary())
    with torch.no_grad():
        predicted = model(images[~train].to(device)).argmax(1).cpu().numpy()
    disparity = equalized_odds_disparity(true[~train], predicted, sensitive_features=groups[~train])
    print(f"accuracy {(predicted == true[~train]).mean():.3f}, disparity {disparity:.3f}")


if __name__ == "__main__":
    main()
