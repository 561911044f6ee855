"""The default fit beside scikit-learn, fairlearn and LightGBM, in one run and as ratios.

    python benchmarks/fit_speed.py                   # --rows 10000 100000 1000000, --adult, --out FILE

Times are medians of ``--repeats`` fits, of the wall clock and of the processor; memory is the peak of a process of its
own. ``--adult`` adds Adult with a given and with an estimated clean ratio, and the fairlearn methods.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression

from fairsieve import FairRobustClassifier
from fairsieve.data import make_synthetic


def problem(rows: int, columns: int) -> tuple[Any, Any, Any]:
    """Draw features, labels with a tenth of them flipped, and two groups."""
    rng = np.random.default_rng(0)
    features = rng.standard_normal((rows, columns), dtype=np.float32)
    groups = (features[:, 0] + rng.standard_normal(rows) > 0).astype(int)
    scores = features @ rng.standard_normal(columns, dtype=np.float32) / 3 + groups / 2
    labels = (scores + rng.logistic(size=rows) > 0).astype(int)
    flipped = rng.random(rows) < 0.1
    return features, np.where(flipped, 1 - labels, labels), groups


def seconds(fit: Callable[[], Any], repeats: int) -> dict[str, float]:
    """Measure a fit."""
    wall, processor = [], []
    for _ in range(repeats):
        started, used = time.perf_counter(), time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            fit()
        wall.append(time.perf_counter() - started)
        processor.append(time.process_time() - used)
    return {"wall": statistics.median(wall), "processor": statistics.median(processor)}


def fits(features: Any, labels: Any, groups: Any, *, fair: bool) -> dict[str, Callable[[], Any]]:
    """List what is compared."""

    def ours(clean_ratio: Any) -> Callable[[], Any]:
        return lambda: FairRobustClassifier(clean_ratio=clean_ratio, random_state=0).fit(
            features, labels, sensitive_features=groups
        )

    found = {"LogisticRegression": lambda: LogisticRegression().fit(features, labels), "given": ours(0.9)}
    if fair:
        from fairlearn.postprocessing import ThresholdOptimizer
        from fairlearn.reductions import EqualizedOdds, ExponentiatedGradient
        from lightgbm import LGBMClassifier

        plain = LogisticRegression(max_iter=1000)
        found |= {
            "auto": ours("auto"),
            "LightGBM": lambda: LGBMClassifier(verbose=-1).fit(features, labels),
            "ThresholdOptimizer": lambda: ThresholdOptimizer(
                estimator=plain, constraints="equalized_odds", predict_method="predict_proba"
            ).fit(features, labels, sensitive_features=groups),
            "ExponentiatedGradient": lambda: ExponentiatedGradient(plain, EqualizedOdds()).fit(
                features, labels, sensitive_features=groups
            ),
        }
    return found


def peak_megabytes(rows: int, columns: int) -> float:
    """Measure the peak memory of a fit above that of the process that holds the features."""
    code = (
        "import sys, resource; sys.path.insert(0, sys.argv[1]); import fit_speed\n"
        "data = fit_speed.problem(int(sys.argv[2]), int(sys.argv[3]))\n"
        "fit_speed.fits(*fit_speed.problem(2000, 3), fair=False)['given']()\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "fit_speed.fits(*data, fair=False)['given']()\n"
        "print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024)"
    )
    command = [
        sys.executable,
        "-W",
        "ignore",
        "-c",
        code,
        str(Path(__file__).parent),
        str(rows),
        str(columns),
    ]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def main() -> None:
    """Measure, print, and store."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="*", default=[10**4, 10**5, 10**6])
    parser.add_argument("--columns", type=int, default=30)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--adult", action="store_true")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "fit_speed.json")
    asked = parser.parse_args()
    small = make_synthetic(2000, seed=0)
    first = seconds(fits(small.features, small.labels, small.groups, fair=False)["given"], 1)
    found: dict[str, Any] = {"2,000 × 3": {"first": first}}
    sets = {"2,000 × 3": (small.features, small.labels, small.groups)}
    if asked.adult:
        from fairsieve.paper.problems import make_problem

        adult = make_problem("adult", "uniform", 0.1, 0).train
        sets["Adult"] = adult.features, adult.labels, adult.groups
    for name, data in sets.items():
        compared = fits(*data, fair=name == "Adult")
        found.setdefault(name, {}).update({k: seconds(v, asked.repeats) for k, v in compared.items()})
        print(name, json.dumps(found[name]), flush=True)
    for rows in asked.rows:
        name = f"{rows:,} × {asked.columns}"
        compared = fits(*problem(rows, asked.columns), fair=False)
        found[name] = {k: seconds(v, asked.repeats) for k, v in compared.items()}
        found[name]["peak memory of the fit, MB"] = peak_megabytes(rows, asked.columns)
        found[name]["features, MB"] = rows * asked.columns * 4 / 2**20
        print(name, json.dumps(found[name]), flush=True)
    found["peak memory of this process, MB"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    asked.out.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
