"""Freeze (SIGSTOP) or kill one of two workers of examples/ddp.py: the other one ends with an error that says so.

Inside our own collectives that is a WorkerError; inside DDP's all-reduce it is torch's own error, after the time
limit of the process group.
"""

from __future__ import annotations

import importlib.util
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.stress.commands import ROOT
from tests.stress.program_outcome import Outcome

SECONDS = 10  # after which a worker gives up waiting, in our collectives and in DDP's
PROGRAM = """
import datetime, faulthandler, sys
from pathlib import Path
faulthandler.enable()
sys.path.insert(0, sys.argv[1])
import torch.distributed as dist
import ddp
dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=int(sys.argv[2])))
update, calls = ddp.ShardedBatchSampler.update, []


def counted(self, *arguments, **options):
    calls.append(None)
    if len(calls) == 3:
        Path(sys.argv[3], f"ready-{dist.get_rank()}").touch()
    return update(self, *arguments, **options)


ddp.ShardedBatchSampler.update = counted
ddp.train(epochs=100_000, timeout=float(sys.argv[2]))
"""


def run(scale: float, seed: int) -> Outcome:
    """Freeze and kill a worker ``4 · scale`` times each."""
    if importlib.util.find_spec("torch") is None:
        return Outcome(skipped="torch is not installed")
    outcome, chance = Outcome(), random.Random(seed)
    for number in range(2 * max(1, int(4 * scale))):
        kind = (signal.SIGSTOP, signal.SIGKILL)[number % 2]
        _disturb(outcome, kind, chance.uniform(0, 2))
    return outcome


def _disturb(outcome: Outcome, kind: signal.Signals, delay: float) -> None:
    """Start two workers, disturb the second, and look how the first one ends."""
    with tempfile.TemporaryDirectory(prefix="fairsieve-freeze-") as scratch, socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
        free.close()
        workers = [_start(rank, port, scratch) for rank in range(2)]
        try:
            until = time.monotonic() + 240
            while len(list(Path(scratch).glob("ready-*"))) < 2 and time.monotonic() < until:
                time.sleep(0.05)
            time.sleep(delay)
            outcome.check(all(worker.poll() is None for worker in workers), "two workers train")
            workers[1].send_signal(kind)
            outcome.faults += 1
            outcome.count(kind.name)
            began = time.monotonic()
            try:
                _, said = workers[0].communicate(timeout=SECONDS + 50)
            except subprocess.TimeoutExpired:
                workers[0].send_signal(signal.SIGABRT)  # prints where it waits
                _, said = workers[0].communicate()
                place = said.partition("Extension modules")[0][-2000:]
                outcome.check(
                    False, f"a worker ends within a minute after {kind.name} of the other one: {place}"
                )
                return
            outcome.count("seconds until the other one ended", round(time.monotonic() - began))
            outcome.check(workers[0].returncode != 0, f"a worker fails after {kind.name} of the other one")
            outcome.count("WorkerError, from our own collectives", int("WorkerError" in said))
            outcome.count(
                "torch's error, from DDP's all-reduce", int("WorkerError" not in said and "gloo" in said)
            )
            named = "WorkerError" in said or "gloo" in said
            outcome.check(named, f"the error after {kind.name} names the cause: {said[-400:]}")
        finally:
            for worker in workers:
                if worker.poll() is None:
                    worker.kill()
                worker.communicate()


def _start(rank: int, port: str, scratch: str) -> subprocess.Popen[str]:
    """Start one worker."""
    place = {"RANK": str(rank), "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
    paths = {"PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}
    paths["NUMBA_CACHE_DIR"] = str(ROOT / ".cache" / "numba" / "stress")
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(ROOT / "examples"), str(SECONDS), scratch],
        env=os.environ | paths | place,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
