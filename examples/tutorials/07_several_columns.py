"""
7. Several sensitive columns, and missing groups
================================================

A model can be fair to women and men, fair to the young and the old, and unfair to older women. Give several sensitive columns,
and they are **crossed**: every combination is a group. And where people did not state a column, their rows can still be
used. You will do both on a table of applicants.
"""

# %%
# Applicants
# ----------
#
# Test A underrates older women, and of those who should be invited, 30 % are recorded as if they should not. Everybody else has
# one wrong label in twenty. The sensitive columns are among the features here, so that the model can make up for test A.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from fairsieve import FairRobustClassifier, accuracy, equalized_odds_disparity


def make_applicants(n, seed):
    """Draw n applicants: features, whether each should be invited, and two sensitive columns."""
    rng = np.random.default_rng(seed)
    groups = pd.DataFrame(
        {
            "sex": rng.choice(["woman", "man"], n, p=[0.4, 0.6]),
            "age": rng.choice(["under 40", "40 and over"], n, p=[0.6, 0.4]),
        }
    )
    woman, older = groups["sex"] == "woman", groups["age"] == "40 and over"
    skill = rng.normal(size=n)
    features = pd.DataFrame(
        {
            "test_a": skill + 0.6 * rng.normal(size=n) - 0.7 * (woman & older),
            "test_b": skill + 0.6 * rng.normal(size=n),
            "years": rng.gamma(2.0, 2.0, n) - woman,
            "woman": woman,
            "older": older,
            "older_woman": woman & older,
        }
    ).astype(float)
    invite = (2.2 * skill + 0.25 * features["years"] + 0.6 * rng.logistic(size=n) > 0.6).astype(int)
    return features, invite.to_numpy(), groups


X, truth, groups = make_applicants(5000, seed=0)
X_test, y_test, groups_test = make_applicants(10000, seed=1)
rng = np.random.default_rng(2)
hit = (X["older_woman"] == 1) & (truth == 1)
wrong = rng.random(5000) < np.where(hit, 0.3, 0.05)
y = np.where(wrong, 1 - truth, truth)
scaler = StandardScaler().fit(X)
X, X_test = scaler.transform(X), scaler.transform(X_test)
pd.crosstab(groups["sex"], groups["age"])

# %%
# Fair to whom?
# -------------
#
# A plain model, a model that is fair by sex, one by age, and one by both. A table of two columns as ``sensitive_features``
# crosses them.

models = {"plain": LogisticRegression().fit(X, y)}
for name, columns in (("sex", ["sex"]), ("age", ["age"]), ("sex × age", ["sex", "age"])):
    model = FairRobustClassifier(random_state=0)
    models[name] = model.fit(X, y, sensitive_features=groups[columns])

rows = {}
for name, model in models.items():
    guess = model.predict(X_test)
    rows[name] = {"accuracy": accuracy(y_test, guess)} | {
        f"disparity by {columns}": equalized_odds_disparity(
            y_test, guess, sensitive_features=groups_test[columns.split(" × ")]
        )
        for columns in ("sex", "age", "sex × age")
    }
pd.DataFrame(rows).T.round(3)

# %%
# Judged by one column at a time, even the plain model looks tolerable. By both, it does not. The figure shows who of those
# who should be invited is invited.

names = ["man, under 40", "man, 40 and over", "woman, under 40", "woman, 40 and over"]
fig, ax = plt.subplots()
for place, model in enumerate(models.values()):
    guess = model.predict(X_test)
    for number, cell in enumerate(names):
        sex, age = cell.split(", ")
        inside = (groups_test["sex"] == sex) & (groups_test["age"] == age) & (y_test == 1)
        color = "#e07a1f" if number == 3 else ("#2a6f97", "#79b8da", "#9b4f96")[number]
        ax.scatter(guess[inside].mean(), place, s=70, color=color, label=cell if place == 0 else None)
ax.set(yticks=range(4), yticklabels=["plain", "fair by sex", "fair by age", "fair by both"], ylim=(3.5, -0.5))
ax.set(xlabel="share invited, of those who should be")
ax.legend(loc="upper left", bbox_to_anchor=(1, 1))
plt.show()

# %%
# Missing groups
# --------------
#
# Now every fifth person did not state their age. Leave the gaps as they are (``None`` or ``NaN``): those rows are trained on and
# count for accuracy, and no comparison between groups looks at them. A last group ``None`` stands for them.

stated = groups.copy()
stated.loc[rng.random(5000) < 0.2, "age"] = None
partly = FairRobustClassifier(random_state=0).fit(X, y, sensitive_features=stated)
print("groups:", partly.sensitive_values_)
print("rows without a group:", int(stated["age"].isna().sum()))

complete = stated["age"].notna().to_numpy()
dropped = FairRobustClassifier(random_state=0)
dropped.fit(X[complete], y[complete], sensitive_features=stated[complete])

fig, axes = plt.subplots(1, 2)
shown = {
    "everything known": models["sex × age"],
    "gaps left in": partly,
    "gaps dropped": dropped,
    "plain": models["plain"],
}
correct = [accuracy(y_test, model.predict(X_test)) for model in shown.values()]
disparity = [
    equalized_odds_disparity(y_test, model.predict(X_test), sensitive_features=groups_test)
    for model in shown.values()
]
for ax, values, title in zip(axes, (correct, disparity), ("accuracy", "disparity, sex × age"), strict=True):
    bars = ax.barh(list(shown), values, color=["#2a6f97", "#2a6f97", "#79b8da", "#bbbbbb"])
    ax.bar_label(bars, fmt="%.3f", padding=3)
    ax.set(title=title, xlim=(0, max(values) * 1.3))
    ax.invert_yaxis()
axes[1].set_yticks([])
plt.show()

# %%
# If those who do not state their age differ from those who do, nobody can see it in this table. Say so when you report such
# a model.
#
# Where to go from here
# ---------------------
#
# * Many groups mean small groups, and rates of ten people are noise: :doc:`/how-to/many-groups`.
# * On the command line, ``--sensitive sex --sensitive age --bins age=40`` does the same: :doc:`/csv`.
