"""What the hand-written kernels of the linear model gain over the obvious alternatives.

The same loss of every sample, compiled, with our exp and log1p and with NumPy's; whole trainings in NumPy and in
compiled code. Ratios are taken within this one process.
"""

from __future__ import annotations

import argparse

import numba
import numpy as np
from timing import median_seconds

from fairsieve import fit
from fairsieve.data import make_synthetic
from fairsieve.training.fastmath import exp_negative, log1p_unit
from fairsieve.training.linear_trainer import stop_switching

SETTINGS = {"clean_ratio": 0.9, "epochs": 400, "warmup_epochs": 100, "batch_size": 100}


@numba.njit(error_model="numpy")
def losses_with_ours(logits, losses):
    for i in range(logits.size):
        losses[i] = max(logits[i], 0.0) + log1p_unit(exp_negative(-abs(logits[i])))


@numba.njit(error_model="numpy")
def losses_with_numpy(logits, losses):
    for i in range(logits.size):
        losses[i] = max(logits[i], 0.0) + np.log1p(np.exp(-abs(logits[i])))


def whole_numpy(logits, losses):
    np.logaddexp(0.0, logits, out=losses)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=9)
    repeats = parser.parse_args().repeats
    logits = np.random.default_rng(0).normal(size=100_000) * 4
    losses = np.empty_like(logits)
    found = {
        f"losses, {kernel.__name__}": median_seconds(
            lambda kernel=kernel: [kernel(logits, losses) for _ in range(10)], repeats
        )
        for kernel in (losses_with_ours, losses_with_numpy, whole_numpy)
    }
    data = make_synthetic(2000, seed=0)
    for kernels in ("numpy", "compiled"):
        stop_switching(kernels)
        found[f"training, {kernels}"] = median_seconds(lambda: fit(None, data, **SETTINGS), repeats)
    for name, seconds in found.items():
        print(f"{name:26} {seconds * 1000:9.2f} ms")


if __name__ == "__main__":
    main()
