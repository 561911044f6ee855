"""How the benchmarks time."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

__all__ = ["median_seconds"]


def median_seconds(call: Callable[[], object], repeats: int, *, compiles: bool = True) -> float:
    """Median over repeats, after one call that is not counted where it compiles something."""
    if compiles:
        call()
    times = []
    for _ in range(repeats):
        started = time.perf_counter()
        call()
        times.append(time.perf_counter() - started)
    return statistics.median(times)
