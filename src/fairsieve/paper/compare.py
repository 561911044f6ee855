"""Compare methods on one problem over several seeds; each run is recorded as it finishes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fairsieve.paper.engine import run_and_record
from fairsieve.paper.methods.contract import Method
from fairsieve.paper.records import Record, fingerprint, read_results
from fairsieve.paper.run import Comparison, run_one

__all__ = ["Comparison", "Row", "compare", "summarise"]


def compare(
    comparison: Comparison, methods: Sequence[Method], seeds: Sequence[int], path: Path, *, jobs: int = 1
) -> Iterator[Record]:
    """Make the runs that ``path`` does not hold yet; yield all records, old ones first.

    Runs go through joblib: inside :func:`~fairsieve.paper.cluster.open_cluster` or
    ``joblib.parallel_config(backend=…)`` they are spread over machines.
    """
    known = {record["run"]: record for record in read_results(path)}
    work = []
    for seed in seeds:
        for method in methods:
            run = fingerprint(comparison.run_settings(method, seed))
            if run in known:
                yield known[run]
            else:
                work.append(partial(run_one, comparison, method.name, seed))
    for finished in run_and_record(work, path, jobs=jobs):
        yield finished.record


@dataclass(frozen=True)
class Row:
    """One method over its seeds: means, standard deviations, and its first error if it has one."""

    method: Method
    seeds: int
    accuracy: tuple[float, float]
    disparity: tuple[float, float]
    seconds: float
    error: str | None


def summarise(records: Sequence[Record], methods: Sequence[Method], fairness: str) -> list[Row]:
    """Return a row for each method, in the order of ``methods``."""
    rows = []
    for method in methods:
        mine = [record for record in records if record["settings"]["method"] == method.name]
        done = [record for record in mine if "metrics" in record]
        errors = [record["error"] for record in mine if "error" in record]
        rows.append(
            Row(
                method,
                len(done),
                _mean_and_deviation([record["metrics"]["accuracy"] for record in done]),
                _mean_and_deviation([record["metrics"][fairness] for record in done]),
                _mean_and_deviation([record["seconds"] for record in done])[0],
                errors[0] if errors else None,
            )
        )
    return rows


def _mean_and_deviation(values: Sequence[float]) -> tuple[float, float]:
    """Return the mean and the standard deviation; NaN where there are no values."""
    array: NDArray[np.float64] = np.array(values)
    return (float(array.mean()), float(array.std())) if len(array) else (np.nan, np.nan)
