"""Prepare pages that programs wrote, and place the pages that no section names under Internals."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

PLACEHOLDER = "{{ every other page }}"
GUIDES = "{{ further guides }}"
NAMES = "{{ further names }}"
# Pages that a toctree names, or that a glob of one finds.
PLACED = {
    "index", "install", "quickstart", "internals", "csv", "review", "verified-labels", "scikit-learn",
    "pytorch", "boosters", "checkpoints", "clean-ratio", "limits", "glossary", "comparing", "findings", "peers",
}  # fmt: skip
FIRST = ("architecture", "laws", "bad-input", "numbers", "speed", "scaling")


def _other_pages(folder: Path) -> list[str]:
    """Return the pages directly under docs/ that no section names, the most read ones first."""
    names = {path.stem for path in folder.glob("*.md")} - PLACED
    return [name for name in FIRST if name in names] + sorted(names - set(FIRST))


def _further_names(page: str) -> str:
    """Return a section of the public names that the page does not list yet; nothing if it lists all."""
    import fairsieve

    listed = set(re.findall(r"^   ([\w.]+)$", page, flags=re.MULTILINE))
    names = [name for name in fairsieve.__all__ if name not in listed]
    if not names:
        return ""
    lines = ["## Further names", "", "```{eval-rst}", ".. currentmodule:: fairsieve", ".. autosummary::"]
    lines += ["   :toctree: generated", "   :nosignatures:", "", *(f"   {name}" for name in names), "```"]
    return "\n".join(lines)


def _read(app: Any, name: str, source: list[str]) -> None:
    """Give tables of the reproduction a heading; list the other pages under Internals."""
    if name == "internals":
        source[0] = source[0].replace(PLACEHOLDER, "\n".join(_other_pages(Path(app.srcdir))))
    if name == "reference/api":
        source[0] = source[0].replace(NAMES, _further_names(source[0]))
    if name == "how-to/index":
        found = [name for name in ("review",) if (Path(app.srcdir) / f"{name}.md").exists()]
        source[0] = source[0].replace(GUIDES, "\n".join(f"../{name}" for name in found))
    source[0] = source[0].replace("](../examples/README.md)", "](how-to/examples.md)")
    if name.startswith("reproduction/"):
        source[0] = re.sub(r"\A\*\*(.+?)\*\*$", r"# \1", source[0], flags=re.MULTILINE)


def reset_figures(gallery: Any, file: str) -> None:
    """Give each tutorial the same figures: readable in both themes, whatever was set before."""
    import matplotlib as mpl

    mpl.rcParams.update(
        {
            "figure.figsize": (7, 3.6),
            "figure.dpi": 110,
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.prop_cycle": mpl.cycler(color=["#2a6f97", "#e07a1f", "#5a9367", "#9b4f96", "#767676"]),
            "figure.constrained_layout.use": True,
        }
    )


def setup(app: Any) -> dict[str, bool]:
    """Register the hook."""
    app.connect("source-read", _read)
    app.connect(
        "env-get-outdated", lambda *_: ["how-to/index", "internals", "reference/api"]
    )  # they list others
    return {"parallel_read_safe": True, "parallel_write_safe": True}
