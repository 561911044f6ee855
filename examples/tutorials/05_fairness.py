"""
5. Choose a notion of fairness
==============================

"Fair" has more than one meaning, and they cannot all hold at once. You will train one model for each notion that fairsieve offers, and measure each model by **all** of them.
"""

# %%
# Three notions
# -------------
#
# *Demographic parity* asks for equal rates of positive predictions, whatever the labels say. *Equalized odds* asks for equal error rates among the truly positive and among the truly negative.
# *Equal opportunity* asks for that among the truly positive only. :doc:`/concepts/why-fairness` says which harm each is about.
#
# The data are those of the paper: two groups whose true rates of positives differ. That difference is what makes the notions contradict each other. A tenth of
# the training labels is wrong, at random.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression

import fairsieve
from fairsieve import FairRobustClassifier
from fairsieve.data import flip_uniform, make_synthetic

train, test = make_synthetic(4000, seed=0), make_synthetic(20000, seed=1)
noisy = flip_uniform(train, 0.1, seed=0).labels
for group in (0, 1):
    print(f"group {group}: {np.mean(test.labels[test.groups == group]):.0%} are truly positive")

# %%
# One model for each
# ------------------
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
    rows[name] = {"accuracy": np.mean(guess == test.labels)} | {
        notion: disparity(test.labels, guess, sensitive_features=test.groups)
        for notion, disparity in DISPARITIES.items()
    }
scores = pd.DataFrame(rows).T.round(3)
scores

# %%
# What each gives
# ---------------
#
# Read a row: the model, and its disparity by each notion. A model is best by the notion that it was trained for, or close to it, and the others follow only in part.

disparities = scores[list(DISPARITIES)]
fig, ax = plt.subplots(figsize=(6.5, 3.4))
ax.imshow(disparities, cmap="YlOrBr", vmin=0, vmax=0.25, aspect="auto")
for (row, column), value in np.ndenumerate(disparities.to_numpy()):
    color = "white" if value > 0.17 else "black"
    ax.text(column, row, f"{value:.3f}", ha="center", va="center", color=color)
labels = [name.replace("_", "\n") for name in DISPARITIES]
ax.set(xticks=range(3), xticklabels=labels, yticks=range(4), yticklabels=["plain", *labels])
ax.set(title="disparity on right labels", ylabel="trained for", xlabel="measured by")
ax.spines[:].set_visible(False)
plt.show()

# %%
# Who is predicted positive
# -------------------------
#
# The same models, group by group: the share of positive predictions among the truly negative and the truly positive. Demographic parity looks at both together; equalized
# odds at each; equal opportunity at the right panel only.

fig, axes = plt.subplots(1, 2, sharey=True)
for ax, label, title in zip(axes, (0, 1), ("truly negative", "truly positive"), strict=True):
    for place, model in enumerate(models.values()):
        guess = model.predict(test.features)
        rates = [guess[(test.groups == group) & (test.labels == label)].mean() for group in (0, 1)]
        ax.plot(rates, [place, place], color="#bbbbbb", zorder=1)
        ax.scatter(rates, [place, place], c=["#e07a1f", "#2a6f97"], s=60, zorder=2)
    ax.set(title=title, xlim=(0, 1), xlabel="share predicted positive")
axes[0].set(yticks=range(4), yticklabels=["plain", *labels], ylim=(3.5, -0.5))
axes[1].scatter([], [], c="#e07a1f", label="group 0")
axes[1].scatter([], [], c="#2a6f97", label="group 1")
axes[1].legend(loc="center left", bbox_to_anchor=(1, 0.5))
plt.show()

# %%
# Where to go from here
# ---------------------
#
# * How fair is fair enough? :doc:`/tutorials/09_compromise` shows every compromise of one fit.
# * No notion makes a decision just. :doc:`/limits` says where none of this helps.
