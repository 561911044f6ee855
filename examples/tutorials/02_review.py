"""
2. Reviewing suspicious labels, and training again
==================================================

Some wrong labels leave no trace in the data: when a clerk follows a stereotype, the table looks as if the stereotype were the
truth. No estimate can find those, and only looking helps. You will choose 300 rows to look at, answer for them, train again with the answers, and
see how much that changes.
"""

# %%
# A table with a stereotype in it
# -------------------------------
#
# Loans again, as in the first tutorial. This time somebody wrote down half of the women in care work who repaid as if they had not.
# Elsewhere three labels in a hundred are wrong.

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd


def make_loans(n, seed):
    """Draw n loans, with the true answer to whether each was repaid."""
    rng = np.random.default_rng(seed)
    sex = rng.choice(["woman", "man"], n, p=[0.4, 0.6])
    usual = np.where(sex == "woman", "care", "technical")
    table = pd.DataFrame(
        {
            "sex": sex,
            "age": rng.integers(20, 66, n),
            "income": rng.lognormal(np.where(sex == "man", 3.7, 3.4), 0.4).round(1),
            "debt": rng.gamma(2.0, 8.0, n).round(1),
            "job": np.where(
                rng.random(n) < 0.6, usual, rng.choice(["office", "trade", "care", "technical"], n)
            ),
        }
    )
    score = 2.5 * np.log(table["income"] / 32.6) - table["debt"] / 10 + (table["age"] - 40) / 30 + 1.2
    score += 0.7 * (table["job"] == "technical") - 0.3 * (table["job"] == "care")
    table["repaid"] = np.where(score + 0.4 * rng.logistic(size=n) > 0, "yes", "no")
    return table


folder = Path(tempfile.mkdtemp())
loans = make_loans(4000, seed=11)
truth = loans["repaid"].copy()
stereotype = (loans["sex"] == "woman") & (loans["job"] == "care") & (truth == "yes")
wrong = np.random.default_rng(4).random(len(loans)) < np.where(stereotype, 0.5, 0.03)
loans.loc[wrong, "repaid"] = np.where(truth[wrong] == "yes", "no", "yes")
loans.to_csv(folder / "loans.csv", index=False)
print(
    f"wrong labels: {wrong.mean():.1%}; among women who repaid: {wrong[(loans['sex'] == 'woman') & (truth == 'yes')].mean():.0%}"
)

# %%
# Without looking
# ---------------


def run(command):
    """Run a command in the folder, as you would in a terminal; print the first lines of what it says."""
    print("$", command)
    words = command.replace("fairsieve", f"{sys.executable} -m fairsieve", 1).split()
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=True)
    print("\n".join(done.stdout.strip().splitlines()[:6]))


run("fairsieve train loans.csv --label repaid --sensitive sex --positive yes --out before")

# %%
# The estimate finds the labels that are wrong at random, and it cannot find the others: a smooth boundary of their own is what
# they look like.

before = json.loads((folder / "before" / "metrics.json").read_text())
low, high = before["estimate"]["interval"]
print(f"right labels, as estimated: between {low:.3f} and {high:.3f}; in truth {1 - wrong.mean():.3f}")

# %%
# Choose rows to look at
# ----------------------
#
# ``fairsieve review`` chooses them: half at random within each label and group, half where it is least certain whether the label is
# right. It writes a page that works offline, and the same list as a file for a spreadsheet.

run("fairsieve review loans.csv --label repaid --sensitive sex --rows 300 -o review.html")
review = pd.read_csv(folder / "review.csv", dtype=str)
review.head()

# %%
# Now it is your turn: for each row, find out the right label, and write it into ``verified_label`` (or *unsure*). Here we look it up
# in what we remembered. Row numbers are those of a spreadsheet, in which the names are row 1.

review["verified_label"] = truth.to_numpy()[review["row"].astype(int) - 2]
review.to_csv(folder / "review.csv", index=False)
found = review["verified_label"] != review["given_label"]
print(f"{found.sum()} of {len(review)} labels were wrong")

# %%
# Train again
# -----------
#
# With the answers. A second table comes along for measuring: 1,500 rows whose labels somebody checked. The rows that
# fairsieve sets aside by itself have wrong labels too, and a model that undoes a stereotype would look *worse* on them
# (:doc:`/how-to/clean-test-set`).

make_loans(1500, seed=77).to_csv(folder / "checked.csv", index=False)
common = "--label repaid --sensitive sex --positive yes --test-file checked.csv"
run(f"fairsieve train loans.csv {common} --verified review.csv --out after")

# %%
# What the answers changed
# ------------------------
#
# The same training is run once more without the answers, so that the two can be compared on the same rows.

after = json.loads((folder / "after" / "metrics.json").read_text())
checked = after["verified"]
share = checked["share_wrong"]
print(f"wrong labels in the whole table, from the answers: {share['value']:.1%}, ", end="")
print(f"between {share['interval'][0]:.1%} and {share['interval'][1]:.1%}; in truth {wrong.mean():.1%}")

fig, axes = plt.subplots(1, 2)
for ax, name in zip(axes, ("accuracy", "disparity"), strict=True):
    for place, values in enumerate((after["plain"], checked["fair_without"], after["fair"])):
        low, high = values[name]["interval"]
        ax.plot([low, high], [place, place], linewidth=3, color="#bbbbbb")
        ax.scatter(
            values[name]["value"], place, s=70, zorder=2, color=("#767676", "#79b8da", "#2a6f97")[place]
        )
    ax.set(ylim=(2.6, -0.6), title=f"{name}, on checked labels")
axes[0].set(yticks=range(3), yticklabels=["plain", "fair,\nno answers", "fair,\nwith answers"])
axes[1].set(yticks=[], xlim=(0, None))
plt.show()

# %%
# And whom it changed something for. Of the women and men who repaid, how many does each model recognise?

fig, ax = plt.subplots(figsize=(7, 2.6))
rates = [rate for rate in after["rates"] if rate["measure"] == "true_positive_rate"]
for rate, color in zip(rates, ("#2a6f97", "#e07a1f"), strict=True):
    for place, model in enumerate(("plain", "fair")):
        low, high = rate[model]["interval"]
        shift = 0.12 if rate["group"] == "woman" else -0.12
        ax.plot([low, high], [place + shift] * 2, linewidth=3, alpha=0.4, color=color)
        ax.scatter(
            rate[model]["value"], place + shift, s=60, color=color, label=rate["group"] if not place else None
        )
ax.set(
    yticks=[0, 1], yticklabels=["plain", "fair, with answers"], ylim=(-0.6, 1.6), xlabel="true positive rate"
)
ax.legend()
plt.show()

# %%
# Where to go from here
# ---------------------
#
# * Do another round: ``fairsieve review ... --verified review.csv`` chooses rows that you have not answered yet, and
#   ``fairsieve train`` takes ``--verified`` several times.
# * In Python: :func:`fairsieve.tabular.review`, and ``verified_labels=`` of the estimators. :doc:`/review` says what is
#   done with the answers.
# * :doc:`/clean-ratio` has the table of what an estimate can know.
