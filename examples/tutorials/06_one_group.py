"""
6. Labels wrong in one group only
=================================

Wrong labels are rarely spread evenly. One clinic codes differently, one language is transcribed worse, somebody tampers with
the records of one group. It is also the hardest case: a method that gives more weight to the group with the highest
loss gives more weight to the wrong labels. You will look at two ways in which the labels of one group go wrong, and at what
an estimate from the data alone can say about each.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LogisticRegression

from fairsieve import FairRobustClassifier, accuracy, equalized_odds_disparity, estimate_clean_ratio, fit
from fairsieve.data import flip_group_targeted, flip_uniform, make_synthetic

# %%
# Aimed at the surest samples
# ---------------------------
#
# The first kind is the paper's attack: of one group, the labels that a model would be surest of are flipped. It is the
# most harmful thing that can be done with so few labels.

train, test = make_synthetic(4000, seed=0), make_synthetic(10000, seed=100)
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
# Plain training; selecting the lowest losses without looking at groups (``"itlm"``); moving the shares of the groups without
# selecting (``"fairbatch"``); and both, where the wrong labels are found by an estimate.


def scores(guess):
    disparity = equalized_odds_disparity(test.labels, guess, sensitive_features=test.groups)
    return {"accuracy": accuracy(test.labels, guess), "disparity": disparity}


noisy = train.with_labels(aimed.labels)
settings = {"clean_ratio": 0.9, "epochs": 200, "warmup_epochs": 50, "batch_size": 200, "learning_rate": 0.002}
model = FairRobustClassifier(random_state=0).fit(
    train.features, aimed.labels, sensitive_features=train.groups
)
results = {
    "plain": scores(LogisticRegression().fit(train.features, aimed.labels).predict(test.features)),
    "lowest losses": scores(fit(None, noisy, "itlm", **settings).predict(test.features)),
    "groups only": scores(fit(None, noisy, "fairbatch", **settings).predict(test.features)),
    "fairsieve": scores(model.predict(test.features)),
}
fig, axes = plt.subplots(1, 2)
for ax, name in zip(axes, ("accuracy", "disparity"), strict=True):
    values = [result[name] for result in results.values()]
    bars = ax.barh(list(results), values, color=["#bbbbbb"] * 3 + ["#2a6f97"])
    ax.bar_label(bars, fmt="%.3f", padding=3)
    ax.set(title=name, xlim=(0, max(values) * 1.25))
    ax.invert_yaxis()
axes[1].set_yticks([])
plt.show()

# %%
# What the estimate found
# -----------------------
#
# It says how many labels are right at most, with an interval for those wrong at random or on purpose (``covers``); whether
# they look wrong on purpose; and why it believes so. Labels wrong in another way would come on top. The probability that
# a label is wrong is there for every sample.

estimate = model.estimate_
low, high = estimate.interval
print(f"right labels: {estimate.clean_ratio:.2f}, between {low:.2f} and {high:.2f}; in truth 0.90")
print("on purpose:", estimate.aimed)
print("why:", estimate.credible)
rows = model.suspects()["row"]
print(f"{len(rows)} suspects, of which {np.mean(aimed.flipped[rows]):.0%} are wrong")

# %%
# At random, in one group
# -----------------------
#
# The second kind is carelessness: of group 1, every fourth label is wrong, wherever it is. Of group 0, one in fifty.

rates = {(label, group): (0.02, 0.25)[group] for label in (0, 1) for group in (0, 1)}
table = make_synthetic(4000, seed=3)
random = flip_uniform(table, rates, seed=0)
found = estimate_clean_ratio(table.features, random.labels, sensitive_features=table.groups)
truth = np.array(
    [
        [random.flipped[(random.labels == label) & (table.groups == group)].mean() for group in (0, 1)]
        for label in (0, 1)
    ]
)
print("why:", found.credible)
fig, axes = plt.subplots(1, 2)
for ax, values, title in zip(axes, (truth, found.noise), ("in truth", "as estimated"), strict=True):
    ax.imshow(np.nan_to_num(values), cmap="YlOrBr", vmin=0, vmax=0.5)
    for (row, column), value in np.ndenumerate(values):
        ax.text(column, row, f"{value:.0%}", ha="center", va="center", fontsize=12)
    ax.set(
        xticks=[0, 1], xticklabels=["group 0", "group 1"], yticks=[0, 1], yticklabels=["label 0", "label 1"]
    )
    ax.set_title(f"wrong labels, {title}")
    ax.spines[:].set_visible(False)
plt.show()

# %%
# How far to trust this
# ---------------------
#
# The same question, asked of ten other draws of the same data. Each line is the interval that the estimate gave for the
# share of right labels, and the cross is the truth. An interval that misses the truth is the estimate's mistake, and you can see
# how often that happens here; a grey line is an estimate that calls itself inconclusive.

lines = []
for seed in range(10):
    draw = make_synthetic(3000, seed=10 + seed)
    flipped = flip_uniform(draw, rates, seed=seed)
    guess = estimate_clean_ratio(draw.features, flipped.labels, sensitive_features=draw.groups)
    lines.append((*guess.interval, 1 - flipped.flipped.mean(), bool(guess.credible)))
fig, ax = plt.subplots()
for place, (low, high, right, conclusive) in enumerate(lines):
    ax.plot([place, place], [low, high], color="#2a6f97" if conclusive else "#bbbbbb", linewidth=3)
    ax.plot(place, right, "x", color="#e07a1f")
ax.set(xlabel="draw", ylabel="share of right labels", xticks=range(10))
plt.show()
missed = sum(not low <= right <= high for low, high, right, conclusive in lines if conclusive)
print(f"{sum(line[3] for line in lines)} of 10 are conclusive; of these, {missed} miss the truth")

# %%
# Where to go from here
# ---------------------
#
# * :doc:`/clean-ratio` lists what can be known from data alone, and what cannot: labels that are wrong by a stereotype, or by a
#   feature, leave no trace.
# * A few hundred labels that somebody checked tell more than any estimate. Pass them as ``verified_labels``:
#   :doc:`/tutorials/02_review`.
