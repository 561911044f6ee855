"""Measure ``train``, ``audit`` and ``predict`` on more rows than the memory allowed holds, in parts.

    python benchmarks/partitions.py        # 3·10⁷ rows × 20 in 60 files, --memory 4GB: twenty minutes on two cores
    python benchmarks/partitions.py --rows 3000000 --files 6 --memory 400MB --beside 1000000

The files are made here, as in ``table_speed.py``. Each command runs in a process of its own; memory is that of the
process and its children together, looked at ten times a second. ``--beside`` trains on so many of the rows in memory
too, for the ratio of the times per row.
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

from table_speed import ROLES, make_table


def make_folder(folder: Path, rows: int, files: int) -> None:
    """Write a table into so many Parquet files."""
    folder.mkdir(parents=True)
    for place in range(files):
        make_table(folder / f"part-{place:03d}.parquet", rows // files, seed=place)


def memory_of(process: int) -> int:
    """Return how many bytes of memory a process and its children take; what they share counts for each."""
    try:
        pages = int(Path(f"/proc/{process}/statm").read_text().split()[1])
        children = Path(f"/proc/{process}/task/{process}/children").read_text().split()
    except OSError:  # it has just ended
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE") + sum(memory_of(int(child)) for child in children)


def measure(command: list[str]) -> dict[str, Any]:
    """Run a command; return its wall seconds, CPU seconds and peak memory in gigabytes."""
    started, peak, status = time.perf_counter(), 0, 0
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    while True:
        ended, status, usage = os.wait4(process.pid, os.WNOHANG)
        if ended:
            break
        peak = max(peak, memory_of(process.pid))
        time.sleep(0.1)
    return {
        "status": os.waitstatus_to_exitcode(status),
        "seconds": round(time.perf_counter() - started, 1),
        "cpu seconds": round(usage.ru_utime + usage.ru_stime, 1),
        "peak GB": round(peak / 1e9, 2),
    }


def main() -> None:
    """Make the files, measure each command, and print the numbers."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=3 * 10**7)
    parser.add_argument("--files", type=int, default=60)
    parser.add_argument("--memory", default="4GB")
    parser.add_argument("--backend", default="local")
    parser.add_argument("--beside", type=int, default=0, help="rows to train on in memory")
    parser.add_argument("--only", nargs="*", default=["train", "audit", "predict"])
    parser.add_argument("--keep", type=Path, help="a folder for the files, which stays")
    parser.add_argument("--out", type=Path, help="a JSON file for the numbers")
    options = parser.parse_args()
    found: dict[str, Any] = {name: getattr(options, name) for name in ("rows", "files", "memory", "beside")}
    with tempfile.TemporaryDirectory() as name:
        folder = options.keep or Path(name)
        parts = folder / f"{options.rows}-{options.files}"
        if not parts.exists():
            make_folder(parts, options.rows, options.files)
        place = ["--memory", options.memory, "--backend", options.backend]
        fairsieve, run = [sys.executable, "-m", "fairsieve"], str(folder / "run")
        commands = {
            "train": [*fairsieve, "train", str(parts), *ROLES, *place, "--force", "-o", run],
            "audit": [*fairsieve, "audit", str(parts), *ROLES, *place, "--force", "-o", f"{run}.csv"],
            "predict": [*fairsieve, "predict", run, str(parts), *place, "-o", str(folder / "predicted")],
        }
        if options.beside:
            whole = folder / f"{options.beside}.parquet"
            if not whole.exists():
                make_table(whole, options.beside)
            commands["in memory"] = [*fairsieve, "train", str(whole), *ROLES, "--force", "-o", f"{run}-whole"]
        for label, command in commands.items():
            if label in (*options.only, "in memory"):
                found[label] = measure(command)
                print(f"{label:10}", found[label], flush=True)
    if "train" in found and "in memory" in found:
        times = [found[each]["cpu seconds"] for each in ("train", "in memory")]
        found["time per row"] = round(times[0] / options.rows * options.beside / times[1], 2)
        print("time per row, in parts / in memory:", found["time per row"])
    if options.out is not None:
        options.out.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
