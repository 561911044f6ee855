"""fairsieve beside fairlearn, AIF360, cleanlab and Aequitas, on the same tables and the same wrong labels.

    pip install fairlearn aif360 cleanlab aequitas     # in an environment of their own, beside fairsieve
    fairsieve data fetch compas adult german
    python benchmarks/peers.py                         # --data adult --noise none uniform --seeds 3; --table

Every method is a way to train scikit-learn's LogisticRegression (fairsieve: its own linear model) by what the
library offers for equalized odds or for wrong labels, with its default settings. All see the same features, the group
among them, and the same noisy labels; accuracy and equalized odds disparity are measured on right test labels. Seconds
are those of the processor, for fitting. Suspects: how many labels a method calls wrong, which share of those is, and
which share of the wrong labels it found. One line of JSON for each run is appended to ``--out``, and a run that is
there is not repeated. A library that is not installed is left out, with a word.
"""

from __future__ import annotations

import argparse
import json
import logging
import sys
import time
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import replace
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression

from fairsieve import FairRobustClassifier, Samples, accuracy, equalized_odds_disparity
from fairsieve.paper.problems import make_problem

sys.path.insert(0, str(Path(__file__).parents[1]))

OUT = Path(__file__).parent / "results" / "peers.jsonl"
PACKAGES = ("fairsieve", "scikit-learn", "fairlearn", "aif360", "cleanlab", "aequitas")
RATE = 0.1
BEGIN, END = "<!-- tables -->", "<!-- end of the tables -->"
Predict = Callable[[Samples], Any]
Trained = tuple[Predict, Any]  # how to predict, and the rows whose labels look wrong (None: it does not say)


def plain_model() -> LogisticRegression:
    return LogisticRegression(max_iter=1000)


def train_plain(train: Samples, seed: int) -> Trained:
    model = plain_model().fit(train.features, train.labels)
    return lambda test: model.predict(test.features), None


def train_fairsieve(train: Samples, seed: int) -> Trained:
    model = FairRobustClassifier(random_state=seed)
    model.fit(train.features, train.labels, sensitive_features=train.groups)
    return lambda test: model.predict(test.features), model.suspects()["row"]


def train_exponentiated_gradient(train: Samples, seed: int) -> Trained:
    from fairlearn.reductions import EqualizedOdds, ExponentiatedGradient

    model = ExponentiatedGradient(plain_model(), EqualizedOdds())
    model.fit(train.features, train.labels, sensitive_features=train.groups)
    return lambda test: model.predict(test.features, random_state=seed), None


def train_threshold_optimizer(train: Samples, seed: int) -> Trained:
    from fairlearn.postprocessing import ThresholdOptimizer

    model = ThresholdOptimizer(
        estimator=plain_model(), constraints="equalized_odds", predict_method="predict_proba"
    )
    model.fit(train.features, train.labels, sensitive_features=train.groups)

    def predict(test: Samples) -> Any:
        return model.predict(test.features, sensitive_features=test.groups, random_state=seed).astype(int)

    return predict, None


def train_reweighing(train: Samples, seed: int) -> Trained:
    from aif360.sklearn.preprocessing import Reweighing

    index = pd.Index(train.groups, name="group")
    table = pd.DataFrame(train.features, index=index)
    _, weights = Reweighing("group").fit_transform(table, pd.Series(train.labels, index=index))
    model = plain_model().fit(train.features, train.labels, sample_weight=weights)
    return lambda test: model.predict(test.features), None


def train_equalized_odds_postprocessing(train: Samples, seed: int) -> Trained:
    from aif360.algorithms.postprocessing import EqOddsPostprocessing
    from aif360.datasets import BinaryLabelDataset

    def dataset(labels: Any, groups: Any) -> Any:
        table = pd.DataFrame({"label": np.asarray(labels, float), "group": (groups == second).astype(float)})
        return BinaryLabelDataset(df=table, label_names=["label"], protected_attribute_names=["group"])

    second = np.unique(train.groups)[-1]
    model = plain_model().fit(train.features, train.labels)
    repair = EqOddsPostprocessing([{"group": 0.0}], [{"group": 1.0}], seed=seed)
    repair.fit(dataset(train.labels, train.groups), dataset(model.predict(train.features), train.groups))

    def predict(test: Samples) -> Any:
        found = repair.predict(dataset(model.predict(test.features), test.groups))
        return found.labels.ravel().astype(int)

    return predict, None


def train_clean_learning(train: Samples, seed: int) -> Trained:
    from cleanlab.classification import CleanLearning

    model = CleanLearning(plain_model(), seed=seed)
    model.fit(train.features, train.labels)
    issues = model.get_label_issues()
    rows = np.flatnonzero(issues["is_label_issue"])
    rows = rows[np.argsort(issues["label_quality"].to_numpy()[rows], kind="stable")]
    return lambda test: model.predict(test.features), rows


def train_prevalence_sampling(train: Samples, seed: int) -> Trained:
    from aequitas.flow.methods.preprocessing import PrevalenceSampling

    logging.disable(logging.INFO)
    columns = [f"x{number}" for number in range(train.features.shape[1])]
    table = pd.DataFrame(train.features, columns=columns)
    labels, groups = (
        pd.Series(train.labels, name="label"),
        pd.Series(train.groups, name="group", dtype="category"),
    )
    sampling = PrevalenceSampling(seed=seed)
    sampling.fit(table, labels, groups)
    table, labels, _ = sampling.transform(table, labels, groups)
    model = plain_model().fit(table.to_numpy(), labels)
    return lambda test: model.predict(test.features), None


METHODS: dict[str, tuple[str | None, Callable[[Samples, int], Trained]]] = {
    "LogisticRegression": (None, train_plain),
    "fairsieve": (None, train_fairsieve),
    "fairlearn ExponentiatedGradient": ("fairlearn", train_exponentiated_gradient),
    "fairlearn ThresholdOptimizer": ("fairlearn", train_threshold_optimizer),
    "AIF360 Reweighing": ("aif360", train_reweighing),
    "AIF360 EqOddsPostprocessing": ("aif360", train_equalized_odds_postprocessing),
    "cleanlab CleanLearning": ("cleanlab", train_clean_learning),
    "Aequitas PrevalenceSampling": ("aequitas", train_prevalence_sampling),
}


def _doubled(samples: Samples) -> Samples:
    """Return the samples with features in double precision, which fairlearn's ThresholdOptimizer needs."""
    return replace(samples, features=samples.features.astype(np.float64))


def measure(method: str, data: str, noise: str, seed: int) -> dict[str, Any]:
    """Train by a method and measure it on right labels."""
    problem = make_problem(data, noise, 0.0 if noise == "none" else RATE, seed)
    train, test, wrong = _doubled(problem.train), _doubled(problem.test), problem.flipped
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        started = time.process_time()
        predict, suspects = METHODS[method][1](train, seed)
        seconds = time.process_time() - started
        guess = predict(test)
    found = {
        "accuracy": accuracy(test.labels, guess),
        "disparity": equalized_odds_disparity(test.labels, guess, sensitive_features=test.groups),
        "seconds": seconds,
    }
    if suspects is not None:
        hits = int(wrong[np.asarray(suspects, int)].sum())
        found |= {"suspects": len(suspects), "hits": hits, "wrong": int(wrong.sum())}
    return found


def recorded(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()] if path.exists() else []


def summary(records: list[dict[str, Any]]) -> Iterator[str]:
    """Yield a Markdown table for each data set, and one of the suspects."""
    groups: dict[tuple[str, str, str], list[dict[str, Any]]] = defaultdict(list)
    for record in records:
        groups[record["data"], record["noise"], record["method"]].append(record)
    noises = list(dict.fromkeys(record["noise"] for record in records))
    methods = [name for name in METHODS if any(key[2] == name for key in groups)]
    for data in dict.fromkeys(record["data"] for record in records):
        seeds = len({run["seed"] for run in records if run["data"] == data})
        yield f"\n**{data}**: accuracy / equalized odds disparity, means over {seeds} seeds\n"
        yield f"| method | {' | '.join(noises)} | seconds |"
        yield f"| --- |{' --- |' * len(noises)} ---: |"
        for method in methods:
            cells, seconds = [], []
            for noise in noises:
                runs = [run for run in groups[data, noise, method] if "accuracy" in run]
                if runs:
                    means = (np.mean([run[name] for run in runs]) for name in ("accuracy", "disparity"))
                    cells.append(" / ".join(f"{mean:.3f}".lstrip("0") for mean in means))
                    seconds += [run["seconds"] for run in runs]
                else:
                    cells.append("fails" if groups[data, noise, method] else "")
            yield f"| {method} | {' | '.join(cells)} | {np.median(seconds) if seconds else np.nan:.2f} |"
    yield "\n**Suspects**: labels listed, the share of them that is wrong, the share of wrong labels that is listed\n"
    yield f"| data | method | {' | '.join(noises)} |"
    yield f"| --- | --- |{' --- |' * len(noises)}"
    for data in dict.fromkeys(record["data"] for record in records):
        for method in methods:
            texts = [suspects_text(groups[data, noise, method]) for noise in noises]
            if any(texts):
                yield f"| {data} | {method} | {' | '.join(texts)} |"


def suspects_text(runs: list[dict[str, Any]]) -> str:
    runs = [run for run in runs if "suspects" in run]
    if not runs:
        return ""
    listed, hits, wrong = (sum(run[name] for run in runs) for name in ("suspects", "hits", "wrong"))
    precision = f"{hits / listed:.0%}" if listed and wrong else "–"
    recall = f"{hits / wrong:.0%}" if wrong else "–"
    return f"{listed / len(runs):,.0f}, {precision}, {recall}"


def versions() -> dict[str, str]:
    found = {}
    for name in PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            print(f"{name} is not installed, so its methods are left out")
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--data", nargs="+", default=["synthetic", "compas", "adult"])
    parser.add_argument("--noise", nargs="+", default=["none", "uniform", "group-targeted", "weak-annotator"])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--out", type=Path, default=OUT)
    parser.add_argument("--table", action="store_true", help="only print the tables of what is recorded")
    parser.add_argument("--page", type=Path, help="write the tables into this page, between its two marks")
    arguments = parser.parse_args()
    installed = versions()
    done = recorded(arguments.out)
    seen = {(run["data"], run["noise"], run["seed"], run["method"]) for run in done}
    for data in () if arguments.table else arguments.data:
        for seed in range(arguments.seeds):
            for noise in arguments.noise:
                for method, (package, _) in METHODS.items():
                    if (data, noise, seed, method) in seen or not (package is None or package in installed):
                        continue
                    run = {"data": data, "noise": noise, "seed": seed, "method": method}
                    try:
                        run |= measure(method, data, noise, seed)
                    except Exception as error:
                        run["error"] = f"{type(error).__name__}: {error}"[:200]
                    run["versions"] = installed
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
