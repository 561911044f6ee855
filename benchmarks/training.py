"""Whole training runs on the paper's synthetic setting, against the literal implementation.

2,000 samples, batch 100, 400 epochs, logistic regression. Times are medians of repeats, and ratios
are taken within this one process.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path

from timing import median_seconds

from fairsieve import fit, fit_seeds
from fairsieve.data import synthetic_splits
from fairsieve.data.noise import flip_group_targeted

sys.path.insert(0, str(Path(__file__).parents[1]))
from tests.literal import literal_training

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

    return {
        "literal": once(literal),
        "autograd": once(lambda: fit(None, data, engine="autograd", **SETTINGS)),
        "one seed": median_seconds(lambda: fit(None, data, **SETTINGS), repeats),
        "five seeds": median_seconds(lambda: fit_seeds(None, data, seeds=range(5), **SETTINGS), repeats),
    }


def once(call: Callable[[], object]) -> float:
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=9)
    found = measure(parser.parse_args().repeats)
    for name, seconds in found.items():
        print(f"{name:10} {seconds:8.3f} s, 1/{found['literal'] / seconds:.1f} of the literal implementation")


if __name__ == "__main__":
    main()
