"""The models of the Newton solver beside those of the paper's loop, over draws or splits of four data sets.

    python benchmarks/solver_quality.py --arrays FOLDER --out benchmarks/results/solver_quality.jsonl
    python benchmarks/solver_quality.py --show benchmarks/results/solver_quality.jsonl

Every line of the file is one fit; fits that the file holds already are not repeated. ``--show`` prints the table
of docs/solver.md: accuracy and disparity of both solvers on the same test samples, and the difference in
standard errors over the draws.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections import defaultdict
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from fairsieve import FairRobustClassifier, Samples
from fairsieve.data import make_synthetic
from fairsieve.estimators._predictions import decide, likeliest_codes
from fairsieve.estimators._solvers import new_solver
from fairsieve.inputs import Checked, check_samples
from fairsieve.label_noise.estimate import CleanRatioEstimate, estimate_of
from fairsieve.metrics import demographic_parity_disparity, equalized_odds_disparity
from fairsieve.paper.problems import make_problem

NOISES = ("label", "group-targeted", "uniform", "none")
DISPARITIES = {
    "equalized_odds": equalized_odds_disparity,
    "demographic_parity": demographic_parity_disparity,
}
RATE = 0.1
ADAM_STEP_SIZE = 0.001  # the authors' own, and the default of the paper's loop


def problem(data: str, noise: str, seed: int, arrays: str | None) -> tuple[Samples, Samples]:
    """Make training samples with flips and test samples with right labels.

    Synthetic test sets are large, so that chance in them does not hide a difference. The authors' arrays are
    one draw with published flips; each seed trains on another nine tenths of it, so that its ten
    results are not independent and their standard errors are too small.
    """
    rate = 0.0 if noise == "none" else RATE
    if data == "authors":
        made = make_problem("synthetic", noise, rate, seed, arrays=arrays)
        rows = np.sort(np.random.default_rng(seed).permutation(len(made.train))[: len(made.train) * 9 // 10])
        return made.train.take(rows), made.test
    made = make_problem(data, noise, rate, seed)
    if data == "synthetic":
        return made.train, make_synthetic(20_000, seed=seed + 10_000)
    return made.train, made.test


@lru_cache(maxsize=1)
def checked_problem(data: str, noise: str, seed: int, arrays: str | None) -> tuple[Checked, Samples]:
    """Make a problem, its training samples checked as an estimator does it; all fits of one problem share it."""
    train, test = problem(data, noise, seed, arrays)
    return check_samples(FairRobustClassifier(), train.features, train.labels, train.groups), test


@lru_cache(maxsize=1)
def estimate(data: str, noise: str, seed: int, arrays: str | None) -> CleanRatioEstimate:
    """Estimate the clean ratio of a problem, once for all fits."""
    return estimate_of(checked_problem(data, noise, seed, arrays)[0], seed)


def fit(data: str, noise: str, fairness: str, ratio: str, solver: str, seed: int, arrays: str | None) -> dict:
    """Train the fair model of one fit, without the plain one beside it, and measure it."""
    checked, test = checked_problem(data, noise, seed, arrays)
    found = estimate(data, noise, seed, arrays) if ratio == "auto" else None
    given = found.clean_ratio if found is not None else 1.0 if noise == "none" else 1 - RATE
    step_size = ADAM_STEP_SIZE if solver == "adam" else None
    model = FairRobustClassifier(fairness, ratio, solver=solver, step_size=step_size, random_state=seed)
    started, used = time.perf_counter(), time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted = new_solver(model, checked, seed).train_fair(given, found)
    seconds, processor = time.perf_counter() - started, time.process_time() - used
    predicted = np.asarray(fitted.classes)[likeliest_codes(decide(fitted.predictor, test.features))]
    return {
        "accuracy": float((predicted == test.labels).mean()),
        "disparity": float(DISPARITIES[fairness](test.labels, predicted, sensitive_features=test.groups)),
        "seconds": round(seconds, 3),
        "processor": round(processor, 3),
    }


def keys(asked: argparse.Namespace) -> Iterator[tuple[Any, ...]]:
    """List the fits."""
    for data in asked.data:
        for seed in range(asked.first, asked.first + asked.draws):
            for noise in NOISES:
                for fairness in DISPARITIES:
                    for ratio in asked.ratios:
                        for solver in asked.solvers:
                            yield data, noise, fairness, ratio, solver, seed


def read(path: Path) -> dict[tuple[Any, ...], dict[str, Any]]:
    """Read the fits of a file."""
    lines = path.read_text().splitlines() if path.exists() else []
    return {tuple(row["fit"]): row for row in map(json.loads, lines)}


def show(found: dict[tuple[Any, ...], dict[str, Any]]) -> None:
    """Print the table."""
    groups: dict[tuple[Any, ...], dict[str, dict[int, dict[str, Any]]]] = defaultdict(
        lambda: defaultdict(dict)
    )
    for (data, noise, fairness, ratio, solver, seed), row in found.items():
        groups[ratio, data, noise, fairness][solver][seed] = row
    print("| clean ratio | data | labels | fairness | draws | adam | newton | accuracy | disparity |")
    print("| --- | --- | --- | --- | ---: | ---: | ---: | ---: | ---: |")
    for (ratio, data, noise, fairness), solvers in sorted(groups.items(), key=lambda item: item[0][:2]):
        seeds = sorted(solvers["adam"].keys() & solvers["newton"].keys())
        if len(seeds) < 2:
            continue
        values = {
            solver: np.array([[rows[s]["accuracy"], rows[s]["disparity"]] for s in seeds])
            for solver, rows in solvers.items()
        }
        change = values["newton"] - values["adam"]
        error = change.std(axis=0, ddof=1) / np.sqrt(len(seeds))
        cells = [
            f"{mean:+.3f} ± {sigma:.3f}{worse}"
            for mean, sigma, worse in zip(
                change.mean(axis=0),
                error,
                (
                    " (worse)" if change[:, 0].mean() < -2 * error[0] else "",
                    " (worse)" if change[:, 1].mean() > 2 * error[1] else "",
                ),
                strict=True,
            )
        ]
        old, new = (values[solver].mean(axis=0) for solver in ("adam", "newton"))
        short = {"equalized_odds": "EO", "demographic_parity": "DP"}[fairness]
        print(
            f"| {ratio} | {data} | {noise} | {short} | {len(seeds)} | {old[0]:.3f} / {old[1]:.3f} | "
            f"{new[0]:.3f} / {new[1]:.3f} | {cells[0]} | {cells[1]} |"
        )


def main() -> None:
    """Run what is missing, or print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--data", nargs="+", default=["synthetic", "compas", "adult"])
    parser.add_argument("--ratios", nargs="+", default=["given", "auto"], choices=["given", "auto"])
    parser.add_argument("--solvers", nargs="+", default=["adam", "newton"], choices=["adam", "newton"])
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument("--first", type=int, default=0, help="the first draw; tuning used 100 and above")
    parser.add_argument("--arrays", help="folder of the authors' arrays, for --data authors")
    parser.add_argument(
        "--out", type=Path, default=Path(__file__).parent / "results" / "solver_quality.jsonl"
    )
    parser.add_argument("--show", type=Path)
    asked = parser.parse_args()
    if asked.show is not None:
        show(read(asked.show))
        return
    found = read(asked.out)
    asked.out.parent.mkdir(parents=True, exist_ok=True)
    for key in keys(asked):
        if key not in found:
            row = {"fit": key} | fit(*key, asked.arrays)
            with asked.out.open("a") as file:
                file.write(json.dumps(row) + "\n")
    show(read(asked.out))


if __name__ == "__main__":
    main()
