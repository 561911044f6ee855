"""Selection against sorting the same losses, in one process; medians of repeats."""

from __future__ import annotations

import argparse

import numpy as np
import torch
from rich.console import Console
from rich.table import Table
from timing import median_seconds

from fairsieve import Cells
from fairsieve.core.selection import select_cells


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=[10**5, 10**6, 10**7])
    parser.add_argument("--repeats", type=int, default=5)
    arguments = parser.parse_args()
    table = Table(title="select and torch.sort, float32 losses")
    for column in ("samples", "cells", "select, s", "sort, s", "select / sort"):
        table.add_column(column, justify="right")
    rng = np.random.default_rng(0)
    for n in arguments.sizes:
        losses = torch.from_numpy(rng.exponential(size=n).astype(np.float32))
        slow = median_seconds(lambda values=losses: torch.sort(values), arguments.repeats)
        for groups in (2, 8):
            cells = Cells.of(rng.integers(0, 2, n), rng.integers(0, groups, n))
            ratios = rng.dirichlet(np.full(groups, 10.0), 2)
            fast = median_seconds(
                lambda values=losses, c=cells, r=ratios: select_cells(values, c, r, 0.9), arguments.repeats
            )
            table.add_row(f"{n:,}", str(2 * groups), f"{fast:.4f}", f"{slow:.4f}", f"{fast / slow:.3f}")
    Console().print(table)


if __name__ == "__main__":
    main()
