"""The engine of recorded runs: lost workers, errors of runs, clusters, a full disk, and damaged records."""

import importlib.util
import json
import os
import sys
from functools import partial
from pathlib import Path
from textwrap import indent
from types import SimpleNamespace

import pytest
from tests.support.programs import run_python
from tests.support.runs import kill_worker, make_run, raise_missing_extra

from fairsieve.benchmark.run import Comparison, compare
from fairsieve.benchmark.workers import append_record, fingerprint, open_cluster, read_results, run_and_record
from fairsieve.errors import FairsieveError, FairsieveWarning, InvalidInputError, WorkerError
from fairsieve_reproduction.methods.registry import find_methods


def test_the_runs_of_a_killed_worker_are_made_again(tmp_path):
    path, marker = tmp_path / "records.jsonl", tmp_path / "killed"
    work = [partial(make_run, number) for number in range(4)] + [partial(kill_worker, marker)]
    with pytest.warns(FairsieveWarning, match="a worker was lost, and its runs are made again"):
        places = sorted(place for place, _ in run_and_record(work, path, jobs=2))
    assert places == list(range(5))
    lines = path.read_text().splitlines()
    assert sorted(json.loads(line)["run"] for line in lines) == ["0", "1", "2", "3", "killed"]


@pytest.mark.filterwarnings("ignore:a worker was lost")
def test_a_run_that_always_kills_its_worker_is_an_error_that_names_the_records(tmp_path):
    path = tmp_path / "records.jsonl"
    told = r"lost 3 times in a row, with 1 runs left .*records\.jsonl: start again"
    with pytest.raises(WorkerError, match=told):
        list(run_and_record([partial(kill_worker, None)], path, jobs=2))


def test_an_error_of_a_run_is_raised_and_not_mistaken_for_a_lost_worker(tmp_path):
    for jobs in (1, 2):
        with pytest.raises(RuntimeError, match="MissingExtraError: a method needs fairlearn"):
            list(run_and_record([raise_missing_extra] * 2, tmp_path / "none.jsonl", jobs=jobs))


@pytest.mark.skipif(sys.platform != "linux", reason="limits the size of files as Linux does")
def test_a_full_disk_names_the_file_and_the_way_out_and_loses_nothing(tmp_path):
    """The limit on the size of files stands for the disk; the command is given again without it."""
    program = (
        "import resource, sys; from fairsieve.cli.app import main; "
        "resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv.pop(1)), resource.RLIM_INFINITY)); main()"
    )
    options = ["compare", "--methods", "plain", "--seeds", "3", "--no-tune", "--jobs", "1"]
    wide = {"COLUMNS": "400"}
    full = run_python("-c", program, 1100, *options, "--out", tmp_path, env=wide, status=1)
    run_python("-c", program, 2**30, *options, "--out", tmp_path, env=wide)
    assert "Traceback" not in full.stderr
    assert "could not be written (File too large). Make room, or name another folder" in full.stderr
    assert str(tmp_path / "records.jsonl") in full.stderr
    lines = (tmp_path / "records.jsonl").read_text().splitlines()
    assert len([line for line in lines if line.endswith("}")]) == 3


# Records: no process, full disk or damage loses one, doubles one, or makes one up.

METRICS = {"accuracy": 0.5, "equalized_odds": 0.5, "demographic_parity": 0.5, "equal_opportunity": 0.5}


def result(name, **changes):
    settings = {"method": "lr", "name": name}
    return {"run": fingerprint(settings), "settings": settings, "metrics": METRICS, "seconds": 1.0} | changes


SHARED = """
import os, sys
from pathlib import Path
from fairsieve.benchmark.workers import append_record
from tests.benchmark.test_workers import result

path = Path(sys.argv[1])
children = []
for process in range(8):
    children.append(os.fork())
    if not children[-1]:
        for i in range(12):
            append_record(path, result(f"shared-{i}"))
            append_record(path, result(f"{process}-{i}", filling="x" * 9000))
        os._exit(0)
assert [os.waitpid(child, 0)[1] for child in children] == [0] * 8
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_eight_processes_lose_no_record(tmp_path):
    path = tmp_path / "records.jsonl"
    path.write_bytes(b'{"run": "half a li')
    run_python("-c", SHARED, path, cwd=Path(__file__).parents[2])
    append_record(path, result("after"))
    names = [record["settings"]["name"] for record in read_results(path)]
    expected = [f"{name}-{i}" for name in ["shared", *range(8)] for i in range(12)]
    assert sorted(names) == sorted([*expected, "after"])


def test_a_success_replaces_an_error_and_no_record_is_doubled(tmp_path):
    path = tmp_path / "records.jsonl"
    failed = result("a", error="no")
    tries = [failed, failed, result("a"), result("a"), result("b")]
    assert [append_record(path, record) for record in tries] == [True, False, True, False, True]
    path.write_bytes(path.read_bytes()[:-3])  # half of b
    assert append_record(path, result("b"))
    assert [record["settings"]["name"] for record in read_results(path)] == ["a", "a", "b"]


WHOLE = json.dumps(result("a")).encode()
DAMAGED = [
    WHOLE.replace(right, wrong) + b"\n"
    for right, wrong in (
        (b'"seconds"', b'"secunds"'),
        (b'"equalized_odds":', b'"equalized_adds":'),
        (b'"metrics"', b'"metrucs"'),
        (b'"method"', b'"methud"'),
        (b'"settings": {', b'"settings": 3, "x": {'),
        (b'"accuracy": 0', b'"accuracy": "0", "x": 0'),
        (b'"accuracy": 0', b'"accuracy": 1' + b"0" * 400 + b', "x": 0'),
    )
]
HOSTILE = [b"[" * 200_000, b'{"run": ["a"]}', b'{"run": {}}', b"\x80\x04.", b"9" * 10**5, b'{"run": 1e999}']


@pytest.mark.parametrize("line", [*DAMAGED, *HOSTILE], ids=range(len(DAMAGED + HOSTILE)))
def test_damaged_and_hostile_lines_are_no_results_and_are_replaced(tmp_path, line):
    assert line != WHOLE + b"\n"
    path = tmp_path / "records.jsonl"
    path.write_bytes(line)
    assert not list(read_results(path))
    assert append_record(path, result("a"))  # run again, and kept this time
    assert list(read_results(path)) == [result("a")]
    assert not append_record(path, result("a"))


# Real clusters: dask, ray and Spark, with a worker that is killed and a comparison that is restarted.

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
CLUSTER = """
import json, os, signal, sys, warnings
from functools import partial
from pathlib import Path

from fairsieve.errors import WorkerError
from fairsieve_reproduction.methods.registry import find_methods
from fairsieve.benchmark.run import Comparison, compare
from fairsieve.benchmark.workers import open_cluster, run_and_record

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
        found = dict(run_and_record(work, folder / "killed.jsonl", jobs=2))
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
    asked = Comparison(epochs=4, tune=False), find_methods("lr,sample-selection"), range(3)
    here = list(compare(*asked, tmp_path / "here.jsonl"))  # first, so that kernels are compiled once
    program = tmp_path / "program.py"
    program.write_text(CLUSTER.replace("    START", indent(start.strip(), "    ")))
    variables = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_AUTH_MODE": "disabled"}
    run_python("-W", "ignore", program, tmp_path, env=variables, timeout=limit - 20)
    lines = (tmp_path / "killed.jsonl").read_text().splitlines()
    assert sorted(json.loads(line)["run"] for line in lines) == [str(number) for number in range(8)]
    assert 1 <= json.loads((tmp_path / "before.json").read_text()) < 6
    there = [json.loads(line) for line in (tmp_path / "records.jsonl").read_text().splitlines()]
    assert without_times(there) == without_times(here)


def test_ray_without_its_client_names_the_command_that_installs_it(monkeypatch):
    def init(**_):
        raise ValueError("Ray Client requires pip package `ray[client]`. If you installed the minimal Ray")

    monkeypatch.setitem(sys.modules, "ray", SimpleNamespace(is_initialized=lambda: False, init=init))
    told = r"elsewhere needs its client: pip install 'ray\[client\]'"
    with pytest.raises(FairsieveError, match=told), open_cluster("ray://localhost:1"):
        pass


@pytest.mark.parametrize("address", ["dask", "dask://", "ray://", "slurm://head:1", "tcp://head:1", ""])
def test_unknown_addresses_are_refused_with_the_known_forms(address):
    told = "backend must be dask://HOST:PORT, ray, .*; got"
    with pytest.raises(InvalidInputError, match=told), open_cluster(address):
        pass


@pytest.mark.parametrize(("module", "address", "install"), [
    ("ray", "ray", "needs ray: pip install ray$"),
    ("ray", "ray://localhost:1", r"needs ray: pip install ray\[client\]"),
    ("pyspark.sql", "spark", "needs pyspark: pip install joblibspark pyspark"),
])  # fmt: skip
def test_a_missing_engine_names_the_command_that_installs_it(module, address, install, monkeypatch):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(FairsieveError, match=install), open_cluster(address):
        pass
