"""Without an extra the package imports, and what needs it says the exact command that installs it."""

import ast
import json
import os
import sys
from pathlib import Path

import pytest
from packaging.requirements import Requirement

import fairsieve
from fairsieve.errors import EXTRAS as OPTIONAL
from fairsieve.errors import MissingExtraError, missing, require
from tests.support.dependencies import EXTRAS, requirements
from tests.support.programs import run_python

# package hidden, what is tried, what is told
TRIES = [
    ("matplotlib", "demo", "drawing figures needs matplotlib: pip install 'fairsieve[plot]'"),
    ("matplotlib", "display", "drawing figures needs matplotlib: pip install 'fairsieve[plot]'"),
    ("pyarrow", "parquet", "reading Parquet needs pyarrow: pip install 'fairsieve[table]'"),
    ("skops", "stored model", "reading a model needs skops: pip install skops"),
    ("fairlearn", "method", "needs fairlearn: pip install 'fairsieve[fairlearn]'"),
    ("numba", "FR-Train", "FR-Train needs numba: pip install 'fairsieve[reproduce]'"),
    ("dask", "cluster", "running on a dask cluster needs dask: pip install 'fairsieve[dask]'"),
    ("lightning", "Lightning", "the Lightning callback needs lightning: pip install 'fairsieve[lightning]'"),
    ("accelerate", "Accelerate", "the Accelerate adapter needs accelerate: pip install 'fairsieve[accelerate]'"),
    ("transformers", "Trainer", "the Trainer adapter needs transformers: pip install 'fairsieve[transformers]'"),
]  # fmt: skip
WITHOUT_A_TRY = {
    "lightgbm",  # an estimator that people bring; nothing of ours imports it
    "torch",  # tests/test_without_torch.py
}

PROGRAM = """
import importlib, importlib.util, json, os, sys
from pathlib import Path

hidden = set(json.loads(sys.argv[1]))


class Hider:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in hidden:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


sys.meta_path.insert(0, Hider())
find_spec = importlib.util.find_spec
importlib.util.find_spec = lambda name, *rest: None if name in hidden else find_spec(name, *rest)
import fairsieve
from fairsieve.errors import MissingExtraError

for name in fairsieve.__all__:
    getattr(fairsieve, name)


def command(*words):
    from fairsieve.cli import app as cli

    cli.app(list(words), standalone_mode=False)


def parquet(folder):
    from fairsieve.tabular.reading.read import read_table

    (folder / "table.parquet").write_bytes(b"PAR1")
    read_table(folder / "table.parquet")


def method(name):
    from fairsieve.data import make_synthetic
    from fairsieve.benchmark.methods import TrainingInput
    from fairsieve_reproduction.methods.registry import METHODS
    from fairsieve.training.trainer import Settings

    data = make_synthetic(60, seed=0)
    METHODS[name].train(TrainingInput(data=data, settings=Settings(), seed=0, validation=data))


def stored_model(folder):
    from fairsieve.tabular.model_files import read_model

    (folder / "model.skops").write_bytes(b"PK")
    read_model(folder)


def cluster(folder):
    from fairsieve.benchmark.workers import open_cluster

    with open_cluster("dask://localhost:1"):
        pass


tries = {
    "demo": lambda folder: command("demo", "--out", str(folder)),
    "display": lambda folder: fairsieve.TradeoffDisplay(["a"], [0.5], [0.1], "equalized_odds").plot(),
    "parquet": parquet,
    "stored model": stored_model,
    "method": lambda folder: method("threshold-optimizer"),
    "cluster": cluster,
    "FR-Train": lambda folder: method("fr-train"),
    "Lightning": lambda folder: importlib.import_module("fairsieve.adapters.lightning"),
    "Accelerate": lambda folder: importlib.import_module("fairsieve.adapters.accelerate"),
    "Trainer": lambda folder: importlib.import_module("fairsieve.adapters.transformers"),
}


def told(package, name, folder):
    hidden.clear()
    hidden.add(package)
    try:
        tries[name](folder)
    except MissingExtraError as error:
        return str(error)
    except BaseException as error:
        return repr(error)
    return "nothing"


for number, (package, name) in enumerate(json.loads(sys.argv[2])):  # each in a process where all were hidden so far
    folder = Path(str(number))
    folder.mkdir()
    if not os.fork():
        (folder / "told").write_text(told(package, name, folder))
        os._exit(0)
    os.wait()
"""


SOURCES = Path(fairsieve.__file__).parent
MODULES = {"sklearn": "scikit-learn"}  # packages whose module is called otherwise
BASE = {Requirement(one).name for one in requirements()[""]}
PACKAGES = {extra: {Requirement(one).name for one in found} for extra, found in EXTRAS.items()}


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    """What is told where packages are missing, by the place in ``TRIES``."""
    if not hasattr(os, "fork"):
        pytest.skip("needs fork")
    folder = tmp_path_factory.mktemp("tries")
    hidden = json.dumps(sorted(set().union(*PACKAGES.values()) - {"torch"}))
    tried = json.dumps([(package, name) for package, name, _ in TRIES])
    run_python("-c", PROGRAM, hidden, tried, cwd=folder)
    return [(folder / str(number) / "told").read_text() for number in range(len(TRIES))]


@pytest.mark.parametrize("number", range(len(TRIES)), ids=lambda number: "-".join(TRIES[number][:2]))
def test_what_is_missing_is_told_with_the_command_that_installs_it(told, number):
    assert told[number].endswith(TRIES[number][2])


def test_every_package_of_every_extra_is_tried():
    tried = {package for package, _, _ in TRIES}
    assert tried - BASE | WITHOUT_A_TRY == set().union(*PACKAGES.values())


def test_the_command_installs_what_was_missing():
    for package, _, message in TRIES:
        extra = message.partition("fairsieve[")[2].rstrip("']")
        assert package in (PACKAGES[extra] if extra else BASE)


def test_the_table_of_packages_that_may_be_missing_is_that_of_the_extras():
    assert set(OPTIONAL) == set().union(*PACKAGES.values())
    assert not [(name, extra) for name, extra in OPTIONAL.items() if name not in PACKAGES[extra]]


@pytest.mark.parametrize("package", sorted(OPTIONAL))
def test_the_extra_of_every_package_is_named_whichever_of_its_modules_is_asked_for(package):
    for name in (package, f"{package}.no_such_module"):
        told = str(missing(name, purpose="this"))
        assert told == f"this needs {package}: pip install 'fairsieve[{OPTIONAL[package]}]'"
    with pytest.raises(MissingExtraError, match=f"this needs {package}: pip install"):
        require(f"{package}.no_such_module", purpose="this")


def test_every_package_that_the_library_imports_is_in_an_extra_or_comes_with_it():
    """Every import of the library, and every call of ``require`` and ``missing``."""
    ours = {"fairsieve", "fairsieve_reproduction", *sys.stdlib_module_names}
    # These come with dask, are told by name, or stand in what users hand over.
    others = {"distributed", "joblibspark", "polars", "pyspark", "ray"}
    wanted = set()
    for path in SOURCES.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            name = getattr(getattr(node, "func", None), "id", "")
            if name in ("require", "missing", "import_module") and isinstance(node.args[0], ast.Constant):
                wanted.add(node.args[0].value)
            elif isinstance(node, ast.Import):
                wanted |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and not node.level:
                wanted.add(node.module)
    packages = {MODULES.get(one, one) for name in wanted for one in [name.partition(".")[0]]}
    assert len(packages - ours) > 15
    assert packages - ours - others <= set(OPTIONAL) | BASE
