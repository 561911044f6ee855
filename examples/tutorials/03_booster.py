"""
3. A booster
============

Boosted trees are what most people train on tables. They take no gradient steps that samples could be selected for, but
they take **sample weights**, and that is enough: :class:`fairsieve.SieveClassifier` wraps any classifier that has
``fit(X, y, sample_weight=...)`` and ``predict_proba``.

You will make a table of loan applications in which a quarter of the labels of one group are wrong, train a booster on it with
and without the wrapper, and look at what changed. Nothing beyond ``pip install 'fairsieve[plot]'`` is needed.
"""

# %%
# The table
# ---------
#
# Incomes differ between the groups, the effect of debts bends, and it depends on the region: a linear model could
# not learn this table. Some values are missing, and one column is a category.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingClassifier

from fairsieve import SieveClassifier, accuracy, demographic_parity_disparity


def make_applications(n, seed):
    """Draw n applications: a table of features, whether the loan was repaid, and the sensitive column."""
    rng = np.random.default_rng(seed)
    sex = rng.choice(["woman", "man"], n, p=[0.35, 0.65])
    income = rng.lognormal(np.where(sex == "man", 0.3, -0.3), 0.5)
    debt, years = rng.gamma(2.0, 0.5, n), rng.gamma(2.0, 3.0, n)
    region = rng.choice(["north", "south", "east", "west"], n)
    score = 2.2 * np.log(income) + 1.2 * np.sin(years / 3) + 0.3 * (sex == "man")
    score += 1.5 * np.where(debt < 1.2, 1 - debt, -0.6) * np.where(region == "south", 1.6, 1)
    repaid = np.where(score + 0.7 * rng.logistic(size=n) > 0, "repaid", "default")
    table = pd.DataFrame({"income": income, "debt": debt, "years": years, "region": pd.Categorical(region)})
    table.loc[rng.random(n) < 0.08, "years"] = np.nan
    return table, repaid, sex


X, truth, sex = make_applications(3000, seed=0)
X_test, y_test, sex_test = make_applications(4000, seed=100)

# %%
# A quarter of the women's labels and a twentieth of the men's are recorded wrongly. From here on, training sees
# only ``y``; the true labels are kept to find out, at the end, how well it went.

rng = np.random.default_rng(1)
wrong = rng.random(len(truth)) < np.where(sex == "woman", 0.25, 0.05)
y = np.where(wrong, np.where(truth == "repaid", "default", "repaid"), truth)
print(f"{wrong.mean():.0%} of the labels are wrong")
X.head(3)

# %%
# Train
# -----
#
# The wrapper gets the booster, the notion of fairness, and how much accuracy fairness may cost at most
# (``tolerance``). It fits the booster a few times, each time under other weights: the probability that a label is
# right, times a factor that moves towards the group that is served worse.

booster = HistGradientBoostingClassifier(
    max_iter=40, max_leaf_nodes=8, categorical_features="from_dtype", random_state=0
)
model = SieveClassifier(booster, "demographic_parity", tolerance=0.02, cv=3, random_state=0)
model.fit(X, y, sensitive_features=sex)
print(f"share of right labels, as estimated: {model.clean_ratio_:.2f}; in truth: {1 - wrong.mean():.2f}")
print("chosen round:", model.best_round_)

# %%
# What each round measured
# ------------------------
#
# Round 0 is the plain booster. Accuracy and disparity are measured **out of fold** (a booster memorises wrong labels, so
# on its own training data every label looks right) and corrected for the wrong labels that were estimated.

history = model.history_
fig, ax = plt.subplots()
ax.plot(history["disparity"], history["accuracy"], color="#bbbbbb", zorder=1)
ax.scatter(history["disparity"], history["accuracy"], zorder=2)
for number, (disparity, correct) in enumerate(zip(history["disparity"], history["accuracy"], strict=True)):
    chosen = " (chosen)" if number == model.best_round_ else ""
    ax.annotate(f"{number}{chosen}", (disparity, correct), xytext=(5, 5), textcoords="offset points")
ax.set(xlabel="demographic parity disparity, out of fold", ylabel="accuracy, out of fold", title="Rounds")
plt.show()

# %%
# On test data with right labels
# ------------------------------
#
# ``plain_estimator_`` is the same booster without the method.

guesses = {"plain booster": model.plain_estimator_.predict(X_test), "with fairsieve": model.predict(X_test)}
rates = {
    name: [np.mean(guess[sex_test == group] == "repaid") for group in ("woman", "man")]
    for name, guess in guesses.items()
}
for name, guess in guesses.items():
    disparity = demographic_parity_disparity(y_test, guess, sensitive_features=sex_test)
    print(f"{name}: accuracy {accuracy(y_test, guess):.3f}, disparity {disparity:.3f}")

fig, ax = plt.subplots(figsize=(7, 2.6))
for place, pair in enumerate(rates.values()):
    ax.plot(pair, [place, place], color="#bbbbbb", zorder=1)
    for group, rate, color in zip(("women", "men"), pair, ("#e07a1f", "#2a6f97"), strict=True):
        ax.scatter(rate, place, s=80, color=color, label=group if place == 0 else None, zorder=2)
ax.set(yticks=[0, 1], yticklabels=list(rates), ylim=(-0.6, 1.6), xlabel="share predicted to repay")
ax.legend(loc="center")
plt.show()

# %%
# Which labels look wrong
# -----------------------
#
# ``suspects()`` lists them, the likeliest first. Here we know which are wrong, so we can draw how many of the first
# *k* really are. Somebody who checks labels by hand would begin at the top of this list.

suspects = pd.DataFrame(model.suspects())
hits = wrong[suspects["row"]]
fig, ax = plt.subplots()
ax.plot(np.arange(1, len(hits) + 1), np.cumsum(hits) / np.arange(1, len(hits) + 1))
ax.axhline(wrong.mean(), color="#767676", linestyle="--", label="checking at random")
ax.set(xlabel="suspects checked", ylabel="share that is wrong", ylim=(0, 1.02))
ax.legend()
plt.show()
suspects.head()

# %%
# Where to go from here
# ---------------------
#
# * LightGBM, XGBoost and CatBoost work the same way: put the classifier in place of ``booster``. Early stopping, folds of
#   your own and pipelines are in :doc:`the guide to boosters </boosters>`, with measurements on Adult.
# * From a table without code: ``fairsieve train loans.csv --label repaid --sensitive sex --model hist-gradient-boosting -o run``.
# * Wrong labels that are **aimed** at the surest samples form a region that trees can learn; use
#   :class:`fairsieve.FairRobustClassifier` there.
# * What the estimate of wrong labels can and cannot know: :doc:`/clean-ratio`.
