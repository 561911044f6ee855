"""A document with every kind of block, as a reproduction would fill it."""

import math

from fairsieve.report import page as doc
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


def results() -> doc.Table:
    """Pairs of columns, as in Table 1."""
    columns, rows = [doc.Column("Method")], []
    for group in ("Label flips", "Group-targeted"):
        columns += [doc.Column("accuracy ↑", True, group), doc.Column("disparity ↓", True, group)]
    for i, (method, values) in enumerate(VALUES.items()):
        row = [doc.Cell(method, note="needs a clean validation set" if method == "FR-Train" else "")]
        mark = "best" if method == "fairsieve" else ""
        row += [doc.Cell(f"{v:.3f} ± .002", v, f"{v + 0.01:.3f}", i * 0.9, mark) for v in values * 2]
        rows.append(row)
    return doc.Table("table1", "Table 1. Synthetic data", columns, rows, reference_title="the paper's")


def by_epoch() -> doc.Figure:
    """Long lines with bands, in two panels that share names."""
    epochs, panels = list(range(0, 400, 2)), []
    for title, level in (("Equalized odds", 0.3), ("Demographic parity", 0.2)):
        series = []
        for k, method in enumerate(("LR", "ITLM", "FB", "fairsieve")):
            values = [level * (0.15 * k + math.exp(-i / (90 + 30 * k))) for i in epochs]
            series.append(doc.Series(method, epochs, values, deviation=[0.02] * 200, look=LOOKS[method]))
        panels.append(doc.Panel(title, "epoch", "disparity on clean test data", series))
    return doc.Figure("by-epoch", "Figure A. Disparity by epoch", panels)


def by_rate() -> doc.Figure:
    """Short lines in three panels, with the paper's dashed."""
    rates, panels = [0.1, 0.12, 0.14, 0.16, 0.18, 0.2], []
    for title, slope in (("Accuracy", -0.6), ("EO disparity", 0.8), ("DP disparity", 0.5)):
        series = []
        for k, method in enumerate(("LR", "ITLM", "fairsieve")):
            values = [0.7 - 0.1 * k + slope * (rate - 0.1) * (3 - k) / 2 for rate in rates]
            paper = [value + 0.01 for value in values]
            series.append(doc.Series(method, rates, values, deviation=[0.01] * 6, look=LOOKS[method]))
            series.append(doc.Series(method, rates, paper, dashed=True, look=LOOKS[method]))
        panels.append(doc.Panel(title, "share of flipped labels", title.lower(), series))
    return doc.Figure("by-rate", "Figure 2. By noise rate; dashed: the paper", panels)


def trade_off() -> doc.Figure:
    """Points with both deviations, a front, and bars."""
    rest = "points", [0.008], [0.012], ["five seeds"]
    points = [doc.Series(name, [y], [x], *rest, look=LOOKS[name]) for name, (x, y) in VALUES.items()]
    front = doc.Series("Pareto front", [0.041, 0.060], [0.506, 0.726], dashed=True)
    sizes = ["woman, 0", "woman, 1", "man, 0", "man, 1"]
    kept = doc.Series("kept", sizes, [600, 310, 1980, 1870], "bars", deviation=[20, 15, 40, 60])
    bars = [doc.Series("all samples", sizes, [658, 373, 2137, 2110], "bars"), kept]
    first = doc.Panel("Trade-off", "EO disparity", "accuracy", [*points, front])
    panels = [first, doc.Panel("Cells", "cell", "samples", bars)]
    return doc.Figure("trade-off", "Figure B. Accuracy against disparity, and who is kept", panels)


def suspects() -> doc.Table:
    """Rows to filter and sort."""
    columns = [doc.Column("row", True), doc.Column("label"), doc.Column("loss", True), doc.Column("group")]
    rows = [
        [str(i * 37 % 1000), ">50K" if i % 3 else "<=50K", f"{12 - i * 0.37:.2f}", ("woman", "man")[i % 2]]
        for i in range(30)
    ]
    cells = [[doc.Cell(text) for text in row] for row in rows]
    return doc.Table("suspects", "The labels to look at first", columns, cells, filterable=True)


def sample_document() -> doc.Document:
    """Every kind of block."""
    claims = [
        doc.Verdict("Ours has the lowest disparity.", "Table 1", True, "All 12 comparisons. " + "LR .578. " * 20),
        doc.Verdict("Ours is as accurate as any.", "Table 1", True, "Accuracy .726 ± .003."),
        doc.Verdict("Each ablation is worse.", "Table 5", False, "Without the weights: EO .058."),
        doc.Verdict("FR-Train needs over ten times as long.", "Table 4", None, "Seconds depend on the machine."),
    ]  # fmt: skip
    return doc.Document(
        "Sample selection, reproduced",
        "Every table and figure of the paper, set beside its numbers.",
        [
            doc.Section("claims", "What the paper claims", [doc.Text("Five seeds each. " * 9), *claims]),
            doc.Section("synthetic", "Synthetic data", [results(), by_epoch()]),
            doc.Section("compas", "COMPAS", [by_rate(), trade_off()]),
            doc.Section("suspects", "Labels to check", [suspects()]),
            doc.Section(
                "settings", "Settings", [doc.Facts("How it was run", {"seeds": "5", "epochs": "400"})]
            ),
        ],
    )
