"""Many fits in one process, many processes on one file: nothing grows, nothing is lost or doubled."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from fairsieve.experiments.records import append_record, read_records

LOAD = Path(__file__).parents[1] / "benchmarks" / "load.py"
linux = pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="counts what /proc shows")

WRITER = """
import sys
from pathlib import Path
from fairsieve.experiments.records import append_record
for i in range(40):
    append_record(Path(sys.argv[1]), {"run": f"shared-{i}", "filling": "x" * 300})
    append_record(Path(sys.argv[1]), {"run": f"{sys.argv[2]}-{i}", "filling": "x" * 9000})
"""


@linux
def test_two_hundred_fits_leave_nothing_behind():
    told = subprocess.run(
        [sys.executable, LOAD, "--fits", "200"], capture_output=True, text=True, check=False
    )
    assert told.returncode == 0, told.stdout + told.stderr


def test_eight_processes_on_one_file(tmp_path):
    path = tmp_path / "records.jsonl"
    path.write_bytes(b'{"run": "half a li')
    writers = [subprocess.Popen([sys.executable, "-c", WRITER, path, str(name)]) for name in range(8)]
    assert [writer.wait() for writer in writers] == [0] * 8
    names = [record["run"] for record in read_records(path)]
    expected = [f"{name}-{i}" for name in ["shared", *range(8)] for i in range(40)]
    assert sorted(names) == sorted(expected)


def test_a_success_takes_the_place_of_an_error_and_nothing_is_doubled(tmp_path):
    path = tmp_path / "records.jsonl"
    records = [{"run": "a", "error": "no"}, {"run": "a", "error": "no"}, {"run": "a"}, {"run": "a"}]
    assert [append_record(path, record) for record in records] == [True, False, True, False]
    assert append_record(path, {"run": "b", "about": "a"})
    path.write_bytes(path.read_bytes()[:-3])  # half of b
    assert append_record(path, {"run": "b", "about": "a"})
    assert [record["run"] for record in read_records(path)] == ["a", "a", "b"]


@pytest.mark.parametrize(
    "line", [b"[" * 200_000, b'{"run": ["a"]}', b'{"run": {}}', b"\x80\x04.", b"9" * 10**5, b'{"run": 1e999}']
)
def test_hostile_lines_are_no_records(tmp_path, line):
    path = tmp_path / "records.jsonl"
    path.write_bytes(line)
    assert list(read_records(path)) == []
    assert append_record(path, {"run": "a"})
    assert [record["run"] for record in read_records(path)] == ["a"]


@linux
def test_a_full_disk_is_an_error_and_loses_nothing_else(tmp_path):
    path = tmp_path / "records.jsonl"
    append_record(path, {"run": "before"})
    code = """
import resource, sys
from pathlib import Path
from fairsieve.experiments.records import append_record
resource.setrlimit(resource.RLIMIT_FSIZE, (100, resource.RLIM_INFINITY))
append_record(Path(sys.argv[1]), {"run": "too long", "filling": "x" * 500})
"""
    told = subprocess.run([sys.executable, "-c", code, path], capture_output=True, text=True, check=False)
    assert told.returncode != 0
    assert "File too large" in told.stderr
    assert os.path.getsize(path) <= 100  # noqa: PTH202
    append_record(path, {"run": "after"})
    assert [record["run"] for record in read_records(path)] == ["before", "after"]
