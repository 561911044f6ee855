"""What is computed, as checksums and weights: to compare threads, versions of torch, and machines.

    python -m tests.support.fingerprints > here.json           # and elsewhere
    python -m tests.support.fingerprints here.json there.json  # what differs, and by how much

``exact`` is promised to be the same everywhere; ``trained`` only on one machine with one version of torch and
NumPy. THREADS says how many threads torch and the seeds of a fit may use.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch

from fairsieve import Plan, fit, fit_seeds, select
from fairsieve.data import make_synthetic
from fairsieve.data.corruption.flips import flip_margin
from fairsieve.selection.cells import Cells

SHORT: dict[str, Any] = {"epochs": 20, "warmup_epochs": 5, "clean_ratio": 0.9, "batch_size": 50}


def checksum(*arrays: Any) -> str:
    """A short name of bits."""
    contents = (np.ascontiguousarray(np.asarray(array)).tobytes() for array in arrays)
    return hashlib.sha256(b"".join(contents)).hexdigest()[:16]


def problem(samples: int, seed: int) -> tuple[Any, Any, Any]:
    """Losses with many equal ones, labels and groups, by integers alone: the same everywhere."""
    rng = np.random.Generator(np.random.PCG64(seed))
    losses = rng.integers(0, 50_000, samples).astype(np.float32) / 2**16
    return losses, rng.integers(0, 3, samples), rng.integers(0, 4, samples)


def exact() -> dict[str, str]:
    """Selection and plans, on the CPU and where there is one on a GPU."""
    found = {}
    for samples in (1_000, 600_000):  # in one thread, and in two
        losses, labels, groups = problem(samples, samples)
        ratios = np.full((3, 4), 0.25)
        chosen = select(losses, labels, groups, ratios=ratios, clean_ratio=0.7)
        found[f"selection of {samples:,}"] = checksum(chosen.indices, chosen.counts)
        if torch.cuda.is_available():
            tensors = [torch.from_numpy(array).cuda() for array in (losses, labels, groups)]
            on_device = select(*tensors, ratios=ratios, clean_ratio=0.7)
            indices = on_device.indices.cpu().numpy().astype(chosen.indices.dtype)
            found[f"selection of {samples:,}, on a GPU"] = checksum(indices, np.asarray(on_device.counts))
        plan = Plan(Cells.of(labels, groups), 100, clean_ratio=0.7, step_size=0.01, seed=3)
        parts = []
        for epoch in range(3):
            moved = np.roll(losses, epoch)
            plan.update(moved, np.stack([moved] * len(plan.comparisons.targets)))
            parts += [plan.batches(), plan.ratios.copy(), plan.indices.copy()]
            plan.epoch += 1
        found[f"three epochs of {samples:,}"] = checksum(*parts)
    return found


def trained() -> dict[str, list[float]]:
    """Weights after training, by both engines, alone and side by side, in both precisions."""
    clean = make_synthetic(400, seed=0)
    data = clean.with_labels(flip_margin(clean, 0.1).labels)
    torch.manual_seed(0)
    network = torch.nn.Sequential(torch.nn.Linear(3, 32), torch.nn.Tanh(), torch.nn.Linear(32, 2))
    found = {
        "compiled": [fit(None, data, **SHORT)],
        "compiled, three seeds": fit_seeds(None, data, seeds=range(3), **SHORT),
        "autograd": [fit(None, data, engine="autograd", **SHORT)],
        "autograd, double": [fit(torch.nn.Linear(data.features.shape[1], 2).double(), data, **SHORT)],
        "autograd, a network": [fit(network, data, **SHORT)],
    }
    found = {name: [fitted.model for fitted in several] for name, several in found.items()}
    found["classifier"] = [classifier_of(data)]
    return {
        name: [
            float(v) for model in models for p in model.parameters() for v in p.detach().double().reshape(-1)
        ]
        for name, models in found.items()
    }


def classifier_of(data: Any) -> torch.nn.Module:
    """What the scikit-learn classifier trains."""
    from fairsieve import FairRobustClassifier

    model = FairRobustClassifier(epochs=20, warmup_epochs=5, random_state=0)
    module: torch.nn.Module = model.fit(data.features, data.labels, sensitive_features=data.groups).module_
    return module


def fingerprints() -> dict[str, Any]:
    """All of it, and with what it was made."""
    made = {"torch": torch.__version__, "numpy": np.__version__, "threads": torch.get_num_threads()}
    return {"made with": made, "exact": exact(), "trained": trained()}


def differences(one: dict[str, Any], other: dict[str, Any]) -> dict[str, float | bool]:
    """By name: whether what is exact differs, and how far apart weights are at most."""
    found: dict[str, float | bool] = {}
    for name in one["exact"].keys() & other["exact"].keys():
        found[name] = one["exact"][name] != other["exact"][name]
    for name in one["trained"].keys() & other["trained"].keys():
        found[name] = float(np.abs(np.subtract(one["trained"][name], other["trained"][name])).max())
    return found


if __name__ == "__main__":
    if sys.argv[1:]:
        first, second = (json.loads(Path(path).read_text()) for path in sys.argv[1:3])
        print(first["made with"], second["made with"])
        for title, difference in sorted(differences(first, second).items()):
            print(f"{title:40} {difference}")
    else:
        torch.set_num_threads(int(os.environ.get("THREADS", "1")))
        print(json.dumps(fingerprints()))
