"""``fairsieve.tabular.train`` on Adult with wrong labels, beside the truth about other people.

    python benchmarks/adult_truth.py                     # 5, 10 and 20 % flips, three seeds each
    python benchmarks/adult_truth.py --wrong 0,0.1 --seeds 1 --rows 5000

As in the README: 10,000 people, some of whose labels are flipped at random. Printed beside the decision: the disparity
that the run says the fair model has, with its interval; the disparity of both models on the right labels of 13,000
other people; and by how much the stored model is less fair there than the plain one. The last columns say what nobody
has in use: how far the disparity goes down or up as the run says, as it would say with the right labels of all rows,
and what it would decide by them. No estimate can tell more than these.
"""

from __future__ import annotations

import argparse
import warnings
from dataclasses import replace

import numpy as np
import pandas

from fairsieve import equalized_odds_disparity, tabular
from fairsieve.data.tables import read_adult
from fairsieve.metrics import Score
from fairsieve.tabular.evaluation import choose_model

OTHERS = 13_000


def load() -> pandas.DataFrame:
    """Return Adult as a raw table, with numbers as numbers."""
    frame = read_adult()[1].replace("?", None)
    for column in frame.columns.drop("income"):
        numbers = pandas.to_numeric(frame[column], errors="coerce")
        if numbers.isna().sum() == frame[column].isna().sum():
            frame[column] = numbers
    return frame


def tell(score: Score) -> str:
    """Write a number with its interval."""
    return "{:.3f} ({:.3f} to {:.3f})".format(score.value, *score.interval)


def measure(frame: pandas.DataFrame, wrong: float, seed: int, rows: int) -> dict[str, object]:
    """Train on some people with wrong labels; return what is said, and what is true of others."""
    random = np.random.default_rng(seed)
    order = random.permutation(len(frame))
    mine, others = frame.iloc[order[:rows]].copy(), frame.iloc[order[rows : rows + OTHERS]]
    values = sorted(frame["income"].unique())
    flipped = random.choice(rows, round(wrong * rows), replace=False)
    right = mine["income"].map(values.index).to_numpy()
    codes = right.copy()
    codes[flipped] = 1 - codes[flipped]
    mine["income"] = np.array(values, dtype=object)[codes]
    with warnings.catch_warnings(action="ignore"):
        result = tabular.train(mine.reset_index(drop=True), label="income", sensitive="sex")
    run = result.run
    values = others[[feature.column for feature in run.problem.features if not feature.left_out]]
    truth = {}
    for name, point in (("plain", run.trained.plain), ("fair", run.trained.fair)):
        predicted = point.model.predict(values)
        truth[name] = equalized_odds_disparity(others["income"], predicted, sensitive_features=others["sex"])
        truth[f"{name} accuracy"] = float((predicted == others["income"].to_numpy()).mean())
    judged = run.evaluation.judged
    said = judged.models[1].disparity
    low, high = said.interval
    knowing = judged.knowing(right[run.measured.part.rows], None)
    by_right = choose_model(replace(run.evaluation, judged=knowing), run.asked)
    return {
        "wrong": wrong,
        "seed": seed,
        "decision": result.decision.outcome,
        "basis": run.evaluation.judged.basis,
        "rate found": round(float(run.trained.estimator.estimate_.flip_rates.mean()), 3),
        "said": tell(said),
        "fair": round(truth["fair"], 3),
        "plain": round(truth["plain"], 3),
        "accuracy": f"{truth['fair accuracy']:.3f} (plain {truth['plain accuracy']:.3f})",
        "holds": low <= truth["fair"] <= high,
        "stored less fair by": round(truth[run.choice.stored] - truth["plain"], 3),
        "change": tell(judged.change()["disparity"]),
        "change by right labels": tell(knowing.change()["disparity"]),
        "decision by right labels": by_right.outcome,
        "would tell": tuple(run.choice.needed),
        "seconds": round(run.seconds, 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--wrong", default="0.05,0.1,0.2")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--rows", type=int, default=10_000)
    asked = parser.parse_args()
    frame, records = load(), []
    for wrong in map(float, asked.wrong.split(",")):
        for seed in range(asked.seeds):
            records.append(measure(frame, wrong, seed, asked.rows))
            print(records[-1], flush=True)
    for row in (records[0], ["---"] * len(records[0]), *(record.values() for record in records)):
        print(f"| {' | '.join(map(str, row))} |")


if __name__ == "__main__":
    main()
