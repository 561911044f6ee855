"""The engine of recorded runs on this machine: lost workers, errors of runs, threads, and a full disk."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest
from tests.stress.processes import is_alone, members
from tests.support.runs import kill_worker, make_run, raise_missing_extra

from fairsieve.errors import FairsieveWarning, WorkerError
from fairsieve.paper.records import append_record
from fairsieve.paper.workers import run_and_record

SLOW_RUNS = """
import os, sys, time
from pathlib import Path
from fairsieve.paper.workers import run_and_record
folder = Path(sys.argv[1])


def sleep_long():
    (folder / f"begun-{os.getpid()}").touch()
    time.sleep(120)


list(run_and_record([sleep_long] * 2, folder / "records.jsonl", jobs=2))
"""


def wait_for(happens, seconds):
    until = time.monotonic() + seconds
    while not happens():
        assert time.monotonic() < until
        time.sleep(0.05)


def recorded(path):
    return sorted(json.loads(line)["run"] for line in path.read_text().splitlines())


def test_every_run_is_recorded_once_and_yielded_with_its_place(tmp_path):
    path = tmp_path / "records.jsonl"
    finished = list(run_and_record([partial(make_run, number) for number in range(5)], path))
    assert [(one.place, one.record["run"]) for one in finished] == [
        (number, str(number)) for number in range(5)
    ]
    assert recorded(path) == [str(number) for number in range(5)]


def test_the_runs_of_a_killed_worker_are_made_again(tmp_path):
    path, marker = tmp_path / "records.jsonl", tmp_path / "killed"
    work = [partial(make_run, number) for number in range(4)] + [partial(kill_worker, marker)]
    with pytest.warns(FairsieveWarning, match="a worker was lost, and its runs are made again"):
        places = sorted(finished.place for finished in run_and_record(work, path, jobs=2))
    assert places == list(range(5))
    assert recorded(path) == ["0", "1", "2", "3", "killed"]


@pytest.mark.skipif(sys.platform != "linux", reason="reads the processes of a group from /proc")
def test_workers_end_soon_after_their_caller_was_killed(tmp_path):
    caller = subprocess.Popen([sys.executable, "-c", SLOW_RUNS, str(tmp_path)], start_new_session=True)
    try:
        wait_for(lambda: len(list(tmp_path.glob("begun-*"))) == 2, 60)
        caller.kill()
        caller.wait()
        assert is_alone(caller.pid, 10)
    finally:
        for worker in members(caller.pid):
            os.kill(worker, signal.SIGKILL)


@pytest.mark.filterwarnings("ignore:a worker was lost")
def test_a_run_that_always_kills_its_worker_is_an_error_that_names_the_records(tmp_path):
    path = tmp_path / "records.jsonl"
    with pytest.raises(
        WorkerError, match=r"lost 3 times in a row, with 1 runs left .*records\.jsonl: start again"
    ):
        list(run_and_record([partial(kill_worker, None)], path, jobs=2))


def test_an_error_of_a_run_is_raised_and_not_mistaken_for_a_lost_worker(tmp_path):
    for jobs in (1, 2):
        with pytest.raises(RuntimeError, match="MissingExtraError: a method needs fairlearn"):
            list(
                run_and_record([raise_missing_extra, raise_missing_extra], tmp_path / "none.jsonl", jobs=jobs)
            )


@pytest.mark.skipif(sys.platform != "linux", reason="limits the size of files as Linux does")
def test_a_full_disk_names_the_file_and_the_way_out_and_loses_nothing(tmp_path):
    """The limit on the size of files stands for the disk; the command is given again without it."""
    program = (
        "import resource, sys; from fairsieve.cli.app import main; "
        "resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv.pop(1)), resource.RLIM_INFINITY)); main()"
    )
    options = ["compare", "--methods", "lr", "--seeds", "3", "--epochs", "2", "--no-tune", "--jobs", "1"]
    command = ["-c", program, "1100", *options, "--out", str(tmp_path)]
    variables = os.environ | {"COLUMNS": "400"}
    told = subprocess.run(
        [sys.executable, *command], capture_output=True, text=True, check=False, env=variables
    )
    assert told.returncode == 1, told.stderr
    assert "Traceback" not in told.stderr
    assert "could not be written (File too large). Make room, or name another folder" in told.stderr
    assert str(tmp_path / "records.jsonl") in told.stderr
    command[2] = str(2**30)
    told = subprocess.run(
        [sys.executable, *command], capture_output=True, text=True, check=False, env=variables
    )
    assert told.returncode == 0, told.stderr
    lines = (tmp_path / "records.jsonl").read_text().splitlines()
    whole = [line for line in lines if line.endswith("}")]
    assert len(whole) == 3


def test_a_folder_in_place_of_the_file_is_named(tmp_path):
    with pytest.raises(OSError, match="could not be written") as caught:
        append_record(tmp_path, {"run": "a"})
    assert Path(caught.value.filename) == tmp_path
