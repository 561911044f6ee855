"""
2. Check some labels, and train again
=====================================

Some wrong labels leave no trace in the data: when a clerk follows a stereotype, the table looks as if the stereotype were true. No estimate can find those; somebody has to look. You
will check 300 rows, train again with the answers, and see for whom that changes something.
"""

# %%
# A table with a stereotype in it
# -------------------------------
#
# Loans, as in the first tutorial. Somebody recorded half of the women in care work who repaid as if they had not. Elsewhere three labels in a hundred are wrong.

import html
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
loans = make_loans(4000, seed=11)
truth = loans["repaid"].copy()
stereotype = (loans["sex"] == "woman") & (loans["job"] == "care") & (truth == "yes")
wrong = np.random.default_rng(4).random(len(loans)) < np.where(stereotype, 0.5, 0.03)
loans.loc[wrong, "repaid"] = np.where(truth[wrong] == "yes", "no", "yes")
loans.to_csv(folder / "loans.csv", index=False)
hit = (loans["sex"] == "woman") & (truth == "yes")
print(f"wrong labels: {wrong.mean():.1%}; among women who repaid: {wrong[hit].mean():.0%}")

# %%
# Choose rows to look at
# ----------------------
#
# ``fairsieve review`` chooses them, most of them at random within each label and group. It writes a page that works offline, and the same list for a spreadsheet.


def run(command):
    """Run a command in the folder, as you would in a terminal, and show the first lines of what it says."""
    print("$", command)
    words = [sys.executable, "-m", *command.split()]
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
    lines = done.stdout.strip().splitlines()[:6]
    print("\n".join(lines) if done.returncode == 0 else done.stdout + done.stderr)
    done.check_returncode()


run("fairsieve review loans.csv --label repaid --sensitive sex --rows 300 -o review.html")


class Page:
    """Show an HTML file inside a notebook."""

    def __init__(self, path):
        self.path = path

    def _repr_html_(self):
        text = html.escape(self.path.read_text("utf-8"), quote=True)
        return f'<iframe title="review" srcdoc="{text}" style="width:100%;height:44rem;border:1px solid #999"></iframe>'


Page(folder / "review.html")

# %%
# Now it is your turn: for each row, find out the right label, and answer on the page, or write it into ``verified_label`` of ``review.csv`` (or *unsure*). Here we look it up in what we
# remembered. Row numbers are those of a spreadsheet, in which the names are row 1.

review = pd.read_csv(folder / "review.csv", dtype=str)
review["verified_label"] = truth.to_numpy()[review["row"].astype(int) - 2]
review.to_csv(folder / "review.csv", index=False)
found = review["verified_label"] != review["given_label"]
print(f"{found.sum()} of {len(review)} labels were wrong")

# %%
# Train without and with the answers
# ----------------------------------
#
# Both times we measure on a second table whose labels are right. On rows with the stereotype in them, a model that undoes it would look *worse*
# (:doc:`/verified-labels`).

make_loans(4000, seed=77).to_csv(folder / "right.csv", index=False)
common = "fairsieve train loans.csv --label repaid --sensitive sex --positive yes --test-file right.csv"
run(f"{common} --out before")
run(f"{common} --verified review.csv --out after")

# %%
# The answers also tell how many labels are wrong in the whole table, which no estimate could:

before, after = (json.loads((folder / name / "metrics.json").read_text()) for name in ("before", "after"))
share = after["verified"]["share_wrong"]
low, high = share["interval"]
print(
    f"wrong labels, from the answers: {share['value']:.1%}, between {low:.1%} and {high:.1%}; in truth {wrong.mean():.1%}"
)

# %%
# Whom it changed something for
# -----------------------------
#
# Of the women and men who repaid, how many does each model recognise? The lines are 95 % intervals.

fig, ax = plt.subplots(figsize=(7, 2.8))
rows = {
    "plain": (before, "plain"),
    "fair, no answers": (before, "fair"),
    "fair, with answers": (after, "fair"),
}
for place, (metrics, model) in enumerate(rows.values()):
    rates = [rate for rate in metrics["rates"] if rate["measure"] == "true_positive_rate"]
    for rate in rates:
        color, shift = ("#e07a1f", 0.12) if rate["group"] == "woman" else ("#2a6f97", -0.12)
        ax.plot(rate[model]["interval"], [place + shift] * 2, linewidth=3, alpha=0.4, color=color)
        ax.scatter(rate[model]["value"], place + shift, s=60, color=color)
ax.scatter([], [], c="#e07a1f", label="women")
ax.scatter([], [], c="#2a6f97", label="men")
ax.set(yticks=range(3), yticklabels=list(rows), ylim=(2.6, -0.6), xlabel="recognised, of those who repaid")
ax.legend(loc="center left", bbox_to_anchor=(1, 0.5))
plt.show()

# %%
# Where to go from here
# ---------------------
#
# * Another round: ``fairsieve review ... --verified review.csv -o review-2.html`` chooses rows that you have not answered yet, and ``fairsieve train`` takes ``--verified`` several times.
# * In Python: ``verified_labels=`` of the estimators, :doc:`/verified-labels`.
# * What an estimate can find without you: :doc:`/clean-ratio`.
