"""``fairsieve.tabular.train`` with each kind of model, on Adult, COMPAS and German credit as raw tables.

    python benchmarks/table_models.py --records models.jsonl              # every data set, three splits
    python benchmarks/table_models.py --records models.jsonl --data german

A third of the rows is set aside, and their labels are right; of the others a tenth is made wrong at random, or none.
Accuracy and disparity (equalized odds) on the rows set aside, of the plain model and of the one that is kept; seconds
of the processor. Results are appended to the records as JSON lines, and what is there is not computed again.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from pathlib import Path

import numpy as np
import pandas

from fairsieve import tabular
from fairsieve.data.sources import locate
from fairsieve.data.tables import COMPAS_COLUMNS, COMPAS_RACES, GERMAN_COLUMNS, read_adult, read_table

MODELS = ("logistic", "lightgbm", "hist-gradient-boosting", "auto")


def load(name: str) -> tuple[pandas.DataFrame, str, str]:
    """Return a raw table, its label and its sensitive column."""
    if name == "adult":
        return read_adult()[1].replace("?", None), "income", "sex"
    if name == "compas":
        frame = read_table(locate("compas-scores-two-years.csv"), usecols=COMPAS_COLUMNS)
        frame = frame[frame["race"].isin(COMPAS_RACES)].drop(columns=["is_recid", "score_text"])
        return frame, "two_year_recid", "sex"
    frame = read_table(locate("german.data"), names=list(GERMAN_COLUMNS), sep=r"\s+").rename(
        columns={"class": "risk"}
    )
    women = frame["personal_status"].isin(["A92", "A95"])
    return frame.drop(columns="personal_status").assign(sex=np.where(women, "female", "male")), "risk", "sex"


def one(data: str, wrong: float, seed: int, model: str, rows: int) -> dict[str, object]:
    """Train once, and return what is recorded."""
    frame, label, sensitive = load(data)
    for column in frame.columns:  # numbers as numbers
        if column != label:
            frame[column] = _numbers(frame[column])
    random = np.random.default_rng(seed)
    order = random.permutation(len(frame))[:rows]
    test, train = frame.iloc[order[: len(order) // 3]], frame.iloc[order[len(order) // 3 :]].copy()
    values = sorted(frame[label].unique())
    flipped = random.choice(len(train), round(wrong * len(train)), replace=False)
    places = train[label].map(values.index).to_numpy().copy()
    places[flipped] = 1 - places[flipped]
    train[label] = np.array(values, dtype=object)[places]
    started = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = tabular.train(
            train.reset_index(drop=True),
            label=label,
            sensitive=sensitive,
            test_file=test.reset_index(drop=True),
            model=model,
            seed=seed,
        )
    run = result.run
    return {
        "data": data,
        "wrong": wrong,
        "seed": seed,
        "model": model,
        "chosen": run.trained.kind,
        "seconds": time.process_time() - started,
        "suspects": len(run.suspects),
        "suspects_wrong": int(np.isin(run.suspects["row"], flipped).sum()),
        "decision": result.decision.outcome,
    } | {
        f"{name}_{score}": getattr(run.evaluation.judged.models[place], score).value
        for name, place in (("plain", 0), ("kept", run.place))
        for score in ("accuracy", "disparity")
    }


def _numbers(column: pandas.Series) -> pandas.Series:
    """Return a column as numbers where all its values are; as it is elsewhere."""
    found = pandas.to_numeric(column, errors="coerce")
    return found if found.isna().sum() == column.isna().sum() else column


def show(records: list[dict[str, object]]) -> None:
    """Print a Markdown table of means over seeds."""
    frame = pandas.DataFrame(records)
    print(
        "| data, wrong labels | model | plain: accuracy / disparity | kept: accuracy / disparity | seconds |"
    )
    print("| --- | --- | --- | --- | ---: |")
    for (data, wrong, model), part in frame.groupby(["data", "wrong", "model"], sort=False):
        cells = [
            f"{part[f'{name}_accuracy'].mean():.3f} / {part[f'{name}_disparity'].mean():.3f}"
            for name in ("plain", "kept")
        ]
        chosen = "" if model != "auto" else f" ({', '.join(sorted(set(part['chosen'])))})"
        print(
            f"| {data}, {wrong:.0%} | {model}{chosen} | {' | '.join(cells)} | {part['seconds'].mean():.0f} |"
        )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--records", type=Path, required=True)
    parser.add_argument("--data", default="german,compas,adult")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument(
        "--rows", type=int, default=10**6, help="at most so many rows of a data set, drawn at random"
    )
    parser.add_argument("--models", default=",".join(MODELS))
    asked = parser.parse_args()
    lines = asked.records.read_text(encoding="utf-8").splitlines() if asked.records.exists() else []
    records = [json.loads(line) for line in lines]
    done = {(r["data"], r["wrong"], r["seed"], r["model"]) for r in records}
    for data in asked.data.split(","):
        for seed in range(asked.seeds):
            for wrong in (0.0, 0.1):
                for model in asked.models.split(","):
                    if (data, wrong, seed, model) not in done:
                        records.append(one(data, wrong, seed, model, asked.rows))
                        with asked.records.open("a", encoding="utf-8") as stream:
                            stream.write(json.dumps(records[-1]) + "\n")
    show(sorted(records, key=lambda r: (r["data"], r["wrong"], MODELS.index(r["model"]))))


if __name__ == "__main__":
    main()
