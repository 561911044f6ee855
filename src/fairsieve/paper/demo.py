"""The demo: what wrong labels do to four methods, on the synthetic data, as a table and a figure."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairsieve.data.synthetic import synthetic_splits
from fairsieve.paper.methods.registry import METHODS
from fairsieve.paper.problems import add_noise
from fairsieve.paper.run import measure
from fairsieve.report.looks import colour, pyplot
from fairsieve.samples import Samples
from fairsieve.selection.fairness import ABBREVIATIONS, fairness_name
from fairsieve.training.fit import fit
from fairsieve.training.result import Fitted

# The methods of ``fit`` that are shown, and the names they have in ``compare``.
DEMO_METHODS = {"lr": "lr", "itlm": "itlm", "fairbatch": "fairbatch", "fairsieve": "sample-selection"}
CELL_COLOURS = ("#0072B2", "#56B4E9", "#D55E00", "#E69F00")


@dataclass(frozen=True, eq=False)
class Demo:
    """What the demo found; data, flips and fits are those of the first seed.

    ``scores`` holds, for each method's title, one row per seed: accuracy, both disparities and seconds.
    """

    scores: dict[str, NDArray[np.float64]]
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
    settings: dict[str, Any] = {"fairness": notion, "clean_ratio": max(1 - rate, 0.01), "epochs": epochs}
    scores: dict[str, list[tuple[float, ...]]] = {name: [] for name in DEMO_METHODS}
    first: dict[str, Fitted] = {}
    for seed in seeds:
        parts = synthetic_splits(seed)
        noisy = add_noise(parts.train, noise, rate, seed=seed)
        if not first:
            train, flipped = parts.train, noisy.flipped
        for name in DEMO_METHODS:
            report(name, seed)
            started, data = time.perf_counter(), parts.train.with_labels(noisy.labels)
            fitted = fit(None, data, name, seed=seed, evaluation=parts.test, **settings)
            seconds = time.perf_counter() - started
            found = measure(fitted.predict(parts.test.features), parts.test)
            values = (found[each] for each in ("accuracy", "equalized_odds", "demographic_parity"))
            scores[name].append((*values, seconds))
            first.setdefault(name, fitted)
    means = {METHODS[called].title: np.array(scores[name]) for name, called in DEMO_METHODS.items()}
    return Demo(means, notion, noise, rate, train, flipped, first)


def draw_demo(demo: Demo, path: Path) -> None:
    """Draw flipped, selected and dropped samples, disparity and ratios by epoch; the path's ending says the format."""
    plt = pyplot()
    figure, axes = plt.subplots(2, 2, figsize=(10, 9), layout="constrained")
    kept = np.zeros(len(demo.train), dtype=bool)
    kept[demo.fits["fairsieve"].indices] = True
    caught, flips = int((~kept & demo.flipped).sum()), int(demo.flipped.sum())
    right = ~demo.flipped
    _draw_samples(
        axes[0, 0],
        demo,
        "Flipped labels",
        {
            "label 1": (right & (demo.train.labels == 1), "#0072B2", 0.25),
            "label 0": (right & (demo.train.labels == 0), "#D55E00", 0.25),
            "flipped": (demo.flipped, "black", 0.8),
        },
    )
    _draw_samples(
        axes[0, 1],
        demo,
        "The last selection",
        {
            "right label, kept": (kept & right, "#999999", 0.25),
            "right label, dropped": (~kept & right, "#E69F00", 0.8),
            f"flipped, dropped ({caught} of {flips})": (~kept & demo.flipped, "#009E73", 0.8),
            "flipped, kept": (kept & demo.flipped, "#CC0000", 0.9),
        },
    )
    history = demo.fits["fairsieve"].history
    for name, called in DEMO_METHODS.items():
        own, method = demo.fits[name].history, METHODS[called]
        assert own.evaluation is not None
        values = own.evaluation.disparity[demo.fairness]
        axes[1, 0].plot(own.epochs, values, color=colour(method.look), label=method.title)
    axes[1, 0].axvline(
        history.warmup_epochs, color="black", linewidth=0.8, linestyle=":", label="selection begins"
    )
    title = f"{ABBREVIATIONS[demo.fairness]} disparity on clean test data"
    axes[1, 0].set(title=title, xlabel="epoch", ylabel="disparity", ylim=(0, None))
    cells = [(i, j) for i in range(len(history.classes)) for j in range(len(history.groups))]
    for (i, j), shade in zip(cells, CELL_COLOURS, strict=False):
        name = f"label {history.classes[i]}, group {history.groups[j]}"
        axes[1, 1].plot(history.epochs, history.ratios[:, i, j], color=shade, label=name)
    axes[1, 1].set(title="Ratios", xlabel="epoch", ylabel="share of the class", ylim=(0, 1))
    for axis in axes.flat:  # under the axis a legend hides no point
        axis.legend(loc="upper center", bbox_to_anchor=(0.5, -0.13), ncols=2)
    figure.suptitle(f"{demo.rate:.0%} of the training labels flipped ({demo.noise})", fontsize="large")
    try:
        figure.savefig(path)
    finally:
        plt.close(figure)


def _draw_samples(axis: Any, demo: Demo, title: str, parts: dict[str, tuple[Any, str, float]]) -> None:
    """Draw samples as points; the shape is the group, crosses for the second."""
    for name, (mask, shade, alpha) in parts.items():
        for group, marker in zip(demo.train.cells.groups, "ox", strict=False):
            points = demo.train.features[mask & (demo.train.groups == group)]
            label = name if marker == "o" else None
            axis.scatter(
                *points[:, :2].T, marker=marker, s=14, linewidths=0.8, c=shade, alpha=alpha, label=label
            )
    axis.set(title=title, xlabel="x₁", ylabel="x₂")
