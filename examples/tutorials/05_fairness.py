"""
5. Choosing a notion of fairness
================================

"Fair" has more than one meaning, and they cannot all hold at once. You will train one model for each notion that fairsieve
offers, measure each model by **all** of them, and see what each costs. At the end there is a table to choose by.
"""

# %%
# Three notions
# -------------
#
# .. list-table::
#    :header-rows: 1
#
#    * - notion
#      - asks that groups have equal
#      - choose it where
#    * - demographic parity
#      - rates of positive predictions, whatever the labels say
#      - a benefit should reach groups alike, and you do not trust the labels to say who deserves it
#    * - equalized odds
#      - error rates among the true positives **and** among the true negatives
#      - both kinds of error hurt, as in granting loans
#    * - equal opportunity
#      - error rates among the true positives only
#      - being passed over is what hurts, as in inviting to an interview
#
# A **disparity** is how far the most distant group is from everybody, in the rate that the notion compares; 0 is best.
#
# The data are those of the paper: two features, two groups whose true rates of positives differ. That difference is what
# makes the notions contradict each other. A tenth of the training labels is wrong, at random.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression

import fairsieve
from fairsieve import FairRobustClassifier
from fairsieve.data import flip_uniform, make_synthetic

train, test = make_synthetic(4000, seed=0), make_synthetic(10000, seed=1)
noisy = flip_uniform(train, 0.1, seed=0).labels
for group in (0, 1):
    print(f"group {group}: {np.mean(test.labels[test.groups == group]):.0%} are truly positive")

# %%
# One model for each notion
# -------------------------
#
# Only the first argument changes. Each model is measured on right labels, by every notion.

DISPARITIES = {
    "demographic_parity": fairsieve.demographic_parity_disparity,
    "equalized_odds": fairsieve.equalized_odds_disparity,
    "equal_opportunity": fairsieve.equal_opportunity_disparity,
}
models = {"plain": LogisticRegression().fit(train.features, noisy)}
for notion in DISPARITIES:
    model = FairRobustClassifier(notion, random_state=0)
    models[notion] = model.fit(train.features, noisy, sensitive_features=train.groups)

rows = {}
for name, model in models.items():
    guess = model.predict(test.features)
    rows[name] = {"accuracy": fairsieve.accuracy(test.labels, guess)} | {
        notion: disparity(test.labels, guess, sensitive_features=test.groups)
        for notion, disparity in DISPARITIES.items()
    }
scores = pd.DataFrame(rows).T.round(3)
scores

# %%
# What each gives, and what it costs
# ----------------------------------
#
# Read a row: the model, and its disparity by each notion. A model is best by the notion that it was trained for, or close
# to it, and the others follow only in part.

fig, axes = plt.subplots(1, 2, width_ratios=(3, 1.4))
disparities = scores[list(DISPARITIES)]
axes[0].imshow(disparities, cmap="YlOrBr", vmin=0, vmax=0.25, aspect="auto")
for row in range(disparities.shape[0]):
    for column in range(disparities.shape[1]):
        value = disparities.iloc[row, column]
        axes[0].text(
            column, row, f"{value:.3f}", ha="center", va="center", color="white" if value > 0.17 else "black"
        )
labels = [name.replace("_", "\n") for name in DISPARITIES]
axes[0].set(xticks=range(3), xticklabels=labels, yticks=range(4), yticklabels=["plain", *labels])
axes[0].set(title="disparity", ylabel="trained for")
axes[0].spines[:].set_visible(False)
axes[1].barh(range(4), scores["accuracy"], color=["#767676", "#2a6f97", "#2a6f97", "#2a6f97"])
axes[1].set(yticks=[], ylim=(3.5, -0.5), xlim=(0.68, 0.73), title="accuracy")
plt.show()

# %%
# Who is predicted positive
# -------------------------
#
# The same models, group by group: the share of positive predictions among the truly negative and the truly positive.
# Demographic parity looks at the sum of both; equalized odds at each; equal opportunity at the right panel only.

fig, axes = plt.subplots(1, 2, sharey=True)
for ax, label, title in zip(axes, (0, 1), ("truly negative", "truly positive"), strict=True):
    for place, model in enumerate(models.values()):
        guess = model.predict(test.features)
        rates = [guess[(test.groups == group) & (test.labels == label)].mean() for group in (0, 1)]
        ax.plot(rates, [place, place], color="#bbbbbb", zorder=1)
        ax.scatter(rates, [place, place], c=["#e07a1f", "#2a6f97"], s=60, zorder=2)
    ax.set(title=title, xlim=(0, 1), xlabel="share predicted positive")
axes[0].set(yticks=range(4), yticklabels=["plain", *labels], ylim=(3.5, -0.5))
axes[0].scatter([], [], c="#e07a1f", label="group 0")
axes[0].scatter([], [], c="#2a6f97", label="group 1")
axes[0].legend()
plt.show()

# %%
# How much of it
# --------------
#
# ``step_size`` says how far the shares of the groups may move in each update. Smaller steps give a model between the plain
# one and the fair one. It is a dial, and what you choose on it is a decision that you should be able to explain.

steps = (0.0005, 0.001, 0.002, 0.003, 0.0045, 0.0064)
points = []
for step in steps:
    model = FairRobustClassifier("equal_opportunity", step_size=step, random_state=0)
    guess = model.fit(train.features, noisy, sensitive_features=train.groups).predict(test.features)
    disparity = fairsieve.equal_opportunity_disparity(test.labels, guess, sensitive_features=test.groups)
    points.append((disparity, fairsieve.accuracy(test.labels, guess)))
x, y = np.transpose(points)
fig, ax = plt.subplots()
ax.plot(x, y, marker="o", label="fairsieve, by step_size")
ax.scatter(
    scores.loc["plain", "equal_opportunity"], scores.loc["plain", "accuracy"], c="#767676", label="plain"
)
for step, place in zip(steps, points, strict=True):
    ax.annotate(f"{step:g}", place, xytext=(4, 4), textcoords="offset points", fontsize=8)
ax.set(xlabel="equal opportunity disparity", ylabel="accuracy", xlim=(0, None))
ax.legend(loc="lower right")
plt.show()

# %%
# Where to go from here
# ---------------------
#
# * On the command line ``--tolerance 0.01`` chooses a model between the plain and the fair one: the fairest that costs at most a
#   hundredth of accuracy.
# * In a search, :func:`fairsieve.fairness_scorer` scores by accuracy less disparity, and
#   :class:`fairsieve.TradeoffDisplay` draws several estimators: :doc:`/scikit-learn`.
# * No notion makes a decision just. :doc:`/limits` says where none of this helps.
