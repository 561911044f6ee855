"""Training on data that do not fit in memory, under a limit that the system enforces. Linux.

    python benchmarks/larger_than_memory.py          # 4 GiB of features, 256 MiB of memory
    python benchmarks/larger_than_memory.py --samples 65536 --limit 64

Features, labels and groups are files, mapped and read by a map-style dataset item by item; the losses that
the sampler keeps are files too. What the process allocates (mapped files do not count, the system may drop
their pages) is bounded to ``--limit`` MiB above what Python and torch take: beyond it,
allocating fails. The losses of all samples in chunks, then epochs from running losses, some steps in each.
Prints a line of JSON; memory in MiB. The last number is what the sampler alone takes for ten million samples.
"""

from __future__ import annotations

import argparse
import json
import resource
import tempfile
import threading
import time
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.lib.format import open_memmap
from numpy.typing import NDArray
from torch.utils.data import DataLoader, Dataset

from fairsieve import FairRobustBatchSampler, sample_losses
from selection import status

MIB = 2**20
OPTIONS = {"clean_ratio": 0.9, "warmup_epochs": 0}


class Mapped(Dataset[tuple[torch.Tensor, int, int]]):
    """Features, label and index of a sample, read from files when asked for."""

    def __init__(self, folder: Path) -> None:
        self.features, self.labels, self.groups = (
            np.load(folder / f"{name}.npy", mmap_mode="r") for name in ("features", "labels", "groups")
        )

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int, int]:
        return torch.from_numpy(self.features[index].copy()), int(self.labels[index]), index


class Peak:
    """The most that the process held at any time of what it allocated, looked at every few milliseconds."""

    def __enter__(self) -> Peak:
        self.bytes, self.ended = status("RssAnon"), threading.Event()
        self.thread = threading.Thread(target=self.watch)
        self.thread.start()
        return self

    def watch(self) -> None:
        while not self.ended.wait(0.005):
            self.bytes = max(self.bytes, status("RssAnon"))

    def __exit__(self, *_: object) -> None:
        self.ended.set()
        self.thread.join()


def write(folder: Path, samples: int, features: int) -> None:
    """Files of data, a chunk at a time."""
    folder.mkdir()
    rng = np.random.default_rng(0)
    x = open_memmap(folder / "features.npy", "w+", np.float32, (samples, features))
    y, z = (open_memmap(folder / f"{name}.npy", "w+", np.uint8, (samples,)) for name in ("labels", "groups"))
    for first in range(0, samples, 4096):
        part = slice(first, min(first + 4096, samples))
        x[part] = rng.standard_normal((part.stop - first, features), dtype=np.float32)
        y[part] = x[part, 0] + rng.normal(size=part.stop - first) > 0
        z[part] = rng.integers(0, 2, part.stop - first)


def train(folder: Path, *, epochs: int, steps: int, chunk_size: int) -> dict[str, Any]:
    """Losses in chunks, epochs, and some steps in each."""
    data = Mapped(folder)
    torch.manual_seed(0)
    model = torch.nn.Linear(data.features.shape[1], 2)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.002)
    sampler = FairRobustBatchSampler(data.labels, data.groups, 100, folder=folder / "losses", **OPTIONS)
    loader = DataLoader(data, batch_sampler=sampler)
    before = sample_losses(model, data, chunk_size=chunk_size)
    for epoch in range(epochs):
        if epoch == 0:
            sampler.update_losses(before)
        else:
            sampler.refresh(model, data, chunk_size=chunk_size)
            sampler.update()
        for features, labels, where in islice(loader, steps):
            losses = torch.nn.functional.cross_entropy(model(features), labels, reduction="none")
            sampler.observe_losses(where, losses)
            optimizer.zero_grad()
            losses.mean().backward()
            optimizer.step()
    after = sampler.running.losses
    return {
        "selected": len(sampler.indices),
        "loss before": before.mean().item(),
        "after": float(after.mean()),
    }


def limited(folder: Path, limit: int) -> int:
    """Allow ``limit`` bytes more than now, and show that the features do not fit; what is allowed."""
    allowed = status("VmData") + limit
    resource.setrlimit(resource.RLIMIT_DATA, (allowed, allowed))
    try:
        np.array(np.load(folder / "features.npy", mmap_mode="r"))
    except MemoryError:
        return allowed
    raise SystemExit("the features fit into memory: raise --samples or lower --limit")


def bytes_a_sample(folder: Path, samples: int) -> float:
    """What a sampler over mapped labels takes at the peak of an epoch: observed, updated and gone through."""
    labels, groups = (open_memmap(folder / f"{name}.npy", "w+", np.uint8, (samples,)) for name in "yz")
    rng = np.random.default_rng(0)
    parts = [slice(first, first + MIB) for first in range(0, samples, MIB)]
    for part in parts:
        for array in (labels, groups):
            array[part] = rng.integers(0, 2, len(array[part]))
    held = status("RssAnon")
    sampler = FairRobustBatchSampler(labels, groups, 1000, folder=folder / "kept", **OPTIONS)
    for _ in range(2):
        Path("/proc/self/clear_refs").write_text("5")  # the peak is what is held now
        for part in parts:
            where: NDArray[np.int64] = np.arange(part.start, min(part.stop, samples))
            sampler.observe_losses(where, torch.from_numpy(rng.exponential(size=len(where))))
        sampler.update()
        for _ in sampler.batches():
            pass
    return (status("VmHWM") - status("RssFile") - held) / samples  # the files' pages are all there by now


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--samples", type=int, default=MIB)
    parser.add_argument("--features", type=int, default=1024)
    parser.add_argument("--limit", type=int, default=256, help="MiB")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument(
        "--alone", type=int, default=10**7, help="samples of the sampler alone; 0 leaves it out"
    )
    parser.add_argument("--folder", type=Path, help="where the files go for a while; a temporary folder")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory(dir=arguments.folder) as scratch:
        small, large = Path(scratch) / "small", Path(scratch) / "large"
        write(small, 1000, 1)
        train(small, epochs=2, steps=2, chunk_size=1024)  # compiles what will be needed
        found: dict[str, Any] = {}
        if arguments.alone:
            found["sampler alone, bytes a sample"] = round(bytes_a_sample(Path(scratch), arguments.alone), 1)
        write(large, arguments.samples, arguments.features)
        size = sum(file.stat().st_size for file in large.iterdir())
        held = status("RssAnon")
        limited(large, arguments.limit * MIB)
        started = time.perf_counter()
        with Peak() as peak:
            found |= train(large, epochs=arguments.epochs, steps=arguments.steps, chunk_size=1024)
    found |= {
        "samples": arguments.samples,
        "data": round(size / MIB),
        "limit": arguments.limit,
        "peak": round((peak.bytes - held) / MIB, 1),
        "seconds": round(time.perf_counter() - started, 1),
    }
    print(json.dumps(found))


if __name__ == "__main__":
    main()
