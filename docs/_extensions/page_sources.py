"""Prepare pages that programs wrote, and the look of the tutorials' figures."""

from __future__ import annotations

import re
from typing import Any


def _read(app: Any, name: str, source: list[str]) -> None:
    """Give tables of the reproduction a heading, and links to files of the repository their page."""
    source[0] = source[0].replace("](../examples/README.md)", "](how-to/examples.md)")
    caption = re.match(r"\*\*(.+?)\*\*$", source[0], flags=re.MULTILINE)
    if name.startswith("reproduction/") and caption:
        number = re.match(r"Table \d+\. [^.,:(]+", caption[1])
        title = number[0] if number else name.rpartition("/")[2].capitalize()
        source[0] = f"# {title}\n\n{caption[1]}{source[0][caption.end() :]}"


def reset_figures(gallery: Any, file: str) -> None:
    """Give each tutorial the same figures: readable in both themes, whatever was set before."""
    import matplotlib as mpl

    mpl.rcParams.update(
        {
            "figure.figsize": (7, 3.6),
            "figure.dpi": 110,
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.prop_cycle": mpl.cycler(
                color=["#2a6f97", "#e07a1f", "#5a9367", "#9b4f96", "#767676"]
            ),
            "figure.constrained_layout.use": True,
        }
    )


def setup(app: Any) -> dict[str, bool]:
    """Register the hook."""
    app.connect("source-read", _read)
    app.connect(
        "env-get-outdated", lambda *_: ["reference/api"]
    )  # it lists names of the package
    return {"parallel_read_safe": True, "parallel_write_safe": True}
