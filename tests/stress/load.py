"""Fit many small models in one process: memory, open files and threads must not grow.

    python tests/stress/load.py --fits 10000

Ten kinds of fit in turn: the linear model in NumPy and compiled, several seeds, a module, weights, checkpoints,
and the scikit-learn classifier. Linux only, for it reads /proc. After a tenth of the fits (compiling, caches,
the allocator's own store) what the process holds is noted, and again at the end; it fails where files or
threads are more than they were, or memory has grown by more than 16 MiB and 2 KiB a fit.
"""

from __future__ import annotations

import argparse
import gc
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import torch

from fairsieve import FairRobustClassifier, fit, fit_seeds
from fairsieve.data import make_synthetic

SHORT = {"epochs": 4, "warmup_epochs": 1, "clean_ratio": 0.9, "batch_size": 20}
SPARE = 16 * 2**20
PER_FIT = 2**11


def kinds(folder: Path) -> list[Callable[[int], object]]:
    """Return the kinds of fits; each gets the number of the fit."""
    data = make_synthetic(60, seed=0)
    module = torch.nn.Linear(3, 2)
    weights = data.features[:, 0] ** 2 + 0.1

    def classify(number: int) -> object:
        model = FairRobustClassifier(clean_ratio=0.9, epochs=4, warmup_epochs=1, random_state=number)
        return model.fit(data.features, data.labels, sensitive_features=data.groups).suspects()

    def checkpointed(number: int) -> object:
        return fit(
            module, data, seed=number, checkpoint_dir=folder / str(number), checkpoint_every=2, **SHORT
        )

    def again(number: int) -> object:
        return fit(module, data, seed=number - 1, checkpoint_dir=folder / str(number - 1), **SHORT)

    return [
        lambda number: fit(None, data, seed=number, **SHORT),
        lambda number: fit(None, data, seed=number, compiled=True, **SHORT),
        lambda number: fit_seeds(None, data, seeds=[number, number + 1], **SHORT),
        lambda number: fit(torch.nn.Linear(3, 2), data, seed=number, **SHORT),
        lambda number: fit(None, data, "lr", seed=number, **SHORT),
        lambda number: fit(None, data, seed=number, sample_weight=weights, **SHORT),
        lambda number: fit(None, make_synthetic(60, seed=number), evaluation=data, **SHORT),
        checkpointed,
        again,
        classify,
    ]


def held() -> dict[str, int]:
    """Return the memory, open files and threads of this process."""
    gc.collect()
    status = Path("/proc/self/status").read_text().splitlines()
    values = {line.split(":")[0]: line.split()[1] for line in status if line.startswith(("VmRSS", "Threads"))}
    files = len(list(Path("/proc/self/fd").iterdir()))
    return {"memory": int(values["VmRSS"]) * 1024, "files": files, "threads": int(values["Threads"])}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--fits", type=int, default=10_000)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    began, first = time.perf_counter(), {}
    with tempfile.TemporaryDirectory(prefix="fairsieve-load-") as scratch:
        fits = kinds(Path(scratch))
        for number in range(arguments.fits):
            fits[number % len(fits)](number)
            if number + 1 == max(len(fits), arguments.fits // 10):
                first, after = held(), number + 1
    last = held()
    print(f"after {after:,} fits: {first}")
    print(f"after {arguments.fits:,} fits: {last}")
    growth = last["memory"] - first["memory"]
    print(
        f"{growth / 2**20:+.1f} MiB, {growth / (arguments.fits - after):+.0f} bytes a fit; "
        f"{time.perf_counter() - began:.0f} s"
    )
    grown = [name for name in ("files", "threads") if last[name] > first[name]]
    if growth > SPARE + PER_FIT * arguments.fits:
        grown.append("memory")
    if grown:
        sys.exit(f"grew: {', '.join(grown)}")


if __name__ == "__main__":
    main()
