"""Runs on real clusters: dask, ray and Spark, with a worker that is killed and a comparison that is restarted."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from types import SimpleNamespace

import pytest

from fairsieve.errors import FairsieveError, InvalidInputError
from fairsieve.paper.methods.registry import find_methods
from fairsieve.paper.run import Comparison, compare
from fairsieve.paper.workers import open_cluster

# Each program starts the engine and its address; the engines are new on this machine and end with the program.
ENGINES = {
    "dask": (
        "distributed",
        """
from distributed import LocalCluster
cluster = LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None)
address = cluster.scheduler_address.replace("tcp://", "dask://")
""",
    ),
    "ray": ("ray", "address = 'ray'"),
    "spark": (
        "joblibspark",
        """
from pyspark.sql import SparkSession
os.environ["PYSPARK_PYTHON"] = sys.executable
SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
address = "spark"
""",
    ),
}
PROGRAM = """
import json, os, signal, sys, warnings
from functools import partial
from pathlib import Path

from fairsieve.errors import WorkerError
from fairsieve.paper.methods.registry import find_methods
from fairsieve.paper.run import Comparison, compare
from fairsieve.paper.workers import open_cluster, run_and_record

folder = Path(sys.argv[1])


def make_run(number, marker):
    if number == 3 and not marker.exists():  # the worker of this run is killed once
        marker.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return {"run": str(number)}


def fail():
    raise KeyError("a run's own error")


def main():
    START
    with open_cluster(address):
        work = [partial(make_run, number, folder / "killed") for number in range(8)]
        found = {finished.place: finished.record for finished in run_and_record(work, folder / "killed.jsonl", jobs=2)}
        assert found == {number: {"run": str(number)} for number in range(8)}, found
        assert (folder / "killed").exists()

        path = folder / "records.jsonl"
        asked = Comparison(epochs=4, tune=False), find_methods("lr,sample-selection"), range(3), path
        first = compare(*asked, jobs=2)
        next(first)
        first.close()
        (folder / "before.json").write_text(json.dumps(path.read_text().count("\\n")))
        assert len(list(compare(*asked, jobs=2))) == 6
        try:
            list(run_and_record([fail], folder / "none.jsonl", jobs=2))
        except KeyError as error:
            assert "own error" in str(error)
        else:
            raise AssertionError("the run's error was lost")
    if address.startswith("dask://"):  # on the command line; to start the others once more takes long
        from fairsieve.cli.app import app

        asked = "compare --methods lr --seeds 2 --epochs 4 --no-tune"
        app([*asked.split(), "--backend", address, "--out", str(folder / "runs")], standalone_mode=False)
        assert (folder / "runs" / "records.jsonl").read_text().count("\\n") == 2


if __name__ == "__main__":
    main()
"""


def require_engine(engine, module):
    if importlib.util.find_spec(module) is None:
        if os.environ.get(f"FAIRSIEVE_REQUIRE_{engine.upper()}") == "1":
            pytest.fail(f"{module} is required here, and is not installed")
        pytest.skip(f"{module} is not installed")


def without_times(records):
    times = {"seconds", "cpu_seconds", "tuning_seconds"}
    kept = [{name: value for name, value in record.items() if name not in times} for record in records]
    return sorted(kept, key=lambda record: record["run"])


@pytest.mark.parametrize("engine", ENGINES)
def test_a_cluster_survives_a_killed_worker_and_continues_after_a_restart(engine, tmp_path, request):
    limit = float(request.config.getoption("timeout") or request.config.getini("timeout"))
    module, start = ENGINES[engine]
    require_engine(engine, module)
    program = tmp_path / "program.py"
    program.write_text(
        PROGRAM.replace("    START", "".join(f"    {line}\n" for line in start.strip().splitlines()))
    )
    variables = os.environ | {"RAY_USAGE_STATS_ENABLED": "0", "RAY_AUTH_MODE": "disabled"}
    told = subprocess.run(
        [sys.executable, "-W", "ignore", program, tmp_path],
        capture_output=True,
        text=True,
        check=False,
        env=variables,
        timeout=limit - 20,  # make stress gives more, for a busy machine
    )
    assert told.returncode == 0, told.stdout + told.stderr
    lines = (tmp_path / "killed.jsonl").read_text().splitlines()
    assert sorted(json.loads(line)["run"] for line in lines) == [str(number) for number in range(8)]
    assert 1 <= json.loads((tmp_path / "before.json").read_text()) < 6
    there = [json.loads(line) for line in (tmp_path / "records.jsonl").read_text().splitlines()]
    here = compare(
        Comparison(epochs=4, tune=False),
        find_methods("lr,sample-selection"),
        range(3),
        tmp_path / "here.jsonl",
    )
    assert without_times(there) == without_times(here)


def test_ray_without_its_client_names_the_command_that_installs_it(monkeypatch):
    def init(**_):
        raise ValueError("Ray Client requires pip package `ray[client]`. If you installed the minimal Ray")

    monkeypatch.setitem(sys.modules, "ray", SimpleNamespace(is_initialized=lambda: False, init=init))
    with (
        pytest.raises(FairsieveError, match=r"elsewhere needs its client: pip install 'ray\[client\]'"),
        open_cluster("ray://localhost:1"),
    ):
        pass


@pytest.mark.parametrize("address", ["dask", "dask://", "ray://", "slurm://head:1", "tcp://head:1", ""])
def test_unknown_addresses_are_refused_with_the_known_forms(address):
    with (
        pytest.raises(InvalidInputError, match=r"backend must be dask://HOST:PORT, ray, .*; got"),
        open_cluster(address),
    ):
        pass


@pytest.mark.parametrize(
    ("module", "address", "install"),
    [
        ("dask", "dask://localhost:1", r"needs dask: pip install 'fairsieve\[dask\]'"),
        ("ray", "ray", "needs ray: pip install ray$"),
        ("ray", "ray://localhost:1", r"needs ray: pip install ray\[client\]"),
        ("pyspark.sql", "spark", "needs pyspark: pip install joblibspark pyspark"),
    ],
)
def test_a_missing_engine_names_the_command_that_installs_it(module, address, install, monkeypatch):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(FairsieveError, match=install), open_cluster(address):
        pass
