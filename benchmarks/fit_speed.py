"""The default fit beside scikit-learn, fairlearn and LightGBM, in one run and as ratios.

    python benchmarks/fit_speed.py                         # every part; minutes
    python benchmarks/fit_speed.py --only columns --repeats 5

Parts: *columns* (rows × 30 columns, and 2,000 × 3), *adult* (all methods), *rows* (10⁴ to 10⁷ rows × 10 columns),
*memory* (the peak of a process of its own) and *cold* (the first fit of a new process with empty caches). Times are
medians of ``--repeats`` fits, by the clock and of the processor. Each part replaces its own numbers in ``--out`` as
soon as it is done, with the load of the machine as it began. ``python benchmarks/figures.py`` draws the figure.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression

from fairsieve import FairRobustClassifier
from fairsieve.data import make_synthetic

RESULTS = Path(__file__).parent / "results" / "fit_speed.json"
LONG_COLUMNS = 10
MEMORY = ((10**5, 30), (10**6, 30), (10**6, LONG_COLUMNS), (10**7, LONG_COLUMNS))
FIT = (
    "import re, sys, time, warnings; warnings.simplefilter('ignore')\n"
    "def peak():  # getrusage would count what the process was before it became this program\n"
    "    return int(re.search(r'VmHWM:\\s*(\\d+)', open('/proc/self/status').read())[1]) / 1024\n"
    "import numpy as np\n"
    "from fairsieve import FairRobustClassifier\n"
    "def load(name): return np.load(f'{sys.argv[1]}/{name}.npy')\n"
    "def fit(*data): return FairRobustClassifier(clean_ratio=0.9, random_state=0).fit("
    "data[0], data[1], sensitive_features=data[2])\n"
)
PEAK = FIT + (
    "fit(*(load(f'small_{name}') for name in ('features', 'labels', 'groups')))\n"
    "data = [load(name) for name in ('features', 'labels', 'groups')]\n"
    "for array in data: array.max()\n"
    "before = peak()\n"
    "fit(*data)\n"
    "print(peak() - before)\n"
)
COLD = FIT + (
    "data = [load(name) for name in ('features', 'labels', 'groups')]\n"
    "for _ in range(3):\n"
    "    started, used = time.perf_counter(), time.process_time()\n"
    "    fit(*data)\n"
    "    print(time.perf_counter() - started, time.process_time() - used)\n"
)


def problem(rows: int, columns: int) -> tuple[Any, Any, Any]:
    """Draw features, labels with a tenth of them flipped, and two groups."""
    rng = np.random.default_rng(0)
    features = rng.standard_normal((rows, columns), dtype=np.float32)
    groups = (features[:, 0] + rng.standard_normal(rows) > 0).astype(int)
    scores = features @ rng.standard_normal(columns, dtype=np.float32) / 3 + groups / 2
    labels = (scores + rng.logistic(size=rows) > 0).astype(int)
    flipped = rng.random(rows) < 0.1
    return features, np.where(flipped, 1 - labels, labels), groups


def adult() -> tuple[Any, Any, Any]:
    """Return Adult's training part with a tenth of the labels flipped."""
    from fairsieve.benchmark.problems import make_problem

    train = make_problem("adult", "uniform", 0.1, 0).train
    return train.features, train.labels, train.groups


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
    return {"wall": round(statistics.median(wall), 4), "processor": round(statistics.median(processor), 4)}


def fits(features: Any, labels: Any, groups: Any) -> dict[str, Callable[[], Any]]:
    """List what is compared on every table."""

    def ours(clean_ratio: Any) -> Callable[[], Any]:
        return lambda: FairRobustClassifier(clean_ratio=clean_ratio, random_state=0).fit(
            features, labels, sensitive_features=groups
        )

    return {
        "LogisticRegression": lambda: LogisticRegression().fit(features, labels),
        "given": ours(0.9),
        "auto": ours("auto"),
    }


def other_fits(features: Any, labels: Any, groups: Any) -> dict[str, Callable[[], Any]]:
    """List what is compared on Adult alone."""
    from fairlearn.postprocessing import ThresholdOptimizer
    from fairlearn.reductions import EqualizedOdds, ExponentiatedGradient
    from lightgbm import LGBMClassifier

    plain = LogisticRegression(max_iter=1000)
    return {
        "LogisticRegression, max_iter=1000": lambda: plain.fit(features, labels),
        "LightGBM, one thread": lambda: LGBMClassifier(verbose=-1, n_jobs=1).fit(features, labels),
        "ThresholdOptimizer": lambda: ThresholdOptimizer(
            estimator=plain, constraints="equalized_odds", predict_method="predict_proba"
        ).fit(features, labels, sensitive_features=groups),
        "ExponentiatedGradient": lambda: ExponentiatedGradient(plain, EqualizedOdds()).fit(
            features, labels, sensitive_features=groups
        ),
    }


def measure_columns(repeats: int) -> dict[str, Any]:
    """Measure 2,000 × 3, and rows × 30 columns; ExponentiatedGradient where there are few."""
    small = make_synthetic(2000, seed=0)
    found = {}
    for rows in (2000, 6000, 10**4, 10**5, 10**6):
        data = (small.features, small.labels, small.groups) if rows == 2000 else problem(rows, 30)
        name, compared = f"{rows:,} × {data[0].shape[1]}", fits(*data)
        if rows <= 6000:
            compared["ExponentiatedGradient"] = other_fits(*data)["ExponentiatedGradient"]
        found[name] = {key: seconds(fit, repeats) for key, fit in compared.items()}
    return found


def measure_adult(repeats: int) -> dict[str, Any]:
    """Measure all methods on Adult; the slowest one once."""
    data = adult()
    compared = fits(*data) | other_fits(*data)
    return {
        key: seconds(fit, 1 if key == "ExponentiatedGradient" else repeats) for key, fit in compared.items()
    }


def measure_rows(repeats: int) -> list[dict[str, Any]]:
    """Measure how the time grows with the rows."""
    found = []
    for rows in (10**4, 10**5, 10**6, 10**7):
        data = problem(rows, LONG_COLUMNS)
        times = {key: seconds(fit, 1 if rows > 10**6 else repeats) for key, fit in fits(*data).items()}
        found.append({"rows": rows} | times)
        print(found[-1], flush=True)
    return found


def run_alone(code: str, data: tuple[Any, Any, Any], **settings: str) -> list[float]:
    """Run a program in a process of its own that reads the data from files; return the numbers it prints."""
    with tempfile.TemporaryDirectory() as folder:
        for prefix, arrays in (("", data), ("small_", problem(2000, 3))):
            for name, array in zip(("features", "labels", "groups"), arrays, strict=True):
                np.save(f"{folder}/{prefix}{name}.npy", array)
        environment = os.environ | {name: value or folder for name, value in settings.items()}
        command = [sys.executable, "-c", code, folder]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=environment)
    return [float(number) for number in done.stdout.split()]


def measure_memory(repeats: int) -> list[dict[str, float]]:
    """Measure by how much a fit raises the peak memory of a process that holds the data already."""
    found = []
    for rows, columns in MEMORY:
        peak = run_alone(PEAK, problem(rows, columns))[0]
        megabytes = rows * columns * 4 / 2**20
        limit = 2 * megabytes + 200
        found.append({"rows": rows, "columns": columns, "features MB": round(megabytes, 1)})
        found[-1] |= {"peak above it MB": round(peak, 1), "limit MB, with the features": round(limit, 1)}
        print(found[-1], flush=True)
    return found


def measure_cold(repeats: int) -> dict[str, Any]:
    """Measure three fits of a new process with empty caches; seconds by the clock and of the processor."""
    found = {}
    for name, data in {"2,000 × 3": problem(2000, 3), "Adult": adult()}.items():
        numbers = run_alone(COLD, data, NUMBA_CACHE_DIR="", FAIRSIEVE_CACHE_DIR="")
        found[name] = [{"wall": numbers[at], "processor": numbers[at + 1]} for at in range(0, 6, 2)]
    return found


PARTS = {
    "columns": measure_columns,
    "adult": measure_adult,
    "rows": measure_rows,
    "memory": measure_memory,
    "cold": measure_cold,
}


def main() -> None:
    """Measure, print, and store."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--only", nargs="*", choices=PARTS, default=list(PARTS))
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--out", type=Path, default=RESULTS)
    asked = parser.parse_args()
    for part in asked.only:
        machine = {"processors": os.cpu_count(), "load": round(os.getloadavg()[0], 1)}
        machine |= {"blas threads": os.environ.get("OMP_NUM_THREADS", "as many as processors")}
        found = {"machine": machine, "repeats": asked.repeats, "results": PARTS[part](asked.repeats)}
        stored = json.loads(asked.out.read_text()) if asked.out.exists() else {}
        asked.out.write_text(json.dumps(stored | {part: found}, indent=1, ensure_ascii=False) + "\n")
        print(part, json.dumps(found, ensure_ascii=False), flush=True)


if __name__ == "__main__":
    main()
