"""How far training in float32 and in float64 come apart, after few epochs and after many.

python benchmarks/precision.py
"""

from __future__ import annotations

import argparse

import numpy as np
import torch
from torch import nn

from fairsieve import fit
from fairsieve.data import make_synthetic
from fairsieve.data.flips import flip_margin
from fairsieve.training.models import LogisticRegression


def network(features: int) -> nn.Module:
    return nn.Sequential(nn.Linear(features, 16), nn.ReLU(), nn.Linear(16, 1))


def apart(kind: str, epochs: int, seed: int) -> tuple[float, int]:
    """The largest difference of two weights, and how many samples only one of the two selected."""
    clean = make_synthetic(400, seed=seed)
    noisy = clean.with_labels(flip_margin(clean, 0.1).labels)
    torch.manual_seed(seed)
    first = {"linear": LogisticRegression, "network": network}[kind](noisy.features.shape[1])
    ends = [
        fit(
            first.to(dtype),
            noisy,
            "sample-selection",
            seed=seed,
            epochs=epochs,
            warmup_epochs=epochs // 4,
            clean_ratio=0.9,
            batch_size=20,
        )
        for dtype in (torch.float32, torch.float64)
    ]
    one, other = (nn.utils.parameters_to_vector(end.model.parameters()).detach().double() for end in ends)
    return float((one - other).abs().max()), len(np.setxor1d(ends[0].indices, ends[1].indices))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--seeds", type=int, default=3)
    seeds = range(parser.parse_args().seeds)
    print("| model | epochs | weights apart, at most | samples selected by one only, at most |")
    print("| --- | ---: | ---: | ---: |")
    for kind in ("linear", "network"):
        for epochs in (40, 400):
            weights, samples = zip(*(apart(kind, epochs, seed) for seed in seeds), strict=True)
            print(f"| {kind} | {epochs} | {max(weights):.1e} | {max(samples)} |", flush=True)


if __name__ == "__main__":
    main()
