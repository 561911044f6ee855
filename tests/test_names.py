"""Laws about the names in the source: one name for one thing, private names with an underscore, short signatures.

An exception is listed with the reason beside it.
"""

from __future__ import annotations

import ast
import re
from collections import Counter, defaultdict
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "fairsieve"
MOST_PARAMETERS = 7

# Files with the same name as another one.
SAME_FILE_NAME: set[str] = set()
# Classes that several modules define.
SAME_CLASS_NAME: set[str] = set()
# Names that only their own module uses, and that are public all the same.
USED_ELSEWHERE = {  # not yet private
    "fairsieve.label_noise.predictors.log_losses",
    "fairsieve.label_noise.true_measures.TrueMeasure",
    "fairsieve.label_noise.true_measures.TrueMeasures",
    "fairsieve.label_noise.verified.check_verified",
    "fairsieve.progress.ProgressUpdate",
    "fairsieve.selection.backends.sharded.Group",
    "fairsieve.selection.exact_sums.rounded",
    "fairsieve.training.autograd.covariance_penalty",
    "fairsieve.training.history.Scores",
}
# Functions named after what they return instead of what they do.
NAMED_OF = {"shard_of"}  # public and documented
NOT_YET_RENAMED = "collapse estimate features flips kind looks mask model probabilities suspects"
NAMED_OF |= {f"{name}_of" for name in NOT_YET_RENAMED.split()}
# Functions with many parameters that may be passed by position.
MANY_PARAMETERS = {  # not yet changed
    "fairsieve.estimators.classifier.__init__",
}


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT / "src").with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


PATHS = {module_name(path): path for path in sorted(PACKAGE.rglob("*.py"))}
TREES = {name: ast.parse(path.read_text(encoding="utf-8")) for name, path in PATHS.items()}
DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def explain(found: set[str], allowed: set[str]) -> str:
    """Say which exceptions are missing in a list, and which are no longer needed."""
    return f"not allowed: {sorted(found - allowed)}; no longer needed: {sorted(allowed - found)}"


def test_no_file_name_is_used_twice():
    """The files of adapters/ are thin: they repeat the names of what they re-export."""
    own = [path for path in PATHS.values() if path.name != "__init__.py"]
    own = [path for path in own if path.parent != PACKAGE / "adapters"]
    found = {name for name, times in Counter(path.name for path in own).items() if times > 1}
    assert found <= SAME_FILE_NAME, explain(found, SAME_FILE_NAME)


def test_files_of_adapters_only_import():
    for path in (PACKAGE / "adapters").glob("*.py"):
        tree = TREES[module_name(path)]
        assert not [
            node.name for node in tree.body if isinstance(node, DEFINITIONS) and node.name != "__getattr__"
        ]


def test_no_class_is_defined_in_two_modules():
    names = Counter(
        node.name
        for tree in TREES.values()
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef) and not node.name.startswith("__")
    )
    found = {name for name, times in names.items() if times > 1}
    assert found <= SAME_CLASS_NAME, explain(found, SAME_CLASS_NAME)


def test_names_that_no_other_module_uses_start_with_an_underscore():
    used = find_used_names()
    found = set()
    for name, tree in TREES.items():
        if PATHS[name].name in ("__init__.py", "__main__.py") or "triton" in PATHS[name].name:
            continue  # re-exports, the command's entry, and kernels, which the compiler looks up by name
        for node in tree.body:
            if (
                isinstance(node, DEFINITIONS)
                and not node.name.startswith("_")
                and node.name not in used[name]
            ):
                found.add(f"{name}.{node.name}")
    assert found <= USED_ELSEWHERE, explain(found, USED_ELSEWHERE)


def find_used_names() -> dict[str, set[str]]:
    """Return what is imported from each module by others, by benchmarks, examples, the documentation or users."""
    used: dict[str, set[str]] = defaultdict(set)
    programs = [path for folder in ("benchmarks", "examples") for path in (ROOT / folder).rglob("*.py")]
    for name, tree in TREES.items():
        note_imports(tree, name, used)
    for path in programs:
        note_imports(ast.parse(path.read_text(encoding="utf-8")), "", used)
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    for page in pages:
        text = page.read_text(encoding="utf-8")
        for module, names in re.findall(r"from (fairsieve[\w.]*) import ([^\n]+)", text):
            used[module] |= set(re.findall(r"\w+", names))
    later = next(
        ast.literal_eval(node.value)
        for node in TREES["fairsieve"].body
        if isinstance(node, (ast.Assign, ast.AnnAssign)) and "LATER" in ast.unparse(node).split("=")[0]
    )
    for name, module in later.items():
        used[module].add(name)
    return used


def note_imports(tree: ast.Module, own: str, used: dict[str, set[str]]) -> None:
    """Note names that are imported from a module of ours.

    Where a module is imported whole, every attribute in the file may be one of its names: the file may choose
    between modules when it runs.
    """
    modules: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("fairsieve"):
            for alias in node.names:
                whole = f"{node.module}.{alias.name}"
                if whole in PATHS:
                    modules.add(whole)
                elif node.module != own:
                    used[str(node.module)].add(alias.name)
        elif isinstance(node, ast.Import):
            modules |= {alias.name for alias in node.names if alias.name in PATHS}
    attributes = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    for module in modules:
        used[module] |= attributes


def test_functions_are_named_after_what_they_do():
    found = {node.name for tree in TREES.values() for node in ast.walk(tree) if isinstance(node, FUNCTIONS)}
    found = {name for name in found if name.endswith("_of")}
    assert found <= NAMED_OF, explain(found, NAMED_OF)


def is_compiled(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether numba or Triton compiles a function: these take no keyword-only arguments."""
    return bool(re.search(r"compiled|jit", " ".join(ast.unparse(mark) for mark in node.decorator_list)))


def test_functions_with_many_parameters_take_them_by_name():
    found = set()
    for name, tree in TREES.items():
        if name.startswith("fairsieve.cli"):
            continue  # a command's parameters are its options, which are passed by name
        for node in ast.walk(tree):
            if isinstance(node, FUNCTIONS) and not is_compiled(node):
                given = [*node.args.posonlyargs, *node.args.args]
                given = [each for each in given if each.arg not in ("self", "cls")]
                if len(given) > MOST_PARAMETERS:
                    found.add(f"{name}.{node.name}")
    assert found <= MANY_PARAMETERS, explain(found, MANY_PARAMETERS)


@pytest.mark.parametrize("name", ["shard_of"])
def test_exceptions_are_public(name):
    import fairsieve

    assert name in fairsieve.__all__ or hasattr(__import__("fairsieve.distributed").distributed, name)
