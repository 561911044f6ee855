"""
6. Labels wrong in one group only
=================================

Wrong labels are rarely spread evenly. One clinic codes differently, one language is transcribed worse, somebody tampers with the records of one group. It is also the hardest case:
a method that gives more weight to the group with the highest loss gives more weight to the wrong labels. You will compare four ways to train, and see what an estimate from the
data alone can say.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LogisticRegression

from fairsieve import FairRobustClassifier, equalized_odds_disparity, fit
from fairsieve.data import flip_group_targeted, make_synthetic

# %%
# An attack on one group
# ----------------------
#
# Of one group, the labels that a model would be surest of are flipped. It is the most harmful thing that can be done with so few labels.

train, test = make_synthetic(4000, seed=0), make_synthetic(20000, seed=100)
aimed = flip_group_targeted(train, 0.1)
fig, axes = plt.subplots(1, 2, sharex=True, sharey=True)
for ax, group in zip(axes, (0, 1), strict=True):
    inside = train.groups == group
    for label, color in ((0, "#e07a1f"), (1, "#2a6f97")):
        chosen = inside & (aimed.labels == label)
        ax.scatter(*train.features[chosen & ~aimed.flipped, :2].T, s=4, alpha=0.3, color=color)
        ax.scatter(*train.features[chosen & aimed.flipped, :2].T, s=9, marker="x", color=color)
    ax.set_title(f"group {group}: {np.mean(aimed.flipped[inside]):.0%} wrong (crosses)")
plt.show()

# %%
# Four ways to train
# ------------------
#
# Plain training; selecting the lowest losses without looking at groups (``"itlm"``); moving the shares of the groups without selecting (``"fairbatch"``); and fairsieve, which
# does both, and estimates which labels are wrong.

noisy = train.with_labels(aimed.labels)
settings = {"clean_ratio": 0.9, "epochs": 200, "warmup_epochs": 50, "batch_size": 200, "learning_rate": 0.002}
model = FairRobustClassifier(random_state=0)
model.fit(train.features, aimed.labels, sensitive_features=train.groups)
models = {
    "plain": LogisticRegression().fit(train.features, aimed.labels),
    "lowest losses": fit(None, noisy, "itlm", **settings),
    "groups only": fit(None, noisy, "fairbatch", **settings),
    "fairsieve": model,
}
guesses = {name: found.predict(test.features) for name, found in models.items()}
measures = {
    "accuracy": [np.mean(guess == test.labels) for guess in guesses.values()],
    "disparity": [
        equalized_odds_disparity(test.labels, guess, sensitive_features=test.groups)
        for guess in guesses.values()
    ],
}
fig, axes = plt.subplots(1, 2)
for ax, (name, values) in zip(axes, measures.items(), strict=True):
    bars = ax.barh(list(models), values, color=["#bbbbbb"] * 3 + ["#2a6f97"])
    ax.bar_label(bars, fmt="%.3f", padding=3)
    ax.set(title=f"{name}, on right labels", xlim=(0, max(values) * 1.25))
    ax.invert_yaxis()
axes[1].set_yticks([])
plt.show()

# %%
# What the estimate found
# -----------------------
#
# How many labels are right, with an interval; whether they look wrong on purpose; and why it believes so.

estimate = model.estimate_
low, high = estimate.interval
print(f"right labels: {estimate.clean_ratio:.2f}, between {low:.2f} and {high:.2f}; in truth 0.90")
print("why:", estimate.credible)
rows = model.suspects()["row"]
print(f"{len(rows)} suspects, of which {np.mean(aimed.flipped[rows]):.0%} are wrong")

# %%
# Where to go from here
# ---------------------
#
# * This attack leaves a trace. Labels that are wrong by a stereotype or by a column leave none: :doc:`/clean-ratio`.
# * A hundred labels that somebody checked tell more than any estimate: :doc:`/tutorials/02_review`.
