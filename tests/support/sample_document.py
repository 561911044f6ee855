"""A document with every kind of block, as a reproduction would fill it."""

from __future__ import annotations

import math

from fairsieve.report.page import (
    Cell,
    Column,
    Document,
    Facts,
    Figure,
    Panel,
    Section,
    Series,
    Table,
    Text,
    Verdict,
)
from fairsieve_reproduction.methods.registry import METHODS

LOOKS = {method.short.removesuffix(" (ours)"): method.look for method in METHODS.values()}
VALUES = {  # accuracy, disparity
    "LR": (0.663, 0.578),
    "ITLM": (0.717, 0.339),
    "FB": (0.506, 0.041),
    "ITLM→FB": (0.718, 0.181),
    "fairsieve": (0.726, 0.060),
    "FR-Train": (0.720, 0.081),
}


def results() -> Table:
    """Pairs of columns, as in Table 1."""
    columns, rows = [Column("Method")], []
    for group in ("Label flips", "Group-targeted"):
        columns += [Column("accuracy ↑", True, group), Column("disparity ↓", True, group)]
    for i, (method, values) in enumerate(VALUES.items()):
        row = [Cell(method, note="needs a clean validation set" if method == "FR-Train" else "")]
        mark = "best" if method == "fairsieve" else ""
        row += [Cell(f"{v:.3f} ± .002", v, f"{v + 0.01:.3f}", i * 0.9, mark) for v in values * 2]
        rows.append(row)
    return Table("table1", "Table 1. Synthetic data", columns, rows, reference_title="the paper's")


def by_epoch() -> Figure:
    """Long lines with bands, in two panels that share names."""
    epochs, panels = list(range(0, 400, 2)), []
    for title, level in (("Equalized odds", 0.3), ("Demographic parity", 0.2)):
        series = []
        for k, method in enumerate(("LR", "ITLM", "FB", "fairsieve")):
            values = [level * (0.15 * k + math.exp(-i / (90 + 30 * k))) for i in epochs]
            series.append(Series(method, epochs, values, deviation=[0.02] * 200, look=LOOKS[method]))
        panels.append(Panel(title, "epoch", "disparity on clean test data", series))
    return Figure("by-epoch", "Figure A. Disparity by epoch", panels)


def by_rate() -> Figure:
    """Short lines in three panels, with the paper's dashed."""
    rates, panels = [0.1, 0.12, 0.14, 0.16, 0.18, 0.2], []
    for title, slope in (("Accuracy", -0.6), ("EO disparity", 0.8), ("DP disparity", 0.5)):
        series = []
        for k, method in enumerate(("LR", "ITLM", "fairsieve")):
            values = [0.7 - 0.1 * k + slope * (rate - 0.1) * (3 - k) / 2 for rate in rates]
            paper = [value + 0.01 for value in values]
            series.append(Series(method, rates, values, deviation=[0.01] * 6, look=LOOKS[method]))
            series.append(Series(method, rates, paper, dashed=True, look=LOOKS[method]))
        panels.append(Panel(title, "share of flipped labels", title.lower(), series))
    return Figure("by-rate", "Figure 2. By noise rate; dashed: the paper", panels)


def trade_off() -> Figure:
    """Points with both deviations, a front, and bars."""
    points = [
        Series(name, [disparity], [accuracy], "points", [0.008], [0.012], ["five seeds"], look=LOOKS[name])
        for name, (accuracy, disparity) in VALUES.items()
    ]
    front = Series("Pareto front", [0.041, 0.060], [0.506, 0.726], dashed=True)
    sizes = ["woman, 0", "woman, 1", "man, 0", "man, 1"]
    bars = [
        Series("all samples", sizes, [658, 373, 2137, 2110], "bars"),
        Series("kept", sizes, [600, 310, 1980, 1870], "bars", deviation=[20, 15, 40, 60]),
    ]
    panels = [
        Panel("Trade-off", "EO disparity", "accuracy", [*points, front]),
        Panel("Cells", "cell", "samples", bars),
    ]
    return Figure("trade-off", "Figure B. Accuracy against disparity, and who is kept", panels)


def suspects() -> Table:
    """Rows to filter and sort."""
    columns = [Column("row", True), Column("label"), Column("loss", True), Column("group")]
    rows = [
        [str(i * 37 % 1000), ">50K" if i % 3 else "<=50K", f"{12 - i * 0.37:.2f}", ("woman", "man")[i % 2]]
        for i in range(30)
    ]
    cells = [[Cell(text) for text in row] for row in rows]
    return Table("suspects", "The labels to look at first", columns, cells, filterable=True)


def sample_document() -> Document:
    """Every kind of block."""
    claims = [
        Verdict("Ours has the lowest disparity.", "Table 1", True, "All 12 comparisons. " + "LR .578. " * 20),
        Verdict("Ours is as accurate as any.", "Table 1", True, "Accuracy .726 ± .003."),
        Verdict("Each ablation is worse.", "Table 5", False, "Without the weights: EO .058."),
        Verdict("FR-Train needs over ten times as long.", "Table 4", None, "Seconds depend on the machine."),
    ]
    return Document(
        "Sample selection, reproduced",
        "Every table and figure of the paper, set beside its numbers.",
        [
            Section("claims", "What the paper claims", [Text("Five seeds each. " * 9), *claims]),
            Section("synthetic", "Synthetic data", [results(), by_epoch()]),
            Section("compas", "COMPAS", [by_rate(), trade_off()]),
            Section("suspects", "Labels to check", [suspects()]),
            Section("settings", "Settings", [Facts("How it was run", {"seeds": "5", "epochs": "400"})]),
        ],
    )
