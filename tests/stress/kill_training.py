"""Kill trainings (SIGKILL) at random moments: each must end with the bits of one that nothing disturbed."""

from __future__ import annotations

import json
import subprocess
import sys

from tests.stress.commands import ROOT
from tests.stress.program_outcome import Outcome


def run(scale: float, seed: int) -> Outcome:
    """Kill the training of a module ``60 · scale`` times in all (tests/support/kills.py)."""
    kills = max(2, int(60 * scale))
    command = [sys.executable, "-m", "tests.support.kills", "--kills", str(kills), "--seed", str(seed)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=3600, check=False)
    if done.returncode:
        return Outcome(failures=[done.stderr[-600:]])
    found = json.loads(done.stdout.splitlines()[-1])
    outcome = Outcome(faults=found.pop("kills"), counts=found)
    outcome.check(found["same"] == found["trainings"], "a training that was killed ends with the same bits")
    return outcome
