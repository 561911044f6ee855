"""Write the list of modules in docs/architecture.md, from the first lines of their docstrings.

python -m tests.support.architecture
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "architecture.md"
SOURCE = ROOT / "src" / "fairsieve"
ORDER = [
    "errors.py",
    "files.py",
    "optional.py",
    "validation.py",
    "progress.py",
    "selection",
    "samples.py",
    "metrics.py",
    "intervals.py",
    "thresholds.py",
    "report",
    "inputs.py",
    "data",
    "sampling",
    "adapters",
    "distributed.py",
    "training",
    "label_noise",
    "estimators",
    "tabular",
    "paper",
    "cli",
    "__main__.py",
]


def listing() -> str:
    """Return the list of modules, each with the first line of its docstring."""
    lines = [line for name in ORDER for line in _lines(SOURCE / name, 1)]
    return "```\nsrc/fairsieve/\n" + "\n".join(lines) + "\n```"


def page_with_listing() -> str:
    """Return the page with the present list in it."""
    return re.sub(
        r"```\nsrc/fairsieve/\n.*?```", lambda _: listing(), PAGE.read_text("utf-8"), count=1, flags=re.S
    )


def _lines(path: Path, depth: int) -> Iterator[str]:
    """Yield the line of a module, or of a folder and what is in it."""
    indent = "  " * depth
    if path.is_file():
        yield f"{indent}{path.name:<20} {_first_line(path)}"
        return
    yield f"{indent}{path.name + '/':<20} {_first_line(path / '__init__.py')}"
    for inner in sorted(path.iterdir(), key=lambda inner: (inner.is_dir(), inner.name)):
        is_module = inner.suffix == ".py" and inner.name != "__init__.py"
        if is_module or (inner / "__init__.py").exists():
            yield from _lines(inner, depth + 1)


def _first_line(path: Path) -> str:
    docstring = ast.get_docstring(ast.parse(path.read_text("utf-8"))) or ""
    return docstring.partition("\n")[0].rstrip(".")


if __name__ == "__main__":
    PAGE.write_text(page_with_listing(), "utf-8")
