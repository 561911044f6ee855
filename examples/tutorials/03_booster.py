"""
3. A booster
============

Boosted trees are what most people train on tables. They take no gradient steps that samples could be selected for, but they take **sample weights**, and that is enough:
:class:`fairsieve.SieveClassifier` wraps any classifier that has ``fit(X, y, sample_weight=...)`` and ``predict_proba``. You will train a booster on a table in which 15 % of the labels
are wrong, with and without the wrapper.
"""

# %%
# The table
# ---------
#
# Incomes differ between the groups, the effect of debts bends, and it depends on the region: a linear model could not learn this table. Some values are missing, and one
# column is a category.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingClassifier

from fairsieve import SieveClassifier, equalized_odds_disparity


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


X, truth, sex = make_applications(6000, seed=0)
X_test, y_test, sex_test = make_applications(10000, seed=100)

# %%
# Fifteen labels in a hundred are recorded wrongly, at random. From here on, training sees only ``y``.

rng = np.random.default_rng(1)
wrong = rng.random(len(truth)) < 0.15
y = np.where(wrong, np.where(truth == "repaid", "default", "repaid"), truth)
print(f"{wrong.mean():.0%} of the labels are wrong")
X.head(3)

# %%
# Train
# -----
#
# The wrapper gets the booster, the notion of fairness, and the largest gap between two groups that may remain. It fits the booster a few times under other weights: the
# chance that a label is right, times a factor that moves towards the group that is served worse. Each round is judged **out of fold**, because a booster memorises wrong labels.
# Three rounds are made by default; a tolerance as narrow as this one needs more.

booster = HistGradientBoostingClassifier(
    max_iter=40, max_leaf_nodes=8, categorical_features="from_dtype", random_state=0
)
model = SieveClassifier(booster, tolerance=0.05, max_iter=8, cv=3, keep_path=True, random_state=0)
model.fit(X, y, sensitive_features=sex)
print(f"share of right labels, as estimated: {model.clean_ratio_:.2f}; in truth: {1 - wrong.mean():.2f}")
model.path_.round(3)

# %%
# On new rows with right labels
# -----------------------------
#
# ``plain_model_`` is the same booster without the method. ``keep_path=True`` kept the model of every round, so that ``at`` gives a compromise, too. Of the women and men who would
# repay, how many does each recognise?

models = {"plain": model.plain_model_, "tolerance 0.1": model.at(tolerance=0.1), "tolerance 0.05": model}
fig, ax = plt.subplots(figsize=(7, 2.8))
for place, (name, fitted) in enumerate(models.items()):
    guess = fitted.predict(X_test)
    disparity = equalized_odds_disparity(y_test, guess, sensitive_features=sex_test)
    print(f"{name}: accuracy {np.mean(guess == y_test):.3f}, disparity {disparity:.3f}")
    repaid = y_test == "repaid"
    rates = [np.mean(guess[repaid & (sex_test == group)] == "repaid") for group in ("woman", "man")]
    ax.plot(rates, [place, place], color="#bbbbbb", zorder=1)
    ax.scatter(rates, [place, place], c=["#e07a1f", "#2a6f97"], s=80, zorder=2)
ax.scatter([], [], c="#e07a1f", label="women")
ax.scatter([], [], c="#2a6f97", label="men")
ax.set(
    yticks=range(3), yticklabels=list(models), ylim=(2.6, -0.6), xlabel="recognised, of those who would repay"
)
ax.legend(loc="center left", bbox_to_anchor=(1, 0.5))
plt.show()

# %%
# Where to go from here
# ---------------------
#
# * LightGBM, XGBoost and CatBoost work the same way; early stopping, folds of your own and pipelines are in :doc:`/boosters`.
# * ``model.suspects()`` lists the labels that look wrong, the likeliest first.
# * From a table without code: ``fairsieve train loans.csv --label repaid --sensitive sex --model hist-gradient-boosting -o run``.
