"""Kill, terminate and interrupt commands at random moments: what they leave is whole, and they can go on."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from tests.stress.commands import (
    end,
    list_parts,
    read_all,
    read_results,
    start,
    wait_until_alone,
    wait_until_watching,
)
from tests.stress.program_outcome import Outcome
from tests.support.people import people, write_csv

TRAIN = "train people.csv --label income --sensitive sex --epochs 60"
COMPARE = (
    "compare --data synthetic --methods lr,fairsieve --seeds 3 --epochs 40 --no-tune --jobs 2 --out runs"
)
SIGNALS = {signal.SIGKILL: -9, signal.SIGTERM: 143, signal.SIGINT: 130}


def run(scale: float, seed: int) -> Outcome:
    """Stop ``train`` and ``compare`` about ``12 · scale`` times each, by SIGKILL, SIGTERM and SIGINT in turn."""
    outcome, chance = Outcome(), random.Random(seed)
    if not Path("/proc/self/stat").exists():
        return Outcome(skipped="the processes of a group are read from /proc")
    times = max(3, int(12 * scale))
    _stop_train(outcome, chance, times)
    _stop_compare(outcome, chance, times)
    for name in ("train", "compare"):
        for kind in SIGNALS:
            stopped, late = (outcome.counts.get(f"{name}, {kind.name}{end}", 0) for end in ("", " too late"))
            outcome.check(
                stopped < 3 or late < stopped, f"{name} answers {kind.name} before its work is done"
            )
    return outcome


def _stop(
    outcome: Outcome,
    arguments: list[str],
    folder: Path,
    kind: signal.Signals,
    seconds: float,
    is_done: Callable[[], bool],
) -> bool:
    """Stop a command after some seconds; return whether it ended by itself before.

    A signal in the last moments, when Python itself ends, may be too late: then its work is done.
    """
    name, command = arguments[0], start(arguments, folder)
    wait_until_watching(command, 30)
    time.sleep(seconds)
    ended = command.process.poll() is not None
    if not ended:
        command.process.send_signal(kind)
    try:
        status, said = command.wait(60)
    except subprocess.TimeoutExpired:
        outcome.check(False, f"{name} ends within a minute of {kind.name}")
        end(command)
        return False
    if ended:
        outcome.check(status == 0, f"{name} succeeds if it is stopped too late: {said[-300:]}")
        return True
    outcome.faults += 1
    outcome.count(f"{name}, {kind.name}")
    if status != SIGNALS[kind]:
        outcome.count(f"{name}, {kind.name} too late")
        late = status in (0, -kind) and is_done()
        outcome.check(
            late, f"{name} exits with {SIGNALS[kind]} after {kind.name}, not {status}: {said[-300:]}"
        )
    limit = 30 if kind == signal.SIGKILL else 10  # a worker that just starts sees only then that it is alone
    alone = wait_until_alone(command.process.pid, limit)
    outcome.check(alone, f"{name} leaves no worker {limit} seconds after {kind.name}")
    outcome.check("Traceback" not in said, f"{name} prints no traceback after {kind.name}: {said[-300:]}")
    end(command)
    if kind != signal.SIGKILL:
        parts = list_parts(folder)
        outcome.check(not parts, f"{name} leaves no half-written file after {kind.name}: {parts}")
    return False


def _stop_train(outcome: Outcome, chance: random.Random, times: int) -> None:
    """Stop a training; the next one must end with the same model, and clear what is half-written."""
    with tempfile.TemporaryDirectory(prefix="fairsieve-train-") as scratch:
        folder = Path(scratch)
        write_csv(folder / "people.csv", people(400))
        command = TRAIN.split()
        _, seconds = _run_whole(outcome, command, folder)
        whole = read_results(folder / "whole")
        for number in range(times):
            kind = list(SIGNALS)[number % len(SIGNALS)]
            out = f"run-{number}"
            kept = ["--checkpoint-dir", f"kept-{number}", "--checkpoint-every", "5", "--out", out]
            wait = chance.uniform(0, 0.9) * seconds
            _stop(outcome, [*command, *kept], folder, kind, wait, (folder / out).exists)
            status, said = start([*command, *kept, "--force"], folder).wait(300)
            outcome.check(status == 0, f"train can be given again after {kind.name}: {said[-300:]}")
            found = read_results(folder / out) if (folder / out).exists() else {}
            other = sorted(name for name in whole.keys() | found.keys() if whole.get(name) != found.get(name))
            outcome.check(not other, f"train ends with the same files after {kind.name}, but for {other}")
            outcome.count("trainings")
            outcome.count("same files", int(not other))
            parts = list_parts(folder)
            outcome.check(not parts, f"the next train clears half-written files: {parts}")


def _stop_compare(outcome: Outcome, chance: random.Random, times: int) -> None:
    """Stop a comparison several times; in the end every record is there once, with the values of a whole run."""
    with tempfile.TemporaryDirectory(prefix="fairsieve-compare-") as scratch:
        folder = Path(scratch)
        command = COMPARE.split()
        whole, seconds = _run_whole(outcome, command[:-2], folder)
        expected = _read_metrics(whole)

        def is_done() -> bool:
            return _read_metrics(read_all(folder / "runs")) == expected

        for number in range(times):
            kind = list(SIGNALS)[number % len(SIGNALS)]
            wait = chance.uniform(0, 0.9) * seconds
            if _stop(outcome, command, folder, kind, wait, is_done):
                _check_records(outcome, folder, expected)
                for path in (folder / "runs").glob("*"):
                    path.unlink()
        status, said = start(command, folder).wait(300)
        outcome.check(status == 0, f"compare can be given again: {said[-300:]}")
        _check_records(outcome, folder, expected)


def _run_whole(outcome: Outcome, command: list[str], folder: Path) -> tuple[dict[str, bytes], float]:
    """Run a command that nothing disturbs, twice since the first compiles; return its files and its seconds."""
    seconds = 0.0
    for out in ("compiling", "whole"):
        began = time.monotonic()
        status, said = start([*command, "--out", out], folder).wait(1200)
        seconds = time.monotonic() - began
        outcome.check(status == 0, f"{command[0]} succeeds when nothing disturbs it: {said[-300:]}")
    return (read_all(folder / out) if (folder / out).exists() else {}), seconds


def _read_metrics(files: dict[str, bytes]) -> dict[str, object]:
    """Return the metrics of every record, by the identifier of its run."""
    lines = [
        line for name, content in files.items() if name.endswith(".jsonl") for line in content.splitlines()
    ]
    return {record["run"]: record.get("metrics") for record in map(json.loads, lines)}


def _check_records(outcome: Outcome, folder: Path, expected: dict[str, object]) -> None:
    """Check that every record is there once, with the values of the comparison that nothing disturbed."""
    files = read_all(folder / "runs")
    lines = sum(content.count(b"\n") for name, content in files.items() if name.endswith(".jsonl"))
    found = _read_metrics(files)
    outcome.count("comparisons")
    outcome.check(found == expected, "compare has the records of a whole comparison")
    outcome.check(
        lines == len(expected), f"compare has every record once; {lines} lines, {len(expected)} records"
    )
    outcome.check(not list_parts(folder), f"the next compare clears half-written files: {list_parts(folder)}")
