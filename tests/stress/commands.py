"""Start commands in processes of their own, stop them, and look at what they leave."""

from __future__ import annotations

import io
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import IO

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Command:
    """A command that runs; what it prints goes to a file, which workers that outlive it do not block."""

    process: subprocess.Popen[bytes]
    output: IO[bytes]

    def wait(self, seconds: float) -> tuple[int, str]:
        """Wait for the command itself; return its exit status and what it printed."""
        status = self.process.wait(timeout=seconds)
        self.output.seek(0)
        return status, self.output.read().decode(errors="replace")


def start(arguments: list[str], folder: Path) -> Command:
    """Start ``fairsieve`` with arguments in a folder, in a group of processes of its own."""
    environment = os.environ | {"PYTHONPATH": f"{ROOT / 'src'}:{ROOT}", "OMP_NUM_THREADS": "1"}
    environment.setdefault("NUMBA_CACHE_DIR", str(ROOT / ".cache" / "numba" / "stress"))
    # A program in the background of a shell ignores SIGINT, and what it starts would inherit that.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    output = tempfile.TemporaryFile()  # noqa: SIM115
    process = subprocess.Popen(
        [sys.executable, "-m", "fairsieve", *arguments],
        cwd=folder,
        env=environment,
        start_new_session=True,
        stdout=subprocess.DEVNULL,
        stderr=output,
    )
    return Command(process, output)


def wait_until_watching(command: Command, seconds: float) -> None:
    """Wait until a command handles SIGTERM, which Python alone does not; return early where it has ended.

    Before that Python itself starts, and a signal ends it as it ends any Python.
    """
    until = time.monotonic() + seconds
    while command.process.poll() is None and time.monotonic() < until:
        try:
            status = Path(f"/proc/{command.process.pid}/status").read_text()
        except OSError:
            return
        caught = re.search(r"SigCgt:\s*([0-9a-f]+)", status)
        if caught and int(caught[1], 16) >> (signal.SIGTERM - 1) & 1:
            return
        time.sleep(0.02)


def members(group: int) -> list[int]:
    """Return the processes of a group that still run; zombies do not count."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[2]) == group and fields[0] not in ("Z", "X"):
            found.append(int(entry.name))
    return found


def wait_until_alone(group: int, seconds: float) -> bool:
    """Wait until no process of a group is left; return False after ``seconds``."""
    until = time.monotonic() + seconds
    while members(group):
        if time.monotonic() > until:
            return False
        time.sleep(0.1)
    return True


def end(command: Command) -> None:
    """Kill a command's whole group, if anything of it still runs."""
    if members(command.process.pid):
        os.killpg(command.process.pid, signal.SIGKILL)
    command.process.wait()


def list_parts(folder: Path) -> list[str]:
    """Return the half-written files and folders that are left."""
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if ".part" in path.name)


def read_results(folder: Path) -> dict[str, object]:
    """Return the contents of all files of a training, by name, without seconds and without addresses in memory."""
    return {name: _without_chance(name, content) for name, content in read_all(folder).items()}


def _without_chance(name: str, content: bytes) -> object:
    """Return what two equal trainings write the same; of a model's archive the structure and every array."""
    if not name.endswith(".skops"):
        return re.sub(rb"(seconds\D{0,12})[0-9.]+", rb"\1", content)
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = {member: archive.read(member) for member in archive.namelist()}
    schema = re.sub(rb"[0-9]{9,}", b"", members.pop("schema.json"))  # objects are named by their addresses
    return schema, list(members.values())


def read_all(folder: Path) -> dict[str, bytes]:
    """Return the contents of all files in a folder, by name."""
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}
