"""The demo: what wrong labels do to four methods, on the synthetic data."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fairsieve.data.synthetic import synthetic_splits
from fairsieve.metrics import accuracy, demographic_parity_disparity, equalized_odds_disparity
from fairsieve.paper.attacks import add_noise
from fairsieve.paper.methods.registry import METHODS
from fairsieve.samples import Samples
from fairsieve.selection.fairness import fairness_name
from fairsieve.training.fit import fit
from fairsieve.training.result import Fitted

__all__ = ["DEMO_METHODS", "Demo", "run_demo"]

DEMO_METHODS = ("lr", "itlm", "fairbatch", "fairsieve")


@dataclass(frozen=True)
class _DemoRow:
    """One method over all seeds: mean and standard deviation."""

    title: str
    accuracy: tuple[float, float]
    equalized_odds: tuple[float, float]
    demographic_parity: tuple[float, float]
    seconds: float


@dataclass(frozen=True, eq=False)
class Demo:
    """What the demo found; data, flips and fits are those of the first seed."""

    rows: list[_DemoRow]
    fairness: str
    noise: str
    rate: float
    train: Samples
    flipped: NDArray[np.bool_]
    fits: dict[str, Fitted]


def run_demo(
    *,
    fairness: str = "equalized_odds",
    noise: str = "group-targeted",
    rate: float = 0.1,
    seeds: Sequence[int] = range(5),
    epochs: int = 500,
    report: Callable[[str, int], None] = lambda method, seed: None,
) -> Demo:
    """Train the four methods; every seed draws its own data, flips, first weights and batches.

    ``report(method, seed)`` is called as each run begins.
    """
    notion = fairness_name(fairness)
    scores: dict[str, list[tuple[float, float, float]]] = {name: [] for name in DEMO_METHODS}
    seconds = dict.fromkeys(DEMO_METHODS, 0.0)
    first: dict[str, Fitted] = {}
    small = synthetic_splits(0)  # imports and loads what is needed, so that no method's time has it
    fit(None, small.train, evaluation=small.test, epochs=2, warmup_epochs=1)
    for seed in seeds:
        parts = synthetic_splits(seed)
        noisy = add_noise(parts.train, noise, rate, seed=seed)
        if not first:
            train, flipped = parts.train, noisy.flipped
        for name in DEMO_METHODS:
            report(name, seed)
            started = time.perf_counter()
            fitted = fit(
                None,
                parts.train.with_labels(noisy.labels),
                name,
                seed=seed,
                evaluation=parts.test,
                fairness=notion,
                clean_ratio=max(1 - rate, 0.01),
                epochs=epochs,
            )
            seconds[name] += time.perf_counter() - started
            scores[name].append(_score(fitted, parts.test))
            first.setdefault(name, fitted)
    rows = []
    for name in DEMO_METHODS:
        right, odds, parity = ((float(np.mean(v)), float(np.std(v))) for v in zip(*scores[name], strict=True))
        rows.append(_DemoRow(METHODS[name].title, right, odds, parity, seconds[name] / len(seeds)))
    return Demo(rows, notion, noise, rate, train, flipped, first)


def _score(fitted: Fitted, test: Samples) -> tuple[float, float, float]:
    """Measure accuracy, EO and DP disparity on clean samples."""
    predicted = fitted.predict(test.features)
    groups = test.groups
    return (
        accuracy(test.labels, predicted),
        equalized_odds_disparity(test.labels, predicted, sensitive_features=groups),
        demographic_parity_disparity(test.labels, predicted, sensitive_features=groups),
    )
