"""``fairsieve.tabular.train`` on twelve tables with planted errors, beside the right labels that were held back.

    python benchmarks/planted_errors.py                  # twelve tables, one draw each
    python benchmarks/planted_errors.py --seeds 3 --only "a tenth wrong"

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

import pandas

sys.path.insert(0, str(Path(__file__).parent.parent))
from tests.support.planted import RECIPES, plant

from fairsieve import equalized_odds_disparity, tabular

ERROR = 0.01


def judge_table(name: str, seed: int) -> dict[str, object]:
    """Train on a table; return the decision, and what is true of other people."""
    table = plant(name, seed)
    with warnings.catch_warnings(action="ignore"):
        result = tabular.train(table.frame, label="label", sensitive="group", positive="yes")
    run, others, truth = result.run, table.others, {}
    for model, point in (("plain", run.trained.plain), ("fair", run.trained.fair)):
        predicted = point.model.predict(others.drop(columns=["group", "label"]))
        disparity = equalized_odds_disparity(others["label"], predicted, sensitive_features=others["group"])
        truth[model] = float((predicted == others["label"].to_numpy()).mean()), disparity
    gained = truth["fair"][0] - truth["plain"][0]
    widened = truth["fair"][1] - truth["plain"][1]
    wrong = {
        "use-fair": widened > ERROR or gained < -run.choice.price - ERROR,
        "keep-plain": widened < -0.02 - ERROR and gained > -run.choice.price + ERROR,
        "your-call": run.choice.why == "trade" and (widened > ERROR or gained > ERROR),
        "cannot-tell": False,
    }[result.decision.outcome]
    low, high = run.choice.change["disparity"].interval
    return {
        "table": name,
        "seed": seed,
        "decision": result.decision.outcome,
        "why": run.choice.why,
        "by": run.evaluation.judged.basis,
        "plain": "{:.3f} / {:.3f}".format(*truth["plain"]),
        "fair": "{:.3f} / {:.3f}".format(*truth["fair"]),
        "said change": f"{low:.3f} to {high:.3f}",
        "true change": round(widened, 3),
        "within": low <= widened <= high,
        "wrong": wrong,
        "seconds": round(run.seconds, 1),
    }


def print_table(frame: pandas.DataFrame) -> None:
    """Print a Markdown table."""
    for row in (frame.columns, ["---"] * frame.shape[1], *frame.itertuples(index=False)):
        print(f"| {' | '.join(map(str, row))} |")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--only", choices=RECIPES)
    asked = parser.parse_args()
    records = []
    for name in [asked.only] if asked.only else RECIPES:
        for seed in range(asked.seeds):
            records.append(judge_table(name, seed))
            print(records[-1], flush=True)
    frame = pandas.DataFrame(records)
    print_table(frame)
    decided = (frame["decision"] != "cannot-tell").mean()
    print(f"\n{decided:.0%} end in a decision, {int(frame['wrong'].sum())} of them wrong on right labels.")


if __name__ == "__main__":
    main()
