"""An epoch's plan on a GPU, from a model's outputs to batches on the device: its answers, and its time.

    python benchmarks/epoch_gpu.py            # --problems 40 --repeats 9 --out FILE
    python benchmarks/epoch_gpu.py --device cpu --problems 2 --repeats 1 --sizes 1000        # does it run?

Times are medians of repeats, host work included: from ``sampler.update(outputs)`` until the epoch's batches
are a tensor on the device. The first call, with a new sampler, is measured in a fresh process whose
GPU is awake.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from fairsieve import FairRobustBatchSampler, select
from fairsieve.sampling.losses import cross_entropy
from fairsieve.selection.cells import Cells
from fairsieve.selection.epoch import Plan

SIZES = (10**5, 10**6, 10**7, 10**8)
OPTIONS: dict[str, Any] = {"clean_ratio": 0.9, "warmup_epochs": 0}
NOTIONS = ("equalized_odds", "demographic_parity", "equal_opportunity", None)


def wait(device: str) -> None:
    """Wait until the device has finished."""
    if device != "cpu":
        torch.cuda.synchronize()


def median_ms(call: Callable[[], object], repeats: int, device: str) -> float:
    """Return the median milliseconds of a call, until the device has finished, after two that are not counted."""
    times = []
    for repeat in range(repeats + 2):
        wait(device)
        started = time.perf_counter()
        call()
        wait(device)
        if repeat >= 2:
            times.append(1000 * (time.perf_counter() - started))
    return statistics.median(times)


def problem(rng: np.random.Generator, n: int) -> tuple[Any, ...]:
    """Return losses with ties and infinities, cells, the options of a plan, and signals."""
    classes, groups = int(rng.integers(2, 5)), int(rng.integers(1, 8))
    kinds = {
        "ordinary": rng.exponential(size=n),
        "signed": rng.normal(size=n),
        "ties": np.round(rng.exponential(size=n), 3),
        "same": np.full(n, 1.5),
        "far apart": rng.normal(size=n) * 10.0 ** rng.integers(-30, 30, n),
    }
    losses = kinds[str(rng.choice(list(kinds)))]
    if rng.random() < 0.4:
        losses[rng.integers(0, n, 20)] = rng.choice([np.inf, -np.inf, 0.0, -0.0], 20)
    with np.errstate(over="ignore"):
        losses = losses.astype(rng.choice([np.float32, np.float64]))
    labels, columns = rng.integers(0, classes, n), rng.integers(0, groups, n)
    options = {
        "batch_size": int(rng.integers(1, 2000)),
        "fairness": NOTIONS[int(rng.integers(4))],
        "clean_ratio": float(rng.choice([0.9, 0.5, 0.99, 1.0, 0.1])),
        "step_size": float(rng.choice([0.0005, 0.2])),
        "weighted": bool(rng.random() < 0.8),
        "constrained": bool(rng.random() < 0.8),
        "batching": str(rng.choice(["even", "paper"])),
        "pos_label": 1,
        "warmup_epochs": 0,
    }
    return losses, labels, columns, options, rng.random((classes, n)).astype(losses.dtype)


def check(problems: int, device: str, largest: int = 10**6, seed: int = 0) -> int:
    """Compare plans and selections on the device with the host's; return how many were equal."""
    rng = np.random.default_rng(seed)
    for _ in range(problems):
        losses, labels, groups, options, signals = problem(rng, int(10 ** rng.uniform(2, np.log10(largest))))
        tensors = [torch.from_numpy(array).to(device) for array in (losses, labels, groups, signals)]
        host = Plan(Cells.of(labels, groups), **options, backend="numpy")
        plan = Plan(Cells.of(*tensors[1:3]), **options, backend="torch", device=device)
        for epoch in range(3):
            rows = len(host.comparisons.targets)
            host.update(losses, signals[:rows])
            expected = torch.from_numpy(host.batches())
            plan.epoch = epoch
            plan.update(tensors[0], tensors[3][:rows])
            batches = plan.batches()
            assert batches.device.type == torch.device(device).type
            assert torch.equal(batches.cpu(), expected)
            assert torch.equal(torch.as_tensor(plan.indices).cpu(), torch.from_numpy(host.indices))
            assert plan.ratios.tobytes() == host.ratios.tobytes()
            host.epoch = epoch + 1
            tensors[0], losses = tensors[0].roll(1), np.roll(losses, 1)
        found = select(tensors[0], *tensors[1:3], host.ratios, options["clean_ratio"], backend="torch")
        wanted = select(losses, labels, groups, host.ratios, options["clean_ratio"], backend="numpy")
        assert torch.equal(found.indices.cpu(), torch.from_numpy(wanted.indices))
    return problems


def new_problem(n: int, device: str) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return outputs (one logit each), labels and groups of two classes and groups, on the device."""
    generator = torch.Generator(device).manual_seed(n)
    labels, groups = (
        torch.randint(0, 2, (n,), device=device, generator=generator, dtype=torch.uint8) for _ in range(2)
    )
    noise = torch.empty(n, device=device).normal_(generator=generator)
    return noise + 2 * labels.float() - 1, labels, groups


def one_epoch(sampler: FairRobustBatchSampler, outputs: torch.Tensor) -> torch.Tensor:
    """Plan an epoch: doubts, selection, ratios and batches."""
    sampler.update(outputs)
    batches: torch.Tensor = sampler.plan.batches()
    sampler.plan.epoch += 1
    return batches


def measure(sizes: Sequence[int], repeats: int, device: str) -> dict[str, Any]:
    """Return milliseconds by number of samples, and what the card is."""
    rows = []
    for n in sizes:
        outputs, labels, groups = new_problem(n, device)
        row: dict[str, Any] = {
            "samples": n,
            "torch.sort": median_ms(lambda o=outputs: torch.sort(o), repeats, device),
        }
        sampler = FairRobustBatchSampler(labels, groups, 1000, **OPTIONS)
        row["epoch"] = median_ms(lambda s=sampler, o=outputs: one_epoch(s, o), repeats, device)
        row |= parts(sampler, outputs, repeats, device)
        del sampler
        losses, ratios = outputs.abs(), np.full((2, 2), 0.5)
        row["select"] = median_ms(
            lambda a=losses, y=labels, z=groups, r=ratios: select(a, y, z, r, 0.9), repeats, device
        )
        rows.append(row)
    is_gpu = device != "cpu"
    return {
        "device": torch.cuda.get_device_name() if is_gpu else "a processor",
        "torch": torch.__version__,
        "first call, s": first_call_seconds() if is_gpu else float("nan"),
        "milliseconds": rows,
    }


def parts(
    sampler: FairRobustBatchSampler, outputs: torch.Tensor, repeats: int, device: str
) -> dict[str, float]:
    """Return milliseconds of the parts of an epoch."""
    plan, backend = sampler.plan, sampler.plan.backend
    losses, signals = sampler._measured(outputs, cross_entropy)
    measured = backend.measure(losses, signals)
    return {
        "doubts": median_ms(lambda: sampler._measured(outputs, cross_entropy), repeats, device),
        "measure": median_ms(lambda: backend.measure(losses, signals), repeats, device),
        "sums": median_ms(lambda: backend.sum_signals(measured, plan._selected), repeats, device),
        "selection": median_ms(lambda: backend.select(measured, plan.limits), repeats, device),
        "batches": median_ms(plan.batches, repeats, device),
    }


FIRST = """
import time, torch
from fairsieve import FairRobustBatchSampler
outputs = torch.randn(10**7, device="cuda")
labels, groups = (outputs > 0).byte(), (outputs.abs() > 0.6).byte()
torch.cuda.synchronize()
started = time.perf_counter()
sampler = FairRobustBatchSampler(labels, groups, 1000, clean_ratio=0.9, warmup_epochs=0)
sampler.update(outputs)
batches = sampler.plan.batches()
torch.cuda.synchronize()
assert batches.is_cuda
print(time.perf_counter() - started)
"""


def first_call_seconds() -> float:
    """Return the seconds of a new sampler and its first epoch, ten million samples, in a fresh process."""
    run = subprocess.run([sys.executable, "-c", FIRST], check=True, capture_output=True, text=True)
    return float(run.stdout.split()[-1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--problems", type=int, default=40)
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    device = arguments.device
    if device != "cpu" and not torch.cuda.is_available():
        raise SystemExit("no GPU that torch can use; --device cpu shows that the program runs")
    largest = min(10**6, max(arguments.sizes))
    print(
        check(arguments.problems, device, largest),
        "problems: the same plans on the host and on the device",
        flush=True,
    )
    found = measure(arguments.sizes, arguments.repeats, device)
    for row in found["milliseconds"]:
        print({name: round(value, 3) for name, value in row.items()})
    print(found["device"], "torch", found["torch"], f"first call {found['first call, s']:.2f} s")
    if arguments.out:
        arguments.out.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
