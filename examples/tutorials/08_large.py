"""
8. Several processes, and data larger than memory
=================================================

The selection looks at one loss per sample, and at nothing else. So it can be made where the losses are: in several processes that
each hold a part of the data, or over files that never fit in memory. You will do both at a small scale, with the same
calls as at a large one. This needs ``pip install '.[torch,plot]'`` in a clone.
"""

# %%
# Two processes, the same model
# -----------------------------
#
# Under ``torchrun`` every process runs the same file. Each takes its shard of the samples and tells a
# :class:`fairsieve.ShardedBatchSampler` its labels, groups and outputs. Together they select exactly what one process would;
# only tables of counts travel. Four lines, marked with a number, are special to several processes.

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import torch

from fairsieve import FairRobustBatchSampler, sample_losses

SCRIPT = """
import json
import torch, torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import TensorDataset
from fairsieve import ShardedBatchSampler, shard_of
from fairsieve.data import flip_group_targeted, synthetic_splits

if dist.is_torchelastic_launched():
    dist.init_process_group("gloo")                                               # 1
parts = synthetic_splits(seed=0)
labels = flip_group_targeted(parts.train, 0.1).labels
own = list(shard_of(len(labels)))                                                 # 2
x, y = torch.from_numpy(parts.train.features[own]), torch.from_numpy(labels[own])
sampler = ShardedBatchSampler(y, parts.train.groups[own], 100, clean_ratio=0.9, epochs=20)
loader = sampler.loader(TensorDataset(x, y))
torch.manual_seed(0)
model = torch.nn.Linear(3, 2)
together = DistributedDataParallel(model) if dist.is_initialized() else model     # 3
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
history = []
for epoch in range(20):
    with torch.no_grad():
        sampler.update(model(x))
        guess = model(torch.from_numpy(parts.test.features)).argmax(1).numpy()
    history.append(float((guess == parts.test.labels).mean()))
    for features, targets in loader:
        optimizer.zero_grad()
        losses = torch.nn.functional.cross_entropy(together(features), targets, reduction="none")
        (losses.sum() * sampler.scale).backward()                                 # 4: a mean over the whole batch
        optimizer.step()
if own[0] == 0:
    print(json.dumps({"selected": int(sampler.plan.selected), "shard": len(own), "accuracy": history}))
if dist.is_initialized():
    dist.destroy_process_group()
"""

folder = Path(tempfile.mkdtemp())
(folder / "train.py").write_text(SCRIPT)

# %%
# On the command line the two are ``python train.py`` and ``torchrun --nproc-per-node 2 train.py``. The number of processes
# makes no difference to what is selected, and none but rounding to the model:

torchrun = ("-m", "torch.distributed.run", "--standalone", "--max-restarts", "2", "--nproc-per-node", "2")
fig, ax = plt.subplots()
for processes, launcher, style in (
    (1, (), {"linewidth": 5, "alpha": 0.35}),
    (2, torchrun, {"linestyle": "--"}),
):
    command = [sys.executable, *launcher, str(folder / "train.py")]
    printed = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
    run = json.loads(printed.splitlines()[-1])
    print(
        f"{processes} process(es): {run['shard']} samples in the first shard, {run['selected']} selected in all"
    )
    ax.plot(run["accuracy"], label=f"{processes} process(es)", **style)
ax.set(xlabel="epoch", ylabel="accuracy on right labels")
ax.legend()
plt.show()

# %%
# Data that live in files
# -----------------------
#
# Features, labels and groups are files here, mapped into memory: NumPy reads the pages that are asked for, and the system
# drops them again when memory is short. Imagine a hundred gigabytes; we write five megabytes.

SAMPLES, COLUMNS = 20_000, 64
rng = np.random.default_rng(0)
features = np.lib.format.open_memmap(folder / "features.npy", "w+", np.float32, (SAMPLES, COLUMNS))
labels, groups = (
    np.lib.format.open_memmap(folder / f"{name}.npy", "w+", np.uint8, (SAMPLES,))
    for name in ("labels", "groups")
)
features[:] = rng.standard_normal((SAMPLES, COLUMNS), dtype=np.float32)
groups[:] = features[:, 0] + rng.normal(size=SAMPLES) > 0.8
labels[:] = features[:, 1] + 0.5 * groups + 0.5 * rng.logistic(size=SAMPLES) > 0.3
flipped = rng.random(SAMPLES) < np.where(groups == 1, 0.2, 0.05)
labels[flipped] = 1 - labels[flipped]

# %%
# The sampler keeps the loss of each sample in files too (``folder=``), and reads the labels in chunks. At first all losses
# are computed once, in chunks. After that, training steps tell the losses that they compute anyway, and a fifth of the
# samples that were left out is looked at again in each epoch: no second pass over the data.

sampler = FairRobustBatchSampler(
    labels, groups, 200, clean_ratio=0.85, warmup_epochs=0, folder=folder / "losses"
)
torch.manual_seed(0)
model = torch.nn.Linear(COLUMNS, 2)
optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
x, y = torch.from_numpy(features), torch.from_numpy(labels).long()  # mapped, and read a chunk at a time

sampler.observe_losses(torch.arange(SAMPLES), sample_losses(model, (x, y), chunk_size=2_000))
kept = []
for _ in range(6):
    sampler.refresh(model, x)
    sampler.update()
    selected = np.isin(np.arange(SAMPLES), sampler.indices)
    kept.append([selected[flipped].mean(), selected[~flipped].mean()])
    for batch in sampler.batches():
        losses = torch.nn.functional.cross_entropy(model(x[batch]), y[batch], reduction="none")
        sampler.observe_losses(batch, losses)
        optimizer.zero_grad()
        losses.mean().backward()
        optimizer.step()

fig, ax = plt.subplots()
ax.plot(np.array(kept), label=["wrong labels", "right labels"])
ax.set(xlabel="epoch", ylabel="share selected", ylim=(0, 1.03))
ax.legend()
plt.show()

# %%
# With a ``DataLoader``, let each item of your dataset end with its index: that says whose loss to report.
#
# A table of more rows than memory
# --------------------------------
#
# Large tables are folders of files. ``tabular.train``, and ``fairsieve train`` on the command line, take the folder. What
# does not fit into ``memory`` is read in parts: each is read, encoded and asked for sums, and no more than a few are in
# memory at a time. Ten million rows of 20 columns in 20 files took 174 s of processor time under ``memory="1333MB"``, and no more
# than 1.6 GB in all (``benchmarks/partitions.py``). We write 30,000 and allow 5 MB. The calls are the same.

import pandas as pd

from fairsieve import tabular

parts = folder / "parts"
parts.mkdir()
for place in range(3):
    woman = rng.random(10_000) < 0.4
    people = pd.DataFrame({"age": rng.integers(18, 90, 10_000), "hours": rng.normal(40, 9, 10_000)})
    score = 0.05 * (people["age"] - 50) + 0.08 * (people["hours"] - 40) - 0.5 * woman
    people["sex"] = np.where(woman, "woman", "man")
    people["income"] = np.where(score + rng.logistic(size=10_000) > 0, "high", "low")
    people.to_csv(parts / f"people-{place}.csv", index=False)

result = tabular.train(parts, label="income", sensitive="sex", clean_ratio=0.95, memory="5MB")
print(result.run.notes[0])
print(result.decision.sentence)

# %%
# Predictions are written part by part, into files of the same names:

tabular.predict(result, parts, memory="5MB").save(folder / "predicted")
print(*sorted(path.name for path in (folder / "predicted").iterdir()))

# %%
# On several machines: :doc:`/how-to/large-tables`.
#
# Where to go from here
# ---------------------
#
# * :doc:`/speed` measures both: four gigabytes of features in 256 MiB of memory, and how much travels between workers.
# * If a worker fails, all stop with its reason, and states can be loaded by another number of workers: :doc:`/pytorch`.
# * Lightning, Accelerate and Transformers do the four lines for you: :doc:`/how-to/examples`.
