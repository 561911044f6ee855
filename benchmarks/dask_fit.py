"""A fit on the partitions of a dask cluster, with one and two workers, beside the fit in memory.

    python benchmarks/dask_fit.py --rows 10000000 --columns 20

Every worker is a process with one thread. The partitions are drawn on the workers; the clean ratio is given. "fetched"
is how many bytes the solver's answers had in all.
"""

from __future__ import annotations

import argparse
import pickle
import sys
import time
import warnings
from typing import Any

if __name__ == "__main__":
    sys.path.pop(0)  # this folder has a distributed.py of its own

import dask
import dask.array as da
import numpy as np
from distributed import Client, LocalCluster

from fairsieve import FairRobustClassifier
from fairsieve.training.parts import PartRows

SETTINGS = {"clean_ratio": 0.9, "tolerance": 0.02}


def draw(seed: int, rows: int, columns: int) -> np.ndarray:
    """Draw one partition: features with the group among them, the label, the group; a tenth of the labels flipped."""
    rng = np.random.default_rng(seed)
    found = rng.normal(size=(rows, columns + 2))
    group = rng.integers(0, 2, rows)
    found[:, 0] += group
    found[:, 1] = group
    scores = found[:, :4].sum(axis=1) + rng.logistic(size=rows)
    found[:, -2] = (scores > 0.8) ^ (rng.random(rows) < 0.1)
    found[:, -1] = group
    return found


def lazy_table(rows: int, columns: int, partitions: int) -> tuple[Any, Any, Any]:
    """Return features, labels and groups as dask arrays."""
    size = rows // partitions
    parts = [
        da.from_delayed(dask.delayed(draw)(seed, size, columns), (size, columns + 2), float)
        for seed in range(partitions)
    ]
    table = da.concatenate(parts)
    return table[:, :columns], table[:, -2].astype(int), table[:, -1].astype(int)


def measure(
    rows: int, columns: int, partitions: int, workers: int
) -> tuple[FairRobustClassifier, float, float, int, int]:
    """Fit on so many workers; return the model, seconds, processor time, questions and bytes of answers."""
    ask, answers = PartRows.ask, []

    def counted(self: Any, *arguments: Any, **options: Any) -> list[Any]:
        found = ask(self, *arguments, **options)
        answers.append(sum(len(pickle.dumps(each)) for each in found))
        return found

    options = {"threads_per_worker": 1, "processes": True, "dashboard_address": ":0"}
    with LocalCluster(n_workers=workers, **options) as cluster, Client(cluster) as client:
        X, y, z = lazy_table(rows, columns, partitions)
        PartRows.ask = counted
        try:
            began = time.perf_counter()
            model = FairRobustClassifier(**SETTINGS).fit(X, y, sensitive_features=z)
            seconds = time.perf_counter() - began
            busy = sum(client.run(time.process_time).values())
        finally:
            PartRows.ask = ask
    return model, seconds, busy, len(answers), sum(answers)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--columns", type=int, default=20)
    parser.add_argument("--partitions", type=int, default=20)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--memory", action="store_true", help="fit the same rows in this process too")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    size = given.rows // given.partitions
    models = []
    for workers in given.workers:
        model, seconds, busy, questions, fetched = measure(
            given.rows, given.columns, given.partitions, workers
        )
        models.append(model)
        print(
            f"{workers} workers: {seconds:8.1f} s ({busy:.1f} s of their processors), {questions} questions, "
            f"{fetched / 2**20:.1f} MiB fetched, "
            f"{model.stopped_} after {model.n_iter_} updates",
            flush=True,
        )
    if given.memory:
        table = np.concatenate([draw(seed, size, given.columns) for seed in range(given.partitions)])
        X, y, z = table[:, : given.columns].copy(), table[:, -2].astype(int), table[:, -1].astype(int)
        del table
        began, busy = time.perf_counter(), time.process_time()
        models.append(FairRobustClassifier(**SETTINGS).fit(X, y, sensitive_features=z))
        seconds, busy = time.perf_counter() - began, time.process_time() - busy
        print(f"in memory: {seconds:8.1f} s ({busy:.1f} s of the processors)")
    apart = max(np.abs(model.coef_ - models[0].coef_).max() for model in models)
    print(f"coefficients differ by at most {apart:.1e}")


if __name__ == "__main__":
    main()
