"""Count the test files that use public names only: ``python -m tests.support.public_names``.

Public is what the reference lists: the names of ``fairsieve``, and the modules that have a page there.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import fairsieve

ROOT = Path(__file__).parents[2]
REFERENCE = ROOT / "docs" / "reference"
# The command line is public: tests call it as users do, by the program's entry.
ENTRIES = {"fairsieve.cli.app.main", "fairsieve.cli.app.app"}


def list_public() -> set[str]:
    """Return the names that the reference documents, by their modules."""
    found = {f"fairsieve.{name}" for name in fairsieve.__all__} | ENTRIES
    for page in REFERENCE.glob("*.md"):
        module = "fairsieve"
        for line in page.read_text(encoding="utf-8").splitlines():
            told = re.search(r"(?:currentmodule|module|automodule)::?\}? *(fairsieve[\w.]*)", line)
            module = told[1] if told else module
            found.update(re.findall(r"fairsieve(?:\.\w+)+", line))
            if re.fullmatch(r"\s*~?[\w.]+", line):
                found.add(f"{module}.{line.strip().lstrip('~')}")
    return found


def list_imports(path: Path) -> Iterator[str]:
    """Yield what a test imports from fairsieve, in the file or in texts that it runs as programs."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "fairsieve":
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.startswith("fairsieve."))


def main() -> None:
    public = list_public()
    modules = {
        name for name in public if (ROOT / "src" / Path(*name.split("."))).exists() or _is_module(name)
    }
    files = sorted((ROOT / "tests").rglob("test_*.py"))
    private = {}
    for path in files:
        used = {name for name in list_imports(path) if name not in public and name not in modules}
        if used:
            private[path.relative_to(ROOT)] = sorted(used)
    for path, names in private.items():
        print(f"{path}: {', '.join(names)}")
    print(f"{len(files) - len(private)} of {len(files)} test files import public names only")


def _is_module(name: str) -> bool:
    return (ROOT / "src" / Path(*name.split("."))).with_suffix(".py").exists()


if __name__ == "__main__":
    main()
