"""fairsieve beside reweighing, fairlearn and cleanlab, on the same tables and the same wrong labels.

    pip install fairlearn cleanlab                     # beside fairsieve; a library that is missing is left out
    fairsieve data fetch compas adult german
    python benchmarks/peers.py                         # --data adult --noise none uniform-10 --splits 3; --table

Every method is a way to train logistic regression by what a library offers for equalized odds, or for wrong labels,
with its default settings. All see the same standardised features, the sensitive column not among them (but for
"synthetic with z"), and the same noisy labels; accuracy and equalized odds disparity are measured on right test labels.
Seconds are those of the processor. A row of the table is the mean of its splits; rows in which no shift of weight
narrowed the gap to the tolerance (``stopped_ == "exhausted"`` in most splits) are apart. One line of JSON
for each run is appended to ``--out``, and a run that is there is not repeated.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

from fairsieve import FairRobustClassifier, equalized_odds_disparity
from fairsieve.data import load_adult, load_compas, load_german, make_synthetic

OUT = Path(__file__).parent / "results" / "peers.jsonl"
BEGIN, END = "<!-- tables -->", "<!-- end of the tables -->"
DATA = ("synthetic with z", "synthetic without z", "compas", "german", "adult")
NOISE = ("none", "uniform-10", "uniform-20", "one-cell", "weak-annotator", "near-boundary")
Arrays = tuple[np.ndarray, np.ndarray, np.ndarray]


def load(data: str, seed: int) -> tuple[Arrays, Arrays]:
    """Return features, labels and groups to train on and to test on."""
    if data.startswith("synthetic"):
        drawn = make_synthetic(3000, seed=seed)
        X, y, z = drawn.features.astype(float), drawn.cells.label_codes, drawn.cells.group_codes
        X = X if data.endswith("with z") else X[:, :2]
        rows, cut = np.arange(3000), 2000
    else:
        table = {"compas": load_compas, "adult": load_adult, "german": load_german}[data]()
        kept = [not name.startswith(("sex", "personal_status")) for name in table.feature_names]
        X, y, z = table.features[:, kept].astype(float), table.cells.label_codes, table.cells.group_codes
        rows, cut = np.random.default_rng(seed).permutation(len(y)), int(0.8 * len(y))
    train, test = rows[:cut], rows[cut:]
    mean, spread = X[train].mean(axis=0), X[train].std(axis=0)
    X = (X[:, spread > 0] - mean[spread > 0]) / spread[spread > 0]
    return (X[train], y[train], z[train]), (X[test], y[test], z[test])


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


def train_plain(X: Any, y: Any, z: Any, seed: int) -> tuple[Callable[..., Any], dict[str, Any]]:
    model = plain_model().fit(X, y)
    return lambda X, z: model.predict(X), {}


def train_fairsieve(X: Any, y: Any, z: Any, seed: int) -> tuple[Callable[..., Any], dict[str, Any]]:
    model = FairRobustClassifier(random_state=seed).fit(X, y, sensitive_features=z)
    told = {
        "stopped": model.stopped_,
        "is_plain": model.is_plain_,
        "suspects": model.suspects()["row"].tolist(),
    }
    return lambda X, z: model.predict(X), told


def train_reweighing(X: Any, y: Any, z: Any, seed: int) -> tuple[Callable[..., Any], dict[str, Any]]:
    both = np.array([[np.mean((y == label) & (z == group)) for group in (0, 1)] for label in (0, 1)])
    weights = (both.sum(axis=1, keepdims=True) * both.sum(axis=0) / both)[y, z]
    model = plain_model().fit(X, y, sample_weight=weights)
    return lambda X, z: model.predict(X), {}


def train_exponentiated_gradient(
    X: Any, y: Any, z: Any, seed: int
) -> tuple[Callable[..., Any], dict[str, Any]]:
    from fairlearn.reductions import EqualizedOdds, ExponentiatedGradient

    model = ExponentiatedGradient(plain_model(), EqualizedOdds())
    model.fit(X, y, sensitive_features=z)
    return lambda X, z: model.predict(X, random_state=seed), {}


def train_threshold_optimizer(X: Any, y: Any, z: Any, seed: int) -> tuple[Callable[..., Any], dict[str, Any]]:
    from fairlearn.postprocessing import ThresholdOptimizer

    model = ThresholdOptimizer(
        estimator=plain_model(), constraints="equalized_odds", predict_method="predict_proba"
    )
    model.fit(X, y, sensitive_features=z)
    return lambda X, z: model.predict(X, sensitive_features=z, random_state=seed).astype(int), {}


def train_clean_learning(X: Any, y: Any, z: Any, seed: int) -> tuple[Callable[..., Any], dict[str, Any]]:
    from cleanlab.classification import CleanLearning

    model = CleanLearning(plain_model(), seed=seed)
    model.fit(X, y)
    issues = np.flatnonzero(model.get_label_issues()["is_label_issue"])
    return lambda X, z: model.predict(X), {"suspects": issues.tolist()}


METHODS = {
    "LogisticRegression": train_plain,
    "fairsieve": train_fairsieve,
    "reweighing": train_reweighing,
    "fairlearn ExponentiatedGradient": train_exponentiated_gradient,
    "fairlearn ThresholdOptimizer": train_threshold_optimizer,
    "cleanlab CleanLearning": train_clean_learning,
}


def measure(method: str, data: str, noise: str, seed: int) -> dict[str, Any]:
    """Train by a method and measure it on right labels."""
    (X, y, z), (X_test, y_test, z_test) = load(data, seed)
    noisy = add_noise(X, y, z, noise, seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        started = time.process_time()
        predict, told = METHODS[method](X, noisy, z, seed)
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


def summary(records: list[dict[str, Any]]) -> Iterator[str]:
    """Yield a table for each data set, and the means of rows by whether our tolerance was reached."""
    runs: dict[tuple[str, str, str], list[dict[str, Any]]] = defaultdict(list)
    for record in records:
        runs[record["data"], record["noise"], record["method"]].append(record)
    methods = [name for name in METHODS if any(key[2] == name for key in runs)]
    rows = [(data, noise) for data in DATA for noise in NOISE if (data, noise, "fairsieve") in runs]

    def mean(row: tuple[str, str], method: str) -> np.ndarray:
        return np.mean([(run["accuracy"], run["disparity"]) for run in runs[*row, method]], axis=0)

    def exhausted(row: tuple[str, str]) -> bool:
        return np.mean([run["stopped"] == "exhausted" for run in runs[*row, "fairsieve"]]) > 0.5

    for data in dict.fromkeys(row[0] for row in rows):
        own = [row for row in rows if row[0] == data]
        yield f"\n**{data}**: accuracy / equalized odds disparity; a star where our tolerance was not reached\n"
        yield f"| | {' | '.join(row[1] + (' *' if exhausted(row) else '') for row in own)} | seconds |"
        yield f"| --- |{' ---: |' * (len(own) + 1)}"
        for method in methods:
            cells = [text(mean(row, method)) if runs[*row, method] else "" for row in own]
            seconds = [run["seconds"] for row in own for run in runs[*row, method]]
            yield f"| {method} | {' | '.join(cells)} | {np.median(seconds) if seconds else np.nan:.2f} |"
    yield "\n**Means of rows**: accuracy / equalized odds disparity\n"
    yield "| | rows | " + " | ".join(methods) + " |"
    yield "| --- | ---: |" + " ---: |" * len(methods)
    for title, some in (
        ("tolerance met", [row for row in rows if not exhausted(row)]),
        ("tolerance not reached", [row for row in rows if exhausted(row)]),
        ("all", rows),
    ):
        if some:
            found = [text(np.mean([mean(row, method) for row in some], axis=0)) for method in methods]
            yield f"| {title} | {len(some)} | {' | '.join(found)} |"
    clean = [run for row in rows if row[1] == "none" for run in runs[*row, "fairsieve"]]
    yield f"\nSuspects of fairsieve on tables without wrong labels: {sum(run['suspects'] for run in clean)}."


def text(pair: np.ndarray) -> str:
    return " / ".join(f"{value:.3f}".lstrip("0") for value in pair)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--data", nargs="+", default=DATA)
    parser.add_argument("--noise", nargs="+", default=NOISE)
    parser.add_argument("--methods", nargs="+", default=list(METHODS))
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--out", type=Path, default=OUT)
    parser.add_argument("--table", action="store_true", help="only print the tables of what is recorded")
    parser.add_argument("--page", type=Path, help="write the tables into this page, between its two marks")
    arguments = parser.parse_args()
    done = recorded(arguments.out)
    seen = {(run["data"], run["noise"], run["seed"], run["method"]) for run in done}
    for data in () if arguments.table else arguments.data:
        for seed in range(arguments.splits):
            for noise in arguments.noise:
                for method in arguments.methods:
                    if (data, noise, seed, method) in seen:
                        continue
                    try:
                        found = measure(method, data, noise, seed)
                    except ModuleNotFoundError:  # a library that is not installed
                        continue
                    run = {"data": data, "noise": noise, "seed": seed, "method": method} | found
                    with arguments.out.open("a", encoding="utf-8") as file:
                        file.write(json.dumps(run) + "\n")
                    done.append(run)
    tables = "\n".join(summary(done)).strip()
    print(tables)
    if arguments.page is not None:
        before, rest = arguments.page.read_text("utf-8").split(BEGIN)
        _, after = rest.split(END)
        arguments.page.write_text(f"{before}{BEGIN}\n\n{tables}\n\n{END}{after}", "utf-8")


if __name__ == "__main__":
    main()
