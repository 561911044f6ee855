"""
4. A PyTorch network
====================

A loop of PyTorch becomes fairer and more robust by two lines: give the ``DataLoader`` our batch sampler, and show it the
model once per epoch. You will train a small network on pictures of digits, plainly and with the sampler.
This needs ``pip install '.[torch,plot]'`` in a clone.
"""

# %%
# Pictures
# --------
#
# The digits that come with scikit-learn. Some pictures are negatives: dark on light. Nine of ten pictures of the digits 0 to 4 are,
# and one of ten of the others, so that a lazy network looks at the paper and not at the digit. Whether a picture
# is a negative is our group. A tenth of the labels is wrong. In the test, half of all pictures are negatives and all
# labels are right.

import matplotlib.pyplot as plt
import numpy as np
import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from fairsieve import FairRobustBatchSampler, SamplingMethod, equalized_odds_disparity

rng = np.random.default_rng(0)
pictures, digits = load_digits(return_X_y=True)
is_test = rng.permutation(len(digits)) < 600
chance = np.where(is_test, 0.5, np.where(digits < 5, 0.9, 0.1))
is_negative = rng.random(len(digits)) < chance
group = np.where(is_negative, "negative", "ordinary")
images = np.where(is_negative[:, None], 16 - pictures, pictures) / 16
is_wrong = ~is_test & (rng.random(len(digits)) < 0.1)
labels = np.where(is_wrong, (digits + rng.integers(1, 10, len(digits))) % 10, digits)

fig, axes = plt.subplots(2, 10, figsize=(8, 2))
for row, name in enumerate(("negative", "ordinary")):
    for digit, ax in enumerate(axes[row]):
        place = np.flatnonzero((group == name) & (digits == digit) & ~is_test)[0]
        ax.imshow(images[place].reshape(8, 8), cmap="gray", vmin=0, vmax=1)
        ax.set_title(labels[place], fontsize=8, color="#c0392b" if is_wrong[place] else "black")
        ax.axis("off")
plt.show()

x, y, z = torch.from_numpy(images[~is_test]).float(), torch.from_numpy(labels[~is_test]), group[~is_test]
x_test, y_test, z_test = torch.from_numpy(images[is_test]).float(), digits[is_test], group[is_test]

# %%
# The loop
# --------
#
# An ordinary network and an ordinary loop. What is new is the sampler, and the line that shows it the model and **all**
# samples, in order. It finds the labels that the network doubts, leaves these samples out, and shows the pictures of the
# rarer group of each digit more often. How much more, the network foretells, for new pictures of which as many are
# negatives as here. We know that half of them will be, so we ask for groups of equal weight: ``balance=0``.

EPOCHS = 20


def train(with_sampler):
    """Train; return the sampler, and accuracy and disparity on right labels after every epoch."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
    optimizer = torch.optim.Adam(model.parameters(), 0.005)
    sampler, loader = None, DataLoader(TensorDataset(x, y), 50, shuffle=True)
    if with_sampler:
        method = SamplingMethod(balance=0)
        sampler = FairRobustBatchSampler(y, z, 50, epochs=EPOCHS, method=method)  # new
        loader = DataLoader(TensorDataset(x, y), batch_sampler=sampler)
    scores = []
    for _ in range(EPOCHS):
        if sampler is not None:
            sampler.update(model, x)  # new
        with torch.no_grad():
            guess = model(x_test).argmax(1).numpy()
        disparity = equalized_odds_disparity(y_test, guess, sensitive_features=z_test)
        scores.append(((guess == y_test).mean(), disparity))
        for features, targets in loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(features), targets).backward()
            optimizer.step()
    return sampler, np.array(scores)


_, plain = train(False)
sampler, ours = train(True)
for name, scores in (("plain", plain), ("with the sampler", ours)):
    print(f"{name}: accuracy {scores[-1, 0]:.2f}, equalized odds disparity {scores[-1, 1]:.2f}")

fig, axes = plt.subplots(1, 2, figsize=(8, 3))
for ax, column, title in zip(axes, (0, 1), ("accuracy", "equalized odds disparity"), strict=True):
    ax.plot(plain[:, column], label="plain")
    ax.plot(ours[:, column], label="with the sampler")
    ax.axvline(sampler.plan.warmup_epochs, color="#bbbbbb", linestyle=":")
    ax.set(xlabel="epoch", title=title)
axes[0].legend()
plt.show()

# %%
# What it did
# -----------
#
# The first third of the epochs (to the dotted line) trains on everything. After that most wrong labels are left out, and
# rare pictures weigh more:

left_out = np.ones(len(y), bool)
left_out[np.asarray(sampler.indices)] = False
wrong = is_wrong[~is_test]
print(
    f"left out: {left_out[wrong].mean():.0%} of the wrong labels, {left_out[~wrong].mean():.0%} of the right ones"
)
print(sampler.summary())

# %%
# Where to go from here
# ---------------------
#
# * What to set when, and what was measured with larger networks: :doc:`/how-to/deep-networks`.
# * Checkpoints, GPUs, no second forward pass: :doc:`/pytorch`. Lightning, Accelerate, Transformers: :doc:`/how-to/examples`.
