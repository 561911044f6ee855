"""The demo: what wrong labels do to four methods, on the synthetic data, as a table and a figure."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fairsieve.benchmark.problems import add_noise, measure
from fairsieve.data.synthetic import synthetic_splits
from fairsieve.notions import DP, EO, NOTIONS
from fairsieve.report.page import colour, pyplot
from fairsieve.samples import Samples
from fairsieve.training.fit import Fitted, fit
from fairsieve_reproduction.methods.registry import METHODS

DEMO_METHODS = ("lr", "itlm", "fairbatch", "sample-selection")
EPOCHS = 500


def run_demo(
    fairness: str, noise: str, rate: float, seeds: int, report: Callable[[str], None]
) -> tuple[pd.DataFrame, Samples, NDArray[np.bool_], dict[str, Fitted]]:
    """Train the four methods; every seed draws its own data, flips, first weights and batches.

    ``report`` is told what begins. Return the scores of every method and seed, and data, flips and fits of the first.
    """
    scores: list[dict[str, Any]] = []
    fits: dict[str, Fitted] = {}
    settings: Any = {"fairness": fairness, "clean_ratio": max(1 - rate, 0.01), "epochs": EPOCHS}
    for seed in range(seeds):
        parts = synthetic_splits(seed)
        noisy = add_noise(parts.train, noise, rate, seed=seed)
        data = parts.train.with_labels(noisy.labels)
        if seed == 0:
            train, flipped = parts.train, noisy.flipped
        for name in DEMO_METHODS:
            report(f"{name}, seed {seed}")
            started = time.perf_counter()
            fitted = fit(None, data, name, seed=seed, evaluation=parts.test, **settings)
            line = {"seconds": time.perf_counter() - started, "method": METHODS[name].title}
            scores.append(line | measure(fitted.predict(parts.test.features), parts.test))
            fits.setdefault(name, fitted)
    return pd.DataFrame(scores), train, flipped, fits


def format_scores(scores: pd.DataFrame) -> str:
    """Write the mean of every method and, of several seeds, how far they spread."""
    titles = {
        "accuracy": "accuracy ↑",
        EO: "EO disparity ↓",
        DP: "DP disparity ↓",
        "seconds": "seconds",
    }
    grouped = scores.groupby("method", sort=False)[[*titles]]
    shown = grouped.mean().map("{:.3f}".format)
    if grouped.size().max() > 1:
        shown += grouped.std(ddof=0).map(" ± {:.3f}".format)
    return str(shown.rename(columns=titles).to_string())


def emptied_cells(fitted: Fitted) -> list[str]:
    """Name the cells whose ratio is 0 at the end, although they have samples."""
    history = fitted.history
    return [
        f"group {group}, label {label}"
        for label, ratios in zip(history.classes, history.ratios[-1], strict=True)
        for group, ratio in zip(history.groups, ratios, strict=True)
        if ratio == 0
    ]


def draw_demo(
    train: Samples, wrong: NDArray[np.bool_], fits: dict[str, Fitted], fairness: str, title: str, path: Path
) -> None:
    """Draw flipped, selected and dropped samples, disparity and ratios by epoch; the path's ending says the format."""
    plt = pyplot()
    figure, axes = plt.subplots(2, 2, figsize=(10, 9), layout="constrained")
    history, right = fits["sample-selection"].history, ~wrong
    kept = np.isin(np.arange(len(train)), fits["sample-selection"].indices)
    caught = f"flipped, dropped ({(~kept & wrong).sum()} of {wrong.sum()})"
    panels = {
        "Flipped labels": {
            "label 1": (right & (train.labels == 1), "#0072B2", 0.25),
            "label 0": (right & (train.labels == 0), "#D55E00", 0.25),
            "flipped": (wrong, "black", 0.8),
        },
        "The last selection": {
            "right label, kept": (kept & right, "#999999", 0.25),
            "right label, dropped": (~kept & right, "#E69F00", 0.8),
            caught: (~kept & wrong, "#009E73", 0.8),
            "flipped, kept": (kept & wrong, "#CC0000", 0.9),
        },
    }
    for axis, (what, parts) in zip(axes[0], panels.items(), strict=True):
        for name, (mask, shade, alpha) in parts.items():
            for group, marker in zip(train.cells.groups, "ox", strict=True):
                points = train.features[mask & (train.groups == group), :2].T
                label = name if marker == "o" else None
                axis.scatter(*points, marker=marker, s=14, linewidths=0.8, c=shade, alpha=alpha, label=label)
        axis.set(title=what, xlabel="x₁", ylabel="x₂")
    below, ratios = axes[1]
    for name in DEMO_METHODS:
        own, method = fits[name].history, METHODS[name]
        assert own.evaluation is not None
        values = own.evaluation.disparity[fairness]
        below.plot(own.epochs, values, color=colour(method.look), label=method.title)
    below.axvline(history.warmup_epochs, color="black", lw=0.8, linestyle=":", label="selection begins")
    what = f"{NOTIONS[fairness].short} disparity on clean test data"
    below.set(title=what, xlabel="epoch", ylabel="disparity", ylim=(0, None))
    cells = [f"label {label}, group {group}" for label in history.classes for group in history.groups]
    ratios.plot(history.epochs, history.ratios.reshape(len(history.epochs), -1), label=cells)
    ratios.set(title="Ratios", xlabel="epoch", ylabel="share of the class", ylim=(0, 1))
    for axis in axes.flat:  # under the axis a legend hides no point
        axis.legend(loc="upper center", bbox_to_anchor=(0.5, -0.13), ncols=2)
    figure.suptitle(title, fontsize="large")
    figure.savefig(path)
    plt.close(figure)
