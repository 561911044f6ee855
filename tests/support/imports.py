"""Find the files that import a package which is not installed, directly or through another file of ours."""

import ast
import importlib.util
from functools import cache
from pathlib import Path

import fairsieve

OPTIONAL = {
    "accelerate", "fairlearn", "hatchling", "imblearn", "lightgbm", "lightning", "polars", "pyarrow",
    "selenium", "torch", "transformers", "triton",
}  # fmt: skip
# What starts programs that need torch, or speaks of every extra.
RUN_WITH_EVERYTHING = (
    "reproduction/fairsieve_reproduction/methods/compiled.py",
    "reproduction/fairsieve_reproduction/methods/fr_train.py", "tests/selection/test_many_samples.py",
    "tests/benchmark/test_compare.py", "tests/sampling/", "tests/stress/", "tests/test_dependencies.py",
    "tests/test_missing_extras.py", "tests/test_docs.py", "tests/test_readme.py",
)  # fmt: skip


def files_that_cannot_be_imported(root: Path) -> list[str]:
    """Return the test and source files, relative to ``root``, whose imports would fail here.

    Imports inside functions do not count: what needs them says so when it is called.
    """
    missing = {name for name in OPTIONAL if importlib.util.find_spec(name) is None}
    if not missing:
        return []

    @cache
    def fails(path: Path) -> bool:
        if not path.exists():
            return False
        names = _top_level_imports(path)
        if any(name.partition(".")[0] in missing for name in names):
            return True
        return any(fails(found) for name in names for found in _our_files(root, name) if found != path)

    folders = "tests", "src/fairsieve", "reproduction"
    files = [path for folder in folders for path in root.glob(f"{folder}/**/*.py")]
    left_out = RUN_WITH_EVERYTHING if "torch" in missing else ()
    names = {path.relative_to(root).as_posix(): path for path in files}
    return [name for name, path in names.items() if name.startswith(left_out) or fails(path)]


def _top_level_imports(path: Path) -> set[str]:
    """Return the modules that a file imports when it is imported, with the names taken from them."""
    found: set[str] = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
        elif isinstance(node, ast.Expr) and ast.unparse(node).startswith("require("):
            found.add(ast.literal_eval(node.value.args[0]))
    return found


def _our_files(root: Path, module: str) -> list[Path]:
    """Return where a module of ours is, as a file or as a package; nothing for others."""
    first, _, name = module.partition(".")
    folders = {"fairsieve": "src", "fairsieve_reproduction": "reproduction", "tests": ""}
    if first not in folders:
        return []
    if first == "fairsieve":
        # A public name is imported from its module when it is used.
        module = fairsieve.LATER.get(name, module)
    base = (root / folders[first]).joinpath(*module.split("."))
    return [base.with_suffix(".py"), base / "__init__.py"]
