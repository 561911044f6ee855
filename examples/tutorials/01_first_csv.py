"""
1. Your first CSV, from table to decision
=========================================

A table, a label column that you half trust, a sensitive column, and one question: should this model be used? You will answer it
with two commands and no code of your own. Python is here to make the table, and to draw what the commands wrote.
"""

# %%
# A table
# -------
#
# Loans, and whether they were repaid. Incomes and jobs differ between women and men. One label in ten was recorded wrongly, at
# random; we remember which, and nobody else does. In your own work this section is a file that you have.

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
    table.loc[rng.random(n) < 0.05, "debt"] = np.nan
    return table


folder = Path(tempfile.mkdtemp())
loans = make_loans(6000, seed=0)
truth = loans["repaid"].copy()
wrong = np.random.default_rng(1).random(len(loans)) < 0.1
loans.loc[wrong, "repaid"] = np.where(truth[wrong] == "yes", "no", "yes")
loans.to_csv(folder / "loans.csv", index=False)
loans.head()

# %%
# Train
# -----
#
# One command: the table, the column to predict, the column whose groups are compared, and a folder for the results. (The
# function below types it for us, and prints what it prints.)


def run(command):
    """Run a command in the folder, as you would in a terminal."""
    print("$", command)
    words = command.replace("fairsieve", f"{sys.executable} -m fairsieve", 1).split()
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=True)
    print(done.stdout.strip())


run("fairsieve train loans.csv --label repaid --sensitive sex --positive yes --out run")

# %%
# The first line is the answer: whether to use the fair model, and why. It is trained on four fifths of the rows, beside a plain
# model, and both are measured on the rest. In the folder there is a page to read and to pass on, ``report.html``, and
# files for programs:

for path in sorted((folder / "run").iterdir()):
    print(f"{path.name:15} {path.stat().st_size / 1000:8.1f} kB")

# %%
# Read the numbers
# ----------------
#
# ``metrics.json`` holds every number of the page. Each has an interval of 95 %: if two intervals overlap widely, do not tell them
# apart.

metrics = json.loads((folder / "run" / "metrics.json").read_text())
print(metrics["decision"], "-", metrics["decision_sentence"])

fig, axes = plt.subplots(1, 2, figsize=(7, 2.6))
for ax, name in zip(axes, ("accuracy", "disparity"), strict=True):
    for place, model in enumerate(("plain", "fair")):
        found = metrics[model][name]
        low, high = found["interval"]
        ax.plot([low, high], [place, place], linewidth=3, color="#bbbbbb")
        ax.scatter(found["value"], place, s=70, zorder=2, color=("#767676", "#2a6f97")[place])
    ax.set(yticks=[0, 1], yticklabels=["plain", "fair"], ylim=(-0.6, 1.6), title=name)
plt.show()

# %%
# *Disparity* is how far the most distant group is from everybody, in its error rates; 0 is best. Where it comes from is in the
# rates by group: of those who repaid, how many does the model recognise?

rates = [rate for rate in metrics["rates"] if rate["measure"] == "true_positive_rate"]
fig, ax = plt.subplots(figsize=(7, 2.6))
for place, model in enumerate(("plain", "fair")):
    for rate, color in zip(rates, ("#2a6f97", "#e07a1f"), strict=True):
        low, high = rate[model]["interval"]
        shift = 0.12 if rate["group"] == "woman" else -0.12
        ax.plot([low, high], [place + shift] * 2, linewidth=3, alpha=0.4, color=color)
        ax.scatter(
            rate[model]["value"], place + shift, s=60, color=color, label=rate["group"] if not place else None
        )
ax.set(yticks=[0, 1], yticklabels=["plain", "fair"], ylim=(-0.6, 1.6), xlabel="true positive rate")
ax.legend()
plt.show()

# %%
# Look at the suspects
# --------------------
#
# ``suspects.csv`` lists the labels to look at first. Rows are numbered as in a spreadsheet: the names are in row 1. Since we
# remember which labels are wrong, we can tell how good the list is.

suspects = pd.read_csv(folder / "run" / "suspects.csv")
hits = wrong[suspects["row"] - 2]
print(
    f"{len(suspects)} suspects; {hits.mean():.0%} of them are wrong, and {hits[:50].mean():.0%} of the first 50"
)
suspects.head()

# %%
# Use the model
# -------------
#
# ``predict`` copies a table and adds two columns. New loans, whose true answer nobody knows yet, except us:

new = make_loans(4000, seed=99)
new.drop(columns="repaid").to_csv(folder / "new.csv", index=False)
run("fairsieve predict run new.csv -o predicted.csv")
predicted = pd.read_csv(folder / "predicted.csv")
print(f"right: {np.mean(predicted['predicted'] == new['repaid']):.1%}")
predicted.head(3)

# %%
# The model is no secret of ours: ``model.skops`` is a pipeline of scikit-learn that loads without fairsieve
# (:doc:`/how-to/deploy`).
#
# From Python
# -----------
#
# The same without files, in a notebook::
#
#     from fairsieve import tabular
#
#     result = tabular.train(loans, label="repaid", sensitive="sex", positive="yes")
#     result.decision.sentence, result.suspects, result.model
#
# Where to go from here
# ---------------------
#
# * :doc:`/tutorials/02_review`: check some labels, and train again with what you learnt.
# * :doc:`/how-to/report` explains every part of the page; :doc:`/csv` every option.
# * :doc:`/how-to/ci`: let a build fail when the decision is not *use*.
