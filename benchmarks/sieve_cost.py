"""What a default fit of SieveClassifier costs, in plain fits of the classifier that it wraps, by processor time.

python benchmarks/sieve_cost.py                    # HistGradientBoosting on Adult, a tenth of the labels flipped
python benchmarks/sieve_cost.py --rows 8000
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from typing import Any

from sklearn.ensemble import HistGradientBoostingClassifier

from fairsieve import SieveClassifier
from fairsieve.benchmark.problems import make_problem

MOST = 10.0  # plain fits
TIMES = 3


def seconds(work: Callable[[], Any]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, help="the first so many")
    asked = parser.parse_args()
    train = make_problem("adult", "uniform", 0.1, 0).train
    X, y, z = (each[: asked.rows] for each in (train.features, train.labels, train.groups))
    booster = HistGradientBoostingClassifier(random_state=0)
    booster.fit(X[:500], y[:500])  # what is loaded once
    plain = min(seconds(lambda: booster.fit(X, y)) for _ in range(TIMES))
    sieve = SieveClassifier(booster, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        whole = seconds(lambda: sieve.fit(X, y, sensitive_features=z))
    print(
        f"{X.shape[0]:,} × {X.shape[1]}, {sieve.n_iter_} rounds: {whole:.1f} s, plain {plain:.2f} s, "
        f"{whole / plain:.1f} plain fits (at most {MOST:g})"
    )


if __name__ == "__main__":
    main()
