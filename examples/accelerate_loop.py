"""Hugging Face Accelerate: your loop, with a loader of ours.

python examples/accelerate_loop.py
torchrun --nproc-per-node 2 examples/accelerate_loop.py    # two processes, the same model
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import torch
from accelerate import Accelerator
from torch.utils.data import TensorDataset

from fairsieve import equalized_odds_disparity
from fairsieve.adapters.accelerate import prepared_sieve
from fairsieve.data import flip_group_targeted, synthetic_splits
from fairsieve.metrics import accuracy


def train(
    *, epochs: int = 40, stop: int | None = None, save: Path | None = None, resume: Path | None = None
) -> tuple[dict[str, float], Any]:
    """Train; what the model comes to on the test data."""
    parts = synthetic_splits(seed=0)
    labels = flip_group_targeted(parts.train, 0.1).labels
    x, y = torch.from_numpy(parts.train.features).float(), torch.from_numpy(labels)
    accelerator = Accelerator(cpu=True)
    torch.manual_seed(0)
    model = torch.nn.Linear(x.shape[1], 2)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.005)
    model, optimizer = accelerator.prepare(model, optimizer)
    sieve, loader = prepared_sieve(
        accelerator,
        TensorDataset(x, y),
        labels,
        parts.train.groups,
        100 // accelerator.num_processes,
        clean_ratio=0.9,
        warmup_epochs=5,
    )
    if resume is not None:
        accelerator.load_state(str(resume))
    while sieve.sampler.epoch < (epochs if stop is None else stop):
        sieve.begin_epoch(accelerator.unwrap_model(model))
        for step, (features, targets) in enumerate(loader):
            losses = torch.nn.functional.cross_entropy(model(features), targets, reduction="none")
            sieve.observe(step, losses)
            optimizer.zero_grad()
            accelerator.backward(losses.mean() * sieve.weight(step))  # the mean over the global batch
            optimizer.step()
    if save is not None:
        accelerator.save_state(str(save))
    with torch.no_grad():
        guessed = accelerator.unwrap_model(model)(torch.from_numpy(parts.test.features).float())
    truth, groups = parts.test.labels, parts.test.groups
    found = {
        "accuracy": accuracy(truth, guessed.argmax(1).numpy()),
        "disparity": equalized_odds_disparity(truth, guessed.argmax(1).numpy(), sensitive_features=groups),
        "sum of weights": sum(value.detach().double().abs().sum().item() for value in model.parameters()),
    }
    return found, sieve


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--epochs", type=int, default=40)
    found, sieve = train(**vars(parser.parse_args()))
    if sieve.sampler.workers.rank == 0:
        print(", ".join(f"{name} {value:.4f}" for name, value in found.items()))


if __name__ == "__main__":
    main()
