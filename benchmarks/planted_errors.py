"""``fairsieve.tabular.train`` on twelve tables with planted errors, beside the right labels that were held back.

    python benchmarks/planted_errors.py --seeds 1 2 3 4               # twelve tables, four draws of each
    python benchmarks/planted_errors.py --seeds 7 --only "a tenth wrong"

A decision is wrong if the right labels of 20,000 other people say the opposite: the fair model is to be used, and it is
less fair or loses more than a point of accuracy there; the plain one is to be kept, and the fair one is fairer by more
than two points at no loss of a point; or a trade-off is named, and fairness does not grow, or accuracy does not fall.
An error of a point is allowed everywhere, which 20,000 people can tell.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from pathlib import Path

import numpy as np
import pandas

sys.path.insert(0, str(Path(__file__).parent.parent))
from tests.support.planted import RECIPES, plant

from fairsieve import equalized_odds_disparity, tabular
from fairsieve.tabular.evaluation import Choice

ERROR = 0.01
MODELS = "plain", "fair"


def judge_table(name: str, seed: int) -> dict[str, object]:
    """Train on a table; return the decision, and what is true of other people."""
    table = plant(name, seed)
    with warnings.catch_warnings(action="ignore"):
        run = tabular.train(table.frame, label="label", sensitive="group", positive="yes").run
    others, truth = table.others, {}
    for model, point in (("plain", run.trained.plain), ("fair", run.trained.fair)):
        predicted = point.model.predict(others.drop(columns=["group", "label"]))
        disparity = equalized_odds_disparity(others["label"], predicted, sensitive_features=others["group"])
        truth[model] = float((predicted == others["label"].to_numpy()).mean()), disparity
    return record(name, seed, run.choice, run.evaluation.judged.basis, truth)


def record(name: str, seed: int, choice: Choice, basis: str, truth: dict[str, tuple[float, float]]) -> dict:
    """Write down what was decided, and what is true: accuracy and disparity of both models on other people."""
    gained, widened = (fair - plain for plain, fair in zip(truth["plain"], truth["fair"], strict=True))
    wrong = {
        "use-fair": widened > ERROR or gained < -choice.price - ERROR,
        "keep-plain": widened < -0.02 - ERROR and gained > -choice.price + ERROR,
        "your-call": choice.why == "trade" and (widened > ERROR or gained > ERROR),
        "cannot-tell": False,
    }[choice.outcome]
    low, high = choice.change["disparity"].interval
    return {
        "table": name,
        "seed": seed,
        "decision": choice.outcome,
        "why": choice.why,
        "by": basis,
        "plain": truth["plain"],
        "fair": truth["fair"],
        "low": low,
        "high": high,
        "true": widened,
        "wrong": wrong,
    }


def summarise(records: list[dict]) -> pandas.DataFrame:
    """Put the draws of each table together: how often each decision was made, and means."""
    rows = []
    for name, some in pandas.DataFrame(records).groupby("table", sort=False):
        counts = some["decision"].value_counts()
        plain, fair = ("{:.3f} / {:.3f}".format(*np.mean(some[model].tolist(), axis=0)) for model in MODELS)
        rows.append(
            {
                "table": name,
                "decisions": ", ".join(f"`{one}` {count}" for one, count in counts.items()),
                "right labels from": ", ".join(some["by"].unique()),
                "plain: accuracy / disparity": plain,
                "fair": fair,
                "change of the disparity, as said": f"{some['low'].mean():.3f} to {some['high'].mean():.3f}",
                "true": f"{some['true'].mean():.3f}",
                "held": int(((some["low"] <= some["true"]) & (some["true"] <= some["high"])).sum()),
                "wrong": int(some["wrong"].sum()),
            }
        )
    return pandas.DataFrame(rows)


def print_table(frame: pandas.DataFrame) -> None:
    """Print a Markdown table."""
    for row in (frame.columns, ["---"] * frame.shape[1], *frame.itertuples(index=False)):
        print(f"| {' | '.join(map(str, row))} |")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--only", choices=RECIPES)
    parser.add_argument("--out", help="a CSV file for the table, as the documentation shows it")
    asked = parser.parse_args()
    records = []
    for seed in asked.seeds:
        for name in [asked.only] if asked.only else RECIPES:
            records.append(judge_table(name, seed))
            print(records[-1], flush=True)
    print_table(summarise(records))
    if asked.out:
        summarise(records).to_csv(asked.out, index=False, lineterminator="\n")
    for seed, some in pandas.DataFrame(records).groupby("seed"):
        decided = int((some["decision"] != "cannot-tell").sum())
        print(
            f"Draw {seed}: {decided} of {len(some)} end in a decision, {int(some['wrong'].sum())} of them wrong."
        )


if __name__ == "__main__":
    main()
