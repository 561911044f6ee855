"""Fit hundreds of models in one process: memory, open files and threads must not grow (tests/stress/load.py)."""

from __future__ import annotations

import subprocess
import sys

from tests.stress.commands import ROOT
from tests.stress.program_outcome import Outcome


def run(scale: float, seed: int) -> Outcome:
    """Fit ``2,000 · scale`` models."""
    fits = max(100, int(2000 * scale))
    command = [sys.executable, str(ROOT / "tests" / "stress" / "load.py"), "--fits", str(fits)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=3600, check=False)
    outcome = Outcome(counts={"fits": fits})
    outcome.check(done.returncode == 0, (done.stdout + done.stderr)[-600:])
    return outcome
