"""Whether what is said of models holds for right labels: over tables, kinds of wrong labels and draws.

    python benchmarks/judgement.py --records judgement.jsonl --seeds 10
    python benchmarks/judgement.py --records judgement.jsonl --show
    python benchmarks/judgement.py --records quick.jsonl --quick 200 --first 1000

Each run draws a table, makes some of its labels wrong, and trains the plain and the fair model, fold by fold, so that
every row is predicted by models that did not see it. Both are judged by these predictions; the models of the first fold
also predict many other people, whose right labels say what is true. A run is recorded as one JSON line as soon as it
ends, so that a stopped benchmark continues.

With ``--quick`` each run draws a table of its own (2,000 to 12,000 rows, two or three groups, other rates of wrong
labels), and judges plain logistic regression beside reweighing: a second each, so that many tables can be looked at.
"""

from __future__ import annotations

import argparse
import json
import warnings
from collections import defaultdict
from pathlib import Path

import numpy as np
from sklearn.linear_model import LogisticRegression

from fairsieve import FairRobustClassifier, Samples, estimate_clean_ratio
from fairsieve.data import flip_uniform, load_adult
from fairsieve.label_noise.judgement import Judgement, judge
from fairsieve.metrics import accuracy_from_table, count_table, disparity_from_table

ROWS, OTHERS, FOLDS = 6000, 30_000, 3
NOTION = "equalized_odds"
Rates = list[list[float]]


def draw_people(shape: int, rows: int, seed: int) -> Samples:
    """Draw people of one of many tables: ``shape`` decides how groups differ and how sure the classes are."""
    of_shape, rng = np.random.default_rng(shape), np.random.default_rng(seed)
    groups = 2 + shape % 2
    weights, shift = of_shape.normal(size=6), of_shape.normal(scale=0.5, size=(groups, 6))
    weights *= of_shape.uniform(2.0, 5.0) / np.linalg.norm(weights)
    base = of_shape.normal(scale=0.7, size=groups)
    group = rng.choice(groups, rows, p=of_shape.dirichlet(np.full(groups, 8.0)))
    X = rng.normal(size=(rows, 6)) + shift[group]
    labels = (rng.random(rows) < 1 / (1 + np.exp(-(X @ weights + base[group])))).astype(int)
    features = np.column_stack([X, np.equal.outer(group, np.arange(groups))])
    return Samples(features, labels, group, classes=[0, 1], group_values=list(range(groups)))


def take_adults(rows: int, seed: int, *, others: bool) -> Samples:
    data = load_adult()
    order = np.random.default_rng(seed).permutation(len(data))
    return data.take(order[rows:] if others else order[:rows])


TABLES = {f"drawn {shape}": shape for shape in range(10)} | {"adult": -1}


def rates_of(kind: str, groups: int) -> np.ndarray:
    rates = np.zeros((2, groups))
    if kind.startswith("random"):
        rates[:] = float(kind.split()[1]) / 100
    elif kind == "by class":
        rates[0], rates[1] = 0.15, 0.05
    elif kind == "one class":
        rates[1] = 0.15
    elif kind == "by group":
        rates[:, 0], rates[:, 1:] = 0.2, 0.05
    elif kind == "one group":
        rates[:, 0] = 0.2
    elif kind == "one cell":
        rates[1, 0] = 0.3
    return rates


KINDS = (
    "none",
    "random 5",
    "random 10",
    "random 20",
    "by class",
    "one class",
    "by group",
    "one group",
    "one cell",
)


def run(table: str, kind: str, seed: int) -> dict[str, object]:
    """Judge two models of one draw, and measure them on others."""
    shape = TABLES[table]
    if shape < 0:
        data, others = (take_adults(10_000, seed, others=side) for side in (False, True))
    else:
        data, others = draw_people(shape, ROWS, seed), draw_people(shape, OTHERS, seed + 10_000)
    rates = rates_of(kind, data.cells.shape[1])
    labels = flip_uniform(data, rates, seed=seed + 20_000).labels if rates.any() else data.labels
    folds = np.random.default_rng(seed).permutation(len(data)) % FOLDS
    codes, true = np.zeros((2, len(data)), np.int64), []
    for fold in range(FOLDS):
        out, inside = folds == fold, np.flatnonzero(folds != fold)
        model = FairRobustClassifier(NOTION, tolerance=0.01).fit(
            data.features[inside], labels[inside], sensitive_features=data.groups[inside]
        )
        pair = model.plain_model_, model
        for place, one in enumerate(pair):
            codes[place, out] = one.predict(data.features[out])
        true.append([measure(others, one.predict(others.features)) for one in pair])
    truth = np.mean(true, axis=0)  # (models, (accuracy, disparity))
    estimate = estimate_clean_ratio(data.features, labels, sensitive_features=data.groups)
    judged = judge(
        data.with_labels(labels).cells, list(codes), NOTION, positive=1, estimate=estimate, seed=seed
    )
    return record(judged, truth, table=table, kind=kind, seed=seed)


def record(judged: Judgement, truth: np.ndarray, **names: object) -> dict[str, object]:
    """Write down what was said, beside the truth."""
    change, naive = judged.change(), judged.on_given_labels.change()
    return {
        **names,
        "basis": judged.basis,
        "true": truth.tolist(),
        "accuracy": [[one.accuracy.value, *one.accuracy.interval] for one in judged.models],
        "disparity": [[one.disparity.value, *one.disparity.interval] for one in judged.models],
        "change": {name: [score.value, *score.interval] for name, score in change.items()},
        "naive": {name: [score.value, *score.interval] for name, score in naive.items()},
        "given": [[one.disparity.value, *one.disparity.interval] for one in judged.on_given_labels.models],
        "alike": judged.more_alike().verdict,
        "kept": judged.keeps_accuracy(0.01).verdict,
    }


def run_quickly(number: int) -> dict[str, object]:
    """Judge plain logistic regression and reweighing on a table that nobody has looked at."""
    rng = np.random.default_rng([7, number])
    shape, kind, rows = (
        int(rng.integers(100, 10_000)),
        KINDS[number % len(KINDS)],
        int(rng.choice([2000, 5000, 12_000])),
    )
    data, others = draw_people(shape, rows, number), draw_people(shape, OTHERS, number + 500_000)
    rates = rates_of(kind, data.cells.shape[1]) * rng.uniform(0.5, 1.3)
    labels = flip_uniform(data, rates, seed=number + 777_777).labels if rates.any() else data.labels
    cells = data.with_labels(labels).cells
    folds = rng.permutation(rows) % 2
    codes, tables = np.zeros((2, rows), np.int64), []
    for fold in range(2):
        out, inside = folds == fold, folds != fold
        # As if every group had the same share of each class.
        own = cells.counts.sum(axis=1)[:, None] * cells.counts.sum(axis=0) / len(cells)
        weights = np.clip(own / np.maximum(cells.counts, 1), 0, 20)[cells.label_codes, cells.group_codes]
        for place, weight in enumerate((np.ones(rows), weights)):
            model = LogisticRegression(max_iter=200).fit(
                data.features[inside], labels[inside], weight[inside]
            )
            codes[place, out] = model.predict(data.features[out])
            predicted = model.predict(others.features)
            tables.append(
                count_table(others.cells.label_codes, others.groups, predicted, *others.cells.shape)
            )
    estimate = estimate_clean_ratio(data.features, labels, sensitive_features=data.groups)
    judged = judge(cells, list(codes), NOTION, positive=1, estimate=estimate, seed=number)
    enough = judged.enough  # rates of too few people are not compared
    found = [
        (accuracy_from_table(table), disparity_from_table(table, NOTION, counted=enough)) for table in tables
    ]
    truth = np.reshape(found, (2, 2, 2)).mean(axis=0)  # over the folds: (models, (accuracy, disparity))
    return record(judged, truth, table=f"{rows} rows", kind=kind, seed=number)


def measure(others: Samples, codes: np.ndarray) -> tuple[float, float]:
    cells = others.cells
    table = count_table(cells.label_codes, cells.group_codes, codes, *cells.shape)
    return float(accuracy_from_table(table)), float(disparity_from_table(table, NOTION))


def show(records: list[dict]) -> None:
    """Print how often intervals held the truth, and claims were true, by basis and by kind of wrong labels."""
    for by in ("basis", "kind", "table", "all"):
        parts = defaultdict(list)
        for one in records:
            parts[one.get(by, "all")].append(one)
        print(f"\n{by:16} runs | level: covers, width | change: covers, width | naive | holds, false | told")
        for name, some in parts.items():
            level = [
                (low <= true[1] <= high, high - low)
                for one in some
                for true, (_, low, high) in zip(one["true"], one["disparity"], strict=False)
            ]
            moved = [one["true"][1][1] - one["true"][0][1] for one in some]
            change = [
                (
                    one["change"]["disparity"][1] <= move <= one["change"]["disparity"][2],
                    one["change"]["disparity"][2] - one["change"]["disparity"][1],
                )
                for one, move in zip(some, moved, strict=False)
            ]
            naive = np.mean(
                [
                    one["naive"]["disparity"][1] <= move <= one["naive"]["disparity"][2]
                    for one, move in zip(some, moved, strict=False)
                ]
            )
            lost = [one["true"][0][0] - one["true"][1][0] for one in some]
            holds = [move >= 0 for one, move in zip(some, moved, strict=False) if one["alike"] == "holds"]
            holds += [loss > 0.01 for one, loss in zip(some, lost, strict=False) if one["kept"] == "holds"]
            told = (
                np.mean([one["alike"] != "cannot tell" for one in some]),
                np.mean([one["kept"] != "cannot tell" for one in some]),
            )
            print(
                f"{name:16} {len(some):4} | {np.mean(level, axis=0).round(3)} | {np.mean(change, axis=0).round(3)} "
                f"| {naive:.2f} | {len(holds)} {sum(holds)} | {told[0]:.2f} {told[1]:.2f}"
            )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--records", type=Path, required=True)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--tables", nargs="*", default=list(TABLES))
    parser.add_argument("--kinds", nargs="*", default=list(KINDS))
    parser.add_argument("--quick", type=int, default=0, metavar="RUNS")
    parser.add_argument("--first", type=int, default=0, help="number of the first quick run: other draws")
    parser.add_argument("--show", action="store_true")
    asked = parser.parse_args()
    records = (
        [json.loads(line) for line in asked.records.read_text().splitlines()]
        if asked.records.exists()
        else []
    )
    if not asked.show:
        done = {(one["table"], one["kind"], one["seed"]) for one in records}
        with asked.records.open("a", encoding="utf-8") as file, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for number in range(asked.first, asked.first + asked.quick):
                if not any(one["seed"] == number for one in records):
                    records.append(run_quickly(number))
                    print(json.dumps(records[-1]), file=file, flush=True)
            for seed in range(0 if asked.quick else asked.seeds):
                for table in asked.tables:
                    for kind in asked.kinds:
                        if (table, kind, seed) not in done:
                            records.append(run(table, kind, seed))
                            print(json.dumps(records[-1]), file=file, flush=True)
    show(records)


if __name__ == "__main__":
    main()
