"""Matplotlib in our style: quiet, and in the colours of :mod:`fairsieve.report.looks`."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from fairsieve.errors import MissingExtraError
from fairsieve.report.looks import THEMES, Look

__all__ = ["colour", "pyplot"]

SETTINGS: Any = {
    "axes.axisbelow": True,
    "axes.edgecolor": THEMES["light"].muted,
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


def colour(look: Look) -> str:
    """Return the colour of a look on a light background."""
    return THEMES["light"].hues[look.hue]


def pyplot() -> ModuleType:
    """Return Matplotlib's pyplot in our style, drawing to files only."""
    try:
        import matplotlib
    except ImportError:
        raise MissingExtraError("matplotlib", extra="plot", purpose="drawing figures") from None
    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    plt.rcParams.update(SETTINGS)
    return plt
