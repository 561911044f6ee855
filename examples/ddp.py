"""Training on several processes with DistributedDataParallel, running losses, and checkpoints.

python examples/ddp.py                                     # one process
torchrun --nproc-per-node 2 examples/ddp.py                # two, the same model
torchrun --nproc-per-node 2 examples/ddp.py --folder run --stop 20
torchrun --nproc-per-node 3 examples/ddp.py --folder run   # continues from there, with three
"""

from __future__ import annotations

import argparse
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import TensorDataset

from fairsieve import ShardedBatchSampler, equalized_odds_disparity, shard_of
from fairsieve.data import flip_group_targeted, synthetic_splits
from fairsieve.metrics import accuracy


def train(
    *,
    epochs: int = 40,
    stop: int | None = None,
    folder: Path | None = None,
    timeout: float = 60,
    group: Any = None,
) -> dict[str, float]:
    """Train on this process's shard, and measure the model on the test data."""
    parts = synthetic_splits(seed=0)
    labels = flip_group_targeted(parts.train, 0.1).labels
    rank, ranks = (dist.get_rank(group), dist.get_world_size(group)) if dist.is_initialized() else (0, 1)
    own = shard_of(len(labels), rank, ranks)
    x = torch.from_numpy(parts.train.features[own]).float()
    y = torch.from_numpy(labels[own])
    sampler = ShardedBatchSampler(
        labels[own],
        parts.train.groups[own],
        100,
        clean_ratio=0.9,
        warmup_epochs=5,
        timeout=timeout,
        group=group,
    )
    loader = sampler.loader(TensorDataset(torch.arange(len(y)), x, y))

    torch.manual_seed(0)  # the same first weights everywhere
    model: nn.Module = nn.Linear(x.shape[1], 2)
    module = model
    if dist.is_initialized():
        model = DistributedDataParallel(module, process_group=group)
    optimizer = torch.optim.Adam(module.parameters(), lr=0.005)

    if folder is not None and (folder / "model.pt").exists():
        saved = torch.load(folder / "model.pt", weights_only=True)
        module.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        files = state_files(folder, saved["ranks"])  # of all ranks there were, not of this one alone
        sampler.load_state_dict([torch.load(file, weights_only=True) for file in files])

    while sampler.epoch < (epochs if stop is None else stop):
        sampler.refresh(module, x)  # look again at some of the samples that were left out
        sampler.update()  # from the losses observed; all ranks choose together
        for where, features, targets in loader:
            with sampler.workers.guard("training"):  # a lost worker is a WorkerError here too
                losses = nn.functional.cross_entropy(model(features), targets, reduction="none")
                sampler.observe_losses(where, losses)
                optimizer.zero_grad()
                (losses.sum() * sampler.scale).backward()  # the mean over the global batch
                optimizer.step()

    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        torch.save(sampler.state_dict(), state_files(folder, ranks)[rank])
        if dist.is_initialized():
            dist.barrier(group)
        if rank == 0:  # last, so that it names files that are all there
            state = {"model": module.state_dict(), "optimizer": optimizer.state_dict(), "ranks": ranks}
            torch.save(state, folder / "model.pt")
    with torch.no_grad():
        guessed = module(torch.from_numpy(parts.test.features).float()).argmax(1).numpy()
    truth, groups = parts.test.labels, parts.test.groups
    return {
        "accuracy": accuracy(truth, guessed),
        "disparity": equalized_odds_disparity(truth, guessed, sensitive_features=groups),
        "selected": sampler.plan.selected,
        "sum of weights": sum(value.detach().double().abs().sum().item() for value in module.parameters()),
    }


def state_files(folder: Path, ranks: int) -> list[Path]:
    """Return the files of so many ranks' samplers; those of another number of ranks are not among them."""
    return [folder / f"sampler-{rank}-of-{ranks}.pt" for rank in range(ranks)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--epochs", type=int, default=40)
    parser.add_argument("--stop", type=int, help="end after this epoch, as if interrupted")
    parser.add_argument("--folder", type=Path, help="where checkpoints are")
    parser.add_argument("--timeout", type=float, default=60, help="seconds to wait for another worker")
    arguments = parser.parse_args()
    if dist.is_torchelastic_launched():
        # The sums inside DistributedDataParallel wait as long as this says, whatever the sampler's timeout.
        dist.init_process_group("gloo", timeout=timedelta(seconds=arguments.timeout))
    found = train(**vars(arguments))
    if not dist.is_initialized() or dist.get_rank() == 0:
        print(", ".join(f"{name} {value:.4f}" for name, value in found.items()))
    if dist.is_initialized():
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
