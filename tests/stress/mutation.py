"""Test the tests: do they notice one small mistake in the selection or in the solver?

    python tests/stress/mutation.py                  # 100 mutants, drawn by --seed; survivors are printed
    python tests/stress/mutation.py --sample 0       # all of them, which takes hours

A mutant is the source of one module with one operator, number, condition or effect changed. It meets the tests of its
module, in a fork of one process that has imported everything but fairsieve.
"""

from __future__ import annotations

import argparse
import ast
import copy
import importlib
import importlib.abc
import importlib.machinery
import os
import random
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
SELECTION = [
    "tests/laws/test_selection.py",
    "tests/laws/test_ratios.py",
    "tests/laws/test_plan.py",
    "tests/selection",
]
BATCHES = ["tests/laws/test_batches.py", "tests/laws/test_plan.py", "tests/selection"]
SOLVER = ["tests/laws/test_solver.py", "tests/training", "tests/estimators/test_classifier.py"]
TESTS = {  # patterns of modules, and the tests that must notice
    "selection/search.py": SELECTION,
    "selection/select.py": SELECTION,
    "selection/ratios.py": SELECTION,
    "selection/epoch.py": SELECTION,
    "selection/backends/numpy.py": SELECTION,
    "selection/batches.py": BATCHES,
    "selection/shuffle.py": BATCHES,
    "selection/cells.py": ["tests/laws/test_cells.py", "tests/selection"],
    "selection/fairness.py": ["tests/laws", "tests/selection"],
    "training/newton*.py": SOLVER,
    "training/solver*.py": SOLVER,
    "training/linear_objective.py": SOLVER,
}
SECONDS = 300  # after which a mutant counts as stuck, which is noticed too
PAIRS = [(ast.Add, ast.Sub), (ast.Mult, ast.Div), (ast.And, ast.Or), (ast.Eq, ast.NotEq), (ast.Is, ast.IsNot)]
PAIRS += [
    (ast.In, ast.NotIn),
    (ast.BitAnd, ast.BitOr),
    (ast.LShift, ast.RShift),
    (ast.Lt, ast.LtE),
    (ast.Gt, ast.GtE),
]
OTHER: dict[Any, Any] = {one: two for pair in PAIRS for one, two in (pair, pair[::-1])}
OTHER |= {ast.FloorDiv: ast.Mult, ast.Mod: ast.FloorDiv, ast.Pow: ast.Mult, ast.BitXor: ast.BitOr}
NAMES = {"min": "max", "max": "min", "any": "all", "all": "any", "argmax": "argmin", "argmin": "argmax"}


def mutate(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes that may replace a node."""
    other = copy.copy(node)
    if isinstance(node, ast.BinOp | ast.AugAssign | ast.BoolOp) and type(node.op) in OTHER:
        other.op = OTHER[type(node.op)]()  # type: ignore[attr-defined]
    elif isinstance(node, ast.Compare) and type(node.ops[0]) in OTHER:
        other.ops = [OTHER[type(node.ops[0])](), *node.ops[1:]]  # type: ignore[attr-defined]
    elif isinstance(node, ast.Constant) and isinstance(node.value, bool):
        other.value = not node.value  # type: ignore[attr-defined]
    elif isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        other.value = node.value + 1  # type: ignore[attr-defined]
    elif isinstance(node, ast.Attribute) and node.attr in NAMES:
        other.attr = NAMES[node.attr]  # type: ignore[attr-defined]
    elif isinstance(node, ast.Name) and node.id in NAMES and isinstance(node.ctx, ast.Load):
        other.id = NAMES[node.id]  # type: ignore[attr-defined]
    elif isinstance(node, ast.UnaryOp):
        other = node.operand
    elif isinstance(node, ast.If | ast.IfExp | ast.While) and not isinstance(
        node.test, ast.Compare | ast.BoolOp
    ):
        other.test = ast.UnaryOp(ast.Not(), node.test)  # type: ignore[attr-defined]
    elif isinstance(node, ast.Raise | ast.AugAssign) or (
        isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)
    ):
        other = ast.Pass()
    else:
        return
    yield ast.copy_location(other, node)


def places(node: ast.AST) -> Iterator[tuple[ast.AST, str, int | None]]:
    """Yield where a node may be replaced: not in annotations, texts, messages and lists of names."""
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list", "bases", "keywords", "exc", "slice") and value:
            continue
        for i, child in enumerate(value) if isinstance(value, list) else [(None, value)]:
            if isinstance(child, ast.AST) and not isinstance(
                child, ast.JoinedStr | ast.ImportFrom | ast.Import
            ):
                yield node, name, i
                yield from places(child)


def make_mutants(source: str) -> Iterator[tuple[int, str, str]]:
    """Yield line, change and source of every mutant of a module."""
    tree = ast.parse(source)
    for parent, name, i in list(places(tree)):
        value = getattr(parent, name)
        node = value if i is None else value[i]
        for other in mutate(node):
            before, after = (ast.unparse(one).splitlines()[0] for one in (node, other))
            _put(parent, name, i, other)
            yield node.lineno, f"{before} → {after}", ast.unparse(tree)
            _put(parent, name, i, node)


def _put(parent: ast.AST, name: str, i: int | None, node: ast.AST) -> None:
    if i is None:
        setattr(parent, name, node)
    else:
        getattr(parent, name)[i] = node


class Loader(importlib.abc.MetaPathFinder, importlib.machinery.SourceFileLoader):
    """Load one module from another source."""

    def __init__(self, path: Path, source: str) -> None:
        module = ".".join(path.relative_to(ROOT / "src").with_suffix("").parts)
        super().__init__(module, str(path))
        self.source = source

    def find_spec(self, name: str, *_: Any) -> Any:
        return importlib.machinery.ModuleSpec(name, self, origin=self.path) if name == self.name else None

    def get_code(self, _: str) -> Any:
        return compile(self.source, self.path, "exec")


def survives(path: Path, source: str, tests: list[str]) -> bool:
    """Return whether the tests pass with another source of a module."""
    child = os.fork()
    if not child:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 1)
        os.dup2(nowhere, 2)
        signal.alarm(SECONDS)
        sys.meta_path.insert(0, Loader(path, source))
        import pytest

        options = ["-x", "-q", "-p", "no:cacheprovider", "-W", "ignore::pytest.PytestAssertRewriteWarning"]
        code = pytest.main([*options, *tests])
        os._exit(int(code))
    return os.waitpid(child, 0)[1] == 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--sample", type=int, default=100, help="how many mutants; 0 for all")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="modules whose names contain this")
    arguments = parser.parse_args()
    os.chdir(ROOT)
    os.environ |= {"HYPOTHESIS_PROFILE": "mutation", "OMP_NUM_THREADS": "1"}
    sys.path[:0] = [str(ROOT / "src"), str(ROOT)]
    for module in (
        "hypothesis",
        "numpy",
        "pandas",
        "pytest",
        "scipy.optimize",
        "sklearn.linear_model",
        "torch",
    ):
        importlib.import_module(module)
    found = []
    for pattern, tests in TESTS.items():
        existing = [test for test in tests if (ROOT / test).exists()]
        for path in sorted((ROOT / "src" / "fairsieve").glob(pattern)):
            if arguments.only in str(path):
                found += [(path, existing, *one) for one in make_mutants(path.read_text(encoding="utf-8"))]
    chosen = random.Random(arguments.seed).sample(found, min(arguments.sample or len(found), len(found)))
    for path, tests in {path: tests for path, tests, *_ in chosen}.items():
        if not survives(path, path.read_text(encoding="utf-8"), tests):
            sys.exit(f"the tests of {path.relative_to(ROOT)} fail without a mutant: {' '.join(tests)}")
    began, survivors = time.monotonic(), 0
    for path, tests, line, change, source in sorted(chosen, key=lambda one: (str(one[0]), one[2])):
        if survives(path, source, tests):
            survivors += 1
            print(f"survived: {path.relative_to(ROOT)}:{line}: {change}", flush=True)
    seconds = time.monotonic() - began
    print(
        f"{len(chosen) - survivors} of {len(chosen)} mutants (of {len(found):,}) were noticed; {seconds:.0f} s"
    )


if __name__ == "__main__":
    main()
