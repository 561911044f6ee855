"""Targets of the fuzzer: bytes go into a reader and what uses it; only errors of fairsieve may come out."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from fairsieve.errors import FairsieveError
from fairsieve.paper import run as comparing
from fairsieve.paper.methods.registry import find_methods
from fairsieve.paper.records import _read_records, append_record, fingerprint
from fairsieve.paper.reproduce.experiments import Experiment, Scope
from fairsieve.paper.reproduce.results import Results
from fairsieve.tabular.reading.columns import kind_of
from fairsieve.tabular.reading.encoding import Preparation
from fairsieve.tabular.reading.features import describe_features, feature_values, used
from fairsieve.tabular.reading.read import read_table
from fairsieve.tabular.reading.roles import find_groups, find_labels
from fairsieve.tabular.reading.table import Reading

__all__ = ["TARGETS", "Target"]

ours = contextlib.suppress(FairsieveError)


class Target(NamedTuple):
    """The first inputs, and what is done with one input."""

    seeds: list[bytes]
    run: Callable[[bytes], None]


READINGS = [
    Reading(),
    Reading(";", ","),
    Reading("tab"),
    Reading("|", missing=("x",)),
    Reading(" "),
    Reading("'", missing=("?", "-")),
]
TABLES = [
    b"age,sex,pay\n31, F,1\n?,M,0\n",
    b'a,b\r\n"x, ""y""",2\r\n,\r\n',
    "\ufeffname,größe\nÄ,3.5\n".encode(),
    "a,b\n1,2\n".encode("utf-16"),
    "a,b\né,1e5\n".encode("cp1252"),
    b"a;b\n3,5;x\n",
    b"a,a\n1,2,3\n",
    b"a\n\n\n1\n007\n2024-01-02\n",
]


def csv_target(folder: Path) -> Target:
    """A table, and what is made of its columns; the first byte says how it is read."""
    path = folder / "table.csv"

    def run(content: bytes) -> None:
        path.write_bytes(content[1:])
        with ours:
            table = read_table(path, READINGS[content[0] % len(READINGS)] if content else None)
            assert len(table)
            for name in table.columns:
                assert len(table.cells(name)) == len(table.rows)
                with ours:
                    feature_values(table, {name: kind_of(table, name)})
                with ours:
                    find_labels(table, name).read(table)
                with ours:
                    find_groups(table, [name], small_groups="merge")
            kinds = {one.column: one.kind for one in used(describe_features(table, apart=()))}
            values = feature_values(table, kinds)
            assert np.isfinite(Preparation().fit(values).transform(values)).all()

    return Target([bytes([i % len(READINGS)]) + table for i, table in enumerate(TABLES)], run)


def records_target(folder: Path) -> Target:
    """Records, which a comparison and a reproduction go on from; what they lack is not run, but noted."""
    path, asked = folder / "records.jsonl", comparing.Comparison(epochs=2, tune=False)
    methods, scope = find_methods("lr,fairsieve"), Scope(seeds=1, quick=True)
    experiments = [Experiment("lr", "synthetic"), Experiment("fairsieve", "compas")]

    def stand_in(comparison: comparing.Comparison, name: str, seed: int) -> dict[str, Any]:
        settings = comparison.run_settings(find_methods(name)[0], seed)
        return {"run": fingerprint(settings), "settings": settings, "error": "not run"}

    real = [json.dumps(comparing.run_one(asked, method.name, 0)).encode() for method in methods]
    tuned = Scope(seeds=1).tuning_settings(experiments[0])
    choice = {"run": fingerprint(tuned), "settings": tuned, "hyperparameters": {}, "candidates": []}
    failed = stand_in(asked, "lr", 0)
    seeds = [
        *real,
        b"\n".join(real),
        json.dumps(choice).encode(),
        json.dumps(failed).encode(),
        b'{"run": "ha',
    ]

    def run(content: bytes) -> None:
        path.write_bytes(content)
        before = [record["run"] for record in _read_records(path)]
        assert append_record(path, {"run": "mine"}) == ("mine" not in before)
        after = [record["run"] for record in _read_records(path)]
        assert after == (before if "mine" in before else [*before, "mine"])
        comparing.run_one, kept = stand_in, comparing.run_one
        try:
            with ours:
                list(comparing.compare(asked, methods, [0], path))
        finally:
            comparing.run_one = kept
        with ours:
            for each in (scope, Scope(seeds=1)):
                results = Results.read(path, each)
                for experiment in experiments:
                    results.values(experiment, "accuracy")
                    results.values(experiment, "cpu_seconds")

    return Target(seeds, run)


TARGETS: dict[str, Callable[[Path], Target]] = {
    "csv": csv_target,
    "records": records_target,
}
