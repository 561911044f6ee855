"""Every benchmark of speed and memory in one table, and its numbers as JSON.

    python benchmarks/bench.py               # --quick, --out FILE

Whole training runs against the literal implementation, selection against a sort over samples and
cells, memory, the rest of an epoch's plan, bytes between workers; and a GPU where there is one (where not,
the numbers of the last one stay). Ratios are taken within one run, times are medians.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
from pathlib import Path
from typing import Any

import distributed
import epoch_gpu
import numpy as np
import torch
from rich.console import Console
from rich.table import Table

import selection
import training

RESULTS = Path(__file__).parent / "results" / "bench.json"


def machine() -> dict[str, Any]:
    """What the numbers were measured on."""
    names = [line for line in cpu_lines() if line.startswith("model name")]
    return {
        "cpu": names[0].split(":")[1].strip() if names else platform.processor(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "torch": torch.__version__,
        "load before": round(os.getloadavg()[0], 1),
    }


def cpu_lines() -> list[str]:
    path = Path("/proc/cpuinfo")
    return path.read_text().splitlines() if path.exists() else []


def measure(quick: bool = False) -> dict[str, Any]:
    """All sections."""
    sizes = (10**5, 10**6) if quick else selection.SIZES
    found: dict[str, Any] = {"machine": machine(), "training": training.measure(3 if quick else 9)}
    found["selection"] = selection.measure(sizes)
    found["memory"] = selection.measure_memory()
    found["distributed"] = distributed.measure(sizes, (2, 4))
    if torch.cuda.is_available():
        epoch_gpu.check(20)
        found["gpu"] = epoch_gpu.measure()
    return found


def rows(found: dict[str, Any]) -> list[tuple[str, str, str]]:
    """The table: what, how much, against what."""
    run, table = found["training"], []
    table.append(("training, literal implementation", f"{run['literal']:.2f} s", ""))
    for name in ("steps alone", "module", "NumPy", "compiled"):
        ratio = run["literal"] / run[name]
        table.append((f"training, {name}", f"{run[name]:.3f} s", f"1/{ratio:.0f} of the literal"))
    for row in found["selection"]:
        name = f"{row['samples']:,} samples, {row['cells']} cells: "
        against = f"1/{row['sort'] / row['select']:.1f} of torch.sort"
        table.append((name + "select", milliseconds(row["select"]), against))
        for part in ("select from labels", "ratios and selection", "batches"):
            against = f"{row[part] / row['select']:.2f} × select"
            table.append((name + part, milliseconds(row[part]), against))
    for row in found["memory"]:
        for part in ("select", "select from labels"):
            table.append((f"{row['samples']:,} samples: memory of {part}", f"{row[part]:.2f} B", "a sample"))
    for row in found["distributed"]["rows"]:
        name = f"{row['samples']:,} samples, {row['ranks']} ranks: sent"
        table.append((name, f"{row['bytes']:,.0f} B", "an epoch and rank"))
    gpu = found.get("gpu", {})
    for row in gpu.get("milliseconds", []):
        sort = row["torch.sort"]
        for name, value in row.items():
            if name != "samples":
                against = f"{value / sort:.2f} × torch.sort"
                table.append((f"{gpu['device']}, {row['samples']:,}: {name}", f"{value:.3f} ms", against))
    return table


def milliseconds(seconds: float) -> str:
    return f"{1000 * seconds:.2f} ms"


def gpu_before(path: Path) -> dict[str, Any]:
    """What an earlier run measured on a GPU, with its name: it stays until another GPU is measured."""
    before = json.loads(path.read_text()) if path.exists() else {}
    return {name: before[name] for name in before.keys() & {"gpu"}}


def rounded(value: Any) -> Any:
    """Numbers to four digits, all the way down."""
    if isinstance(value, dict):
        return {name: rounded(part) for name, part in value.items()}
    if isinstance(value, list):
        return [rounded(part) for part in value]
    return float(f"{value:.4g}") if isinstance(value, float) else value


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="up to a million samples")
    parser.add_argument("--out", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    found = gpu_before(arguments.out) | rounded(measure(arguments.quick))
    what = found["machine"]
    table = Table(title=f"{what['cores']} cores of {what['cpu']}, torch {what['torch']}")
    for column in ("what", "measured", "against"):
        table.add_column(column, justify="left" if column == "what" else "right")
    for row in rows(found):
        table.add_row(*row)
    Console().print(table)
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    arguments.out.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
