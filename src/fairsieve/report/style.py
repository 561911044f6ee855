"""One look for every figure: colour-blind safe, quiet, the same method in the same colour."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from fairsieve.errors import MissingExtraError

__all__ = ["COLOURS", "colour", "pyplot"]

# Okabe and Ito's palette.
COLOURS = {
    "lr": "#999999",
    "itlm": "#E69F00",
    "fairbatch": "#56B4E9",
    "fairsieve": "#0072B2",
    "penalty": "#CC79A7",
    "fr-train": "#D55E00",
}
OTHERS = ("#009E73", "#F0E442", "#000000")

SETTINGS: Any = {
    "axes.grid": True,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlesize": "medium",
    "figure.dpi": 110,
    "font.size": 9,
    "grid.alpha": 0.25,
    "legend.edgecolor": "none",
    "legend.framealpha": 0.85,
    "legend.fontsize": "small",
    "savefig.bbox": "tight",
    "svg.fonttype": "none",
    "svg.hashsalt": "fairsieve",
}


def colour(method: str) -> str:
    """The colour of a method."""
    return COLOURS.get(method) or OTHERS[sum(map(ord, method)) % len(OTHERS)]


def pyplot() -> ModuleType:
    """Matplotlib's pyplot in our style, drawing to files only."""
    try:
        import matplotlib
    except ImportError:
        raise MissingExtraError("matplotlib", extra="plot", purpose="drawing figures") from None
    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    plt.rcParams.update(SETTINGS)
    return plt
