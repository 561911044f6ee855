"""Records of runs: no process, full disk or damage loses one, doubles one, or makes one up."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from fairsieve.paper.records import append_record, fingerprint, read_results

METRICS = {"accuracy": 0.5, "equalized_odds": 0.5, "demographic_parity": 0.5, "equal_opportunity": 0.5}


def result(name, **changes):
    settings = {"method": "lr", "name": name}
    return {"run": fingerprint(settings), "settings": settings, "metrics": METRICS, "seconds": 1.0} | changes


PROGRAM = """
import os, resource, sys
from pathlib import Path
from fairsieve.paper.records import append_record
from tests.paper.test_records import result

path = Path(sys.argv[1])
children = []
for process in range(8):
    children.append(os.fork())
    if not children[-1]:
        for i in range(40):
            append_record(path, result(f"shared-{i}"))
            append_record(path, result(f"{process}-{i}", filling="x" * 9000))
        os._exit(0)
assert [os.waitpid(child, 0)[1] for child in children] == [0] * 8
resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size + 100, resource.RLIM_INFINITY))
try:
    append_record(path, result("too long", filling="x" * 500))
except OSError as error:
    assert "File too large" in str(error)
else:
    raise AssertionError("nothing was told")
"""


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="needs fork and limits")
def test_eight_processes_and_a_full_disk_lose_no_record(tmp_path):
    path = tmp_path / "records.jsonl"
    path.write_bytes(b'{"run": "half a li')
    root = Path(__file__).parents[2]
    command = [sys.executable, "-c", PROGRAM, path]
    told = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    assert told.returncode == 0, told.stderr
    append_record(path, result("after"))
    names = [record["settings"]["name"] for record in read_results(path)]
    expected = [f"{name}-{i}" for name in ["shared", *range(8)] for i in range(40)]
    assert sorted(names) == sorted([*expected, "after"])


def test_a_success_replaces_an_error_and_no_record_is_doubled(tmp_path):
    path = tmp_path / "records.jsonl"
    failed = result("a", error="no")
    tries = [failed, failed, result("a"), result("a"), result("b")]
    assert [append_record(path, record) for record in tries] == [True, False, True, False, True]
    path.write_bytes(path.read_bytes()[:-3])  # half of b
    assert append_record(path, result("b"))
    assert [record["settings"]["name"] for record in read_results(path)] == ["a", "a", "b"]


@pytest.mark.parametrize(
    "line", [b"[" * 200_000, b'{"run": ["a"]}', b'{"run": {}}', b"\x80\x04.", b"9" * 10**5, b'{"run": 1e999}']
)
def test_hostile_lines_are_no_records(tmp_path, line):
    path = tmp_path / "records.jsonl"
    path.write_bytes(line)
    assert append_record(path, result("a"))
    assert list(read_results(path)) == [result("a")]


@pytest.mark.parametrize(
    "damage",
    [
        (b'"seconds"', b'"secunds"'),
        (b'"equalized_odds":', b'"equalized_adds":'),
        (b'"metrics"', b'"metrucs"'),
        (b'"method"', b'"methud"'),
        (b'"settings": {', b'"settings": 3, "x": {'),
        (b'"accuracy": 0', b'"accuracy": "0", "x": 0'),
        (b'"accuracy": 0', b'"accuracy": 1' + b"0" * 400 + b', "x": 0'),
    ],
)
def test_a_damaged_record_is_no_result_and_is_replaced(tmp_path, damage):
    whole, path = json.dumps(result("a")).encode(), tmp_path / "records.jsonl"
    assert whole.replace(*damage) != whole
    path.write_bytes(whole.replace(*damage) + b"\n")
    assert not list(read_results(path))
    assert append_record(path, result("a"))  # run again, and kept this time
    assert list(read_results(path)) == [result("a")]
    assert not append_record(path, result("a"))
