"""Start programs, stop them at some moment, and look at what they leave."""

import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

ROOT = Path(__file__).parents[2]
SOURCES = f"{ROOT / 'src'}:{ROOT}:{ROOT / 'examples'}"
ENVIRONMENT = os.environ | {"PYTHONPATH": SOURCES, "OMP_NUM_THREADS": "1"}


@dataclass
class Outcome:
    """The faults that were caused, further counts, and the promises that were broken after them."""

    faults: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    broken: list[str] = field(default_factory=list)
    skipped: str = ""

    def check(self, kept: bool, promise: str) -> None:
        """Note a promise that was broken."""
        if not kept:
            self.broken.append(promise)


@dataclass(frozen=True)
class Program:
    """A program in a group of processes of its own; what it prints goes to a file, which no worker blocks."""

    process: subprocess.Popen[bytes]
    output: IO[bytes]

    @property
    def printed(self) -> str:
        self.output.seek(0)
        return self.output.read().decode(errors="replace")

    def wait(self, seconds: float) -> int:
        """Wait for the program itself; return its exit status, or 124 where it took too long."""
        try:
            return self.process.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            self.end()
            return 124

    def wait_for(self, text: str, seconds: float = 120) -> None:
        """Wait until the program prints something, or ends."""
        until = time.monotonic() + seconds
        while text not in self.printed and self.process.poll() is None and time.monotonic() < until:
            time.sleep(0.02)

    def wait_until_it_handles_signals(self, seconds: float = 60) -> None:
        """Wait until a command handles SIGTERM: before, a signal ends it as it ends any Python."""
        until = time.monotonic() + seconds
        while self.process.poll() is None and time.monotonic() < until:
            status = Path(f"/proc/{self.process.pid}/status").read_text()
            caught = re.search(r"SigCgt:\s*([0-9a-f]+)", status)
            if caught and int(caught[1], 16) >> (signal.SIGTERM - 1) & 1:
                return
            time.sleep(0.02)

    def end(self) -> None:
        """Kill whatever of the group still runs."""
        if members(self.process.pid):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


def start(arguments: list[str], folder: Path, *, python: bool = True) -> Program:
    """Start Python with arguments, or another command, in a folder."""
    # A program in the background of a shell ignores SIGINT, and what it starts would inherit that.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    output = tempfile.TemporaryFile()  # noqa: SIM115
    command = [sys.executable, *arguments] if python else arguments
    streams = {"stdout": output, "stderr": output}
    process = subprocess.Popen(command, cwd=folder, env=ENVIRONMENT, start_new_session=True, **streams)
    return Program(process, output)


def members(group: int) -> list[int]:
    """Return the processes of a group that still run; zombies do not count."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            fields = (entry / "stat").read_text().rpartition(")")[2].split() if entry.name.isdigit() else []
        except OSError:
            continue
        if fields and int(fields[2]) == group and fields[0] not in ("Z", "X"):
            found.append(int(entry.name))
    return found


def is_alone(group: int, seconds: float) -> bool:
    """Return whether no process of a group is left, after some seconds at most."""
    until = time.monotonic() + seconds
    while members(group) and time.monotonic() < until:
        time.sleep(0.1)
    return not members(group)


def read_results(folder: Path) -> dict[str, object]:
    """Return what two equal runs write the same, by the name of the file: all but seconds."""
    files = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    return {str(path.relative_to(folder)): _without_seconds(path) for path in files}


def _without_seconds(path: Path) -> object:
    content = path.read_bytes()
    if path.suffix == ".jsonl":  # workers append in any order
        content = b"\n".join(sorted(content.splitlines()))
    return re.sub(rb"(seconds\D{0,12})[0-9.e-]+", rb"\1", content)
