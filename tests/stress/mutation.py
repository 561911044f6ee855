"""Test the tests of selection/: do they notice one small mistake in the code?

    python tests/stress/mutation.py --out mutants.jsonl                  # every mutant; survivors there again
    python tests/stress/mutation.py --out mutants.jsonl --sample 300     # some of them, drawn by --seed
    python tests/stress/mutation.py --out mutants.jsonl --report         # only the table

Works on a copy of the tree. mutmut leaves decorated functions alone, which is all our kernels, and
cosmic-ray leaves ``+=`` alone and starts an interpreter (and torch) for each mutant; so the mutants are
our own (mutants.py) and each runs in a fork of one process that has imported everything but fairsieve.
Kernels run as plain Python (``NUMBA_DISABLE_JIT``), and each mutant only meets the tests that reach its
function, with 50 examples of each law, always the same ones.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import importlib
import json
import math
import os
import shutil
import signal
import sys
import tempfile
import threading
import time
import traceback
from collections import Counter, defaultdict
from itertools import accumulate
from pathlib import Path

import numpy as np
from mutants import Mutant, mutants_of

ROOT = Path(__file__).parents[2]
CORE = Path("src/fairsieve/selection")
TESTS = ["tests/selection", "tests/laws"]
LEFT_OUT: set[str] = set()  # files
NOT_RUN = [  # tests that start programs, take long as plain Python, or are not about the core
    "test_memory_beside",
    "kernels_of_a_gpu",
    "150000",
    "20000",
    "look_random[1000]",
    "noise",
    "metrics",
    "listing",
]
OURS = ("fairsieve", "tests", "conftest", "mutants", "__main__", "polars")  # polars: threads that do not fork
SETTINGS = """[pytest]
addopts = --import-mode=importlib
filterwarnings =
    error
    ignore::RuntimeWarning
    ignore::pytest.PytestAssertRewriteWarning
"""
KNOWN = Path(__file__).with_name("equivalent_mutants.json")
LOG = "log.txt"  # what the latest run of the tests said
SLACK = 3.0  # seconds a test may take beyond three times its usual ones, before a mutant counts as stuck


class Watch:
    """A pytest plugin: which tests reach which functions of selection/, how long they take, which fails first."""

    def __init__(self, core: Path, limits: dict[str, float] | None) -> None:
        self.core, self.trace, self.limits = str(core), limits is None, limits or {}
        self.reached: dict[str, list[str]] = {}
        self.seconds: dict[str, float] = {}
        self.failed: str | None = None
        self._now: set[str] = set()

    def _see(self, frame, event, _) -> None:  # type: ignore[no-untyped-def]
        if event == "call" and frame.f_code.co_filename.startswith(self.core):
            name = frame.f_code.co_qualname.split(".<locals>")[0]
            file = Path(frame.f_code.co_filename).relative_to(self.core).as_posix()
            self._now.add(f"{file} {name}")

    def pytest_collection_modifyitems(self, items: list) -> None:  # type: ignore[type-arg]
        items[:] = [item for item in items if not any(part in item.nodeid for part in NOT_RUN)]

    def pytest_runtest_call(self, item) -> None:  # type: ignore[no-untyped-def]
        self._now, self._begun = set(), time.process_time()
        signal.setitimer(signal.ITIMER_VIRTUAL, self.limits.get(item.nodeid, 0))  # ends a test that is stuck
        if self.trace:
            threading.setprofile(self._see)
            sys.setprofile(self._see)

    def pytest_runtest_logreport(self, report) -> None:  # type: ignore[no-untyped-def]
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type]
        if report.failed and self.failed is None:
            self.failed = report.nodeid
        if report.when == "call" and report.passed:
            self.reached[report.nodeid] = sorted(self._now)
            self.seconds[report.nodeid] = time.process_time() - self._begun


def in_fork(call, log: Path):  # type: ignore[no-untyped-def]
    """Return what ``call`` returns in a child process; None if it takes too long or dies."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read)
        said = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(said, 1)
        os.dup2(said, 2)
        try:
            with os.fdopen(write, "w") as pipe:
                json.dump(call(), pipe)
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read) as pipe:
        text = pipe.read()
    os.waitpid(child, 0)
    return json.loads(text) if text else None


def run_tests(tree: Path, tests: list[str], limits: dict[str, float] | None = None) -> dict:  # type: ignore[type-arg]
    """Run tests of the copy until the first failure, in a child process; watched closely if without limits."""
    import pytest

    os.chdir(tree)
    sys.dont_write_bytecode = limits is not None
    watch = Watch(tree / CORE, limits)
    options = ["-q", "-x", "-p", "no:cacheprovider"]
    code = pytest.main([*options, *tests], plugins=[watch])
    modules = [name for name in sys.modules if name.split(".")[0] not in OURS]
    found = {"reached": watch.reached, "seconds": watch.seconds, "failed": watch.failed, "modules": modules}
    return {"code": int(code), **found}


def prepare(tree: Path) -> None:
    """Copy the tree, and set up what the tests need to run there."""
    for name in ("src", "tests", "docs/laws.md", "conftest.py", "pyproject.toml"):
        source, target = ROOT / name, tree / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, target)
    (tree / "pytest.ini").write_text(SETTINGS)
    os.environ |= {"NUMBA_DISABLE_JIT": "1", "HYPOTHESIS_PROFILE": "mutation", "OMP_NUM_THREADS": "1"}
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    sys.path[:0] = [str(tree / "src"), str(tree)]
    math.ldexp = np.ldexp  # ∞ where Python's own raises: what compiled code does


def import_once(modules: list[str]) -> None:
    """Import what the tests do and what is not ours, so that no fork has to."""
    for name in modules:
        with contextlib.suppress(Exception):
            importlib.import_module(name)


def try_mutant(tree: Path, mutant: Mutant, limits: dict[str, float]) -> dict:  # type: ignore[type-arg]
    """Write a mutant, run the tests, and restore the original."""
    path = tree / CORE / mutant.file
    original = path.read_text(encoding="utf-8")
    path.write_text(mutant.code(original), encoding="utf-8")
    begun = time.perf_counter()
    try:
        found = in_fork(lambda: run_tests(tree, list(limits), limits), tree / LOG) if limits else {"code": 0}
    finally:
        path.write_text(original, encoding="utf-8")
    took = round(time.perf_counter() - begun, 2)
    outcome = "survived" if found and found["code"] == 0 else "killed"
    by = "time" if found is None else found.get("failed")
    names = {"name": mutant.name, "file": mutant.file, "line": mutant.line}
    return {**names, "outcome": outcome, "by": by, "tests": len(limits), "seconds": took}


def tests_of(mutant: Mutant, reached: dict[str, list[str]]) -> list[str]:
    """Return the tests that reach the function of a mutant, or its file, if it is outside of functions."""
    if mutant.function == "(module)":
        return [
            test for test, names in reached.items() if any(n.startswith(f"{mutant.file} ") for n in names)
        ]
    return [test for test, names in reached.items() if f"{mutant.file} {mutant.function}" in names]


def list_files() -> list[str]:
    """Return the files that are mutated, by their paths below selection/."""
    names = sorted(path.relative_to(ROOT / CORE).as_posix() for path in (ROOT / CORE).rglob("*.py"))
    return [name for name in names if name not in LEFT_OUT]


def known_reason(name: str) -> str | None:
    """Return why a mutant behaves like the original, if that is known."""
    for pattern, reason in json.loads(KNOWN.read_text(encoding="utf-8")).items():
        if name == pattern or (pattern.endswith("*") and name.startswith(pattern[:-1])):
            return str(reason)
    return None


def report(records: dict, everyone: list[Mutant]) -> None:  # type: ignore[type-arg]
    """Print the table by file, and the mutants that survived without a known reason.

    The score is of the mutants that can be told from the original; the last column, of all that were run.
    """
    totals: dict[str, Counter[str]] = defaultdict(Counter)
    for mutant in everyone:
        record, reason = records.get(mutant.name), known_reason(mutant.name)
        kind = record["outcome"] if record else "left out" if reason else "to come"
        if kind == "survived" and reason:
            kind = "equivalent"
        totals[mutant.file][kind] += 1
        if kind == "survived":
            print(f"survived  {mutant.file}:{mutant.line}  {mutant.name}")
    totals["together"] = sum(totals.values(), Counter())
    columns = ("left out", "to come", "killed", "survived", "equivalent")
    print(f"\n| file | mutants | {' | '.join(columns)} | score | of all run |\n|{' --- |' * 9}")
    for file, counts in totals.items():
        killed, survived, equivalent = (counts[column] for column in columns[2:])
        scores = [
            f"{killed / run:.1%}" if run else "–"
            for run in (killed + survived, killed + survived + equivalent)
        ]
        cells = [file, counts.total(), *(counts[column] for column in columns), *scores]
        print("|", " | ".join(map(str, cells)), "|")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="JSON lines; what is killed there stays so")
    parser.add_argument("--sample", type=int, help="so many new mutants, drawn by the seed; all if left out")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--files", nargs="*", help="only these, such as backends/numpy.py")
    parser.add_argument("--tests", nargs="*", default=TESTS, help="only these tests")
    parser.add_argument("--seconds", type=float, default=math.inf, help="of tests, for one mutant")
    parser.add_argument("--minutes", type=float, default=math.inf, help="begin no mutant after so long")
    parser.add_argument("--report", action="store_true")
    options = parser.parse_args()
    begun = time.monotonic()
    files = [name for name in list_files() if name in (options.files or list_files())]
    everyone = [each for name in files for each in mutants_of(name, (ROOT / CORE / name).read_text("utf-8"))]
    lines = options.out.read_text(encoding="utf-8").splitlines() if options.out.exists() else []
    records = {record["name"]: record for record in map(json.loads, lines)}
    rest = [each for each in everyone if not known_reason(each.name)]
    rest.sort(key=lambda each: hashlib.sha256(f"{options.seed} {each.name}".encode()).digest())
    survived = [each for each in rest if records.get(each.name, {}).get("outcome") == "survived"]
    chosen = survived + [each for each in rest if each.name not in records][: options.sample]
    if options.report:
        report(records, everyone)
        return
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        tree = Path(folder).resolve()
        prepare(tree)
        base = in_fork(lambda: run_tests(tree, options.tests), tree / LOG)
        if not base or base["code"]:
            sys.exit((tree / LOG).read_text(encoding="utf-8") + "the tests fail without a mutant")
        import_once(base["modules"])
        shutil.rmtree(tree / CORE / "__pycache__", ignore_errors=True)
        seconds, kills = base["seconds"], Counter()
        print(
            f"{len(chosen)} of {len(everyone)} mutants; {len(seconds)} tests, {sum(seconds.values()):.0f} s"
        )
        for number, mutant in enumerate(chosen):
            if time.monotonic() - begun > 60 * options.minutes:
                break
            tests = tests_of(mutant, base["reached"])
            tests.sort(key=lambda test: (seconds[test] + 0.02) / (1 + kills[test]))
            spent = list(accumulate(seconds[test] for test in tests))
            limits = {
                test: SLACK + 3 * seconds[test]
                for test, total in zip(tests, spent, strict=True)
                if total - seconds[test] < options.seconds
            }
            record = try_mutant(tree, mutant, limits)
            kills[record["by"]] += 1
            records[mutant.name] = record
            with options.out.open("a", encoding="utf-8") as out:
                out.write(json.dumps(record, ensure_ascii=False) + "\n")
            if record["outcome"] == "survived":
                print(
                    f"{number}: {record['seconds']} s, {mutant.file}:{mutant.line} {mutant.name}", flush=True
                )
    report(records, everyone)


if __name__ == "__main__":
    main()
