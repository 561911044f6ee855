"""Fill the disk under caches, checkpoints, records and results: work goes on, or the error names the file.

The disk is a file system of one or two megabytes in memory, in a namespace of its own (``unshare``, Linux).
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.stress.commands import ROOT
from tests.stress.program_outcome import Outcome
from tests.support.people import people, write_csv

SETUP = """
import os, subprocess, sys, warnings
from pathlib import Path

disk, data = Path(sys.argv[1]), Path(sys.argv[2])


def fill():
    with (disk / "filling").open("wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(4096))
        except OSError:
            pass


def empty():
    (disk / "filling").unlink()


def command(*arguments):
    return subprocess.run([sys.executable, "-m", "fairsieve", *arguments], cwd=data, capture_output=True, text=True)


def refuses(done, path):
    assert done.returncode not in (0, None), "it should have failed"
    assert "Traceback" not in done.stderr, done.stderr
    told = done.stderr.replace("\\n", "")
    assert str(path) in told, f"{path} is not named in: {told}"
    assert "No space left" in told and "Make room" in told, told
"""

CACHE = """
os.environ["NUMBA_CACHE_DIR"] = str(disk / "numba")
fill()
from fairsieve import fit
from fairsieve.data import make_synthetic
fit(None, make_synthetic(60, seed=0), epochs=3, warmup_epochs=1, clean_ratio=0.9, batch_size=20)
"""

CHECKPOINTS = """
import numpy as np
from fairsieve import FairRobustClassifier
from fairsieve.data import make_synthetic
drawn = make_synthetic(200, seed=0)


def weights(folder):
    model = FairRobustClassifier(clean_ratio=0.9, epochs=20, warmup_epochs=5, random_state=0, checkpoint_dir=folder)
    model.set_params(checkpoint_every=1)
    return model.fit(drawn.features, drawn.labels, sensitive_features=drawn.groups).predict_proba(drawn.features)


whole = weights(None)
fill()
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    found = weights(disk / "kept")
assert np.array_equal(found, whole)
about = [str(one.message) for one in caught]
assert len(about) == 1, about
assert str(disk / "kept") in about[0], about
"""

TRAIN = """
fill()
arguments = ["train", "people.csv", "--label", "income", "--sensitive", "sex", "--epochs", "8", "--out"]
refuses(command(*arguments, str(disk / "run")), disk / "run" / "model.skops")
assert [path.name for path in disk.iterdir()] == ["filling"], list(disk.iterdir())
empty()
assert command(*arguments, str(data / "run")).returncode == 0
"""

COMPARE = """
(disk / "runs").mkdir()
fill()
arguments = ["compare", "--methods", "lr", "--seeds", "2", "--epochs", "4", "--no-tune", "--jobs", "1", "--out"]
refuses(command(*arguments, str(disk / "runs")), disk / "runs" / "records.jsonl")
empty()
done = command(*arguments, str(disk / "runs"))
assert done.returncode == 0, done.stderr
assert len((disk / "runs" / "records.jsonl").read_text().splitlines()) == 2
"""

PREDICT = """
arguments = ["train", "people.csv", "--label", "income", "--sensitive", "sex", "--epochs", "8", "--out", "run"]
assert command(*arguments).returncode == 0
fill()
refuses(command("predict", "run", "people.csv", "--out", str(disk / "decisions.csv")), disk / "decisions.csv")
assert [path.name for path in disk.iterdir()] == ["filling"], list(disk.iterdir())
"""

PROGRAMS = {
    "compiled code's cache": CACHE,
    "checkpoints": CHECKPOINTS,
    "train": TRAIN,
    "compare": COMPARE,
    "predict": PREDICT,
}


def run(scale: float, seed: int) -> Outcome:
    """Run every program once on a full disk."""
    probe = ["unshare", "-rm", "true"]
    if not shutil.which("unshare") or subprocess.run(probe, capture_output=True, check=False).returncode:
        return Outcome(skipped="unshare -rm is not allowed here")
    outcome = Outcome()
    for name, program in PROGRAMS.items():
        with tempfile.TemporaryDirectory(prefix="fairsieve-disk-") as scratch:
            folder, disk = Path(scratch) / "data", Path(scratch) / "disk"
            folder.mkdir()
            disk.mkdir()
            write_csv(folder / "people.csv", people(300))
            (folder / "program.py").write_text(SETUP + program, encoding="utf-8")
            mount = f"mount -t tmpfs -o size=1m tmpfs {disk}"
            inside = f"{mount} && exec {sys.executable} {folder}/program.py {disk} {folder}"
            done = subprocess.run(
                ["unshare", "-rm", "sh", "-c", inside],
                env=_make_environment(),
                cwd=scratch,
                capture_output=True,
                text=True,
                timeout=1200,
                check=False,
            )
        outcome.faults += 1
        outcome.check(done.returncode == 0, f"{name}, on a full disk: {done.stderr[-600:]}")
    return outcome


def _make_environment() -> dict[str, str]:
    """Return what the programs are started with; compiled code is cached between them."""
    cache = str(ROOT / ".cache" / "numba" / "stress")
    return os.environ | {"PYTHONPATH": f"{ROOT / 'src'}", "OMP_NUM_THREADS": "1", "NUMBA_CACHE_DIR": cache}
