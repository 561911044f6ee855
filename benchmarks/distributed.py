"""What travels between workers in an epoch, by samples and by ranks; real processes on this machine.

    python benchmarks/distributed.py

Each rank draws its own shard (exponential losses, 2 × 2 cells). Bytes are those that one rank hands over
to be added up or shared; the time is that of one ``update`` with all ranks on this machine's cores.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch.distributed as dist

from fairsieve.sampling.sharded import ShardedPlan, Workers
from fairsieve.selection.cells import Cells

SIZES = (10**4, 10**5, 10**6, 10**7)
RANKS = (1, 2, 4)
EPOCHS = 5


def work(out: Path, sizes: list[int]) -> None:
    """What one process does."""
    dist.init_process_group("gloo")
    workers = Workers()
    rng = np.random.default_rng(workers.rank)
    found = []
    for samples in sizes:
        own = samples // workers.size
        known = {"classes": [0, 1], "group_values": [0, 1]}
        cells = Cells.of(rng.integers(0, 2, own), rng.integers(0, 2, own), **known)
        plan = ShardedPlan(cells, 1000, workers, clean_ratio=0.9, warmup_epochs=0, step_size=0.01)
        losses = [rng.exponential(size=own).astype(np.float32) for _ in range(2)]
        plan.update(losses[0])
        workers.traffic.clear()
        started = time.perf_counter()
        for epoch in range(EPOCHS):
            plan.update(losses[epoch % 2])
        seconds = (time.perf_counter() - started) / EPOCHS
        found.append(
            {
                "samples": samples,
                "ranks": workers.size,
                "bytes": workers.traffic["bytes"] / EPOCHS,
                "messages": workers.traffic["messages"] / EPOCHS,
                "seconds": seconds,
            }
        )
    if workers.rank == 0:
        out.write_text(json.dumps(found))
    dist.destroy_process_group()


def measure(sizes: tuple[int, ...] = SIZES, ranks: tuple[int, ...] = RANKS) -> dict[str, Any]:
    """Bytes, messages and seconds of an epoch, for each number of samples and ranks."""
    rows = []
    for processes in ranks:
        with tempfile.TemporaryDirectory() as folder:
            out = Path(folder) / "found.json"
            subprocess.run(
                [
                    *(sys.executable, "-m", "torch.distributed.run", "--standalone"),
                    *("--nproc-per-node", str(processes), __file__, "--worker", str(out)),
                    *("--sizes", *map(str, sizes)),
                ],
                env=os.environ | {"OMP_NUM_THREADS": "1"},
                check=True,
            )
            rows += json.loads(out.read_text())
    return {"epochs": EPOCHS, "rows": rows}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--worker", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--sizes", type=int, nargs="+", default=list(SIZES))
    parser.add_argument("--ranks", type=int, nargs="+", default=list(RANKS))
    arguments = parser.parse_args()
    if arguments.worker is not None:
        work(arguments.worker, arguments.sizes)
        return
    print("| samples | ranks | bytes an epoch, each rank | messages | s an epoch |")
    print("| ---: | ---: | ---: | ---: | ---: |")
    for row in measure(tuple(arguments.sizes), tuple(arguments.ranks))["rows"]:
        print(
            f"| {row['samples']:,} | {row['ranks']} | {row['bytes']:,.0f} | {row['messages']:.1f} | "
            f"{row['seconds']:.4f} |"
        )


if __name__ == "__main__":
    main()
