"""The demo's figure: flipped, selected and dropped samples; disparity and ratios by epoch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from fairsieve.paper.demo import DEMO_METHODS, Demo
from fairsieve.paper.methods.registry import METHODS
from fairsieve.report.style import colour, pyplot
from fairsieve.selection.fairness import ABBREVIATIONS

__all__ = ["draw_demo"]

CELL_COLOURS = ("#0072B2", "#56B4E9", "#D55E00", "#E69F00")


def draw_demo(demo: Demo, path: Path) -> None:
    """Draw the demo into a file; its ending says the format."""
    plt = pyplot()
    figure, axes = plt.subplots(2, 2, figsize=(10, 9), layout="constrained")
    _draw_flips(axes[0, 0], demo)
    _draw_selection(axes[0, 1], demo)
    _draw_disparity(axes[1, 0], demo)
    _draw_ratios(axes[1, 1], demo)
    figure.suptitle(f"{demo.rate:.0%} of the training labels flipped ({demo.noise})", fontsize="large")
    try:
        figure.savefig(path)
    finally:
        plt.close(figure)


def _legend_below(axis: Any, handles: Any, columns: int) -> None:
    """Put the legend under the axis, where it hides no point."""
    axis.legend(handles=handles, loc="upper center", bbox_to_anchor=(0.5, -0.13), ncols=columns)


def _scatter(axis: Any, demo: Demo, mask: Any, **style: Any) -> None:
    """Draw some samples as points; the shape is the group."""
    for group, marker in zip(demo.train.cells.groups, "ox", strict=False):
        part = mask & (demo.train.groups == group)
        points = demo.train.features[part]
        axis.scatter(points[:, 0], points[:, 1], marker=marker, s=14, linewidths=0.8, **style)


def _draw_flips(axis: Any, demo: Demo) -> None:
    """Draw the data and the flips."""
    for label, shade in ((0, "#D55E00"), (1, "#0072B2")):
        _scatter(axis, demo, (demo.train.labels == label) & ~demo.flipped, c=shade, alpha=0.25)
    _scatter(axis, demo, demo.flipped, c="black", alpha=0.8)
    axis.set(title="Flipped labels (black)", xlabel="x₁", ylabel="x₂")
    handles = [
        axis.scatter([], [], c="#0072B2", s=14, label="label 1"),
        axis.scatter([], [], c="#D55E00", s=14, label="label 0"),
        axis.scatter([], [], c="black", marker="o", s=14, label="group 0"),
        axis.scatter([], [], c="black", marker="x", s=14, label="group 1"),
    ]
    _legend_below(axis, handles, columns=4)


def _draw_selection(axis: Any, demo: Demo) -> None:
    """Draw the last selection of fairsieve."""
    kept = np.zeros(len(demo.train), dtype=bool)
    kept[demo.fits["fairsieve"].indices] = True
    caught = int((~kept & demo.flipped).sum())
    _scatter(axis, demo, kept & ~demo.flipped, c="#999999", alpha=0.25)
    _scatter(axis, demo, ~kept & ~demo.flipped, c="#E69F00", alpha=0.8)
    _scatter(axis, demo, ~kept & demo.flipped, c="#009E73", alpha=0.8)
    _scatter(axis, demo, kept & demo.flipped, c="#CC0000", alpha=0.9)
    axis.set(title="The last selection of fairsieve", xlabel="x₁", ylabel="x₂")
    handles = [
        axis.scatter([], [], c=shade, s=14, label=text)
        for shade, text in (
            ("#999999", "right label, kept"),
            ("#E69F00", "right label, dropped"),
            ("#009E73", f"flipped, dropped ({caught} of {int(demo.flipped.sum())})"),
            ("#CC0000", "flipped, kept"),
        )
    ]
    _legend_below(axis, handles, columns=2)


def _draw_disparity(axis: Any, demo: Demo) -> None:
    """Draw the disparity on the test samples by epoch."""
    for name in DEMO_METHODS:
        history = demo.fits[name].history
        assert history.evaluation is not None
        values = history.evaluation.disparity[demo.fairness]
        axis.plot(history.epochs, values, color=colour(METHODS[name].look), label=METHODS[name].title)
    warmup = demo.fits["fairsieve"].history.warmup_epochs
    axis.axvline(warmup, color="black", linewidth=0.8, linestyle=":")
    axis.annotate("selection begins", (warmup, 1), (4, -4), xycoords=("data", "axes fraction"),
                  textcoords="offset points", va="top", fontsize="small")  # fmt: skip
    axis.set(
        title=f"{ABBREVIATIONS[demo.fairness]} disparity on clean test data",
        xlabel="epoch",
        ylabel="disparity",
    )
    axis.set_ylim(bottom=0)
    _legend_below(axis, axis.get_lines()[: len(DEMO_METHODS)], columns=4)


def _draw_ratios(axis: Any, demo: Demo) -> None:
    """Draw the ratios of fairsieve by epoch."""
    history = demo.fits["fairsieve"].history
    lines = [(i, j) for i in range(len(history.classes)) for j in range(len(history.groups))]
    for (i, j), shade in zip(lines, CELL_COLOURS, strict=False):
        name = f"label {history.classes[i]}, group {history.groups[j]}"
        axis.plot(history.epochs, history.ratios[:, i, j], color=shade, label=name)
    axis.set(title="Ratios of fairsieve", xlabel="epoch", ylabel="share of the class")
    axis.set_ylim(0, 1)
    _legend_below(axis, axis.get_lines(), columns=2)
