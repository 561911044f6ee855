"""The laws as docs/laws.md lists them: ``python -m tests.laws.listing`` writes them there."""

from __future__ import annotations

import ast
from pathlib import Path

FOLDER = Path(__file__).parent
PAGE = FOLDER.parents[1] / "docs" / "laws.md"
BEGIN, END = "<!-- laws -->\n", "<!-- end of laws -->\n"


def sentences():
    """Of each file: its subject, and the sentence of every law in it."""
    for path in sorted(FOLDER.glob("test_*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
        laws = [ast.get_docstring(node) for node in functions if node.name.startswith("test_")]
        if path.stem != "test_listing":
            yield ast.get_docstring(tree), laws


def listing():
    """The list, in Markdown; laws are numbered throughout."""
    number, lines = 0, []
    for subject, laws in sentences():
        lines.append(f"\n### {subject}\n")
        for law in laws:
            number += 1
            lines.append(f"{number}. {law}")
    return "\n".join([*lines, "", ""])


def page_with(text, laws):
    """The page with another list."""
    before, rest = text.split(BEGIN)
    return before + BEGIN + laws + END + rest.split(END)[1]


if __name__ == "__main__":
    PAGE.write_text(page_with(PAGE.read_text(encoding="utf-8"), listing()), encoding="utf-8")
