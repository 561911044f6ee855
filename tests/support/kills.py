"""Kill a training (SIGKILL) at random moments and start it again until it ends.

A program, since it forks: what it imports and compiles is then there at once in every process it kills.
It prints how often it killed, and whether every training ended with the bits of one that was left alone.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import tempfile
import time
import traceback
from pathlib import Path

import torch

from fairsieve import fit
from fairsieve.data import make_synthetic
from fairsieve.data.flips import flip_margin

OPTIONS = {"epochs": 40, "warmup_epochs": 10, "clean_ratio": 0.9, "batch_size": 50, "average_last": 8}


def make_model() -> torch.nn.Module:
    """Make a module with dropout, whose random numbers must continue too."""
    torch.manual_seed(0)
    return torch.nn.Sequential(
        torch.nn.Linear(3, 8), torch.nn.BatchNorm1d(8), torch.nn.Dropout(0.3), torch.nn.Linear(8, 2)
    )


def trained(samples: int, folder: Path | None) -> bytes:
    """Train, and return all weights and the history as bytes."""
    clean = make_synthetic(samples, seed=0)
    data = clean.with_labels(flip_margin(clean, 0.1).labels)
    fitted = fit(make_model(), data, checkpoint_dir=folder, checkpoint_every=1, **OPTIONS)
    parts = [value.detach().numpy() for value in fitted.model.state_dict().values()]
    parts += [fitted.indices, fitted.ratios, fitted.history.cell_losses, fitted.history.times_selected]
    return b"".join(part.tobytes() for part in parts)


def start(samples: int, folder: Path) -> int:
    """Train in a process of its own, which writes its result to a file; return its number."""
    child = os.fork()
    if child:
        return child
    try:
        result = trained(samples, folder)
        (folder.parent / "result").write_bytes(result)
        os._exit(0)
    except BaseException:
        traceback.print_exc()
        os._exit(1)


def kill_until_it_ends(samples: int, seconds: float, chance: random.Random, most: int) -> dict:
    """Kill one training at most ``most`` times; return how it went."""
    told = {"kills": 0, "parts": 0, "starts": 0, "result": b""}
    with tempfile.TemporaryDirectory(prefix="fairsieve-kills-") as scratch:
        folder = Path(scratch) / "checkpoints"
        while True:
            child = start(samples, folder)
            told["starts"] += 1
            if told["kills"] < most:
                time.sleep(chance.uniform(0, seconds / 2))
                os.kill(child, signal.SIGKILL)  # not waited for yet, so the number is still its own
            _, status = os.waitpid(child, 0)
            if os.WIFSIGNALED(status):
                told["kills"] += 1
                told["parts"] += len(list(folder.glob(".*.part"))) if folder.exists() else 0
            elif os.waitstatus_to_exitcode(status) == 0:
                return told | {"result": (Path(scratch) / "result").read_bytes()}
            else:
                raise RuntimeError("training failed of itself")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=30)
    parser.add_argument("--samples", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    torch.set_num_threads(1)  # threads do not survive a fork
    chance, samples = random.Random(arguments.seed), arguments.samples
    with tempfile.TemporaryDirectory() as scratch:
        began = time.perf_counter()
        whole = trained(samples, Path(scratch))
        seconds = time.perf_counter() - began
    assert whole == trained(samples, None)
    total = {"kills": 0, "parts": 0, "starts": 0, "trainings": 0, "same": 0}
    while total["kills"] < arguments.kills:
        told = kill_until_it_ends(samples, seconds, chance, arguments.kills - total["kills"])
        total["trainings"] += 1
        total["same"] += told.pop("result") == whole
        for name, value in told.items():
            total[name] += value
    print(json.dumps(total))


if __name__ == "__main__":
    main()
