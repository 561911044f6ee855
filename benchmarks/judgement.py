"""Whether what is said of models holds for right labels: over tables, kinds of wrong labels and draws.

    python benchmarks/judgement.py --records judgement.jsonl --seeds 10
    python benchmarks/judgement.py --records judgement.jsonl --show
    python benchmarks/judgement.py --records quick.jsonl --quick 200 --first 1000
    python benchmarks/judgement.py --records tell.jsonl --tell 60 --first 1000

Each run draws a table, makes some of its labels wrong, and trains the plain and the fair model, fold by fold, so that
every row is predicted by models that did not see it. Both are judged by these predictions; the models of the first fold
also predict many other people, whose right labels say what is true. A run is recorded as one JSON line as soon as it
ends, so that a stopped benchmark continues.

With ``--quick`` each run draws a table of its own (2,000 to 12,000 rows, two or three groups, other rates of wrong
labels), and judges plain logistic regression beside reweighing: a second each, so that many tables can be looked at.
Beside these intervals stand those of two who know more: the flip rates, or all right labels.

With ``--tell``, of the quick tables whose change cannot be told, what is said to tell it is tried: so many labels are
checked, or so many rows drawn, up to 140,000, and judged again.
"""

from __future__ import annotations

import argparse
import json
import warnings
from collections import defaultdict
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
from sklearn.linear_model import LogisticRegression

from fairsieve import FairRobustClassifier, Samples, estimate_clean_ratio
from fairsieve.data import flip_uniform, load_adult
from fairsieve.label_noise.judgement import Judgement, correct_world, judge
from fairsieve.metrics import accuracy_from_table, count_table, disparity_from_table
from fairsieve.tabular.policy import POLICY

ROWS, OTHERS, FOLDS = 6000, 30_000, 3
MANY_OTHERS = 300_000  # so that the truth itself is no matter of chance
MANY_ROWS = 140_000  # that are drawn to see whether they tell
LARGE = 0.03  # a fall of the disparity that should be told
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
        "alike": judged.more_alike(),
        "kept": judged.keeps_accuracy(0.01),
    }


class Quick:
    """A table that nobody has looked at, and what plain logistic regression and reweighing predict for its rows."""

    def __init__(self, number: int, rows: int | None = None, draw: int = 0) -> None:
        rng = np.random.default_rng([7, number])
        self.kind, self.number, self.draw = KINDS[number % len(KINDS)], number, draw
        self.shape, few = int(rng.integers(100, 10_000)), int(rng.choice([2000, 5000, 12_000]))
        self.rows, scale = rows or few, rng.uniform(0.5, 1.3)
        self.data = draw_people(self.shape, self.rows, number + 10**7 * draw)
        self.rates = rates_of(self.kind, self.data.cells.shape[1]) * scale
        self.labels = self.data.labels
        if self.rates.any():
            self.labels = flip_uniform(self.data, self.rates, seed=number + 777_777 + draw).labels
        self.cells = self.data.with_labels(self.labels).cells
        self.folds = np.random.default_rng([8, number, draw]).permutation(self.rows) % 2
        self.codes = np.zeros((2, self.rows), np.int64)
        self.models = [self._fit(fold) for fold in range(2)]

    def _fit(self, fold: int) -> list[LogisticRegression]:
        """Fit both models without a fold, and predict it."""
        out, inside, counts = self.folds == fold, self.folds != fold, self.cells.counts
        # As if every group had the same share of each class.
        own = counts.sum(axis=1)[:, None] * counts.sum(axis=0) / len(self.cells)
        weights = np.clip(own / np.maximum(counts, 1), 0, 20)[self.cells.label_codes, self.cells.group_codes]
        models = []
        for place, weight in enumerate((np.ones(self.rows), weights)):
            model = LogisticRegression(max_iter=200)
            model.fit(self.data.features[inside], self.labels[inside], weight[inside])
            self.codes[place, out] = model.predict(self.data.features[out])
            models.append(model)
        return models

    def judge(self, checks: int = 0) -> Judgement:
        """Judge both, with so many labels checked at random."""
        settings = {}
        if checks:
            rows = np.random.default_rng([9, self.number, self.draw]).permutation(self.rows)[:checks]
            verified = np.full(self.rows, None, object)
            verified[rows] = self.data.labels[rows]
            settings = {"verified_labels": verified, "random_state": 0}
        estimate = estimate_clean_ratio(
            self.data.features, self.labels, sensitive_features=self.data.groups, **settings
        )
        return judge(self.cells, list(self.codes), NOTION, positive=1, estimate=estimate, seed=self.number)

    def judge_knowing(self) -> dict[str, Judgement]:
        """Judge as who knows the flip rates would, and who knows all right labels."""
        settings = {"positive": 1, "seed": self.number}
        given = judge(self.cells, list(self.codes), NOTION, **settings)
        worlds = [correct_world(world, self.rates) for world in given.worlds()]
        return {
            "rates": replace(given, basis="estimate", worlds=partial(list, worlds), given=given),
            "labels": judge(self.data.cells, list(self.codes), NOTION, **settings),
        }


def run_quickly(number: int) -> dict[str, object]:
    """Judge plain logistic regression and reweighing on a table that nobody has looked at."""
    table = Quick(number)
    judged = table.judge()
    others = draw_people(table.shape, MANY_OTHERS, number + 500_000)
    tables = [
        count_table(
            others.cells.label_codes, others.groups, one.predict(others.features), *others.cells.shape
        )
        for pair in table.models
        for one in pair
    ]
    enough = judged.enough  # rates of too few people are not compared
    found = [
        (accuracy_from_table(each), disparity_from_table(each, NOTION, counted=enough)) for each in tables
    ]
    truth = np.reshape(found, (2, 2, 2)).mean(axis=0)  # over the folds: (models, (accuracy, disparity))
    knowing = {name: list(one.change()["disparity"].interval) for name, one in table.judge_knowing().items()}
    named = record(judged, truth, table=f"{table.rows} rows", kind=table.kind, seed=number)
    return {**named, "knowing": knowing}


def try_to_tell(number: int) -> dict[str, object]:
    """Where the change of a quick table cannot be told, do what is said to tell it, and say whether it does."""
    table = Quick(number)
    judged = table.judge()
    small = max(POLICY.small_change, judged.models[0].disparity.value / 5)

    def tells(judgement: Judgement) -> bool:
        low, high = judgement.change()["disparity"].interval
        return bool(high < 0 or low >= 0 or -small <= low <= high <= small)

    found: dict[str, object] = {"seed": number, "table": f"{table.rows} rows", "kind": table.kind, "told": {}}
    if tells(judged):
        return found
    needed, told = judged.to_tell(small), {}
    if needed.rows and needed.rows <= MANY_ROWS:
        more = Quick(number, needed.rows, draw=1)
        told["both" if needed.checks else "rows"] = tells(more.judge(needed.checks or 0))
    elif needed.checks and not needed.rows:
        told["checks"] = tells(table.judge(needed.checks))
    return {**found, "needed": list(needed), "told": told}


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


def show_falls(records: list[dict]) -> None:
    """Print how many large falls of the disparity are told, and would be by who knows rates, or right labels."""
    falls = [one for one in records if one["true"][1][1] - one["true"][0][1] < -LARGE]
    told = {"as judged": np.mean([one["change"]["disparity"][2] < 0 for one in falls])}
    for name in ("rates", "labels"):
        told[f"knowing {name}"] = np.mean([one["knowing"][name][1] < 0 for one in falls])
    wide = np.mean([np.diff(one["change"]["disparity"][1:])[0] for one in records])
    widths = {
        name: np.mean([np.diff(one["knowing"][name])[0] for one in records]) for name in ("rates", "labels")
    }
    print(
        f"\n{len(falls)} falls of more than {LARGE}, told:",
        {name: f"{share:.2f}" for name, share in told.items()},
    )
    print(
        f"widths of the change: {wide:.3f}; knowing", {name: f"{width:.3f}" for name, width in widths.items()}
    )


def show_told(records: list[dict]) -> None:
    """Print how often what was said to tell did tell."""
    unknown = [one for one in records if "needed" in one]
    for name in ("rows", "checks", "both"):
        told = [one["told"][name] for one in unknown if name in one["told"]]
        print(f"{name}: tried {len(told)}, told {sum(told)}")
    nothing = sum(not any(one["needed"]) for one in unknown)
    print(
        f"{len(unknown)} of {len(records)} tables undecided; of {nothing} it is said that nothing would tell"
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
    parser.add_argument("--tell", type=int, default=0, metavar="RUNS")
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
            for number in range(asked.first, asked.first + asked.tell):
                if not any(one["seed"] == number for one in records):
                    records.append(try_to_tell(number))
                    print(json.dumps(records[-1]), file=file, flush=True)
            for seed in range(0 if asked.quick or asked.tell else asked.seeds):
                for table in asked.tables:
                    for kind in asked.kinds:
                        if (table, kind, seed) not in done:
                            records.append(run(table, kind, seed))
                            print(json.dumps(records[-1]), file=file, flush=True)
    if asked.tell:
        show_told(records)
    else:
        show(records)
    if asked.quick:
        show_falls(records)


if __name__ == "__main__":
    main()
