"""Figures of growth, log–log, from the numbers of bench.py and fit_speed.py.

    python benchmarks/figures.py

Writes docs/images/growth-*.svg; ``--fit`` draws the figure of fit_speed.py alone.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import matplotlib as mpl
from bench import RESULTS
from fit_speed import RESULTS as FITS

from fairsieve.report.page import SYMBOLS, THEMES, Look

IMAGES = Path(__file__).parents[1] / "docs" / "images"
Series = dict[str, tuple[Look, list[tuple[float, float]]]]


def draw(path: Path, title: str, unit: str, series: Series) -> None:
    """One figure: lines over samples, both axes logarithmic; the legend in the order of the lines' ends."""
    mpl.use("svg")
    mpl.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "fairsieve", "font.size": 10})
    from matplotlib import pyplot as plt

    theme = THEMES["light"]
    figure, axes = plt.subplots(figsize=(8.6, 4), layout="constrained")
    for name, (look, points) in sorted(series.items(), key=lambda line: -line[1][1][-1][1]):
        x, y = zip(*points, strict=True)
        marker = SYMBOLS[look.symbol].matplotlib
        axes.plot(x, y, color=theme.hues[look.hue], marker=marker, markersize=5, label=name)
    axes.set(xscale="log", yscale="log", xlabel="samples", ylabel=unit)
    axes.set_title(title, loc="left", color=theme.ink)
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:,g}")
    axes.yaxis.set_minor_formatter(lambda *_: "")
    axes.grid(color=theme.line, linewidth=0.6)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    figure.legend(loc="outside right upper", frameon=False, reverse=False)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)


def cpu_series(found: dict[str, Any]) -> Series:
    """Milliseconds on the processor, four cells and sixteen."""
    four, sixteen = ([row for row in found["selection"] if row["cells"] == cells] for cells in (4, 16))

    def line(rows: list[dict[str, Any]], part: str) -> list[tuple[float, float]]:
        return [(row["samples"], 1000 * row[part]) for row in rows]

    return {
        "torch.sort": (Look("grey"), line(four, "sort")),
        "batches": (Look("sky", "triangle"), line(four, "batches")),
        "ratios and selection": (Look("green", "diamond"), line(four, "ratios and selection")),
        "select, 16 cells": (Look("orange", "square"), line(sixteen, "select")),
        "select, 4 cells": (Look("blue"), line(four, "select")),
    }


def gpu_series(found: dict[str, Any]) -> Series:
    """Milliseconds on the GPU."""
    rows = found["gpu"]["milliseconds"]
    parts = {
        "epoch": Look("blue"),
        "select": Look("orange", "square"),
        "batches": Look("sky", "triangle"),
        "torch.sort": Look("grey"),
    }
    return {name: (look, [(row["samples"], row[name]) for row in rows]) for name, look in parts.items()}


def traffic_series(found: dict[str, Any]) -> Series:
    """Kilobytes that a rank sends in an epoch, beside those of its losses themselves."""
    looks = {2: Look("blue"), 4: Look("orange", "square")}
    rows = found["distributed"]["rows"]
    ranks = sorted({row["ranks"] for row in rows if row["bytes"] > 0})
    lines: Series = {}
    for rank in ranks:
        own = [row for row in rows if row["ranks"] == rank]
        look = looks.get(rank, Look("green", "triangle"))
        lines[f"counts, {rank} ranks"] = look, [(row["samples"], row["bytes"] / 1000) for row in own]
    losses = [
        (row["samples"], 4 * row["samples"] / ranks[0] / 1000) for row in rows if row["ranks"] == ranks[0]
    ]
    return {f"the losses, {ranks[0]} ranks": (Look("grey"), losses), **lines}


def fit_series(found: dict[str, Any]) -> Series:
    """Processor seconds of a fit."""
    names = {
        "auto": ("clean ratio estimated", Look("orange", "square")),
        "given": ("clean ratio given", Look("blue")),
        "LogisticRegression": ("LogisticRegression", Look("grey")),
    }
    rows = found["rows"]["results"]
    return {
        name: (look, [(row["rows"], row[key]["processor"]) for row in rows])
        for key, (name, look) in names.items()
    }


def main() -> None:
    """Draw all figures, or that of the fit."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--fit", action="store_true")
    only_fit = parser.parse_args().fit
    fits = fit_series(json.loads(FITS.read_text()))
    draw(IMAGES / "growth-fit.svg", "The default fit, 10 columns", "processor seconds", fits)
    if only_fit:
        return
    found = json.loads(RESULTS.read_text())
    draw(IMAGES / "growth-cpu.svg", "An epoch's plan on two cores", "milliseconds", cpu_series(found))
    draw(IMAGES / "growth-traffic.svg", "What a worker sends in an epoch", "kilobytes", traffic_series(found))
    if "gpu" in found:
        device = found["gpu"]["device"]
        draw(IMAGES / "growth-gpu.svg", f"An epoch's plan on one {device}", "milliseconds", gpu_series(found))


if __name__ == "__main__":
    main()
