"""The default fit on a GPU: time, and the same selection as the CPU for the same losses.

    python benchmarks/fit_gpu.py --rows 10000000 --columns 100 --out benchmarks/results/fit_gpu.json

Prints and stores the seconds of a first and of a second fit, what they are made of, and the same fit on the CPU at
a tenth of the rows with how many of the selected samples are the same.
"""

from __future__ import annotations

import argparse
import json
import platform
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import torch

from fairsieve import FairRobustClassifier
from fairsieve.selection.cells import Cells, as_array
from fairsieve.selection.epoch import Plan


def problem(rows: int, columns: int, seed: int = 0) -> tuple[Any, Any, Any]:
    """Draw features, labels with a tenth of them flipped, and two groups."""
    rng = np.random.default_rng(seed)
    features = rng.standard_normal((rows, columns), dtype=np.float32)
    groups = (features[:, 0] + rng.standard_normal(rows, dtype=np.float32) > 0).astype(np.int8)
    scores = features @ rng.standard_normal(columns, dtype=np.float32) / 3 + groups / 2
    labels = (scores + rng.logistic(size=rows).astype(np.float32) > 0).astype(np.int8)
    flipped = rng.random(rows) < 0.1
    return features, np.where(flipped, 1 - labels, labels), groups


def fit(data: tuple[Any, Any, Any], device: str | None) -> tuple[float, FairRobustClassifier]:
    """Fit once; return the seconds and the model."""
    features, labels, groups = data
    model = FairRobustClassifier(clean_ratio=0.9, device=device)
    started = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(features, labels, sensitive_features=groups)
    return time.perf_counter() - started, model


def same_selection(data: tuple[Any, Any, Any], model: FairRobustClassifier, device: str) -> bool:
    """Whether the GPU selects the same samples as the CPU for the same losses."""
    features, labels, groups = data
    scores = model.decision_function(features)
    losses = np.logaddexp(0, np.where(labels == 1, -scores, scores))
    plans = [Plan(Cells.of(labels, groups), 100, clean_ratio=0.9, warmup_epochs=0) for _ in range(2)]
    plans[0].update(losses)
    plans[1].update(torch.from_numpy(losses).to(device))
    return bool((plans[0].indices == as_array("indices", plans[1].indices)).all())


def main() -> None:
    """Measure and store."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--columns", type=int, default=100)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args()
    small = problem(asked.rows // 10, asked.columns)
    fit(problem(20_000, asked.columns), asked.device)  # start the device
    seconds_small, on_device = fit(small, asked.device)
    seconds_cpu, on_cpu = fit(small, None)
    common = np.intersect1d(on_device.sample_indices_, on_cpu.sample_indices_).size
    found: dict[str, Any] = {
        "device": torch.cuda.get_device_name() if asked.device == "cuda" else platform.processor(),
        "torch": torch.__version__,
        "columns": asked.columns,
        "rows of the comparison": len(small[1]),
        "seconds there": seconds_small,
        "seconds on the CPU": seconds_cpu,
        "largest difference of coefficients": float(np.abs(on_device.coef_ - on_cpu.coef_).max()),
        "selected by both": common / max(len(on_cpu.sample_indices_), 1),
        "same selection for the same losses": same_selection(small, on_cpu, asked.device),
    }
    print(json.dumps(found, indent=1), flush=True)
    large = problem(asked.rows, asked.columns)
    found |= {"rows": asked.rows, "seconds": [fit(large, asked.device)[0] for _ in range(2)]}
    if asked.device == "cuda":
        found["GPU memory, GB"] = torch.cuda.max_memory_allocated() / 1e9
    text = json.dumps(found, indent=1)
    print(text)
    if asked.out is not None:
        asked.out.write_text(text + "\n")


if __name__ == "__main__":
    main()
