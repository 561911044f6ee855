"""Run all stress programs and print what was counted: python -m tests.stress (or make stress).

    python -m tests.stress                      # everything
    python -m tests.stress kill_sieve full_disk # some of it
    python -m tests.stress --scale 0.2          # fewer faults of each kind

A program is a module of this folder with ``run(scale, seed)``, which returns an Outcome; ``PROGRAMS`` lists them.
``suites`` are tests that pytest runs here and in ``make test``, and that belong to the same promises. The exit status
is 1 where a promise was broken.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import time
from importlib import import_module
from pathlib import Path

from tests.stress.commands import ROOT
from tests.stress.program_outcome import Outcome

PROGRAMS = ["kill_training", "kill_sieve", "kill_commands", "freeze_workers", "full_disk", "soak"]
SUITES = {  # title: patterns of files
    "damaged and shared files": ["tests/stress/test_*.py", "tests/stress/fuzzing/test_*.py"],
    "checkpoints": ["tests/training/test_checkpoints.py", "tests/estimators/test_resuming.py"],
    "stopped commands": ["tests/bad_input/test_stopping.py", "tests/cli/test_*signal*.py"],
    "workers of torch": ["tests/sampling/test_ddp.py"],
    "full disks under compiled code": ["tests/training/test_compile_cache.py"],
    "engines (dask, ray, Spark)": ["tests/paper/test_cluster.py", "tests/paper/test_engine.py"],
}


def run_suite(patterns: list[str]) -> Outcome:
    """Run tests with pytest and count them."""
    files = [str(path.relative_to(ROOT)) for pattern in patterns for path in sorted(ROOT.glob(pattern))]
    if not files:
        return Outcome(skipped="no such tests")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--timeout", "900", *files]
    wide = os.environ | {"COLUMNS": "300"}  # so that the reasons of failures are printed
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, env=wide)
    last = done.stdout.strip().splitlines()[-1] if done.stdout.strip() else ""
    counts = {kind: int(number) for number, kind in re.findall(r"(\d+) (passed|failed|skipped|error)", last)}
    outcome = Outcome(faults=counts.get("passed", 0), counts=counts)
    failed = [line for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    outcome.check(done.returncode == 0, "; ".join(failed) or f"pytest exited with {done.returncode}: {last}")
    return outcome


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("names", nargs="*", help=f"from {', '.join(PROGRAMS)} and suites; all by default")
    parser.add_argument(
        "--scale", type=float, default=1.0, help="how many faults, as a share of the usual number"
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, help="a file for the counts, as JSON")
    arguments = parser.parse_args()
    unknown = set(arguments.names) - {*PROGRAMS, "suites"}
    if unknown:
        parser.error(f"unknown: {', '.join(sorted(unknown))}")
    wanted = arguments.names or [*PROGRAMS, "suites"]
    found: dict[str, Outcome] = {}
    for name in [name for name in PROGRAMS if name in wanted]:
        program = import_module(f"tests.stress.{name}")
        found[name] = report(name, lambda: program.run(arguments.scale, arguments.seed))  # noqa: B023
    if "suites" in wanted:
        for title, patterns in SUITES.items():
            found[title] = report(title, lambda: run_suite(patterns))  # noqa: B023
    broken = sum(len(outcome.failures) for outcome in found.values())
    faults = sum(outcome.faults for outcome in found.values())
    print(f"{faults} faults and tests, {broken} broken promises")
    if arguments.out:
        arguments.out.write_text(
            json.dumps({name: vars(outcome) for name, outcome in found.items()}, indent=2)
        )
    sys.exit(1 if broken else 0)


def report(name: str, work: object) -> Outcome:
    """Run one program and print its counts."""
    began = time.monotonic()
    try:
        outcome: Outcome = work()  # type: ignore[operator]
    except Exception as error:
        outcome = Outcome(failures=[f"the program itself failed: {error!r}"])
    seconds = time.monotonic() - began
    counts = ", ".join(f"{key}: {value}" for key, value in outcome.counts.items())
    state = f"skipped, {outcome.skipped}" if outcome.skipped else "broken" if outcome.failures else "kept"
    print(
        f"{name}: {state}; {outcome.faults} faults or tests; {counts or 'no further counts'}; {seconds:.0f} s",
        flush=True,
    )
    for failure in outcome.failures:
        print(f"    {failure}", flush=True)
    return outcome


if __name__ == "__main__":
    main()
