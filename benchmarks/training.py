"""Whole training runs on the paper's synthetic setting, against the literal implementation.

2,000 samples, batch 100, 400 epochs, logistic regression. Times are medians of repeats, and ratios
are taken within this one process.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import torch
from rich.console import Console
from rich.table import Table
from timing import median_seconds

from fairsieve import fit, fit_seeds
from fairsieve.data import synthetic_splits
from fairsieve.data.noise import flip_group_targeted

sys.path.insert(0, str(Path(__file__).parents[1]))
from tests.literal import literal_training

SETTINGS = {"clean_ratio": 0.9, "epochs": 400, "warmup_epochs": 100, "batch_size": 100}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=9)
    arguments = parser.parse_args()
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

    started = time.perf_counter()
    literal()
    slow = time.perf_counter() - started
    one = median_seconds(lambda: fit(None, data, **SETTINGS), arguments.repeats)
    five = median_seconds(lambda: fit_seeds(None, data, seeds=range(5), **SETTINGS), arguments.repeats)
    started = time.perf_counter()
    fit(None, data, engine="autograd", **SETTINGS)
    autograd = time.perf_counter() - started
    table = Table(
        title=f"400 epochs over 2,000 samples, batch 100 (torch threads: {torch.get_num_threads()})"
    )
    for column in ("run", "seconds", "against"):
        table.add_column(column, justify="left" if column == "run" else "right")
    table.add_row("literal sequential implementation", f"{slow:.2f}", "1")
    table.add_row("fit, autograd", f"{autograd:.2f}", f"1/{slow / autograd:.1f} of the literal")
    table.add_row("fit, one seed", f"{one:.3f}", f"1/{slow / one:.0f} of the literal")
    table.add_row("fit_seeds, five seeds", f"{five:.3f}", f"{five / one:.2f} × one seed")
    Console().print(table)


if __name__ == "__main__":
    main()
