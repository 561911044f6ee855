"""From a raw CSV to a report: ``fairsieve train`` on all 48,842 rows of Adult, as a user runs it.

Each time is that of the whole command, from its start to its end; seconds of the processor, over all cores,
depend less on what else the machine does. The first run of all is not counted: on a new
machine it compiles. The limits are those set for two cores.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from rich.console import Console
from rich.table import Table

from fairsieve.data.catalogue import export_csv

FAIRSIEVE = Path(sys.executable).parent / "fairsieve"
LIMITS = {"0.9": 60, "auto": 180}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--wrong", type=float, default=0.1, help="Share of labels made wrong.")
    arguments = parser.parse_args()
    table = Table(title=f"fairsieve train on Adult, {arguments.wrong:.0%} of its labels wrong")
    for column in ("clean ratio", "seconds", "all runs", "processor", "limit", "suspects that are wrong"):
        table.add_column(column)
    said = []
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        wrong = set(export_csv("adult", folder / "adult.csv", wrong=arguments.wrong).tolist())
        run(folder, "0.9")
        for ratio, limit in LIMITS.items():
            found = [run(folder, ratio) for _ in range(arguments.repeats)]
            times, busy = zip(*sorted(found), strict=True)
            record = json.loads((folder / "run" / "metrics.json").read_text(encoding="utf-8"))
            lines = (folder / "run" / "suspects.csv").read_text(encoding="utf-8").splitlines()[1:]
            right = [int(line.split(",")[0]) in wrong for line in lines]
            share = f"{sum(right) / len(right):.0%} of {len(right):,}" if right else "none"
            median = statistics.median(times)
            shown = ", ".join(f"{seconds:.1f}" for seconds in times)
            table.add_row(ratio, f"{median:.1f}", shown, f"{statistics.median(busy):.1f}", f"{limit}", share)
            said.append(f"{ratio}: {record['headline']}")
    Console().print(table, *said, sep="\n")


def run(folder: Path, ratio: str) -> tuple[float, float]:
    """Seconds of one command: by the clock, and of the processor."""
    command = [str(FAIRSIEVE), "train", "adult.csv", "--label", "income", "--sensitive", "sex"]
    command += ["--positive", ">50K", "--clean-ratio", ratio, "--out", "run", "--force"]
    started, before = time.perf_counter(), processor_seconds()
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    return time.perf_counter() - started, processor_seconds() - before


def processor_seconds() -> float:
    """Of the commands that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    main()
