"""
7. Several sensitive columns
============================

A model can be fair to women and men, fair to the young and the old, and unfair to older women. Give several sensitive columns,
and they are **crossed**: every combination is a group. You will see what each column alone hides.
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

from fairsieve import FairRobustClassifier, equalized_odds_disparity


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
pd.crosstab(groups["sex"], groups["age"])

# %%
# Fair to whom?
# -------------
#
# A plain model, a model that is fair by sex, one by age, and one by both. A table of two columns as ``sensitive_features``
# crosses them.

models = {"plain": LogisticRegression(max_iter=1000).fit(X, y)}
for name, columns in (("sex", ["sex"]), ("age", ["age"]), ("sex × age", ["sex", "age"])):
    model = FairRobustClassifier(random_state=0)
    models[name] = model.fit(X, y, sensitive_features=groups[columns])

rows = {}
for name, model in models.items():
    guess = model.predict(X_test)
    rows[name] = {"accuracy": np.mean(guess == y_test)} | {
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
# People who did not state a column
# ---------------------------------
#
# Leave the gaps as they are (``None`` or ``NaN``). Those rows are trained on and count for accuracy, and no comparison between groups looks at them; a last group ``None`` stands for
# them. If the people who do not state their age differ from those who do, nobody can see it in the table, so say so when you report such a model.

stated = groups.copy()
stated.loc[rng.random(5000) < 0.2, "age"] = None
partly = FairRobustClassifier(random_state=0).fit(X, y, sensitive_features=stated)
print("groups:", partly.sensitive_values_)
guess = partly.predict(X_test)
disparity = equalized_odds_disparity(y_test, guess, sensitive_features=groups_test)
print(f"accuracy {np.mean(guess == y_test):.3f}, disparity by sex × age {disparity:.3f}")

# %%
# Where to go from here
# ---------------------
#
# * Many groups mean small groups, and rates of ten people are noise: :doc:`/how-to/many-groups`.
# * On the command line, ``--sensitive sex --sensitive age --bins age=40`` does the same: :doc:`/csv`.
