"""Whole training runs on the paper's synthetic setting, against the literal implementation.

2,000 samples, batch 100, 400 epochs, logistic regression, torch on one thread. Times are medians of repeats,
after a first run where that compiles something, and ratios are taken within this one process. "steps
alone" is what torch takes for as many steps (forward, backward, Adam) with nothing around them.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import torch
from timing import median_seconds

from fairsieve import Samples, fit
from fairsieve.data import synthetic_splits
from fairsieve.data.flips import flip_group_targeted
from fairsieve.sampling.losses import cross_entropy
from fairsieve.training.models import LogisticRegression
from fairsieve_reproduction.methods.loop import fit_paper

sys.path.insert(0, str(Path(__file__).parents[1]))
from tests.support.literal import literal_training

SETTINGS = {"clean_ratio": 0.9, "epochs": 400, "warmup_epochs": 100, "batch_size": 100}


def measure(repeats: int = 9) -> dict[str, float]:
    """Seconds of whole runs."""
    train = synthetic_splits(0).train
    data = train.with_labels(flip_group_targeted(train, 0.1).labels)

    def literal() -> None:
        literal_training(
            data.features,
            data.labels,
            data.groups,
            clean_ratio=0.9,
            epochs=400,
            warmup=100,
            batch_size=100,
            rate=0.0005,
            step=0.0005,
            seed=0,
        )

    taken = fit(None, data, **SETTINGS).history.counts.sum(axis=(1, 2))
    steps = int((taken // SETTINGS["batch_size"]).sum())
    few = min(repeats, 3)  # of the slow ones
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # batches of a hundred are nothing to share
    found = {
        "literal": median_seconds(literal, 1, compiles=False),
        "steps alone": median_seconds(lambda: steps_alone(data, steps), few, compiles=False),
        "module": median_seconds(lambda: fit(LogisticRegression(3), data, **SETTINGS), few),
        "NumPy": median_seconds(lambda: fit(None, data, **SETTINGS), few),
        "compiled": median_seconds(lambda: fit_paper(data, **SETTINGS), repeats),
    }
    torch.set_num_threads(threads)
    return found


def steps_alone(data: Samples, steps: int) -> None:
    """So many steps of the same model, on batches that are there."""
    model = LogisticRegression(data.features.shape[1])
    optimizer = torch.optim.Adam(model.parameters(), lr=0.0005)
    x, y = torch.from_numpy(data.features).float(), torch.from_numpy(data.cells.label_codes)
    for batch in torch.randint(0, len(data), (steps, SETTINGS["batch_size"])):
        optimizer.zero_grad()
        cross_entropy(model(x[batch]), y[batch]).mean().backward()
        optimizer.step()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=9)
    found = measure(parser.parse_args().repeats)
    for name, seconds in found.items():
        print(f"{name:11} {seconds:8.3f} s, 1/{found['literal'] / seconds:.1f} of the literal implementation")


if __name__ == "__main__":
    main()
