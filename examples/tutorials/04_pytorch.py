"""
4. A PyTorch network
====================

Any loop of PyTorch becomes fair and robust by two lines: give the ``DataLoader`` our batch sampler, and tell it the model's
outputs once per epoch. You will train a small convolutional network on images, on labels of which many are wrong in
one group, with an ordinary loader and with ours. This needs ``pip install 'fairsieve[torch,plot]'``.
"""

# %%
# Images
# ------
#
# A disc or a ring, seen by one of two cameras. Camera B is rarer, darker and noisier, and its rings are often labelled
# as discs: 40 % of them, beside 5 % of everything else. The camera is our sensitive attribute. Nobody wants a
# network that works for one camera only.

import matplotlib.pyplot as plt
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from fairsieve import FairRobustBatchSampler, equalized_odds_disparity
from fairsieve.metrics import accuracy


def make_images(n, seed):
    """Draw n images, whether each is a ring (1) or a disc (0), and which camera took it."""
    rng = np.random.default_rng(seed)
    ring, camera_b = rng.integers(0, 2, n), rng.random(n) < 0.3
    rows, columns = np.mgrid[0:12, 0:12]
    center = rng.uniform(4, 7, (2, n, 1, 1))
    radius = rng.uniform(2.5, 4, (n, 1, 1))
    distance = np.hypot(rows - center[0], columns - center[1])
    inside = (distance < radius) & ((ring == 0)[:, None, None] | (distance > radius - 1.6))
    noise = rng.normal(size=inside.shape) * np.where(camera_b, 0.85, 0.55)[:, None, None]
    images = inside * np.where(camera_b, 0.8, 1.0)[:, None, None] + noise
    return torch.from_numpy(images.astype(np.float32))[:, None], ring, np.where(camera_b, "B", "A")


x, truth, camera = make_images(3000, seed=0)
x_test, y_test, camera_test = make_images(3000, seed=1)
rng = np.random.default_rng(2)
wrong = rng.random(3000) < np.where((camera == "B") & (truth == 1), 0.4, 0.05)
labels = np.where(wrong, 1 - truth, truth)
y = torch.from_numpy(labels)
print(f"{wrong.mean():.1%} of the labels are wrong")

fig, axes = plt.subplots(2, 8, figsize=(7, 2.2))
for row, group in enumerate("AB"):
    for ax, place in zip(axes[row], np.flatnonzero(camera == group)[:8], strict=True):
        ax.imshow(x[place, 0].numpy(), cmap="gray")
        name = ("disc", "ring")[labels[place]]
        ax.set_title(name, fontsize=8, color="#c0392b" if wrong[place] else "black")
        ax.axis("off")
fig.suptitle("Camera A above, camera B below; wrong labels in red", fontsize=9)
plt.show()

# %%
# The network and the loop
# ------------------------
#
# An ordinary network and an ordinary loop. The only new thing is the line before the batches: once per epoch the
# sampler is told the outputs for **all** samples, in order. It computes the losses, moves the ratios of the groups, and
# selects what this epoch trains on. With an ordinary loader there is no such line.

EPOCHS = 20


def make_network():
    torch.manual_seed(0)  # the same first weights for both
    return nn.Sequential(
        nn.Conv2d(1, 8, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
        nn.Linear(200, 16), nn.ReLU(), nn.Linear(16, 2),
    )  # fmt: skip


def train(model, loader, sampler=None):
    """Train, and measure the model on right labels after every epoch."""
    optimizer = torch.optim.Adam(model.parameters(), 0.002)
    scores = []
    for _ in range(EPOCHS):
        if sampler is not None:
            with torch.no_grad():
                sampler.update(model(x))  # the line that is new
            for cell, share in shares(sampler).items():
                kept.setdefault(cell, []).append(share)
        for features, targets in loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(features), targets).backward()
            optimizer.step()
        with torch.no_grad():
            guess = model(x_test).argmax(1).numpy()
        disparity = equalized_odds_disparity(y_test, guess, sensitive_features=camera_test)
        scores.append((accuracy(y_test, guess), disparity))
    return np.array(scores)


def shares(sampler):
    """Return the share of each cell that is selected, right and wrong labels apart."""
    selected = np.zeros(len(labels), bool)
    selected[np.asarray(sampler.indices)] = True
    return {
        (group, bad): selected[(camera == group) & (wrong == bad)].mean()
        for group in "AB"
        for bad in (False, True)
    }


# %%
# Plainly, and with the sampler
# -----------------------------
#
# The sampler gets labels and groups of any type, the batch size, and the share of labels that we believe to be right. The
# first epochs train on everything (``warmup_epochs``), so that losses mean something before they select.

kept = {}
plain = make_network()
plain_scores = train(plain, DataLoader(TensorDataset(x, y), batch_size=100, shuffle=True))

sampler = FairRobustBatchSampler(y, camera, 100, clean_ratio=0.9, warmup_epochs=4, step_size=0.01)
fair = make_network()
fair_scores = train(fair, DataLoader(TensorDataset(x, y), batch_sampler=sampler), sampler)

for name, scores in (("plain", plain_scores), ("with the sampler", fair_scores)):
    correct, disparity = scores[-5:].mean(axis=0)
    print(f"{name}: accuracy {correct:.3f}, equalized odds disparity {disparity:.3f} (last five epochs)")

fig, axes = plt.subplots(1, 2)
for ax, column, title in zip(axes, (0, 1), ("accuracy", "equalized odds disparity"), strict=True):
    ax.plot(plain_scores[:, column], label="plain")
    ax.plot(fair_scores[:, column], label="with the sampler")
    ax.axvline(4, color="#bbbbbb", linestyle=":")
    ax.set(xlabel="epoch", title=title)
axes[1].set_ylim(0)
axes[0].legend()
plt.show()

# %%
# Who is selected
# ---------------
#
# After the warm-up (dotted), most samples with wrong labels are left out of both cameras, while samples with right
# labels stay in. Some right labels of camera B are left out too: its images are hard, and hard images have high
# losses. That is why selecting by loss alone is unfair, and why the ratios are there: they show each class in batches as
# often from camera B as fairness asks for.

fig, ax = plt.subplots()
for (group, bad), values in kept.items():
    ax.plot(
        values,
        color="#2a6f97" if group == "A" else "#e07a1f",
        linestyle="--" if bad else "-",
        label=f"camera {group}, {'wrong' if bad else 'right'} labels",
    )
ax.axvline(4, color="#bbbbbb", linestyle=":")
ax.set(xlabel="epoch", ylabel="share selected", ylim=(0, 1.03))
ax.legend()
plt.show()
print("ratios (rows: disc, ring; columns: cameras A, B)")
print(sampler.ratios.round(2))

# %%
# Where to go from here
# ---------------------
#
# * ``clean_ratio`` is yours to say in a loop of your own: :func:`fairsieve.estimate_clean_ratio` estimates it from
#   features, labels and groups. If in doubt, choose it too low rather than too high.
# * ``sampler.state_dict()`` resumes a training, ``sampler.observe_losses`` saves the second forward pass, and on a GPU
#   everything stays there: :doc:`/pytorch`.
# * Lightning, Accelerate and Transformers: :doc:`/how-to/examples`.
