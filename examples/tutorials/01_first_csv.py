"""
1. From a table to a report
===========================

A table, a label column that you half trust, a sensitive column, and one question: should this model be used? You will answer it with one command. Python is here to
make the table, and to show what the command wrote.
"""

# %%
# A table
# -------
#
# Loans, and whether they were repaid. Incomes and jobs differ between women and men. One label in ten was recorded wrongly, at random; we remember which, and
# nobody else does. In your own work this section is a file that you have.

import html
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
    other = rng.choice(["office", "trade", "care", "technical"], n)
    table = pd.DataFrame(
        {
            "sex": sex,
            "age": rng.integers(20, 66, n),
            "income": rng.lognormal(np.where(sex == "man", 3.7, 3.4), 0.4).round(1),
            "debt": rng.gamma(2.0, 8.0, n).round(1),
            "job": np.where(rng.random(n) < 0.6, usual, other),
        }
    )
    score = 2.5 * np.log(table["income"] / 32.6) - table["debt"] / 10 + (table["age"] - 40) / 30 + 1.2
    score += 0.7 * (table["job"] == "technical") - 0.3 * (table["job"] == "care")
    table["repaid"] = np.where(score + 0.4 * rng.logistic(size=n) > 0, "yes", "no")
    return table


folder = Path(tempfile.mkdtemp())
loans = make_loans(6000, seed=0)
truth = loans["repaid"].copy()
wrong = np.random.default_rng(1).random(len(loans)) < 0.1
loans.loc[wrong, "repaid"] = np.where(truth[wrong] == "yes", "no", "yes")
loans.to_csv(folder / "loans.csv", index=False)
loans.head()

# %%
# One command
# -----------
#
# The table, the column to predict, the column whose groups are compared, and a folder for the results. We ask for at most five points between women and men, whatever it costs:
# without ``--tolerance``, a fair model that costs accuracy is not stored unless we say so. (The function below types the command for us.)


def run(command):
    """Run a command in the folder, as you would in a terminal, and show what it says."""
    print("$", command)
    words = [sys.executable, "-m", *command.split()]
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
    print(done.stdout.strip() if done.returncode == 0 else done.stdout + done.stderr)
    done.check_returncode()


run("fairsieve train loans.csv --label repaid --sensitive sex --positive yes --tolerance 0.05 --out run")

# %%
# The report
# ----------
#
# The command trained a plain model and a fair one, measured both on every row by models that did not see it, stored one of the two, and wrote ``run/report.html``. Here it is, as your
# colleagues would see it. The first screen says which model is stored, what it buys and what it costs; scroll for the reasons.


class Page:
    """Show an HTML file inside a notebook."""

    def __init__(self, path):
        self.path = path

    def _repr_html_(self):
        text = html.escape(self.path.read_text("utf-8"), quote=True)
        return f'<iframe title="report" srcdoc="{text}" style="width:100%;height:44rem;border:1px solid #999"></iframe>'


Page(folder / "run" / "report.html")

# %%
# Did it help?
# ------------
#
# One recorded label in ten is wrong, so the report estimates what is true of *right* labels, with intervals. Here we know the truth of new loans, and can look. ``predict`` copies
# a table and adds two columns; the plain model is logistic regression on the same features.

new = make_loans(20000, seed=99)
new.drop(columns="repaid").to_csv(folder / "new.csv", index=False)
run("fairsieve predict run new.csv -o predicted.csv")
predicted = pd.read_csv(folder / "predicted.csv")["predicted"].to_numpy()

# %%
# Of the women and men who would repay, how many does each model recognise?

from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler


def numbers(table):
    """Encode the features as numbers."""
    return pd.get_dummies(table.drop(columns=["repaid", "sex"]), columns=["job"]).astype(float)


plain = make_pipeline(StandardScaler(), LogisticRegression()).fit(numbers(loans), loans["repaid"])
guesses = {"plain": plain.predict(numbers(new)), "stored": predicted}
fig, ax = plt.subplots(figsize=(7, 2.4))
for place, (name, guess) in enumerate(guesses.items()):
    rates = [
        np.mean(guess[(new["sex"] == sex) & (new["repaid"] == "yes")] == "yes") for sex in ("woman", "man")
    ]
    ax.plot(rates, [place, place], color="#bbbbbb", zorder=1)
    ax.scatter(rates, [place, place], c=["#e07a1f", "#2a6f97"], s=80, zorder=2)
    print(f"{name}: women {rates[0]:.0%}, men {rates[1]:.0%}; right {np.mean(guess == new['repaid']):.1%}")
ax.scatter([], [], c="#e07a1f", label="women")
ax.scatter([], [], c="#2a6f97", label="men")
ax.set(
    yticks=[0, 1], yticklabels=list(guesses), ylim=(1.6, -0.6), xlabel="recognised, of those who would repay"
)
ax.legend(loc="center left", bbox_to_anchor=(1, 0.5))
plt.show()

# %%
# Where to go from here
# ---------------------
#
# * ``run/suspects.csv`` lists the labels to look at first; :doc:`/tutorials/02_review` checks some, and trains again with the answers.
# * :doc:`/how-to/report` explains every part of the page; :doc:`/csv` every option.
# * In a notebook: ``from fairsieve import tabular; tabular.train(loans, label="repaid", sensitive="sex", positive="yes")``.
# * ``model.skops`` is a scikit-learn pipeline; :doc:`/how-to/export` loads it, and has ONNX and joblib, too.
