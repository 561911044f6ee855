"""Disturb fairsieve on purpose, count what follows, and fail where a promise was broken.

    python -m tests.stress                        # everything (make stress)
    python -m tests.stress stop_commands soak     # some of it
    python -m tests.stress --scale 0.2 --seed 1   # fewer faults, at other moments

It needs Linux; what cannot be done on a machine is reported as skipped.
"""

import argparse
import importlib.util
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.stress.processes import Outcome, is_alone, read_results, start
from tests.support.people import people, write_csv

# ---- Kill trainings at random moments, and start them again until they end: the result is the same, to the bit.

MODULE = """
import torch, numpy as np
from fairsieve import fit
from fairsieve.data import flip_uniform, make_synthetic
torch.set_num_threads(1)
torch.manual_seed(0)
layers = torch.nn.Linear(3, 8), torch.nn.BatchNorm1d(8), torch.nn.Dropout(0.3), torch.nn.Linear(8, 2)
clean = make_synthetic(500, seed=0)
data = clean.with_labels(flip_uniform(clean, 0.1, seed=0).labels)
print("ready", flush=True)
options = dict(epochs=40, warmup_epochs=10, clean_ratio=0.9, batch_size=50, checkpoint_every=1)
fitted = fit(torch.nn.Sequential(*layers), data, checkpoint_dir="kept", **options)
parts = [value.detach().numpy() for value in fitted.model.state_dict().values()]
result = b"".join(np.asarray(part).tobytes() for part in (*parts, fitted.indices, fitted.ratios))
"""

LIGHTNING = """
import os, torch
from lightning.pytorch.callbacks import ModelCheckpoint
import lightning_trainer
torch.set_num_threads(1)
print("ready", flush=True)
keeper = ModelCheckpoint("kept", save_last=True, every_n_epochs=1, save_top_k=1, monitor=None)
last = "kept/last.ckpt" if os.path.exists("kept/last.ckpt") else None
options = dict(logger=False, enable_progress_bar=False, enable_model_summary=False)
found, _, _ = lightning_trainer.train(epochs=25, callbacks=[keeper], resume=last, **options)
result = repr(found).encode()
"""

ACCELERATE = """
import os, shutil, torch
from pathlib import Path
import accelerate_loop
torch.set_num_threads(1)
print("ready", flush=True)
for stop in range(1, 26):
    last = Path("kept")
    if last.exists() and int((last / "epoch").read_text()) >= stop:
        continue
    shutil.rmtree("part", ignore_errors=True)
    options = dict(epochs=25, stop=stop, resume=last if last.exists() else None)
    found, _ = accelerate_loop.train(save=Path("part"), **options)
    Path("part/epoch").write_text(str(stop))
    Path("part/found").write_text(repr(found))
    shutil.rmtree("old", ignore_errors=True)
    if last.exists():
        os.rename("kept", "old")  # a kill between the two renames loses the state, and training begins anew
    os.rename("part", "kept")
result = Path("kept/found").read_bytes()
"""

TRAININGS = {"module": MODULE, "lightning": LIGHTNING, "accelerate": ACCELERATE}
WRITE = "\nfrom pathlib import Path\nPath('result').write_bytes(result)\n"


def kill_trainings(scale: float, chance: random.Random) -> Outcome:
    """Kill or terminate a module's training ``20 · scale`` times, Lightning's and Accelerate's a third as often."""
    outcome = Outcome()
    for name, code in TRAININGS.items():
        if name != "module" and importlib.util.find_spec(name) is None:
            outcome.counts[f"{name} is not installed"] += 1
            continue
        whole, seconds = _train_undisturbed(code)
        wanted, killed = max(2, int(20 * scale / (1 if name == "module" else 3))), 0
        while killed < wanted:
            with new_folder() as folder:
                for attempt in range(6):
                    program = start(["-c", code + WRITE], folder)
                    program.wait_for("ready")
                    if attempt < 5 and killed < wanted:
                        time.sleep(chance.uniform(0, seconds))
                        kind = (signal.SIGKILL, signal.SIGTERM)[attempt % 2]
                        program.process.send_signal(kind)
                    program.wait(600)
                    if (folder / "result").exists():  # Lightning exits with 0 when it is terminated, too
                        break
                    killed += 1
                    outcome.counts[f"{name}, stopped"] += 1
                same = (folder / "result").exists() and (folder / "result").read_bytes() == whole
                outcome.counts[f"{name}, ended with the same bits"] += same
                outcome.check(same, f"{name}, stopped, ends with the same bits: {program.printed[-400:]}")
        outcome.faults += killed
    return outcome


def _train_undisturbed(code: str) -> tuple[bytes, float]:
    """Train without a disturbance; return the result, and the seconds from the first step on."""
    with new_folder() as folder:
        program = start(["-c", code + WRITE], folder)
        program.wait_for("ready")
        began = time.monotonic()
        assert program.wait(600) == 0, program.printed
        return (folder / "result").read_bytes(), time.monotonic() - began


# ---- Stop commands by signals: exit statuses, nothing half-written, no worker left, and the next try is whole.

ROLES = "people.csv --label income --sensitive sex"
COMMANDS = {
    "train": f"train {ROLES} --out work/out",
    "review": f"review {ROLES} --rows 200 --out work/review.html",
    "compare": "compare --data synthetic --methods lr,fairsieve --seeds 2 --no-tune --jobs 2 --out work/out",
}
SIGNALS = {signal.SIGKILL: -9, signal.SIGTERM: 143, signal.SIGINT: 130}


def stop_commands(scale: float, chance: random.Random) -> Outcome:
    """Stop each command ``12 · scale`` times, by SIGKILL, SIGTERM and SIGINT in turn."""
    outcome = Outcome()
    for name, line in COMMANDS.items():
        with new_folder() as folder:
            words = ["-m", "fairsieve", *line.split()]
            seconds = 0.0
            for _ in range(2):  # the first one warms the disk's cache
                _clear(folder)
                program, began = start(words, folder), time.monotonic()
                done = program.wait(600) == 0
                outcome.check(done, f"{name} succeeds undisturbed: {program.printed[-300:]}")
                seconds = time.monotonic() - began
            whole = read_results(folder / "work")
            for number in range(max(3, int(12 * scale))):
                kind = list(SIGNALS)[number % len(SIGNALS)]
                _clear(folder)
                _stop(outcome, name, words, folder, kind, chance.uniform(0, 0.9) * seconds)
                again = start([*words, "--force"] if name != "compare" else words, folder)
                done = again.wait(600) == 0
                outcome.check(done, f"{name} succeeds after {kind.name}: {again.printed[-300:]}")
                found = read_results(folder / "work")
                other = [key for key in whole.keys() | found.keys() if whole.get(key) != found.get(key)]
                outcome.check(not other, f"{name} ends with the same files after {kind.name}: {other}")
                outcome.counts[f"{name}, same files"] += not other
    return outcome


def _stop(
    outcome: Outcome, name: str, words: list[str], folder: Path, kind: signal.Signals, seconds: float
) -> None:
    """Stop a command after some seconds; a signal when Python itself ends may come too late."""
    program = start(words, folder)
    program.wait_until_it_handles_signals()
    time.sleep(seconds)
    if program.process.poll() is not None:
        outcome.counts[f"{name}, ended before the signal"] += 1
        return
    program.process.send_signal(kind)
    status, said = program.wait(60), program.printed
    outcome.faults += 1
    outcome.counts[f"{name}, {kind.name}"] += 1
    late = status in (0, -kind) and any((folder / "work").iterdir())
    kept, wanted = status == SIGNALS[kind] or late, SIGNALS[kind]
    outcome.check(kept, f"{name} exits with {wanted}, not {status}: {said[-300:]}")
    outcome.check("Traceback" not in said, f"{name} prints no traceback after {kind.name}: {said[-300:]}")
    alone = is_alone(program.process.pid, 30)  # a worker that just starts sees only then that it is alone
    outcome.check(alone, f"{name} leaves no worker after {kind.name}")
    program.end()
    parts = [path.name for path in folder.rglob("*.part")]
    outcome.check(kind == signal.SIGKILL or not parts, f"{name} leaves no part after {kind.name}: {parts}")


def _clear(folder: Path) -> None:
    shutil.rmtree(folder / "work", ignore_errors=True)
    (folder / "work").mkdir()


# ---- Fill the disk: a file system of one megabyte in memory, in a namespace of its own.

ON_FULL_DISK = """
import subprocess, sys, warnings
from pathlib import Path
disk = Path("disk")
arguments = [word.replace("OUT", str(disk / "out")) for word in sys.argv[2:]]
with (disk / "filling").open("wb", buffering=0) as file:
    try:
        while True:
            file.write(bytes(4096))
    except OSError:
        pass
done = subprocess.run([sys.executable, "-m", "fairsieve", *arguments], capture_output=True, text=True)
told = done.stderr.replace("\\n", "")
assert done.returncode == 1, (done.returncode, told)
assert "Traceback" not in told and "No space left" in told, told
assert sys.argv[1] in told, told
assert [path.name for path in disk.rglob("*") if path.is_file()] == ["filling"], list(disk.iterdir())
(disk / "filling").unlink()
"""
FULL = {  # what the error must name, and the command
    "train": ("out", f"train {ROLES} --out OUT"),
    "review": ("out.html", f"review {ROLES} --rows 20 --out OUT.html"),
    "audit": ("out.csv", f"audit {ROLES} --out OUT.csv"),
    "predict": ("out.csv", "predict run people.csv --out OUT.csv"),
}


def full_disk(scale: float, chance: random.Random) -> Outcome:
    """Run every command that writes once on a full disk."""
    probe = ["unshare", "-rm", "true"]
    if not shutil.which("unshare") or subprocess.run(probe, capture_output=True, check=False).returncode:
        return Outcome(skipped="unshare -rm is not allowed here")
    outcome = Outcome()
    with new_folder() as folder:
        made = start(["-m", "fairsieve", "train", *ROLES.split(), "--out", "run"], folder)
        outcome.check(made.wait(600) == 0, made.printed[-300:])
        (folder / "disk").mkdir()
        for name, (path, line) in FULL.items():
            inside = f'mount -t tmpfs -o size=1m tmpfs disk && exec {sys.executable} -c "$0" {path} {line}'
            program = start(["unshare", "-rm", "sh", "-c", inside, ON_FULL_DISK], folder, python=False)
            outcome.faults += 1
            outcome.check(program.wait(600) == 0, f"{name}, on a full disk: {program.printed[-600:]}")
    return outcome


# ---- Fit many models in one process: memory, open files and threads do not grow.

SOAK = """
import gc, sys, warnings
from pathlib import Path
import torch
from sklearn.linear_model import LogisticRegression
from fairsieve import FairRobustClassifier, SieveClassifier, fit
from fairsieve.data import make_synthetic
torch.set_num_threads(1)
warnings.simplefilter("ignore")
data, fits = make_synthetic(100, seed=0), int(sys.argv[1])
short = dict(epochs=4, warmup_epochs=1, clean_ratio=0.9, batch_size=20)


def classify(model):
    return model.fit(data.features, data.labels, sensitive_features=data.groups).suspects()


kinds = [
    lambda i: fit(torch.nn.Linear(3, 2), data, seed=i, **short),
    lambda i: fit(torch.nn.Linear(3, 2), data, seed=i, checkpoint_dir=f"kept-{i}", checkpoint_every=2, **short),
    lambda i: classify(FairRobustClassifier(clean_ratio=0.9, random_state=i)),
    lambda i: classify(SieveClassifier(LogisticRegression(), clean_ratio=0.9, random_state=i)),
]


def held():
    gc.collect()
    lines = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return int(lines["VmRSS"].split()[0]) * 1024, int(lines["Threads"]), len(list(Path("/proc/self/fd").iterdir()))


for i in range(fits):
    kinds[i % len(kinds)](i)
    if i == fits // 5:
        first = held()
last = held()
print(first, last)
assert last[1:] <= first[1:], "threads or files"
assert last[0] - first[0] < 16 * 2**20 + 2**11 * fits, "memory"
"""


def soak(scale: float, chance: random.Random) -> Outcome:
    """Fit ``1,000 · scale`` models."""
    outcome, fits = Outcome(), max(40, int(1000 * scale))
    with new_folder() as folder:
        program = start(["-c", SOAK, str(fits)], folder)
        outcome.check(program.wait(1800) == 0, program.printed[-600:])
        outcome.counts["fits"] = fits
    return outcome


@contextmanager
def new_folder() -> Iterator[Path]:
    """Make a folder with a table in it, which is removed in the end."""
    with tempfile.TemporaryDirectory(prefix="fairsieve-stress-") as folder:
        yield write_csv(Path(folder, "people.csv"), people(400)).parent


PROGRAMS = [kill_trainings, stop_commands, full_disk, soak]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    names = [program.__name__ for program in PROGRAMS]
    parser.add_argument("names", nargs="*", choices=[*names, []], help="what to run; everything by default")
    parser.add_argument("--scale", type=float, default=1.0, help="how many faults: a share of the usual")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    broken = 0
    for program in PROGRAMS:
        if arguments.names and program.__name__ not in arguments.names:
            continue
        began = time.monotonic()
        try:
            outcome = program(arguments.scale, random.Random(arguments.seed))
        except Exception as error:
            outcome = Outcome(broken=[f"the program itself failed: {error!r}"])
        state = f"skipped, {outcome.skipped}" if outcome.skipped else "broken" if outcome.broken else "kept"
        counts = "".join(f"; {key}: {value}" for key, value in sorted(outcome.counts.items()))
        seconds = time.monotonic() - began
        print(f"{program.__name__}: {state}; {outcome.faults} faults{counts}; {seconds:.0f} s", flush=True)
        for promise in outcome.broken:
            print(f"    {promise}", flush=True)
        broken += len(outcome.broken)
    sys.exit(1 if broken else 0)


if __name__ == "__main__":
    main()
