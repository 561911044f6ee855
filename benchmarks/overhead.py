"""The cost of being fair and robust: our sampler against plain shuffling, the same number of samples seen.

    python benchmarks/overhead.py            # --device cuda, --quick

An MLP on 10⁶ rows and a small ResNet on image-like tensors. Epochs of the arms take turns, so that a
busy machine is busy for all; medians of the ratios to the plain epoch beside them. "running losses" keeps
the training's own losses and looks again at a fifth of the others every epoch; "full pass" computes
every sample's loss anew; "a forward pass" is what that costs at least.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

from fairsieve import FairRobustBatchSampler
from fairsieve.sampling.losses import compute_outputs

CHUNK = 1024  # samples a forward pass takes together


class Block(nn.Module):
    """Two convolutions and the way around them."""

    def __init__(self, inside: int, outside: int, stride: int) -> None:
        super().__init__()
        self.one = nn.Conv2d(inside, outside, 3, stride, 1, bias=False)
        self.two = nn.Conv2d(outside, outside, 3, 1, 1, bias=False)
        self.norms = nn.ModuleList([nn.BatchNorm2d(outside), nn.BatchNorm2d(outside)])
        self.around = nn.Conv2d(inside, outside, 1, stride, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        inner = F.relu(self.norms[0](self.one(x)))
        return F.relu(self.norms[1](self.two(inner)) + self.around(x))


def resnet() -> nn.Module:
    blocks = [Block(16, 16, 1), Block(16, 32, 2), Block(32, 64, 2)]
    return nn.Sequential(
        nn.Conv2d(3, 16, 3, 1, 1), *blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 2)
    )


def mlp() -> nn.Module:
    return nn.Sequential(nn.Linear(32, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 2))


def drawn(shape: tuple[int, ...], device: str) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Features, labels that follow them but for a tenth, and groups."""
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(shape, generator=generator)
    z = torch.randint(0, 2, shape[:1], generator=generator)
    y = (x.flatten(1).mean(1) > 0).long() ^ (torch.rand(len(x), generator=generator) < 0.1)
    return x.to(device), y.to(device), z


def arms_of(
    make: Callable[[], nn.Module], shape: tuple[int, ...], batch_size: int, device: str
) -> dict[str, Callable[[], int]]:
    """What is timed; each call trains an epoch and says how many samples it saw."""
    x, y, z = drawn(shape, device)
    torch.manual_seed(0)

    def trainer() -> Any:
        model = make().to(device)
        optimizer = torch.optim.SGD(model.parameters(), 0.01)

        def step(batch: torch.Tensor) -> torch.Tensor:
            losses = F.cross_entropy(model(x[batch]), y[batch], reduction="none")
            optimizer.zero_grad()
            losses.mean().backward()
            optimizer.step()
            return losses

        return model, step

    def new_sampler() -> FairRobustBatchSampler:
        return FairRobustBatchSampler(y, z, batch_size, clean_ratio=0.9, warmup_epochs=1)

    _, plain_step = trainer()
    running_model, running_step = trainer()
    full_model, full_step = trainer()
    running, full = new_sampler(), new_sampler()

    def plain() -> int:
        batches = len(running)
        order = torch.randperm(len(x))
        for i in range(batches):
            plain_step(order[i * batch_size : (i + 1) * batch_size].to(device))
        return batches * batch_size

    def with_running() -> int:
        running.refresh(running_model, x, chunk_size=CHUNK)
        running.update()
        for batch in running.batches():
            running.observe_losses(batch, running_step(batch.to(device)))
        return len(running) * batch_size

    def with_full_pass() -> int:
        full.update(full_model, x, chunk_size=CHUNK)
        for batch in full.batches():
            full_step(batch.to(device))
        return len(full) * batch_size

    def forward() -> int:
        compute_outputs(full_model, x, chunk_size=CHUNK)
        return len(full) * batch_size  # as all the others, so that it adds up with a plain epoch

    return {
        "plain": plain,
        "running losses": with_running,
        "full pass": with_full_pass,
        "a forward pass": forward,
    }


def measure(make: Any, shape: tuple[int, ...], batch_size: int, device: str, repeats: int) -> dict[str, Any]:
    """Seconds a million samples by arm, and the median ratio to the plain epoch of the same round."""
    arms = arms_of(make, shape, batch_size, device)
    times: dict[str, list[float]] = {name: [] for name in arms}
    for turn in range(repeats + 2):  # the warm-up epoch, and one that compiles, are not counted
        for name, arm in arms.items():
            started = time.perf_counter()
            seen = arm()
            if device != "cpu":
                torch.cuda.synchronize()
            if turn >= 2:
                times[name].append((time.perf_counter() - started) / seen * 1e6)
    ratios = {
        name: statistics.median(a / b for a, b in zip(times[name], times["plain"], strict=True))
        for name in arms
    }
    return {
        "seconds per million samples": {name: statistics.median(all_) for name, all_ in times.items()},
        "ratio to plain": ratios,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="a tenth of the data")
    parser.add_argument("--models", nargs="+", default=["MLP", "ResNet"])
    arguments = parser.parse_args()
    tenth = 10 if arguments.quick else 1
    problems = {
        "MLP": (mlp, (10**6 // tenth, 32), 1024),
        "ResNet": (resnet, ((8192 if arguments.device == "cpu" else 100_000) // tenth, 3, 32, 32), 128),
    }
    print(f"torch threads: {torch.get_num_threads()}, device: {arguments.device}")
    print("| model | samples | arm | s per million samples | ratio to plain |")
    print("| --- | --- | --- | --- | --- |")
    for name in arguments.models:
        make, shape, batch_size = problems[name]
        found = measure(make, shape, batch_size, arguments.device, arguments.repeats)
        for arm, seconds in found["seconds per million samples"].items():
            print(
                f"| {name} | {shape[0]:,} | {arm} | {seconds:.2f} | {found['ratio to plain'][arm]:.3f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
