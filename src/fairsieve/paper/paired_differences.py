"""How far a method lies from another on the same splits, with intervals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import t as student

from fairsieve.paper.records import Record
from fairsieve.paper.table_problems import measure_tables, prediction_tables
from fairsieve.samples import Samples

__all__ = ["Difference", "compare_pairs", "compare_verified"]

DRAWS = 1000
LEVELS = (2.5, 97.5)


@dataclass(frozen=True)
class Difference:
    """A mean difference between two methods, and its 95 % interval (None where one split cannot tell)."""

    value: float
    interval: tuple[float, float] | None


def compare_pairs(records: Sequence[Record], method: str, baseline: str, measure: str) -> Difference | None:
    """Compare two methods split by split; None where they have no split in common.

    Training parts of repeated splits overlap, so that differences are not independent: the variance is corrected as
    Nadeau and Bengio (2003) do, by the ratio of the test part's size to the training part's.

    Examples
    --------
    >>> def record(name, seed, accuracy):
    ...     settings = {"method": name, "seed": seed}
    ...     return {"settings": settings, "metrics": {"accuracy": accuracy}, "rows": {"train": 80, "test": 20}}
    >>> records = [record("a", 0, 0.5), record("b", 0, 0.6), record("a", 1, 0.5), record("b", 1, 0.8)]
    >>> found = compare_pairs(records, "b", "a", "accuracy")
    >>> round(found.value, 3), [round(bound, 2) for bound in found.interval]
    (0.2, [-1.36, 1.76])
    """
    values = {name: _by_seed(records, name) for name in (method, baseline)}
    shared = sorted(set(values[method]) & set(values[baseline]))
    if not shared:
        return None
    pairs = [(values[method][seed], values[baseline][seed]) for seed in shared]
    apart = np.array([one["metrics"][measure] - other["metrics"][measure] for one, other in pairs])
    if len(apart) < 2:
        return Difference(float(apart[0]), None)
    rows = pairs[0][0]["rows"]
    spread = apart.std(ddof=1) * np.sqrt(1 / len(apart) + rows["test"] / rows["train"])
    half = float(student.ppf(0.975, len(apart) - 1) * spread)
    middle = float(apart.mean())
    return Difference(middle, (middle - half, middle + half))


def _by_seed(records: Sequence[Record], method: str) -> dict[int, Record]:
    """Return the results of a method by their seeds."""
    return {
        record["settings"]["seed"]: record
        for record in records
        if record["settings"]["method"] == method and "metrics" in record
    }


def compare_verified(
    records: Sequence[Record],
    method: str,
    baseline: str,
    measure: str,
    *,
    test: Samples,
    weights: NDArray[np.float64],
) -> Difference | None:
    """Compare two methods on the same verified rows; the interval is the bootstrap's over those rows.

    Each method counts by its mean over the training parts.
    """
    codes = {
        name: [np.array(one["predicted"]) for one in _by_seed(records, name).values()]
        for name in (method, baseline)
    }
    if not all(codes.values()):
        return None
    fairness = "equalized_odds" if measure == "accuracy" else measure

    def apart(own: NDArray[np.float64]) -> NDArray[np.float64]:
        means = [
            np.mean(
                [
                    measure_tables(prediction_tables(test, one, own), test, fairness)[measure]
                    for one in codes[name]
                ],
                axis=0,
            )
            for name in (method, baseline)
        ]
        return np.asarray(means[0] - means[1])

    rng = np.random.default_rng(0)
    draws = rng.multinomial(len(test), np.full(len(test), 1 / len(test)), size=DRAWS)
    low, high = np.percentile(apart(weights * draws), LEVELS)
    return Difference(float(apart(weights)), (float(low), float(high)))
