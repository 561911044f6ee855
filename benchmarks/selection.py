"""Selection against sorting the same losses, its memory, and the rest of an epoch's plan.

    python benchmarks/selection.py

Times are medians of repeats in one process. Memory is the rise of the peak of a fresh process over what
it held before the call, less the answer.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch
from timing import median_seconds

from fairsieve import select
from fairsieve.selection.cells import Cells
from fairsieve.selection.epoch import Plan
from fairsieve.selection.select import select_cells

SIZES = (10**5, 10**6, 10**7)
GROUPS = (2, 8)


def measure(sizes: tuple[int, ...] = SIZES, repeats: int = 5) -> list[dict[str, Any]]:
    """Seconds by samples and cells."""
    rng, rows = np.random.default_rng(0), []
    for n in sizes:
        losses = torch.from_numpy(rng.exponential(size=n).astype(np.float32))
        sort = median_seconds(lambda values=losses: torch.sort(values), repeats)
        for groups in GROUPS:
            labels, columns = rng.integers(0, 2, n), rng.integers(0, groups, n)
            cells, ratios = Cells.of(labels, columns), rng.dirichlet(np.full(groups, 10.0), 2)
            options = {"clean_ratio": 0.9, "warmup_epochs": 0}
            plan = Plan(cells, 1000, **options)
            plan.update(losses)
            rows.append(
                {
                    "samples": n,
                    "cells": 2 * groups,
                    "sort": sort,
                    "select": median_seconds(
                        lambda v=losses, c=cells, r=ratios: select_cells(v, c, r, 0.9), repeats
                    ),
                    "select from labels": median_seconds(
                        lambda v=losses, y=labels, z=columns, r=ratios: select(v, y, z, r, 0.9),
                        repeats,
                    ),
                    "ratios and selection": median_seconds(lambda p=plan, v=losses: p.update(v), repeats),
                    "batches": median_seconds(plan.batches, repeats),
                    "np.argpartition": median_seconds(
                        lambda v=losses: np.argpartition(v.numpy(), int(0.9 * len(v))), repeats
                    ),
                }
            )
    return rows


def measure_memory(sizes: tuple[int, ...] = SIZES[-1:]) -> list[dict[str, Any]]:
    """Bytes per sample beside input and answer, each in a process of its own."""
    rows = []
    for n in sizes:
        command = [sys.executable, __file__, "--memory-of", str(n)]
        answer = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        rows.append({"samples": n, **json.loads(answer)})
    return rows


def memory_of(n: int) -> dict[str, float]:
    """Bytes per sample that a call takes beside its input and its answer, at the peak."""
    rng = np.random.default_rng(0)
    ratios = np.array([[0.4, 0.6], [0.5, 0.5]])

    def problem(size: int) -> tuple[Any, ...]:
        return (
            rng.exponential(size=size).astype(np.float32),
            rng.integers(0, 2, size, np.uint8),
            rng.integers(0, 2, size, np.uint8),
        )

    small = problem(2**19)  # what a first call imports
    select(*small, ratios, 0.9)
    select_cells(small[0], Cells.of(*small[1:]), ratios, 0.9)
    losses, labels, groups = problem(n)
    cells = Cells.of(labels, groups)

    def peak_of(call: Any) -> float:
        Path("/proc/self/clear_refs").write_text("5")  # the peak is what is held now
        before = status("VmHWM")
        answer = call()
        return (status("VmHWM") - before - answer.indices.nbytes) / n

    return {
        "select": peak_of(lambda: select_cells(losses, cells, ratios, 0.9)),
        "select from labels": peak_of(lambda: select(losses, labels, groups, ratios, 0.9)),
    }


def status(field: str) -> int:
    """A size of this process in bytes, as Linux tells it."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * int(next(line for line in lines if line.startswith(field)).split()[1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=list(SIZES))
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--memory-of", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.memory_of is not None:
        print(json.dumps(memory_of(arguments.memory_of)))
        return
    for row in measure(tuple(arguments.sizes), arguments.repeats):
        print({name: round(value, 5) for name, value in row.items()})
    print(measure_memory())


if __name__ == "__main__":
    main()
