"""Many fits in one process, and many processes that write one file: nothing grows, no record is lost or doubled."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from fairsieve.paper.records import _read_records, append_record

LOAD = Path(__file__).parent / "load.py"
linux = pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="counts what /proc shows")

PROGRAM = """
import os, resource, sys
from pathlib import Path
from fairsieve.paper.records import append_record, _read_records

path = Path(sys.argv[1])


def write(name):
    for i in range(40):
        append_record(path, {"run": f"shared-{i}", "filling": "x" * 300})
        append_record(path, {"run": f"{name}-{i}", "filling": "x" * 9000})


def write_too_much():
    resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size + 100, resource.RLIM_INFINITY))
    try:
        append_record(path, {"run": "too long", "filling": "x" * 500})
    except OSError as error:
        assert "File too large" in str(error)
    else:
        raise AssertionError("nothing was told")


def in_a_process(work, *arguments):
    child = os.fork()  # what is imported is there at once
    if not child:
        code = 1
        try:
            work(*arguments)
            code = 0
        finally:
            os._exit(code)
    return child


def ended(children):
    assert [os.waitpid(child, 0)[1] for child in children] == [0] * len(children)


ended([in_a_process(write, name) for name in range(8)])
before = len(list(_read_records(path)))
ended([in_a_process(write_too_much)])
append_record(path, {"run": "after"})
assert len(list(_read_records(path))) == before + 1
"""


@linux
def test_memory_files_and_threads_do_not_grow_over_two_hundred_fits():
    told = subprocess.run(
        [sys.executable, LOAD, "--fits", "200"], capture_output=True, text=True, check=False
    )
    assert told.returncode == 0, told.stdout + told.stderr


@linux
def test_eight_processes_and_a_full_disk_lose_no_record(tmp_path):
    path = tmp_path / "records.jsonl"
    path.write_bytes(b'{"run": "half a li')
    told = subprocess.run([sys.executable, "-c", PROGRAM, path], capture_output=True, text=True, check=False)
    assert told.returncode == 0, told.stderr
    names = [record["run"] for record in _read_records(path)]
    expected = [f"{name}-{i}" for name in ["shared", *range(8)] for i in range(40)]
    assert sorted(names) == sorted([*expected, "after"])


def test_a_success_replaces_an_error_and_no_record_is_doubled(tmp_path):
    path = tmp_path / "records.jsonl"
    records = [{"run": "a", "error": "no"}, {"run": "a", "error": "no"}, {"run": "a"}, {"run": "a"}]
    assert [append_record(path, record) for record in records] == [True, False, True, False]
    assert append_record(path, {"run": "b", "about": "a"})
    path.write_bytes(path.read_bytes()[:-3])  # half of b
    assert append_record(path, {"run": "b", "about": "a"})
    assert [record["run"] for record in _read_records(path)] == ["a", "a", "b"]


@pytest.mark.parametrize(
    "line", [b"[" * 200_000, b'{"run": ["a"]}', b'{"run": {}}', b"\x80\x04.", b"9" * 10**5, b'{"run": 1e999}']
)
def test_hostile_lines_are_no_records(tmp_path, line):
    path = tmp_path / "records.jsonl"
    path.write_bytes(line)
    assert list(_read_records(path)) == []
    assert append_record(path, {"run": "a"})
    assert [record["run"] for record in _read_records(path)] == ["a"]
