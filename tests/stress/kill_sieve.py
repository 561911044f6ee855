"""Kill a sieve (SIGKILL) at random moments, start it again until it ends, and compare the result bit by bit."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.stress.commands import ROOT
from tests.stress.program_outcome import Outcome

PROGRAM = """
import sys
from pathlib import Path
from tests.stress.kill_sieve import fit_sieve
import sklearn.tree
import fairsieve.estimators.sieve
print("ready", flush=True)
Path(sys.argv[2]).write_bytes(fit_sieve(Path(sys.argv[1])))
"""


def fit_sieve(folder: Path | None) -> bytes:
    """Fit a sieve to noisy labels; return its weights, ratios and probabilities."""
    from sklearn.tree import DecisionTreeClassifier

    from fairsieve import SieveClassifier
    from fairsieve.data import flip_uniform, make_synthetic

    data = make_synthetic(600, seed=0)
    labels = flip_uniform(data, 0.1, seed=0).labels
    tree = DecisionTreeClassifier(max_depth=6, random_state=0)
    options = {"clean_ratio": 0.9, "flips": "random", "rounds": 8, "random_state": 0}
    model = SieveClassifier(tree, tolerance=0.05, checkpoint_dir=folder, **options)
    model.fit(data.features, labels, sensitive_features=data.groups)
    return b"".join(
        part.tobytes() for part in (model.weights_, model.ratios_, model.predict_proba(data.features))
    )


def start_sieve(folder: Path) -> subprocess.Popen[str]:
    """Fit in a process of its own, which writes its result beside ``folder``; return when the fit begins."""
    environment = os.environ | {"PYTHONPATH": f"{ROOT / 'src'}:{ROOT}", "OMP_NUM_THREADS": "1"}
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, folder, folder.parent / "result"],
        env=environment,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    process.stdout.readline()
    return process


def run(scale: float, seed: int) -> Outcome:
    """Kill a sieve ``30 · scale`` times."""
    outcome, wanted = Outcome(), max(2, int(30 * scale))
    whole = fit_sieve(None)
    with tempfile.TemporaryDirectory() as scratch:
        began = time.perf_counter()
        outcome.check(fit_sieve(Path(scratch) / "kept") == whole, "checkpoints do not change the model")
        seconds = time.perf_counter() - began
    while outcome.faults < wanted:
        with tempfile.TemporaryDirectory(prefix="fairsieve-sieve-") as scratch:
            _kill_until_it_ends(outcome, Path(scratch) / "kept", whole, seconds, wanted, seed)
    return outcome


def _kill_until_it_ends(
    outcome: Outcome, folder: Path, whole: bytes, seconds: float, wanted: int, seed: int
) -> None:
    """Kill one sieve up to five times, then let it end."""
    chance = random.Random(f"{seed} {outcome.faults}")
    for attempt in range(6):
        process = start_sieve(folder)
        outcome.count("starts")
        if attempt < 5 and outcome.faults < wanted:
            time.sleep(chance.uniform(0, seconds))
            process.kill()
        _, said = process.communicate(timeout=600)
        if process.returncode == 0:
            break
        if process.returncode == -9:
            outcome.faults += 1
            continue
        outcome.check(False, f"a sieve that was killed ends without an error: {said[-400:]}")
        break
    result = folder.parent / "result"
    same = result.exists() and result.read_bytes() == whole
    outcome.check(same, "a sieve that was killed ends with the same bits")
    outcome.count("fits")
    outcome.count("same bits", int(same))
