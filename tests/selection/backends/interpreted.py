"""The kernels of a GPU, run by Triton's interpreter on the host, against the NumPy backend.

python tests/selection/backends/interpreted.py PROBLEMS
"""

from __future__ import annotations

import os
import sys
import threading
from pathlib import Path

os.environ["TRITON_INTERPRET"] = "1"  # before the kernels are imported
sys.path.insert(0, str(Path(__file__).parents[3] / "benchmarks"))

import numpy as np
import torch
from epoch_gpu import problem

from fairsieve import Cells, Plan
from fairsieve.selection.backends.torch import TorchBackend
from fairsieve.selection.backends.triton import TritonBackend


class Watched(TritonBackend):
    """Count how often a kernel's sums did not need torch's operations."""

    asked, answered = 0, 0

    def _add_limbs(self, *arguments):
        sums = super()._add_limbs(*arguments)
        Watched.asked += 1
        Watched.answered += not sums[-1, 0]
        return sums


def check_problem(rng: np.random.Generator) -> None:
    """Compare three epochs of a random problem."""
    losses, labels, groups, options, _ = problem(rng, int(rng.integers(1, 3000)))
    cells = Cells.of(labels, groups, classes=range(5), group_values=range(8))
    host, device = (
        Plan(cells, **options, backend="numpy"),
        Plan(cells, **options, backend=Watched(cells, "cpu")),
    )
    rows = rng.random((len(host.comparisons.targets), len(losses))).astype(losses.dtype)
    for _ in range(3):
        for plan in (host, device):
            plan.update(losses, rows)
        assert device.ratios.tobytes() == host.ratios.tobytes()
        assert device.indices.tolist() == host.indices.tolist()
        assert device.batches().tolist() == host.batches().tolist()
        losses, host.epoch, device.epoch = np.roll(losses, 1), host.epoch + 1, device.epoch + 1


def check_blocks(rng: np.random.Generator) -> None:
    """Compare counts of blocks of ranks, which small problems have none of."""
    cells = Cells.of(rng.integers(0, 2, 5000), rng.integers(0, 3, 5000))
    order = torch.from_numpy(rng.permutation(5000))
    expected = TorchBackend(cells, "cpu")._count_blocks(order, 1024, 8)
    assert TritonBackend(cells, "cpu")._count_blocks(order, 1024, 8).tolist() == expected.tolist()


def check_background(rng: np.random.Generator) -> None:
    """Let torch's operations answer until the kernels are ready."""
    cells = Cells.of(rng.integers(0, 2, 500), rng.integers(0, 2, 500))
    backend = TritonBackend(cells, "cpu", in_background=True)
    options = {"clean_ratio": 0.8, "warmup_epochs": 0}
    host, device = Plan(cells, 20, **options, backend="numpy"), Plan(cells, 20, **options, backend=backend)
    answers = []
    for epoch in range(3):
        losses = rng.exponential(size=500).astype(np.float32)
        for plan in (host, device):
            plan.epoch = epoch
            plan.update(losses)
        answers.append(backend._is_ready)
        assert device.batches().tolist() == host.batches().tolist()
        for thread in threading.enumerate():
            if thread.name == "fairsieve-triton":
                thread.join()
    assert answers == [False, True, True]


def main() -> None:
    rng = np.random.default_rng(0)
    check_blocks(rng)
    check_background(rng)
    torch.set_num_threads(1)
    for _ in range(int(sys.argv[1])):
        check_problem(rng)
    print(Watched.answered, "of", Watched.asked, "sums by the kernel alone")
    assert Watched.answered > 0


if __name__ == "__main__":
    main()
