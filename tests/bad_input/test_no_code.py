"""Nothing in the package could run code from a file: no pickle, no eval, and loaders that are told not to."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FILES = sorted([*(ROOT / "src").rglob("*.py"), *(ROOT / "examples").rglob("*.py")])
MODULES = {
    "pickle", "cPickle", "_pickle", "cloudpickle", "dill", "marshal", "shelve", "yaml", "runpy", "code",
}  # fmt: skip
CALLS = {
    "eval", "exec", "compile", "__import__", "os.system", "os.popen", "joblib.load", "read_pickle",
    "execfile",
}  # fmt: skip
ARRAYS = ("allow_pickle", False)
TOLD = {"torch.load": ("weights_only", True), "np.load": ARRAYS, "numpy.load": ARRAYS}
# Parts that do not fit into memory wait in a new folder that only this user can read, and are read by who wrote them.
SPILLS = ROOT / "src" / "fairsieve" / "training" / "parts.py"


def faults(text):
    """What in a program could run code that is not its own."""
    found = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names if alias.name.partition(".")[0] in MODULES]
        elif isinstance(node, ast.ImportFrom):
            found += [str(node.module)] if str(node.module).partition(".")[0] in MODULES else []
        elif isinstance(node, ast.Call):
            name = ast.unparse(node.func)
            told = {keyword.arg: getattr(keyword.value, "value", None) for keyword in node.keywords}
            last = name.rpartition(".")[2]
            if name in CALLS or last in ("read_pickle", "import_string"):
                found.append(name)
            if name in TOLD and told.get(TOLD[name][0]) is not TOLD[name][1]:
                found.append(f"{name} without {TOLD[name][0]}={TOLD[name][1]}")
            reads = last in ("read_array", "open_memmap")
            if told.get("shell") is True or (reads and told.get("allow_pickle")):
                found.append(name)
    return found


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_file_runs_what_it_reads(path):
    assert faults(path.read_text(encoding="utf-8")) == (["pickle"] if path == SPILLS else [])


@pytest.mark.parametrize("line", [
    "import pickle",
    "from pickle import loads",
    "eval('1')",
    "torch.load('x')",
    "torch.load('x', weights_only=False)",
    "np.load('x')",
    "np.load('x', allow_pickle=True)",
    "joblib.load('x')",
    "pandas.read_pickle('x')",
    "subprocess.run('x', shell=True)",
    "os.system('x')",
])  # fmt: skip
def test_it_would_be_seen(line):
    assert faults(line)


def test_all_files_were_looked_at():
    assert len(FILES) > 100
