"""Test the tests: do they notice one small mistake in the selection or in the solver?

    python tests/stress/mutation.py                  # 100 mutants, drawn by --seed; survivors are printed
    python tests/stress/mutation.py --sample 0       # all of them, which takes hours of one core

A mutant is the source of one module with one operator, number, condition or effect changed. It meets the tests of its
module, in a fork of one process that has imported everything but fairsieve.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import importlib.abc
import importlib.machinery
import os
import random
import signal
import sys
from collections.abc import Iterator
from multiprocessing.pool import ThreadPool
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "fairsieve"
SELECTION = "tests/laws/test_selection.py tests/laws/test_ratios.py tests/laws/test_plan.py tests/selection"
BATCHES = "tests/laws/test_batches.py tests/laws/test_plan.py tests/selection"
SOLVER = "tests/laws/test_solver.py tests/estimators/test_classifier.py tests/estimators/test_sieve.py"
TESTS = {  # patterns of modules, and the tests that must notice
    "selection/[er]*.py": SELECTION,
    "selection/se*.py": SELECTION,
    "selection/backends/numpy.py": SELECTION,
    "selection/batches.py": BATCHES,
    "selection/shuffle.py": BATCHES,
    "selection/cells.py": "tests/laws/test_cells.py tests/selection",
    "selection/fairness.py": "tests/laws tests/selection",
    "training/newton*.py": SOLVER,
    "training/solver*.py": SOLVER,
    "training/linear_rows.py": SOLVER,
    "training/ratio_search.py": SOLVER,
}
SECONDS = 300  # after which a mutant counts as stuck, which is noticed too
PAIRS = "Add Sub, Mult Div, And Or, Eq NotEq, Is IsNot, In NotIn, BitAnd BitOr, LShift RShift, Lt LtE, Gt GtE"
OTHER: dict[type, type] = {
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv,
    ast.Pow: ast.Mult,
    ast.BitXor: ast.BitOr,
}
for pair in PAIRS.split(", "):
    one, two = (getattr(ast, name) for name in pair.split())
    OTHER |= {one: two, two: one}
NAMES = {"min": "max", "max": "min", "any": "all", "all": "any", "argmax": "argmin", "argmin": "argmax"}
# No test of behaviour sees these.
LEFT_ALONE = {"annotation", "returns", "decorator_list", "bases", "keywords", "exc"}


def find_changes(node: Any) -> Iterator[tuple[Any, str, Any]]:
    """Yield what to change below a node: an object, its attribute, and the other value."""
    for name, value in ast.iter_fields(node):
        if name in LEFT_ALONE or isinstance(node, ast.JoinedStr | ast.Import | ast.ImportFrom):
            continue
        if isinstance(value, ast.operator | ast.boolop) and type(value) in OTHER:
            yield node, name, OTHER[type(value)]()
        elif name == "ops" and type(value[0]) in OTHER:
            yield node, name, [OTHER[type(value[0])](), *value[1:]]
        elif name == "value" and isinstance(node, ast.Constant) and isinstance(value, bool | int | float):
            yield node, name, not value if isinstance(value, bool) else value + 1
        elif name in ("attr", "id") and value in NAMES:
            yield node, name, NAMES[value]
        elif name == "test" and not isinstance(value, ast.Compare | ast.BoolOp | ast.Constant):
            yield node, name, ast.UnaryOp(ast.Not(), value)
        elif name in ("body", "orelse") and isinstance(value, list):
            for i, statement in enumerate(value):
                is_call = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call)
                if is_call or isinstance(statement, ast.Raise | ast.AugAssign):
                    yield node, name, [*value[:i], ast.Pass(), *value[i + 1 :]]
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield from find_changes(child)


def make_mutants(path: Path) -> Iterator[tuple[Path, str, str]]:
    """Yield path, changed lines and source of every mutant of a module."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    before = ast.unparse(tree).splitlines()
    for node, name, other in [*find_changes(tree)]:
        value = getattr(node, name)
        setattr(node, name, other)
        source = ast.unparse(ast.fix_missing_locations(tree))
        setattr(node, name, value)
        after = source.splitlines()
        line = next(
            (i for i, (a, b) in enumerate(zip(before, after, strict=False)) if a != b), len(before) - 1
        )
        yield path, f"{before[line].strip()} → {after[line].strip() if line < len(after) else ''}", source


class Loader(importlib.abc.MetaPathFinder, importlib.machinery.SourceFileLoader):
    """Load one module from another source."""

    def __init__(self, path: Path, source: str) -> None:
        super().__init__(".".join(path.relative_to(ROOT / "src").with_suffix("").parts), str(path))
        self.source = source

    def find_spec(self, name: str, *_: Any) -> Any:
        return importlib.machinery.ModuleSpec(name, self, origin=self.path) if name == self.name else None

    def get_code(self, _: str) -> Any:
        return compile(self.source, self.path, "exec")


def survives(path: Path, source: str) -> bool:
    """Return whether the tests of a module pass with another source of it."""
    patterns = [tests for pattern, tests in TESTS.items() if path in PACKAGE.glob(pattern)]
    child = os.fork()
    if not child:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 1)
        os.dup2(nowhere, 2)
        signal.alarm(SECONDS)
        sys.meta_path.insert(0, Loader(path, source))
        options = ["-x", "-q", "-p", "no:cacheprovider", "-W", "ignore::pytest.PytestAssertRewriteWarning"]
        os._exit(int(pytest.main([*options, *(test for test in patterns[0].split() if Path(test).exists())])))
    return os.waitpid(child, 0)[1] == 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--sample", type=int, default=100, help="how many mutants; 0 for all")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="how many at a time")
    parser.add_argument("--only", default="", help="modules whose names contain this")
    arguments = parser.parse_args()
    os.chdir(ROOT)
    os.environ |= {"HYPOTHESIS_PROFILE": "mutation", "OMP_NUM_THREADS": "1"}
    sys.path[:0] = [str(ROOT / "src"), str(ROOT)]
    for module in ("numpy", "pandas", "scipy.optimize", "sklearn.linear_model", "torch"):
        importlib.import_module(module)
    paths = [
        path for pattern in TESTS for path in sorted(PACKAGE.glob(pattern)) if arguments.only in str(path)
    ]
    found = [mutant for path in paths for mutant in make_mutants(path)]
    chosen = random.Random(arguments.seed).sample(found, min(arguments.sample or len(found), len(found)))
    for path in {path for path, *_ in chosen}:
        if not survives(path, path.read_text(encoding="utf-8")):
            sys.exit(f"the tests of {path.relative_to(ROOT)} fail without a mutant")
    alive = 0
    with ThreadPool(arguments.jobs) as pool:
        found_alive = pool.imap(lambda mutant: survives(mutant[0], mutant[2]), chosen)
        for (path, change, _), survived in zip(chosen, found_alive, strict=True):
            if survived:
                alive += 1
                print(f"survived: {path.relative_to(PACKAGE)}: {change}", flush=True)
    print(f"{len(chosen) - alive} of {len(chosen)} mutants (of {len(found):,}) were noticed")


if __name__ == "__main__":
    main()
