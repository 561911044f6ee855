"""
8. Several processes, and data larger than memory
=================================================

The selection looks at one loss per sample, and at nothing else. So it can be made where the losses are: in several processes that
each hold a part of the data, or over files that never fit in memory. You will do both at a small scale, with the same
calls as at a large one. This needs ``pip install 'fairsieve[torch,plot]'``.
"""

# %%
# Two processes, the same model
# -----------------------------
#
# Under ``torchrun`` every process runs the same file. Each takes its shard of the samples (:func:`fairsieve.shard_of`) and gives
# its labels, groups and outputs to a :class:`fairsieve.ShardedBatchSampler`. Together they select exactly what one process
# would, and only tables of counts travel between them.
#
# This is such a file. What is special to several processes are four lines, marked with a number.

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

SCRIPT = """
import json, sys
import torch, torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import TensorDataset
from fairsieve import ShardedBatchSampler, equalized_odds_disparity, shard_of
from fairsieve.data import flip_group_targeted, synthetic_splits

if dist.is_torchelastic_launched():
    dist.init_process_group("gloo")                                               # 1
parts = synthetic_splits(seed=0)
labels = flip_group_targeted(parts.train, 0.1).labels
own = list(shard_of(len(labels)))                                                 # 2
x, y = torch.from_numpy(parts.train.features[own]), torch.from_numpy(labels[own])
sampler = ShardedBatchSampler(
    y, parts.train.groups[own], 100, clean_ratio=0.9, step_size=0.005, warmup_epochs=5
)
loader = sampler.loader(TensorDataset(x, y))
torch.manual_seed(0)
model = torch.nn.Linear(3, 2)
together = DistributedDataParallel(model) if dist.is_initialized() else model     # 3
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
history = []
for epoch in range(12):
    with torch.no_grad():
        sampler.update(model(x))
    for features, targets in loader:
        optimizer.zero_grad()
        losses = torch.nn.functional.cross_entropy(together(features), targets, reduction="none")
        (losses.sum() * sampler.scale).backward()                                 # 4: a mean over the whole batch
        optimizer.step()
    with torch.no_grad():
        guess = model(torch.from_numpy(parts.test.features)).argmax(1).numpy()
    history.append(equalized_odds_disparity(parts.test.labels, guess, sensitive_features=parts.test.groups))
if own[0] == 0:
    print(json.dumps({"selected": int(sampler.plan.selected), "shard": len(own), "disparity": history}))
if dist.is_initialized():
    dist.destroy_process_group()
"""

folder = Path(tempfile.mkdtemp())
(folder / "train.py").write_text(SCRIPT)


def run_training(*launcher):
    """Run the file, by a launcher or without one."""
    command = [sys.executable, *launcher, str(folder / "train.py")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


# %%
# On the command line the two are ``python train.py`` and ``torchrun --nproc-per-node 2 train.py``. The number of processes makes no difference to what is
# selected, and none but rounding to the model:

torchrun = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2")
runs = {1: run_training(), 2: run_training(*torchrun)}
for processes, run in runs.items():
    print(
        f"{processes} process(es): {run['shard']} samples in the first shard, {run['selected']} selected at the end"
    )

fig, ax = plt.subplots()
ax.plot(runs[1]["disparity"], linewidth=5, alpha=0.35, label="one process")
ax.plot(runs[2]["disparity"], linestyle="--", label="two processes")
ax.set(xlabel="epoch", ylabel="equalized odds disparity", ylim=(0, None))
ax.legend()
plt.show()

# %%
# Data that live in files
# -----------------------
#
# Features, labels and groups are files here, mapped into memory: NumPy reads the pages that are asked for, and the system
# drops them again when memory is short. Imagine a hundred gigabytes; we write five megabytes.

import torch
from torch.utils.data import Dataset

from fairsieve import FairRobustBatchSampler, sample_losses

SAMPLES, COLUMNS = 20_000, 64
rng = np.random.default_rng(0)
features = np.lib.format.open_memmap(folder / "features.npy", "w+", np.float32, (SAMPLES, COLUMNS))
labels, groups = (
    np.lib.format.open_memmap(folder / f"{name}.npy", "w+", np.uint8, (SAMPLES,))
    for name in ("labels", "groups")
)
for first in range(0, SAMPLES, 5_000):
    rows = slice(first, first + 5_000)
    features[rows] = rng.standard_normal((5_000, COLUMNS), dtype=np.float32)
    groups[rows] = features[rows, 0] + rng.normal(size=5_000) > 0.8
    labels[rows] = features[rows, 1] + 0.5 * groups[rows] + 0.5 * rng.logistic(size=5_000) > 0.3
flipped = rng.random(SAMPLES) < np.where(groups == 1, 0.2, 0.05)
labels[flipped] = 1 - labels[flipped]


class Files(Dataset):
    """Read a sample when it is asked for; the index comes along, to say whose loss it is."""

    def __init__(self, folder):
        self.features, self.labels = (
            np.load(folder / f"{name}.npy", mmap_mode="r", allow_pickle=False)
            for name in ("features", "labels")
        )

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        return torch.from_numpy(self.features[index].copy()), int(self.labels[index]), index


# %%
# The sampler keeps the latest loss of each sample in files too (``folder=``), and reads the labels in chunks. At first all losses
# are computed once, in chunks (:func:`fairsieve.sample_losses`). After that, training steps tell the losses that they compute
# anyway, and only a fifth of the samples that were left out is looked at again in each epoch: no second pass over the
# data.

dataset = Files(folder)
sampler = FairRobustBatchSampler(
    np.load(folder / "labels.npy", mmap_mode="r", allow_pickle=False),
    np.load(folder / "groups.npy", mmap_mode="r", allow_pickle=False),
    200,
    clean_ratio=0.85,
    warmup_epochs=0,
    step_size=0.01,
    folder=folder / "losses",
)
torch.manual_seed(0)
model = torch.nn.Linear(COLUMNS, 2)
optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
everything = (
    torch.from_numpy(features),
    torch.from_numpy(labels).long(),
)  # mapped, and read a chunk at a time

kept = []
for epoch in range(6):
    if epoch == 0:
        sampler.observe_losses(torch.arange(SAMPLES), sample_losses(model, everything, chunk_size=2_000))
    else:
        sampler.refresh(model, everything[0])
    sampler.update()
    selected = np.zeros(SAMPLES, bool)
    selected[np.asarray(sampler.indices)] = True
    kept.append([selected[flipped].mean(), selected[~flipped].mean()])
    for batch in sampler.batches():
        x, y = everything[0][batch], everything[1][batch]
        losses = torch.nn.functional.cross_entropy(model(x), y, reduction="none")
        sampler.observe_losses(batch, losses)
        optimizer.zero_grad()
        losses.mean().backward()
        optimizer.step()

on_disk = {path.name: path.stat().st_size for path in sorted((folder / "losses").iterdir())}
print("files of the sampler:", {name: f"{size / 1e6:.1f} MB" for name, size in on_disk.items()})

fig, ax = plt.subplots()
ax.plot(np.array(kept), label=["wrong labels", "right labels"])
ax.set(xlabel="epoch", ylabel="share selected", ylim=(0, 1.03))
ax.legend()
plt.show()

# %%
# In a loop with a ``DataLoader``, give it ``batch_sampler=sampler`` and the dataset above: the third value of each item says whose
# loss to report to ``observe_losses``.

loader = torch.utils.data.DataLoader(dataset, batch_sampler=sampler)
x, y, where = next(iter(loader))
print("a batch:", tuple(x.shape), "of samples", where[:4].tolist(), "…")

# %%
# Where to go from here
# ---------------------
#
# * :doc:`/speed` measures both: four gigabytes of features in 256 MiB of memory, and how much travels between workers.
# * If a worker fails, all stop with its reason, and states can be loaded by another number of workers: :doc:`/pytorch`.
# * Lightning, Accelerate and Transformers do the four lines for you: :doc:`/how-to/examples`.
