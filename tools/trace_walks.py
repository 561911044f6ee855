"""Count how many files of the package four calls pass, and list the modules that call each other both ways.

    python tools/trace_walks.py [update] [fit] [train] [table1]

A profiler sees every call outside of imports. Two modules call each other where each calls a function, method or class
of the other directly. A function that is handed over as an argument, and a generator that another module goes through,
are no calls of the module that they were written in. The numbers in docs/architecture.md come from here.
"""

from __future__ import annotations

import contextlib
import inspect
import io
import os
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

import fairsieve

PACKAGE = str(Path(fairsieve.__file__).parent) + os.sep
IMPORT = "<frozen importlib._bootstrap>"


class Tracer:
    """Calls between the package's modules while it is entered, and templates that are read."""

    def __init__(self) -> None:
        self.files: Counter[str] = Counter()
        self.functions: set[str] = set()
        self.calls: Counter[tuple[str, str]] = Counter()
        self.examples: dict[tuple[str, str], Counter[str]] = {}
        self._stack: list[str | None] = []  # the module of each running function; None for other packages
        self._imports = 0
        self.depth = 0

    def __enter__(self) -> Tracer:
        sys.setprofile(self._see)
        return self

    def __exit__(self, *_: object) -> None:
        sys.setprofile(None)

    def _see(self, frame: FrameType, event: str, _: Any) -> None:
        if event not in ("call", "return"):
            return
        code = frame.f_code
        if code.co_filename == IMPORT and code.co_name == "_find_and_load":
            self._imports += 1 if event == "call" else -1
        if event == "return":
            if self._stack:
                self._stack.pop()
            return
        ours = code.co_filename.startswith(PACKAGE) and not self._imports and code.co_name != "<module>"
        caller = self._stack[-1] if self._stack else None
        called = code.co_filename.removeprefix(PACKAGE) if ours else None
        self._stack.append(called)
        if called is None:
            return
        self.files[called] += 1
        self.functions.add(f"{called}:{code.co_qualname}")
        modules = [module for module in self._stack if module is not None]
        self.depth = max(self.depth, 1 + sum(a != b for a, b in pairwise(modules)))
        closure = "<locals>" in code.co_qualname or code.co_name.startswith("<")
        if closure or _was_handed(frame) or code.co_flags & inspect.CO_GENERATOR:
            return
        if caller not in (None, called):
            assert caller is not None
            self.calls[caller, called] += 1
            self.examples.setdefault((caller, called), Counter())[code.co_qualname] += 1

    def report(self) -> None:
        """Print the numbers, and every pair of modules that call each other."""
        print(f"{len(self.files)} files, {len(self.functions)} functions, depth {self.depth}")
        print("  " + ", ".join(sorted(self.files)))
        for (first, second), count in sorted(self.calls.items()):
            if first < second and (second, first) in self.calls:
                for pair, times in (((first, second), count), ((second, first), self.calls[second, first])):
                    names = ", ".join(name for name, _ in self.examples[pair].most_common(4))
                    print(f"  both ways: {pair[0]} -> {pair[1]} {times} times ({names})")


def _was_handed(frame: FrameType) -> bool:
    """Return whether the caller was given what it calls: the function is among its own arguments."""
    caller = frame.f_back
    if caller is None:
        return False
    signature = caller.f_code
    names = signature.co_varnames[: signature.co_argcount + signature.co_kwonlyargcount]
    arguments = (caller.f_locals.get(name) for name in names)
    return any(getattr(argument, "__code__", None) is frame.f_code for argument in arguments)


def _people(rows: int = 1000) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(0)
    groups = rng.integers(0, 2, rows)
    features = rng.normal(size=(rows, 3)) + 0.5 * groups[:, None]
    labels = (3 * features[:, 0] + rng.normal(size=rows) > 0).astype(int)
    return features, labels, groups


def update() -> Callable[[], object]:
    """Prepare a sampler; update it and pass over its batches."""
    features, labels, groups = _people()
    sampler = fairsieve.FairRobustBatchSampler(
        labels, groups, batch_size=32, clean_ratio=0.9, warmup_epochs=0, seed=0
    )
    outputs = np.column_stack([-features[:, 0], features[:, 0]])
    return lambda: (sampler.update(outputs), list(sampler))


def fit() -> Callable[[], object]:
    """Fit the classifier."""
    features, labels, groups = _people()
    model = fairsieve.FairRobustClassifier(random_state=0)
    return lambda: model.fit(features, labels, sensitive_features=groups)


def train() -> Callable[[], object]:
    """Train on a table by the command."""
    from fairsieve.cli.app import main

    features, labels, groups = _people()
    folder = Path(tempfile.mkdtemp())
    rows = zip(features.tolist(), labels, groups, strict=True)
    lines = [f"{x},{y},{z},{'yes' if label else 'no'},{'ab'[group]}" for (x, y, z), label, group in rows]
    (folder / "people.csv").write_text("\n".join(["x,y,z,bought,group", *lines, ""]))
    options = ["--label", "bought", "--sensitive", "group", "-o", str(folder / "run")]
    sys.argv = ["fairsieve", "train", str(folder / "people.csv"), *options]
    return main


def table1() -> Callable[[], object]:
    """Reproduce the first table at a glance."""
    from fairsieve.cli.app import main

    sys.argv = ["fairsieve", "reproduce", "table1", "--quick", "-o", tempfile.mkdtemp(), "--jobs", "1"]
    return main


def show_walk(prepare: Callable[[], Callable[[], object]]) -> None:
    """Trace what a function prepares, and print it; what it does the first time only is not counted."""
    call = prepare()
    with Tracer() as tracer, contextlib.suppress(SystemExit), contextlib.redirect_stdout(io.StringIO()):
        call()
    tracer.report()


if __name__ == "__main__":
    walks = {walk.__name__: walk for walk in (update, fit, train, table1)}
    for name in sys.argv[1:] or ["update", "fit", "train"]:
        print(f"{name}: ", end="")
        show_walk(walks[name])
