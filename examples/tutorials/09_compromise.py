"""
9. One fit, every compromise
============================

How much accuracy does fairness cost here, and how fair is fair enough? Most methods answer with a grid of fits. A fit of fairsieve walks from the cleaned model to the fair one and
remembers the way, so that you can look first and choose afterwards.
"""

# %%
# Fit once
# --------
#
# The paper's synthetic data, with a tenth of the labels wrong. ``tolerance`` is the largest gap between any two groups that may remain.

import matplotlib.pyplot as plt
import numpy as np

from fairsieve import FairRobustClassifier, demographic_parity_disparity
from fairsieve.data import flip_uniform, make_synthetic

train, test = make_synthetic(4000, seed=0), make_synthetic(20000, seed=1)
noisy = flip_uniform(train, 0.1, seed=0).labels
model = FairRobustClassifier("demographic_parity", tolerance=0.02, random_state=0)
model.fit(train.features, noisy, sensitive_features=train.groups)
print(f"{model.stopped_} after {model.n_iter_} updates, gap {model.gap_:.3f}")
model.path_.round(3).head()

# %%
# Look at the way
# ---------------
#
# Each point is a model that the fit passed, judged on the training rows. Then we ask for three of them by their tolerance, and measure those on new rows with right labels.

asked = (0.2, 0.12, 0.02)
fig, axes = plt.subplots(1, 2, sharey=True)
axes[0].plot(model.path_["gap"], model.path_["accuracy"], marker=".", color="#bbbbbb")
axes[0].set(title="the path, on the training rows", xlabel="widest gap between groups", ylabel="accuracy")
for tolerance in asked:
    chosen = model.at(tolerance=tolerance)  # no new fit
    guess = chosen.predict(test.features)
    correct = np.mean(guess == test.labels)
    disparity = demographic_parity_disparity(test.labels, guess, sensitive_features=test.groups)
    axes[1].scatter(disparity, correct, color="#2a6f97")
    axes[1].annotate(f"{tolerance}", (disparity, correct), xytext=(4, 4), textcoords="offset points")
    print(f"tolerance {tolerance}: accuracy {correct:.3f}, disparity {disparity:.3f} on new rows")
axes[1].set(title="chosen by tolerance, on new rows", xlabel="demographic parity disparity", xlim=(0, None))
plt.show()

# %%
# What you choose on this line is a decision that you should be able to explain. If a little accuracy buys much fairness, take it; if the line is flat, take all of it.
#
# Where to go from here
# ---------------------
#
# * ``TradeoffDisplay.from_estimator(model)`` draws the path in one line; the report of ``fairsieve train`` shows it, too.
# * ``--max-accuracy-loss 0.01`` chooses from the other end: the fairest model that costs at most one point.
# * When the gap does not close at all: :doc:`/solver`.
